"""Questions about floating numbers and their parts: isnan, copysign, ldexp, modf, frexp, ..."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import traces
from nbcomp.graph.op import Elementwise, Sample
from nbcomp.loop.grammar import Apply, Expr, const
from nbcomp.ops import values
from nbcomp.ops.arithmetic import FloorDivide, Remainder
from nbcomp.ops.operand import (
    as_node,
    convert,
)
from nbcomp.ops.ufunc import Ufunc, call, like, loop_dtypes, select, test, widened
from nbcomp.types import BOOL, FLOAT32, FLOAT64, DType, TensorType


@dataclass(frozen=True)
class Kind(Ufunc):
    """A question about a floating number, with one answer for all integers."""

    on_integers: ClassVar[bool] = False

    def element(self, dtype: DType, *args: Expr) -> Expr:
        if args[0].dtype.kind != "f":
            return const(self.on_integers, BOOL)
        return super().element(dtype, *args)


class IsNan(Kind, name="isnan", numpy=(np.isnan,)):
    """Whether x is NaN"""


class IsInf(Kind, name="isinf", numpy=(np.isinf,)):
    """Whether x is infinite"""


class IsFinite(Kind, name="isfinite", numpy=(np.isfinite,)):
    """Whether x is neither infinite nor NaN"""

    on_integers = True


class SignBit(Ufunc, name="signbit", numpy=(np.signbit,)):
    """Whether the sign bit is set: of -0.0 it is"""


class CopySign(Ufunc, name="copysign", numpy=(np.copysign,)):
    """|x| with the sign of y"""


class NextAfter(Ufunc, name="nextafter", numpy=(np.nextafter,)):
    """The next floating number from x towards y"""

    cost = 8


class Spacing(Ufunc, name="spacing", numpy=(np.spacing,)):
    """The distance from x to the next floating number away from zero"""

    cost = 8


class Ldexp(Ufunc, name="ldexp", numpy=(np.ldexp,)):
    """x * 2**n"""

    cost = 8


@traces(np.divmod)
def _divmod(*args: Any, **options: Any) -> tuple[Node, Node]:
    return FloorDivide.trace(*args, **options), Remainder.trace(*args, **options)


@dataclass(frozen=True)
class Part(Elementwise):
    """One of the two results of a ufunc."""

    fn: ClassVar[np.ufunc]
    result: ClassVar[int]

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(loop_dtypes(self.fn, (types[0].dtype,))[1 + self.result], types[0].shape)

    def reference(self, *arrays: Any) -> Any:
        return self.fn(*arrays)[self.result]

    def scalar(self, *args: Expr) -> Expr:
        loop = loop_dtypes(self.fn, (args[0].dtype,))
        return self.element(loop[1 + self.result], convert(args[0], loop[0]))

    def element(self, dtype: DType, x: Expr) -> Expr:
        """The element, of this dtype, from an operand that has the dtype of the loop."""
        raise NotImplementedError

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in (*values.FLOATS, *values.TYPICAL):
            yield Sample(cls(), (values.mixed(rng, dtype, 53),))
        for shape in values.SHAPES:
            yield Sample(cls(), (values.ordinary(rng, FLOAT32, shape),))


@dataclass(frozen=True)
class Fraction(Part, name="modf_fraction"):
    """The fraction of x, with its sign: the first result of modf"""

    fn: ClassVar[np.ufunc] = np.modf
    result: ClassVar[int] = 0

    def element(self, dtype: DType, x: Expr) -> Expr:
        rest = call("subtract", x, call("trunc", x))
        return call("copysign", select(test("isinf", x), like(0, x), rest), x)


@dataclass(frozen=True)
class Whole(Part, name="modf_integral"):
    """x without its fraction, with its sign: the second result of modf"""

    fn: ClassVar[np.ufunc] = np.modf
    result: ClassVar[int] = 1

    def element(self, dtype: DType, x: Expr) -> Expr:
        return call("trunc", x)


def _split(x: Expr) -> tuple[Expr, Expr]:
    """The bits and the biased exponent of a float, after scaling it out of the subnormal range."""
    bits, mantissa = _LAYOUT[x.dtype]
    real: Any = x.dtype
    tiny = test("less", call("absolute", x), like(float(np.finfo(real).tiny), x))
    scaled = select(tiny, call("multiply", x, like(2.0 ** (mantissa + 2), x)), x)
    raw = Apply(bits, "bitcast", (scaled,))
    shifted = call("right_shift", raw, like(mantissa, raw))
    field = call("bitwise_and", shifted, like(_mask(bits, mantissa), raw))
    shift = select(tiny, like(mantissa + 2, raw), like(0, raw))
    return raw, call("subtract", field, shift)


_LAYOUT: dict[DType, tuple[DType, int]] = {
    FLOAT32: (np.dtype(np.int32), 23),
    FLOAT64: (np.dtype(np.int64), 52),
}


def _mask(bits: DType, mantissa: int) -> int:
    """The exponent field, shifted down."""
    return (1 << (8 * bits.itemsize - 1 - mantissa)) - 1


def _regular(x: Expr) -> Expr:
    """Whether x has a mantissa and an exponent at all."""
    return call("logical_and", test("isfinite", x), test("not_equal", x, like(0, x)))


@dataclass(frozen=True)
class Mantissa(Part, name="frexp_mantissa"):
    """m of x = m * 2**e with ½ <= |m| < 1: the first result of frexp"""

    fn: ClassVar[np.ufunc] = np.frexp
    result: ClassVar[int] = 0

    def element(self, dtype: DType, x: Expr) -> Expr:
        wide = widened(x)
        raw, _ = _split(wide)
        bits, mantissa = _LAYOUT[wide.dtype]
        field = _mask(bits, mantissa)
        kept = call("bitwise_and", raw, like(~(field << mantissa), raw))
        one = call("bitwise_or", kept, like((field // 2 - 1) << mantissa, raw))
        return convert(select(_regular(wide), Apply(wide.dtype, "bitcast", (one,)), wide), dtype)


@dataclass(frozen=True)
class Exponent(Part, name="frexp_exponent"):
    """e of x = m * 2**e with ½ <= |m| < 1, 0 for 0: the second result of frexp"""

    fn: ClassVar[np.ufunc] = np.frexp
    result: ClassVar[int] = 1

    def element(self, dtype: DType, x: Expr) -> Expr:
        wide = widened(x)
        raw, field = _split(wide)
        bits, mantissa = _LAYOUT[wide.dtype]
        exponent = call("subtract", field, like(_mask(bits, mantissa) // 2 - 1, raw))
        return convert(select(_regular(wide), exponent, like(0, raw)), dtype)


@traces(np.modf)
def _modf(x: Any) -> tuple[Node, Node]:
    node = as_node(x)
    return apply(Fraction(), node), apply(Whole(), node)


@traces(np.frexp)
def _frexp(x: Any) -> tuple[Node, Node]:
    node = as_node(x)
    return apply(Mantissa(), node), apply(Exponent(), node)
