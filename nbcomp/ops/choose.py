"""Choosing elements: where and clip."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import UNSET
from nbcomp.graph.op import Elementwise, Sample
from nbcomp.loop.grammar import Expr
from nbcomp.ops import values
from nbcomp.ops.arithmetic import Maximum, Minimum, Positive
from nbcomp.ops.operand import (
    as_node,
    ask,
    broadcast_shape,
    cast,
    convert,
    converted,
    operand,
    result_type,
)
from nbcomp.ops.ufunc import call, select
from nbcomp.types import BOOL, FLOAT32, FLOAT64, TensorType


@dataclass(frozen=True)
class Where(Elementwise, name="where", numpy=(np.where,)):
    """x where the condition holds, else y"""

    def infer(self, *types: TensorType) -> TensorType:
        _, x, y = types
        return TensorType(np.result_type(x.dtype, y.dtype), broadcast_shape(np.where, *types))

    def reference(self, *arrays: Any) -> Any:
        return np.where(*arrays)

    def scalar(self, *args: Expr) -> Expr:
        condition, x, y = args
        dtype = np.result_type(x.dtype, y.dtype)
        return select(convert(condition, BOOL), convert(x, dtype), convert(y, dtype))

    @classmethod
    def trace(cls, condition: Any, *choices: Any) -> Node:
        if len(choices) != 2:
            if choices:
                raise ValueError("either both or neither of x and y should be given")
            raise Unsupported(
                "np.where(condition) alone gives as many indices as there are true elements",
                hint="np.where(condition, x, y)",
            )
        dtype = result_type(*choices)
        x, y = (converted(c, dtype) for c in choices)
        return apply(cls(), cast(as_node(condition), BOOL), x, y)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in values.DTYPES:
            x, y = values.mixed(rng, dtype), values.mixed(rng, dtype)
            yield Sample(cls(), (values.mixed(rng, BOOL), x, y))
        for a, b in values.PAIRS:
            arrays = (values.ordinary(rng, FLOAT32, s) for s in (a, b))
            yield Sample(cls(), (values.ordinary(rng, BOOL, b), *arrays))
        yield Sample(
            cls(), (values.mixed(rng, FLOAT32), np.int8(3) * np.ones(37, np.int8), np.ones(1))
        )


@dataclass(frozen=True)
class Clip(Elementwise, name="clip", numpy=(np.clip,)):
    """minimum(maximum(x, low), high)"""

    cost: ClassVar[int] = 2

    def infer(self, *types: TensorType) -> TensorType:
        dtype = np.result_type(*(t.dtype for t in types))
        return TensorType(dtype, broadcast_shape(np.clip, *types))

    def reference(self, *arrays: Any) -> Any:
        return np.clip(*arrays)

    def scalar(self, *args: Expr) -> Expr:
        dtype = np.result_type(*(a.dtype for a in args))
        x, low, high = (convert(a, dtype) for a in args)
        return call("minimum", call("maximum", x, low), high)

    @classmethod
    def trace(
        cls,
        a: Any,
        a_min: Any = UNSET,
        a_max: Any = UNSET,
        min: Any = UNSET,
        max: Any = UNSET,
    ) -> Node:
        x = as_node(a)
        given = {"a_min": a_min, "a_max": a_max, "min": min, "max": max}
        known = {name: 0 for name, value in given.items() if value is not UNSET}
        clip: Any = np.clip
        clip(np.zeros(()), **known)  # raises where the names contradict each other
        low, high = (
            None if v is UNSET else v for v in ((min, max) if a_min is UNSET else (a_min, a_max))
        )
        if x.type.dtype.kind in "iu":  # a Python int at or beyond the dtype's end bounds nothing
            whole: Any = x.type.dtype
            info = np.iinfo(whole)
            low = None if type(low) is int and low <= int(info.min) else low
            high = None if type(high) is int and high >= int(info.max) else high
        if low is None and high is None:
            return Positive.trace(x)
        if low is None:
            return Minimum.trace(x, high)
        if high is None:
            return Maximum.trace(x, low)
        dtype = result_type(x, low, high)
        if dtype == BOOL:
            ask(np.clip, np.ones((), bool), True, False)  # raises: there is no such loop
        return apply(cls(), *(operand(v, dtype) for v in (x, low, high)))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in values.DTYPES[1:]:
            x = values.mixed(rng, dtype)
            yield Sample(cls(), (x, np.array(1, dtype), np.array(5, dtype)))
        for low, high in ((2.0, -1.0), (np.nan, 1.0), (-1.0, np.nan), (-np.inf, np.inf)):
            yield Sample(cls(), (values.mixed(rng, FLOAT64), np.array(low), np.array(high)))
        yield Sample(
            cls(), tuple(values.ordinary(rng, FLOAT32, s) for s in ((3, 1), (4,), (2, 1, 1)))
        )
