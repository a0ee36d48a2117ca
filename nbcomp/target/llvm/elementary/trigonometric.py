"""sin, cos and tan: |x| = n·pi/2 + r, then a polynomial in r, chosen by the quadrant n mod 4.

pi/2 is subtracted in three parts, which is exact enough up to `_LIMIT`.  Beyond it, and only if a
lane needs it, `payne_hanek` finds r from the digits of 2/pi that matter, for doubles of any size.
"""

from __future__ import annotations

import math

from nbcomp.target.llvm import outline
from nbcomp.target.llvm.elementary import coefficients as c
from nbcomp.target.llvm.elementary.payne_hanek import reduce_lanes
from nbcomp.target.llvm.elementary.split import magic, reciprocal, two_product
from nbcomp.target.llvm.lanes import V

_SIN = {"float": c.SIN_F32, "double": c.SIN_F64}
_COS = {"float": c.COS_F32, "double": c.COS_F64}

# pi/2 as a sum of numbers of the format.  The second has so few bits that n times it is exact:
# where it cancels what the first left, nothing is lost.
_HALF_PI = {
    "float": ("0x1.921fb6p0", "-0x1.77p-25", "-0x1.e973dcp-35"),
    "double": ("0x1.921fb54442d18p0", "0x1.1a626331p-54", "0x1.1701b839a252p-88"),
}
# Of float32, beyond the near limit the third could cancel what is left, too.
_HALF_PI_FAR = ("-0x1.777a5cp-25", "-0x1.ee59dap-50")
# (2/pi)² in float32: benchmarks/minimax.py fits TAN_F32 to it.
_TAN_POLE = float.fromhex("0x1.9f02f6p-2")
_NEAR_LIMIT = 2.0**6
_LIMIT = {"float": 2.0**15, "double": 2.0**20}


def reduce(x: V) -> tuple[V, V, V]:
    """(r, low, n): |x| = n·pi/2 + r + low, |r| <= pi/4 and n an integer, for any finite x."""
    r, low, n = outline.call("trig", [x], lambda args: _reduce(args[0].abs()))
    return r, low, n


def _reduce(a: V) -> list[V]:
    p1, p2, p3 = map(float.fromhex, _HALF_PI[a.element])
    shifted = a.fma(2 / math.pi, magic(a))
    n = shifted - magic(a)
    first = n.fma(-p1, a)  # exact
    r = n.fma(-p2, first)
    low = n.fma(-p3, n.fma(-p2, first - r))
    usual = [r, low, shifted.bits()]
    if a.element == "double":
        return _unless_huge(a, usual)
    far = a.gt(_NEAR_LIMIT)
    return outline.rarely(far, usual, lambda: _far(a, far, n, first, usual))


def _far(a: V, far: V, n: V, first: V, usual: list[V]) -> list[V]:
    """The same in float32 with a second part of pi/2 whose product is taken exactly."""
    p2, p3 = map(float.fromhex, _HALF_PI_FAR)
    second, second_low = two_product(n, p2)
    r = first - second  # first is a multiple of the last place of second
    low = n.fma(-p3, ((first - r) - second) - second_low)
    found = [far.select(f, u) for f, u in zip([r, low], usual[:2], strict=True)]
    return _unless_huge(a, [*found, usual[2]])


def _unless_huge(a: V, usual: list[V]) -> list[V]:
    large = a.gt(_LIMIT[a.element])
    return outline.rarely(large, usual, lambda: _huge(a, large & a.lt(math.inf), usual))


def _huge(a: V, large: V, usual: list[V]) -> list[V]:
    found = outline.call("trig.huge", [a], lambda args: reduce_lanes(args[0]), outline.COLD)
    return [large.select(f, u) for f, u in zip(found, usual, strict=True)]


def _polynomials(r: V, low: V) -> tuple[V, V]:
    """(sin, cos) of r + low."""
    s = r * r
    sine = r + (r * s).fma(s.poly(_SIN[r.element]), low)
    half = s * 0.5
    top = 1 - half
    lost = (1 - top) - half
    cosine = top + (s * s).fma(s.poly(_COS[r.element]), r.fma(-low, lost))
    return sine, cosine


def sin(x: V) -> V:
    """sin x"""
    r, low, n = reduce(x)
    sine, cosine = _polynomials(r, low)
    value = (n & 1).ne(0).select(cosine, sine).bits()
    top = x.width - 1
    sign = (n.lshr(1) << top) ^ (x.bits() & -(1 << top))
    return (value ^ sign).bitcast(x.element)


def cos(x: V) -> V:
    """cos x"""
    r, low, n = reduce(x)
    sine, cosine = _polynomials(r, low)
    value = (n & 1).ne(0).select(sine, cosine).bits()
    sign = (n + 1).lshr(1) << (x.width - 1)
    return (value ^ sign).bitcast(x.element)


def tan(x: V) -> V:
    """tan x = tan r, or -1/tan r in odd quadrants."""
    r, low, n = reduce(x)
    odd = (n & 1).ne(0)
    if x.element == "double":
        s = r * r
        t = r + (r * s).fma(s.poly(c.TAN_F64), low)
        value = odd.select(-1 / t, t)
    else:
        value = _tan_or_inverse(r, low, odd)
    return (value.bits() ^ (x.bits() & -(1 << (x.width - 1)))).bitcast(x.element)


def _tan_or_inverse(r: V, low: V, odd: V) -> V:
    """tan r or -1/tan r as a quotient: tan r = (r + r·s·p(s))/(1 - s·(2/pi)²), s = r².

    The divisor has the zeros of cos r next to 0, which makes the dividend a short polynomial.
    Dividend and divisor are sums of two, so that only the last addition rounds.
    """
    s = r * r
    small = (r * s).fma(s.poly(c.TAN_F32), low)
    over = r + small
    over_low = small - (over - r)
    under = s.fma(-_TAN_POLE, 1)
    under_low = r.fma(r, -s).fma(-_TAN_POLE, s.fma(-_TAN_POLE, 1 - under))
    above, above_low = odd.select(-under, over), odd.select(-under_low, over_low)
    below, below_low = odd.select(over, under), odd.select(over_low, under_low)
    inverse = reciprocal(below)
    quotient = above * inverse
    lost = (-quotient).fma(below, above) + (-quotient).fma(below_low, above_low)
    return lost.fma(inverse, quotient)


FUNCTIONS = {"sin": sin, "cos": cos, "tan": tan}
