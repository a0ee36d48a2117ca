"""Views: operators whose every element is an element of their operand, and `reshape`.

Each is an affine map from the result's index to the operand's.  The NumPy functions that give views
(swapaxes, flip, ravel, diagonal, ...) are written in a handful of them.  Which arguments are legal,
NumPy decides: taking the view of an array without storage costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import traces
from nbcomp.graph.op import Op, Sample, View, phantom
from nbcomp.loop.grammar import Expr, affine, index_add, index_scale
from nbcomp.ops import values
from nbcomp.ops.operand import as_node, as_shape, ask, integer, integers, normal_axis
from nbcomp.shapes import Shaped, asked
from nbcomp.sizes import broadcast_shapes, cut
from nbcomp.types import FLOAT32, TensorType


@dataclass(frozen=True)
class Transpose(View, name="transpose"):
    """The axes in another order: axis k of the result is axis axes[k] of the operand"""

    axes: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        (t,) = types
        return TensorType(t.dtype, tuple(t.shape[a] for a in self.axes))

    def reference(self, *arrays: Any) -> Any:
        return np.transpose(arrays[0], self.axes)

    def source(self, index: tuple[Expr, ...], operand: TensorType) -> tuple[Expr, ...]:
        return tuple(index[self.axes.index(k)] for k in range(operand.ndim))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample(cls(()), (values.ordinary(rng, FLOAT32, ()),))
        for axes, shape in (((1, 0), (5, 37)), ((2, 0, 1), (2, 3, 4)), ((1, 0), (0, 3))):
            yield Sample(cls(axes), (values.ordinary(rng, FLOAT32, shape),))


@dataclass(frozen=True)
class ExpandDims(View, name="expand_dims"):
    """New axes of length 1, at these places of the result"""

    axes: tuple[int, ...]  # sorted

    def infer(self, *types: TensorType) -> TensorType:
        (t,) = types
        rest = iter(t.shape)
        rank = t.ndim + len(self.axes)
        return TensorType(t.dtype, tuple(1 if k in self.axes else next(rest) for k in range(rank)))

    def reference(self, *arrays: Any) -> Any:
        return np.expand_dims(arrays[0], self.axes)

    def source(self, index: tuple[Expr, ...], operand: TensorType) -> tuple[Expr, ...]:
        return tuple(i for k, i in enumerate(index) if k not in self.axes)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for axes, shape in (((0,), ()), ((0, 2), (3, 4)), ((1,), (0,)), ((), (3,))):
            yield Sample(cls(axes), (values.ordinary(rng, FLOAT32, shape),))


@dataclass(frozen=True)
class Squeeze(View, name="squeeze"):
    """Without these axes, which have length 1"""

    axes: tuple[int, ...]  # sorted

    def infer(self, *types: TensorType) -> TensorType:
        (t,) = types
        if any(t.shape[a] != 1 for a in self.axes):
            np.squeeze(phantom(t), self.axes)
        return TensorType(t.dtype, tuple(n for k, n in enumerate(t.shape) if k not in self.axes))

    def reference(self, *arrays: Any) -> Any:
        return np.squeeze(arrays[0], self.axes)

    def source(self, index: tuple[Expr, ...], operand: TensorType) -> tuple[Expr, ...]:
        rest = iter(index)
        return tuple(affine(0) if k in self.axes else next(rest) for k in range(operand.ndim))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for axes, shape in (((0,), (1,)), ((0, 2), (1, 3, 1)), ((1,), (0, 1)), ((), (3,))):
            yield Sample(cls(axes), (values.ordinary(rng, FLOAT32, shape),))


@dataclass(frozen=True)
class BroadcastTo(View, name="broadcast_to"):
    """Repeated along new axes in front and axes of length 1, without being copied"""

    shape: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        (t,) = types
        if t.shape != self.shape:
            np.broadcast_to(asked(phantom(t), self.shape), self.shape)  # raises where it cannot
        return TensorType(t.dtype, self.shape)

    def reference(self, *arrays: Any) -> Any:
        return np.broadcast_to(arrays[0], self.shape)

    def source(self, index: tuple[Expr, ...], operand: TensorType) -> tuple[Expr, ...]:
        kept = index[len(index) - operand.ndim :]
        return tuple(i if n != 1 else affine(0) for i, n in zip(kept, operand.shape, strict=True))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for shape, old in (((3,), ()), ((2, 3, 4), (3, 1)), ((0, 3), (1, 3)), ((5,), (5,))):
            yield Sample(cls(shape), (values.ordinary(rng, FLOAT32, old),))


@dataclass(frozen=True)
class Slice(View, name="slice"):
    """Every step-th element from a start, per axis; a negative step walks backwards"""

    start: tuple[int, ...]
    step: tuple[int, ...]
    size: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(types[0].dtype, self.size)

    def key(self) -> tuple[slice, ...]:
        """The slices, as one writes them in brackets."""
        return tuple(map(_slice, self.start, self.step, self.size))

    def reference(self, *arrays: Any) -> Any:
        array = asked(arrays[0], self.start, self.step, self.size)
        if isinstance(array, Shaped):
            return array.stepped(self.step, self.size)
        key: Any = (*self.key(), ...)
        return np.asarray(arrays[0])[key]

    def source(self, index: tuple[Expr, ...], operand: TensorType) -> tuple[Expr, ...]:
        return tuple(map(index_scale, index, self.step, self.start))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        x = values.ordinary(rng, FLOAT32, (5, 37))
        for key in ((slice(1, 4), slice(None)), (slice(None, None, -1), slice(36, 2, -3))):
            yield Sample(cls.of(key, x.shape), (x,))
        yield Sample(cls.of((slice(3, 1), slice(7, 8)), x.shape), (x,))
        yield Sample(cls((), (), ()), (np.float32(3),))
        yield Sample(cls.of((slice(None),), (0,)), (np.ones(0, np.int8),))

    @classmethod
    def of(cls, key: Sequence[slice], shape: Sequence[int]) -> Slice:
        """The operator for one slice per axis, after Python's `slice.indices`."""
        cuts = [cut(k, n) for k, n in zip(key, shape, strict=True)]
        start, step, size = zip(*cuts, strict=True) if cuts else ((), (), ())
        return cls(tuple(start), tuple(step), tuple(size))


