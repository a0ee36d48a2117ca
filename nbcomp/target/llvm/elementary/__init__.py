"""Elementary functions as straight-line vector code: exp, log, sin, tanh and their families.

Every function takes `float` or `double` values of any number of lanes.  Bounds: float32 within 1
ulp for every argument, float64 within 2 ulp, special values as C99's Annex F, no flushing of
denormals (`benchmarks/ulp.py` measures them all).  Coefficients are minimax fits by
`benchmarks/minimax.py`. Knows numbers and LLVM, not dtypes or ufunc conventions.
"""

from __future__ import annotations

from collections.abc import Callable

from nbcomp.target.llvm.elementary import (
    error,
    exponential,
    inverse,
    logarithm,
    powers,
    trigonometric,
)
from nbcomp.target.llvm.lanes import V

FUNCTIONS: dict[str, Callable[..., V]] = {
    **exponential.FUNCTIONS,
    **logarithm.FUNCTIONS,
    **trigonometric.FUNCTIONS,
    **inverse.FUNCTIONS,
    **powers.FUNCTIONS,
    **error.FUNCTIONS,
}

# Vector instructions of one call on float32, with AVX-512.
COSTS: dict[str, int] = {
    "arccos": 32,
    "arccosh": 48,
    "arcsin": 27,
    "arcsinh": 50,
    "arctan": 30,
    "arctan2": 48,
    "arctanh": 34,
    "cbrt": 24,
    "cos": 32,
    "cosh": 27,
    "erf": 23,
    "exp": 14,
    "exp2": 12,
    "expm1": 34,
    "hypot": 20,
    "log": 21,
    "log10": 21,
    "log1p": 26,
    "log2": 20,
    "logaddexp": 180,
    "logaddexp2": 180,
    "power": 50,
    "sin": 32,
    "sinh": 33,
    "tan": 42,
    "tanh": 23,
}
