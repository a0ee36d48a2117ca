"""Sorting and searching: library routines run by NumPy itself, and the places of extremes, which
are loops where that is faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import UNSET, traces
from nbcomp.graph.op import Composite, Library, Sample
from nbcomp.ops import values
from nbcomp.ops.create import Iota
from nbcomp.ops.join import flat
from nbcomp.ops.move import expanded
from nbcomp.ops.operand import (
    as_node,
    ask,
    at_least_1d,
    broadcast_to,
    cast,
    constant,
    integers,
    normal_axis,
    result_type,
    traced,
)
from nbcomp.sizes import Size, hint
from nbcomp.types import FLOAT32, FLOAT64, INT64, DType, TensorType


@dataclass(frozen=True)
class AlongAxis(Library):
    """A routine that works along one axis and keeps the shape."""

    axis: int

    def _samples(self, rng: np.random.Generator, *attributes: Any) -> Iterator[Sample]:
        make: Any = type(self)
        for dtype in values.DTYPES:
            yield Sample(make(0, *attributes), (values.mixed(rng, dtype),))
        for axis, shape in ((0, (5, 37)), (1, (5, 37)), (1, (2, 3, 4)), (0, (1,)), (0, (100,))):
            yield Sample(make(axis, *attributes), (values.ordinary(rng, FLOAT32, shape),))


@dataclass(frozen=True)
class Sort(AlongAxis, name="sort"):
    """Sorted along an axis, NaN last"""

    kind: str | None = None

    takes_out: ClassVar[bool] = True

    def infer(self, *types: TensorType) -> TensorType:
        return types[0]

    def reference(self, *arrays: Any, out: Any = None) -> Any:
        result: Any = np.array(arrays[0]) if out is None else out
        if out is not None:
            np.copyto(out, arrays[0])
        result.sort(self.axis, kind=self.kind)
        return result

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        yield from cls(0)._samples(rng)
        yield from cls(0)._samples(rng, "stable")


@dataclass(frozen=True)
class ArgSort(AlongAxis, name="argsort"):
    """The indices that sort along an axis"""

    kind: str | None = None

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(INT64, types[0].shape)

    def reference(self, *arrays: Any) -> Any:
        argsort: Any = np.argsort
        return argsort(arrays[0], self.axis, kind=self.kind)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        yield from cls(0)._samples(rng)
        yield from cls(0)._samples(rng, "stable")


@dataclass(frozen=True)
class Partition(AlongAxis, name="partition"):
    """The smallest first: the elements at these places are where sorting would put them"""

    places: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        return types[0]

    def reference(self, *arrays: Any) -> Any:
        return np.partition(arrays[0], self.places, self.axis)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        yield from cls(0, ())._samples(rng, (0,))
        yield Sample(cls(0, (3, 10)), (values.ordinary(rng, FLOAT32, (37,)),))


@dataclass(frozen=True)
class ArgPartition(AlongAxis, name="argpartition"):
    """The indices that partition along an axis"""

    places: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(INT64, types[0].shape)

    def reference(self, *arrays: Any) -> Any:
        return np.argpartition(arrays[0], self.places, self.axis)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        yield from cls(0, ())._samples(rng, (0,))
        yield Sample(cls(0, (3, 10)), (values.ordinary(rng, FLOAT32, (37,)),))


FEW = 64  # elements along an axis, at which NumPy starts anew for each row
SHORT = 1 << 14  # elements that loops have searched before NumPy has been called
SHARED = 1 << 18  # elements of several rows that are worth all cores


@dataclass(frozen=True)
class ArgExtreme(Composite):
    """The first place of an extreme element along an axis.

    NumPy walks over an axis once, on one core, and stops at a NaN; loops find the extreme, then its
    first place, a row at a time.
    """

    axis: int
    keepdims: bool

    extreme: ClassVar[str]  # of NumPy's functions

    def expand(self, *inputs: Node) -> Node:
        (x,) = inputs
        if not self._by_loops(x):
            return apply(Search(self.name, self.axis, self.keepdims), x)
        n = x.shape[self.axis]
        best = traced(getattr(np, self.extreme), x, self.axis, keepdims=True)
        found = traced(np.equal, x, best)
        if x.type.dtype.kind == "f":
            found = traced(np.logical_or, found, traced(np.not_equal, x, x))
        dtype, most = _place_dtype(n)
        last = len(x.shape) - 1 - self.axis % len(x.shape)
        place = expanded(apply(Iota(dtype, n, 0, 1)), *range(1, last + 1))
        places = traced(np.where, found, place, constant(most, dtype))
        return cast(traced(np.min, places, self.axis, keepdims=self.keepdims), INT64)

    def _by_loops(self, x: Node) -> bool:
        size, n = hint(x.type.size), hint(x.shape[self.axis])
        last = self.axis % len(x.shape) == len(x.shape) - 1
        shared = size >= SHARED and size >= 8 * n
        return bool(size <= SHORT or n <= FEW or not last or shared)

    def infer(self, *types: TensorType) -> TensorType:
        shape = list(types[0].shape)
        if shape[self.axis] == 0:
            self.reference(np.empty(shape))  # raises
        shape[self.axis : self.axis + 1] = [1] if self.keepdims else []
        return TensorType(INT64, tuple(shape))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in values.DTYPES:
            yield Sample(cls(0, False), (values.mixed(rng, dtype),))
        for axis, keepdims, shape in (
            (0, True, (5, 37)),
            (1, False, (5, 37)),
            (1, True, (2, 3, 4)),
            (0, False, (1,)),
            (1, False, (0, 3)),
        ):
            yield Sample(cls(axis, keepdims), (values.ordinary(rng, np.int8, shape),))
        ties = np.array([[0.0, -0.0, 1.0, 1.0], [np.nan, 3.0, np.nan, -np.inf]])
        yield Sample(cls(1, False), (ties,))
        yield Sample(cls(0, False), (values.ordinary(rng, FLOAT32, (SHORT + 7,)),))


def _place_dtype(n: int) -> tuple[DType, int]:
    """The narrowest dtype for the places along an axis, of which more fit in a vector, and its
    largest value."""
    for size in (2, 4, 8):
        most = (1 << 8 * size - 1) - 1
        if size == 8 or (not isinstance(n, Size) and n <= most):
            break
    return np.dtype(f"i{size}"), most


@dataclass(frozen=True)
class Search(Library, name="search"):
    """The first place of an extreme element along an axis, by NumPy"""

    fn: str
    axis: int
    keepdims: bool

    def infer(self, *types: TensorType) -> TensorType:
        return (ArgMax if self.fn == "argmax" else ArgMin)(self.axis, self.keepdims).infer(*types)

    def reference(self, *arrays: Any) -> Any:
        return getattr(np, self.fn)(arrays[0], self.axis, keepdims=self.keepdims)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for fn, dtype in product(("argmax", "argmin"), values.DTYPES):
            yield Sample(cls(fn, 0, False), (values.mixed(rng, dtype),))
        yield Sample(cls("argmax", 1, True), (values.ordinary(rng, FLOAT32, (5, 37)),))


@dataclass(frozen=True)
class ArgMax(ArgExtreme, name="argmax"):
    """The first place of the largest element along an axis; of NaN if there is one"""

    extreme: ClassVar[str] = "max"

    def reference(self, *arrays: Any) -> Any:
        return np.argmax(arrays[0], self.axis, keepdims=self.keepdims)


@dataclass(frozen=True)
class ArgMin(ArgExtreme, name="argmin"):
    """The first place of the smallest element along an axis; of NaN if there is one"""

    extreme: ClassVar[str] = "min"

    def reference(self, *arrays: Any) -> Any:
        return np.argmin(arrays[0], self.axis, keepdims=self.keepdims)


# ---------------------------------------------------------------------------------------- functions


def _on_axis(a: Any, axis: Any) -> tuple[Node, int]:
    """The array and the axis; no axis means the flattened array."""
    node = as_node(a)
    if axis is None:
        return flat(node), 0
    return node, normal_axis(axis, len(node.shape))


@traces(np.sort)
def _sort(a: Any, axis: Any = -1, kind: Any = None, stable: Any = None) -> Node:
    node, where = _on_axis(a, axis)
    return apply(Sort(where, _kind(kind, stable)), node)


@traces(np.argsort)
def _argsort(a: Any, axis: Any = -1, kind: Any = None, stable: Any = None) -> Node:
    node, where = _on_axis(at_least_1d(a), axis)
    return apply(ArgSort(where, _kind(kind, stable)), node)


def _kind(kind: Any, stable: Any) -> str | None:
    if stable is not None and kind is not None:
        raise ValueError("`kind` and keyword parameters can't be provided at the same time")
    name: str | None = "stable" if stable else kind
    if name is not None:
        sort: Any = np.sort
        sort(np.empty(0), kind=name)
    return name


@traces(np.partition)
def _partition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect") -> Node:
    node, where = _on_axis(a, axis)
    return apply(Partition(where, _places(kth, node, where)), node)


@traces(np.argpartition)
def _argpartition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect") -> Node:
    node, where = _on_axis(a, axis)
    return apply(ArgPartition(where, _places(kth, node, where)), node)


def _places(kth: Any, node: Node, axis: int) -> tuple[int, ...]:
    places, n = integers(kth, "kth"), node.shape[axis]
    for k in places:
        if not -n <= k < n:
            raise ValueError(f"kth(={k}) out of bounds ({n})")
    return tuple(k % n for k in places)


@traces(np.argmax)
def _argmax(a: Any, axis: Any = None, keepdims: Any = False) -> Node:
    return _arg_extreme(ArgMax, a, axis, keepdims)


@traces(np.argmin)
def _argmin(a: Any, axis: Any = None, keepdims: Any = False) -> Node:
    return _arg_extreme(ArgMin, a, axis, keepdims)


def _arg_extreme(op: type[ArgExtreme], a: Any, axis: Any, keepdims: Any) -> Node:
    whole = as_node(a)
    keep = keepdims is not UNSET and bool(keepdims)
    node, where = _on_axis(whole if whole.shape else flat(whole), axis)
    result = apply(op(where, keep and axis is not None), node)
    return traced(np.reshape, result, (1,) * len(whole.shape)) if keep and axis is None else result


@dataclass(frozen=True)
class LexSort(Library, name="lexsort"):
    """The indices that sort by the last operand, ties by those before it"""

    axis: int

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(INT64, types[0].shape)

    def reference(self, *arrays: Any) -> Any:
        return np.lexsort(arrays, self.axis)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for count, shape in ((1, (17,)), (2, (37,)), (3, (5, 4))):
            keys = (values.ordinary(rng, np.int8, shape) for _ in range(count))
            yield Sample(cls(len(shape) - 1), tuple(keys))


@traces(np.lexsort)
def _lexsort(keys: Any, axis: Any = -1) -> Node:
    rows = (
        [traced(np.take, keys, k, 0) for k in range(keys.shape[0])]
        if isinstance(keys, Node)
        else keys
    )
    nodes = list(map(as_node, rows))
    if not nodes or len({n.shape for n in nodes}) > 1:
        ask(np.lexsort, [np.empty(n.shape) for n in nodes], axis)
    return apply(LexSort(normal_axis(axis, len(nodes[0].shape))), *nodes)


@dataclass(frozen=True)
class SearchSorted(Library, name="searchsorted"):
    """Where values belong in a sorted array"""

    side: str

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(INT64, types[1].shape)

    def reference(self, *arrays: Any) -> Any:
        search: Any = np.searchsorted
        return search(arrays[0], arrays[1], self.side)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for side in ("left", "right"):
            for shape in ((), (0,), (5, 7)):
                a = np.sort(values.ordinary(rng, FLOAT32, (17,)))
                yield Sample(cls(side), (a, values.ordinary(rng, FLOAT32, shape)))


@traces(np.searchsorted)
def _searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Node:
    table, wanted = as_node(a), as_node(v)
    if side not in ("left", "right") or len(table.shape) != 1:
        ask(np.searchsorted, np.empty(table.shape), 0.0, side)
    if sorter is not None:
        table = traced(np.take, table, sorter)
    dtype = result_type(table, wanted)
    return apply(SearchSorted(side), cast(table, dtype), cast(wanted, dtype))


@dataclass(frozen=True)
class Digitize(Library, name="digitize"):
    """The number of the bin each value falls into"""

    raises: ClassVar[bool] = True

    right: bool

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(INT64, types[0].shape)

    def reference(self, *arrays: Any) -> Any:
        return np.digitize(arrays[0], arrays[1], right=self.right)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for right in (False, True):
            for bins in (np.array([-1.0, 0.0, 2.0]), np.array([3.0, 1.0]), np.array([0.0])):
                yield Sample(cls(right), (values.ordinary(rng, FLOAT64, (17,)), bins))


@traces(np.digitize)
def _digitize(x: Any, bins: Any, right: Any = False) -> Node:
    node, edges = as_node(x), as_node(bins)
    if len(edges.shape) != 1:
        ask(np.digitize, 0.0, np.empty(edges.shape))
    return apply(Digitize(bool(right)), node, edges)


@dataclass(frozen=True)
class IsIn(Library, name="isin"):
    """Whether each element is one of the second operand's"""

    invert: bool

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(np.dtype(bool), types[0].shape)

    def reference(self, *arrays: Any) -> Any:
        return np.isin(arrays[0], arrays[1], invert=self.invert)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in (np.int8, np.float32, np.uint64):
            for shape in ((), (17,), (5, 0)):
                x = values.ordinary(rng, dtype, shape)
                yield Sample(cls(False), (x, values.edges(dtype)))
                yield Sample(cls(True), (x, np.array([1, 3], dtype)))


