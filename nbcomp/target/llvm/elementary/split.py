"""Powers of two in and out of floats: the integer half of exp and log, exact in every case.

On AVX-512 one instruction does each; elsewhere the same bits come from integer arithmetic.
"""

from __future__ import annotations

import math

from nbcomp.target.llvm import x86
from nbcomp.target.llvm.lanes import BIAS, MANTISSA, V


def magic(x: V) -> float:
    """A number that, added to a small float, rounds it to a whole number kept in the low bits."""
    return 1.5 * 2.0 ** MANTISSA[x.element]


def magic_bits(element: str) -> int:
    """The bits of `magic`."""
    m = MANTISSA[element]
    return ((BIAS[element] + m) << m) | (1 << (m - 1))


def scale(p: V, shifted: V, n: V) -> V:
    """p · 2**n rounded once; n is a whole number and `shifted` is n plus the magic number."""
    if x86.has_avx512(p):
        return x86.scalef(p, n)
    k = shifted.bits() - magic_bits(p.element)
    half = k.ashr(1)
    return p * _power(half, p.element) * _power(k - half, p.element)


def _power(k: V, element: str) -> V:
    """2**k for integers k of the float's width, within the normal range."""
    return ((k + BIAS[element]) << MANTISSA[element]).bitcast(element)


def mantissa_exponent(x: V) -> tuple[V, V]:
    """(m, e), e a whole float: x = m · 2**e, 3/4 <= m < 3/2.

    The special cases of a logarithm pass through: e is -inf for 0 and inf for inf (m is 1 then), and m
    is NaN for negative numbers and NaN.
    """
    if x86.has_avx512(x):
        m = x86.getmant(x)
        return m, x86.getexp(x) - x86.getexp(m)
    bits_m, bias = MANTISSA[x.element], BIAS[x.element]
    tiny = x.lt(2.0 ** (1 - bias))
    bits = tiny.select(x * 2.0 ** (bits_m + 1), x).bits()
    offset = bits - (((bias - 1) << bits_m) | (1 << (bits_m - 1)))  # the bits of 3/4
    k = offset.ashr(bits_m)
    m = (bits - (k << bits_m)).bitcast(x.element)
    e = k.to_float(x.element) - tiny.select(x.const(bits_m + 1), 0)
    e = x.eq(0).select(x.const(-math.inf), x.eq(math.inf).select(x, e))
    special = x.eq(0) | x.eq(math.inf)
    m = special.select(x.const(1), x.ge(0).select(m, math.nan))
    return m, e
