"""NumPy's integer functions on LLVM integers: wrap-around, division, powers, shifts, gcd.

Nothing traps and nothing is undefined: divisors are made safe first, shift counts are compared,
and no instruction carries `nsw` or `nuw`.  Division of up to 32 bits goes through floating point,
which vectors can do and which is exact there; powers and gcd are vector loops that run until all
lanes are done.
"""

from __future__ import annotations

from collections.abc import Callable

from nbcomp.target.llvm import outline, x86
from nbcomp.target.llvm.lanes import V

Function = Callable[..., V]


# ------------------------------------------------------------------------------------ division


def _quotient(a: V, b: V, signed: bool) -> V:
    """a / b towards zero, for a divisor that is neither 0 nor -1 under the smallest integer."""
    if a.width == 64 and x86.has_avx512(a) and not b.is_literal:
        return _quotient_64(a, b, signed)
    if b.is_literal or a.width == 64 or not a.lanes:
        return a.sdiv(b) if signed else a.udiv(b)
    # A quotient that is not whole is at least 1/|a| (relatively) below the next whole number, so a
    # division rounded correctly to more bits than a has cannot reach it.
    wide = "float" if a.width <= 16 else "double"
    if a.width < 32:
        a, b = a.resize("i32", signed), b.resize("i32", signed)
    q = a.to_float(wide, signed) / b.to_float(wide, signed)
    return q.to_int("i32", signed)


def _quotient_64(a: V, b: V, signed: bool) -> V:
    """The quotient of 64-bit integers in two rounds of a double's precision and a last correction.

    Each round takes slightly too little, so the rest stays positive: after the first it is below
    2^15·b, after the second below 2·b.
    """
    if signed:
        size = _quotient_64(absolute(a, signed), absolute(b, signed), signed=False)
        return (a ^ b).lt(0).select(-size, size)
    inverse = (1 - 2.0**-50) / b.to_float("double", signed=False)
    first = (a.to_float("double", signed=False) * inverse).to_int("i64", signed=False)
    rest = a - first * b
    second = (rest.to_float("double", signed=False) * inverse).to_int("i64", signed=False)
    rest = rest - second * b
    return first + second + rest.ult(b).select(a.const(0), 1)


def _safe_divisor(a: V, b: V, signed: bool) -> V:
    """b, or 1 where dividing by it would trap."""
    unsafe = b.eq(0)
    if signed:
        unsafe = unsafe | (b.eq(-1) & a.eq(-(1 << (a.width - 1))))
    return unsafe.select(b.const(1), b)


def _divide(a: V, b: V, signed: bool) -> tuple[V, V, V]:
    """The safe divisor, the quotient towards zero and its remainder; 0 divides like 1."""
    divisor = b if _is_harmless(b) else _safe_divisor(a, b, signed)
    q = _quotient(a, divisor, signed).resize(a.element, signed)
    return divisor, q, a - q * divisor


def _literal(b: V) -> int | None:
    """The number that a divisor is in all lanes, if it is known now."""
    digits = b.value.text.removeprefix(f"splat ({b.element} ").rstrip(")")
    return int(digits) if b.is_literal and digits.lstrip("-").isdigit() else None


def _is_harmless(b: V) -> bool:
    """Whether a divisor is a literal that never traps."""
    return _literal(b) not in (None, 0, -1)


def _exponent(b: V) -> int | None:
    """n where a divisor is 2**n: dividing by it rounds down as a shift does."""
    number = _literal(b) or 0
    return number.bit_length() - 1 if number > 0 and number & (number - 1) == 0 else None


def floor_divide(a: V, b: V, signed: bool) -> V:
    """a // b, rounded down; 0 where b is 0."""
    if signed and (bits := _exponent(b)) is not None:
        return a.ashr(bits)
    divisor, q, r = _divide(a, b, signed)
    if signed:
        q = q + _wrong_side(r, divisor).resize(a.element, signed=True)  # -1 or 0
    return q if _is_harmless(b) else b.eq(0).select(q.const(0), q)