@traces(np.isin)
def _isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    kind: Any = None,
) -> Node:
    return apply(IsIn(bool(invert)), as_node(element), as_node(test_elements))


@dataclass(frozen=True)
class Interp(Library, name="interp"):
    """Values of the broken line through the points (xp, fp)

    Operands: x, xp, fp, and what counts to the left and to the right of the points.
    """

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(FLOAT64, types[0].shape)

    def reference(self, *arrays: Any) -> Any:
        x, xp, fp, left, right = arrays
        return np.interp(x, xp, fp, float(left), float(right))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        xp, fp = np.array([0.0, 1.0, 3.0]), np.array([1.0, -1.0, 5.0])
        for shape in ((), (17,), (5, 0)):
            x = values.ordinary(rng, FLOAT64, shape)
            yield Sample(cls(), (x, xp, fp, np.float64(-9), np.float64(9)))


@traces(np.interp)
def _interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Node:
    if period is not None:
        raise Unsupported("period= of np.interp is not compiled", hint="reduce x by % period first")
    nodes = [cast(as_node(v), FLOAT64) for v in (x, xp, fp)]
    if len(nodes[1].shape) != 1 or nodes[1].shape != nodes[2].shape or not nodes[1].shape[0]:
        np.interp(0.0, np.zeros(nodes[1].shape), np.zeros(nodes[2].shape))
    ends = [
        traced(np.take, nodes[2], place) if end is None else cast(as_node(end), FLOAT64)
        for place, end in ((0, left), (-1, right))
    ]
    return apply(Interp(), *nodes, *(broadcast_to(e, ()) for e in ends))
