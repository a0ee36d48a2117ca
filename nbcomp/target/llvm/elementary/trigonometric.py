"""sin, cos and tan: |x| = n·pi/2 + r, then a polynomial in r, chosen by the quadrant n mod 4.

pi/2 is subtracted in three parts, which is exact enough up to `_LIMIT`.  Beyond it, and only if a
lane needs it, `payne_hanek` finds r from the digits of 2/pi that matter, for doubles of any size.
"""

from __future__ import annotations

import math

from nbcomp.target.llvm import outline
from nbcomp.target.llvm.elementary import coefficients as c
from nbcomp.target.llvm.elementary.payne_hanek import reduce_lanes
from nbcomp.target.llvm.elementary.split import fast_two_sum, magic, two_product, two_sum
from nbcomp.target.llvm.lanes import V

_SIN = {"float": c.SIN_F32, "double": c.SIN_F64}
_TAN = {"float": c.TAN_F32, "double": c.TAN_F64}
_COS = {"float": c.COS_F32, "double": c.COS_F64}

# pi/2 as a sum of numbers of the format.  The second has so few bits that n times it is exact:
# where it cancels what the first left, nothing is lost.
_HALF_PI = {
    "float": ("0x1.921fb6p0", "-0x1.77p-25", "-0x1.e973dcp-35", "-0x1.676734p-60"),
    "double": ("0x1.921fb54442d18p0", "0x1.1a626331p-54", "0x1.1701b839a252p-88", "0"),
}
_LIMIT = {"float": 2.0**15, "double": 2.0**20}


def reduce(x: V) -> tuple[V, V, V]:
    """(r, low, n): |x| = n·pi/2 + r + low, |r| <= pi/4 and n an integer, for any finite x."""
    r, low, n = outline.call("trig", [x], lambda args: _reduce(args[0].abs()))
    return r, low, n


def _reduce(a: V) -> list[V]:
    p1, p2, p3, p4 = map(float.fromhex, _HALF_PI[a.element])
    shifted = a.fma(2 / math.pi, magic(a))
    n = shifted - magic(a)
    first = n.fma(-p1, a)  # exact
    r = n.fma(-p2, first)
    low = n.fma(-p2, first - r)
    if a.element == "double":
        low = n.fma(-p3, low)
    else:  # p3 may cancel what is left, too
        third, third_low = two_product(n, p3)
        r, lost = two_sum(r, -third)
        low = n.fma(-p4, (low - third_low) + lost)
    large = a.gt(_LIMIT[a.element]) & a.lt(math.inf)
    usual = [r, low, shifted.bits()]
    return outline.rarely(large, usual, lambda: _huge(a, large, usual))


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
    s = r * r
    series = s.poly(_TAN[x.element])
    cube = r * s
    if x.element == "double":
        t = r + cube.fma(series, low)
        inverse = -1 / t
    else:
        # What r³ and r + ... lose in rounding would count, and low grows by 1 + tan² r.
        cube_low = r.fma(r.fma(r, -s), r.fma(s, -cube))
        low = cube_low.fma(series, (low * s).fma(s.fma(2 / 3, 1), low))
        t, t_low = fast_two_sum(r, cube.fma(series, low))
        inverse = -1 / t
        inverse = inverse.fma(inverse.fma(t, 1) + inverse * t_low, inverse)
    value = (n & 1).ne(0).select(inverse, t)
    return (value.bits() ^ (x.bits() & -(1 << (x.width - 1)))).bitcast(x.element)


FUNCTIONS = {"sin": sin, "cos": cos, "tan": tan}
