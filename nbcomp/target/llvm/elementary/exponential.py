"""exp and its family: one reduction to |r| <= ln(2)/2, then a polynomial.

x = n·ln2 + r, e^x = 2^n·(1 + r + r²·p(r)).  n·ln2 is subtracted in two parts, the first of which is
exact (Cody and Waite), so r carries no cancellation error.
"""

from __future__ import annotations

import math

from nbcomp.target.llvm.elementary import coefficients as c
from nbcomp.target.llvm.elementary.piecewise import odd_function
from nbcomp.target.llvm.elementary.split import LN2, magic, scale, scale_whole
from nbcomp.target.llvm.elementary.tables import TANH
from nbcomp.target.llvm.lanes import V

_EXP = {"float": c.EXP_F32, "double": c.EXP_F64}
_EXP2 = {"float": c.EXP2_F32, "double": c.EXP2_F64}
_EXPM1 = {"float": c.EXPM1_F32, "double": c.EXPM1_F64}
# (sinh r - r)/r³ and (cosh r - 1)/r² as polynomials of r²: for r up to ln2/2, but each function
# its own up to _NEAR.
_NEAR = 1.0
Series = tuple[tuple[float, ...], tuple[float, ...]]
_SINH_SERIES: dict[str, Series] = {
    "float": (c.SINH_NEAR_F32, c.COSH_F32),
    "double": (c.SINH_NEAR_F64, c.COSH_F64),
}
_COSH_SERIES: dict[str, Series] = {
    "float": (c.SINH_F32, c.COSH_NEAR_F32),
    "double": (c.SINH_F64, c.COSH_NEAR_F64),
}
_TANH = {"float": c.TANH_F32, "double": c.TANH_F64}
_TANH_NEAR = {"float": 0.9, "double": 0.625}

# Below the first the result is 0, above the second infinity; between, 2^n needs no special care.
_EXP_RANGE = {"float": (-104.0, 89.0), "double": (-746.0, 710.0)}
_LARGE = {"float": 80.0, "double": 700.0}  # 2^n is finite and e^-x is nothing
_EXP2_RANGE = {"float": (-151.0, 129.0), "double": (-1076.0, 1025.0)}


def clamp(x: V, low: float, high: float) -> V:
    """x within bounds; NaN stays NaN."""
    return x.const(low).max(x.const(high).min(x))


def reduce(x: V) -> tuple[V, V]:
    """(r, shifted n) with x = n·ln2 + r, for x in the range of `exp`."""
    shifted = multiple(x)
    return remainder(x, shifted - magic(x))[0], shifted


def multiple(x: V) -> V:
    """The shifted n nearest to x / ln2."""
    return x.fma(1 / math.log(2), magic(x))


def remainder(x: V, n: V) -> tuple[V, V]:
    """(x - n·ln2, what the low part of n·ln2 was subtracted from, exactly)."""
    high, low = LN2[x.element]
    first = n.fma(-high, x)  # exact
    return n.fma(-low, first), first


def reduce_exactly(x: V) -> tuple[V, V, V]:
    """(r, low, shifted n) with x = n·ln2 + r + low."""
    shifted = multiple(x)
    n = shifted - magic(x)
    r, first = remainder(x, n)
    return r, n.fma(-LN2[x.element][1], first - r), shifted


def exp_moderate(x: V) -> V:
    """e^x for x in the range of `exp`."""
    r, shifted = reduce(x)
    p = r.fma(r.fma(r.poly(_EXP[x.element]), 1), 1)
    return scale(p, shifted)


def exp(x: V) -> V:
    """e^x"""
    return exp_moderate(clamp(x, *_EXP_RANGE[x.element]))


def exp2(x: V) -> V:
    """2^x, exact for whole x."""
    x = clamp(x, *_EXP2_RANGE[x.element])
    shifted = x + magic(x)
    r = x - (shifted - magic(x))
    return scale(r.fma(r.poly(_EXP2[x.element]), 1), shifted)


