"""log and its family: x = m·2^e with 3/4 <= m < 3/2, then a series in f = m - 1.

log x = e·ln2 + log(1 + f).  The high part of ln2 has few bits, so e·ln2_high is exact, and its sum
with f is taken with its rounding error; what is left is small, so its own errors hardly count.
"""

from __future__ import annotations

from nbcomp.target.llvm.elementary.split import mantissa_exponent
from nbcomp.target.llvm.lanes import INFINITE, V

Coefficients = tuple[float, ...]

# log(1+f) = f - f²/2 + f³·p(f): minimax.py log_f32 (2^-27.7)
_LOG_F32: Coefficients = (
    -0.04500563442707062,
    0.10459768027067184,
    -0.1316360980272293,
    0.14479705691337585,
    -0.16647224128246307,
    0.19990773499011993,
    -0.2500009536743164,
    0.3333345055580139,
)
# log((1+s)/(1-s)) = 2s + s³·p(s²): minimax.py log_f64
_LOG_F64: Coefficients = (
    0.15367331173322968,
    0.15250308133514778,
    0.18186349568771007,
    0.22222138675478134,
    0.2857142939293626,
    0.39999999996176333,
    0.6666666666667268,
)

# ln 2 = high + low, both positive; high has few enough bits for e·high to be exact.
LN2_SPLIT = {
    "float": (float.fromhex("0x1.62e4p-1"), float.fromhex("0x1.7f7d1cp-20")),
    "double": (float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")),
}


def log(x: V) -> V:
    """The natural logarithm."""
    m, e = mantissa_exponent(x)
    f = m - 1
    high, low = LN2_SPLIT[x.element]
    top = e * high
    total = top + f
    lost = f - (total - top)  # of f in that sum; |f| < |top| or top = 0
    result = total + (_log1p_rest(f) + e.fma(low, lost))
    return e.is_class(INFINITE).select(e, result)  # log 0 and log inf


def _log1p_rest(f: V) -> V:
    """log(1 + f) - f"""
    square = f * f
    if f.element == "float":
        return square * f.fma(f.poly(_LOG_F32), -0.5)
    # With s = f/(2+f): log(1+f) = 2s + s³p = f - f²/2 + s·(f²/2 + s²p)
    s = f / (f + 2)
    z = s * s
    half = square * 0.5
    return s.fma(z.fma(z.poly(_LOG_F64), half), -half)


FUNCTIONS = {"log": log}
