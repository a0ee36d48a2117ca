"""Functions of `math` in element code: NumPy's values where they have one, and Python's exceptions
where they have none.

A function's domain is a condition on its arguments, or on its result, that is true where Python
raises; NaN and infinity are arguments like others.  Knows numbers, not calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

from nbcomp.frontend.script.errors import TOO_LARGE, words
from nbcomp.frontend.script.expressions import Expressions
from nbcomp.frontend.script.values import PY_BOOL, PY_FLOAT, PY_INT, NotElements, Scalar, number
from nbcomp.loop.grammar import Expr, const
from nbcomp.types import BOOL, FLOAT64

MATH: dict[Any, str] = {
    **{
        f: str(f.__name__)
        for f in (math.sqrt, math.exp, math.log, math.log2, math.log10, math.log1p)
    },
    **{f: f.__name__ for f in (math.sin, math.cos, math.tan, math.sinh, math.cosh, math.tanh)},
    math.expm1: "expm1",
    math.fabs: "absolute",
    math.asin: "arcsin",
    math.acos: "arccos",
    math.atan: "arctan",
    math.atan2: "arctan2",
    math.hypot: "hypot",
    math.pow: "power",
    math.copysign: "copysign",
    math.degrees: "rad2deg",
    math.radians: "deg2rad",
    math.fmod: "fmod",
}
ROUNDING: dict[Any, str] = {math.floor: "floor", math.ceil: "ceil", math.trunc: "trunc"}
TESTS: dict[Any, str] = {math.isnan: "isnan", math.isinf: "isinf", math.isfinite: "isfinite"}


class Mathematics(Expressions):
    """Values of functions of `math`."""

    def math_function(self, function: Any, args: list[Any]) -> Any:
        """A call; `NotImplemented` for functions that are none of these."""
        if function not in MATH and function not in ROUNDING and function not in TESTS:
            return NotImplemented
        if not any(isinstance(a, Scalar) for a in args):
            return function(*args)
        if function is math.log and len(args) == 2:
            over, below = (self.math_function(math.log, [a]) for a in args)
            return self.python_float("divide", self.as_float(over), self.as_float(below))
        if function is math.hypot:
            return reduce(self.hypot, map(self.as_float, args), number(0.0))
        if len(args) != (2 if function in _OF_TWO else 1):
            raise NotElements(f"math.{function.__name__}() of {len(args)} arguments")
        if function in MATH:
            return self.math(function, [self.as_float(a) for a in args])
        if function in ROUNDING:
            return self.rounded(ROUNDING[function], args[0])
        s = self.as_float(args[0])
        return Scalar(PY_BOOL, self.apply(TESTS[function], s.expr, dtype=BOOL), 0, 1)

    def as_float(self, value: Any) -> Scalar:
        """A number as Python's float."""
        s = number(value)
        if s.kind.python is None:
            return Scalar(PY_FLOAT, self.cast(s.expr, PY_FLOAT))
        return self.to_float(s)

    def hypot(self, a: Scalar, b: Scalar) -> Scalar:
        """√(a² + b²), which raises nothing."""
        return Scalar(PY_FLOAT, self.apply("hypot", a.expr, b.expr))

    def math(self, function: Any, args: list[Scalar]) -> Scalar:
        """A function of floats, which ends the kernel where Python raises."""
        exprs = [self.keep(a).expr for a in args]
        domain = _DOMAINS.get(function)
        if domain is not None:
            outside, example = domain
            self.fail_where(outside(self, *exprs), *words(function, *example))
        result = Scalar(PY_FLOAT, self.apply(MATH[function], *exprs))
        if function in _LARGE:
            result = self.keep(result)
            self.needs_finite(result, tuple(Scalar(PY_FLOAT, e) for e in exprs), TOO_LARGE)
        return result

    def rounded(self, fn: str, value: Any) -> Any:
        """`math.floor(x)` and the like: an int."""
        s = number(value)
        whole = s.dtype.kind in "iub"
        if whole and s.kind.python:
            return self.to_int(s)
        if whole and s.ways[0].fits(FLOAT64):  # NumPy's are rounded as floats
            return self.converted(s, PY_INT)
        return self.truncated(Scalar(PY_FLOAT, self.apply(fn, self.as_float(s).expr)))

    # ---------------------------------------------------------------------------------- domains

    def is_infinite(self, x: Expr) -> Expr:
        """Whether a float is infinite."""
        return self.apply("isinf", x, dtype=BOOL)

    def is_number(self, x: Expr) -> Expr:
        """Whether a float is not NaN."""
        return self.compare("equal", x, x)

    def no_remainder(self, x: Expr, y: Expr) -> Expr:
        """Where `math.fmod(x, y)` has no value: x is infinite or y is zero, and none is NaN."""
        zero = self.all_of(self.compare("equal", y, const(0.0, FLOAT64)), self.is_number(x))
        return self.any_of(zero, self.all_of(self.is_infinite(x), self.is_number(y)))

    def no_power(self, x: Expr, y: Expr) -> Expr:
        """Where `math.pow(x, y)` has no value: a zero to a finite negative power, or a negative
        finite number to a finite one that is not whole."""
        return self.any_of(self.zero_to_negative(x, y), self.complex_power(x, y))


def _compared(fn: str, limit: float) -> Callable[..., Expr]:
    """The domain that ends at a number."""
    return lambda self, x: self.compare(fn, x, const(limit, FLOAT64))


def _beyond_one(self: Mathematics, x: Expr) -> Expr:
    size = self.apply("absolute", x)
    return self.compare("greater", size, const(1.0, FLOAT64))


_POSITIVE = _compared("less_equal", 0.0)
# By function: where Python raises ValueError, and arguments for which it does.
_DOMAINS: dict[Any, tuple[Callable[..., Expr], tuple[float, ...]]] = {
    math.sqrt: (_compared("less", 0.0), (-1.0,)),
    **{f: (_POSITIVE, (0.0,)) for f in (math.log, math.log2, math.log10)},
    math.log1p: (_compared("less_equal", -1.0), (-1.0,)),
    **{f: (Mathematics.is_infinite, (math.inf,)) for f in (math.sin, math.cos, math.tan)},
    **{f: (_beyond_one, (2.0,)) for f in (math.asin, math.acos)},
    math.fmod: (Mathematics.no_remainder, (1.0, 0.0)),
    math.pow: (Mathematics.no_power, (0.0, -1.0)),
}
_LARGE = (math.exp, math.expm1, math.sinh, math.cosh, math.pow)  # which may overflow
_OF_TWO = (math.atan2, math.copysign, math.fmod, math.pow)
