"""Exact steps: powers of two in and out of floats, and sums and products with their rounding
errors.

On AVX-512 one instruction does each; elsewhere the same bits come from integer arithmetic.  A
whole number n is often carried as `shifted` = n + magic: adding the magic number rounds a small
float to a whole one, and leaves it as an integer in the low bits.  Error-free sums and products
after T. J. Dekker (Numerische Mathematik 18, 1971).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from nbcomp.target.llvm import x86
from nbcomp.target.llvm.lanes import BIAS, MANTISSA, V

Sum = tuple[V, V]  # high + low, high being the sum rounded

# ln 2 = high + low, both positive; high has so few bits that its product with an exponent is exact.
LN2 = {
    "float": (float.fromhex("0x1.62e4p-1"), float.fromhex("0x1.7f7d1cp-20")),
    "double": (float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")),
}


def fast_two_sum(a: V | float, b: V) -> Sum:
    """a + b exactly, for |a| >= |b|."""
    total = a + b
    return total, b - (total - a)


def two_sum(a: V, b: V) -> Sum:
    """a + b exactly, whichever is larger (D. E. Knuth, Art of Computer Programming 2, 4.2.2)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: V, b: V | float) -> Sum:
    """a · b exactly."""
    product = a * b
    return product, a.fma(b, -product)


def magic(x: V) -> float:
    """1.5·2^m: its neighbours are whole numbers apart."""
    return 1.5 * 2.0 ** MANTISSA[x.element]


def whole(shifted: V) -> V:
    """The integer carried by a shifted number, as wide as the float."""
    m = MANTISSA[shifted.element]
    return shifted.bits() - (((BIAS[shifted.element] + m) << m) | (1 << (m - 1)))


def scale(p: V, shifted: V) -> V:
    """p · 2^n rounded once, for a shifted n of at most about twice the exponent range."""
    if x86.has_avx512(p):
        return x86.scalef(p, shifted - magic(p))
    k = whole(shifted)
    half = k.ashr(1)
    return p * power_of_two(half, p.element) * power_of_two(k - half, p.element)


def scale_whole(p: V, n: V) -> V:
    """p · 2^n rounded once, for a whole float n of at most about twice the exponent range."""
    return x86.scalef(p, n) if x86.has_avx512(p) else scale(p, n + magic(n))


_INVERSE_BITS = {"float": 0x7EF311C7, "double": 0x7FDE623822FC16E6}


def rough_inverse(x: V) -> V:
    """About 1 / x, within an eighth, for positive x up to 2^125: by subtracting the exponents."""
    return (_INVERSE_BITS[x.element] - x.bits()).bitcast(x.element)


def reciprocal(x: V) -> V:
    """1 / x for a quotient that is corrected afterwards: within 2^-14 at least, in float32."""
    return x86.reciprocal14(x) if "avx512f" in x.b.features else 1 / x


def power_of_two(k: V, element: str) -> V:
    """2^k for integers k as wide as the float, within its normal exponents."""
    return ((k + BIAS[element]) << MANTISSA[element]).bitcast(element)


def mantissa_exponent(x: V, least: float = 0.75) -> tuple[V, V]:
    """(m, e), e a whole float: x = m · 2^e, least <= m < 2·least.

    The special cases of a logarithm pass through: e is -inf for 0 and inf for inf (m is 1 then),
    and NaN for negative numbers and NaN.
    """
    if x86.has_avx512(x) and least == 0.75:
        m = x86.getmant(x)
        return m, x86.getexp(x) - x86.getexp(m)
    bits_m, bias = MANTISSA[x.element], BIAS[x.element]
    tiny = x.lt(2.0 ** (1 - bias))
    bits = tiny.select(x * 2.0 ** (bits_m + 1), x).bits()
    offset = bits - x.const(least).bits()
    k = offset.ashr(bits_m)
    m = (bits - (k << bits_m)).bitcast(x.element)
    e = k.to_float(x.element) - tiny.select(x.const(bits_m + 1), 0)
    e = x.gt(0).select(e, x.eq(0).select(x.const(-math.inf), math.nan))
    return m, x.eq(math.inf).select(x, e)


def in_double(f: Callable[..., V]) -> Callable[..., V]:
    """float32 by computing in double: f(x, ..., single=True) needs float32 accuracy only."""

    def wide(*args: V) -> V:
        if args[0].element == "double":
            return f(*args, single=False)
        return f(*(a.to_float("double") for a in args), single=True).to_float("float")

    return wide
