"""Counting: bins, histograms, and places as numbers; library routines, run by NumPy itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import traces
from nbcomp.graph.op import Library, Sample
from nbcomp.ops import values
from nbcomp.ops.create import made
from nbcomp.ops.operand import (
    as_node,
    cast,
    integer,
    integers,
    traced,
)
from nbcomp.sizes import broadcast_shapes
from nbcomp.types import FLOAT32, FLOAT64, INT64, TensorType

# -------------------------------------------------------------------------------------------- bins


@dataclass(frozen=True)
class BinCount(Library, name="bincount"):
    """How often each number below a length occurs, or the sum of its weights"""

    raises: ClassVar[bool] = True

    length: int

    def infer(self, *types: TensorType) -> TensorType:
        weighted = len(types) > 1 and types[0].size > 0  # NumPy forgets the weights of nothing
        return TensorType(FLOAT64 if weighted else INT64, (self.length,))

    def reference(self, *arrays: Any) -> Any:
        x, weights = (*arrays, None)[:2]
        counts = np.bincount(x, weights, self.length)
        if counts.size > self.length:
            raise Unsupported(
                f"np.bincount met {counts.size - 1}, beyond minlength={self.length}, and gives "
                "a longer array",
                hint="give a minlength above every number",
            )
        return counts

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for size in (0, 1, 100):
            x = rng.integers(0, 9, size)
            yield Sample(cls(9), (x,))
            yield Sample(cls(12), (x, rng.random(size)))


@traces(np.bincount)
def _bincount(x: Any, weights: Any = None, minlength: Any = 0) -> Node:
    node, length = as_node(x), integer(minlength)
    if node.type.dtype.kind not in "biu" or len(node.shape) != 1:
        np.bincount(np.ones((1,) * len(node.shape), node.type.dtype))
    if length <= 0:
        raise Unsupported(
            "np.bincount gives an array whose length is the largest number",
            hint="give a minlength above every number: np.bincount(x, minlength=n)",
        )
    more = [] if weights is None else [cast(as_node(weights), FLOAT64)]
    if more and more[0].shape != node.shape:
        np.bincount(np.zeros(node.shape, int), np.zeros(more[0].shape))
    return apply(BinCount(length), node, *more)


# --------------------------------------------------------------------------------------- histograms


@dataclass(frozen=True)
class Histogram(Library, name="histogram"):
    """How many elements fall into each bin; or their density

    Operands: x, the edges unless `bins` gives a number of equal bins, and optionally weights.
    """

    raises: ClassVar[bool] = True

    density: bool
    bins: int | None = None
    range: tuple[float, float] | None = None

    def infer(self, *types: TensorType) -> TensorType:
        bins = types[1].shape[0] - 1 if self.bins is None else self.bins
        rest = types[2:] if self.bins is None else types[1:]
        dtype = rest[0].dtype if rest else INT64
        return TensorType(FLOAT64 if self.density else dtype, (bins,))

    def reference(self, *arrays: Any) -> Any:
        x, *rest = arrays
        bins = rest.pop(0) if self.bins is None else self.bins
        weights = rest[0] if rest else None
        return np.histogram(x, bins, self.range, self.density, weights)[0]

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        edges = np.array([-4.0, -1.0, 0.0, 2.0])
        for density in (False, True):
            for shape in ((100,), (5, 7)):
                x = values.ordinary(rng, FLOAT32, shape)
                yield Sample(cls(density), (x, edges))
                yield Sample(cls(density), (x, edges, rng.random(shape)))
                yield Sample(cls(density, 7), (x,))
                yield Sample(cls(density, 7, (-1, 2)), (x, rng.random(shape)))


@dataclass(frozen=True)
class HistogramEdges(Library, name="histogram_edges"):
    """The edges of equal bins from the smallest element to the largest"""

    raises: ClassVar[bool] = True

    bins: int

    def infer(self, *types: TensorType) -> TensorType:
        edges = np.histogram_bin_edges(np.zeros(1, types[0].dtype), 1)
        return TensorType(edges.dtype, (self.bins + 1,))

    def reference(self, *arrays: Any) -> Any:
        return np.histogram_bin_edges(arrays[0], self.bins)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in (np.int32, np.float32, np.float64):
            yield Sample(cls(7), (values.ordinary(rng, dtype, (100,)),))
        yield Sample(cls(3), (np.empty(0),))


@traces(np.histogram_bin_edges)
def _histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None) -> Node:
    x = as_node(a)
    if isinstance(bins, str):
        raise Unsupported(f"bins={bins!r} makes a shape that depends on the data", hint="a number")
    if np.ndim(bins) == 0 and range is None:
        return apply(HistogramEdges(integer(bins, "the number of bins")), x)
    return made(np.histogram_bin_edges(np.zeros(1, x.type.dtype), bins, range))


@traces(np.histogram)
def _histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Node, Node]:
    x = as_node(a)
    edges = bins if isinstance(bins, Node) else _histogram_bin_edges(x, bins, range)
    more = [] if weights is None else [as_node(weights)]
    if np.ndim(bins) or isinstance(bins, Node):
        return apply(Histogram(bool(density)), x, edges, *more), edges
    limits = None if range is None else (float(range[0]), float(range[1]))
    op = Histogram(bool(density), integer(bins, "the number of bins"), limits)
    return apply(op, x, *more), edges


# ------------------------------------------------------------------------------ places as numbers


@dataclass(frozen=True)
class UnravelIndex(Library, name="unravel_index"):
    """One coordinate of the place with a flat index; places outside raise ValueError"""

    raises: ClassVar[bool] = True

    shape: tuple[int, ...]
    axis: int

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(INT64, types[0].shape)

    def reference(self, *arrays: Any) -> Any:
        return np.unravel_index(arrays[0], self.shape)[self.axis]

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((), (7,), (2, 3)):
            for axis in (0, 2):
                yield Sample(cls((3, 4, 5), axis), (rng.integers(0, 60, shape),))


@traces(np.unravel_index)
def _unravel_index(indices: Any, shape: Any) -> tuple[Node, ...]:
    places, sizes = as_node(indices), integers(shape)
    return tuple(apply(UnravelIndex(sizes, k), places) for k in range(len(sizes)))


@dataclass(frozen=True)
class RavelMultiIndex(Library, name="ravel_multi_index"):
    """The flat index of the place with these coordinates; places outside raise ValueError"""

    raises: ClassVar[bool] = True

    dims: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(INT64, broadcast_shapes(*(t.shape for t in types)))

    def reference(self, *arrays: Any) -> Any:
        return np.ravel_multi_index(arrays, self.dims)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((), (7,), (2, 3)):
            yield Sample(cls((3, 4)), (rng.integers(0, 3, shape), rng.integers(0, 4, shape)))


@traces(np.ravel_multi_index)
def _ravel_multi_index(multi_index: Any, dims: Any) -> Node:
    sizes = integers(dims)
    rows = (
        [traced(np.take, multi_index, k, 0) for k in range(multi_index.shape[0])]
        if isinstance(multi_index, Node)
        else multi_index
    )
    return apply(RavelMultiIndex(sizes), *map(as_node, rows))
