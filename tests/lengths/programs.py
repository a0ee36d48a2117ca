"""Programs whose lengths are left open: the function, the shapes of its arguments (a name is an
open length), and how many times it may be compiled for all of LENGTHS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Shape = tuple[int | str, ...]


@dataclass(frozen=True)
class Program:
    """compiles: regimes of lengths (few, many, more than the caches hold) have loops of their
    own, and so do lengths that are equal to another of the program's."""

    function: Callable[..., Any]
    shapes: tuple[Shape, ...]
    compiles: int = 10
    dtype: str = "f4"
    longest: int = 5000


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layernorm(x: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)


def attention(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.T / np.float32(4)) @ v


def doubled(x: Any) -> Any:
    x[:] = x * 2
    x[1:] += 1
    return x.sum()


def through_a_view(x: Any) -> Any:
    rows = x.reshape(len(x) * 2, -1)
    rows[0] = 0
    return x + 1


def written_and_returned(x: Any) -> Any:
    x += 1
    inner = x[1:-1]
    return [inner, inner, x.sum(0)]


def halves(x: Any) -> Any:
    y = x * 2
    return y[: len(x) // 2], y[len(x) // 2 :], y.T


def running(x: Any) -> Any:
    total = np.zeros(len(x), x.dtype)
    for k in range(3):
        total = total + x[:, k]
    return total / x.shape[0]


def shape_decides(x: Any) -> Any:
    return x * 2 if x.shape[0] > 4 else x + 1


def several(x: Any) -> Any:
    return {"sum": x.sum(0), "rows": len(x), "all": (x.T, [x[::2]])}


PROGRAMS: dict[str, Program] = {
    "map": Program(lambda x: np.exp(x) * 2 + 1, (("n", 30),)),
    "vector": Program(lambda x: x * x - 1, (("n",),)),
    "sum": Program(lambda x: x.sum(), (("n", 7),)),
    "sum rows": Program(lambda x: x.sum(1), (("n", 30),)),
    "sum columns": Program(lambda x: x.sum(0), (("n", 30),)),
    "max of open columns": Program(lambda x: x.max(1), ((7, "n"),)),
    "mean": Program(lambda x: x.mean(0), (("n", 30),)),
    "var": Program(lambda x: x.var(0), (("n", 9),)),
    "mean by len": Program(lambda x: x.sum(0) / len(x), (("n", 30),)),
    "softmax": Program(softmax, (("n", 100),)),
    "softmax of open rows": Program(softmax, ((5, "n"),)),
    "layernorm": Program(layernorm, (("n", 64),)),
    "matmul": Program(lambda x, w: x @ w, (("n", 64), (64, 32))),
    "mlp": Program(lambda x, w, v: np.maximum(x @ w + 1, 0) @ v, (("n", 64), (64, 32), (32, 10))),
    "three lengths": Program(lambda x, y: x @ y, (("n", "k"), ("k", "m")), longest=1000),
    "attention": Program(attention, (("n", 16), ("m", 16), ("m", 16)), 13),
    "flatten": Program(lambda x: x.reshape(-1) * 2, (("n", 12),)),
    "ravel": Program(lambda x: np.ravel(x).sum(), (("n", 12),)),
    "split axis": Program(lambda x: x.reshape(x.shape[0], 3, 4).sum(1), (("n", 12),)),
    "fold axes": Program(lambda x: x.reshape(-1, 6) + 1, (("n", 12),)),
    "broadcast": Program(lambda x, y: x + y, (("n", 12), (12,))),
    "same length": Program(lambda x, y: x * y, (("n",), ("n",))),
    "outer": Program(lambda x, y: x[:, None] * y, (("n",), ("m",))),
    "concatenate": Program(lambda x, y: np.concatenate([x, y]), (("n", 5), ("m", 5))),
    "stack": Program(lambda x: np.stack([x, x * 2]), (("n", 12),)),
    "interior": Program(lambda x: x[1:-1] - x[:-2], (("n", 12),)),
    "backwards": Program(lambda x: x[::-1] + 1, (("n",),)),
    "every other": Program(lambda x: x[::2] * 3, (("n",),)),
    "last rows": Program(lambda x: x[-2:] * 2, (("n", 12),)),
    "last": Program(lambda x: x[-1] * 2, (("n", 12),)),
    "first half": Program(lambda x: x[: len(x) // 2] + 1, (("n",),)),
    "arange": Program(lambda x: x * np.arange(len(x)), (("n",),)),
    "eye": Program(lambda x: x @ np.eye(x.shape[1], dtype=x.dtype), ((3, "n"),)),
    "zeros": Program(lambda x: np.zeros((len(x), 3), x.dtype) + x[:, None], (("n",),)),
    "transpose": Program(lambda x: x.T + 1, (("n", 12),)),
    "sum of a transpose": Program(lambda x: x.T.sum(1), (("n", 12),)),
    "roll": Program(lambda x: np.roll(x, 1) + x, (("n",),)),
    "pad": Program(lambda x: np.pad(x, 2) * 2, (("n",),)),
    "where": Program(lambda x: np.where(x > 0.5, x, 0).sum(), (("n", 5),)),
    "normalised": Program(lambda x: x / x.sum(), (("n",),)),
    "len": Program(lambda x: (x * 2, len(x), x.size), (("n", 3),)),
    "float of len": Program(lambda x: x * (1.0 / len(x)) + 2.5 * len(x), (("n",),)),
    "whole numbers": Program(lambda x: x * len(x) + x.shape[0] // 2, (("n",),), 5, "i4"),
    "shape decides": Program(shape_decides, (("n",),)),
    "running": Program(running, (("n", 3),)),
    "writes": Program(doubled, (("n", 4),)),
    "view": Program(through_a_view, (("n", 4),)),
    "written and returned": Program(written_and_returned, (("n", 4),)),
    "halves": Program(halves, (("n", 4),)),
    "several": Program(several, (("n", 3),)),
    "columns": Program(lambda x: (x * x).sum(0), (("n", "m"),), 11),
    "distance": Program(
        lambda x, y: ((x[:, None, :] - y[None, :, :]) ** 2).sum(-1), (("n", 3), ("m", 3))
    ),
}

LENGTHS = (40, 41, 2, 3, 5, 17, 0, 1, 100, 64, 1000, 777, 40, 30, 12, 5000)
