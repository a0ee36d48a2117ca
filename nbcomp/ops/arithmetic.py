"""Arithmetic and rounding: one small class per NumPy ufunc.

A class says only what is special about its ufunc: the scalar function on bool, an element written
in simpler functions, its cost in instructions, and how far (in ulp) another right result may be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nbcomp.loop.grammar import Expr, const
from nbcomp.ops.operand import (
    convert,
)
from nbcomp.ops.ufunc import Ufunc, call, like, select, test
from nbcomp.types import BOOL, FLOAT64, DType


class Add(Ufunc, name="add", numpy=(np.add,)):
    """x + y"""

    on_bool = "logical_or"


class Subtract(Ufunc, name="subtract", numpy=(np.subtract,)):
    """x - y"""


class Multiply(Ufunc, name="multiply", numpy=(np.multiply,)):
    """x * y"""

    on_bool = "logical_and"


class Divide(Ufunc, name="divide", numpy=(np.divide,)):
    """x / y, in floating point"""

    cost = 4


class FloorDivide(Ufunc, name="floor_divide", numpy=(np.floor_divide,)):
    """x // y, rounded towards minus infinity"""

    cost = 20


class Remainder(Ufunc, name="remainder", numpy=(np.remainder,)):
    """x % y, with the sign of y"""

    cost = 20


class Fmod(Ufunc, name="fmod", numpy=(np.fmod,)):
    """The remainder of C, with the sign of x"""

    cost = 20


class Negative(Ufunc, name="negative", numpy=(np.negative,)):
    """-x"""


class Positive(Ufunc, name="positive", numpy=(np.positive,)):
    """+x"""

    def element(self, dtype: DType, *args: Expr) -> Expr:
        return args[0]


class Conjugate(Ufunc, name="conjugate", numpy=(np.conjugate,)):
    """The complex conjugate: a real number itself"""

    def element(self, dtype: DType, *args: Expr) -> Expr:
        return args[0]


class Absolute(Ufunc, name="absolute", numpy=(np.absolute,)):
    """|x|"""

    def element(self, dtype: DType, *args: Expr) -> Expr:
        return args[0] if dtype.kind in "bu" else call("absolute", args[0])


class Fabs(Ufunc, name="fabs", numpy=(np.fabs,)):
    """|x|, in floating point"""

    def element(self, dtype: DType, *args: Expr) -> Expr:
        return call("absolute", args[0])


class Sign(Ufunc, name="sign", numpy=(np.sign,)):
    """-1, 0 or 1; NaN for NaN"""


class Square(Ufunc, name="square", numpy=(np.square,)):
    """x * x"""

    def element(self, dtype: DType, *args: Expr) -> Expr:
        return call("multiply", args[0], args[0])


class Reciprocal(Ufunc, name="reciprocal", numpy=(np.reciprocal,)):
    """1 / x; integers are rounded towards zero"""

    cost = 4

    def element(self, dtype: DType, *args: Expr) -> Expr:
        if dtype.kind == "f":
            return call("divide", like(1, args[0]), args[0])
        # NumPy divides 1.0 by the integer as a double and converts back, 1 / 0 included.
        return convert(call("divide", const(1, FLOAT64), convert(args[0], FLOAT64)), dtype)


class Maximum(Ufunc, name="maximum", numpy=(np.maximum,)):
    """The larger of x and y; NaN if either is"""

    on_bool = "logical_or"


class Minimum(Ufunc, name="minimum", numpy=(np.minimum,)):
    """The smaller of x and y; NaN if either is"""

    on_bool = "logical_and"


class Fmax(Ufunc, name="fmax", numpy=(np.fmax,)):
    """The larger of x and y; the other one if one is NaN"""

    def element(self, dtype: DType, *args: Expr) -> Expr:
        return _number_of("maximum", "logical_or", *args)


class Fmin(Ufunc, name="fmin", numpy=(np.fmin,)):
    """The smaller of x and y; the other one if one is NaN"""

    def element(self, dtype: DType, *args: Expr) -> Expr:
        return _number_of("minimum", "logical_and", *args)


def _number_of(fn: str, on_bool: str, x: Expr, y: Expr) -> Expr:
    if x.dtype == BOOL:
        return call(on_bool, x, y)
    both = call(fn, x, y)
    if x.dtype.kind != "f":
        return both
    return select(test("isnan", x), y, select(test("isnan", y), x, both))


class Heaviside(Ufunc, name="heaviside", numpy=(np.heaviside,)):
    """0 for x < 0, y for x = 0, 1 for x > 0"""

    cost = 4

    def element(self, dtype: DType, *args: Expr) -> Expr:
        x, y = args
        zero, one = like(0, x), like(1, x)
        positive = select(test("greater", x, zero), one, select(test("less", x, zero), zero, y))
        return select(test("isnan", x), x, positive)


class Gcd(Ufunc, name="gcd", numpy=(np.gcd,)):
    """The greatest common divisor"""

    cost = 100


class Lcm(Ufunc, name="lcm", numpy=(np.lcm,)):
    """The least common multiple"""

    cost = 100


@dataclass(frozen=True)
class Rounding(Ufunc):
    """Rounds floating numbers to whole ones; integers are whole already."""

    def element(self, dtype: DType, *args: Expr) -> Expr:
        return super().element(dtype, *args) if dtype.kind == "f" else args[0]


class Floor(Rounding, name="floor", numpy=(np.floor,)):
    """The largest whole number not above x"""


class Ceil(Rounding, name="ceil", numpy=(np.ceil,)):
    """The smallest whole number not below x"""


class Trunc(Rounding, name="trunc", numpy=(np.trunc,)):
    """x without its fraction"""


class Rint(Rounding, name="rint", numpy=(np.rint,)):
    """The nearest whole number, halves to even"""
