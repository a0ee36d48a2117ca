"""log and its family: x = m·2^e with 3/4 <= m < 3/2, then a series in f = m - 1.

log x = e·ln2 + log(1 + f).  The high part of ln2 has few bits, so e·ln2_high is exact, and its sum
with f is taken with its rounding error; what is left is small, so its own errors hardly count.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from nbcomp.target.llvm.elementary import coefficients as c
from nbcomp.target.llvm.elementary.split import LN2, fast_two_sum, in_double, mantissa_exponent
from nbcomp.target.llvm.lanes import BIAS, INFINITE, MANTISSA, V


@dataclass(frozen=True)
class Base:
    """1 / ln(base) and log_base(2), each as high + low; the high part of log_base(2) is short."""

    unit: tuple[float, float]
    two: tuple[float, float]


_hex = float.fromhex
NATURAL = {element: Base((1, 0), two) for element, two in LN2.items()}
BINARY = {
    "float": Base((_hex("0x1.715476p0"), _hex("0x1.4ae0cp-26")), (1, 0)),
    "double": Base((_hex("0x1.71547652b82fep0"), _hex("0x1.777d0ffda0d24p-56")), (1, 0)),
}
DECIMAL = {
    "float": Base(
        (_hex("0x1.bcb7b2p-2"), _hex("-0x1.5b235ep-27")),
        (_hex("0x1.344p-2"), _hex("0x1.3509f8p-18")),
    ),
    "double": Base(
        (_hex("0x1.bcb7b1526e50ep-2"), _hex("0x1.95355baaafad3p-57")),
        (_hex("0x1.34413509f4p-2"), _hex("0x1.cff7988f8959bp-41")),
    ),
}


def _log(x: V, base: dict[str, Base]) -> V:
    m, e = mantissa_exponent(x)
    f = m - 1
    lead, rest = _leading_two(f) if base is not NATURAL else (f, log1p_rest(f))
    return _combine(e, lead, rest, base[x.element])


def _combine(e: V, lead: V, rest: V, base: Base) -> V:
    """e·log(2) + (lead + rest)·unit, the rest being much smaller."""
    unit, unit_low = base.unit
    if unit != 1:
        product = lead * unit
        rest = rest.fma(unit, lead.fma(unit_low, lead.fma(unit, -product)))
        lead = product
    two, two_low = base.two
    top = e if two == 1 else e * two
    total = top + lead
    lost = lead - (total - top)  # of lead in that sum; |lead| < |top| or top = 0
    small = lost if two == 1 else e.fma(two_low, lost)
    return e.is_class(INFINITE).select(e, total + (rest + small))  # log 0 and log inf


def log1p_rest(f: V, single: bool = False) -> V:
    """log(1 + f) - f for -1/4 <= f <= 1/2."""
    square = f * f
    if single or f.element == "float":
        series = c.LOG_SINGLE if single else c.LOG_F32
        return square * f.fma(f.poly(series), -0.5)
    return _cubic_rest(f, square) - square * 0.5


def _cubic_rest(f: V, square: V) -> V:
    """log(1 + f) - f + f²/2"""
    if f.element == "float":
        return square * f * f.poly(c.LOG_F32)
    # With s = f/(2+f): log(1+f) = 2s + s³p = f - f²/2 + s·(f²/2 + s²p)
    s = f / (f + 2)
    z = s * s
    return s * z.fma(z.poly(c.LOG_F64), square * 0.5)


def _leading_two(f: V) -> tuple[V, V]:
    """(lead, rest) of log(1 + f), lead = f - f²/2 rounded: the rest is smaller than without f²."""
    half = f * -0.5
    lead = half.fma(f, f)
    lost = half.fma(f, f - lead)
    return lead, _cubic_rest(f, f * f) + lost


def log(x: V) -> V:
    """The natural logarithm."""
    return _log(x, NATURAL)


def log2(x: V) -> V:
    """The logarithm to base 2, exact for powers of 2."""
    return _log(x, BINARY)


def log10(x: V) -> V:
    """The logarithm to base 10, exact for powers of 10."""
    return _log(x, DECIMAL)


# ------------------------------------------------------------------- logarithms of 1 + something


def log1p(x: V) -> V:
    """log(1 + x), accurate near 0."""
    return _log1p(x, x.const(0)).copysign(x)


def _log1p(x: V, low: V, single: bool = False, doublings: V | None = None) -> V:
    """log((1 + x + low)·2^doublings), for |low| at most about one ulp of x.

    f is x itself where 1 + x needs no scaling; elsewhere what 1 + x loses in rounding is added to
    low, which then counts as low/(1 + f), for which a rough inverse is enough.  `single`: in
    double, but float32 accuracy is enough.
    """
    u = x + 1
    m, e = mantissa_exponent(u)
    near = e.eq(0)
    f = near.select(x, m - 1)
    if single:
        lead, rest = f, log1p_rest(f, single)
    else:
        lead, rest = _leading_two(f) if u.element == "float" else (f, log1p_rest(f))
        low = near.select(low, _lost_of_one_plus(x, u) + low) * _ratio_of_powers(m, u)
        rest = low.fma(f.fma(f.poly(c.INVERSE), 1), rest)
    return _combine(e if doublings is None else e + doublings, lead, rest, NATURAL[u.element])


def _lost_of_one_plus(x: V, u: V) -> V:
    """1 + x - u for the rounded sum u."""
    big = x.gt(1)
    larger, smaller = big.select(x, x.const(1)), big.select(x.const(1), x)
    return smaller - (u - larger)


def _ratio_of_powers(m: V, u: V) -> V:
    """m / u, which is a power of two; 0 where that is too small."""
    one = BIAS[u.element] << MANTISSA[u.element]
    return (m.bits() - u.bits() + one).smax(0).bitcast(u.element)


def arcsinh(x: V, single: bool) -> V:
    """asinh x = log1p(a + a²/(1 + sqrt(a² + 1))) with the sign of x."""
    a = x.abs()
    square = a * a
    grown = square / (a.fma(a, 1).sqrt() + 1)
    t = a + grown
    low = grown - (t - a)
    return _log1p_or_log2x(a, t, low, single).copysign(x)


def arccosh(x: V, single: bool) -> V:
    """acosh x = log1p(t + sqrt(t² + 2t)), t = x - 1; NaN below 1."""
    t = x - 1
    twice = t + t
    square = t.fma(t, twice)
    root = square.sqrt()
    total, low = fast_two_sum(root, t)
    if not single:  # what the square and its root lost in rounding
        error = (-root).fma(root, square) + t.fma(t, twice - square)
        low = low + root.gt(0).select(error * 0.5 / root, 0)
    result = _log1p_or_log2x(x, total, low, single)
    return x.lt(1).select(x.const(math.nan), result)


def _log1p_or_log2x(a: V, t: V, low: V, single: bool) -> V:
    """log(1 + t + low), or log(2a) for a so large that the squares overflow and 1 is nothing."""
    if single:
        return _log1p(a.eq(math.inf).select(a, t), low, single)
    huge = a.gt(2.0**60)
    x = huge.select(a - 1, t)
    return _log1p(x, huge.select(x.const(0), low), single, huge.select(x.const(1), 0))


def arctanh(x: V, single: bool) -> V:
    """atanh x = log1p(2a/(1 - a))/2 with the sign of x."""
    a = x.abs()
    d = 1 - a
    q = (a + a) / d
    zero = x.const(0)
    if single:
        return (_log1p(q, zero, single) * 0.5).copysign(x)
    d_low = (1 - d) - a
    low = ((-q).fma(d, a + a) - q * d_low) / d
    low = q.abs().lt(2.0**60).select(low, zero)  # not at the pole, nor for NaN
    return (_log1p(q, low, single) * 0.5).copysign(x)


FUNCTIONS: dict[str, Callable[..., V]] = {
    "log": log,
    "log2": log2,
    "log10": log10,
    "log1p": log1p,
    "arcsinh": in_double(arcsinh),
    "arccosh": in_double(arccosh),
    "arctanh": in_double(arctanh),
}
