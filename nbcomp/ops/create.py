"""Arrays made from nothing: constants, filled arrays, whole-number ranges, triangles.

A filled array is a broadcast number, a range or triangle is computed from the index; everything
else that is known now (linspace, small tables) is a constant, computed by NumPy itself.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import NUMPY, traces
from nbcomp.graph.op import Constant, Sample, Source
from nbcomp.loop.grammar import Apply, Expr, index_scale
from nbcomp.ops.move import expanded, sliced
from nbcomp.ops.operand import (
    as_array,
    as_node,
    as_shape,
    broadcast_to,
    cast,
    constant,
    convert,
    holds_node,
    integer,
    operand,
    result_type,
    supported,
)
from nbcomp.sizes import Size, is_open
from nbcomp.types import BOOL, INT64, DType, TensorType

CONSTANT_LIMIT = 4096  # elements of a range that are kept rather than computed


@dataclass(frozen=True)
class Iota(Source, name="iota"):
    """start, start + step, start + 2 step, ... in an integer dtype"""

    dtype: DType
    size: int
    start: int
    step: int

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(self.dtype, (self.size,))

    def reference(self, *arrays: Any) -> Any:
        return (np.arange(self.size) * self.step + self.start).astype(self.dtype)

    def element(self, index: tuple[Expr, ...], result: TensorType) -> Expr:
        return convert(index_scale(index[0], self.step, self.start), self.dtype)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in map(np.dtype, (np.int8, np.uint8, np.int32, np.int64, np.uint64)):
            for size, start, step in ((0, 0, 1), (1, 3, 1), (37, 100, -2), (100, 0, 1)):
                yield Sample(cls(dtype, size, start, step), ())


@dataclass(frozen=True)
class Triangle(Source, name="tri"):
    """True on and below the k-th diagonal of an n × m matrix"""

    n: int
    m: int
    k: int

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(BOOL, (self.n, self.m))

    def reference(self, *arrays: Any) -> Any:
        return np.tri(self.n, self.m, self.k, dtype=bool)

    def element(self, index: tuple[Expr, ...], result: TensorType) -> Expr:
        row, column = index
        return Apply(BOOL, "greater_equal", (index_scale(row, 1, self.k), column))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for n, m, k in ((3, 3, 0), (5, 37, 2), (4, 3, -1), (0, 3, 0), (1, 1, 1), (3, 3, -9)):
            yield Sample(cls(n, m, k), ())


@dataclass(frozen=True)
class DiagonalMask(Source, name="eye"):
    """True on the k-th diagonal of an n × m matrix"""

    n: int
    m: int
    k: int

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(BOOL, (self.n, self.m))

    def reference(self, *arrays: Any) -> Any:
        return np.eye(self.n, self.m, self.k, dtype=bool)

    def element(self, index: tuple[Expr, ...], result: TensorType) -> Expr:
        row, column = index
        return Apply(BOOL, "equal", (index_scale(row, 1, self.k), column))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for n, m, k in ((3, 3, 0), (5, 37, 2), (4, 3, -1), (0, 3, 0), (3, 3, 9)):
            yield Sample(cls(n, m, k), ())


# ------------------------------------------------------------------------------------ filled arrays


def filled(shape: Any, value: Any, dtype: Any) -> Node:
    """An array of this shape with one value everywhere, or with a value broadcast to it."""
    sizes = as_shape(shape)
    if any(n < 0 for n in sizes):
        np.empty(sizes)  # raises
    kind = as_node(value).type.dtype if dtype is None else supported(dtype)
    return broadcast_to(operand(value, kind), sizes)


@traces(np.zeros, np.empty)
def _zeros(shape: Any, dtype: Any = float, device: Any = None) -> Node:
    return filled(shape, 0, float if dtype is None else dtype)


@traces(np.ones)
def _ones(shape: Any, dtype: Any = None, device: Any = None) -> Node:
    return filled(shape, 1, float if dtype is None else dtype)


@traces(np.full)
def _full(shape: Any, fill_value: Any, dtype: Any = None, device: Any = None) -> Node:
    return filled(shape, fill_value, dtype)


@traces(np.zeros_like, np.empty_like)
def _zeros_like(
    a: Any = None, dtype: Any = None, shape: Any = None, device: Any = None, prototype: Any = None
) -> Node:
    return _full_like(prototype if a is None else a, 0, dtype, shape)


@traces(np.ones_like)
def _ones_like(a: Any, dtype: Any = None, shape: Any = None, device: Any = None) -> Node:
    return _full_like(a, 1, dtype, shape)


@traces(np.full_like)
def _full_like(
    a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, device: Any = None
) -> Node:
    node = as_node(a)
    return filled(
        node.shape if shape is None else shape,
        fill_value,
        node.type.dtype if dtype is None else dtype,
    )


# -------------------------------------------------------------------------------- ranges and tables


def iota(size: int) -> Node:
    """0, 1, ..., size - 1 as int64."""
    return apply(Iota(INT64, size, 0, 1))


@traces(np.arange)
def _arange(*args: Any, dtype: Any = None, **others: Any) -> Node:
    if is_open(args) and not others and (found := _open_range(args, dtype)) is not None:
        return found
    table = _table(np.arange, *args, dtype=dtype, **others)
    size = table.type.size
    if (
        table.type.dtype.kind not in "iu"
        or size <= CONSTANT_LIMIT
        or not isinstance(table.op, Constant)
    ):
        return table
    first, second = (int(v) for v in table.op.value[:2])
    return apply(Iota(table.type.dtype, size, first, second - first))


def _open_range(args: tuple[Any, ...], dtype: Any) -> Node | None:
    """A range of whole numbers whose length is open; None where its sizes have to be fixed."""
    if not all(isinstance(a, int | np.integer | Size) for a in args) or len(args) > 3:
        return None
    start, stop, step = (0, *args, 1)[:3] if len(args) == 1 else (*args, 1)[:3]
    kind = INT64 if dtype is None else supported(dtype)
    if isinstance(step, Size) or step == 0 or (kind.kind == "f" and (start, step) != (0, 1)):
        return None
    span = stop - start if step > 0 else start - stop
    size = (span + abs(step) - 1) // abs(step) if span > 0 else 0
    if kind.kind in "iu" and not size <= int(np.iinfo(kind.str).max):
        return None
    made = apply(Iota(kind if kind.kind in "iu" else INT64, size, start, step))
    return cast(made, kind)


@traces(np.linspace)
def _linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: Any = True,
    retstep: Any = False,
    dtype: Any = None,
    axis: Any = 0,
) -> Node:
    if retstep:
        raise Unsupported(
            "retstep= of np.linspace is not compiled", hint="compute the step yourself"
        )
    if holds_node([start, stop]):
        return _between(start, stop, integer(num), bool(endpoint), dtype, integer(axis))
    return _table(np.linspace, start, stop, num, endpoint=endpoint, dtype=dtype, axis=axis)


def _between(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int) -> Node:
    """Evenly spaced numbers between ends computed at run time, in the steps of NumPy's
    `function_base.py`."""
    if num < 0:
        np.linspace(0, 1, num)  # raises
    first, last = (NUMPY[np.multiply].trace(as_array(v), 1.0) for v in (start, stop))
    loop = result_type(first, last, float(1))
    kind = loop if dtype is None else supported(dtype)
    span = cast(NUMPY[np.subtract].trace(last, first), loop)
    places = cast(_arange(num), loop)
    places = NUMPY[np.reshape].trace(places, (-1, *(1,) * len(span.shape)))
    between = num - 1 if endpoint else num
    if between > 0:
        step = NUMPY[np.divide].trace(span, between)
        still = NUMPY[np.any].trace(NUMPY[np.equal].trace(step, 0))  # NumPy looks, too
        fine = NUMPY[np.multiply].trace(NUMPY[np.divide].trace(places, between), span)
        places = NUMPY[np.where].trace(still, fine, NUMPY[np.multiply].trace(places, step))
    else:
        places = NUMPY[np.multiply].trace(places, span)
    places = NUMPY[np.add].trace(places, first)
    if endpoint and num > 1:
        end = broadcast_to(cast(last, places.type.dtype), (1, *places.shape[1:]))
        places = NUMPY[np.concatenate].trace([sliced(places, 0, None, -1), end])
    if axis:
        places = NUMPY[np.moveaxis].trace(places, 0, axis)
    if kind.kind in "iu":
        places = NUMPY[np.floor].trace(places)
    return cast(places, kind)


@traces(np.logspace)
def _logspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: Any = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: Any = 0,
) -> Node:
    return _table(np.logspace, start, stop, num, endpoint, base, dtype, axis)


@traces(np.geomspace)
def _geomspace(
    start: Any, stop: Any, num: Any = 50, endpoint: Any = True, dtype: Any = None, axis: Any = 0
) -> Node:
    return _table(np.geomspace, start, stop, num, endpoint, dtype, axis)


def _table(function: Any, *args: Any, **kwargs: Any) -> Node:
    """An array that is known now, made by NumPy."""
    args = tuple(operator.index(a) if isinstance(a, Size) else a for a in args)
    if holds_node([*args, *kwargs.values()]):
        raise Unsupported(
            f"np.{function.__name__} of values computed from the inputs is not compiled",
            hint="its length decides shapes: compute start + step * np.arange(n) with a known n",
        )
    return made(function(*args, **kwargs))


def made(array: Any) -> Node:
    """A constant that nobody else holds, so that it can be folded."""
    array.flags.writeable = False
    return constant(array)


@traces(np.eye)
def _eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, device: Any = None) -> Node:
    n = integer(N)
    as_shape((N, N if M is None else M))  # raises for bools
    mask = apply(DiagonalMask(n, n if M is None else integer(M), integer(k)))
    return cast(mask, supported(float if dtype is None else dtype))


@traces(np.identity)
def _identity(n: Any, dtype: Any = None) -> Node:
    return _eye(n, dtype=dtype)


@traces(np.tri)
def _tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float) -> Node:
    n = integer(N)
    as_shape((N, N if M is None else M))  # raises for bools
    mask = apply(Triangle(n, n if M is None else integer(M), integer(k)))
    return cast(mask, supported(float if dtype is None else dtype))


@traces(np.indices)
def _indices(dimensions: Any, dtype: Any = int, sparse: Any = False) -> Any:
    return _table(np.indices, dimensions, dtype, sparse)


def _from_shape(function: Any) -> None:
    """Functions that give index arrays for an array's shape, whatever is in it."""

    @traces(function)
    def places(arr: Any, k: int = 0) -> tuple[Node, ...]:
        args = () if function is np.diag_indices_from else (integer(k),)
        return tuple(map(made, function(np.empty(as_node(arr).shape), *args)))


for _function in (np.diag_indices_from, np.tril_indices_from, np.triu_indices_from):
    _from_shape(_function)


# ------------------------------------------------------------------------------- from what there is


@traces(np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.copy)
def _array(
    a: Any = None,
    dtype: Any = None,
    copy: Any = None,
    ndmin: Any = 0,
    device: Any = None,
    object: Any = None,
) -> Node:
    value = object if a is None else a
    target = None if dtype is None else supported(dtype)
    node = _nested(value) if holds_node(value) else as_node(value)
    node = (
        node
        if target is None
        else operand(value, target)
        if _is_number(value)
        else cast(node, target)
    )
    missing = integer(ndmin) - len(node.shape)
    return expanded(node, *range(missing)) if missing > 0 else node


def _is_number(value: Any) -> bool:
    return type(value) in (bool, int, float)


def _nested(value: Any) -> Node:
    """A nested list with nodes in it."""
    if not isinstance(value, list | tuple):
        return as_node(value)
    parts = [_nested(v) for v in value]
    if len({p.shape for p in parts}) > 1:
        np.array([np.empty(p.shape) for p in parts])  # raises: the shape is inhomogeneous
    joined: Node = NUMPY[np.stack].trace(parts)
    return joined
