"""Arithmetic of Python ints: 64 bits wide, and checked.

A result whose bounds show that it fits is computed as it is; any other is checked, and what leaves
64 bits ends the kernel.  Sums and multiples of loop variables stay affine.
"""

from __future__ import annotations

from nbcomp.frontend.script.errors import BEYOND, INT_BY_ZERO, Words
from nbcomp.frontend.script.values import (
    INT_HIGH,
    INT_LOW,
    PY_BOOL,
    PY_INT,
    Scalar,
    Variable,
    Way,
    as_index,
    clipped,
    from_index,
    number,
    plain_bounds,
)
from nbcomp.frontend.script.ways import Ways
from nbcomp.loop.grammar import Affine, Const, Expr, If, While, index_add, index_scale
from nbcomp.types import BOOL

LONG_POWER = 64  # a constant exponent up to here is written as products


class WholeNumbers(Ways):
    """Operators on Python ints."""

    def to_int(self, s: Scalar) -> Scalar:
        """A bool as an int."""
        return Scalar(PY_INT, self.cast(s.expr, PY_INT), s.low, s.high) if s.kind == PY_BOOL else s

    def checked(self, fn: str, a: Scalar, b: Scalar, low: int, high: int) -> Scalar:
        """A sum, difference or product whose true bounds are low..high."""
        fits = low >= INT_LOW and high <= INT_HIGH
        if not fits:
            a, b = self.keep(a), self.keep(b)
            bad = self.apply(f"{fn}_overflows", a.expr, b.expr, dtype=BOOL)
            self.fail_if(bad, *BEYOND)
        expr = self.index_arithmetic(fn, a.expr, b.expr) if fits else None
        if isinstance(expr, Const):
            return number(int(expr.value))  # whatever the variables in it, which cancel out
        expr = expr or self.apply(fn, a.expr, b.expr)
        return Scalar(PY_INT, expr, max(low, INT_LOW), min(high, INT_HIGH))

    def index_arithmetic(self, fn: str, a: Expr, b: Expr) -> Expr | None:
        """Sums and multiples of loop variables stay affine."""
        a, b = as_index(a), as_index(b)
        if not (isinstance(a, Affine) and isinstance(b, Affine)):
            return None
        if fn == "multiply":
            if a.terms and b.terms:
                return None
            many, once = (a, b) if a.terms else (b, a)
            return from_index(index_scale(many, once.constant))
        return from_index(index_add(a, b if fn == "add" else index_scale(b, -1)))

    def int_add(self, a: Scalar, b: Scalar) -> Scalar:
        """a + b"""
        return self.checked("add", a, b, a.low + b.low, a.high + b.high)

    def int_subtract(self, a: Scalar, b: Scalar) -> Scalar:
        """a - b"""
        return self.checked("subtract", a, b, a.low - b.high, a.high - b.low)

    def int_multiply(self, a: Scalar, b: Scalar) -> Scalar:
        """a * b"""
        corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        low, high = min(corners), max(corners)
        result = self.checked("multiply", a, b, low, high)
        fits = low >= INT_LOW and high <= INT_HIGH
        steps = [abs(int(s.expr.value)) for s in (a, b) if isinstance(s.expr, Const)]
        for step in (
            [] if fits else filter(None, steps)
        ):  # its multiples; next to them there is room
            result = clipped(result, -(-INT_LOW // step * step), INT_HIGH // step * step)
        return result

    def int_floor_divide(self, a: Scalar, b: Scalar) -> Scalar:
        """a // b"""
        b = self.nonzero(b, INT_BY_ZERO["floor_divide"])
        if b.low <= -1 <= b.high and a.low == INT_LOW:
            a, b = self.keep(a), self.keep(b)
            smallest = self.compare("equal", a.expr, self.int_const(INT_LOW))
            one = self.compare("equal", b.expr, self.int_const(-1))
            both = self.apply("logical_and", smallest, one, dtype=BOOL)
            self.fail_if(both, *BEYOND)
        size = max(abs(a.low), abs(a.high))
        low, high = -size - 1, size
        if b.low > 0:
            low, high = min(a.low, a.low // b.low), max(a.high // b.low, a.high // b.high, 0)
            low = a.low // b.low if a.low < 0 else a.low // b.high
        return self.bounded("floor_divide", a, b, low, high)

    def int_remainder(self, a: Scalar, b: Scalar) -> Scalar:
        """a % b, with the sign of b."""
        b = self.nonzero(b, INT_BY_ZERO["remainder"])
        low, high = min(b.low + 1, 0), max(b.high - 1, 0)
        if a.low >= 0 and b.low > 0:
            low, high = 0, min(high, a.high)
        return self.bounded("remainder", a, b, low, high)

    def int_power(self, a: Scalar, b: Scalar) -> Scalar:
        """a ** b; a negative b, which gives a float, is left to Python."""
        if isinstance(b.expr, Const) and 0 <= (count := int(b.expr.value)) <= LONG_POWER:
            return self.product_of(a, count)
        b = self.keep(b)
        if b.low < 0:
            negative = self.compare("less", b.expr, self.int_const(0))
            with self.uncertain():
                self.fail_if(negative, "OverflowError", "a whole number to a negative power")
            b = Scalar(PY_INT, b.expr, 0, b.high)
        if a.low == a.high == 2:
            return self.int_left_shift(number(1), b)
        odd = self.int_bitwise_and(b, number(1))
        if a.low == a.high == -1:
            return self.int_subtract(number(1), self.int_multiply(number(2), odd))
        return self.squared(a, b)

    def product_of(self, a: Scalar, count: int) -> Scalar:
        """`count` times the same factor."""
        if count == 0:
            return number(1)
        result = a = self.keep(a)
        for _ in range(count - 1):
            result = self.keep(self.int_multiply(result, a))
        return result

    def squared(self, a: Scalar, b: Scalar) -> Scalar:
        """a ** b for b >= 0, by squaring: for each bit of b, from the last one on."""
        variables = []
        for name, value in (("power", number(1)), ("square", a), ("bits", b)):
            place = self.memory(self.fresh(name), (Way(PY_INT),))
            self.put(place, value)
            variables.append(place)
        result, square, left = variables
        with self.body() as body:
            last = self.int_bitwise_and(self.whole_of(left), number(1))
            with self.body() as taken:
                self.put(result, self.int_multiply(self.whole_of(result), self.whole_of(square)))
            one = self.compare("not_equal", last.expr, self.int_const(0))
            self.add(If(one, tuple(taken), (), self.location))
            self.put(left, self.int_right_shift(self.whole_of(left), number(1)))
            with self.body() as more:
                self.put(square, self.int_multiply(self.whole_of(square), self.whole_of(square)))
            self.add(If(self.positive(left), tuple(more), (), self.location))
        self.add(While(self.positive(left), tuple(body), self.location))
        return self.keep(self.whole_of(result))

    def whole_of(self, variable: Variable) -> Scalar:
        """The present value of a variable that holds an int."""
        value = self.value_of(variable)
        assert isinstance(value, Scalar)
        return value

    def positive(self, variable: Variable) -> Expr:
        """Whether it is above 0 now."""
        return self.compare("greater", self.whole_of(variable).expr, self.int_const(0))

    def int_bitwise_and(self, a: Scalar, b: Scalar) -> Scalar:
        """a & b"""
        highs = [s.high for s in (a, b) if s.low >= 0]
        low, high = (0, min(highs)) if highs else (INT_LOW, INT_HIGH)
        return self.bounded("bitwise_and", a, b, low, high)

    def int_bitwise_or(self, a: Scalar, b: Scalar) -> Scalar:
        """a | b"""
        return self.bounded("bitwise_or", a, b, *self.bits(a, b))

    def int_bitwise_xor(self, a: Scalar, b: Scalar) -> Scalar:
        """a ^ b"""
        return self.bounded("bitwise_xor", a, b, *self.bits(a, b))

    def int_left_shift(self, a: Scalar, b: Scalar) -> Scalar:
        """a << b"""
        b = self.shift_count(b)
        (least, greatest), (_, count) = plain_bounds(a), plain_bounds(b)
        most = min(count, 64)
        low, high = min(least << most, least), max(greatest << most, greatest)
        if low < INT_LOW or high > INT_HIGH or count >= 64:
            a, b = self.keep(a), self.keep(b)
            shifted = self.keep(self.bounded("left_shift", a, b, low, high))
            back = self.apply("right_shift", shifted.expr, b.expr)
            lost = self.compare("not_equal", back, a.expr)
            self.fail_if(lost, *BEYOND)
            return shifted
        return self.bounded("left_shift", a, b, low, high)

    def int_right_shift(self, a: Scalar, b: Scalar) -> Scalar:
        """a >> b"""
        b = self.shift_count(b)
        least, most = (min(max(end, 0), 64) for end in plain_bounds(b))
        smallest, largest = plain_bounds(a)
        low = min(smallest >> least, smallest >> most)
        high = max(largest >> least, largest >> most)
        return self.bounded("right_shift", a, b, low, high)

    def nonzero(self, b: Scalar, error: Words) -> Scalar:
        """A divisor, which is not zero from here on."""
        if b.low <= 0 <= b.high:
            b = self.keep(b)
            zero = self.compare("equal", b.expr, self.int_const(0))
            self.fail_if(zero, *error)
        return b

    def bounded(self, fn: str, a: Scalar, b: Scalar, low: int, high: int) -> Scalar:
        """An operation that stays within 64 bits."""
        expr = self.apply(fn, a.expr, b.expr)
        return Scalar(PY_INT, expr, max(low, INT_LOW), min(high, INT_HIGH))

    def bits(self, a: Scalar, b: Scalar) -> tuple[int, int]:
        """Bounds of what has no more bits than either."""
        size = 1 << max(x.bit_length() for x in (*plain_bounds(a), *plain_bounds(b)))
        return (0 if a.low >= 0 and b.low >= 0 else -size), size - 1

    def shift_count(self, b: Scalar) -> Scalar:
        """A shift count, which is not negative from here on."""
        if b.low < 0:
            b = self.keep(b)
            bad = self.compare("less", b.expr, self.int_const(0))
            self.fail_if(bad, "ValueError", "negative shift count")
        return b
