"""Running totals, order statistics and convolutions: library routines for now, run by NumPy
itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import UNSET, traces
from nbcomp.graph.op import Library, Sample
from nbcomp.ops import values
from nbcomp.ops.create import made
from nbcomp.ops.folds import FOLDED
from nbcomp.ops.join import flat
from nbcomp.ops.operand import (
    NUMBERS,
    as_array,
    as_node,
    ask,
    at_least_1d,
    cast,
    normal_axes,
    normal_axis,
    operand,
    result_type,
    supported,
    traced,
)
from nbcomp.ops.reduce import Sum
from nbcomp.types import FLOAT32, FLOAT64, TensorType


@dataclass(frozen=True)
class Scan(Library, name="scan"):
    """Running totals along an axis: fn of all elements so far"""

    fn: str
    axis: int

    takes_out: ClassVar[bool] = True

    def infer(self, *types: TensorType) -> TensorType:
        return types[0]

    def may_raise(self, *inputs: Node) -> bool:
        """Powers of integers do, where an exponent is negative."""
        return self.fn == "power" and inputs[0].type.dtype.kind == "i"

    def reference(self, *arrays: Any, out: Any = None) -> Any:
        x = np.asarray(arrays[0])
        return getattr(np, self.fn).accumulate(x, self.axis, dtype=x.dtype, out=out)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for fn in ("add", "multiply", "maximum", "minimum"):
            for dtype in values.DTYPES:
                if dtype.kind != "b" or fn in ("maximum", "minimum"):
                    yield Sample(cls(fn, 0), (values.ordinary(rng, dtype, (17,)),))
            yield Sample(cls(fn, 1), (values.ordinary(rng, FLOAT32, (3, 5, 2)),))
            yield Sample(cls(fn, 0), (values.ordinary(rng, FLOAT32, (0, 5)),))


def _scanned(ufunc: np.ufunc, a: Any, axis: Any, dtype: Any) -> Node:
    node = as_node(a)
    if axis is None:
        node, axis = flat(node), 0
    if isinstance(axis, tuple) and len(axis) == 1:
        (axis,) = axis
    if not node.shape or isinstance(axis, tuple):
        ask(ufunc.accumulate, np.empty(node.shape), axis)  # raises
    asked = None if dtype is None else supported(dtype)
    kept = supported(ufunc.accumulate(np.ones(1, node.type.dtype), dtype=asked).dtype)
    return apply(Scan(ufunc.__name__, normal_axis(axis, len(node.shape))), cast(node, kept))


@traces(np.cumsum)
def _cumsum(a: Any, axis: Any = None, dtype: Any = None) -> Node:
    return _scanned(np.add, at_least_1d(a), axis, dtype)


@traces(np.cumprod)
def _cumprod(a: Any, axis: Any = None, dtype: Any = None) -> Node:
    return _scanned(np.multiply, at_least_1d(a), axis, dtype)


def _cumulative(function: Any, ufunc: np.ufunc, start: int) -> None:
    """np.cumulative_sum and its like, of the array API."""

    @traces(function)
    def cumulative(
        x: Any, axis: Any = None, dtype: Any = None, include_initial: bool = False
    ) -> Node:
        node = at_least_1d(x)
        if axis is None and len(node.shape) != 1:
            function(np.empty(node.shape))  # raises: the axis must be given
        total = _scanned(ufunc, node, 0 if axis is None else axis, dtype)
        if not include_initial:
            return total
        where = normal_axis(axis or 0, len(node.shape))
        shape = list(total.shape)
        shape[where] = 1
        first = traced(np.full, tuple(shape), start, dtype=total.type.dtype)
        return traced(np.concatenate, [first, total], where)


for _name, _ufunc, _start in (("cumulative_sum", np.add, 0), ("cumulative_prod", np.multiply, 1)):
    if hasattr(np, _name):
        _cumulative(getattr(np, _name), _ufunc, _start)


def _accumulate(ufunc: np.ufunc) -> None:
    @traces(ufunc.accumulate)
    def accumulate(array: Any, axis: Any = 0, dtype: Any = None) -> Node:
        node = as_node(array)
        if axis is None and len(node.shape) > 1:
            ask(ufunc.accumulate, np.empty(node.shape), None)  # raises
        return _scanned(ufunc, node, 0 if axis is None else axis, dtype)


for _scan in FOLDED:
    _accumulate(_scan)


# -------------------------------------------------------------------------------- order statistics


@dataclass(frozen=True)
class Quantile(Library, name="quantile"):
    """Quantiles over axes; the second operand says which, its axes come first in the result"""

    raises: ClassVar[bool] = True

    axes: tuple[int, ...] | None
    method: str
    keepdims: bool
    skip_nan: bool = False

    def infer(self, *types: TensorType) -> TensorType:
        x, q = types
        function = np.nanquantile if self.skip_nan else np.quantile
        options: Any = {"method": self.method}
        small = function(np.ones(1, x.dtype), np.full((), 0.5, q.dtype), **options)
        axes = tuple(range(x.ndim)) if self.axes is None else self.axes
        rest = Sum(axes, self.keepdims).infer(TensorType(FLOAT64, x.shape)).shape
        return TensorType(np.asarray(small).dtype, (*q.shape, *rest))

    def reference(self, *arrays: Any) -> Any:
        function: Any = np.nanquantile if self.skip_nan else np.quantile
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a slice of NaN alone
            return function(*arrays, self.axes, method=self.method, keepdims=self.keepdims)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        x = values.ordinary(rng, FLOAT32, (5, 4, 3))
        for q in (np.array(0.25), np.array([0.1, 0.5, 1.0])):
            yield Sample(cls((0,), "linear", False), (x, q))
            yield Sample(cls((1, 2), "linear", True), (x, q))
            yield Sample(cls(None, "nearest", False), (x, q))
            yield Sample(cls((0,), "linear", False, True), (values.edges(FLOAT64)[20:], q))


@dataclass(frozen=True)
class Median(Library, name="median"):
    """The median over axes"""

    axes: tuple[int, ...] | None
    keepdims: bool
    skip_nan: bool = False

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        axes = tuple(range(x.ndim)) if self.axes is None else self.axes
        small = np.median(np.ones(1, x.dtype))
        shape = Sum(axes, self.keepdims).infer(TensorType(FLOAT64, x.shape)).shape
        return TensorType(np.asarray(small).dtype, shape)

    def reference(self, *arrays: Any) -> Any:
        function: Any = np.nanmedian if self.skip_nan else np.median
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a slice of NaN alone
            return function(arrays[0], self.axes, keepdims=self.keepdims)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in values.TYPICAL[1:]:
            x = values.ordinary(rng, dtype, (5, 4, 3))
            yield Sample(cls((0,), False), (x,))
            yield Sample(cls((1, 2), True), (x,))
            yield Sample(cls(None, False, True), (x,))


def _median_of(a: Any, axis: Any, keepdims: Any, skip_nan: bool) -> Node:
    node = as_node(a)
    axes = None if axis is None else normal_axes(axis, len(node.shape), lists=True)
    keep = keepdims is not UNSET and bool(keepdims)
    return apply(Median(axes, keep, skip_nan), node)


@traces(np.median)
def _median(a: Any, axis: Any = None, keepdims: Any = False, overwrite_input: Any = False) -> Node:
    return _median_of(a, axis, keepdims, False)


@traces(np.nanmedian)
def _nanmedian(
    a: Any, axis: Any = None, keepdims: Any = False, overwrite_input: Any = False
) -> Node:
    return _median_of(a, axis, keepdims, True)


def _quantile_of(a: Any, q: Any, axis: Any, method: str, keepdims: Any, skip_nan: bool) -> Node:
    node = as_node(a)
    axes = None if axis is None else normal_axes(axis, len(node.shape), lists=True)
    if type(q) in NUMBERS and node.type.dtype.kind == "f":
        q = operand(q, node.type.dtype)  # a Python number takes the array's precision
    which = as_array(q)  # of whole numbers, which are places in the array: elements of it
    keep = keepdims is not UNSET and bool(keepdims)
    if node.type.size == 0:  # NaN, nothing, or an error: NumPy's answer has no other reasons
        half = np.full(which.shape, 0.5, which.type.dtype)
        function = np.nanquantile if skip_nan else np.quantile
        empty = np.empty(node.shape, node.type.dtype)
        return made(np.asarray(ask(function, empty, half, axes, method=method, keepdims=keep)))
    return apply(Quantile(axes, method, keep, skip_nan), node, which)


def _share(a: Any, percent: Any) -> Node:
    """Per cent as a fraction, in the array's precision."""
    dtype = as_node(a).type.dtype
    hundred = np.asarray(100, dtype) if dtype.kind == "f" else 100
    return traced(np.divide, percent, hundred)


