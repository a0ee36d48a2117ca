"""Reductions that leave NaN out: np.nansum, np.nanmean and their like, in the steps of NumPy's own
`_nanfunctions_impl.py`.  Knows nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import UNSET, traces
from nbcomp.graph.op import Library, Sample
from nbcomp.ops import values
from nbcomp.ops.operand import as_node, ask, cast, normal_axis, number, traced
from nbcomp.ops.reduce import Sum, flag, reduced
from nbcomp.ops.stats import Var, divided, freedom_of, spread
from nbcomp.types import INT64, TensorType


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
    return reduced(Sum, x, axis, dtype, flag(keepdims), initial, where)


@traces(np.nanprod)
def _nanprod(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Node:
    x, _ = _without_nan(a, 1)
    return traced(np.prod, x, axis, dtype=dtype, keepdims=flag(keepdims))


@traces(np.nancumsum)
def _nancumsum(a: Any, axis: Any = None, dtype: Any = None) -> Node:
    return traced(np.cumsum, _without_nan(a, 0)[0], axis, dtype)


@traces(np.nancumprod)
def _nancumprod(a: Any, axis: Any = None, dtype: Any = None) -> Node:
    return traced(np.cumprod, _without_nan(a, 1)[0], axis, dtype)


@traces(np.nanmax)
def _nanmax(a: Any, axis: Any = None, keepdims: Any = False) -> Node:
    return _nan_extreme(np.max, a, axis, -np.inf, flag(keepdims))


@traces(np.nanmin)
def _nanmin(a: Any, axis: Any = None, keepdims: Any = False) -> Node:
    return _nan_extreme(np.min, a, axis, np.inf, flag(keepdims))


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
        return traced(np.mean, x, axis, dtype, keepdims=flag(keepdims))
    if dtype is not None and not np.issubdtype(dtype, np.inexact):
        raise TypeError("If a is inexact, then dtype must be inexact")
    count = _numbers(mask, axis, flag(keepdims))
    total = traced(np.sum, x, axis, dtype=dtype, keepdims=flag(keepdims))
    return divided(total, count)


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
    mean = divided(traced(np.sum, x, axis, dtype=dtype, keepdims=True), count)
    distance = cast(traced(np.subtract, x, mean), x.type.dtype)
    distance = traced(np.where, mask, number(0, x.type.dtype), distance)
    total = traced(np.sum, traced(np.square, distance), axis, dtype=dtype, keepdims=keepdims)
    kept = count if keepdims else _numbers(mask, axis, False)
    freedom = traced(np.subtract, kept, ddof)
    bad = traced(np.less_equal, freedom, 0)
    return traced(np.where, bad, number(np.nan, total.type.dtype), divided(total, freedom))


@traces(np.nanvar)
def _nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    correction: Any = UNSET,
) -> Node:
    freedom = freedom_of(ddof, correction)
    found = _nan_spread(a, axis, dtype, freedom, flag(keepdims))
    return found or spread(Var, a, axis, dtype, freedom, keepdims)


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


@dataclass(frozen=True)
class NanArgExtreme(Library, name="nan_arg_extreme"):
    """The first place of the largest or smallest element that is not NaN; where there is none,
    ValueError is raised"""

    raises: ClassVar[bool] = True

    fn: str
    axis: int | None
    keepdims: bool

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        axes = tuple(range(x.ndim)) if self.axis is None else (self.axis,)
        return TensorType(INT64, Sum(axes, self.keepdims).infer(x).shape)

    def reference(self, *arrays: Any) -> Any:
        return getattr(np, self.fn)(arrays[0], self.axis, keepdims=self.keepdims)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        x = values.ordinary(rng, np.float32, (5, 7))
        x[:, 2] = np.nan
        for fn in ("nanargmax", "nanargmin"):
            yield Sample(cls(fn, None, False), (x,))
            yield Sample(cls(fn, 1, True), (x,))


def _nan_arg(function: Any) -> None:
    @traces(function)
    def place(a: Any, axis: Any = None, keepdims: Any = False) -> Node:
        x = as_node(a)
        if x.type.size == 0:
            ask(function, np.empty(x.shape), axis)  # raises, unless nothing is asked for
        where = None if axis is None else normal_axis(axis, len(x.shape))
        return apply(NanArgExtreme(function.__name__, where, flag(keepdims)), x)


_nan_arg(np.nanargmax)
_nan_arg(np.nanargmin)
