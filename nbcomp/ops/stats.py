"""Means and variances: composites of sums, in the very steps of NumPy's own code.

The steps are those of NumPy's `_methods.py`: what is accumulated in which dtype, and that a mean
divides in float64 and rounds back.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

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
    supported,
    traced,
)
from nbcomp.ops.reduce import Max, Min, Sum, flag, reduced
from nbcomp.sizes import Size
from nbcomp.types import BOOL, FLOAT32, FLOAT64, INT64, DType, TensorType


def divided(total: Node, count: Any) -> Node:
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
        mean = divided(total, _count(x, self.axes))
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
        mean = divided(self._sum(x, dtype, True), count)
        distance = traced(np.subtract, x, mean)
        total = self._sum(traced(np.square, distance), dtype, self.keepdims)
        if isinstance(count, Size) and int(self.ddof) == self.ddof:
            return divided(total, max(count - int(self.ddof), 0))
        return divided(total, np.maximum(count - self.ddof, 0))

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
    asked = None if dtype is None else supported(dtype)
    if _is_mask(where):
        return _masked_mean(x, where, axis, asked, flag(keepdims))
    return apply(Mean(normal_axes(axis, len(x.shape)), flag(keepdims), asked), x)


def spread(op: type[Var], a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any) -> Node:
    """The variance, or its root, over axes."""
    x = as_node(a)
    asked = None if dtype is None else supported(dtype)
    if op is Std and asked is not None and asked.kind in "biu":
        return _whole_root(spread(Var, a, axis, dtype, ddof, keepdims))
    return apply(op(normal_axes(axis, len(x.shape)), flag(keepdims), asked, ddof), x)


def _whole_root(variance: Node) -> Node:
    """The root of a variance of whole numbers: NumPy rounds that of a scalar down, and refuses to
    write those of an array."""
    if variance.shape:
        array: Any = np.zeros(1, variance.type.dtype)
        np.sqrt(array, out=array)  # raises
    return cast(traced(np.sqrt, variance), variance.type.dtype)


# ------------------------------------------------------------------------------- of some elements


def _is_mask(where: Any) -> bool:
    return where is not True and where is not UNSET


def _wide(x: Node, dtype: DType | None) -> DType | None:
    """What NumPy adds up in, if it is not the dtype of the array."""
    return FLOAT64 if dtype is None and x.type.dtype.kind in "biu" else dtype


def _chosen(x: Node, where: Any, axis: Any, keepdims: bool) -> Node:
    """How many elements count."""
    mask = traced(np.broadcast_to, cast(as_node(where), BOOL), x.shape)
    return traced(np.sum, mask, axis, dtype=INT64, keepdims=keepdims)


def _masked_mean(x: Node, where: Any, axis: Any, dtype: DType | None, keepdims: bool) -> Node:
    """The mean of the elements where a mask is true."""
    half = dtype is None and x.type.dtype == np.float16
    wide = FLOAT32 if half else _wide(x, dtype)
    total = traced(np.sum, x, axis, dtype=wide, keepdims=keepdims, where=where)
    mean = divided(total, _chosen(x, where, axis, keepdims))
    return cast(mean, x.type.dtype) if half else mean


def _masked_var(
    a: Any, where: Any, axis: Any, dtype: Any, ddof: Any, keepdims: bool, mean: Any
) -> Node:
    """The variance of the elements where a mask is true, about a mean that may be given."""
    x = as_node(a)
    wide = _wide(x, None if dtype is None else supported(dtype))
    if mean is None:
        total = traced(np.sum, x, axis, dtype=wide, keepdims=True, where=where)
        mean = divided(total, _chosen(x, where, axis, True))
    squares = traced(np.square, traced(np.subtract, x, mean))
    total = traced(np.sum, squares, axis, dtype=wide, keepdims=keepdims, where=where)
    freedom = traced(np.subtract, _chosen(x, where, axis, keepdims), ddof)
    return divided(total, traced(np.maximum, freedom, 0))


# ------------------------------------------------------------------------------------- variances


@traces(np.var)
def _var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    where: Any = True,
    mean: Any = UNSET,
    correction: Any = UNSET,
) -> Node:
    freedom = freedom_of(ddof, correction)
    if _is_mask(where) or mean is not UNSET:
        about = None if mean is UNSET else mean
        return _masked_var(a, where, axis, dtype, freedom, flag(keepdims), about)
    return spread(Var, a, axis, dtype, freedom, keepdims)


@traces(np.std)
def _std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    where: Any = True,
    mean: Any = UNSET,
    correction: Any = UNSET,
) -> Node:
    freedom = freedom_of(ddof, correction)
    if _is_mask(where) or mean is not UNSET:
        about = None if mean is UNSET else mean
        found = _masked_var(a, where, axis, dtype, freedom, flag(keepdims), about)
        whole = found.type.dtype.kind in "biu"
        return _whole_root(found) if whole else traced(np.sqrt, found)
    return spread(Std, a, axis, dtype, freedom, keepdims)


def freedom_of(ddof: Any, correction: Any) -> Any:
    if isinstance(ddof, Node) or isinstance(correction, Node):
        raise Unsupported("ddof= computed at run time is not compiled", hint="use a number")
    if correction is UNSET:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


@traces(np.ptp)
def _ptp(a: Any, axis: Any = None, keepdims: Any = False) -> Node:
    extremes = (reduced(op, a, axis, None, flag(keepdims), UNSET, True) for op in (Max, Min))
    return traced(np.subtract, *extremes)


@traces(np.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None, keepdims: Any = False) -> Node:
    counted = cast(cast(as_node(a), BOOL), INT64)
    return traced(np.sum, counted, axis, dtype=INT64, keepdims=bool(keepdims))


# -------------------------------------------------------------------------------- weighted averages


@dataclass(frozen=True)
class Average(Library, name="average"):
    """The weighted average; weights that add up to zero raise ZeroDivisionError"""

    raises: ClassVar[bool] = True

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
        mean = traced(np.mean, x, axis, keepdims=flag(keepdims))
        if mean.type.size == 0:  # NumPy divides by the number of results
            np.average(np.empty(x.shape), axis)
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
    return apply(Average(where, flag(keepdims)), x, w)