def _slice(start: int, step: int, size: int) -> slice:
    if size == 0:
        return slice(0, 0)
    stop = start + step * size
    return slice(start, None if stop < 0 else stop, step)


@dataclass(frozen=True)
class Diagonal(View, name="diagonal"):
    """The elements whose indices on two axes differ by an offset, as a new last axis"""

    offset: int
    axis1: int
    axis2: int

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(types[0].dtype, self.reference(phantom(types[0])).shape)

    def reference(self, *arrays: Any) -> Any:
        return np.diagonal(arrays[0], self.offset, self.axis1, self.axis2)

    def source(self, index: tuple[Expr, ...], operand: TensorType) -> tuple[Expr, ...]:
        *others, last = index
        rest = iter(others)
        below = {self.axis1: max(0, -self.offset), self.axis2: max(0, self.offset)}
        return tuple(
            index_scale(last, 1, below[k]) if k in below else next(rest)
            for k in range(operand.ndim)
        )

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for args, shape in (
            ((0, 0, 1), (3, 3)),
            ((2, 0, 1), (3, 17)),
            ((-1, 2, 0), (3, 2, 4)),
            ((9, 0, 1), (3, 3)),
        ):
            yield Sample(cls(*args), (values.ordinary(rng, FLOAT32, shape),))


@dataclass(frozen=True)
class Windows(View, name="windows"):
    """Every window of a length that slides along an axis, as new last axes"""

    axes: tuple[int, ...]  # distinct
    lengths: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(types[0].dtype, self.reference(phantom(types[0])).shape)

    def reference(self, *arrays: Any) -> Any:
        return np.lib.stride_tricks.sliding_window_view(arrays[0], self.lengths, self.axes)

    def source(self, index: tuple[Expr, ...], operand: TensorType) -> tuple[Expr, ...]:
        places = list(index[: operand.ndim])
        for axis, inner in zip(self.axes, index[operand.ndim :], strict=True):
            places[axis] = index_add(places[axis], inner)
        return tuple(places)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for axes, lengths, shape in (
            ((0,), (3,), (17,)),
            ((1,), (1,), (3, 4)),
            ((1, 0), (2, 3), (5, 37)),
            ((0,), (17,), (17,)),
        ):
            yield Sample(cls(axes, lengths), (values.ordinary(rng, FLOAT32, shape),))


