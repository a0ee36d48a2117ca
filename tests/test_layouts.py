"""One operation each on arrays of any dtype, shape and layout in memory: permuted, stepped,
reversed, broadcast, empty, of no dimensions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp

Array = np.ndarray[Any, Any]
Function = Callable[[Any, Any], Any]

LENGTHS = (0, 1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 33, 64, 65, 100, 127, 300, 1000, 5000)
DTYPES = "?bBhHiIqQefd"


def values(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> Array:
    """Small numbers, quarters in floats."""
    kind = np.dtype(dtype).kind
    if kind == "f":
        return rng.integers(-8, 9, shape).astype(dtype) / np.dtype(dtype).type(4)
    low, high = {"b": (0, 2), "u": (0, 10), "i": (-9, 10)}[kind]
    return rng.integers(low, high, shape).astype(dtype)


def laid_out(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> Array:
    """An array of this shape, anyhow in memory."""
    order = rng.permutation(len(shape))
    steps = rng.choice([1, 1, 1, 2, 3], len(shape))
    base = values(rng, dtype, tuple(int(shape[k] * steps[k] + rng.integers(2)) for k in order))
    a = base.transpose(np.argsort(order))
    a = a[tuple(slice(0, int(n * s), int(s)) for n, s in zip(shape, steps, strict=True))]
    for k, n in enumerate(shape):
        if rng.random() < 0.2:
            a = np.flip(a, k)
        if rng.random() < 0.1 and n:
            a = np.broadcast_to(np.take(a, [0], k), shape)
    assert a.shape == shape
    return a


def operations(rng: np.random.Generator, x: Array) -> list[Function]:
    """What may be done to two arrays of this kind."""
    rank = x.ndim
    axes = tuple(int(k) for k in range(rank) if rng.random() < 0.5) or None
    kept = bool(rng.random() < 0.5)
    always: list[Function] = [
        lambda x, y: x.sum(axis=axes, keepdims=kept),
        lambda x, y: (x == y).any(axis=axes),
        lambda x, y: (x > y).all(axis=axes, keepdims=kept),
        lambda x, y: x * y + x,
        lambda x, y: np.where(x > y, x, y),
        lambda x, y: np.stack([x, y], axis=-1).sum(axis=-1),
        lambda x, y: x.T + 1,
        lambda x, y: x.reshape(-1) * 2,
        lambda x, y: (x.astype("d") - y).mean(axis=axes, keepdims=kept),
        lambda x, y: x.astype("f").var(axis=axes, keepdims=kept),
        lambda x, y: (x * 2).sum(axis=axes) + y.sum(axis=axes),
        lambda x, y: np.abs(x.astype("e")) * y.astype("e"),
        lambda x, y: x.astype("b") + y.astype("B"),
        lambda x, y: x.astype("?") & y.astype("?"),
        lambda x, y: np.count_nonzero(x > y, axis=axes),
        lambda x, y: x.astype("q").sum(axis=axes) // 3,
        lambda x, y: np.floor_divide(x.astype("h"), y.astype("h")),
        lambda x, y: np.exp(x.astype("d")).sum(axis=axes) * x.astype("d").size,
    ]
    if rank:
        axis = int(rng.integers(rank))
        always += [
            lambda x, y: x + y.T.T[..., ::-1],
            lambda x, y: np.concatenate([x, y], axis=axis),
            lambda x, y: np.pad(x, 1),
            lambda x, y: x[..., ::2] + y[..., ::2],
            lambda x, y: np.swapaxes(x, 0, -1) * 2,
            lambda x, y: np.roll(x, 2, axis=axis),
            lambda x, y: np.cumsum(x, axis=axis),
            lambda x, y: np.diff(x.astype("d"), axis=axis),
            lambda x, y: np.einsum("...i,...i->...", x.astype("d"), y.astype("d")),
        ]
    if x.size:
        always += [
            lambda x, y: x.max(axis=axes, keepdims=kept),
            lambda x, y: np.minimum(x, y).min(axis=axes),
            lambda x, y: x / (np.abs(x.astype("d")).max(axis=axes, keepdims=True) + 1),
        ]
    if rank > 1:
        always.append(lambda x, y: x.astype("f") @ np.swapaxes(y.astype("f"), -1, -2))
    return always


def check(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (5000,) * 4
    while np.prod(shape) > 100_000:
        shape = tuple(int(n) for n in rng.choice(LENGTHS, rng.integers(0, 5)))
    dtype = str(rng.choice(list(DTYPES)))
    x, y = laid_out(rng, dtype, shape), laid_out(rng, rng.choice([dtype, dtype, "d", "i"]), shape)
    function = (choices := operations(rng, x))[rng.integers(len(choices))]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wanted = np.asarray(function(x, y))
        warnings.simplefilter("error", nbcomp.NumpyFallback)
        got = np.asarray(nbcomp.jit(function)(x, y))
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    rounding = {"e": (2e-3, 1e-2), "f": (2e-5, 1e-4)}.get(wanted.dtype.char, (1e-11, 1e-10))
    np.testing.assert_allclose(got, wanted, *rounding)


@pytest.mark.parametrize("seed", range(150))
def test_any_layout(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(100, 200))
def test_many_layouts(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        try:
            check(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
