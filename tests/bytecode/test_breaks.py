"""Graph breaks: Python runs what cannot be compiled, with its own effects, order and errors."""

from __future__ import annotations

import functools
import gc
import io
import logging
import math
import operator
import pickle
import sys
import traceback
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.jitted import Jit

X = np.arange(1.0, 7.0)
SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    SEEN.clear()


def note(*values: Any) -> None:
    """An effect: each value as it is now."""
    SEEN.append([v.copy() if isinstance(v, np.ndarray) else v for v in values])


def both(function: Callable[..., Any], *args: Any, calls: int = 3) -> Jit:
    """Python and nbcomp do the same in each of several calls: results, effects, errors, writes."""
    f: Jit = nbcomp.jit(function)
    for _ in range(calls):
        outcomes = []
        for run in (function, f):
            SEEN.clear()
            given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    result = run(*given)
                except Exception as error:
                    result = (type(error), str(error))
            outcomes.append((result, list(SEEN), given))
        same(outcomes[1], outcomes[0])
    return f


def same(got: Any, wanted: Any) -> None:
    """Equal types, dtypes, shapes and values."""
    assert type(got) is type(wanted), (got, wanted)
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
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)
    elif isinstance(wanted, float):
        assert np.isclose(got, wanted, rtol=1e-12)
    else:
        assert got == wanted


def compiled_parts(f: Jit) -> int:
    """How many parts became graphs."""
    assert f.parts is not None
    return len(f.parts.compiled)


# ------------------------------------------------------------------------- each kind of break


def prints(x: Any) -> Any:
    y = x * 2
    note("y", y)
    z = y + 1
    note(z.sum())
    return z - y


def reads_a_value(x: Any) -> Any:
    scale = (x * x).sum().tolist()
    return x * scale


def item(x: Any) -> Any:
    largest = (x + 1).max().item()
    note(type(largest), largest)
    return x / largest


def branches(x: Any) -> Any:
    if (x * 2).sum() > 10:
        y = x + 1
        note("more")
    else:
        y = x - 1
    return y * y


def loops_until(x: Any) -> Any:
    steps = 0
    while np.abs(x).max() > 0.5:
        x = x * 0.5
        steps += 1
    return x + steps


def unknown_function(x: Any) -> Any:
    y = np.sqrt(x)
    z = np.fft.fft(y).real
    return z * 2 + y


def collects(x: Any) -> Any:
    history = []
    for k in range(4):
        x = x * 0.5 + k
        history.append(float(x.sum()))
        note(k)
    return x, history


def changes_a_list(x: Any, seen: Any = SEEN) -> Any:
    y = x + 1
    seen.append(y.sum())
    return y * 2


def writes_text(x: Any) -> Any:
    y = x * 3
    text = f"{y[0]:.2f} and {y.shape}"
    note(text)
    return y, text


def short_circuit(x: Any) -> Any:
    return (x + 1).sum() > 100 or ((x * 2).sum() > 3 and (x - 1).min() < 5)


def conditional(x: Any) -> Any:
    return x * 2 if x.sum() > 0 else -x


def asserts(x: Any) -> Any:
    y = x - 1
    if not (y >= 0).all():
        raise AssertionError("negative")
    return np.sqrt(y)


def minimum(x: Any) -> Any:
    return min((x * 2).sum(), (x + 3).sum()) + x


def several(x: Any) -> Any:
    for row in range(2):
        for k in range(2):
            x = x + row * k
            note(row, k, x)
    return x


def unpacks(x: Any) -> Any:
    a, (b, *c) = x[0] * 2, list(x[1:4] + 1)
    note(a)
    return a + b + sum(c)


def deletes(x: Any) -> Any:
    y = x + 1
    z = y * 2
    del y
    note(z)
    return z, "y" in [n for n in ("y",) if n == "z"]


def unbound(x: Any, n: int = 0) -> Any:
    for _ in range(n):
        y = x * 2
    note(x + 1)
    return y


def rebinds(x: Any) -> Any:
    alias = x
    x = x + 1
    note(alias)
    x += alias
    return x, alias


def nested_calls(x: Any) -> Any:
    def inner(a: Any) -> Any:
        note(a)
        return a * 2

    return inner(x + 1) + inner(x)


def outer_helper(x: Any) -> Any:
    return noisy(x * 2) + 1


def noisy(x: Any) -> Any:
    y = x + 5
    note(y)
    return y * y


