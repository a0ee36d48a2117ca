"""Arithmetic on SSA values, written as arithmetic: `V` wraps a `Value` and its `Builder`.

`a * b + c` on `V`s emits an `fmul` and an `fadd`; Python numbers become literals of the other
operand's type.  Everything works on scalars and on vectors of any number of lanes, and nothing
here is approximate: one method is one instruction, or one exact idiom of a few.  Knows LLVM's
instructions, not NumPy's functions; `scalars` and `elementary` are written with it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from nbcomp.target.llvm.builder import Builder, Value

FLOATS = ("half", "float", "double")
WIDTH = {"half": 16, "float": 32, "double": 64}
MANTISSA = {"half": 10, "float": 23, "double": 52}  # stored bits
BIAS = {"half": 15, "float": 127, "double": 1023}

# Classes of floats for `is_class` (LLVM's `llvm.is.fpclass`).
NAN, INFINITE, ZERO, SUBNORMAL = 0x003, 0x204, 0x060, 0x090


def bit_width(element: str) -> int:
    """Bits of one lane: 32 for `float` and `i32`."""
    return WIDTH[element] if element in WIDTH else int(element[1:])


@dataclass(frozen=True, eq=False)
class V:
    """A value with operators; `+ - *` follow the element type, integers compare as signed."""

    b: Builder
    value: Value

    # ------------------------------------------------------------------ facts

    @property
    def element(self) -> str:
        """The LLVM element type, e.g. `float` or `i32`."""
        return self.value.element

    @property
    def lanes(self) -> int:
        """Number of lanes; 0 is a scalar."""
        return self.value.lanes

    @property
    def is_float(self) -> bool:
        """Whether lanes are floating point."""
        return self.element in FLOATS

    @property
    def width(self) -> int:
        """Bits of one lane."""
        return bit_width(self.element)

    @property
    def is_literal(self) -> bool:
        """Whether the value is a constant known now."""
        return not self.value.text.startswith("%")

    @property
    def number(self) -> float | None:
        """The value of a float or double that is a constant known now."""
        found = re.search(r"\b0x([0-9A-F]{16})\b", self.value.text)
        if not found or not self.is_float or not self.is_literal:
            return None
        (number,) = struct.unpack(">d", bytes.fromhex(found[1]))
        return float(number)

    # ------------------------------------------------------------- construction

    def const(self, number: float) -> V:
        """A literal of this value's type."""
        return V(self.b, self.b.constant(number, self.element, self.lanes))

    def of(self, element: str, number: float) -> V:
        """A literal with this value's lanes and another element type."""
        return V(self.b, self.b.constant(number, element, self.lanes))

    def scalar(self, element: str, number: float) -> V:
        """A scalar literal."""
        return V(self.b, self.b.constant(number, element))

    def _lift(self, other: V | float) -> V:
        return other if isinstance(other, V) else self.const(other)

    def _op(self, name: str, other: V | float) -> V:
        rhs = self._lift(other)
        text = f"{name} {self.value}, {rhs.value.text}"
        return V(self.b, self.b.emit(text, self.element, self.lanes))

    def _arith(self, name: str, other: V | float) -> V:
        return self._op(f"f{name}" if self.is_float else name, other)

    # --------------------------------------------------------------- arithmetic

    def __add__(self, other: V | float) -> V:
        return self._arith("add", other)

    def __radd__(self, other: float) -> V:
        return self.const(other) + self

    def __sub__(self, other: V | float) -> V:
        return self._arith("sub", other)

    def __rsub__(self, other: float) -> V:
        return self.const(other) - self

    def __mul__(self, other: V | float) -> V:
        return self._arith("mul", other)

    def __rmul__(self, other: float) -> V:
        return self.const(other) * self

    def __truediv__(self, other: V | float) -> V:
        return self._op("fdiv", other)

    def __rtruediv__(self, other: float) -> V:
        return self.const(other) / self

    def __neg__(self) -> V:
        if self.is_float:
            return V(self.b, self.b.emit(f"fneg {self.value}", self.element, self.lanes))
        return 0 - self

    def fma(self, factor: V | float, addend: V | float) -> V:
        """self * factor + addend with one rounding."""
        args = (self, self._lift(factor), self._lift(addend))
        return V(self.b, self.b.intrinsic("fma", *(a.value for a in args)))

    def muladd(self, factor: V | float, addend: V | float) -> V:
        """self * factor + addend, with one rounding where the CPU has an instruction for that."""
        args = (self, self._lift(factor), self._lift(addend))
        return V(self.b, self.b.intrinsic("fmuladd", *(a.value for a in args)))

    def poly(self, coefficients: Sequence[float]) -> V:
        """The polynomial with these coefficients (highest power first), by Horner's rule."""
        first, *rest = coefficients
        total: V | float = first
        for c in rest:
            total = self.fma(total, c)
        return self._lift(total)

    def sdiv(self, other: V | float) -> V:
        """Signed quotient towards zero; the divisor must not trap."""
        return self._op("sdiv", other)

    def udiv(self, other: V | float) -> V:
        """Unsigned quotient; the divisor must not be zero."""
        return self._op("udiv", other)

    # --------------------------------------------------------------------- bits

    def __and__(self, other: V | float) -> V:
        return self._op("and", other)

    def __or__(self, other: V | float) -> V:
        return self._op("or", other)

    def __xor__(self, other: V | float) -> V:
        return self._op("xor", other)

    def __invert__(self) -> V:
        return self ^ (1 if self.element == "i1" else -1)

    def __lshift__(self, count: V | int) -> V:
        return self._op("shl", count)

    def lshr(self, count: V | int) -> V:
        """Logical shift right."""
        return self._op("lshr", count)

    def ashr(self, count: V | int) -> V:
        """Arithmetic shift right."""
        return self._op("ashr", count)

    def bitcast(self, element: str) -> V:
        """The same bits as another element type of the same width."""
        if element == self.element:
            return self
        return self._convert("bitcast", element)

    def bits(self) -> V:
        """A float's bits as an integer."""
        return self.bitcast(f"i{self.width}")

    # ------------------------------------------------------------------ compare

    def _compare(self, name: str, other: V | float) -> V:
        rhs = self._lift(other)
        op = "fcmp" if self.is_float else "icmp"
        return V(
            self.b, self.b.emit(f"{op} {name} {self.value}, {rhs.value.text}", "i1", self.lanes)
        )

    def lt(self, other: V | float) -> V:
        """self < other; false with NaN."""
        return self._compare("olt" if self.is_float else "slt", other)

    def le(self, other: V | float) -> V:
        """self <= other; false with NaN."""
        return self._compare("ole" if self.is_float else "sle", other)

    def gt(self, other: V | float) -> V:
        """self > other; false with NaN."""
        return self._compare("ogt" if self.is_float else "sgt", other)

    def ge(self, other: V | float) -> V:
        """self >= other; false with NaN."""
        return self._compare("oge" if self.is_float else "sge", other)

    def eq(self, other: V | float) -> V:
        """self == other; false with NaN."""
        return self._compare("oeq" if self.is_float else "eq", other)

    def ne(self, other: V | float) -> V:
        """self != other; true with NaN."""
        return self._compare("une" if self.is_float else "ne", other)

    def ult(self, other: V | float) -> V:
        """Unsigned self < other; for floats: less or unordered."""
        return self._compare("ult", other)

    def ule(self, other: V | float) -> V:
        """Unsigned self <= other; for floats: less, equal or unordered."""
        return self._compare("ule", other)

    def is_nan(self) -> V:
        """Whether a float is NaN."""
        return self._compare("uno", self)

    def is_class(self, classes: int) -> V:
        """Whether a float is of one of the classes (`NAN | INFINITE`, ...): one instruction."""
        mangled = {"float": "f32", "double": "f64", "half": "f16"}[self.element]
        full = f"llvm.is.fpclass.{f'v{self.lanes}' if self.lanes else ''}{mangled}"
        kind = Value("", "i1", self.lanes).type
        self.b.declare(full, kind, self.value.type, "i32")
        text = f"call {kind} @{full}({self.value}, i32 {classes})"
        return V(self.b, self.b.emit(text, "i1", self.lanes))

    def select(self, yes: V, no: V | float) -> V:
        """Lane by lane `yes` where this i1 is set, else `no`."""
        other = yes._lift(no)
        text = f"select {self.value}, {yes.value}, {other.value}"
        return V(self.b, self.b.emit(text, yes.element, yes.lanes))

    # -------------------------------------------------------------- conversions

    def _convert(self, op: str, element: str) -> V:
        target = Value("", element, self.lanes).type
        return V(self.b, self.b.emit(f"{op} {self.value} to {target}", element, self.lanes))

    def resize(self, element: str, signed: bool) -> V:
        """An integer truncated or extended to another integer type."""
        have, want = self.width, bit_width(element)
        if have == want:
            return self
        op = "trunc" if want < have else "sext" if signed else "zext"
        return self._convert(op, element)

    def to_float(self, element: str, signed: bool = True) -> V:
        """An integer rounded to a float, or a float extended or rounded (not double to half)."""
        if not self.is_float:
            return self._convert("sitofp" if signed else "uitofp", element)
        if element == self.element:
            return self
        return self._convert("fpext" if bit_width(element) > self.width else "fptrunc", element)

    def to_int(self, element: str, signed: bool = True) -> V:
        """A float truncated to an integer it fits in (poison otherwise)."""
        return self._convert("fptosi" if signed else "fptoui", element)

    # ---------------------------------------------------------- unary functions

    def _unary(self, name: str) -> V:
        return V(self.b, self.b.intrinsic(name, self.value))

    def abs(self) -> V:
        """Absolute value of a float (the sign bit cleared)."""
        return self._unary("fabs")

    def sqrt(self) -> V:
        """Square root of a float, correctly rounded."""
        return self._unary("sqrt")

    def floor(self) -> V:
        """Largest whole number not above."""
        return self._unary("floor")

    def ceil(self) -> V:
        """Smallest whole number not below."""
        return self._unary("ceil")

    def trunc(self) -> V:
        """The whole number next towards zero."""
        return self._unary("trunc")

    def rint(self) -> V:
        """The nearest whole number, ties to even."""
        return self._unary("roundeven")

    def copysign(self, sign: V | float) -> V:
        """This magnitude with the sign of another float."""
        return V(self.b, self.b.intrinsic("copysign", self.value, self._lift(sign).value))

    def popcount(self) -> V:
        """Number of set bits of an integer."""
        return self._unary("ctpop")

    def trailing_zeros(self) -> V:
        """Trailing zero bits of an integer; its width for 0."""
        return self._counted("cttz")

    def leading_zeros(self) -> V:
        """Leading zero bits of an integer; its width for 0."""
        return self._counted("ctlz")

    def _counted(self, name: str) -> V:
        mangled = f"v{self.lanes}{self.element}" if self.lanes else self.element
        full = f"llvm.{name}.{mangled}"
        self.b.declare(full, self.value.type, self.value.type, "i1")
        text = f"call {self.value.type} @{full}({self.value}, i1 false)"
        return V(self.b, self.b.emit(text, self.element, self.lanes))

    # ------------------------------------------------------- minimum and maximum

    def smin(self, other: V | float) -> V:
        """Signed integer minimum."""
        return self._binary("smin", other)

    def smax(self, other: V | float) -> V:
        """Signed integer maximum."""
        return self._binary("smax", other)

    def umin(self, other: V | float) -> V:
        """Unsigned integer minimum."""
        return self._binary("umin", other)

    def umax(self, other: V | float) -> V:
        """Unsigned integer maximum."""
        return self._binary("umax", other)

    def _binary(self, name: str, other: V | float) -> V:
        return V(self.b, self.b.intrinsic(name, self.value, self._lift(other).value))

    def min(self, other: V | float) -> V:
        """self if self < other, else other (also on NaN and ±0): x86's `minps`, one instruction."""
        rhs = self._lift(other)
        return self.lt(rhs).select(self, rhs)

    def max(self, other: V | float) -> V:
        """self if self > other, else other (also on NaN and ±0): x86's `maxps`, one instruction."""
        rhs = self._lift(other)
        return self.gt(rhs).select(self, rhs)

    def any(self) -> V:
        """A scalar i1: whether an i1 is set in any lane."""
        if not self.lanes:
            return self
        full = f"llvm.vector.reduce.or.v{self.lanes}i1"
        self.b.declare(full, "i1", self.value.type)
        return V(self.b, self.b.emit(f"call i1 @{full}({self.value})", "i1"))

    # ------------------------------------------------------------ lanes as parts

    def extract(self, lane: int) -> V:
        """One lane as a scalar."""
        return V(self.b, self.b.emit(f"extractelement {self.value}, i64 {lane}", self.element))

    def insert(self, lane: int, item: V) -> V:
        """The vector with one lane replaced."""
        text = f"insertelement {self.value}, {item.value}, i64 {lane}"
        return V(self.b, self.b.emit(text, self.element, self.lanes))

    def slice(self, start: int, lanes: int) -> V:
        """Lanes start .. start+lanes of a vector (poison beyond its end)."""
        picks = ", ".join(
            f"i32 {start + i}" if start + i < self.lanes else "i32 poison" for i in range(lanes)
        )
        text = f"shufflevector {self.value}, {self.value.type} poison, <{lanes} x i32> <{picks}>"
        return V(self.b, self.b.emit(text, self.element, lanes))

    def concat(self, other: V) -> V:
        """The lanes of two vectors of one type, one after the other."""
        lanes = self.lanes + other.lanes
        picks = ", ".join(f"i32 {i}" for i in range(lanes))
        text = f"shufflevector {self.value}, {other.value}, <{lanes} x i32> <{picks}>"
        return V(self.b, self.b.emit(text, self.element, lanes))
