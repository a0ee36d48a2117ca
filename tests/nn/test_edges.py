"""Layers at their edges, as PyTorch 2.13 has them, and arguments that make no sense."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbcomp
import nbcomp.nn.functional as F
from nbcomp import checkpoint, nn
from nbcomp.checkpoint import CheckpointError

X = np.array([0.4, 0.5, 0.6, 0.9, 5, 100, np.inf, -np.inf, np.nan, -3], np.float32)
INF = np.float32(np.inf)
IMAGE = np.ones((1, 1, 7, 7), np.float32)


def both(function: Callable[..., Any], *args: Any) -> Any:
    """What it gives, eager and compiled."""
    eager, compiled = function(*args), nbcomp.jit(function)(*args)
    assert (eager.dtype, eager.shape) == (compiled.dtype, compiled.shape)
    np.testing.assert_allclose(compiled, eager, rtol=1e-6)
    return eager


# What torch.nn.functional.softplus(X, beta, threshold) gives.
SOFTPLUS = {
    (1, 20): [
        0.91301525,
        0.974077,
        1.037488,
        1.2411538,
        5.0067153,
        100,
        INF,
        0,
        np.nan,
        0.04858735,
    ],
    (2, 1): [0.5855503, 0.6566308, 0.6, 0.9, 5, 100, INF, 0, np.nan, 0.00123784],
    (1, 0): [0.4, 0.5, 0.6, 0.9, 5, 100, INF, 0, np.nan, 0.04858735],
    (0.5, 3): [
        1.5962777,
        1.6518788,
        1.7087105,
        1.8864979,
        5.1577797,
        100,
        INF,
        0,
        np.nan,
        0.40282658,
    ],
}


@pytest.mark.parametrize("settings", SOFTPLUS, ids=str)
def test_softplus_has_a_threshold(settings: Any) -> None:
    np.testing.assert_allclose(both(nn.Softplus(*settings), X), SOFTPLUS[settings], rtol=5e-6)


def test_softplus_of_doubles_is_exact_beyond_the_threshold() -> None:
    x = np.array([19.0, 21.0, 36.0, 50.0])
    assert list(both(nn.Softplus(), x)[1:]) == [21.0, 36.0, 50.0]


@pytest.mark.parametrize(
    ("p", "rows"),
    [
        (np.inf, [[0.75, -1], [0, 0]]),
        (-np.inf, [[1, -4 / 3], [0, 0]]),
        (0, [[1.5, -2], [0, 0]]),
        (-1, [[1.75, -7 / 3], [0, 0]]),
        (0.5, [[0.2153903, -0.2871871], [0, 0]]),
        (3, [[0.66697174, -0.8892957], [0, 0]]),
    ],
)
def test_norms_to_divide_by(p: float, rows: Any) -> None:
    x = np.array([[3, -4], [0, 0]], np.float32)
    np.testing.assert_allclose(both(lambda x: F.normalize(x, p=p), x), rows, rtol=1e-6)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_query_that_sees_no_key_gives_zero(kind: Any, rng: np.random.Generator) -> None:
    q, k, v = (rng.random((2, 5, 8)).astype(kind) for _ in range(3))
    seen = np.tri(5, 5, dtype=bool)
    seen[2] = False
    added = np.where(seen, 0, -np.inf).astype(kind)
    unknown = added.copy()
    unknown[1, 1] = np.nan

    def attend(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, mask)

    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(8) + added
    scores[:, 2] = 0
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    weights[:, 2] = 0
    for mask in (seen, added):
        result = both(attend, q, k, v, mask)
        np.testing.assert_allclose(result, weights @ v, rtol=1e-5)
        assert not result[:, 2].any()
    result = both(attend, q, k, v, unknown)
    assert np.isnan(result[:, 1]).all()
    assert not np.isnan(np.delete(result, 1, 1)).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Conv2d(1, 1, 3, padding=-1), "padding=-1: it is at least 0"),
        (lambda: nn.Conv2d(1, 1, 3, padding="foo"), "neither 'valid', 'same' nor a whole number"),
        (lambda: nn.Conv2d(1, 1, 3, padding=1.5), "should be a whole number"),
        (lambda: nn.Conv2d(1, 1, 3, stride=0), "stride=0: it is at least 1"),
        (lambda: nn.Conv2d(1, 1, 3, dilation=0), "dilation=0"),
        (lambda: nn.Conv2d(1, 1, 0), "kernel_size=0"),
        (lambda: nn.Conv2d(1, 1, 3, groups=0), "0 groups"),
        (lambda: nn.ConvTranspose2d(1, 1, 3, stride=0), "stride=0"),
        (lambda: nn.ConvTranspose2d(1, 1, 3, padding=-1), "padding=-1"),
        (lambda: nn.MaxPool2d(0), "kernel_size=0"),
        (lambda: nn.MaxPool2d(2, stride=0), "stride=0"),
        (lambda: nn.AvgPool2d(2, padding=-1), "padding=-1"),
        (lambda: nn.AdaptiveAvgPool2d(0), "output_size"),
        (lambda: nn.GroupNorm(0, 4), "0 groups"),
    ],
)
def test_numbers_that_make_no_sense(make: Callable[[], Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make()(IMAGE)
    with pytest.raises((ValueError, TypeError), match=message):
        nbcomp.jit(make())(IMAGE)


@pytest.mark.parametrize("layer", [nn.AdaptiveAvgPool2d(2), nn.AdaptiveMaxPool2d(2)])
def test_nothing_to_pool(layer: Any) -> None:
    for function in (layer, nbcomp.jit(layer)):
        with pytest.raises(ValueError, match="nothing to pool"):
            function(np.ones((1, 1, 0, 4), np.float32))


def test_booleans_are_pooled() -> None:
    x = np.array([[[True, False, False, False]]])
    np.testing.assert_array_equal(both(nn.MaxPool1d(2, padding=1), x), [[[True, False, False]]])


@pytest.mark.parametrize("layer", [nn.Tanh(), nn.ReLU(), nn.Softplus(2, 1), nn.Linear(2, 2)])
def test_lists_are_arrays(layer: Any) -> None:
    np.testing.assert_array_equal(nbcomp.jit(layer)([1.0, 2.0]), layer([1.0, 2.0]))


@pytest.mark.parametrize(("value", "shown"), [(None, "None"), ("abc", "a str")])
def test_what_is_no_array_is_told(value: Any, shown: str) -> None:
    for function in (nn.Linear(3, 4), nbcomp.jit(nn.Linear(3, 4))):
        with pytest.raises(TypeError, match=f"linear takes an array, not {shown}"):
            function(value)


def write(file: Path, arrays: dict[str, tuple[str, list[int], bytes]]) -> None:
    """A safetensors file."""
    header, data = {}, b""
    for name, (dtype, shape, content) in arrays.items():
        places = [len(data), len(data) + len(content)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": places}
        data += content
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)


def test_dtypes_that_numpy_has_not(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    half = ("BF16", [2], b"\x80\x3f\x40\xc0")
    write(file, {"scale": half, "bias": ("F32", [], struct.pack("<f", 2.5))})
    with pytest.raises(CheckpointError, match=r"scale .* has dtype bfloat16(.|\n)*widen=True"):
        checkpoint.load(file)
    arrays = checkpoint.load(file, widen=True)
    assert arrays["scale"].dtype == np.float32
    np.testing.assert_array_equal(arrays["scale"], [1, -3])
    assert arrays["bias"] == np.float32(2.5)
    write(file, {"scale": half, "w": ("F8_E4M3", [1], b"a")})
    with pytest.raises(CheckpointError, match=r"w .* has dtype float8_e4m3fn"):
        checkpoint.load(file, widen=True)


@pytest.mark.parametrize("way", [nbcomp.jit, nbcomp.script])
def test_images_larger_than_memory_can_be_are_refused(way: Any) -> None:
    x, weight = np.zeros((1, 4, 8, 8), np.float32), np.zeros((6, 4, 3, 3), np.float32)
    with pytest.raises(ValueError, match=r"array is too big|Maximum allowed dimension"):
        way(lambda x, w: F.conv2d(x, w, padding=2**62))(x, weight)