def remainder(a: V, b: V, signed: bool) -> V:
    """a % b with the sign of b; 0 where b is 0."""
    if signed and (bits := _exponent(b)) is not None:
        return a & ((1 << bits) - 1)
    divisor, _, r = _divide(a, b, signed)
    return _wrong_side(r, divisor).select(r + divisor, r) if signed else r


def fmod(a: V, b: V, signed: bool) -> V:
    """The remainder with the sign of a; 0 where b is 0."""
    return _divide(a, b, signed)[2]


def _wrong_side(r: V, divisor: V) -> V:
    """Whether a remainder is not zero and its sign is not the divisor's."""
    return r.ne(0) & (r ^ divisor).lt(0)


# ------------------------------------------------------------------------------ loops over bits


def power(a: V, e: V, signed: bool) -> V:
    """a ** e modulo 2**bits; 0 where e is negative (NumPy raises there: see `scalars.traps`)."""
    (result,) = outline.call("ipow", [a, e], _power_loop)
    return e.lt(0).select(a.const(0), result) if signed else result


def _power_loop(args: list[V]) -> list[V]:
    def step(state: list[V]) -> list[V]:
        total, base, e = state
        odd = (e & 1).ne(0)
        return [odd.select(total * base, total), base * base, e.lshr(1)]

    a, e = args
    return outline.loop([a.const(1), a, e], lambda s: s[2].ne(0), step)[:1]


def gcd(a: V, b: V, signed: bool) -> V:
    """The greatest common divisor of the magnitudes; gcd(0, b) is |b|."""
    return outline.call("gcd", [absolute(a, signed), absolute(b, signed)], _gcd_loop)[0]


def _gcd_loop(args: list[V]) -> list[V]:
    """Stein's binary algorithm: of two odd numbers the larger loses the smaller, no division."""
    a, b = args
    none = a.eq(0)  # gcd(0, b) is b: start with b and nothing left to do
    first = _odd_part(none.select(b, a))

    def step(state: list[V]) -> list[V]:
        low, rest = state
        rest = _odd_part(rest)
        smaller = rest.eq(0).select(low, low.umin(rest))
        return [smaller, low.umax(rest) - smaller]

    low, _ = outline.loop([first, none.select(b.const(0), b)], lambda s: s[1].ne(0), step)
    return [low << _below((a | b).trailing_zeros())]


def _odd_part(a: V) -> V:
    """a without its factors of two; 0 for 0."""
    return a.lshr(_below(a.trailing_zeros()))


def _below(count: V) -> V:
    """A shift count kept below the width (counts of zero values)."""
    return count & (count.width - 1)


def lcm(a: V, b: V, signed: bool) -> V:
    """The least common multiple of the magnitudes, wrapped; 0 where either is 0."""
    divisor = gcd(a, b, signed)
    part = _quotient(absolute(a, signed), divisor.umax(1), signed=False)
    return part.resize(a.element, signed=False) * absolute(b, signed)


# --------------------------------------------------------------------------------- simple ones


def absolute(a: V, signed: bool) -> V:
    """|a|; the smallest integer stays itself."""
    return a.smax(-a) if signed else a


def sign(a: V, signed: bool) -> V:
    """-1, 0 or 1."""
    return a.smin(1).smax(-1) if signed else a.umin(1)


def left_shift(a: V, count: V, signed: bool) -> V:
    """a << count; 0 for counts that are negative or reach the width."""
    fits = count.ult(a.width)
    return fits.select(a << _below(count), 0)


def right_shift(a: V, count: V, signed: bool) -> V:
    """a >> count; only the sign is left for counts that are negative or reach the width."""
    if signed:
        return a.ashr(count.umin(a.width - 1))
    return count.ult(a.width).select(a.lshr(_below(count)), 0)


def maximum(a: V, b: V, signed: bool) -> V:
    """The larger."""
    return a.smax(b) if signed else a.umax(b)


def minimum(a: V, b: V, signed: bool) -> V:
    """The smaller."""
    return a.smin(b) if signed else a.umin(b)


