"""Attention in one kernel: found whatever happens to the scores, with NumPy's answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.loop.grammar import Call, walk
from nbcomp.loop.verifier import verify
from nbcomp.nn import MultiheadAttention
from nbcomp.nn import functional as F

Array = np.ndarray[Any, Any]
BOUND = {np.float32: 2e-5, np.float64: 1e-13}  # of the largest magnitude


def softmax(s: Any) -> Any:
    e = np.exp(s - np.max(s, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def plain(q: Any, k: Any, v: Any) -> Any:
    return softmax((q @ np.swapaxes(k, -1, -2)) * 0.125) @ v


def operands(
    seed: int, batch: tuple[int, ...], n: int, m: int, d: int, e: int, dtype: Any = np.float32
) -> tuple[Array, ...]:
    rng = np.random.default_rng(seed)
    shapes = ((*batch, n, d), (*batch, m, d), (*batch, m, e))
    return tuple(rng.standard_normal(s).astype(dtype) for s in shapes)


def check(function: Any, *args: Any, fused: bool = True) -> Any:
    made = nbcomp.compile(function, *args)
    with np.errstate(all="ignore"):
        wanted, got = function(*args), made(*args)
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=0) + 1e-30
    np.testing.assert_allclose(got, wanted, rtol=0, atol=BOUND[wanted.dtype.type] * scale)
    assert ("attention" in {g.kind for g in made.groups}) == fused
    return made


@pytest.mark.parametrize(
    ("batch", "n", "m", "d", "e", "dtype"),
    [
        ((8,), 64, 64, 16, 16, np.float32),
        ((), 37, 53, 9, 21, np.float32),
        ((2, 3), 8, 130, 64, 64, np.float32),
        ((1, 2), 100, 77, 24, 5, np.float64),
        ((3,), 9, 16, 1, 3, np.float32),
        ((5,), 130, 8, 40, 32, np.float64),
    ],
)
def test_plain(batch: Any, n: int, m: int, d: int, e: int, dtype: Any) -> None:
    made = check(plain, *operands(1, batch, n, m, d, e, dtype))
    assert len(made.kernels) == 1
    (kernel,) = made.kernels
    assert not any(isinstance(s, Call) for s in walk(kernel.kernel.stages))
    largest = max(b.nbytes for b in kernel.kernel.buffers)
    assert largest <= max(x.nbytes for x in operands(1, batch, n, m, d, max(d, e), dtype))
    (said,) = (r for r in made.explain() if r.topic == "attention")
    assert "never stored whole" in said.reason


def by_root(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])) @ v  # float64 scores


@pytest.mark.parametrize(
    "function",
    [
        by_root,
        lambda q, k, v: softmax((q @ np.swapaxes(k, -1, -2)).astype("f8")).astype("f4") @ v,
        lambda q, k, v: softmax(q @ np.swapaxes(k, -1, -2)).astype("f8") @ v,
        lambda q, k, v: softmax((q @ np.swapaxes(k, -1, -2)).astype("f8") - 1) @ v,
        lambda q, k, v: softmax(q @ np.swapaxes(k, -1, -2)) @ v.astype("f8"),
    ],
)
@pytest.mark.parametrize("shape", [(16, 16), (2, 70, 24)])
def test_scores_and_weights_of_different_dtypes(function: Any, shape: Any) -> None:
    q, k, v = operands(3, shape[:-2], shape[-2], shape[-2], shape[-1], shape[-1])
    made = nbcomp.compile(function, q, k, v)
    for kernel in made.kernels:
        verify(kernel.kernel)
    wanted, got = function(q, k, v), made(q, k, v)
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5)
    assert "attention" in {g.kind for g in made.groups}


@pytest.mark.parametrize("seed", range(8))
def test_any_sizes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    batch = tuple(map(int, rng.integers(1, 5, rng.integers(0, 3))))
    n, m, d, e = (int(rng.integers(*r)) for r in ((8, 90), (2, 90), (2, 40), (2, 40)))
    check(plain, *operands(seed, batch, n, m, d, e, rng.choice([np.float32, np.float64])))


def test_the_loops_mean_the_same_before_they_are_scheduled() -> None:
    args = operands(2, (2,), 9, 6, 3, 4)
    made = nbcomp.compile_for("interpreted")(plain, *args)
    np.testing.assert_allclose(made(*args), plain(*args), rtol=1e-5, atol=1e-6)


def test_masks() -> None:
    q, k, v = operands(3, (2, 2), 20, 20, 8, 8)
    bias = np.random.default_rng(4).standard_normal((2, 20, 20)).astype(np.float32)

    def added(q: Any, k: Any, v: Any, bias: Any) -> Any:
        return softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(np.float32(8)) + bias) @ v

    def causal(q: Any, k: Any, v: Any) -> Any:
        scores = q @ np.swapaxes(k, -1, -2)
        return softmax(np.where(np.tri(20, dtype=bool), scores, np.float32(-np.inf))) @ v

    def capped(q: Any, k: Any, v: Any) -> Any:
        return softmax(30 * np.tanh(q @ np.swapaxes(k, -1, -2) / 30)) @ v

    check(added, q, k, v, bias)
    check(causal, q, k, v)
    check(capped, q, k, v)
    check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v)
    check(F.scaled_dot_product_attention, q, k, v, bias)


def test_rows_without_a_key_are_nan_as_in_numpy() -> None:
    q, k, v = operands(5, (2,), 10, 12, 4, 4)
    mask = np.zeros((10, 12), np.float32)
    mask[3] = -np.inf
    mask[7, 5:] = -np.inf

    def function(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return softmax(q @ np.swapaxes(k, -1, -2) + mask) @ v

    made = check(function, q, k, v, mask)
    assert np.isnan(made(q, k, v, mask)[:, 3]).all()
    v[0, 2, 1], q[1, 4, 0] = np.inf, np.nan
    check(function, q, k, v, mask)


def test_heads_that_share_keys_and_values() -> None:
    q, k, v = operands(6, (2, 2), 16, 24, 8, 8)
    q = np.stack([q, -q, 2 * q], axis=2)

    def grouped(q: Any, k: Any, v: Any) -> Any:
        return softmax(q @ np.swapaxes(k[:, :, None], -1, -2)) @ v[:, :, None]

    check(grouped, q, k, v)


def test_a_layer() -> None:
    rng = np.random.default_rng(7)
    layer = MultiheadAttention(32, 4, batch_first=True)
    x, memory = (rng.standard_normal((2, n, 32)).astype(np.float32) for n in (20, 28))

    def own(x: Any) -> Any:
        return layer(x, x, x, need_weights=False)[0]

    def crossed(x: Any, memory: Any) -> Any:
        return layer(x, memory, memory, need_weights=False)[0]

    check(own, x)
    check(crossed, x, memory)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda q, k, v: (w := softmax(q @ k.swapaxes(-1, -2))) @ v + np.sum(w), "needed whole"),
        (lambda q, k, v: softmax(q[:, :4] @ k.swapaxes(-1, -2)) @ v, "too few"),
    ],
)
def test_what_stays_apart_says_why(function: Any, why: str) -> None:
    made = check(function, *operands(8, (2,), 16, 12, 8, 8), fused=False)
    assert [r for r in made.explain() if r.topic == "attention" and why in r.reason]
