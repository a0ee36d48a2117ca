"""The error function: a table in float32, two polynomials and one exp in double."""

from __future__ import annotations

from nbcomp.target.llvm.elementary import coefficients as c
from nbcomp.target.llvm.elementary.exponential import exp_moderate
from nbcomp.target.llvm.elementary.piecewise import odd_function
from nbcomp.target.llvm.elementary.tables import ERF
from nbcomp.target.llvm.lanes import V


def erf(x: V) -> V:
    """erf x; in double x + x·p(x²) below 1, and 1 - exp(-p(|x| - 1)) above."""
    if x.element == "float":
        return odd_function(x, "erf", ERF, scale=3.75, last=3.99, terms=6)
    a = x.abs()
    s = x * x
    near = a.fma(s.poly(c.ERF_NEAR_F64), a)
    y = x.const(5.0).min(a - 1)  # NaN stays; from 6 on erf is 1
    far = 1 - exp_moderate(-y.poly(c.ERF_FAR_F64))
    return a.lt(1).select(near, far).copysign(x)


FUNCTIONS = {"erf": erf}