def tanh(x: V) -> V:
    """tanh x: a polynomial near 0, else 1 - 2/(e^2x + 1), whose error the 1 swallows.

    In float32 a table is faster, where the target can look up in registers.
    """
    if x.element == "float" and "avx512f" in x.b.features:
        return odd_function(x, "tanh", TANH, scale=1.6625, last=9.02, terms=5)
    a = x.abs()
    e = exp_moderate(x.const(44.0).min(a + a))
    d = e + 1
    v = 2 / d
    if x.element == "float":  # what e + 1 loses in rounding
        v = (v * (e - (d - 1))).fma(v * -0.5, v)
    far = 1 - v
    s = x * x
    near = (a * s).fma(s.poly(_TANH[x.element]), a)
    return a.lt(_TANH_NEAR[x.element]).select(near, far).copysign(x)


# What follows is a sum of a few terms, the largest first: two_sum keeps what the first addition
# loses, so that only the last one counts.


def _lowered(x: V, shifted: V) -> tuple[V, V]:
    """(shifted n - 2, 4) where 2^n would overflow before the function does, else (shifted n, 1)."""
    big = x.gt(_LARGE[x.element])
    return shifted - big.select(x.const(2), 0), big.select(x.const(4), 1)


def expm1(x: V) -> V:
    """e^x - 1 = (2^n - 1) + 2^n·r + 2^n·(r²·p(r))"""
    y = clamp(x, -50.0, _EXP_RANGE[x.element][1])
    r, low, shifted = reduce_exactly(y)
    rest = (r * r).fma(r.poly(_EXPM1[x.element]), low)
    shifted, factor = _lowered(y, shifted)
    s = scale(x.const(1), shifted)
    first = s - 1
    total = s.fma(r, first)
    lost = s.fma(r, first - total) + ((s - first) - 1)
    return ((total + s.fma(rest, lost)) * factor).copysign(x)


# sinh and cosh of n·ln2 + r are 2^(n-1)·(e^r -+ d·e^-r) with d = 2^-2n, where e^±r is
# 1 + even ± (lead + odd), and lead has no rounding error.  Near 0, n is 0, and they are those of r;
# elsewhere 1 + lead is exact in float32, and what is added to it is small.


def sinh(x: V) -> V:
    """sinh x"""
    near, n, d, lead, odd, even, cosine = _reduce_size(x, _SINH_SERIES[x.element])
    sine = lead + odd
    rest = (-d).fma(cosine - sine, even + odd)
    return near.select(sine, scale_whole((lead + 1) + rest, n - 1)).copysign(x)


def cosh(x: V) -> V:
    """cosh x"""
    near, n, d, lead, odd, even, cosine = _reduce_size(x, _COSH_SERIES[x.element])
    rest = d.fma(cosine - (lead + odd), even + odd)
    return near.select(cosine, scale_whole((lead + 1) + rest, n - 1))


def _reduce_size(x: V, series: Series) -> tuple[V, ...]:
    """(near, n, 2^-2n, lead, odd, even, 1 + even) for |x| = n·ln2 + r; n is 0 where near."""
    a = x.const(_EXP_RANGE[x.element][1] + 1).min(x.abs())  # NaN stays
    near = a.lt(_NEAR)
    n = near.select(x.const(0), multiple(a) - magic(x))
    down = scale_whole(x.const(1), -n)
    r, lead = remainder(a, n)
    sinh_series, cosh_series = series
    s = r * r
    odd = (r * s).fma(s.poly(sinh_series), n * -LN2[x.element][1])
    p = s.poly(cosh_series)
    return near, n, down * down, lead, odd, s * p, s.fma(p, 1)


FUNCTIONS = {
    "exp": exp,
    "exp2": exp2,
    "tanh": tanh,
    "expm1": expm1,
    "sinh": sinh,
    "cosh": cosh,
}
