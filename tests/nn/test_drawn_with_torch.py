"""Functions of `nn.functional`, compiled, against PyTorch's where it is installed: drawn shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.nn import functional as F

torch = pytest.importorskip("torch")

Array = np.ndarray[Any, Any]
Drawn = tuple[str, tuple[Any, ...], dict[str, Any]]  # the function, its arrays, its options


def _array(rng: np.random.Generator, *shape: int) -> Array:
    dtype = rng.choice([np.float32, np.float64])
    return rng.standard_normal(shape).astype(dtype)


def _like(rng: np.random.Generator, x: Array, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(x.dtype)


def _ints(rng: np.random.Generator, low: int, high: int, count: int) -> tuple[int, ...]:
    return tuple(map(int, rng.integers(low, high, count)))


def convolution(rng: np.random.Generator) -> Drawn:
    space, groups, each, out = (int(rng.integers(1, n)) for n in (4, 4, 5, 6))
    kernel, dilation = _ints(rng, 1, 4, space), _ints(rng, 1, 3, space)
    x = _array(rng, int(rng.integers(1, 3)), groups * each, *_ints(rng, 7, 14, space))
    weight = _like(rng, x, groups * out, each, *kernel)
    options = {
        **{"stride": _ints(rng, 1, 4, space), "padding": _ints(rng, 0, 3, space)},
        **{"dilation": dilation, "groups": groups},
    }
    return f"conv{space}d", (x, weight, _like(rng, x, groups * out)), options


def transposed(rng: np.random.Generator) -> Drawn:
    space, groups, each, out = (int(rng.integers(1, n)) for n in (4, 4, 5, 6))
    stride = _ints(rng, 1, 4, space)
    x = _array(rng, 2, groups * each, *_ints(rng, 3, 8, space))
    weight = _like(rng, x, groups * each, out, *_ints(rng, 1, 4, space))
    options = {
        **{
            "stride": stride,
            "padding": _ints(rng, 0, 2, space),
            "dilation": _ints(rng, 1, 3, space),
        },
        **{"groups": groups, "output_padding": tuple(int(rng.integers(0, s)) for s in stride)},
    }
    return f"conv_transpose{space}d", (x, weight, _like(rng, x, groups * out)), options


def pool(rng: np.random.Generator) -> Drawn:
    space = int(rng.integers(1, 4))
    kernel = _ints(rng, 1, 5, space)
    options: dict[str, Any] = {
        **{"kernel_size": kernel, "stride": _ints(rng, 1, 4, space)},
        **{"padding": tuple(int(rng.integers(0, k // 2 + 1)) for k in kernel)},
        "ceil_mode": bool(rng.integers(2)),
    }
    x = _array(rng, 2, int(rng.integers(1, 5)), *_ints(rng, 7, 14, space))
    if rng.integers(2):
        return f"max_pool{space}d", (x,), options
    return f"avg_pool{space}d", (x,), {**options, "count_include_pad": bool(rng.integers(2))}


def adaptive(rng: np.random.Generator) -> Drawn:
    space = int(rng.integers(1, 4))
    x = _array(rng, 2, 3, *_ints(rng, 4, 12, space))
    kind = rng.choice(["avg", "max"])
    return f"adaptive_{kind}_pool{space}d", (x, _ints(rng, 1, 6, space)), {}


def resize(rng: np.random.Generator) -> Drawn:
    space = int(rng.integers(1, 4))
    x = _array(rng, 2, 3, *_ints(rng, 2, 9, space))
    line = ("linear", "bilinear", "trilinear")[space - 1]
    mode = str(rng.choice(["nearest", "nearest-exact", line, line]))
    options: dict[str, Any] = {"mode": mode}
    if mode == line:
        options["align_corners"] = bool(rng.integers(2))
    if rng.integers(2):
        return "interpolate", (x,), {**options, "size": _ints(rng, 1, 15, space)}
    return "interpolate", (x,), {**options, "scale_factor": float(rng.choice([2, 1.5, 0.5, 3]))}


def attention(rng: np.random.Generator) -> Drawn:
    batch, shared, group, n, m, d = _ints(rng, 1, 4, 1) + _ints(rng, 1, 4, 2) + _ints(rng, 1, 40, 3)
    q = _array(rng, batch, shared * group, n, d)
    k, v = (_like(rng, q, batch, shared, m, d) for _ in range(2))
    options: dict[str, Any] = {"enable_gqa": True}
    kind = rng.integers(4)
    if kind == 0:
        options["is_causal"] = True
    if kind == 1:
        options["attn_mask"] = rng.random((n, m)) < 0.7
        options["attn_mask"][:, 0] = True
    if kind == 2:
        heads = int(rng.choice([1, shared * group]))
        options["attn_mask"] = _like(rng, q, batch, heads, n, m)
    return "scaled_dot_product_attention", (q, k, v), options


def norm(rng: np.random.Generator) -> Drawn:
    groups, each, space = (int(rng.integers(1, n)) for n in (4, 5, 3))
    c = groups * each
    x = _array(rng, int(rng.integers(2, 4)), c, *_ints(rng, 3, 9, space))
    weight, bias = _like(rng, x, c), _like(rng, x, c)
    kind = rng.integers(5)
    if kind == 0:
        return "group_norm", (x, groups, weight, bias), {}
    if kind == 1:
        return "layer_norm", (x, x.shape[-1:], *(_like(rng, x, x.shape[-1]) for _ in "wb")), {}
    if kind == 2:
        return "rms_norm", (x, x.shape[-1:], _like(rng, x, x.shape[-1])), {"eps": 1e-5}
    if kind == 3:
        return "instance_norm", (x,), {"weight": weight, "bias": bias}
    return "batch_norm", (x, _like(rng, x, c), np.abs(_like(rng, x, c)) + 0.5, weight, bias), {}


KINDS: list[Callable[[np.random.Generator], Drawn]] = [
    convolution, transposed, pool, adaptive, resize, attention, norm,
]  # fmt: skip


def _theirs(value: Any) -> Any:
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_drawn(kind: Any, seed: int) -> None:
    name, given, options = kind(np.random.default_rng(seed))
    places = [k for k, value in enumerate(given) if isinstance(value, np.ndarray)]
    arrays = [given[k] for k in places]
    mask = [v for v in options.values() if isinstance(v, np.ndarray)]

    def call(*found: Any) -> Any:
        rest = iter(found)
        args = [next(rest) if k in places else value for k, value in enumerate(given)]
        named = {k: next(rest) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        return getattr(F, name)(*args, **named)

    try:
        with torch.no_grad():
            theirs = getattr(torch.nn.functional, name)
            wanted = theirs(*map(_theirs, given), **{k: _theirs(v) for k, v in options.items()})
    except RuntimeError:  # windows that do not fit
        with pytest.raises((ValueError, TypeError)):
            call(*arrays, *mask)
        return
    expected = wanted.numpy()
    tolerance = {np.float32: 2e-4, np.float64: 1e-10}[expected.dtype.type]
    for got in (call(*arrays, *mask), nbcomp.compile(call, *arrays, *mask)(*arrays, *mask)):
        assert got.shape == expected.shape
        assert got.dtype == expected.dtype
        scale = 1 + np.abs(expected).max(initial=0)
        assert np.abs(got - expected).max(initial=0) <= tolerance * scale