@traces(np.quantile)
def _quantile(
    a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: Any = False
) -> Node:
    return _quantile_of(a, q, axis, method, keepdims, False)


@traces(np.nanquantile)
def _nanquantile(
    a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: Any = False
) -> Node:
    return _quantile_of(a, q, axis, method, keepdims, True)


@traces(np.percentile)
def _percentile(
    a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: Any = False
) -> Node:
    return _quantile_of(a, _share(a, q), axis, method, keepdims, False)


@traces(np.nanpercentile)
def _nanpercentile(
    a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: Any = False
) -> Node:
    return _quantile_of(a, _share(a, q), axis, method, keepdims, True)


# ------------------------------------------------------------------------------------- convolution


@dataclass(frozen=True)
class Correlate(Library, name="correlate"):
    """The correlation of two vectors"""

    mode: str

    def infer(self, *types: TensorType) -> TensorType:
        a, v = (t.shape[0] for t in types)
        long, short = max(a, v), min(a, v)
        size = {"full": long + short - 1, "same": long, "valid": long - short + 1}[self.mode]
        return TensorType(np.result_type(types[0].dtype, types[1].dtype), (size,))

    def reference(self, *arrays: Any) -> Any:
        correlate: Any = np.correlate
        return correlate(*arrays, self.mode)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for mode in ("full", "same", "valid"):
            for dtype in values.TYPICAL[1:]:
                for a, v in ((17, 3), (1, 1), (4, 9), (6, 6)):
                    arrays = (values.ordinary(rng, dtype, (n,)) for n in (a, v))
                    yield Sample(cls(mode), tuple(arrays))


@traces(np.correlate)
def _correlate(a: Any, v: Any, mode: str = "valid") -> Node:
    return _correlated(np.correlate, a, v, mode)


@traces(np.convolve)
def _convolve(a: Any, v: Any, mode: str = "full") -> Node:
    left, right = (traced(np.atleast_1d, x) for x in (a, v))
    if right.type.size > left.type.size:
        left, right = right, left
    if not left.type.size or not right.type.size:
        np.convolve(np.empty(left.shape), np.empty(right.shape))  # raises
    return _correlated(np.convolve, left, traced(np.flip, right), mode)


def _correlated(function: Any, a: Any, v: Any, mode: str) -> Node:
    left, right = as_node(a), as_node(v)
    if mode not in ("full", "same", "valid"):
        function(np.ones(1), np.ones(1), mode)  # old spellings warn, others raise
        raise Unsupported(f"mode={mode!r} is not compiled", hint="use 'full', 'same' or 'valid'")
    if len(left.shape) != 1 or len(right.shape) != 1 or not left.type.size or not right.type.size:
        ask(function, np.empty(left.shape), np.empty(right.shape), mode)
    dtype = result_type(left, right)
    return apply(Correlate(mode), cast(left, dtype), cast(right, dtype))
