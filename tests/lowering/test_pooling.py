"""Pooling as loops over windows: NumPy's answer for any geometry, NaN and infinity included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.loop.grammar import For, walk
from nbcomp.nn import functional as F

POOL = {
    (1, True): F.max_pool1d, (2, True): F.max_pool2d,
    (1, False): F.avg_pool1d, (2, False): F.avg_pool2d,
}  # fmt: skip


def drawn(rng: np.random.Generator) -> tuple[Any, Any, bool]:
    space, largest = int(rng.integers(1, 3)), bool(rng.integers(0, 2))
    kernel, stride = (tuple(map(int, rng.integers(1, 5, space))) for _ in range(2))
    padding = tuple(int(rng.integers(0, k // 2 + 1)) for k in kernel)
    size = tuple(map(int, rng.integers(8, {1: 150, 2: 60}[space], space)))
    dtype = rng.choice([np.float32, np.float64])
    x = rng.standard_normal((int(rng.integers(1, 4)), int(rng.integers(1, 6)), *size)).astype(dtype)
    if rng.random() < 0.3:
        x = np.asfortranarray(x)
    options: dict[str, Any] = {"stride": stride, "padding": padding}
    options["ceil_mode"] = bool(rng.integers(0, 2))
    if largest:
        options["dilation"] = int(rng.integers(1, 3))
    else:
        options["count_include_pad"] = bool(rng.integers(0, 2))
    pool = POOL[space, largest]
    return (lambda x: F.relu(pool(x, kernel, **options)) - 0.5), x, largest


@pytest.mark.parametrize("seed", range(24))
def test_any_geometry(seed: int) -> None:
    function, x, largest = drawn(np.random.default_rng(seed))
    try:
        wanted = function(x)
    except ValueError:  # a window that does not fit: said in the same words
        with pytest.raises(Exception, match="does not fit"):
            nbcomp.compile(function, x)
        return
    made = nbcomp.compile(function, x)
    if largest:
        np.testing.assert_array_equal(made(x), wanted)
    else:
        eps = np.finfo(x.dtype).eps
        np.testing.assert_allclose(made(x), wanted, rtol=16 * eps, atol=16 * eps)
    assert [r for r in made.explain() if r.topic == "windows"]


@pytest.mark.parametrize("pool", [F.max_pool2d, F.avg_pool2d])
@pytest.mark.parametrize("stride", [1, 2])
def test_nan_and_infinity_pass_through(pool: Any, stride: int) -> None:
    x = np.random.default_rng(1).standard_normal((1, 2, 20, 36)).astype(np.float32)
    x[0, 0, 5, 7], x[0, 1, 3, 30], x[0, 1, 9, 1] = np.nan, np.inf, -np.inf
    x[0, 0, 12:16, 12:16] = -np.inf
    with np.errstate(all="ignore"):
        wanted = pool(x, 3, stride, 1)
        got = nbcomp.compile(lambda x: pool(x, 3, stride, 1), x)(x)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_one_kernel_with_what_follows_and_a_channel_at_a_time() -> None:
    x = np.random.default_rng(2).standard_normal((2, 8, 30, 64)).astype(np.float32)
    made = nbcomp.compile(lambda x: F.relu(F.max_pool2d(x, 3, 2, 1)) * 2, x)
    (kernel,) = made.kernels
    assert not [b for b in kernel.kernel.buffers if b.role == "temp"]
    assert any(note.startswith("tile_sums") for note in kernel.kernel.notes)
    assert any(s.kind == "parallel" for s in walk(kernel.kernel.stages) if isinstance(s, For))


def test_whole_numbers_stay_formulas() -> None:
    x = np.arange(60, dtype=np.int16).reshape(1, 1, 6, 10)
    made = nbcomp.compile(lambda x: F.max_pool2d(x, 2), x)
    np.testing.assert_array_equal(made(x), F.max_pool2d(x, 2))
    assert [r for r in made.explain() if r.topic == "windows" and "formula" in r.reason]
