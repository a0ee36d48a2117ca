"""Means, variances and norms: composites of sums, in the very steps of NumPy's own code.

The steps are those of NumPy's `_methods.py`, `_nanfunctions_impl.py` and `linalg`: what is
accumulated in which dtype, and that a mean divides in float64 and rounds back.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import UNSET, traces
from nbcomp.graph.op import Composite, Library, Sample, phantom
from nbcomp.ops import values
from nbcomp.ops.operand import (
    as_array,
    as_node,
    cast,
    constant,
    normal_axes,
    normal_axis,
    number,
    supported,
    traced,
)
from nbcomp.ops.reduce import Max, Min, Sum, reduced
from nbcomp.sizes import Size
from nbcomp.types import BOOL, FLOAT32, FLOAT64, INT64, DType, TensorType


def _divided(total: Node, count: Any) -> Node:
    """total / count as NumPy does it with `out=total, casting="unsafe"`."""
    divisor = as_array(count) if isinstance(count, Node | Size) else constant(count)
    return cast(traced(np.divide, total, divisor), total.type.dtype)


def _count(x: Node, axes: tuple[int, ...]) -> Any:
    count = math.prod(x.shape[k] for k in axes)
    return count if isinstance(count, Size) else np.intp(count)


@dataclass(frozen=True)
class Moment(Composite):
    """A mean or variance over axes, accumulated in `dtype` if one is given."""

    axes: tuple[int, ...] = ()
    keepdims: bool = False
    dtype: DType | None = None

    def _sum(self, x: Node, dtype: DType | None, keepdims: bool) -> Node:
        return traced(np.sum, x, self.axes, dtype=dtype, keepdims=keepdims)

    def _dtype(self, x: Node) -> DType | None:
        """What NumPy accumulates in: whole numbers as float64."""
        return FLOAT64 if self.dtype is None and x.type.dtype.kind in "biu" else self.dtype

    def _samples(self, rng: np.random.Generator, op: Any) -> Iterator[Sample]:
        for dtype in values.DTYPES:
            yield Sample(op((1,)), (values.ordinary(rng, dtype, (5, 37)),), 64)
        x = values.ordinary(rng, FLOAT32, (2, 3, 4))
        for axes, keepdims in (((0,), True), ((0, 1, 2), False), ((0, 2), True), ((), False)):
            yield Sample(op(axes, keepdims), (x,), 64)
        yield Sample(op((0,), False, FLOAT64), (x,), 64)
        yield Sample(op((0,)), (values.edges(FLOAT64),))


@dataclass(frozen=True)
class Mean(Moment, name="mean"):
    """The mean over axes"""

    def reference(self, *arrays: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.mean(arrays[0], self.axes, self.dtype, keepdims=self.keepdims)

    def expand(self, *inputs: Node) -> Node:
        (x,) = inputs
        half = self.dtype is None and x.type.dtype == np.float16
        total = self._sum(x, FLOAT32 if half else self._dtype(x), self.keepdims)
        mean = _divided(total, _count(x, self.axes))
        return cast(mean, x.type.dtype) if half else mean

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        yield from cls()._samples(rng, cls)


@dataclass(frozen=True)
class Var(Moment, name="var"):
    """The variance over axes: the mean squared distance from the mean"""

    ddof: float = 0

    def reference(self, *arrays: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.var(arrays[0], self.axes, self.dtype, ddof=self.ddof, keepdims=self.keepdims)

    def expand(self, *inputs: Node) -> Node:
        (x,) = inputs
        dtype, count = self._dtype(x), _count(x, self.axes)
        mean = _divided(self._sum(x, dtype, True), count)
        distance = traced(np.subtract, x, mean)
        total = self._sum(traced(np.square, distance), dtype, self.keepdims)
        if isinstance(count, Size) and int(self.ddof) == self.ddof:
            return _divided(total, max(count - int(self.ddof), 0))
        return _divided(total, np.maximum(count - self.ddof, 0))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        yield from cls()._samples(rng, cls)
        yield Sample(cls((0,), ddof=1), (values.ordinary(rng, FLOAT32, (17, 3)),), 64)
        yield Sample(cls((0,), ddof=2.5), (values.ordinary(rng, FLOAT64, (17,)),), 64)


@dataclass(frozen=True)
class Std(Var, name="std"):
    """The standard deviation over axes"""

    def reference(self, *arrays: Any) -> Any:
        with np.errstate(invalid="ignore"):
            return np.sqrt(super().reference(*arrays))

    def expand(self, *inputs: Node) -> Node:
        return traced(np.sqrt, super().expand(*inputs))


@traces(np.mean)
def _mean(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, where: Any = True
) -> Node:
    x = as_node(a)
    if where is not True and where is not UNSET:
        raise _masked("mean", "np.sum(np.where(mask, x, 0)) / np.sum(mask)")
    asked = None if dtype is None else supported(dtype)
    return apply(Mean(normal_axes(axis, len(x.shape)), _flag(keepdims), asked), x)


def _flag(keepdims: Any) -> bool:
    return False if keepdims is UNSET else bool(keepdims)


def _masked(name: str, hint: str) -> Unsupported:
    return Unsupported(f"the argument where= of np.{name} is not compiled", hint=hint)


def _spread(op: type[Var], a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any) -> Node:
    x = as_node(a)
    asked = None if dtype is None else supported(dtype)
    return apply(op(normal_axes(axis, len(x.shape)), _flag(keepdims), asked, ddof), x)


@traces(np.var)
def _var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    correction: Any = UNSET,
) -> Node:
    return _spread(Var, a, axis, dtype, _freedom(ddof, correction), keepdims)


@traces(np.std)
def _std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    correction: Any = UNSET,
) -> Node:
    return _spread(Std, a, axis, dtype, _freedom(ddof, correction), keepdims)


def _freedom(ddof: Any, correction: Any) -> Any:
    if isinstance(ddof, Node) or isinstance(correction, Node):
        raise Unsupported("ddof= computed at run time is not compiled", hint="use a number")
    if correction is UNSET:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


@traces(np.ptp)
def _ptp(a: Any, axis: Any = None, keepdims: Any = False) -> Node:
    extremes = (reduced(op, a, axis, None, _flag(keepdims), UNSET, True) for op in (Max, Min))
    return traced(np.subtract, *extremes)


@traces(np.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None, keepdims: Any = False) -> Node:
    counted = cast(cast(as_node(a), BOOL), INT64)
    return traced(np.sum, counted, axis, dtype=INT64, keepdims=bool(keepdims))


# -------------------------------------------------------------------------------- weighted averages


@dataclass(frozen=True)
class Average(Library, name="average"):
    """The weighted average; weights that add up to zero raise ZeroDivisionError"""

    axis: int | None
    keepdims: bool

    def infer(self, *types: TensorType) -> TensorType:
        x, w = types
        small = np.average(np.ones(1, x.dtype), weights=np.ones(1, w.dtype))
        axes = tuple(range(x.ndim)) if self.axis is None else (self.axis,)
        shape = Sum(axes, self.keepdims).infer(x).shape
        return TensorType(small.dtype, shape)

    def reference(self, *arrays: Any) -> Any:
        x, w = arrays
        average: Any = np.average
        return average(x, self.axis, w, keepdims=self.keepdims)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in (np.int32, np.float32, np.bool_):
            x = values.ordinary(rng, dtype, (5, 7))
            yield Sample(cls(1, False), (x, rng.random(7).astype(np.float32)))
            yield Sample(cls(None, True), (x, rng.random((5, 7))))


@traces(np.average)
def _average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: Any = False
) -> Any:
    x = as_node(a)
    if weights is None:
        mean = traced(np.mean, x, axis, keepdims=_flag(keepdims))
        if not returned:
            return mean
        count = x.type.size / max(1, mean.type.size)
        return mean, traced(np.full_like, mean, count)
    w = as_node(weights)
    if returned or isinstance(axis, tuple):
        raise Unsupported(
            "np.average with weights and returned= or several axes is not compiled",
            hint="np.sum(a * w, axis) / np.sum(w, axis)",
        )
    where = None if axis is None else normal_axis(axis, len(x.shape))
    if w.shape != x.shape and (where is None or w.shape != (x.shape[where],)):
        np.average(phantom(x.type), axis, phantom(w.type))  # raises
    return apply(Average(where, _flag(keepdims)), x, w)


# ------------------------------------------------------------------------------ leaving NaN out


def _without_nan(a: Any, other: float) -> tuple[Node, Node | None]:
    """The array with another number for NaN, and where it was NaN; integers have none."""
    x = as_node(a)
    if x.type.dtype.kind != "f":
        return x, None
    mask = traced(np.isnan, x)
    return traced(np.where, mask, number(other, x.type.dtype), x), mask


@traces(np.nansum)
def _nansum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: Any = False,
    initial: Any = UNSET,
    where: Any = True,
) -> Node:
    x, _ = _without_nan(a, 0)
    return reduced(Sum, x, axis, dtype, _flag(keepdims), initial, where)


@traces(np.nanprod)
def _nanprod(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Node:
    x, _ = _without_nan(a, 1)
    return traced(np.prod, x, axis, dtype=dtype, keepdims=_flag(keepdims))


@traces(np.nancumsum)
def _nancumsum(a: Any, axis: Any = None, dtype: Any = None) -> Node:
    return traced(np.cumsum, _without_nan(a, 0)[0], axis, dtype)


@traces(np.nancumprod)
def _nancumprod(a: Any, axis: Any = None, dtype: Any = None) -> Node:
    return traced(np.cumprod, _without_nan(a, 1)[0], axis, dtype)


@traces(np.nanmax)
def _nanmax(a: Any, axis: Any = None, keepdims: Any = False) -> Node:
    return _nan_extreme(np.max, a, axis, -np.inf, _flag(keepdims))


@traces(np.nanmin)
def _nanmin(a: Any, axis: Any = None, keepdims: Any = False) -> Node:
    return _nan_extreme(np.min, a, axis, np.inf, _flag(keepdims))


def _nan_extreme(function: Any, a: Any, axis: Any, other: float, keepdims: bool) -> Node:
    x, mask = _without_nan(a, other)
    extreme = traced(function, x, axis, keepdims=keepdims)
    if mask is None:
        return extreme
    nothing = traced(np.all, mask, axis, keepdims=keepdims)
    return traced(np.where, nothing, number(np.nan, x.type.dtype), extreme)


@traces(np.nanmean)
def _nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Node:
    x, mask = _without_nan(a, 0)
    if mask is None:
        return traced(np.mean, x, axis, dtype, keepdims=_flag(keepdims))
    if dtype is not None and not np.issubdtype(dtype, np.inexact):
        raise TypeError("If a is inexact, then dtype must be inexact")
    count = _numbers(mask, axis, _flag(keepdims))
    total = traced(np.sum, x, axis, dtype=dtype, keepdims=_flag(keepdims))
    return _divided(total, count)


def _numbers(mask: Node, axis: Any, keepdims: bool) -> Node:
    """How many elements are not NaN."""
    there = traced(np.logical_not, mask)
    return traced(np.sum, there, axis, dtype=INT64, keepdims=keepdims)


def _nan_spread(a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: bool) -> Node | None:
    """NumPy's nanvar; None for dtypes without NaN."""
    x, mask = _without_nan(a, 0)
    if mask is None:
        return None
    if dtype is not None and not np.issubdtype(dtype, np.inexact):
        raise TypeError("If a is inexact, then dtype must be inexact")
    count = _numbers(mask, axis, True)
    mean = _divided(traced(np.sum, x, axis, dtype=dtype, keepdims=True), count)
    distance = cast(traced(np.subtract, x, mean), x.type.dtype)
    distance = traced(np.where, mask, number(0, x.type.dtype), distance)
    total = traced(np.sum, traced(np.square, distance), axis, dtype=dtype, keepdims=keepdims)
    kept = count if keepdims else _numbers(mask, axis, False)
    freedom = traced(np.subtract, kept, ddof)
    bad = traced(np.less_equal, freedom, 0)
    return traced(np.where, bad, number(np.nan, total.type.dtype), _divided(total, freedom))