@dataclass(frozen=True)
class Reshape(Op, name="reshape"):
    """The same elements in C order, in another shape"""

    shape: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        (t,) = types
        if t.size != math.prod(self.shape):
            np.reshape(phantom(t), self.shape)
        return TensorType(t.dtype, self.shape)

    def reference(self, *arrays: Any) -> Any:
        return np.reshape(arrays[0], self.shape)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for new, old in (
            ((1, 1), ()),
            ((), (1,)),
            ((6, 4), (2, 3, 4)),
            ((0, 7), (3, 0)),
            ((37,), (37, 1)),
        ):
            yield Sample(cls(new), (values.ordinary(rng, FLOAT32, old),))


# ----------------------------------------------------------------------------------- building them


def transposed(node: Node, axes: Sequence[int]) -> Node:
    """The node with its axes in this order."""
    same = tuple(axes) == tuple(range(len(axes)))
    return node if same else apply(Transpose(tuple(axes)), node)


def expanded(node: Node, *axes: int) -> Node:
    """The node with axes of length 1 at these places of the result."""
    return apply(ExpandDims(tuple(sorted(axes))), node) if axes else node


def squeezed(node: Node, *axes: int) -> Node:
    """The node without these axes of length 1."""
    return apply(Squeeze(tuple(sorted(axes))), node) if axes else node


def reshaped(node: Node, shape: Sequence[int]) -> Node:
    """The node in another shape of the same size."""
    return node if node.shape == tuple(shape) else apply(Reshape(tuple(shape)), node)


def sliced(node: Node, axis: int, *bounds: int | None) -> Node:
    """The node sliced along one axis, as by `slice(*bounds)`."""
    key = [slice(None)] * len(node.shape)
    key[axis] = slice(*bounds)
    op = Slice.of(key, node.shape)
    whole = op.size == node.shape and all(s == 1 for s in op.step)
    return node if whole else apply(op, node)


# -------------------------------------------------------------------------------- NumPy's functions


@traces(np.transpose)
def _transpose(a: Any, axes: Any = None) -> Node:
    node = as_node(a)
    rank = len(node.shape)
    if axes is None:
        return transposed(node, range(rank)[::-1])
    order = integers(axes, "the order of axes")
    ask(np.transpose, node, order)
    return transposed(node, [n % rank for n in order])


@traces(np.matrix_transpose)
def _matrix_transpose(x: Any) -> Node:
    node = as_node(x)
    if len(node.shape) < 2:
        ask(np.matrix_transpose, node)
    return _swapaxes(node, -1, -2)


@traces(np.swapaxes)
def _swapaxes(a: Any, axis1: Any, axis2: Any) -> Node:
    node = as_node(a)
    order = list(range(len(node.shape)))
    ask(np.swapaxes, node, integer(axis1), integer(axis2))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return transposed(node, order)


@traces(np.moveaxis)
def _moveaxis(a: Any, source: Any, destination: Any) -> Node:
    return _reordered(np.moveaxis, a, integers(source), integers(destination))


@traces(np.rollaxis)
def _rollaxis(a: Any, axis: Any, start: Any = 0) -> Node:
    return _reordered(np.rollaxis, a, integer(axis), integer(start))


def _reordered(function: Any, a: Any, *args: Any) -> Node:
    """A function that only reorders axes: asked which, by an array whose lengths tell them
    apart.
    """
    node = as_node(a)
    marked = np.broadcast_to(np.ones(()), range(len(node.shape)))
    return transposed(node, function(marked, *args).shape)


@traces(np.expand_dims)
def _expand_dims(a: Any, axis: Any) -> Node:
    node = as_node(a)
    axes = integers(axis)
    rank = len(ask(np.expand_dims, node, axes).shape)
    return expanded(node, *(k % rank for k in axes))


@traces(np.squeeze)
def _squeeze(a: Any, axis: Any = None) -> Node:
    node = as_node(a)
    if axis is None:
        return squeezed(node, *(k for k, n in enumerate(node.shape) if n == 1))
    axes = integers(axis)
    ask(np.squeeze, node, axes if isinstance(axis, tuple | list) else integer(axis))
    if not node.shape:
        return node
    return squeezed(node, *(normal_axis(k, len(node.shape)) for k in axes))


