"""The ten kernels that the tuner is judged by, each with the least that any schedule of it must do.

The least is code too, compiled and timed in the same run (`benchmarks.floors`), since peaks and
plain copies are far from what some kernels can reach:

* softmax and layer norm: one pass over the rows with all operations of the three that are needed,
  each on what is there at once (a row's mean, say, is given and not waited for).  The same exps,
  divisions and sums of the same bytes.
* depthwise: the same windows on an image whose margins are there: the multiply-adds, and what must
  be loaded for them.
* transpose: blocks of 16 lines of 16 elements, as registers turn them, are moved to where they
  belong without being turned.  Lines of rows that lie a multiple of the page apart share few sets
  of the caches, so this takes twice as long as a plain copy.  Larger blocks move faster, but have
  to be held somewhere until they are turned: no order of holding and turning them was found, also
  not by hand, that is faster than the small ones.
* products and convolutions: their multiply-adds at the peak.
* attention: besides these, one pass over its scores as softmax's, on rows that are in the cache:
  exps and divisions are multiply-adds, too, on the same units.
* sums of columns: reading.  That each element has an accumulator of its own, which are too many for
  the registers, is not counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbcomp.nn import functional as F

LINE = 16  # float32 of a cache line


@dataclass(frozen=True)
class Least:
    """The least work of a kernel: a function, what it is called with for the kernel's arguments,
    and in a word or two what it is.

    times: how often, on one core, besides the multiply-adds; 0 if it is all there is, on all cores.
    """

    by: str
    function: Callable[..., Any]
    given: Callable[..., tuple[Any, ...]]
    times: int = 0


@dataclass(frozen=True)
class Subject:
    """A kernel to tune: a function of arrays of these shapes (float32)."""

    name: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    least: Least | None = None

    def arguments(self) -> list[Any]:
        """The arrays, from a fixed seed."""
        rng = np.random.default_rng(0)
        return [rng.standard_normal(shape, dtype=np.float32) for shape in self.shapes]


def layer_norm(x: Any) -> Any:
    """Rows with mean 0 and variance 1."""
    d = x - x.mean(axis=-1, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=-1, keepdims=True) + np.float32(1e-5))


def _norm_at_once(x: Any, mean: Any, deviation: Any) -> Any:
    d = x - mean
    return d / deviation, x.sum(axis=-1), (d * d).sum(axis=-1)


def softmax(x: Any) -> Any:
    """Rows that add up to 1."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _softmax_at_once(x: Any, most: Any, total: Any) -> Any:
    e = np.exp(x - most)
    return e / total, x.max(axis=-1), e.sum(axis=-1)


def _with_two_of_each_row(x: Any) -> tuple[Any, ...]:
    return x, x.max(axis=-1, keepdims=True), np.abs(x).sum(axis=-1, keepdims=True)


def attention(q: Any, k: Any, v: Any) -> Any:
    """Scaled dot-product attention of heads."""
    scores = q @ k.swapaxes(-1, -2) * np.float32(1 / math.sqrt(q.shape[-1]))
    return softmax(scores) @ v


def _scores_of_a_head(q: Any, k: Any, v: Any) -> tuple[Any, ...]:
    return _with_two_of_each_row(q[0] @ k[0].T)


def _blocks_moved(x: Any) -> Any:
    rows, columns = x.shape
    blocks = x.reshape(rows // LINE, LINE, columns // LINE, LINE)
    return blocks.transpose(2, 1, 0, 3).copy()


def _with_margins(x: Any, w: Any) -> tuple[Any, ...]:
    return np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), w


SUBJECTS = (
    Subject("gemm", lambda a, b: a @ b, ((384, 768), (768, 768))),
    Subject("batched gemm", lambda a, b: a @ b, ((16, 128, 64), (16, 64, 128))),
    Subject("conv 3x3", lambda x, w: F.conv2d(x, w, padding=1), ((1, 64, 28, 28), (64, 64, 3, 3))),
    Subject("conv 1x1", lambda x, w: F.conv2d(x, w), ((1, 128, 28, 28), (128, 128, 1, 1))),
    Subject(
        "depthwise",
        lambda x, w: F.conv2d(x, w, padding=1, groups=96),
        ((1, 96, 56, 56), (96, 1, 3, 3)),
        Least("no margins", lambda x, w: F.conv2d(x, w, groups=96), _with_margins),
    ),
    Subject(
        "softmax",
        softmax,
        ((1024, 1024),),
        Least("one pass", _softmax_at_once, _with_two_of_each_row),
    ),
    Subject(
        "layernorm",
        layer_norm,
        ((1024, 768),),
        Least("one pass", _norm_at_once, _with_two_of_each_row),
    ),
    Subject(
        "transpose",
        lambda x: x.T.copy(),
        ((1024, 1024),),
        Least("blocks", _blocks_moved, lambda x: (x,)),
    ),
    Subject("columns", lambda x: (x * x).sum(axis=0), ((2048, 1024),)),
    Subject(
        "attention",
        attention,
        ((8, 256, 64),) * 3,
        Least("arithmetic", _softmax_at_once, _scores_of_a_head, times=8),
    ),
)
