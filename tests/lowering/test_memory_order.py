"""The memory order of results: that of NumPy, whatever the arrays read look like."""

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


PLACES = np.array([1, 0, 1, 1])
OF_ALL_KINDS: dict[str, Callable[[Any], Any]] = {
    "times one": lambda a: a * 1,
    "copy": np.copy,
    "C copy": lambda a: a.copy(),
    "same dtype": lambda a: a.astype(a.dtype),
    "roll": lambda a: np.roll(a, 1, axis=1),
    "roll flat": lambda a: np.roll(a, 1),
    "pad": lambda a: np.pad(a, 1),
    "concatenate": lambda a: np.concatenate([a, a], 1),
    "stack": lambda a: np.stack([a, a * 2]),
    "repeat": lambda a: np.repeat(a, 2, axis=0),
    "sort": lambda a: np.sort(a, axis=1),
    "cumsum": lambda a: np.cumsum(a, axis=0),
    "sum": lambda a: a.sum(axis=0),
    "kept": lambda a: a.max(axis=1, keepdims=True),
    "var": lambda a: a.var(axis=1),
    "argmax": lambda a: a.argmax(axis=0),
    "tril": np.tril,
    "softmax": lambda a: a / a.sum(axis=1, keepdims=True),
    "turned": lambda a: (a * 2).T,
    "turned product": lambda a: (a @ a.swapaxes(1, 2)).swapaxes(1, 2),
    "rows": lambda a: a[[1, 0]],
    "columns": lambda a: a[:, PLACES],
    "apart": lambda a: a[PLACES, :, PLACES],
    "beside a slice": lambda a: a[::-1, PLACES[:2]],
    "einsum": lambda a: np.einsum("ijk->ik", a),
    "gradient": lambda a: np.gradient(a)[1],
    "quantiles": lambda a: np.percentile(a, [20, 50], axis=1),
}


def long_strides(a: Any) -> list[int]:
    """How far apart elements are along the axes that have several."""
    return [s for s, n in zip(a.strides, a.shape, strict=True) if n > 1]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OF_ALL_KINDS)
def test_results_of_all_kinds(name: str, layout: str) -> None:
    a = array(layout, np.float64)
    wanted, got = OF_ALL_KINDS[name](a), nbcomp.jit(OF_ALL_KINDS[name])(a)
    np.testing.assert_allclose(got, wanted)
    assert long_strides(got) == long_strides(wanted)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_that_others_read(layout: str) -> None:
    def both(a: Any) -> Any:
        b = a * 2
        return b, b.sum(axis=0), np.sort(b, axis=0)

    a = array(layout, np.float64)
    for got, wanted in zip(nbcomp.jit(both)(a), both(a), strict=True):
        np.testing.assert_array_equal(got, wanted)
        assert got.strides == wanted.strides


def test_what_is_written_to_an_argument_beside_a_result_in_another_order() -> None:
    def both(a: Any) -> Any:
        v = a * 0.5 - a
        a *= v
        return v

    mine, theirs = (np.asfortranarray(np.arange(2400.0).reshape(40, 60)) for _ in range(2))
    np.testing.assert_array_equal(nbcomp.jit(both)(mine), both(theirs))
    np.testing.assert_array_equal(mine, theirs)


def test_parts_of_short_rows_are_written_together() -> None:
    a = np.arange(35.0).reshape(5, 7)

    def joined(a: Any) -> Any:
        return np.stack([a, a * 2, a + 1], -1), np.concatenate([a[:, :2], a[:, 1:3]], 1)

    for x in (a, np.asfortranarray(a), a[::-1]):
        for got, wanted in zip(nbcomp.jit(joined)(x), joined(x), strict=True):
            np.testing.assert_array_equal(got, wanted)
            assert long_strides(got) == long_strides(wanted)


@pytest.mark.parametrize("order", "CF")
def test_whether_a_reshape_is_a_view_depends_on_the_order(order: Any) -> None:
    """In parts: what is handed out must lie as NumPy's does."""

    def columns(a: Any) -> Any:
        v = a[:, [0, 2, 1, 1]]
        w = v.reshape(-1)
        v[1:] += 1
        return w

    def triangle(a: Any) -> Any:
        v = np.tril(a)
        w = v.reshape(-1)
        v[1:] += 1
        return w

    a = np.arange(24.0).reshape(8, 3).copy(order)
    for function in (columns, triangle):
        np.testing.assert_array_equal(nbcomp.jit(function)(a.copy("K")), function(a.copy("K")))


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