def closure_variable(x: Any) -> Any:
    w = x * 0

    def loss() -> Any:
        return ((x - w) ** 2).sum()

    for k in range(3):
        w = w + 0.1 * (x - w)
        note(k, loss())
    return w


def comprehension(x: Any) -> Any:
    values = [(x * k).sum() for k in range(3)]
    note(len(values))
    return [v + 1 for v in values if v > 3]


def dictionary(x: Any) -> Any:
    state = {"x": x * 2, "k": 0}
    for k in range(3):
        state["x"] = state["x"] + k
        state["k"] = k
        note(state["k"])
    return state


def in_place(x: Any) -> Any:
    x += 1
    note(x)
    x[2:4] = x[:2] * 2
    note(x)
    return x[::2]


def views(x: Any) -> Any:
    y = x * 1
    tail = y[2:]
    note(tail)
    tail[0] = 99.0
    return y, tail


def keywords(x: Any) -> Any:
    return np.clip(x * 2, a_min=note(x) or 1.0, a_max=3.0) + x.sum(axis=-1, keepdims=True)


KINDS = [
    *(prints, reads_a_value, item, branches, loops_until, unknown_function, collects, writes_text),
    *(short_circuit, conditional, asserts, minimum, several, unpacks, deletes, unbound, rebinds),
    *(nested_calls, outer_helper, closure_variable, comprehension, dictionary, in_place, views),
    *(keywords, changes_a_list),
]


