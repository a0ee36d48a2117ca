"""Ufuncs folded along axes by NumPy itself: `np.bitwise_or.reduce`, `np.add.reduceat`.

Library routines; the reductions that have loops of their own are in `reduce`, running results in
`scan`.  Knows nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import UNSET, traces
from nbcomp.graph.op import Library, Sample
from nbcomp.ops import values
from nbcomp.ops.operand import as_node, ask, cast, integer, normal_axes, normal_axis, supported
from nbcomp.ops.reduce import OWN, Sum
from nbcomp.types import INT64, DType, TensorType

# Ufuncs whose loops are T × T -> T: each partial result is the next operand.
FOLDED = (
    *(np.add, np.multiply, np.subtract, np.true_divide, np.power, np.maximum, np.minimum),
    *(np.fmax, np.fmin, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.logical_and),
    *(np.logical_or, np.logical_xor, np.hypot, np.logaddexp, np.logaddexp2, np.gcd, np.lcm),
    *(np.floor_divide, np.remainder, np.fmod, np.arctan2),
)


@dataclass(frozen=True)
class Fold(Library, name="fold"):
    """The ufunc fn between all elements over axes"""

    fn: str
    axes: tuple[int, ...]
    keepdims: bool

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(types[0].dtype, Sum(self.axes, self.keepdims).infer(types[0]).shape)

    def may_raise(self, *inputs: Node) -> bool:
        """Powers of integers do, where an exponent is negative."""
        return self.fn == "power" and inputs[0].type.dtype.kind == "i"

    def reference(self, *arrays: Any) -> Any:
        x = np.asarray(arrays[0])
        fold: Any = getattr(np, self.fn).reduce
        return fold(x, self.axes, x.dtype, None, self.keepdims)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in (np.uint8, np.int64):
            x = values.ordinary(rng, dtype, (3, 5, 2))
            for fn in ("bitwise_or", "bitwise_xor", "gcd"):
                yield Sample(cls(fn, (1,), False), (x,))
            yield Sample(cls("bitwise_and", (0, 2), True), (x,))
        for fn in ("fmax", "subtract", "hypot"):
            yield Sample(cls(fn, (0,), False), (values.edges(np.dtype(np.float32)),))


@dataclass(frozen=True)
class FoldAt(Library, name="fold_at"):
    """The ufunc fn between the elements from each place to the next; as `reduceat` has it"""

    raises: ClassVar[bool] = True

    fn: str
    axis: int

    def infer(self, *types: TensorType) -> TensorType:
        x, places = types
        shape = (*x.shape[: self.axis], *places.shape, *x.shape[self.axis + 1 :])
        return TensorType(x.dtype, shape)

    def reference(self, *arrays: Any) -> Any:
        x, places = arrays
        return getattr(np, self.fn).reduceat(x, places, self.axis, np.asarray(x).dtype)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for fn in ("add", "maximum", "subtract"):
            x = values.ordinary(rng, np.float64, (7, 3))
            yield Sample(cls(fn, 0), (x, np.array([0, 4, 2, 2, 6])))
            yield Sample(cls(fn, 1), (x, np.array([0, 2])))


def _loop(ufunc: np.ufunc, x: Node, dtype: Any) -> DType:
    """The dtype NumPy folds in."""
    asked = None if dtype is None else supported(dtype)
    return supported(ufunc.accumulate(np.ones(1, x.type.dtype), dtype=asked).dtype)


def _fold(ufunc: np.ufunc) -> None:
    @traces(ufunc.reduce)
    def reduce(
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = UNSET,
        where: Any = True,
    ) -> Node:
        name = f"np.{ufunc.__name__}.reduce"
        if out is not None and out != (None,):
            raise Unsupported(f"out= of {name} is not compiled", hint="out[...] = …")
        if where is not True or initial is not UNSET:
            hint = f"np.{ufunc.__name__} of the result and the initial value, np.where before it"
            raise Unsupported(f"initial= and where= of {name} are not compiled", hint=hint)
        x = as_node(array)
        axes = () if not x.shape and axis in (0, -1) else normal_axes(axis, len(x.shape))
        if len(axes) != 1 or not math.prod(x.shape[k] for k in axes):
            small = (min(n, 1) if k in axes else 1 for k, n in enumerate(x.shape))
            ask(ufunc.reduce, np.ones(tuple(small), x.type.dtype), axes or None)  # may raise
        return apply(Fold(ufunc.__name__, axes, bool(keepdims)), cast(x, _loop(ufunc, x, dtype)))


def _fold_at(ufunc: np.ufunc) -> None:
    @traces(ufunc.reduceat)
    def reduceat(array: Any, indices: Any, axis: Any = 0, dtype: Any = None) -> Node:
        x, places = as_node(array), as_node(indices)
        if len(places.shape) != 1 or places.type.dtype.kind not in "iu":
            ask(ufunc.reduceat, np.ones(3), np.ones(places.shape, places.type.dtype))  # may raise
            raise Unsupported(f"np.{ufunc.__name__}.reduceat of such places is not compiled")
        where = normal_axis(integer(axis), len(x.shape))
        operands = cast(x, _loop(ufunc, x, dtype)), cast(places, INT64)
        return apply(FoldAt(ufunc.__name__, where), *operands)


for _ufunc in FOLDED:
    _fold_at(_ufunc)
    if _ufunc not in OWN:
        _fold(_ufunc)
