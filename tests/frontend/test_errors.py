"""What a program gets that cannot be captured: its expression, a caret, and what to write."""

from __future__ import annotations

import json
import math
import random
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.errors import PACKAGE, CaptureError, NbcompError, Unsupported, users_frames
from nbcomp.frontend.trace import capture

X = np.linspace(-2, 3, 12).reshape(3, 4)
RNG = np.random.default_rng(0)
HISTORY: list[Any] = []
COUNTER = np.float64(0)


def if_statement(x: Any) -> Any:
    if x.sum() > 0:  # noqa: SIM108
        y = x
    else:
        y = -x
    return y


def if_assignment(x: Any) -> Any:
    y = x * 2
    if x.any() and x[0, 0] > 1:
        y += 1
    return y


def if_return(x: Any) -> Any:
    if x.mean() < 0:
        return x
    return -x


def if_plain(x: Any) -> Any:
    if x[0, 0]:
        x = x + 1
        x = x * 2
    return x


def elif_branch(x: Any) -> Any:
    if x.ndim == 3:
        return x
    elif not x.max() > 1:
        return x + 1
    else:
        return x + 2


def while_loop(x: Any) -> Any:
    while abs(x).max() > 1:
        x = x / 2
    return x


def conditional(x: Any) -> Any:
    return x if x[0, 0] > 0 else -x


def or_value(x: Any) -> Any:
    return x.sum() or 1.0


def and_value(x: Any) -> Any:
    return x.sum() and x


def or_condition(x: Any) -> Any:
    return (x > 0) or (x < -1)


def negation(x: Any) -> Any:
    return not x.sum()


def chain(x: Any) -> Any:
    return 0 < x < 1


def contained(x: Any) -> Any:
    return 3.0 in x


def smaller(x: Any) -> Any:
    return min(x[0, 0], x[0, 1], 2)


def larger(x: Any) -> Any:
    return max(x[0])


def whole(x: Any) -> Any:
    return int(x.sum())


def floating(x: Any) -> Any:
    return float(x.sum()) + 1


def item(x: Any) -> Any:
    return x.item(0)


def to_list(x: Any) -> Any:
    return x.tolist()


def count(x: Any) -> Any:
    return [i for i in range(x.argmax())]


def mathematics(x: Any) -> Any:
    return math.exp(x.sum())


def converted(x: Any) -> Any:
    return np.float32(x.sum())


def asserted(x: Any) -> Any:
    assert x.sum() > 0, "positive"
    return x


def formatted(x: Any) -> Any:
    return f"{x.sum():.3f}"


def filtered(x: Any) -> Any:
    return [v for v in x[0] if v > 0]


IDIOMS: list[tuple[Callable[..., Any], str, str]] = [
    (if_statement, "x.sum() > 0", "y = np.where(x.sum() > 0, x, -x)"),
    (if_assignment, "x.any()", "y = np.where(np.logical_and(x.any(), x[0, 0] > 1), y + 1, y)"),
    (if_return, "x.mean() < 0", "return np.where(x.mean() < 0, x, ...)"),
    (if_plain, "x[0, 0]", "np.where(x[0, 0], if true, if false)"),
    (elif_branch, "not x.max() > 1", "np.where(np.logical_not(x.max() > 1), x + 1, x + 2)"),
    (while_loop, "abs(x).max() > 1", "for _ in range(n)"),
    (conditional, "x[0, 0] > 0", "np.where(x[0, 0] > 0, x, -x)"),
    (or_value, "x.sum()", "np.where(x.sum(), x.sum(), 1.0)"),
    (and_value, "x.sum()", "np.where(x.sum(), x, x.sum())"),
    (or_condition, "x > 0", "np.logical_or(x > 0, x < -1)"),
    (negation, "x.sum()", "np.logical_not(x.sum())"),
    (chain, "0 < x < 1", "(0 < x) & (x < 1)"),
    (contained, "3.0 in x", "(x == 3.0).any()"),
    (smaller, "min(x[0, 0], x[0, 1], 2)", "np.minimum(np.minimum(x[0, 0], x[0, 1]), 2)"),
    (larger, "max(x[0])", "np.max(x[0])"),
    (whole, "int(x.sum())", "x.sum().astype(np.int64)"),
    (floating, "float(x.sum())", "x.sum().astype(np.float64)"),
    (item, "x.item(0)", "the 0-d array itself"),
    (to_list, "x.tolist()", "the array itself"),
    (count, "range(x.argmax())", "a fixed number"),
    (mathematics, "math.exp(x.sum())", "np.exp(x.sum())"),
    (converted, "np.float32(x.sum())", "x.sum().astype(np.float32)"),
    (asserted, "x.sum() > 0", "before or after"),
    (formatted, "x.sum()", "outside"),
    (filtered, "v > 0", "np.where"),
]