def clip(x: V, low: V, high: V, signed: bool) -> V:
    """min(max(x, low), high)."""
    return minimum(maximum(x, low, signed), high, signed)


def reciprocal(a: V, signed: bool) -> V:
    """1 / a: a for ±1, else 0; of 0, the C cast of infinity (the smallest int32, int64, or 0)."""
    at_zero = -(1 << (a.width - 1)) if signed and a.width >= 32 else 0
    unit = a.eq(1) | a.eq(-1) if signed else a.eq(1)
    return unit.select(a, a.eq(0).select(a.const(at_zero), 0))


def less(a: V, b: V, signed: bool) -> V:
    """a < b"""
    return a.lt(b) if signed else a.ult(b)


def less_equal(a: V, b: V, signed: bool) -> V:
    """a <= b"""
    return a.le(b) if signed else a.ule(b)


FUNCTIONS: dict[str, Function] = {
    "add": lambda a, b, signed: a + b,
    "subtract": lambda a, b, signed: a - b,
    "multiply": lambda a, b, signed: a * b,
    "square": lambda a, signed: a * a,
    "negative": lambda a, signed: -a,
    "floor_divide": floor_divide,
    "remainder": remainder,
    "fmod": fmod,
    "power": power,
    "gcd": gcd,
    "lcm": lcm,
    "absolute": absolute,
    "sign": sign,
    "reciprocal": reciprocal,
    "left_shift": left_shift,
    "right_shift": right_shift,
    "bitwise_and": lambda a, b, signed: a & b,
    "bitwise_or": lambda a, b, signed: a | b,
    "bitwise_xor": lambda a, b, signed: a ^ b,
    "invert": lambda a, signed: ~a,
    "bitwise_count": lambda a, signed: absolute(a, signed).popcount(),
    "maximum": maximum,
    "minimum": minimum,
    "fmax": maximum,
    "fmin": minimum,
    "clip": clip,
    "less": less,
    "less_equal": less_equal,
    "greater": lambda a, b, signed: less(b, a, signed),
    "greater_equal": lambda a, b, signed: less_equal(b, a, signed),
    "equal": lambda a, b, signed: a.eq(b),
    "not_equal": lambda a, b, signed: a.ne(b),
    "logical_and": lambda a, b, signed: a.ne(0) & b.ne(0),
    "logical_or": lambda a, b, signed: (a | b).ne(0),
    "logical_xor": lambda a, b, signed: a.ne(0) ^ b.ne(0),
    "logical_not": lambda a, signed: a.eq(0),
    "isnan": lambda a, signed: a.of("i1", 0),
    "isinf": lambda a, signed: a.of("i1", 0),
    "isfinite": lambda a, signed: a.of("i1", 1),
    **{name: lambda a, signed: a for name in ("positive", "conjugate", "floor", "ceil", "trunc")},
}

BOOLEANS: dict[str, Function] = {
    "add": lambda a, b: a | b,
    "multiply": lambda a, b: a & b,
    "maximum": lambda a, b: a | b,
    "minimum": lambda a, b: a & b,
    "fmax": lambda a, b: a | b,
    "fmin": lambda a, b: a & b,
    "clip": lambda x, low, high: (x | low) & high,
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
    "logical_and": lambda a, b: a & b,
    "logical_or": lambda a, b: a | b,
    "logical_xor": lambda a, b: a ^ b,
    "invert": lambda a: ~a,
    "logical_not": lambda a: ~a,
    "less": lambda a, b: ~a & b,
    "less_equal": lambda a, b: ~a | b,
    "greater": lambda a, b: a & ~b,
    "greater_equal": lambda a, b: a | ~b,
    "equal": lambda a, b: ~(a ^ b),
    "not_equal": lambda a, b: a ^ b,
    "isnan": lambda a: a.of("i1", 0),
    "isinf": lambda a: a.of("i1", 0),
    "isfinite": lambda a: a.of("i1", 1),
    **{name: lambda a: a for name in ("absolute", "floor", "ceil", "trunc")},
}
