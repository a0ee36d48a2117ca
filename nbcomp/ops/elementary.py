"""The elementary functions: exp, log, the trigonometric and hyperbolic ones, erf.

The target has vector code of its own for most; the rest are written in those.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nbcomp.graph.ir import Node, apply
from nbcomp.graph.op import Elementwise, Sample
from nbcomp.loop.grammar import Expr
from nbcomp.ops import values
from nbcomp.ops.operand import (
    as_node,
    convert,
)
from nbcomp.ops.ufunc import Ufunc, call, like, widened
from nbcomp.types import FLOAT32, FLOAT64, DType, TensorType


@dataclass(frozen=True)
class Elementary(Ufunc):
    """An elementary function in the compiler's own vector code."""

    cost: ClassVar[int] = 25
    ulp: ClassVar[float] = 4  # NumPy's own error, up to 4 ulp in its SIMD loops, and ours of 1 to 2


class Sqrt(Ufunc, name="sqrt", numpy=(np.sqrt,)):
    """The square root"""

    cost = 6


class Cbrt(Elementary, name="cbrt", numpy=(np.cbrt,)):
    """The cube root"""


class Exp(Elementary, name="exp", numpy=(np.exp,)):
    """e ** x"""


class Exp2(Elementary, name="exp2", numpy=(np.exp2,)):
    """2 ** x"""


class Expm1(Elementary, name="expm1", numpy=(np.expm1,)):
    """e ** x - 1, precise near 0"""


class Log(Elementary, name="log", numpy=(np.log,)):
    """The natural logarithm"""


class Log2(Elementary, name="log2", numpy=(np.log2,)):
    """The logarithm to base 2"""


class Log10(Elementary, name="log10", numpy=(np.log10,)):
    """The logarithm to base 10"""


class Log1p(Elementary, name="log1p", numpy=(np.log1p,)):
    """log(1 + x), precise near 0"""


class Sin(Elementary, name="sin", numpy=(np.sin,)):
    """The sine"""


class Cos(Elementary, name="cos", numpy=(np.cos,)):
    """The cosine"""


class Tan(Elementary, name="tan", numpy=(np.tan,)):
    """The tangent"""


class Arcsin(Elementary, name="arcsin", numpy=(np.arcsin,)):
    """The inverse sine"""


class Arccos(Elementary, name="arccos", numpy=(np.arccos,)):
    """The inverse cosine"""


class Arctan(Elementary, name="arctan", numpy=(np.arctan,)):
    """The inverse tangent"""


class Arctan2(Elementary, name="arctan2", numpy=(np.arctan2,)):
    """The angle of the point (y, x)"""


class Sinh(Elementary, name="sinh", numpy=(np.sinh,)):
    """The hyperbolic sine"""


class Cosh(Elementary, name="cosh", numpy=(np.cosh,)):
    """The hyperbolic cosine"""


class Tanh(Elementary, name="tanh", numpy=(np.tanh,)):
    """The hyperbolic tangent"""


class Arcsinh(Elementary, name="arcsinh", numpy=(np.arcsinh,)):
    """The inverse hyperbolic sine"""


class Arccosh(Elementary, name="arccosh", numpy=(np.arccosh,)):
    """The inverse hyperbolic cosine"""


class Arctanh(Elementary, name="arctanh", numpy=(np.arctanh,)):
    """The inverse hyperbolic tangent"""


class Hypot(Elementary, name="hypot", numpy=(np.hypot,)):
    """sqrt(x² + y²) without overflow"""


class LogAddExp(Elementary, name="logaddexp", numpy=(np.logaddexp,)):
    """log(e ** x + e ** y)"""

    cost = 60
    ulp = 64  # near 0 it is a difference of nearly equal numbers


class LogAddExp2(Elementary, name="logaddexp2", numpy=(np.logaddexp2,)):
    """log2(2 ** x + 2 ** y)"""

    cost = 60
    ulp = 64


@dataclass(frozen=True)
class Scaling(Ufunc):
    """A change of unit: one multiplication by a constant of the operand's precision."""

    numerator: ClassVar[float]
    denominator: ClassVar[float]

    def element(self, dtype: DType, *args: Expr) -> Expr:
        x = widened(args[0])
        real: Any = x.dtype.type
        return convert(
            call("multiply", x, like(real(self.numerator) / real(self.denominator), x)), dtype
        )


class Deg2rad(Scaling, name="deg2rad", numpy=(np.deg2rad,)):
    """Degrees to radians"""

    numerator, denominator = np.pi, 180.0


class Radians(Scaling, name="radians", numpy=(np.radians,)):
    """Degrees to radians"""

    numerator, denominator = np.pi, 180.0


class Rad2deg(Scaling, name="rad2deg", numpy=(np.rad2deg,)):
    """Radians to degrees"""

    numerator, denominator = 180.0, np.pi


class Degrees(Scaling, name="degrees", numpy=(np.degrees,)):
    """Radians to degrees"""

    numerator, denominator = 180.0, np.pi


@dataclass(frozen=True)
class Erf(Elementwise, name="erf"):
    """The error function; of scipy.special"""

    cost: ClassVar[int] = 30

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(self._loop(types[0].dtype), types[0].shape)

    @staticmethod
    def _loop(dtype: DType) -> DType:
        """scipy's float64 loop comes first: it takes all but float32."""
        return FLOAT32 if dtype == FLOAT32 else FLOAT64

    def reference(self, *arrays: Any) -> Any:
        from scipy.special import erf  # heavy, and only the reference needs it

        return erf(arrays[0])

    def scalar(self, *args: Expr) -> Expr:
        return call("erf", convert(args[0], self._loop(args[0].dtype)))

    @classmethod
    def trace(cls, x: Any) -> Node:
        return apply(cls(), as_node(x))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in values.DTYPES:
            yield Sample(cls(), (values.mixed(rng, dtype),), 4)
        for shape in values.SHAPES:
            yield Sample(cls(), (values.ordinary(rng, FLOAT64, shape),), 4)
