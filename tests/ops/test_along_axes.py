"""Functions along axes, in all their arguments: folds, gradients, masked means, quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbcomp
from tests.ops.calls import check

A = np.array([[3.0, -1, 2, 7], [0.5, 4, -6, 1], [8, 2.5, 1, -3]])
I8 = np.array([[3, -100, 2, 7], [5, 4, -6, 100], [8, 2, 1, -3]], np.int8)
MASK = A > 0


@pytest.mark.parametrize("x", [A, I8, I8 > 0, A.astype(np.float16)], ids=lambda x: str(x.dtype))
@pytest.mark.parametrize(
    "name",
    [
        *("subtract", "divide", "remainder", "fmax", "fmin", "hypot", "gcd"),
        *("bitwise_and", "bitwise_xor", "logical_xor"),
    ],
)
def test_folds(name: str, x: Any) -> None:
    ufunc: Any = getattr(np, name)
    check(ufunc.reduce, x)
    check(ufunc.reduce, x, axis=1, keepdims=True)
    check(ufunc.reduce, x, axis=None)
    check(ufunc.reduce, x[:0], axis=0)
    check(ufunc.accumulate, x, axis=1)
    check(ufunc.accumulate, x, axis=None)
    check(ufunc.accumulate, x[0], axis=None)
    check(ufunc.reduceat, x, np.array([0, 2, 1, 1]))
    check(ufunc.reduceat, x, np.array([1, 3]), axis=1)


@pytest.mark.parametrize("x", [A, A.astype(np.float32), I8], ids=lambda x: str(x.dtype))
def test_gradient(x: Any) -> None:
    places = np.array([0.0, 1, 1.5, 4])
    for edge_order in (1, 2):
        check(np.gradient, x, edge_order=edge_order)
        check(np.gradient, x, axis=(1, 0), edge_order=edge_order)
        check(np.gradient, x, 0.5, axis=1, edge_order=edge_order)
        check(np.gradient, x, places, axis=1, edge_order=edge_order)
        check(np.gradient, x, np.arange(3), places, edge_order=edge_order)
        check(np.gradient, x[:, 0], [1, 2, 4], edge_order=edge_order)
    check(np.gradient, x, places, axis=0)
    check(np.gradient, x, x, axis=0)
    check(np.gradient, x, edge_order=3)
    check(np.gradient, x > 0)


def test_gradient_of_places_known_at_run_time() -> None:
    def slope(y: Any, x: Any) -> Any:
        return np.gradient(y, x)

    compiled: Any = nbcomp.jit(slope)
    for x in (np.arange(5.0), np.array([0.0, 1, 3, 4, 9])):
        y = np.array([1.0, np.inf, 2, 3, 5])
        np.testing.assert_array_equal(compiled(y, x), slope(y, x))


@pytest.mark.parametrize("x", [A, I8, A.astype(np.float16)], ids=lambda x: str(x.dtype))
@pytest.mark.parametrize("function", [np.mean, np.var, np.std])
def test_of_some_elements(function: Any, x: Any) -> None:
    for options in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}):
        check(function, x, where=MASK, ulp=8, **options)
        check(function, x, where=MASK[0], dtype=np.float64, ulp=8, **options)
        check(function, x, dtype=np.int64, ulp=8, **options)
    if function is not np.mean:
        check(function, x, axis=0, mean=np.array([[1.0, 2, 3, 4]]), ddof=1, ulp=8)


@pytest.mark.parametrize("function", [np.nanargmax, np.nanargmin])
def test_places_that_are_not_nan(function: Any) -> None:
    x = np.where(MASK, A, np.nan)
    check(function, x)
    check(function, x, axis=1, keepdims=True)
    check(function, I8, axis=0)
    check(function, x[:0], axis=0)
    check(function, np.full((2, 2), np.nan), axis=0)


def test_cumulative_functions_take_numbers_and_one_axis_in_a_tuple() -> None:
    for function in (np.cumulative_sum, np.cumulative_prod):
        check(function, np.float32(2))
        check(function, np.float32(2), include_initial=True)
        check(function, A, axis=(1,))
        check(function, A, axis=(0, 1))
    check(np.argsort, np.float32(2), kind="stable")


@pytest.mark.parametrize("function", [np.quantile, np.nanquantile])
def test_quantiles(function: Any) -> None:
    for q in (0, 1, 0.25, [0, 1]):
        for method in ("linear", "nearest", "inverted_cdf", "midpoint"):
            check(function, I8, q, method=method)
            check(function, I8, q, axis=1, method=method, keepdims=True)
    check(function, A[:, :0], 0.5, axis=0)
    check(function, A[:, :0], 0.5, axis=1)
    check(function, A[:, :0], 0.5, axis=1, method="nearest")


def test_an_average_of_nothing_is_divided_by_nothing() -> None:
    check(np.average, A[:, :0], axis=0)


@pytest.mark.parametrize("ends", [(A[0], A[1]), (1.5, A[0]), (A[0, 0], 2), (A[0], A[0])])
@pytest.mark.parametrize(
    "options",
    [{}, {"endpoint": False}, {"axis": -1}, {"dtype": np.int32}, {"dtype": np.float32}],
    ids=str,
)
def test_ranges_between_ends_known_at_run_time(ends: Any, options: Any) -> None:
    def between(a: Any, b: Any) -> Any:
        return [np.linspace(a, b, n, **options) for n in (5, 2, 1, 0)]

    for got, wanted in zip(nbcomp.jit(between)(*ends), between(*ends), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)


def test_bounds_of_the_method_clip_may_be_left_out() -> None:
    def clipped(x: Any) -> Any:
        return x.clip(0), x.clip(max=2), x.clip(-1, 1), x.clip(min=x[0], max=3)

    for got, wanted in zip(nbcomp.compile(clipped, A)(A), clipped(A), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_products_written_to_an_array() -> None:
    def product(a: Any, out: Any) -> Any:
        return np.matmul(a, a.T, out=out)

    mine, theirs = np.zeros((3, 3)), np.zeros((3, 3))
    assert nbcomp.compile(product, A, mine)(A, mine) is mine
    np.testing.assert_allclose(mine, product(A, theirs))
