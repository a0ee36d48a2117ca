"""NumPy's exact functions on LLVM floats: the ones with a single right answer, bit for bit.

Signs of zero and the choice between NaNs follow NumPy's x86-64 loops.  Functions with a rounding
error of their own (exp, sin, ...) are in `elementary`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from nbcomp.target.llvm import outline, x86
from nbcomp.target.llvm.lanes import BIAS, MANTISSA, V

Function = Callable[..., V]


# ------------------------------------------------------------------------------------- division


def fmod(x: V, y: V) -> V:
    """The remainder of x / y towards zero, exact, with the sign of x."""
    return outline.call("fmod", [x, y], lambda args: [_fmod(*args)])[0]


def _fmod(x: V, y: V) -> V:
    """Subtract the rounded quotient's multiple of |y| until less than |y| is left.

    Each q has at most the mantissa's bits, so r - q·d has too and the fma is exact; r loses as many
    bits per round, and nearly always one round is enough.  Where r / d would overflow, a multiple
    d·2^k is subtracted instead, which is exact too.
    """
    top = 2.0 ** (BIAS[x.element] - 2 * MANTISSA[x.element])  # r / d is finite below d * top
    a, d = x.abs(), y.abs()
    wrong = ~(a.lt(math.inf) & d.gt(0))  # x infinite or NaN, y zero or NaN
    idle = wrong | d.eq(math.inf)
    start = idle.select(x.const(0), a)
    d = idle.select(x.const(1), d)

    def step(state: list[V]) -> list[V]:
        (r,) = state
        far, farther = d * top, d * top * top
        multiple = r.abs().gt(far).select(r.abs().gt(farther).select(farther, far), d)
        q = (r / multiple).rint()
        return [(-q).fma(multiple, r)]

    (r,) = outline.loop(step([start]), lambda s: s[0].abs().ge(d), step)
    r = r.lt(0).select(r + d, r).copysign(x)
    return idle.select(wrong.select(_invalid(x, y), x), r)


def _invalid(x: V, y: V) -> V:
    """NaN: the argument's own if there is one."""
    nan = x.const(math.nan)
    return x.is_nan().select(x, y.is_nan().select(y, nan))


def floor_divide(a: V, b: V) -> V:
    """a // b of NumPy's `divmod`: rounded from the exact remainder, so that 1.0 // 0.1 is 9."""
    mod = fmod(a, b)
    quotient = a / b
    wrong_side = mod.ne(0) & (b.lt(0) ^ mod.lt(0))
    whole = (a - mod) / b
    whole = wrong_side.select(whole - 1, whole)
    down = whole.floor()
    down = (whole - down).gt(0.5).select(down + 1, down)
    result = whole.ne(0).select(down, quotient.const(0).copysign(quotient))
    return b.eq(0).select(quotient, result)


def remainder(a: V, b: V) -> V:
    """a % b with the sign of b, exact up to one rounding."""
    mod = fmod(a, b)
    moved = (b.lt(0) ^ mod.lt(0)).select(mod + b, mod)
    result = mod.ne(0).select(moved, mod.const(0).copysign(b))
    return b.eq(0).select(mod, result)


# -------------------------------------------------------------------------- neighbours and parts


def nextafter(x: V, y: V) -> V:
    """The next value after x towards y; y where they are equal."""
    bits = x.bits()
    down = x.gt(y) ^ x.lt(0)  # towards zero: one less in magnitude
    moved = down.select(bits - 1, bits + 1).bitcast(x.element)
    smallest = x.bits().const(1).bitcast(x.element).copysign(y)
    # The tie keeps y, but float16 keeps x (NumPy's own difference for signed zeros).
    tie = x if x.element == "half" else y
    near = x.eq(0).select(smallest, moved)
    near = x.eq(y).select(tie, near)
    return (x.is_nan() | y.is_nan()).select(x + y, near)


