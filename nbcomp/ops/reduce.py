"""Reductions: an associative function over some axes.

The operators keep their operand's dtype; which dtype NumPy accumulates in (int64 for small
integers, float32 for float16) is written as casts around them.  The order of the terms is the
schedule's: results of floating sums and products may differ from NumPy's within the error of
either.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import NUMPY, UNSET, traces
from nbcomp.graph.op import Reduce, Sample, phantom
from nbcomp.loop.grammar import neutral
from nbcomp.ops import values
from nbcomp.ops.operand import as_node, cast, normal_axes, supported
from nbcomp.types import BOOL, FLOAT32, DType, TensorType


@dataclass(frozen=True)
class Reduction(Reduce):
    """A ufunc's reduction, in the operand's dtype."""

    ufunc: ClassVar[np.ufunc]
    ulp: ClassVar[float] = 0.0

    def infer(self, *types: TensorType) -> TensorType:
        (t,) = types
        if t.size == 0:
            return _empty_type(self, t)
        kept = [1 if k in self.axes else n for k, n in enumerate(t.shape)]
        if not self.keepdims:
            kept = [n for k, n in enumerate(t.shape) if k not in self.axes]
        return TensorType(t.dtype, tuple(kept))

    def reference(self, *arrays: Any) -> Any:
        x = np.asarray(arrays[0])
        return self.ufunc.reduce(x, axis=self.axes, dtype=x.dtype, keepdims=self.keepdims)

    def identity(self, dtype: np.dtype[Any]) -> Any:
        if self.ufunc.identity is not None:
            return dtype.type(self.ufunc.identity)
        return dtype.type(neutral(self.fn, dtype))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in cls._dtypes():
            x = cls._exact(rng, dtype, (5, 37))
            for axes in ((0,), (1,), (0, 1)):
                yield Sample(cls(axes), (x,))
            yield Sample(cls((0,)), (values.edges(dtype),))
            if dtype.kind == "f":
                positive = rng.uniform(0.5, 1.5, 1000).astype(dtype)
                yield Sample(cls((0,)), (positive,), cls.ulp)
        for shape, place in _PLACES:
            yield Sample(cls(place, True), (cls._exact(rng, cls._dtypes()[-1], shape),))
            yield Sample(cls(place), (cls._exact(rng, cls._dtypes()[0], shape),))

    @classmethod
    def _dtypes(cls) -> tuple[DType, ...]:
        return values.DTYPES

    @classmethod
    def _exact(cls, rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Any:
        """Values whose reduction is exact in any order."""
        small = np.dtype(np.int8) if dtype.kind == "f" else dtype
        return values.ordinary(rng, small, shape).astype(dtype)


_PLACES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), ()),
    ((1,), (0,)),
    ((3,), ()),
    ((2, 3, 4), (1,)),
    ((2, 3, 4), (0, 2)),
    ((0, 3), (1,)),
    ((100,), (0,)),
)


@lru_cache(maxsize=1024)
def _empty_type(op: Reduction, t: TensorType) -> TensorType:
    result = op.reference(phantom(t))  # raises where there is no identity
    return TensorType(t.dtype, np.shape(result))


class Sum(Reduction, name="sum"):
    """The sum over axes; floats are added in a fixed tree of vectors"""

    fn = "add"
    ufunc = np.add
    ulp = 64

    @classmethod
    def _dtypes(cls) -> tuple[DType, ...]:
        return (*values.SIGNED, *values.UNSIGNED, *values.FLOATS[1:])


class Prod(Reduction, name="prod"):
    """The product over axes"""

    fn = "multiply"
    ufunc = np.multiply
    ulp = 64

    @classmethod
    def _dtypes(cls) -> tuple[DType, ...]:
        return (*values.SIGNED, *values.UNSIGNED, *values.FLOATS[1:])

    @classmethod
    def _exact(cls, rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Any:
        powers = [-2, -1, 1, 1, 1, 2, 0.5] if dtype.kind == "f" else [1, 1, 2, 3]
        return rng.choice(powers, shape).astype(dtype)


class Max(Reduction, name="max"):
    """The largest element over axes; NaN if there is one"""

    fn = "maximum"
    ufunc = np.maximum


class Min(Reduction, name="min"):
    """The smallest element over axes; NaN if there is one"""

    fn = "minimum"
    ufunc = np.minimum


class Any_(Reduction, name="any"):
    """Whether any element over axes is true"""

    fn = "logical_or"
    ufunc = np.logical_or

    @classmethod
    def _dtypes(cls) -> tuple[DType, ...]:
        return (BOOL,)


class All(Reduction, name="all"):
    """Whether all elements over axes are true"""

    fn = "logical_and"
    ufunc = np.logical_and

    @classmethod
    def _dtypes(cls) -> tuple[DType, ...]:
        return (BOOL,)


# ----------------------------------------------------------------------------- writing reductions


@lru_cache(maxsize=1024)
def accumulator(ufunc: np.ufunc, dtype: DType, asked: DType | None) -> DType:
    """The dtype NumPy's `ufunc.reduce(x, dtype=asked)` gives for an x of this dtype."""
    return supported(ufunc.reduce(np.ones(1, dtype), dtype=asked).dtype)