@traces(np.nanvar)
def _nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    correction: Any = UNSET,
) -> Node:
    freedom = _freedom(ddof, correction)
    found = _nan_spread(a, axis, dtype, freedom, _flag(keepdims))
    return found or _spread(Var, a, axis, dtype, freedom, keepdims)


@traces(np.nanstd)
def _nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    correction: Any = UNSET,
) -> Node:
    return traced(np.sqrt, _nanvar(a, axis, dtype, ddof, keepdims, correction))


# -------------------------------------------------------------------------------------------- norms


@traces(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Node:
    node = as_node(x)
    if node.type.dtype.kind != "f":
        node = cast(node, FLOAT64)
    rank = len(node.shape)
    if axis is None and (
        ord is None or (ord in ("f", "fro") and rank == 2) or (ord == 2 and rank == 1)
    ):
        flat = traced(np.reshape, node, -1)
        length = traced(np.sqrt, traced(np.dot, flat, flat))
        return traced(np.reshape, length, (1,) * rank) if keepdims else length
    axes = tuple(range(rank)) if axis is None else axis if isinstance(axis, tuple) else (int(axis),)
    if len(axes) == 1:
        return _vector_norm(node, ord, normal_axis(axes[0], rank), bool(keepdims))
    if len(axes) == 2:
        return _matrix_norm(node, ord, axes, bool(keepdims))
    raise ValueError("Improper number of dimensions to norm.")


def _vector_norm(x: Node, order: Any, axis: int, keepdims: bool) -> Node:
    size = traced(np.abs, x)
    if order in (np.inf, -np.inf):
        if order > 0:
            return traced(np.max, size, axis, keepdims=keepdims, initial=0)
        return traced(np.min, size, axis, keepdims=keepdims)
    if order is None or order == 2:
        squares = traced(np.multiply, x, x)
        return traced(np.sqrt, traced(np.sum, squares, axis, keepdims=keepdims))
    if order == 0:
        size = cast(traced(np.not_equal, x, 0), x.type.dtype)
    if order in (0, 1):
        return traced(np.sum, size, axis, keepdims=keepdims)
    if isinstance(order, str | Node):
        raise ValueError(f"Invalid norm order '{order}' for vectors")
    total = traced(np.sum, traced(np.power, size, order), axis, keepdims=keepdims)
    return traced(np.power, total, np.reciprocal(order, dtype=x.type.dtype))


def _matrix_norm(x: Node, order: Any, axes: tuple[Any, Any], keepdims: bool) -> Node:
    row, column = (normal_axis(k, len(x.shape)) for k in axes)
    if row == column:
        raise ValueError("Duplicate axes given.")
    if order in (None, "fro", "f"):
        squares = traced(np.multiply, x, x)
        return traced(np.sqrt, traced(np.sum, squares, (row, column), keepdims=keepdims))
    if order not in (1, -1, np.inf, -np.inf):
        if order in (2, -2, "nuc"):
            raise Unsupported("norms by singular values are not compiled", hint="use 'fro' or 1")
        raise ValueError("Invalid norm order for matrices.")
    first, second = (row, column) if abs(order) == 1 else (column, row)
    sums = traced(np.sum, traced(np.abs, x), first, keepdims=True)
    start = {"initial": 0} if order > 0 else {}
    best = traced(np.max if order > 0 else np.min, sums, second, keepdims=True, **start)
    return best if keepdims else traced(np.squeeze, best, (row, column))


@traces(np.linalg.vector_norm)
def _vector_norm_of(x: Any, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Node:
    node = as_node(x)
    rank = len(node.shape)
    if axis is None:
        flat = traced(np.reshape, node, -1)
        result = _norm(flat, ord, 0)
        return traced(np.reshape, result, (1,) * rank) if keepdims else result
    if isinstance(axis, tuple) and len(axis) > 1:
        raise Unsupported("vector_norm over several axes is not compiled", hint="reshape first")
    return _norm(node, ord, axis, keepdims)


@traces(np.linalg.matrix_norm)
def _matrix_norm_of(x: Any, keepdims: Any = False, ord: Any = "fro") -> Node:
    return _norm(x, ord, (-2, -1), keepdims)