@traces(np.broadcast_to)
def _broadcast_to(array: Any, shape: Any) -> Node:
    node, new = as_node(array), as_shape(shape)
    if any(n < 0 for n in new):
        ask(np.broadcast_to, node, new)
    return node if node.shape == new else apply(BroadcastTo(new), node)


@traces(np.broadcast_arrays)
def _broadcast_arrays(*args: Any) -> tuple[Node, ...]:
    nodes = [as_node(a) for a in args]
    shape = broadcast_shapes(*(n.shape for n in nodes))
    return tuple(_broadcast_to(n, shape) for n in nodes)


@traces(np.reshape)
def _reshape(a: Any, shape: Any, order: str = "C", copy: bool | None = None) -> Node:
    node = as_node(a)
    if order not in ("C", "F"):
        raise Unsupported(
            f"reshape with order={order!r} depends on how the array lies in memory",
            hint="use order='C' or order='F'",
        )
    asked: Any = np.reshape
    new = ask(asked, node, as_shape(shape)).shape
    if order == "C":
        return reshaped(node, new)
    return _transpose(reshaped(_transpose(node), new[::-1]))


@traces(np.ravel)
def _ravel(a: Any, order: str = "C") -> Node:
    return _reshape(a, -1, "C" if order == "K" and len(as_node(a).shape) <= 1 else order)


@traces(np.atleast_1d)
def _atleast_1d(*arys: Any) -> Any:
    return _each(arys, lambda node: reshaped(node, (1,)) if node.shape == () else node)


@traces(np.atleast_2d)
def _atleast_2d(*arys: Any) -> Any:
    return _each(arys, lambda node: expanded(node, *range(2 - len(node.shape))))


@traces(np.atleast_3d)
def _atleast_3d(*arys: Any) -> Any:
    new: dict[int, tuple[int, ...]] = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}
    return _each(arys, lambda node: expanded(node, *new.get(len(node.shape), ())))


def _each(arrays: tuple[Any, ...], write: Any) -> Any:
    results = tuple(write(as_node(a)) for a in arrays)
    return results[0] if len(results) == 1 else results


@traces(np.flip)
def _flip(m: Any, axis: Any = None) -> Node:
    node = as_node(m)
    rank = len(node.shape)
    axes = tuple(range(rank)) if axis is None else integers(axis)
    ask(np.flip, node, axes)
    turned = {k % rank for k in axes}
    key = [slice(None, None, -1 if k in turned else None) for k in range(rank)]
    return apply(Slice.of(key, node.shape), node) if turned else node


@traces(np.fliplr)
def _fliplr(m: Any) -> Node:
    node = as_node(m)
    ask(np.fliplr, node)
    return _flip(node, 1)


@traces(np.flipud)
def _flipud(m: Any) -> Node:
    node = as_node(m)
    ask(np.flipud, node)
    return _flip(node, 0)


@traces(np.rot90)
def _rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Node:
    node, turns = as_node(m), integer(k) % 4
    ask(np.rot90, node, turns, axes)
    first, second = (normal_axis(a, len(node.shape)) for a in axes)
    if turns == 0:
        return node
    if turns == 2:
        return _flip(node, (first, second))
    if turns == 1:
        return _swapaxes(_flip(node, second), first, second)
    return _flip(_swapaxes(node, first, second), second)


@traces(np.lib.stride_tricks.sliding_window_view)
def _sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> Node:
    node, lengths = as_node(x), integers(window_shape)
    axes = tuple(range(len(node.shape))) if axis is None else integers(axis)
    ask(np.lib.stride_tricks.sliding_window_view, node, lengths, axes)
    normal = tuple(k % len(node.shape) for k in axes)
    if len(set(normal)) != len(normal):
        raise Unsupported("several windows along one axis are not compiled", hint="nest two calls")
    return apply(Windows(normal, lengths), node)


@traces(np.linalg.diagonal)
def _matrix_diagonal(x: Any, offset: int = 0) -> Node:
    return _diagonal(x, offset, -2, -1)


@traces(np.diagonal)
def _diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Node:
    node = as_node(a)
    ask(np.diagonal, node, integer(offset), integer(axis1), integer(axis2))
    first, second = (normal_axis(k, len(node.shape)) for k in (axis1, axis2))
    return apply(Diagonal(integer(offset), first, second), node)
