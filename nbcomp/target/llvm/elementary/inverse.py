"""arctan, arctan2, arcsin and arccos: fold to a small argument, an odd polynomial, unfold.

The constants of unfolding (pi/2, pi) are taken in two parts, so only the last addition rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from nbcomp.target.llvm import outline
from nbcomp.target.llvm.elementary import coefficients as c
from nbcomp.target.llvm.elementary.split import reciprocal, rough_inverse
from nbcomp.target.llvm.lanes import V

# pi/2 = high + low
_HALF_PI = {
    "float": (float.fromhex("0x1.921fb6p0"), float.fromhex("-0x1.777a5cp-25")),
    "double": (float.fromhex("0x1.921fb54442d18p0"), float.fromhex("0x1.1a62633145c07p-54")),
}


def arctan(x: V) -> V:
    """atan x = base + atan(t): t is a, (a - 1)/(a + 1) or -1/a for a = |x|, and |t| <= 0.65."""
    a = x.abs()
    middle, steep = a.gt(0.65), a.gt(2)
    one = x.const(1)
    above = steep.select(-one, middle.select(a - 1, a))
    below = steep.select(a, middle.select(a + 1, one))
    t = above / below
    s = t * t
    rest = t * s * s.poly(c.ATAN_F32 if x.element == "float" else c.ATAN_F64)
    high, low = (
        steep.select(x.const(k), middle.select(x.const(k / 2), 0)) for k in _HALF_PI[x.element]
    )
    top = high + t
    lost = t - (top - high)
    return (top + (lost + low + rest)).copysign(x)


def arctan2(y: V, x: V) -> V:
    """The angle of the point (x, y), from -pi to pi: atan of the smaller coordinate's ratio to the
    larger one, from pi/2 or from pi where the point is steep or on the left.
    """
    a, b = y.abs(), x.abs()
    steep, left = a.gt(b), x.bits().lt(0)
    ratio, low = _ratio(b.min(a), a.max(b))  # the minimum and the maximum keep a NaN
    sign = steep.select(-x, x)
    t, low = _times_sign(ratio, sign), _times_sign(low, sign)
    zero = x.const(0)
    high, high_low = (
        steep.select(x.const(k), left.select(x.const(2 * k), zero)) for k in _HALF_PI[x.element]
    )
    top = high + t
    low = (t - (top - high)) + (high_low + low)
    s = t * t
    # In float32 around 1/2, where Horner's rule loses less.
    p = (s - 0.5).poly(c.ATAN2_F32) if x.element == "float" else s.poly(c.ATAN2_F64)
    return (top + (t * s).fma(p, low)).copysign(y)


def _times_sign(v: V, sign: V) -> V:
    """v, negated where the sign bit of the other is set."""
    return (v.bits() ^ (sign.bits() & -(1 << (v.width - 1)))).bitcast(v.element)


def _ratio(small: V, large: V) -> tuple[V, V]:
    """(small / large, what atan of that has lost by rounding); 1 for infinities, 0 for zeros."""
    if small.element == "double":
        return _quotient(small, large), small.const(0)
    ratio, lost = outline.call("ratio", [small, large], _float_ratio)
    return ratio, (lost * ratio).fma(ratio * -0.5, lost)  # the slope is about 1 - ratio²/2


def _quotient(small: V, large: V) -> V:
    infinite = small.eq(math.inf) & large.eq(math.inf)
    zero = small.eq(0) & large.eq(0)
    ratio = zero.select(small.const(0), small / large)
    return infinite.select(small.const(1), ratio)


# Ordinary numbers, of which neither the quotient nor what it loses overflows or underflows.
_ORDINARY = (2.0**-90, 2.0**90)


def _float_ratio(args: list[V]) -> list[V]:
    """(small / large, what it lost in rounding), by a reciprocal; by doubles in the rare cases."""
    small, large = args
    inverse = reciprocal(large)
    first = small * inverse
    ratio = (-first).fma(large, small).fma(inverse, first)
    lost = (-ratio).fma(large, small) * inverse
    least, most = (large.const(limit).bits() for limit in _ORDINARY)
    tiny = (small.bits() - 1).ult(least - 1)  # zero is ordinary
    unusual = tiny | ~(large.bits() - least).ult(most - least)

    def slow() -> list[V]:
        wide = _quotient(small.to_float("double"), large.to_float("double"))
        near = wide.to_float("float")
        rest = (wide - near.to_float("double")).to_float("float")
        return [unusual.select(near, ratio), unusual.select(rest, lost)]

    return outline.rarely(unusual, [ratio, lost], slow)


def _arcsin_parts(x: V) -> tuple[V, V, V]:
    """(far, s, rest): asin(s) = s + rest; s is |x| up to 1/2, else sqrt((1 - |x|)/2)."""
    a = x.abs()
    far = a.gt(0.5)
    z = far.select(a.fma(-0.5, 0.5), a * a)
    root = z.sqrt()
    s = far.select(root, a)
    rest = s * z * z.poly(c.ASIN_F32 if x.element == "float" else c.ASIN_F64)
    error = (-root).fma(root, z)
    return far, s, far.select(error.fma(rough_inverse(root + root), rest), rest)


def arcsin(x: V) -> V:
    """asin x; beyond 1/2 as pi/2 - 2·asin sqrt((1 - |x|)/2)."""
    far, s, rest = _arcsin_parts(x)
    high, low = _HALF_PI[x.element]
    twice = s + s
    top = high - twice
    lost = (high - top) - twice
    folded = top + (lost + rest.fma(-2, low))
    return far.select(folded, s + rest).copysign(x)


def arccos(x: V) -> V:
    """acos x = pi/2 - asin x near 0, 2·asin sqrt((1 - x)/2) near 1, pi less that of -x near -1."""
    far, s, rest = _arcsin_parts(x)
    negative = x.lt(0)
    sign = x.copysign(far.select(x, -x))
    first = far.select(s + s, s).copysign(sign)
    rest = far.select(rest + rest, rest).copysign(sign)
    zero = x.const(0)
    high, low = (far.select(negative.select(x.const(2 * k), zero), k) for k in _HALF_PI[x.element])
    top = high + first
    lost = first - (top - high)
    return top + (lost + (rest + low))


FUNCTIONS: dict[str, Callable[..., V]] = {
    "arctan": arctan,
    "arctan2": arctan2,
    "arcsin": arcsin,
    "arccos": arccos,
}
