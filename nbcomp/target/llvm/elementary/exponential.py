"""exp, exp2, tanh: one reduction to |r| <= ln(2)/2 and a polynomial.

x = n·ln2 + r, e^x = 2^n·(1 + r + r²·p(r)); n·ln2 is subtracted in two parts with fused
multiply-adds (Cody and Waite), so r carries no cancellation error.
"""

from __future__ import annotations

import math

from nbcomp.target.llvm.elementary.piecewise import odd_function
from nbcomp.target.llvm.elementary.split import magic, scale
from nbcomp.target.llvm.lanes import V
from nbcomp.target.llvm.elementary.tables import TANH

Coefficients = tuple[float, ...]

# minimax.py exp_f32 (2^-28.2), exp_f64 (2^-57.1)
_EXP: dict[str, Coefficients] = {
    "float": (
        0.0013838905142620206,
        0.008369192481040955,
        0.04166810214519501,
        0.16666516661643982,
        0.4999999403953552,
    ),
    "double": (
        2.466678237684373e-08,
        2.76322087522045e-07,
        2.7558618762203475e-06,
        2.4801488199232012e-05,
        0.00019841268383789668,
        0.0013888888947573201,
        0.008333333333991184,
        0.04166666666651945,
        0.16666666666665686,
        0.5000000000000011,
    ),
}

# minimax.py exp2_f32 (2^-27.5), exp2_f64 (2^-55.5)
_EXP2: dict[str, Coefficients] = {
    "float": (
        0.00015688090934418142,
        0.0013423211639747024,
        0.009617350064218044,
        0.055502619594335556,
        0.24022655189037323,
        0.6931472420692444,
    ),
    "double": (
        4.0556474875173985e-10,
        7.072854398977458e-09,
        1.0180815368198484e-07,
        1.3215441252781896e-06,
        1.5252726932088892e-05,
        0.00015403530443908856,
        0.0013333558153972042,
        0.009618129107605611,
        0.05550410866478786,
        0.240226506959101,
        0.6931471805599457,
    ),
}

# ln 2 as the nearest number of the format, and the rest.
LN2 = {
    "float": (float.fromhex("0x1.62e430p-1"), float.fromhex("-0x1.05c61p-29")),
    "double": (float.fromhex("0x1.62e42fefa39efp-1"), float.fromhex("0x1.abc9e3b39803fp-56")),
}

# Below the first the result is 0, above the second infinity; between, 2^n needs no special care.
_EXP_RANGE = {"float": (-104.0, 89.0), "double": (-746.0, 710.0)}
_EXP2_RANGE = {"float": (-151.0, 129.0), "double": (-1076.0, 1025.0)}


def clamp(x: V, low: float, high: float) -> V:
    """x within bounds; NaN stays NaN."""
    return x.const(low).max(x.const(high).min(x))


def exp_parts(x: V) -> tuple[V, V, V]:
    """(p, shifted, n): e^x = p·2**n for x in the range of `exp`; see `split.scale`."""
    high, low = LN2[x.element]
    shifted = x.fma(1 / math.log(2), magic(x))
    n = shifted - magic(x)
    r = n.fma(-low, n.fma(-high, x))
    p = r.fma(r.fma(r.poly(_EXP[x.element]), 1), 1)
    return p, shifted, n


def exp(x: V) -> V:
    """e^x"""
    return scale(*exp_parts(clamp(x, *_EXP_RANGE[x.element])))


def exp2(x: V) -> V:
    """2^x, exact for whole x."""
    x = clamp(x, *_EXP2_RANGE[x.element])
    shifted = x + magic(x)
    n = shifted - magic(x)
    r = x - n
    return scale(r.fma(r.poly(_EXP2[x.element]), 1), shifted, n)


# tanh(x) = x + x^3 p(x^2), minimax.py tanh_f32 (2^-27.5), tanh_f64 (2^-56.1)
_TANH: dict[str, Coefficients] = {
    "float": (
        -0.005637343507260084,
        0.020579790696501732,
        -0.05372202396392822,
        0.1333123743534088,
        -0.33333274722099304,
    ),
    "double": (
        -1.5750476264396695e-05,
        7.647869956462039e-05,
        -0.0002279720594989095,
        0.000586020012433287,
        -0.001454867110196563,
        0.0035919710399735733,
        -0.008863218719993462,
        0.021869487399081847,
        -0.05396825392341624,
        0.1333333333324494,
        -0.33333333333332726,
    ),
}


def tanh(x: V) -> V:
    """tanh x: a polynomial near 0, else 1 - 2/(e^2x + 1), whose error the 1 swallows.

    In float32 a table is twice as fast, where the target can look up in registers.
    """
    if x.element == "float" and "avx512f" in x.b.features:
        return odd_function(x, "tanh", TANH, scale=1.5, last=9.3)
    a = x.abs()
    e = scale(*exp_parts(x.const(44.0).min(a + a)))
    far = 1 - 2 / (e + 1)
    s = x * x
    near = (x * s).fma(s.poly(_TANH[x.element]), x)
    return a.lt(0.625).select(near, far.copysign(x))


FUNCTIONS = {"exp": exp, "exp2": exp2, "tanh": tanh}