@pytest.mark.parametrize(
    ("function", "expression", "hint"), IDIOMS, ids=lambda v: getattr(v, "__name__", "")
)
def test_idioms(function: Callable[..., Any], expression: str, hint: str) -> None:
    with pytest.raises(CaptureError) as raised:
        capture(function, (X,), {})
    error = raised.value
    assert expression in error.message
    assert hint in error.hint
    assert error.location is not None
    assert error.location.file == __file__
    first = function.__code__.co_firstlineno
    assert first < error.location.line <= first + 5
    assert "^" in str(error)


def test_the_caret_is_under_the_expression() -> None:
    with pytest.raises(CaptureError) as raised:
        capture(if_statement, (X,), {})
    lines = str(raised.value).splitlines()
    at = lines.index("    if x.sum() > 0:  # noqa: SIM108")
    assert lines[at + 1] == "       ^^^^^^^^^^^"


def test_cell_without_source() -> None:
    namespace: dict[str, Any] = {}
    exec("def f(x):\n    if x.sum() > 0:\n        return x\n", namespace)
    with pytest.raises(CaptureError, match="values only at run time"):
        capture(namespace["f"], (X,), {})


def random_numbers(x: Any) -> Any:
    return x + np.random.rand(4)


def generator(x: Any) -> Any:
    return x + RNG.normal()


def python_random(x: Any) -> Any:
    return x * random.random()


def draw(x: Any, g: Any) -> Any:
    return x * g.random()


@pytest.mark.parametrize("function", [random_numbers, generator, python_random])
def test_random_numbers_are_refused(function: Any) -> None:
    with pytest.raises(Unsupported, match=r"draws random numbers|answers differently") as raised:
        capture(function, (X,), {})
    assert raised.value.hint


def test_a_generator_argument_is_refused() -> None:
    with pytest.raises(Unsupported, match="g draws random numbers"):
        capture(draw, (X, RNG), {})


def changes_a_list(x: Any) -> Any:
    HISTORY.append(x)
    return x


def changes_a_global(x: Any) -> Any:
    global COUNTER
    COUNTER = x.sum()
    return x


def changes_a_dict(x: Any, d: Any) -> Any:
    d["y"] = x
    return x


@pytest.mark.parametrize(
    ("function", "args", "name"),
    [
        (changes_a_list, (X,), "HISTORY"),
        (changes_a_global, (X,), "COUNTER"),
        (changes_a_dict, (X, {"x": 1.0}), "the dict d"),
    ],
)
def test_side_effects_are_refused(function: Any, args: Any, name: str) -> None:
    with pytest.raises(Unsupported, match=name):
        capture(function, args, {})
    assert HISTORY == []


def test_assigned_closure_variable_is_refused() -> None:
    total = 0.0

    def add(x: Any) -> Any:
        nonlocal total
        total = total + x.sum()
        return x

    with pytest.raises(Unsupported, match="outer function"):
        capture(add, (X,), {})
    assert total == 0.0


def test_leaked_array() -> None:
    class Box:
        value: Any = None

    box = Box()

    def f(x: Any, keep: Any = lambda v: setattr(box, "value", v)) -> Any:
        return x

    leaked: list[Any] = []

    def g(x: Any) -> Any:
        leak(x * 2)
        return x

    def leak(v: Any) -> None:
        sink.__setitem__(0, v)

    sink = np.empty(1, object)
    leaked.append(f)
    with pytest.raises(NbcompError):
        capture(g, (X,), {})


