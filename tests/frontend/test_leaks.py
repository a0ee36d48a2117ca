"""Nothing that stands for a value while tracing reaches the caller: results and NumPy's answers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.errors import Unsupported
from nbcomp.frontend.trace import capture
from tests.frontend.replay import same

Agree = Callable[..., Any]
X = np.array([1.0, -2.0, 3.0])
MASK = np.array([True, False, True])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[x > 0],
        lambda x: (x[x > 0], x),
        lambda x: [x, [x[x > 0]]],
        lambda x: {"a": x[x > 0]},
        lambda x: x[x > 0] * 2,
    ],
)
def test_a_selection_is_refused_and_runs_in_numpy(function: Any) -> None:
    with pytest.raises(Unsupported, match="known only at run time") as error:
        capture(function, (X,), {})
    assert "np.where(mask, x, 0)" in error.value.hint
    with pytest.warns(nbcomp.NumpyFallback, match="known only at run time"):
        result = nbcomp.jit(function)(X)
    same(result, function(X))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum,
        lambda x: lambda y: x + y,
        lambda x: functools.partial(np.add, x),
        lambda x: (x, [lambda: x]),
    ],
)
def test_functions_made_while_compiling_are_refused(function: Any) -> None:
    with pytest.raises(Unsupported, match="made while compiling"):
        capture(function, (X,), {})


@pytest.mark.parametrize(
    "function",
    [str, lambda x: f"{x}", lambda x: (x, f"{x[0]}"), lambda x: [repr(x)], "{}".format],
    ids=["str", "f-string", "scalar", "repr", "format"],
)
def test_texts_of_arrays_are_numpys(function: Any) -> None:
    def f(x: Any) -> Any:
        return function(x + 1)

    with pytest.raises(Unsupported):
        capture(f, (X,), {})
    jitted = nbcomp.jit(f)
    same(jitted(X), f(X))
    assert jitted.breaks


def test_numbers_in_keys_and_slices(agree: Agree) -> None:
    agree(lambda n, x: ({n: x + 1}, slice(0, n)), 3, X)


def test_functions_of_numpy_are_returned_themselves(agree: Agree) -> None:
    agree(lambda x: (np.sum, np.add, [np.sin], np.float32), X)


@pytest.mark.parametrize("value", [[1.0, 2.0, 3.0], (1, 2.5), [[1, 2], [3, 4]], [1, 2, 3], [True]])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.add(x, 1),
        lambda x: np.multiply(2, x),
        lambda x: np.sin(x),
        lambda x: np.add(x, x),
        lambda x: np.maximum.reduce(x),
        lambda x: np.add.outer(x, x),
        lambda x: np.add(x, np.ones(1, np.float32)),
    ],
)
def test_ufuncs_of_lists_of_numbers(agree: Agree, function: Any, value: Any) -> None:
    agree(function, value)


def test_ufuncs_of_lists_of_arrays(agree: Agree) -> None:
    agree(lambda x: np.add([x, x * 2], 1), X)
    agree(lambda x: np.hypot([x[0], 2, x.sum()], x), X)
    agree(lambda x, n: np.float32(3) + n * np.float32(2), X, 2.0)


def test_a_ufunc_is_itself_while_compiling(agree: Agree) -> None:
    table = {np.add: 1.0, np.sin: 2.0}

    def f(x: Any) -> Any:
        assert np.add is np.add
        assert isinstance(np.add, np.ufunc)
        assert (np.add.nin, np.add.__name__) == (2, "add")
        return functools.reduce(np.add, [x, x, x]) * table[np.sin]

    agree(f, X)


@pytest.mark.parametrize("number", [np.float64(2), np.float32(2), np.int8(2)])
def test_a_numpy_scalar_is_returned_itself(number: Any) -> None:
    first, second, inside = nbcomp.jit(lambda n: (n, n + 1, {"n": [n]}))(number)
    assert first is number
    assert inside["n"][0] is number
    same(second, number + 1)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 2.0, True])
def test_powers_of_bool(agree: Agree, exponent: Any) -> None:
    agree(lambda b: b**exponent, MASK)
    agree(lambda b, e: b**e, MASK, exponent)
    agree(lambda b: np.power(b, exponent), MASK)
    agree(lambda b: b[0] ** exponent, MASK)
