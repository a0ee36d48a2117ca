"""power, cbrt, hypot and the sums of exponentials.

x^y = 2^(y·log2 x) needs log2 x with some ten bits more than a double has, since y·log2 x may reach
1024: it is computed as an unevaluated sum high + low, with the error-free products and sums of T.
J. Dekker (Numerische Mathematik 18, 1971).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from nbcomp.target.llvm import outline, x86
from nbcomp.target.llvm.elementary import coefficients as c
from nbcomp.target.llvm.elementary.exponential import clamp, exp, exp2
from nbcomp.target.llvm.elementary.logarithm import log1p
from nbcomp.target.llvm.elementary.piecewise import lookup
from nbcomp.target.llvm.elementary.split import (
    Sum,
    fast_two_sum,
    in_double,
    magic,
    mantissa_exponent,
    scale_whole,
    two_product,
)
from nbcomp.target.llvm.elementary.tables import EXP2, POWER
from nbcomp.target.llvm.lanes import MANTISSA, V

_hex = float.fromhex
_LOG2_E = (float.fromhex("0x1.71547652b82fep0"), float.fromhex("0x1.777d0ffda0d24p-56"))
_LOG2_E_SINGLE = (_hex("0x1.715476p0"), _hex("0x1.4ae0cp-26"))
_TWO_THIRDS = (2 / 3, float.fromhex("0x1.5555555555555p-55"))


def _log2_double(m: V, e: V) -> Sum:
    """log2(m·2^e) to about 2^-64: 2s + s³(2/3 + s²·p(s²)), s = f/(2+f), leading terms as sums."""
    f = m - 1
    d, d_low = fast_two_sum(2.0, f)
    inverse = 1 / d
    s = f * inverse
    s_low = ((-s).fma(d, f) - s * d_low) * inverse
    z, z_low = two_product(s, s)
    z_low = (s + s).fma(s_low, z_low)
    # a = 2/3 + z·p(z)
    p = z.poly(c.LOG_POWER_F64)
    t, t_low = two_product(z, p)
    a, a_low = fast_two_sum(_TWO_THIRDS[0], t)
    a_low = a_low + (z_low.fma(p, t_low) + _TWO_THIRDS[1])
    # v = 2 + z·a
    w, w_low = two_product(z, a)
    v, v_low = fast_two_sum(2.0, w)
    v_low = v_low + z.fma(a_low, z_low.fma(a, w_low))
    # s·v / ln 2
    g, g_low = two_product(s, v)
    g_low = s.fma(v_low, s_low.fma(v, g_low))
    h, h_low = two_product(g, _LOG2_E[0])
    h_low = g.fma(_LOG2_E[1], g_low.fma(_LOG2_E[0], h_low))
    total, low = fast_two_sum(e, h)
    return total, low + h_low


def _log2_single(x: V) -> Sum:
    """log2 |x| to about 2^-34, for float32 by a table: e - log2(inverse) + log2(1 + f), f exact."""
    m, exponent, values = _mantissa_and_exponent(x)
    index = m.bits().lshr(MANTISSA["float"] - 4)
    columns = (POWER[0], values, POWER[2])
    inverse, value, value_low = (lookup(f"power.{k}", t, index) for k, t in enumerate(columns))
    f = m.fma(inverse, -1)
    half, square = f * -0.5, f * f
    lead = half.fma(f, f)
    lead_low = half.fma(f, f - lead)
    high, low = _LOG2_E_SINGLE
    h, h_low = two_product(lead, high)
    h_low = lead.fma(low, lead_low.fma(high, h_low))
    p4, p3, p2, p1, p0 = c.LOG2_CUBIC_F32
    p = square.fma(f.const(p4).fma(f, p3), f.const(p2).fma(f, p1)).fma(f, p0)
    top = value + exponent
    total, lost = fast_two_sum(top, h)
    return total, (square * f).fma(p, h_low + (lost + value_low))


def _mantissa_and_exponent(x: V) -> tuple[V, V, tuple[float, ...]]:
    """(m, exponent, values) with |x| = m·2^e, 3/4 <= m < 3/2, and exponent + value what e + the
    table's value is: where m is below 1, AVX-512's exponent of x is e - 1.
    """
    if not x86.has_avx512(x):
        return *mantissa_exponent(x.abs()), POWER[1]
    values = tuple(value + (k >= 8) for k, value in enumerate(POWER[1]))
    return x86.getmant_of_size(x), x86.getexp(x), values


# Beyond these 2^t is 0 or infinity.
_POWER_LIMIT = {"float": 200.0, "double": 1100.0}


def power(x: V, y: V) -> V:
    """x^y with all special cases of C99."""
    return outline.call("power", [x, y], _power)[0]


def _power(args: list[V]) -> list[V]:
    x, y = args
    size, t = _power_of_size(x, y)
    usual = x.gt(0) & t.abs().lt(_POWER_LIMIT[x.element])
    return outline.rarely(~usual, [size], lambda: [_any_power(x, y, size, t)])


def _any_power(x: V, y: V, size: V, t: V) -> V:
    """x^y for any arguments, given t = y·log2 |x|, and 2^t where that is within the limit."""
    a = x.abs()
    beyond = t.gt(0).select(x.const(math.inf), t.is_nan().select(t, 0))
    size = t.abs().lt(_POWER_LIMIT[x.element]).select(size, beyond)
    one = y.eq(0) | x.eq(1) | (a.eq(1) & y.abs().eq(math.inf))
    size = one.select(x.const(1), size)
    half = y * 0.5
    whole = y.eq(y.rint())
    odd = whole & half.ne(half.rint())
    result = (odd & x.bits().lt(0)).select(-size, size)
    undefined = x.lt(0) & a.lt(math.inf) & ~whole & ~y.is_nan()
    return undefined.select(x.const(math.nan), result)


def _power_of_size(x: V, y: V) -> tuple[V, V]:
    """(2^t, t) with t = y·log2 |x|, for t within the limit."""
    if x.element == "double":
        log, low = _log2_double(*mantissa_exponent(x.abs()))
    elif "avx512f" in x.b.features:
        log, low = _log2_single(x)
    else:
        wide = _power_in_double(x.abs().to_float("double"), y.to_float("double"))
        return wide[0].to_float("float"), wide[1].to_float("float")
    t, t_low = two_product(y, log)
    t_low = y.fma(low, t_low)
    return (_exp2_double if x.element == "double" else _exp2_single)(t, t_low), t


def _exp2_double(t: V, t_low: V) -> V:
    n = (t + magic(t)) - magic(t)
    r = (t - n) + t_low
    return scale_whole(r.fma(r.poly(c.EXP2_F64), 1), n)


def _exp2_single(t: V, t_low: V) -> V:
    """2^(t + t_low) by a table of 2^(j/16); t_low may reach sixteenths, too."""
    shift = magic(t) / 16  # what is added to it is rounded to sixteenths
    shifted = (t + t_low) + shift
    n = shifted - shift
    r = (t - n) + t_low
    value, value_low = (lookup(f"exp2.{k}", v, shifted.bits()) for k, v in enumerate(EXP2))
    p = value + (value * r).fma(r.poly(c.EXP2_TABLE_F32), value_low)
    return x86.scalef(p, n) if x86.has_avx512(p) else scale_whole(p, n.floor())


def _power_in_double(a: V, y: V) -> tuple[V, V]:
    """The same in double, with float32 accuracy: log2 to a relative 2^-35."""
    m, e = mantissa_exponent(a)
    f = m - 1
    log = (f * f).fma(f.fma(f.poly(c.LOG_POWER_SINGLE), -0.5), f)
    t = y * log.fma(_LOG2_E[0], e)
    shifted = clamp(t, -300.0, 300.0) + magic(t)
    r = t - (shifted - magic(t))
    p = r.fma(r.poly(c.EXP2_SINGLE), 1)
    return (p.bits() + (shifted.bits() << MANTISSA["double"])).bitcast("double"), t


_CBRT_2 = {
    -1: (_hex("0x1.965fea0000000p-1"), _hex("0x1.4f5b900000000p-27")),
    0: (1.0, 0.0),
    1: (_hex("0x1.428a300000000p+0"), _hex("-0x1.9ca35e0000000p-26")),
}


def cbrt(x: V) -> V:
    """The cube root of m·2^(3q + k): 2^q times the roots of 2^k and of m."""
    a = x.abs()
    m, e = mantissa_exponent(a)
    third = e.fma(1 / 3, magic(e)) - magic(e)  # q, rounded to nearest: k is -1, 0 or 1
    root = (_cbrt_single if x.element == "float" else _cbrt_double)(m, e, third)
    result = scale_whole(root, third).copysign(x)
    if x86.has_avx512(x):
        return result  # third is infinite for 0 and infinity
    return (a.gt(0) & a.lt(math.inf)).select(result, x)


def _cbrt_single(m: V, e: V, third: V) -> V:
    """root·(1 + f·p(f)) for f = m - 1 and the root of 2^k = root + low."""
    f = m - 1
    root, low = _roots_of_two(e, third)
    return root + (root * f).fma(f.poly(c.CBRT_F32), low)


def _roots_of_two(e: V, third: V) -> list[V]:
    """The cube root of 2^k as high + low."""
    if x86.has_avx512(e):
        index = third.fma(-3, e + magic(e)).bits()
        rows = [_CBRT_2[k if k < 2 else -1] for k in range(16)]
        return [lookup("cbrt", column, index) for column in zip(*rows, strict=True)]
    k = third.fma(-3, e)
    up, down = k.gt(0), k.lt(0)
    below, none, above = (_CBRT_2[i] for i in (-1, 0, 1))
    return [up.select(e.const(above[i]), down.select(e.const(below[i]), none[i])) for i in range(2)]


def _cbrt_double(m: V, e: V, third: V) -> V:
    """w / w^(2/3) for w = m·2^k; w^(-1/3) by a polynomial and one iteration, then one of Newton."""
    k = third.fma(-3, e)
    up, down = k.gt(0), k.lt(0)
    w = up.select(m * 2, down.select(m * 0.5, m))
    root_k = up.select(m.const(2 ** (-1 / 3)), down.select(m.const(2 ** (1 / 3)), m.const(1)))
    t = m.poly(c.CBRT) * root_k
    h = 1 - w * t * t * t
    t = (t * h).fma(h.fma(2 / 9, 1 / 3), t)
    inverse_square = t * t
    r = w * inverse_square
    error = (-(r * r)).fma(r, w)  # w - r³
    return (error * inverse_square).fma(1 / 3, r)


def hypot(x: V, y: V, single: bool) -> V:
    """sqrt(x² + y²) without overflow or underflow on the way; infinite if either is."""
    a, b = x.abs(), y.abs()
    if single:
        return _infinite_first(a, b, a.fma(a, b * b).sqrt())
    larger = a.max(b)
    large, small = larger.gt(2.0**500), larger.lt(2.0**-500)
    up = large.select(x.const(2.0**-600), small.select(x.const(2.0**600), 1))
    down = large.select(x.const(2.0**600), small.select(x.const(2.0**-600), 1))
    a_up, b_up = a * up, b * up
    return _infinite_first(a, b, a_up.fma(a_up, b_up * b_up).sqrt() * down)


def _infinite_first(a: V, b: V, result: V) -> V:
    return (a.eq(math.inf) | b.eq(math.inf)).select(a.const(math.inf), result)


def logaddexp(x: V, y: V, single: bool) -> V:
    """log(e^x + e^y), by NumPy's formula max + log1p(exp(-|x - y|))."""
    larger, gap = _larger_and_gap(x, y)
    term = log1p(exp(-gap))
    return _added(x, y, larger, gap, term, math.log(2))


def logaddexp2(x: V, y: V, single: bool) -> V:
    """log2(2^x + 2^y)"""
    larger, gap = _larger_and_gap(x, y)
    term = log1p(exp2(-gap)) * (1 / math.log(2))
    return _added(x, y, larger, gap, term, 1.0)


def _larger_and_gap(x: V, y: V) -> tuple[V, V]:
    difference = x - y
    return difference.gt(0).select(x, y), difference.abs()


def _added(x: V, y: V, larger: V, gap: V, term: V, equal: float) -> V:
    """larger + term; equal arguments (infinities too) add a constant, NaN stays."""
    total = x.eq(y).select(x + equal, larger + term)
    return gap.is_nan().select(x.eq(y).select(x, gap), total)


FUNCTIONS: dict[str, Callable[..., V]] = {
    "power": power,
    "cbrt": cbrt,
    "hypot": in_double(hypot),
    "logaddexp": in_double(logaddexp),
    "logaddexp2": in_double(logaddexp2),
}