def spacing(x: V) -> V:
    """The distance to the next value away from zero, with the sign of x; NaN for infinities.

    float16 differs in NumPy: the distance to the next value upwards.
    """
    bits = x.bits()
    if x.element == "half":
        shrinks = bits.lt(0) & x.ne(0)
        moved = shrinks.select(bits - 1, (bits & 0x7FFF) + 1).bitcast("half")
        gap = moved - x
        gap = bits.eq(-0x8000).select((bits & 0).bitcast("half") + 2.0**-24, gap)
    else:
        gap = (bits + 1).bitcast(x.element) - x
        gap = x.eq(0).select((bits & 0 | 1).bitcast(x.element), gap)
    return x.abs().lt(math.inf).select(gap, x.is_nan().select(x, math.nan))


def frexp(x: V) -> tuple[V, V]:
    """(m, e) with x = m·2**e and 0.5 <= |m| < 1, e an i32; (x, 0) for 0, infinity and NaN."""
    m, bias = MANTISSA[x.element], BIAS[x.element]
    grow = m + 2
    tiny = x.abs().lt(2.0 ** (1 - bias))
    bits = tiny.select(x * 2.0**grow, x).bits()
    field = (bits.lshr(m) & (2 * bias + 1)).resize("i32", False)
    e = field - (bias - 1) - tiny.select(field.const(grow), 0)
    mask = (2 * bias + 1) << m
    mantissa = ((bits & ~mask) | ((bias - 1) << m)).bitcast(x.element)
    plain = x.ne(0) & x.abs().lt(math.inf)
    return plain.select(mantissa, x), plain.select(e, 0)


def ldexp(x: V, e: V) -> V:
    """x·2**e rounded once, for any integer e."""
    if x86.has_avx512(x):
        return x86.scalef(x, e.to_float(x.element))
    bias, m = BIAS[x.element], MANTISSA[x.element]
    limit = 3 * bias + 2 * m
    n = e.smin(limit).smax(-limit).resize("i32", True) if e.width > 16 else e.resize("i32", True)
    low = m + 2 - bias
    for _ in range(2):  # steps that stay exact until the exponent of the last one fits
        k = n.gt(bias).select(n.const(bias), n.lt(1 - bias).select(n.const(low), 0))
        x = x * power_of_two(k, x.element)
        n = n - k
    return x * power_of_two(n.smin(bias).smax(1 - bias), x.element)


def power_of_two(k: V, element: str) -> V:
    """2**k as a float, for an integer k within the normal exponents."""
    field = (k + BIAS[element]).resize("i64" if element == "double" else "i32", True)
    return (field << MANTISSA[element]).bitcast(element)


def modf(x: V) -> tuple[V, V]:
    """The fraction and the whole part, both with the sign of x."""
    whole = x.trunc()
    fraction = x.abs().eq(math.inf).select(x.const(0), x - whole)
    return fraction.copysign(x), whole


# ------------------------------------------------------------------------- choices between values


def _larger(a: V, b: V) -> V:
    """b on a tie or NaN; float16, which NumPy compares in C, keeps a on a tie."""
    if x86.has_extremes(a) and not (a.is_literal or b.is_literal):
        return x86.larger(a, b)
    return a.ge(b).select(a, b) if a.element == "half" else a.max(b)


def _smaller(a: V, b: V) -> V:
    if x86.has_extremes(a) and not (a.is_literal or b.is_literal):
        return x86.smaller(a, b)
    return a.le(b).select(a, b) if a.element == "half" else a.min(b)


def maximum(a: V, b: V) -> V:
    """The larger; NaN if either is; b for zeros of either sign, as x86's vector maximum."""
    return b.max(a) if _ties_are_equal(b) else a.is_nan().select(a, _larger(a, b))


def minimum(a: V, b: V) -> V:
    """The smaller; NaN if either is; b for zeros of either sign."""
    return b.min(a) if _ties_are_equal(b) else a.is_nan().select(a, _smaller(a, b))


def _ties_are_equal(bound: V) -> bool:
    """Whether a number equals this bound only if it is the bound itself, and the bound is no NaN:
    then one instruction, which gives the other operand on a tie or NaN, is all there is to do."""
    number = bound.number or 0.0
    return number != 0 and not math.isnan(number) and bound.element != "half"


def fmax(a: V, b: V) -> V:
    """The larger, of the numbers if one is NaN."""
    return b.is_nan().select(a, _larger(a, b))


