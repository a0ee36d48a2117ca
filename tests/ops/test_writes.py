"""Functions that write into the array they are given: the tracer gives what the array becomes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nbcomp.errors import Unsupported
from nbcomp.graph.numpy_function import NUMPY
from nbcomp.ops import values
from nbcomp.ops.pick import WRITES
from tests.ops.calls import compare
from tests.ops.evaluate import input_node


@pytest.fixture
def x(rng: np.random.Generator) -> Any:
    return values.ordinary(rng, np.float32, (3, 4))


def _check(function: Any, array: Any, *args: Any, **kwargs: Any) -> None:
    def expected() -> Any:
        result = array.copy()
        function(result, *args, **kwargs)
        return result

    assert function in WRITES
    compare(expected, NUMPY[function].trace, (array, *args), kwargs, 0)


def test_copies(x: Any) -> None:
    mask = x > 0
    for source in (1, 2.5, x * 2, np.arange(4), np.ones((1, 3, 4)), np.ones(5), np.arange(4) + 0.5):
        _check(np.copyto, x, source)
        _check(np.copyto, x, source, where=mask)
        _check(np.copyto, x.astype(np.int32), source)
        _check(np.copyto, x.astype(np.int32), source, casting="unsafe")
    _check(np.copyto, x.astype(np.int8), 300)
    for new in (1, x * 2, np.arange(3), np.ones(1)):
        _check(np.putmask, x, mask, new)
    _check(np.putmask, x, mask[0], 1)
    for new in ([10, 20], [1.5, True], [10, 2000]):  # lists are converted number by number
        _check(np.putmask, x.astype(np.int8), mask, new)
    _check(np.place, x, mask, [7])
    with pytest.raises(Unsupported, match="depend on the data"):
        NUMPY[np.place].trace(input_node(x), input_node(mask, 1), [1, 2])


def test_puts(x: Any) -> None:
    order = np.argsort(x, 1)[:, :2]
    _check(np.put_along_axis, x, order, 9, 1)
    _check(np.put_along_axis, x, order, order * 1.0, 1)
    _check(np.put_along_axis, x, np.array([0, 5]), 9, None)
    _check(np.put_along_axis, x, order[0], 9, 1)
    _check(np.put, x, [0, 5, -1], [1, 2])
    _check(np.put, x, 3, 9.5)
    _check(np.fill_diagonal, x, 5)
    _check(np.fill_diagonal, x[0], 5)


@pytest.mark.parametrize("fn", [np.add, np.subtract, np.multiply, np.maximum, np.minimum])
def test_unbuffered_updates(fn: np.ufunc, x: Any) -> None:
    _check(fn.at, x, np.array([0, 2, 0]), 1.5)
    _check(fn.at, x, np.array([0, 2, 0]), np.arange(4))
    _check(fn.at, x, (np.array([0, 2, 0]), np.array([1, 1, 1])), np.arange(3))
    _check(fn.at, x.astype(np.int8), np.array([0, 0]), 3)
    _check(fn.at, x.astype(np.int8), np.array([0, 0]), 0.5)
    with pytest.raises(Unsupported, match="integer arrays"):
        NUMPY[fn.at].trace(input_node(x), slice(None), 1)
