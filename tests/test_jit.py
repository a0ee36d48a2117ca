"""`nbcomp.jit`: many signatures, threads, fallbacks, writes to arguments, errors on the way."""

from __future__ import annotations

import functools
import gc
import inspect
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.errors import CaptureError
from nbcomp.jitted import VARIANTS, Jit

Array = np.ndarray[Any, Any]


@contextmanager
def compiled_only() -> Iterator[None]:
    """Any fallback to NumPy is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", nbcomp.NumpyFallback)
        yield


def same(got: Any, wanted: Any) -> None:
    """Equal type, dtype, shape and values."""
    assert type(got) is type(wanted)
    if isinstance(wanted, tuple | list):
        assert len(got) == len(wanted)
        for a, b in zip(got, wanted, strict=True):
            same(a, b)
    elif isinstance(wanted, dict):
        assert list(got) == list(wanted)
        for key in wanted:
            same(got[key], wanted[key])
    elif isinstance(wanted, np.ndarray | np.generic):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
    else:
        assert got == wanted


# -------------------------------------------------------------------------------------- signatures


def test_one_variant_for_each_signature(rng: np.random.Generator) -> None:
    @nbcomp.jit
    def f(x: Any) -> Any:
        return np.exp(x) * 2

    arrays = [
        rng.random(5),
        rng.random(6),
        rng.random((5, 6)),
        rng.random((6, 5)).T,
        rng.random(10)[::2],
        rng.random(5)[::-1],
        rng.random(5, np.float32),
        np.arange(5),
        np.arange(5, dtype=np.uint8),
        np.array(3.0),
        np.zeros((0, 4)),
    ]
    with compiled_only():
        for _ in range(3):
            for a in arrays:
                same(f(a), np.exp(a) * 2)
    assert len(f.variants) == len(arrays)


def test_signatures_by_turns_do_not_compile_again(rng: np.random.Generator) -> None:
    @nbcomp.jit
    def f(x: Any, k: Any) -> Any:
        return x * k

    for _ in range(5):
        for k in (2, 2.5, True, np.float32(3), np.int8(4), rng.random(3)):
            same(f(np.ones(3, np.float32), k), np.ones(3, np.float32) * k)
    assert len(f.variants) == 6


def test_python_numbers_are_run_time_values() -> None:
    @nbcomp.jit
    def f(x: Any, k: Any) -> Any:
        return x * k + k

    for k in range(-5, 50):
        same(f(np.arange(4.0), k), np.arange(4.0) * k + k)
        same(f(np.arange(4.0), k / 7), np.arange(4.0) * (k / 7) + k / 7)
    assert len(f.variants) == 2


def test_the_number_of_variants_is_limited_and_said() -> None:
    @nbcomp.jit
    def f(x: Any, kind: str) -> Any:
        return x + len(kind)

    x = np.ones(3)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for n in range(1, VARIANTS + 10):
            same(f(x, "k" * n), x + n)
    assert [w.category for w in said] == [nbcomp.RecompileLimit]
    assert "kind was" in str(said[0].message)
    assert said[0].filename == __file__
    assert len(f.variants) == VARIANTS
    same(f(x, "k"), x + 1)  # one that is known


def test_variants_of_what_was_replaced_make_room() -> None:
    def helper(x: Any) -> Any:
        return x

    f = nbcomp.jit(lambda x: helper(x))
    x = np.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(VARIANTS + 10):

            def helper(x: Any, n: int = n) -> Any:
                return x + n

            same(f(x), x + n)


def test_keywords_and_defaults(rng: np.random.Generator) -> None:
    def plain(x: Any, y: Any = 2.0, *rest: Any, scale: Any = 1, **more: Any) -> Any:
        return (x + y) * scale + sum(rest) + sum(more.values())

    f = nbcomp.jit(plain)
    a, b = rng.random(4), rng.random(4)
    with compiled_only():
        for args, kwargs in (
            ((a,), {}),
            ((a, b), {}),
            ((a,), {"y": b}),
            ((), {"y": b, "x": a}),
            ((a, b, a, b), {"scale": 3}),
            ((a,), {"scale": b, "extra": a, "z": 2}),
            ((a, 1), {"scale": 2.5}),
        ):
            for _ in range(2):
                same(f(*args, **kwargs), plain(*args, **kwargs))


@pytest.mark.parametrize(
    ("args", "kwargs", "why"),
    [
        ((), {}, "missing"),
        ((1, 2, 3), {}, "positional"),
        ((1,), {"z": 2}, "unexpected keyword"),
        ((1,), {"x": 2}, "multiple values"),
    ],
)
def test_wrong_arguments_are_pythons_own_error(
    args: tuple[Any, ...], kwargs: dict[str, Any], why: str
) -> None:
    @nbcomp.jit
    def f(x: Any, y: Any = 1) -> Any:
        return x + y

    same(f(np.ones(2)), np.ones(2) + 1)
    for _ in range(2):
        with pytest.raises(TypeError, match=why):
            f(*args, **kwargs)


def test_containers_in_and_out(rng: np.random.Generator) -> None:
    def plain(p: Any, pair: Any) -> Any:
        a, (b, c) = p["a"], pair
        return {"sum": a + b, "rest": [b * c, (a, 3, None)], "c": c}

    f = nbcomp.jit(plain)
    a, b, c = rng.random(3), rng.random(3), rng.random(3)
    with compiled_only():
        for _ in range(3):
            same(f({"a": a}, (b, c)), plain({"a": a}, (b, c)))
    assert f({"a": a}, (b, c))["rest"][1][0] is a


def test_what_is_wrapped_shows() -> None:
    def documented(x: Any) -> Any:
        """Adds one."""
        return x + 1

    f = nbcomp.jit(documented)
    assert f.__name__ == "documented"
    assert f.__doc__ == "Adds one."
    assert f.__wrapped__ is documented
    assert inspect.unwrap(f) is documented
    assert inspect.signature(f) == inspect.signature(documented)
    assert nbcomp.jit(f) is f
    assert isinstance(f, Jit)
    assert "0 signatures" in repr(f)
    f(np.ones(2))
    assert "1 signature compiled" in repr(f)


def test_lambdas_and_partials() -> None:
    f = nbcomp.jit(lambda x: x * 3)
    same(f(np.ones(2)), np.ones(2) * 3)
    g = functools.partial(nbcomp.jit(lambda x, y: x - y), np.full(2, 5.0))
    same(g(np.ones(2)), np.full(2, 4.0))


def test_methods() -> None:
    class Model:
        def __init__(self, w: float) -> None:
            self.w = np.full(3, w)

        @nbcomp.jit
        def __call__(self, x: Any) -> Any:
            return x * self.w

        @nbcomp.jit
        def forward(self, x: Any) -> Any:
            return self(x) + 1

        @staticmethod
        @nbcomp.jit
        def double(x: Any) -> Any:
            return x * 2

        @classmethod
        @nbcomp.jit
        def halve(cls, x: Any) -> Any:
            return x / 2

    first, second = Model(2.0), Model(3.0)
    x = np.arange(3.0)
    with compiled_only():
        for _ in range(2):
            same(first(x), x * 2)
            same(second(x), x * 3)
            same(first.forward(x), x * 2 + 1)
            same(Model.forward(second, x), x * 3 + 1)
            same(first.double(x), x * 2)
            same(Model.halve(x), x / 2)
        first.w = np.full(3, 7.0)
        same(first(x), x * 7)
        first.w[0] = -1
        same(first(x), x * first.w)


def test_jitted_functions_call_each_other() -> None:
    @nbcomp.jit
    def inner(x: Any) -> Any:
        return np.exp(x)

    @nbcomp.jit
    def outer(x: Any) -> Any:
        return inner(x) + inner(x * 2)

    x = np.arange(4.0)
    with compiled_only():
        same(outer(x), np.exp(x) + np.exp(x * 2))
        same(inner(x), np.exp(x))
    assert len(outer.variants) == 1
    assert len(outer.compiled.kernels) == 1


def test_recursion_over_shapes() -> None:
    @nbcomp.jit
    def total(x: Any) -> Any:
        if x.shape[0] == 1:
            return x[0]
        half = x.shape[0] // 2
        return total(x[:half]) + total(x[half:])

    with compiled_only():
        for n in (1, 2, 7, 20):
            same(total(np.arange(1.0, n + 1)), np.float64(n * (n + 1) / 2))


def test_results_are_new_each_time() -> None:
    f = nbcomp.jit(lambda x: x + 1)
    x = np.zeros(5)
    first, second = f(x), f(x)
    assert first is not second
    assert not np.shares_memory(first, second)
    first[:] = 9
    same(f(x), np.ones(5))


# -------------------------------------------------------------------------------- what NumPy runs


def test_what_cannot_be_compiled_runs_in_numpy_and_says_so_once() -> None:
    def plain(x: Any) -> Any:
        return np.fft.fft(x).real

    f = nbcomp.jit(plain)
    x = np.arange(4.0)
    with pytest.warns(nbcomp.NumpyFallback, match=r"plain runs in NumPy: .*") as found:
        same(f(x), plain(x))
    assert len(found) == 1
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            same(f(x), plain(x))
    assert len(f.fallbacks) == 1
    assert f.variants == []
    with pytest.warns(nbcomp.NumpyFallback):
        same(f(np.arange(5.0)), plain(np.arange(5.0)))  # another signature


def test_one_signature_may_fall_back_and_others_not() -> None:
    f = nbcomp.jit(lambda x: x * 2)
    with pytest.warns(nbcomp.NumpyFallback, match="complex"):
        same(f(np.ones(2, complex)), np.ones(2, complex) * 2)
    with compiled_only():
        same(f(np.ones(2)), np.ones(2) * 2)
        same(f(np.ones(2, complex)), np.ones(2, complex) * 2)
    assert len(f.variants) == 1


def test_a_fallback_that_fails_fails_as_numpy_does() -> None:
    def plain(x: Any) -> Any:
        return np.fft.fft(x).real + np.ones(3)

    f = nbcomp.jit(plain)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            with pytest.raises(ValueError, match="could not be broadcast"):
                f(np.ones(4))


def test_values_decide_control_flow_in_python() -> None:
    @nbcomp.jit
    def f(x: Any) -> Any:
        if x.sum() > 0:
            return x * 2
        return -x

    with compiled_only():
        for _ in range(2):
            same(f(np.ones(3)), np.full(3, 2.0))
            same(f(-np.ones(3)), np.ones(3))
    assert "where" in f.breaks[0].hint
    with pytest.raises(CaptureError, match="where"):
        nbcomp.compile(f, np.ones(3))


def test_shapes_may_decide_control_flow() -> None:
    @nbcomp.jit
    def f(x: Any, flag: bool = False) -> Any:
        if x.ndim == 2 and len(x) > 2:
            return x.sum(axis=1)
        for axis in range(x.ndim):
            x = x - x.mean(axis=axis, keepdims=True)
        return x

    with compiled_only():
        for shape in ((3,), (2, 3), (3, 2), (2, 2, 2)):
            a = np.random.default_rng(0).random(shape)
            same(f(a), f.__wrapped__(a))


# ------------------------------------------------------------------------------- globals, closures

OFFSET = 10.0
TABLE = np.arange(3.0)


def test_globals_are_read_at_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    @nbcomp.jit
    def f(x: Any) -> Any:
        return x + OFFSET + TABLE

    x = np.zeros(3)
    with compiled_only():
        same(f(x), 10 + np.arange(3.0))
        monkeypatch.setitem(globals(), "OFFSET", 20.0)
        same(f(x), 20 + np.arange(3.0))
        monkeypatch.setitem(globals(), "OFFSET", np.full(3, 1.5))
        same(f(x), 1.5 + np.arange(3.0))
        monkeypatch.setitem(globals(), "TABLE", np.arange(3.0) * 2)
        same(f(x), 1.5 + np.arange(3.0) * 2)
        TABLE[0] = 100
        same(f(x), 1.5 + np.array([100.0, 2, 4]))


def test_closures_are_read_at_every_call() -> None:
    scale, table = 2.0, np.ones(3)

    @nbcomp.jit
    def f(x: Any) -> Any:
        return x * scale + table

    x = np.arange(3.0)
    with compiled_only():
        same(f(x), x * 2 + 1)
        scale = 3.0
        same(f(x), x * 3 + 1)
        table[1] = 7
        same(f(x), x * 3 + np.array([1.0, 7, 1]))
        table = np.zeros(3)
        same(f(x), x * 3)


def test_a_function_that_is_replaced_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    @nbcomp.jit
    def f(x: Any) -> Any:
        return helper(x) + 1

    x = np.arange(3.0)
    same(f(x), x * 2 + 1)
    monkeypatch.setitem(globals(), "helper", lambda x: x * 5)
    same(f(x), x * 5 + 1)


def helper(x: Any) -> Any:
    return x * 2


# ----------------------------------------------------------------------------- writes to arguments


def written(function: Callable[..., Any], *args: Any) -> Jit:
    """Run both, twice; results and arguments agree."""
    f: Jit = nbcomp.jit(function)
    with compiled_only():
        for _ in range(2):
            copies = [_copied(a) for a in args]
            wanted, got = [_copied(a) for a in args], [_copied(a) for a in args]
            result, expected = f(*got), function(*wanted)
            same(result, expected)
            for a, b in zip(got, wanted, strict=True):
                if isinstance(a, np.ndarray):
                    np.testing.assert_allclose(a, b, rtol=1e-12)
            assert len(copies) == len(args)
    return f


def _copied(a: Any) -> Any:
    """An array with the same strides and other memory."""
    if not isinstance(a, np.ndarray):
        return a
    if a.base is None:
        return a.copy(order="K")
    base = a
    while isinstance(base.base, np.ndarray):
        base = base.base
    memory = base.copy(order="K")
    offset = a.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return np.ndarray(a.shape, a.dtype, memory, offset, a.strides)


def add_in_place(x: Any) -> None:
    x += 1


def write_a_slice(x: Any) -> Any:
    x[1:-1] = 0.5 * (x[2:] + x[:-2])
    return x.sum()


def swap(x: Any) -> None:
    x[:] = x[::-1].copy()


def shift_within(x: Any) -> None:
    x[1:] = x[:-1]


def fill(x: Any) -> Any:
    x.fill(7)
    return x


def write_two(x: Any, y: Any) -> Any:
    x *= 2
    y[...] = x + y
    return x - y


def out_argument(x: Any, out: Any) -> Any:
    return np.exp(x, out=out)


@pytest.mark.parametrize(
    "view",
    [
        lambda n: np.arange(1.0, n + 1),
        lambda n: np.arange(1.0, 2 * n + 1)[::2],
        lambda n: np.arange(1.0, n + 1)[::-1],
        lambda n: np.arange(1.0, n * n + 1).reshape(n, n)[:, 2],
        lambda n: np.arange(1.0, n * n + 1).reshape(n, n).diagonal().copy()[1:],
    ],
    ids=["whole", "every other", "backwards", "column", "offset"],
)
@pytest.mark.parametrize("function", [add_in_place, write_a_slice, swap, shift_within, fill])
def test_arguments_are_written(function: Callable[..., Any], view: Callable[[int], Array]) -> None:
    f = written(function, view(9))
    assert len(f.variants) == 1


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("function", [add_in_place, write_a_slice, fill])
def test_matrices_are_written(function: Callable[..., Any], order: Any) -> None:
    written(function, np.arange(20.0).reshape(4, 5).copy(order=order))
    written(function, np.arange(80.0).reshape(8, 10).copy(order=order)[::2, ::-2])


def test_several_arguments_are_written() -> None:
    written(write_two, np.arange(6.0), np.ones(6))
    written(out_argument, np.arange(6.0), np.empty(6))
    written(write_two, np.arange(12.0)[::2], np.ones(12)[::-2])


def test_what_surrounds_a_view_is_not_touched() -> None:
    base = np.arange(24.0).reshape(4, 6)
    before = base.copy()
    nbcomp.jit(add_in_place)(base[1:3, 1:5:2])
    before[1:3, 1:5:2] += 1
    assert np.array_equal(base, before)


def test_overlapping_arguments_are_numpys_business() -> None:
    f = nbcomp.jit(write_two)
    x = np.arange(10.0)
    f(x[:5], x[5:].copy())
    for make in (lambda x: (x[:5], x[2:7]), lambda x: (x, x), lambda x: (x[::2], x[1::2])):
        got, wanted = np.arange(10.0), np.arange(10.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", nbcomp.NumpyFallback)
            result = f(*make(got))
        expected = write_two(*make(wanted))
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(result, expected)


def test_a_read_only_argument_is_refused_before_anything_happens() -> None:
    f = nbcomp.jit(write_two)
    x, y = np.arange(4.0), np.ones(4)
    f(x.copy(), y.copy())
    y.flags.writeable = False
    for g in (f, nbcomp.jit(write_two)):
        with pytest.raises(ValueError, match="read-only"):
            g(x.copy(), y)
    assert np.array_equal(y, np.ones(4))


def test_an_error_on_the_way_leaves_arguments_alone() -> None:
    def f(x: Any, a: Any) -> Any:
        x += 1
        return np.linalg.inv(a) @ x

    jitted = nbcomp.jit(f)
    jitted(np.zeros(2), np.eye(2))
    x = np.zeros(2)
    for g in (jitted, nbcomp.jit(f)):
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            g(x, np.zeros((2, 2)))
    # NumPy itself has written by then, and running it again is how the error comes about.
    assert x.tolist() in ([0, 0], [2, 2])


def test_an_error_while_capturing_is_numpys_with_its_effects() -> None:
    def f(x: Any, y: Any) -> Any:
        x += 1
        return x + y

    x = np.zeros(3)
    with pytest.raises(ValueError, match="could not be broadcast"):
        nbcomp.jit(f)(x, np.ones(4))
    assert x.tolist() == [1, 1, 1]


# ----------------------------------------------------------------------------- what results share


def test_results_share_memory_as_in_numpy() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        return x, x[1:], y, y[::2], y.reshape(2, 2), x.T

    x = np.arange(4.0)
    wanted = f(x)
    with compiled_only():
        got = nbcomp.jit(f)(x)
    same(got, wanted)
    assert got[0] is x
    for i in range(6):
        for k in range(6):
            assert np.shares_memory(got[i], got[k]) == np.shares_memory(wanted[i], wanted[k])
    got[1][0] = 99
    assert x[1] == 99


def test_arguments_that_are_returned_are_the_callers_own() -> None:
    f = nbcomp.jit(lambda x, label: (label, x, x + 1))
    x, label = np.ones(2), ["any", "object"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nbcomp.NumpyFallback)
        got = f(x, label)
    assert got[0] is label
    assert got[1] is x


@pytest.mark.parametrize(
    "function", [np.sum, np.max, np.std, lambda x: x[0], lambda x: x.mean() > 1]
)
def test_scalars_are_numpy_scalars(function: Callable[[Any], Any]) -> None:
    x = np.arange(3.0)
    got = nbcomp.jit(lambda x: function(x))(x)
    assert type(got) is type(function(x))
    assert got == function(x)


def test_zero_dimensions_stay() -> None:
    x = np.array(2.5)
    same(nbcomp.jit(lambda x: x * 2)(x), x * 2)
    same(nbcomp.jit(lambda x: np.array(x * 2))(x), np.array(x * 2))
    same(nbcomp.jit(lambda x: x)(x), x)


def test_nothing_returned_is_none() -> None:
    def f(x: Any) -> None:
        x * 2

    assert nbcomp.jit(f)(np.ones(2)) is None
    assert nbcomp.jit(lambda x: ())(np.ones(2)) == ()


# ------------------------------------------------------------------------------------ odd arguments


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4)[::-1, ::-1],
        np.arange(12.0).reshape(3, 4)[::2, ::3],
        np.broadcast_to(np.arange(4.0), (3, 4)),
        np.lib.stride_tricks.sliding_window_view(np.arange(6.0), 4),
        np.zeros((3, 0)),
        np.zeros((0,)),
        np.ones((1, 1, 1, 1, 1)),
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1),
        np.arange(5, dtype=">f8"),
        np.arange(13, dtype=np.uint8)[1:].view(np.uint8),
        np.frombuffer(b"x" + np.arange(3.0).tobytes(), np.float64, offset=1),
        np.ma.masked_array(np.arange(3.0)).data,
        np.array([True, False]),
        np.float16([1.5, 65504.0, np.inf]),
    ],
    ids=lambda a: f"{a.dtype}{list(a.shape)}{list(a.strides)}",
)
def test_any_array(array: Array) -> None:
    def f(x: Any) -> Any:
        return x + x, (x * 1).sum(axis=-1), np.sqrt(x)

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        got, wanted = nbcomp.jit(f)(array), f(array)
    for a, b in zip(got, wanted, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=2e-3 if b.dtype == np.float16 else 1e-12)


def test_subclasses_keep_numpys_own_behaviour() -> None:
    def f(x: Any) -> Any:
        return x * 2

    masked = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nbcomp.NumpyFallback)
        got = nbcomp.jit(f)(masked)
    assert isinstance(got, np.ma.MaskedArray)
    assert got.mask.tolist() == [False, True]


@pytest.mark.parametrize(
    "value", [[1.0, 2.0], (1.0, 2.0), 3, 2.5, True, np.float32(3), "text", None]
)
def test_arguments_that_are_no_arrays(value: Any) -> None:
    def f(x: Any, v: Any) -> Any:
        return x + 1 if v is None or isinstance(v, str) else x + v

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nbcomp.NumpyFallback)
        for _ in range(2):
            same(nbcomp.jit(f)(np.ones(2), value), f(np.ones(2), value))


# --------------------------------------------------------------------------------------- threads


def in_threads(count: int, run: Callable[[int], None]) -> None:
    """Run in so many threads that start together; errors are raised here."""
    barrier, errors = threading.Barrier(count), []

    def target(k: int) -> None:
        barrier.wait()
        try:
            run(k)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=target, args=(k,)) for k in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for error in errors:
        raise error


def test_first_calls_from_several_threads_compile_once() -> None:
    @nbcomp.jit
    def f(x: Any) -> Any:
        return np.exp(x) * 3 + np.sin(x)

    def run(k: int) -> None:
        for n in range(5):
            x = np.linspace(0, 1, 3 + (k // 2) * 10 + n)
            same(f(x), np.exp(x) * 3 + np.sin(x))

    in_threads(8, run)
    assert len(f.variants) == 2  # the first length, and all others


def test_equal_functions_may_be_compiled_at_once() -> None:
    functions = [nbcomp.jit(lambda x: np.tanh(x) * 17 - x) for _ in range(8)]
    x = np.linspace(-1, 1, 33)
    in_threads(8, lambda k: same(functions[k](x), np.tanh(x) * 17 - x))


def test_functions_that_call_each_other_from_several_threads() -> None:
    @nbcomp.jit
    def a(x: Any) -> Any:
        return np.exp(x) + 1

    @nbcomp.jit
    def b(x: Any) -> Any:
        return a(x) * a(x + 1)

    def run(k: int) -> None:
        x = np.linspace(0, 1, 5 + k % 3)
        same(b(x) if k % 2 else a(x), (b if k % 2 else a).__wrapped__(x))

    in_threads(8, run)


def test_large_arrays_in_several_threads(rng: np.random.Generator) -> None:
    f = nbcomp.jit(lambda x: np.exp(x).sum(axis=1))
    x = rng.random((500, 400))
    wanted = f(x)

    def run(k: int) -> None:
        for _ in range(5):
            assert np.array_equal(f(x), wanted)  # bit for bit

    in_threads(4, run)


# ----------------------------------------------------------------------------------- life and death


def test_a_jitted_function_can_be_collected() -> None:
    def make() -> tuple[weakref.ref[Any], weakref.ref[Any]]:
        table = np.arange(4.0)
        f = nbcomp.jit(lambda x: x + table)
        f(np.ones(4))
        return weakref.ref(f), weakref.ref(table)

    dead = make()
    gc.collect()
    assert [r() for r in dead] == [None, None]


def test_arguments_are_not_kept() -> None:
    f = nbcomp.jit(lambda x: x * 2)
    x = np.ones(4)
    watched = weakref.ref(x)
    f(x)
    del x
    gc.collect()
    assert watched() is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = np.ones(4, complex)
        refused = weakref.ref(y)
        f(y)
    del y
    gc.collect()
    assert refused() is None


@pytest.mark.parametrize("name", ["new", "out", "i", "t1", "new_x", "a", "self", "n"])
def test_arrays_of_any_name_are_written(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def f({name}):\n    {name}[0] += 2.0\n    {name}[1:] = {name}[0]\n", scope)
    x = np.zeros(3)
    nbcomp.jit(scope["f"])(x)
    assert x.tolist() == [2.0, 2.0, 2.0]


def test_a_recompilation_is_told_by_the_nearest_variant() -> None:
    double = nbcomp.jit(lambda x: x * 2)
    for x in (np.ones(3, np.float32), np.ones((2, 2)), np.ones(3)):
        double(x)
    assert [r.reason for r in double.recompilations] == [
        "x had dtype float32 and now has float64",
        "x had dtype float32 and now has float64",
    ]
    double(np.ones((2, 3)).T)
    assert double.recompilations[-1].reason == "x had shape (2, 2) and now has (3, 2)"