@pytest.mark.parametrize("function", KINDS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("x", [X, -X[::2]], ids=["x", "strided"])
def test_breaks(function: Callable[..., Any], x: Any) -> None:
    f = both(function, x)
    assert f.breaks


def test_most_is_compiled() -> None:
    for function in KINDS:
        f = both(function, X)
        if function not in (asserts, minimum, unbound, nested_calls):
            assert compiled_parts(f), function.__name__


def test_a_loop_with_a_break_compiles_its_body_once() -> None:
    def descend(a: Any, y: Any) -> Any:
        w = np.zeros(a.shape[1])
        for step in range(300):
            r = a @ w - y
            w = w - 0.01 * (a.T @ r) / len(y)
            if step % 100 == 0:
                note(step, float((r * r).mean()))
        return w

    rng = np.random.default_rng(0)
    a = rng.random((20, 3))
    f = both(descend, a, a @ np.arange(3.0))
    assert compiled_parts(f) <= 6
    text = str(f.explain())
    assert "the loop is run by Python" in text


# ------------------------------------------------------------------------------------- effects


def test_what_is_printed_and_logged_appears_once(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    log = logging.getLogger("nbcomp.test")
    file = io.StringIO()

    @nbcomp.jit
    def f(x: Any) -> Any:
        y = x * 2
        sys.stdout.write("written\n")
        print("printed", y[0], file=file)
        log.warning("logged %s", y.sum())
        return y + 1

    for n in range(1, 4):
        same(f(X), X * 2 + 1)
        assert capsys.readouterr().out == "written\n"
        assert file.getvalue() == "printed 2.0\n" * n
        assert [r.getMessage() for r in caplog.records] == [f"logged {(X * 2).sum()}"] * n


def test_files(tmp_path: Any) -> None:
    path = tmp_path / "x.npy"

    def f(x: Any) -> Any:
        np.save(path, x * 2)
        with open(path, "rb") as file:
            again = np.load(file)
            y = again + x
        return y, file.closed

    both(f, X)


# -------------------------------------------------------------------------------------- errors


def fails_in_the_middle(x: Any) -> Any:
    y = x * 2
    note(y)
    z = y + np.ones(17)  # the line that fails
    return z


def test_the_traceback_is_pythons() -> None:
    f = nbcomp.jit(fails_in_the_middle)
    with pytest.raises(ValueError, match="could not be broadcast") as wanted:
        fails_in_the_middle(X)
    for _ in range(3):
        with pytest.raises(ValueError, match="could not be broadcast") as error:
            f(X)
        assert users(error.value) == users(wanted.value)


def users(error: BaseException) -> list[tuple[str, Any]]:
    """The functions and lines of the user's frames."""
    frames = traceback.extract_tb(error.__traceback__)
    return [(f.name, f.line) for f in frames if f.filename == __file__ and "fail" in f.name]


def catches(x: Any) -> Any:
    y = x * 2
    try:
        note("before")
        y = y + np.ones(17)
        note("never")
    except ValueError as error:
        note(type(error).__name__)
        y = y - 1
    else:
        note("neither")
    finally:
        note("finally")
    return y * 3


def reraises(x: Any) -> Any:
    try:
        y = x + 1
        raise KeyError("mine")
    except KeyError:
        note(y)
        raise


class Context:
    def __enter__(self) -> str:
        note("enter")
        return "value"

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        note("exit", kind)
        return kind is ValueError


def with_statement(x: Any) -> Any:
    with Context() as value:
        y = x * 2
        note(value, y)
        y = y + 1
    with Context():
        y = y * 2
        y = y + np.ones(17)
    return y


def returns_inside(x: Any) -> Any:
    for k in range(5):
        try:
            x = x + k
            if x.sum() > 30:
                return x, k
        finally:
            note("round", k)
    return x


def error_in_a_helper(x: Any) -> Any:
    try:
        return failing(x + 1)
    except ZeroDivisionError:
        return x - 1


def failing(x: Any) -> Any:
    note(x)
    return x * (1 // 0)


@pytest.mark.parametrize(
    "function",
    [catches, reraises, with_statement, returns_inside, error_in_a_helper],
    ids=lambda f: f.__name__,
)
def test_errors_and_contexts(function: Callable[..., Any]) -> None:
    both(function, X)


def test_an_error_of_linear_algebra_is_numpys() -> None:
    def f(a: Any) -> Any:
        b = a * 2
        note("before")
        c = np.linalg.inv(b)
        return c + 1

    g = both(f, np.eye(3))
    assert g.breaks
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        g(np.zeros((3, 3)))


# ------------------------------------------------------------------------------- what is left whole


def test_functions_that_look_at_their_variables_run_in_python() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        note(sorted(locals()))
        return y

    with pytest.warns(nbcomp.NumpyFallback, match="locals"):
        same(nbcomp.jit(f)(X), X * 2)


def test_generators_run_in_python() -> None:
    def f(x: Any) -> Any:
        yield x * 2
        yield x * 3

    with pytest.warns(nbcomp.NumpyFallback, match="generators"):
        same(list(nbcomp.jit(f)(X)), [X * 2, X * 3])


# ------------------------------------------------------------------------------ memory and identity


def writes_after_a_break(x: Any, y: Any) -> Any:
    note(x)
    x[1:] += y[:-1]
    tail = x[2:]
    note(tail)
    tail *= 2
    np.add(x, 1, out=y)
    return x, tail, y


def identity(x: Any, y: Any) -> Any:
    z = x * 2
    return x is y, z is x, x is not None, z + 1


def lists(x: Any, y: Any) -> Any:
    rows = [x, y]
    rows.append(x + y)
    note(len(rows))
    rows[0] = rows[2] * 2
    kept = {1, 2} | {len(rows)}
    note(sorted(kept))
    return rows, kept, rows[1] is y


@pytest.mark.parametrize(
    "function", [writes_after_a_break, identity, lists], ids=lambda f: f.__name__
)
def test_memory_and_identity(function: Callable[..., Any]) -> None:
    both(function, X, X * 2)
    x = np.arange(6.0)
    f = nbcomp.jit(function)
    for make in (lambda v: (v, v), lambda v: (v[:4], v[2:]), lambda v: (v[::2], v[1::2])):
        for _ in range(2):
            got, wanted = x.copy(), x.copy()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result, expected = f(*make(got)), function(*make(wanted))
            same(got, wanted)
            if function is not lists:
                same(result, expected)


def sums_of_each(x: Any) -> Any:
    return [float(v.sum()) for v in [x, x * 2]]


def pairs_and_numbers(x: Any) -> Any:
    rows = []
    for k, (v, w) in enumerate(zip([x, x * 2], (x + 1, x), strict=True)):
        if (v * w).sum() > k:
            rows.append(v - w)
    return rows


def halves_of_an_iterator(x: Any) -> Any:
    rest = iter([x, x * 2, x * 3])
    first = next(rest)
    total = float(first.sum())
    return total * next(rest), list(rest)


def mapped_and_filtered(x: Any) -> Any:
    total = 0
    for v in map(lambda a: a * 2, filter(lambda a: a.ndim, [x, x + 1])):
        if v.sum() > 0:
            total = total + v
    return total


def a_view_in_an_iterator(x: Any) -> Any:
    y = x * 3
    rest = iter([y, y, y[::-1]])
    if float(next(rest).sum()) > 0:
        next(rest)[0] = 9
    return next(rest), y


def a_view_in_a_function(x: Any) -> Any:
    y = x * 3
    z = y[::2]

    def ends() -> Any:
        return z[0], z[-1]

    if float(y.sum()) > 0:
        y[0] = 50
    return ends(), y


@pytest.mark.parametrize(
    "function",
    [
        *(sums_of_each, pairs_and_numbers, halves_of_an_iterator, mapped_and_filtered),
        *(a_view_in_an_iterator, a_view_in_a_function),
    ],
    ids=lambda f: f.__name__,
)
def test_arrays_in_iterators_and_functions_at_a_break(function: Callable[..., Any]) -> None:
    """Those that share memory still do when Python goes on."""
    assert not both(function, X).fallbacks


def test_a_read_only_array_is_refused_where_python_does() -> None:
    def f(x: Any) -> Any:
        note("before")
        x[0] = 1.0
        note("after")

    x = X.copy()
    g = both(f, x)
    x.flags.writeable = False
    SEEN.clear()
    with pytest.raises(ValueError, match="read-only"):
        g(x)
    assert SEEN == [["before"]]


def test_recursion_in_parts() -> None:
    def halve(x: Any) -> Any:
        if len(x) == 1:
            return x * 2
        note(len(x))
        return halve(x[: len(x) // 2] + 1)

    both(halve, X)


class Scaled:
    def __init__(self) -> None:
        self.factor = np.array([2.0])

    def __call__(self, x: Any, more: float = 1.0) -> Any:
        y = np.sin(x) * self.factor
        note(more)
        return np.cos(y) * self.factor + more

    def again(self, x: Any, depth: int = 2) -> Any:
        y = np.sin(x) * self.factor
        note(depth)
        return self.again(y * 2, depth - 1) if depth else np.cos(y) + y


def logged(x: Any, more: float = 1.0) -> Any:
    y = np.sin(x) * 2
    note(more)
    return np.cos(y) * 2 + more


SCALED = Scaled()


@pytest.mark.parametrize(
    "called",
    [
        logged,
        SCALED,
        SCALED.__call__,
        functools.partial(logged, more=3.0),
        functools.partial(SCALED),
    ],
    ids=["function", "object", "method", "partial", "partial-object"],
)
def test_what_is_called_is_compiled_in_parts(called: Any) -> None:
    def program(x: Any) -> Any:
        return called(x * 3 + 1) * 2 + 1

    f = both(program, X)
    (helper,) = f.parts.helpers
    assert len(helper.parts.compiled) == 2
    (account,) = f.explain().helpers
    assert len(account.graphs) == 2
    assert f"  {account.name}: 2 graphs, 1 break\n" in str(f.explain())


def test_a_method_that_calls_itself() -> None:
    both(SCALED.again, X)


def test_functions_that_are_handed_on_stay_what_they_are() -> None:
    def handed(function: Any, x: Any) -> Any:
        note(function)
        return function(x) * 2

    def program(x: Any) -> Any:
        return handed(logged, x + 1) + 1

    both(program, X)
    assert SEEN[0] == [logged]


class Base:
    def step(self, x: Any) -> Any:
        return x + 1


class Derived(Base):
    factor = 3.0

    @nbcomp.jit
    def step(self, x: Any) -> Any:
        y = super().step(x) * 2
        note(type(y).__name__, type(self) is Derived)
        return super().step(y) + self.factor


def test_methods_and_super_in_parts() -> None:
    jitted: Jit = Derived.__dict__["step"]
    for k in range(3):
        model = Derived()
        model.factor = float(k)
        SEEN.clear()
        same(model.step(X), (X + 1) * 2 + 1 + k)
        assert SEEN == [["ndarray", True]]
    assert [b.location.line for b in jitted.breaks] == [
        jitted.__wrapped__.__code__.co_firstlineno + 3
    ]


def test_endless_recursion_is_pythons_error() -> None:
    def deeper(x: Any) -> Any:
        return deeper(x + 1)

    with pytest.raises(RecursionError):
        nbcomp.jit(deeper)(X)


def test_a_function_in_parts_can_be_collected() -> None:
    def make() -> weakref.ref[Any]:
        table = np.arange(6.0)

        def f(x: Any) -> Any:
            y = x + table
            note(1)
            return y * 2

        g = nbcomp.jit(f)
        g(X)
        g(X)
        return weakref.ref(table)

    dead = make()
    gc.collect()
    assert dead() is None


def test_arguments_are_not_kept() -> None:
    g = nbcomp.jit(prints)
    x = X.copy()
    watched = weakref.ref(x)
    g(x)
    g(x)
    SEEN.clear()
    del x
    gc.collect()
    assert watched() is None


def test_an_unknown_version_is_traced_with_a_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nbcomp.captures.supported_version", lambda: False)
    f = nbcomp.jit(lambda x: x * 2)
    same(f(X), X * 2)
    assert "not known" in str(f.explain())


def test_ctrl_c_between_parts_runs_finally() -> None:
    def f(x: Any) -> Any:
        try:
            y = x * 2
            interrupt()
            return y + 1
        finally:
            note("finally")

    g = nbcomp.jit(f)
    for _ in range(2):
        SEEN.clear()
        with pytest.raises(KeyboardInterrupt):
            g(X)
        assert SEEN == [["finally"]]


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("compiled", [nbcomp.jit, nbcomp.script])
def test_a_view_of_another_dtype_needs_a_contiguous_last_axis(compiled: Any) -> None:
    x = np.ones((3, 4), np.float32)
    columns = compiled(lambda x: (x + 1).T.view(np.int16))
    rows = compiled(lambda x: (x + 1).view(np.int16))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nbcomp.NumpyFallback)
        for _ in range(2):
            with pytest.raises(ValueError, match="last axis must be contiguous"):
                columns(x)
            np.testing.assert_array_equal(rows(x), (x + 1).view(np.int16))


COUNT = 0


def test_breaks_and_forms_are_in_the_users_words() -> None:
    def program(x: Any) -> Any:
        global COUNT
        y = x * 2
        COUNT = 1
        return y + 1

    f = nbcomp.jit(program)
    f(np.arange(100000.0))
    assert [b.reason for b in f.breaks] == ["the global COUNT is changed, which Python does"]
    assert repr(f).endswith("program: compiled in 2 parts, 1 graph break>")


def test_a_guard_of_a_class_names_the_class() -> None:
    class Scale:
        by = 2.0

    def program(scale: Any, x: Any) -> Any:
        return x * scale.by

    f = nbcomp.jit(program)
    f(Scale(), X)
    assert "scale is a Scale" in str(f.explain())
    assert "__class__" not in str(f.explain())


def test_windows_of_an_input_are_no_array_from_elsewhere() -> None:
    f = nbcomp.jit(lambda x: np.lib.stride_tricks.sliding_window_view(x, 3).mean(1))
    same(f(X), np.lib.stride_tricks.sliding_window_view(X, 3).mean(1))
    assert "neither an input" not in str(f.compiled.explain())


@pytest.mark.parametrize("compile", [nbcomp.jit, nbcomp.script])
@pytest.mark.parametrize(
    ("routine", "args", "kwargs"),
    [
        (np.sin, (X,), {}),
        (np.sin, (X,), {"out": np.zeros(6)}),
        (np.add, (X, 2.0), {}),
        (np.where, (X > 2, X, 0.0), {}),
        (np.sum, (X.reshape(2, 3),), {"axis": 1, "keepdims": True}),
        (np.dot, (X, X), {}),
        (math.sqrt, (2.0,), {}),
        (sorted, ([3, 1, 2],), {"reverse": True}),
        (operator.add, (X, X), {}),
        (functools.partial(np.multiply, 2.0), (X,), {}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_routines_compile(compile: Any, routine: Any, args: Any, kwargs: Any) -> None:
    fast = compile(routine)
    for _ in range(3):
        np.testing.assert_array_equal(fast(*args, **kwargs), routine(*args, **kwargs), strict=True)
    assert not fast.fallbacks
    assert fast.variants or fast.explain().helpers
    with pytest.raises(TypeError):
        fast(*args, **kwargs, nothing=1)
    again = pickle.loads(pickle.dumps(compile(math.sqrt)))
    assert again(4.0) == 2.0


def test_effects_of_builtins_happen_in_every_call(capsys: pytest.CaptureFixture[str]) -> None:
    fast = nbcomp.jit(print)
    with pytest.warns(nbcomp.NumpyFallback, match="may have effects"):
        fast("a", sep="")
    fast("a", sep="")
    assert capsys.readouterr().out == "a\na\n"


def test_loops_beside_functions_of_numpys_own_library() -> None:
    def smoothed(x: Any) -> Any:
        y = np.zeros(len(x))
        for i in range(1, len(x)):
            y[i] = max(y[i - 1] * 0.5, x[i])
        return np.convolve(y, np.hanning(4))

    fast = nbcomp.jit(smoothed)
    np.testing.assert_allclose(fast(X), smoothed(X))
    assert fast.has_loops
    assert not fast.breaks
