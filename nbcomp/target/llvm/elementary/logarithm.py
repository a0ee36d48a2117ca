"""log and its family: x = m·2^e with m near 1, then a series in f = m - 1.

log x = e·ln2 + log(1 + f).  The high part of ln2 has few bits, so e·ln2_high is exact, and its sum
with f is taken with its rounding error; what is left is small, so its own errors hardly count.

In float32, where the target can look up in registers, m is first multiplied by one of 16 rough
inverses, and f is so small that half the series is enough: log x = e·ln2 + log(1/inverse) +
log(1 + f).  The logarithms of the inverses are short, as ln2_high is (`tables`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from nbcomp.target.llvm import x86
from nbcomp.target.llvm.elementary import coefficients as c
from nbcomp.target.llvm.elementary.piecewise import lookup
from nbcomp.target.llvm.elementary.split import (
    LN2,
    fast_two_sum,
    mantissa_exponent,
    rough_inverse,
    scale_whole,
)
from nbcomp.target.llvm.elementary.tables import LOG, LOG2, LOG10, Columns
from nbcomp.target.llvm.lanes import INFINITE, MANTISSA, V


@dataclass(frozen=True)
class Base:
    """1 / ln(base) and log_base(2), each as high + low.

    The high parts are short: e times the one and f times the other are exact.  `series` is p of
    log_base(1 + f) = f·high + f·p(f), or f + f²·p(f) if the high part is 1; `table` has the rough
    inverses and their logarithms.
    """

    name: str
    unit: tuple[float, float]
    two: tuple[float, float]
    series: tuple[float, ...] = ()
    table: Columns = ()
    least: float = 3 / 4  # of m


_hex = float.fromhex
_LOG10_2 = {
    "float": (_hex("0x1.344p-2"), _hex("0x1.3509f8p-18")),
    "double": (_hex("0x1.34413509f4p-2"), _hex("0x1.cff7988f8959bp-41")),
}
_NATURAL = Base("log", (1, 0), LN2["double"])
_BINARY = Base("log2", (1.5, _hex("-0x1.d57135a8fa03dp-5")), (1, 0))
_DECIMAL = Base("log10", (0.5, _hex("-0x1.0d213ab646bc7p-4")), _LOG10_2["double"])

# By the form of the argument: double, float by a polynomial, float by a table.
_FORMS = {
    "log": {
        "double": _NATURAL,
        "float": replace(_NATURAL, two=LN2["float"], series=(*c.LOG_F32, -0.5)),
        "table": replace(_NATURAL, two=LN2["float"], series=c.LOG_TABLE_F32, table=LOG),
    },
    "log2": {
        "double": _BINARY,
        "float": replace(_BINARY, series=c.LOG2_F32, least=2 / 3),
        "table": replace(_BINARY, series=c.LOG2_TABLE_F32, table=LOG2),
    },
    "log10": {
        "double": _DECIMAL,
        "float": replace(_DECIMAL, two=_LOG10_2["float"], series=c.LOG10_F32, least=2 / 3),
        "table": replace(_DECIMAL, two=_LOG10_2["float"], series=c.LOG10_TABLE_F32, table=LOG10),
    },
}


def _base(name: str, x: V) -> Base:
    """The constants of a base in the form that is fastest for x."""
    table = x.element == "float" and "avx512f" in x.b.features
    return _FORMS[name]["table" if table else x.element]


def _split(x: V, base: Base) -> tuple[V, V, V, V]:
    """(m, e, inverse, top): x = m·2^e, m·inverse is near 1, top = -log(inverse) + e·log(2)_high."""
    two = base.two[0]
    if not base.table:
        m, e = mantissa_exponent(x, base.least)
        return m, e, m.const(1), e if two == 1 else e * two
    m, e = mantissa_exponent(x)
    index = m.bits().lshr(MANTISSA["float"] - 4)
    inverse, value = (lookup(f"{base.name}.{k}", t, index) for k, t in enumerate(base.table))
    return m, e, inverse, value + e if two == 1 else e.fma(two, value)


def _log(x: V, base: Base) -> V:
    m, e, inverse, top = _split(x, base)
    f = m.fma(inverse, -1) if base.table else m - 1
    return _combine(x, e, top, f, _rest(f, base), base)


def _rest(f: V, base: Base) -> V:
    """log_base(1 + f) less f times the high part of the unit."""
    high, low = base.unit
    if base.series:
        return (f if low else f * f) * f.poly(base.series)
    rest = _log1p_rest_double(f)
    return rest.fma(high + low, f * low) if low else rest


def _log1p_rest_double(f: V) -> V:
    """log(1 + f) - f; with s = f/(2+f): log(1+f) = 2s + s³p = f - f²/2 + s·(f²/2 + s²p)."""
    s = f / (f + 2)
    z = s * s
    half = f * f * 0.5
    return s.fma(z.fma(z.poly(c.LOG_F64), half), -half)


def _combine(x: V, e: V, top: V, f: V, rest: V, base: Base) -> V:
    """top + f·(high part of the unit) + rest + e·(low part of log 2), the rest being smaller."""
    unit, two_low = base.unit[0], base.two[1]
    total = top + f if unit == 1 else f.fma(unit, top)
    taken = total - top
    lost = f - taken if unit == 1 else f.fma(unit, -taken)  # |f| < |top| or top = 0
    result = total + (rest + (e.fma(two_low, lost) if two_low else lost))
    if x86.has_avx512(x):
        return x86.fix_up(result, x, _SPECIAL)
    return e.is_class(INFINITE).select(e, result)


# Of a logarithm's argument, for `x86.fix_up`: 0, infinities and negative numbers.
_SPECIAL = {"zero": "-inf", "inf": "inf", "-inf": "nan", "negative": "nan", "nan": "argument"}


def log(x: V) -> V:
    """The natural logarithm."""
    return _log(x, _base("log", x))


def log2(x: V) -> V:
    """The logarithm to base 2, exact for powers of 2."""
    return _log(x, _base("log2", x))


def log10(x: V) -> V:
    """The logarithm to base 10, exact for powers of 10."""
    return _log(x, _base("log10", x))


# ------------------------------------------------------------------- logarithms of 1 + something


def log1p(x: V) -> V:
    """log(1 + x), accurate near 0."""
    return _log1p(x).copysign(x)


def _log1p(x: V, low: V | None = None, huge: V | None = None) -> V:
    """log(1 + x + low), or of twice that if huge, for |low| at most about one ulp of x.

    1 + x = (1 + f)·2^e / inverse, where f is x itself near 0, and elsewhere rounded once.  low
    counts as low/(1 + x), for which a rough inverse is enough.
    """
    base = _base("log", x)
    u = x + 1
    m, e, inverse, top = _split(u, base)
    down = scale_whole(inverse, -e)
    f = x.fma(down, down - 1)
    rest = _rest(f, base)
    if low is not None:  # down is a rough inverse of 1 + x, if there is a table
        rest = low.fma(down if base.table else down * rough_inverse(m), rest)
    if huge is not None:
        e, top = huge.select(e + 1, e), huge.select(top + base.two[0], top)
    return _combine(u, e, top, f, rest, base)


_HUGE = 2.0**60  # the square does not overflow, and 1 is nothing beside it


def arcsinh(x: V) -> V:
    """asinh x = log1p(a + grown) with the sign of x; grown is root - 1 or a²/(root + 1)."""
    a = x.abs()
    huge, large = a.gt(_HUGE), a.gt(1)
    square = a.fma(a, 1)
    root = huge.select(x.const(0), square.sqrt())
    grown = large.select(root - 1, a * a / (root + 1))
    t = a + grown
    low = grown - (t - a)
    error = huge.select(x.const(0), (-root).fma(root, square))  # of the root
    low = large.select(error.fma(rough_inverse(root + root), low), low)
    return _log1p(t, low, huge).copysign(x)


def arccosh(x: V) -> V:
    """acosh x = log1p(t + sqrt(t² + 2t)), t = x - 1; NaN below 1."""
    t = x - 1
    huge = x.gt(_HUGE)
    small = huge.select(x.const(0), t)
    size, twice = small.abs(), small + small
    square = small.fma(size, twice)  # negative below 1
    root = square.sqrt()
    total, low = fast_two_sum(root, t)
    # What the square and its root lost in rounding.
    error = (-root).fma(root, square) + small.fma(size, twice - square)
    return _log1p(total, error.fma(rough_inverse(root + root), low), huge)


_ARCTANH_NEAR = {"float": 0.5, "double": 1 / 3}


def arctanh(x: V) -> V:
    """atanh x = k·ln2/2 + atanh t with the sign of x, where (1 + a)/(1 - a) = 2^k·(1 + t)/(1 - t).

    Near 0, k is 0 and t = a.  Elsewhere t = (1 + a - 2^k·(1 - a))/(1 + a + 2^k·(1 - a)), and the
    whole number nearest to log2((1 + a)/(1 - a)), or nearly, comes from the bits of the two floats.
    """
    a = x.abs()
    up, down = a + 1, 1 - a
    m, one = MANTISSA[x.element], x.const(1).bits()
    power = (up.bits() - down.bits() + one + (1 << (m - 1))) & -(1 << m)
    k = (power - one).ashr(m).to_float(x.element)
    near = a.le(_ARCTANH_NEAR[x.element])
    k = near.select(x.const(0), k)
    power = power.bitcast(x.element)
    over = (-power).fma(down, up)
    lost = a - (up - 1)  # by 1 + a in rounding
    if x.element == "double":  # in float32, 1 - a is exact from 1/2 on
        lost = (-power).fma((1 - down) - a, lost)
    over = over + lost
    t = near.select(a, over / power.fma(down, up))
    z = t * t
    rest = t * z * z.poly(c.ATANH_F32 if x.element == "float" else c.ATANH_F64)
    high, low = LN2[x.element]
    top = k * (high / 2)
    total = top + t
    result = total + (rest + k.fma(low / 2, t - (total - top)))
    pole = down.eq(0).select(x.const(math.inf), math.nan)
    return down.gt(0).select(result, pole).copysign(x)


FUNCTIONS: dict[str, Callable[..., V]] = {
    "log": log,
    "log2": log2,
    "log10": log10,
    "log1p": log1p,
    "arcsinh": arcsinh,
    "arccosh": arccosh,
    "arctanh": arctanh,
}