def test_use_after_the_trace() -> None:
    kept = {}

    def f(x: Any) -> Any:
        kept["x"] = x
        return x

    with pytest.raises(Unsupported, match="kept"):
        capture(f, (X,), {})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (X.astype(complex), "complex128"),
        (X.astype(object), "object"),
        (np.array(["a"]), "str"),
        (np.array(["2020-01-01"], "M8[D]"), "datetime64"),
        (X.astype(">f8"), "byte order"),
        (np.ma.masked_array(X), "MaskedArray"),
        (np.zeros(3, "i4,f8"), "void"),
        ({1, 2}, "set"),
        (np.zeros(4, "i1,f8")["f1"], "odd addresses"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_unsupported_arguments(value: Any, message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        capture(lambda x: x, (value,), {})


def test_matrix_is_unsupported() -> None:
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix([[1.0]])
    with pytest.raises(Unsupported, match="matrix"):
        capture(lambda x: x + 1, (matrix,), {})


@pytest.mark.parametrize(
    ("function", "name", "hint"),
    [
        (lambda x: np.unique(x), "np.unique", "np.sort"),
        (lambda x: np.nonzero(x), "np.nonzero", "np.where"),
        (lambda x: np.fft.fft(x), "np.fft.fft", ""),
        (lambda x: np.apply_along_axis(sum, 0, x), "np.apply_along_axis", "axis="),
        (lambda x: np.histogram2d(x, x), "np.histogram2d", ""),
        (lambda x: x.base, ".base", ""),
        (lambda x: x.flat, ".flat", "x.ravel()"),
        (lambda x: x.ctypes, ".ctypes", ""),
        (lambda x: x.view(np.int64), "x.view", ""),
        (lambda x: open("nowhere"), "open()", "outside"),  # noqa: SIM115
    ],
)
def test_unsupported_functions(function: Any, name: str, hint: str) -> None:
    with pytest.raises(Unsupported) as raised:
        capture(function, (X,), {})
    assert name in raised.value.message
    assert hint in raised.value.hint
    assert raised.value.location is not None


def test_unknown_attribute_lists_close_names() -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'summ'; did you mean 'sum'"):
        capture(lambda x: x.summ(), (X,), {})


def test_hasattr_works(agree: Callable[..., Any]) -> None:
    agree(lambda x: (hasattr(x, "shape"), hasattr(x, "detach"), getattr(x, "grad", 1)), X)


def test_the_users_own_errors_pass_through() -> None:
    def f(x: Any, n: int) -> Any:
        if x.ndim != 3:
            raise KeyError(f"three axes, please, not {x.ndim}")
        return x / n

    with pytest.raises(KeyError, match="three axes, please, not 2"):
        capture(f, (X, 1), {})
    with pytest.raises(ZeroDivisionError):
        capture(lambda x, n: x * (1 / n), (X, 0), {})


def test_what_is_no_plain_function() -> None:
    def numbers(x: Any) -> Any:
        yield x

    async def later(x: Any) -> Any:
        return x

    for function, message in ((numbers, "a generator"), (later, "an async function")):
        with pytest.raises(CaptureError, match=message):
            capture(function, (X,), {})
    with pytest.raises(CaptureError, match="functions written in Python"):
        capture(3, (X,), {})


def test_what_is_printed_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        print("shape", x.shape, x[0, 0])
        return x + 1

    with pytest.raises(Unsupported, match="print") as error:
        capture(f, (X,), {})
    assert "print what the function returns" in error.value.hint
    assert capsys.readouterr().out == ""
    jitted = nbcomp.jit(f)
    result = jitted(X)
    assert "print" in jitted.breaks[0].reason
    np.testing.assert_array_equal(result, X + 1)
    assert capsys.readouterr().out == "shape (3, 4) -2.0\n"


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        capture(lambda x, y: x, (X,), {})


def test_long_loops_are_refused() -> None:
    with pytest.raises(Unsupported, match="a loop over 5000 elements"):
        capture(lambda x: [v * 2 for v in x], (np.zeros(5000),), {})

    def f(x: Any) -> Any:
        for _ in range(30_000):
            x = x + 1
        return x

    with pytest.raises(Unsupported, match="more than 20000 operations"):
        capture(f, (X,), {})


def test_too_many_entries() -> None:
    with pytest.raises(Unsupported, match="too many entries"):
        capture(lambda x: np.array(x), ([0.0] * 20_000,), {})


def two_lengths(x: Any, y: Any) -> Any:
    return x + y


@pytest.mark.parametrize(
    ("function", "args", "kwargs"),
    [
        (two_lengths, (np.ones(3), np.ones(4)), {}),
        (two_lengths, (np.ones(3), 2, 3), {}),
        (two_lengths, (np.ones(3),), {}),
        (two_lengths, (np.ones(3), 2), {"z": 3}),
        (lambda x: np.sum(x, axs=1), (X,), {}),
        (lambda x: np.clip(x, 0, 1, 2, 3, z=4), (X,), {}),
        (lambda x, y: x @ y, (np.ones((2, 3)), np.ones((4, 5))), {}),
        (lambda x, y: np.matmul(x, y), (np.ones((2, 3, 3)), np.ones((4, 3, 3))), {}),
        (lambda x: x.reshape(7), (X,), {}),
    ],
)
def test_mistakes_get_numpys_own_error_alone(function: Any, args: Any, kwargs: Any) -> None:
    """The class and words of NumPy or Python, and no other exception behind it."""
    with pytest.raises((TypeError, ValueError)) as expected:
        function(*args, **kwargs)
    jitted = nbcomp.jit(function)
    for _ in range(2):
        with pytest.raises(type(expected.value)) as error:
            jitted(*args, **kwargs)
        assert str(error.value) == str(expected.value)
        assert error.value.__cause__ is None
        assert error.value.__context__ is None
        assert "inspect.py" not in {Path(str(entry.path)).name for entry in error.traceback}


def test_arguments_that_do_not_fit_after_others_did() -> None:
    jitted = nbcomp.jit(two_lengths)
    jitted(X, X)
    with pytest.raises(TypeError, match=r"two_lengths\(\) takes 2 positional arguments but 3 were"):
        jitted(X, X, X)
    with pytest.raises(TypeError, match=r"two_lengths\(\) missing 1 required positional argument"):
        jitted(X)


def test_an_error_of_the_fallback_is_the_users_alone() -> None:
    def f(x: Any) -> Any:
        np.unique(x)
        raise KeyError("mine")

    jitted = nbcomp.jit(f)
    with (
        pytest.warns(nbcomp.NumpyFallback, match="np.unique"),
        pytest.raises(KeyError, match="mine") as error,
    ):
        jitted(X)
    assert error.value.__context__ is None
    with pytest.raises(KeyError, match="mine"):
        jitted(X)


def returns_a_set(x: Any) -> Any:
    y = x + 1
    return {y.shape}


@pytest.mark.parametrize("compile_", [nbcomp.compile, nbcomp.trace])
def test_what_a_function_returns_is_refused_at_its_return(compile_: Any) -> None:
    with pytest.raises(CaptureError, match="returns a set") as caught:
        compile_(returns_a_set, X)
    assert caught.value.location is not None
    assert caught.value.location.source() == "return {y.shape}"


def test_a_scripted_function_may_return_anything_by_python() -> None:
    scripted = nbcomp.script(returns_a_set)
    with pytest.warns(nbcomp.NumpyFallback, match="returns a set"):
        assert scripted(X) == returns_a_set(X)
    assert scripted.fallbacks[0].location.source() == "return {y.shape}"


def test_a_scripted_function_that_is_traced_is_frozen_aloud() -> None:
    scripted = nbcomp.script(if_return)
    with pytest.warns(nbcomp.TraceWarning, match="the traced function always does"):
        traced = nbcomp.trace(lambda x: scripted(x) * 2, X)
    np.testing.assert_array_equal(traced(X), if_return(X) * 2)


FACTOR = 3
PYTHONS_ERRORS = {
    "array called": lambda x: x(),
    "number called": lambda x: FACTOR(),  # type: ignore[operator]
    "number iterated": lambda x: [x * k for k in FACTOR],  # type: ignore[attr-defined]
    "number indexed": lambda x: x * FACTOR[0],  # type: ignore[index]
    "length of a number": lambda x: x * len(FACTOR),  # type: ignore[arg-type]
    "array formatted": lambda x: "%d" % x,  # noqa: UP031
    "arrays joined": lambda x: ",".join([x, x]),
    "None added": lambda x: x + None,
    "number unpacked": lambda x: x * [*FACTOR],  # type: ignore[misc]
    "array as keywords": lambda x: dict(**x),
    "bytes of an element": lambda x: bytes(x[0]),
}


@pytest.mark.parametrize("way", [nbcomp.compile, nbcomp.trace])
@pytest.mark.parametrize("name", PYTHONS_ERRORS)
def test_errors_name_the_users_types(name: str, way: Any) -> None:
    with pytest.raises(TypeError) as raised:
        way(PYTHONS_ERRORS[name], np.arange(3.0))
    for ours in ("Tracer", "Number", "Lazy", "nbcomp."):
        assert ours not in str(raised.value)


def test_open_lengths_are_said_by_their_names() -> None:
    f32 = nbcomp.f32
    with pytest.raises(ValueError, match=r"with shapes \(n\) \(m\): lengths that are equal"):
        nbcomp.compile(lambda x, y: x + y, f32["n"], f32["m"])
    with pytest.raises(ValueError, match=r"array of size n into shape \(-1,4\) for all n") as said:
        nbcomp.compile(lambda x: x.reshape(-1, 4), f32["n"])
    assert "a multiple of 4" in str(said.value)
    with pytest.raises(ValueError, match=r"array of size 10 into shape \(4\)|size 10"):
        nbcomp.compile(lambda x: x.reshape(-1, 4), np.ones(10))


def test_a_masked_result_is_refused_where_it_was_selected() -> None:
    with pytest.raises(nbcomp.Unsupported, match="as a result is not compiled") as said:
        nbcomp.compile(lambda x: (x * 2)[x > 0], np.ones(10))
    assert said.value.location is not None
    assert said.value.location.source() == "(x * 2)[x > 0]"


def test_pow_of_three_arguments() -> None:
    def f(n: int, x: Any) -> Any:
        return x * pow(n, 5, 7)

    for make in (nbcomp.jit, nbcomp.script):
        np.testing.assert_array_equal(make(f)(3, np.ones(4)), np.full(4, 5.0))
    with pytest.raises(TypeError, match="unsupported operand"):
        nbcomp.compile(lambda x: pow(x, 5, 7), np.ones(3))


READ = "def read(text):\n    return json.loads(text)\n"


@pytest.mark.parametrize(
    ("file", "module", "kept"),
    [
        (f"{PACKAGE}reading.py", "nbcomp.reading", []),
        ("<string>", "nbcomp.reading", []),
        (f"{PACKAGE[:-1]}_of_a_user/reading.py", "nbcomp_of_a_user.reading", ["read", "loads"]),
        ("<cell>", "__main__", ["read", "loads"]),
    ],
)
def test_what_the_compiler_runs_is_no_frame_of_the_users(
    file: str, module: str, kept: list[str]
) -> None:
    """Nor is what it generates; what another package or the user runs is."""
    names = {"json": json, "__name__": module}
    exec(compile(READ, file, "exec"), names)
    with pytest.raises(json.JSONDecodeError) as raised:
        names["read"]("{")  # type: ignore[operator]
    frames = traceback.extract_tb(users_frames(raised.value.__traceback__))
    assert [f.name for f in frames][1:3] == kept
