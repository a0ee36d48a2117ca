"""The memory order of elementwise results: that of NumPy, whatever the arrays read look like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.lowering.maps import copied_order, ufunc_order

SHAPE = (2, 3, 4)
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": lambda a: a,
    "F": np.asfortranarray,
    "rows": lambda a: np.broadcast_to(a[:1], SHAPE),
    "planes": lambda a: np.broadcast_to(a[:, :1], SHAPE),
    "columns": lambda a: np.broadcast_to(a[..., :1], SHAPE),
    "turned": lambda a: np.ascontiguousarray(a.transpose(2, 0, 1)).transpose(1, 2, 0),
    "backwards": lambda a: np.asfortranarray(a)[:, ::-1],
}


def array(layout: str, dtype: Any) -> Any:
    return LAYOUTS[layout](np.arange(1, 25).reshape(SHAPE).astype(dtype))


def same(function: Callable[..., Any], *args: Any) -> None:
    with np.errstate(all="ignore"):
        wanted = function(*args)
    got = nbcomp.jit(function)(*args)
    np.testing.assert_array_equal(got, wanted)
    assert (got.dtype, got.strides) == (wanted.dtype, wanted.strides)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_casts(layout: str) -> None:
    same(lambda a: a.astype(np.int16), array(layout, np.float32))
    same(lambda a: a.T.astype(np.int16), array(layout, np.float32))
    same(lambda a: (a * 2).astype(np.int16), array(layout, np.float32))


def test_a_cast_of_repeated_rows() -> None:
    x = np.arange(3, dtype=np.float32)
    same(lambda a: a.astype(np.int16), np.broadcast_to(x, (5, 3)))
    same(lambda a: np.broadcast_to(a, (5, 3)).astype(np.int16), x)


@pytest.mark.parametrize("one", LAYOUTS)
@pytest.mark.parametrize("other", LAYOUTS)
def test_two_operands(one: str, other: str) -> None:
    a, b = array(one, np.int32), array(other, np.uint32)
    same(lambda a, b: a & b, a, b)
    same(lambda a, b: np.heaviside(b, a), array(one, np.uint32), b)


@pytest.mark.parametrize("function", [np.isnan, np.isinf, np.isfinite])
@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.bool_, np.float32])
def test_questions_with_one_answer_for_all_integers(function: Any, dtype: Any) -> None:
    for layout in LAYOUTS:
        same(lambda a: function(a), array(layout, dtype))


def test_orders_are_those_of_numpy() -> None:
    """Of random steps, some 0, as `numpy.nditer` and `numpy.empty_like` lay results out."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        rank, count = rng.integers(1, 5), rng.integers(1, 4)
        steps = rng.choice([0, 1, 2, 3, 5, 8], (count, rank))
        memory = np.zeros(100, np.int8)
        arrays = [np.lib.stride_tricks.as_strided(memory, (2,) * rank, s) for s in steps]
        made = np.nditer([*arrays, None]).operands[-1]
        order = ufunc_order(steps.tolist())
        assert [made.strides[k] for k in order] == sorted(made.strides, reverse=True)
        copy = np.empty_like(arrays[0])
        order = copied_order(steps[0].tolist())
        assert [copy.strides[k] for k in order] == sorted(copy.strides, reverse=True)