def reduced(
    op: type[Reduction], a: Any, axis: Any, dtype: Any, keepdims: Any, initial: Any, where: Any
) -> Node:
    """The reduction as NumPy's `ufunc.reduce` does it."""
    x = as_node(a)
    asked = None if dtype is None else supported(dtype)
    if where is not True and where is not UNSET:
        x = _masked(op, x, where, initial)
    result_dtype = accumulator(op.ufunc, x.type.dtype, asked)
    axes = _axes(op, axis, x)
    if initial is UNSET or initial is None:
        return total(op, x, axes, bool(keepdims), result_dtype)
    if math.prod(x.shape[k] for k in axes) == 0 and op.ufunc.identity is None:
        shape = Sum(axes, bool(keepdims)).infer(x.type).shape
        full: Node = NUMPY[np.full].trace(shape, initial, dtype=result_dtype)
        return full
    rest = total(op, x, axes, bool(keepdims), result_dtype)
    start: Node = NUMPY[np.asarray].trace(initial, dtype=result_dtype)
    combined: Node = NUMPY[op.ufunc].trace(rest, start)
    return combined


def _axes(op: type[Reduction], axis: Any, x: Node) -> tuple[int, ...]:
    if axis is not None and not x.shape and axis in (0, -1):
        return ()  # NumPy lets a 0-d array be reduced over axis 0
    return normal_axes(axis, len(x.shape))


def _masked(op: type[Reduction], x: Node, where: Any, initial: Any) -> Node:
    """x with the neutral element where it does not count."""
    if op.ufunc.identity is None and initial in (UNSET, None):
        op.ufunc.reduce(np.ones(1), where=False)  # raises: there is nothing to start from
    other = op.ufunc.identity
    if other is None:
        other = neutral(op.fn, x.type.dtype)
    if op.ufunc is np.add and x.type.dtype.kind == "f":
        other = 0.0
    chosen: Node = NUMPY[np.where].trace(where, x, x.type.dtype.type(other))
    if len(chosen.shape) > len(x.shape):
        raise Unsupported("where= with more axes than the array is not compiled")
    return chosen


def total(
    op: type[Reduction], x: Node, axes: tuple[int, ...], keepdims: bool, dtype: DType
) -> Node:
    """The reduction in this dtype; float16 is added up and multiplied in float32 and rounded
    once.
    """
    wide = FLOAT32 if dtype == np.float16 and op.fn in ("add", "multiply") else dtype
    if dtype == BOOL and op.fn in ("add", "multiply"):  # asked for by dtype=bool
        op = Any_ if op.fn == "add" else All
    return cast(apply(op(axes, keepdims), cast(x, wide)), dtype)


@traces(np.sum)
def _sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: Any = False,
    initial: Any = UNSET,
    where: Any = True,
) -> Node:
    return reduced(Sum, a, axis, dtype, flag(keepdims), initial, where)


@traces(np.prod)
def _prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: Any = False,
    initial: Any = UNSET,
    where: Any = True,
) -> Node:
    return reduced(Prod, a, axis, dtype, flag(keepdims), initial, where)


@traces(np.max, np.amax)
def _max(
    a: Any, axis: Any = None, keepdims: Any = False, initial: Any = UNSET, where: Any = True
) -> Node:
    return reduced(Max, a, axis, None, flag(keepdims), initial, where)


@traces(np.min, np.amin)
def _min(
    a: Any, axis: Any = None, keepdims: Any = False, initial: Any = UNSET, where: Any = True
) -> Node:
    return reduced(Min, a, axis, None, flag(keepdims), initial, where)


@traces(np.any)
def _any(a: Any, axis: Any = None, keepdims: Any = False, where: Any = True) -> Node:
    return reduced(Any_, cast(as_node(a), BOOL), axis, None, flag(keepdims), UNSET, where)


@traces(np.all)
def _all(a: Any, axis: Any = None, keepdims: Any = False, where: Any = True) -> Node:
    return reduced(All, cast(as_node(a), BOOL), axis, None, flag(keepdims), UNSET, where)


def flag(keepdims: Any) -> bool:
    """What `keepdims` says, which NumPy's functions may not have been given."""
    return False if keepdims is UNSET else bool(keepdims)


def _ufunc_reduce(op: type[Reduction]) -> None:
    """The method form, `np.add.reduce(x)`: like the function, but over the first axis."""

    @traces(op.ufunc.reduce)
    def reduce(
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = UNSET,
        where: Any = True,
    ) -> Node:
        if out is not None and out != (None,):
            raise Unsupported(
                f"out= of np.{op.ufunc.__name__}.reduce is not compiled",
                hint="assign the result: out[...] = …",
            )
        x = as_node(array)
        if op in (Any_, All):
            x = cast(x, BOOL)
        return reduced(op, x, axis, dtype, keepdims, initial, where)


OWN = {op.ufunc: op for op in (Sum, Prod, Max, Min, Any_, All)}  # with loops of their own
for _op in OWN.values():
    _ufunc_reduce(_op)
