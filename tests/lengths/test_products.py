"""Products of as many rows as a call brings: one generated kernel, whole tiles and smaller ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.levels import levels
from nbcomp.loop.grammar import Call, walk

ROWS = (2, 3, 7, 8, 9, 15, 16, 61, 64, 129, 1000)


def layer(x: Any, w: Any, b: Any) -> Any:
    return np.maximum(x @ w + b, 0)


def generated(compiled: Any) -> bool:
    """Whether the product and what follows it are one kernel without BLAS."""
    stages = [s for k in compiled.kernels for s in k.kernel.stages]
    return len(compiled.kernels) == 1 and not any(isinstance(s, Call) for s in walk(tuple(stages)))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape",
    [(784, 256), (256, 10), (64, 100), (20, 33), (1024, 1024), (5000, 64), (1, 40)],
    ids=str,
)
def test_any_number_of_rows(
    shape: tuple[int, int], dtype: Any, turned: bool, rng: np.random.Generator
) -> None:
    """Sums of products of numbers within ±1/2 are off by inner · eps at most (see benchmarks)."""
    inner, columns = shape
    w = (rng.random(shape) - 0.5).astype(dtype)
    w = np.asfortranarray(w) if turned else w
    b = (rng.random(columns) - 0.5).astype(dtype)
    spec = nbcomp.f32 if dtype is np.float32 else nbcomp.f64
    options = nbcomp.Options(without={"blas"})
    compiled = nbcomp.compile_for("llvm", options)(layer, spec["n", inner], w, b)
    assert generated(compiled)
    for rows in ROWS:
        x = (rng.random((rows, inner)) - 0.5).astype(dtype)
        bound = 4 * inner * np.finfo(dtype).eps
        np.testing.assert_allclose(compiled(x, w, b), layer(x, w, b), rtol=0, atol=bound)


def test_by_default_and_for_a_range(rng: np.random.Generator) -> None:
    w, b = rng.random((784, 256), np.float32), rng.random(256, np.float32)
    fast = nbcomp.jit(layer)
    for rows in (100, 128, 64, 131, 250, 7):
        x = rng.random((rows, 784), np.float32)
        np.testing.assert_allclose(fast(x, w, b), layer(x, w, b), rtol=1e-5)
    assert len(fast.variants) == 2  # of the first length, and of all others
    assert generated(fast.variants[-1])
    assert fast.variants[-1].lengths == ("n = 2 … 668",)


def test_every_level(rng: np.random.Generator) -> None:
    w, b = rng.random((9, 50), np.float32), rng.random(50, np.float32)
    fast = nbcomp.jit(layer)
    for rows in (30, 19):
        x = rng.random((rows, 9), np.float32)
        fast(x, w, b)
    compiled = fast.variants[-1]
    assert generated(compiled)
    for name, run in levels(compiled):
        np.testing.assert_allclose(run(x, w, b), layer(x, w, b), rtol=1e-5, err_msg=name)


def test_rows_of_any_layout(rng: np.random.Generator) -> None:
    w, b = rng.random((40, 60), np.float32), rng.random(60, np.float32)
    fast = nbcomp.jit(lambda x, w, b: layer(x[::2], w, b))
    for rows in (20, 31, 50):
        x = rng.random((rows, 40), np.float32)
        np.testing.assert_allclose(fast(x, w, b), layer(x[::2], w, b), rtol=1e-5)


def test_one_code_for_small_calls_and_large_ones(rng: np.random.Generator) -> None:
    """How many iterations a core takes is worked out by each call, and fixes nothing."""
    w1, w2 = rng.random((33, 50), np.float32), rng.random((50, 7), np.float32)
    fast = nbcomp.jit(lambda x: np.maximum(x @ w1, 0) @ w2)
    for rows in (5, 9, 64, 100, 3, 1000, 20, 500):
        x = rng.random((rows, 33), np.float32)
        np.testing.assert_allclose(fast(x), np.maximum(x @ w1, 0) @ w2, rtol=1e-5)
    assert len(fast.variants) == 2  # of the first length, and of all others


def test_what_is_left_of_short_open_loops_has_a_length(rng: np.random.Generator) -> None:
    """Estimates of what blocks leave may not become negative by rounding."""
    for inner in (1, 2, 3):
        w = rng.random((inner, 2))
        fast = nbcomp.jit(lambda x, w: x[1:-1] @ w)
        for rows in (9, 12, 2, 3, 1, 40, 100_000):
            x = rng.random((rows, inner))
            np.testing.assert_allclose(fast(x, w), x[1:-1] @ w)
