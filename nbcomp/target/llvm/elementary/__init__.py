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

# Vector instructions of one call on float32.
COSTS: dict[str, int] = {
    "exp": 14,
    "exp2": 12,
    "tanh": 21,
    "erf": 22,
    "log": 22,
    "log2": 25,
    "log10": 27,
    "sin": 27,
    "cos": 26,
    "arctan": 28,
}
COSTS |= {name: 60 for name in FUNCTIONS if name not in COSTS}
