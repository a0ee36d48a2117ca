"""Powers, which NumPy computes in several ways: by `pow`, and as roots and products where the
exponent is one simple number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nbcomp.graph.ir import Node, apply
from nbcomp.graph.op import Constant, Elementwise, Library, Sample
from nbcomp.loop.grammar import Apply, Expr
from nbcomp.ops import values
from nbcomp.ops.arithmetic import Positive, Reciprocal, Square
from nbcomp.ops.choose import Where
from nbcomp.ops.elementary import Sqrt
from nbcomp.ops.logic import Equal
from nbcomp.ops.operand import (
    broadcast_to,
    constant,
    convert,
)
from nbcomp.ops.ufunc import Ufunc, call, write
from nbcomp.sizes import broadcast_shapes
from nbcomp.types import FLOAT32, FLOAT64, DType, TensorType


class Power(Ufunc, name="power", numpy=(np.power,)):
    """x ** y"""

    cost = 40
    ulp = 4

    @classmethod
    def trace(cls, *args: Any, **options: Any) -> Node:
        node: Node = write(cls.fn, args, options, _power)
        return node

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for sample in super().samples(rng):
            x, y = sample.arrays
            if y.dtype.kind == "i" and x.dtype.kind in "biu":  # a negative exponent raises in NumPy
                y = y & np.array(7, y.dtype)
            yield Sample(cls(), (x, y), sample.ulp)


def _power(x: Node, y: Node) -> Node:
    """x ** y; NumPy takes roots, squares, ... when the exponent is one number."""
    if y.type.dtype.kind == "i" and not _never_negative(y):
        return apply(IntegerPower(), x, y)
    if y.type.size != 1:
        return apply(Power(), x, y)
    shape = broadcast_shapes(x.shape, y.shape)
    if isinstance(y.op, Constant):
        simple = _simple_power(np.asarray(y.op.value).item(), x.type.dtype)
        return apply(Power(), x, y) if simple is None else broadcast_to(apply(simple, x), shape)
    if y.type.dtype.kind != "f":
        return apply(Power(), x, y)
    half = apply(Equal(), y, constant(0.5, y.type.dtype))
    return apply(Where(), half, apply(Sqrt(), x), apply(Power(), x, y))


def _simple_power(exponent: float, dtype: DType) -> Elementwise | None:
    if exponent in (1, 2):
        return Square() if exponent == 2 else Positive()
    if exponent in (3, 4) and dtype.kind == "f" and (exponent == 3 or dtype != FLOAT64):
        return SmallPower(int(exponent))
    if dtype.kind == "f" and exponent in (0.5, -1):
        return Sqrt() if exponent == 0.5 else Reciprocal()
    return None


@dataclass(frozen=True)
class SmallPower(Elementwise, name="small_power"):
    """x ** n by products, in twice the precision where there is one: within 1 ulp"""

    n: int

    cost: ClassVar[int] = 3

    def infer(self, *types: TensorType) -> TensorType:
        return types[0]

    def reference(self, *arrays: Any) -> Any:
        x = np.asarray(arrays[0])
        return np.power(x, x.dtype.type(self.n))

    def scalar(self, *args: Expr) -> Expr:
        x = args[0]
        wide = convert(x, FLOAT64)
        square = call("multiply", wide, wide)
        other = wide if self.n == 3 else square
        return convert(call("multiply", square, other), x.dtype)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in values.FLOATS:
            yield Sample(cls(3), (values.mixed(rng, dtype),), 4)
        for shape in values.SHAPES:
            yield Sample(cls(4), (values.ordinary(rng, FLOAT32, shape),), 4)


def _never_negative(node: Node) -> bool:
    return isinstance(node.op, Constant) and bool((np.asarray(node.op.value) >= 0).all())


@dataclass(frozen=True)
class IntegerPower(Library, name="integer_power"):
    """x ** y of integers where y may be negative, which is an error only NumPy's loop can raise"""

    raises: ClassVar[bool] = True

    def infer(self, *types: TensorType) -> TensorType:
        return Power().infer(*types)

    def reference(self, *arrays: Any) -> Any:
        return np.power(*arrays)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in values.SIGNED:
            x, y = values.mixed(rng, dtype), values.mixed(rng, dtype)
            yield Sample(cls(), (x, y & np.array(15, dtype)))
        yield Sample(cls(), (np.ones((3, 1), np.int64), np.zeros((2,), np.int64)))


class FloatPower(Ufunc, name="float_power", numpy=(np.float_power,)):
    """x ** y, in float64"""

    cost = 40
    ulp = 4

    def element(self, dtype: DType, *args: Expr) -> Expr:
        return Apply(dtype, "power", args)
