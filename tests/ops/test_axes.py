"""Axis arguments NumPy refuses, and 0-d arrays that it takes for vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nbcomp.graph.numpy_function import NUMPY
from tests.ops.calls import check
from tests.ops.evaluate import input_node

X = np.arange(6.0).reshape(2, 3)
REDUCTIONS = [np.sum, np.prod, np.max, np.min, np.any, np.all, np.mean, np.std, np.var, np.nansum]
ZERO_D = np.array(3.0)


@pytest.mark.parametrize("function", REDUCTIONS)
@pytest.mark.parametrize("axis", [[0], True, (True,), [0, 1]])
def test_axes_that_are_no_integers(function: Any, axis: Any) -> None:
    with pytest.raises(TypeError):
        function(X, axis=axis)
    with pytest.raises(TypeError):
        NUMPY[function].trace(input_node(X), axis=axis)


@pytest.mark.parametrize("axis", [[0], [0, 1], 0, (1,)])
def test_lists_where_numpy_takes_them(axis: Any) -> None:
    check(np.median, X, axis=axis)
    check(np.quantile, X, 0.5, axis=axis)


@pytest.mark.parametrize("axis", [0, -1, 1, None])
def test_zero_d(axis: Any) -> None:
    check(np.cumsum, ZERO_D, axis)
    check(np.cumprod, ZERO_D, axis)
    check(np.repeat, ZERO_D, 2, axis)


def test_infinities_among_truth_values() -> None:
    check(np.isposinf, np.array([True, False]))
    check(np.isneginf, np.array([True, False]))