def fmin(a: V, b: V) -> V:
    """The smaller, of the numbers if one is NaN."""
    return b.is_nan().select(a, _smaller(a, b))


def clip(x: V, low: V, high: V) -> V:
    """min(max(x, low), high), NaN if any is; x is kept where it equals a bound."""
    r = low.gt(x).select(low, x)
    if not low.is_literal:
        r = low.is_nan().select(low, r)
    r = high.lt(r).select(high, r)
    return r if high.is_literal else (high.is_nan() & ~r.is_nan()).select(high, r)


def sign(x: V) -> V:
    """-1, +0, 1 or NaN."""
    signed_one = x.const(1).copysign(x)
    return x.eq(0).select(x.const(0), x.is_nan().select(x, signed_one))


def heaviside(x: V, at_zero: V) -> V:
    """0 below zero, 1 above, `at_zero` at it, NaN for NaN."""
    step = x.lt(0).select(x.const(0), x.const(1))
    step = x.eq(0).select(at_zero, step)
    return x.is_nan().select(x.const(math.nan), step)


def _scaled(half: float, single: float, double: float) -> Function:
    factor = {"half": half, "float": single, "double": double}
    return lambda x: x * factor[x.element]


# NumPy's factors: x·(180/π) with the division in the dtype itself (npy_rad2deg).
_TO_DEGREES_F32 = float.fromhex("0x1.ca5dc0p+5")
_degrees = _scaled(_TO_DEGREES_F32, _TO_DEGREES_F32, 180 / math.pi)
_radians = _scaled(math.pi / 180, math.pi / 180, math.pi / 180)


def _sign_bit(x: V) -> V:
    return x.bits().lt(0)


FUNCTIONS: dict[str, Function] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "muladd": lambda a, b, c: a.muladd(b, c),
    "square": lambda a: a * a,
    "reciprocal": lambda a: 1 / a,
    "sqrt": lambda a: a.sqrt(),
    "negative": lambda a: -a,
    "positive": lambda a: a,
    "conjugate": lambda a: a,
    "absolute": lambda a: a.abs(),
    "fabs": lambda a: a.abs(),
    "copysign": lambda a, b: a.copysign(b),
    "sign": sign,
    "heaviside": heaviside,
    "rint": lambda a: a.rint(),
    "floor": lambda a: a.floor(),
    "ceil": lambda a: a.ceil(),
    "trunc": lambda a: a.trunc(),
    "fmod": fmod,
    "floor_divide": floor_divide,
    "remainder": remainder,
    "nextafter": nextafter,
    "spacing": spacing,
    "frexp.0": lambda x: frexp(x)[0],
    "frexp.1": lambda x: frexp(x)[1],
    "modf.0": lambda x: modf(x)[0],
    "modf.1": lambda x: modf(x)[1],
    "ldexp": ldexp,
    "maximum": maximum,
    "minimum": minimum,
    "fmax": fmax,
    "fmin": fmin,
    "clip": clip,
    "rad2deg": _degrees,
    "deg2rad": _radians,
    "less": lambda a, b: a.lt(b),
    "less_equal": lambda a, b: a.le(b),
    "greater": lambda a, b: a.gt(b),
    "greater_equal": lambda a, b: a.ge(b),
    "equal": lambda a, b: a.eq(b),
    "not_equal": lambda a, b: a.ne(b),
    "logical_and": lambda a, b: a.ne(0) & b.ne(0),
    "logical_or": lambda a, b: a.ne(0) | b.ne(0),
    "logical_xor": lambda a, b: a.ne(0) ^ b.ne(0),
    "logical_not": lambda a: a.eq(0),
    "isnan": lambda a: a.is_nan(),
    "isinf": lambda a: a.abs().eq(math.inf),
    "isfinite": lambda a: a.abs().lt(math.inf),
    "signbit": _sign_bit,
}

# On float16 these work on the bits or the value as it is; all others run in float32 and round.
NATIVE_HALF = frozenset(
    (
        *("negative", "positive", "conjugate", "absolute", "fabs", "copysign", "signbit"),
        *("nextafter", "spacing", "isnan", "isinf", "isfinite", "logical_not"),
        *("maximum", "minimum", "fmax", "fmin", "clip"),
    )
)
