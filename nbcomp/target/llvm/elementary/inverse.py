"""arctan, arctan2, arcsin and arccos: fold to a small argument, an odd polynomial, unfold.

The constants of unfolding (pi/2, pi) are taken in two parts, so only the last addition rounds.
"""

from __future__ import annotations

import math

from nbcomp.target.llvm.elementary import coefficients as c
from nbcomp.target.llvm.elementary.split import in_double, rough_inverse
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


def arctan2(y: V, x: V, single: bool) -> V:
    """The angle of the point (x, y), from -pi to pi."""
    a, b = y.abs(), x.abs()
    steep = a.gt(b)
    smaller, larger = steep.select(b, a), steep.select(a, b)
    ratio = smaller / larger
    ratio = (smaller.eq(math.inf)).select(x.const(1), larger.eq(0).select(x.const(0), ratio))
    s = ratio * ratio
    t = (ratio * s).fma(s.poly(c.ATAN2_SINGLE if single else c.ATAN2_F64), ratio)
    high, low = _HALF_PI["double"]
    t = steep.select(high - (t - low), t)
    left = x.bits().lt(0)
    t = left.select(2 * high - (t - 2 * low), t)
    return (x.is_nan() | y.is_nan()).select(x + y, t.copysign(y))


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


FUNCTIONS = {
    "arctan": arctan,
    "arctan2": in_double(arctan2),
    "arcsin": arcsin,
    "arccos": arccos,
}
