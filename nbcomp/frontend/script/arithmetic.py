"""Arithmetic on numbers known at run time, with Python's meaning for Python's numbers and NumPy's
for NumPy scalars.

Python ints are 64-bit integers whose results are checked wherever their bounds do not already show
that they fit; what leaves 64 bits, or would raise, ends the kernel.  Knows numbers, not syntax.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from functools import partial, reduce
from itertools import product
from typing import Any

import numpy as np

from nbcomp.frontend.script.errors import (
    FLOAT_BY_ZERO,
    INT_BY_ZERO,
    TOO_LARGE_POWER,
    ZERO_TO_NEGATIVE,
    Words,
)
from nbcomp.frontend.script.rounding import Rounding
from nbcomp.frontend.script.values import (
    EXACT,
    NONE,
    NP_BOOL,
    PY_BOOL,
    PY_FLOAT,
    PY_INT,
    Either,
    Kind,
    NotElements,
    Number,
    Scalar,
    Way,
    carrier,
    describe,
    is_number,
    is_numeric,
    number,
    numeric,
    union,
)
from nbcomp.loop.grammar import Apply, Const, Expr, const
from nbcomp.sizes import Size
from nbcomp.types import BOOL, FLOAT64

Operator = Callable[[Any, Any], Any]
BINARY: dict[type[ast.operator], tuple[Operator, str]] = {
    ast.Add: (operator.add, "add"),
    ast.Sub: (operator.sub, "subtract"),
    ast.Mult: (operator.mul, "multiply"),
    ast.Div: (operator.truediv, "divide"),
    ast.FloorDiv: (operator.floordiv, "floor_divide"),
    ast.Mod: (operator.mod, "remainder"),
    ast.Pow: (operator.pow, "power"),
    ast.BitAnd: (operator.and_, "bitwise_and"),
    ast.BitOr: (operator.or_, "bitwise_or"),
    ast.BitXor: (operator.xor, "bitwise_xor"),
    ast.LShift: (operator.lshift, "left_shift"),
    ast.RShift: (operator.rshift, "right_shift"),
}
COMPARE: dict[type[ast.cmpop], tuple[Operator, str]] = {
    ast.Lt: (operator.lt, "less"),
    ast.LtE: (operator.le, "less_equal"),
    ast.Gt: (operator.gt, "greater"),
    ast.GtE: (operator.ge, "greater_equal"),
    ast.Eq: (operator.eq, "equal"),
    ast.NotEq: (operator.ne, "not_equal"),
}
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")


class Arithmetic(Rounding):
    """Operators on scalars."""

    def binary(self, fn: str, python: Operator, a: Any, b: Any) -> Any:
        """`a ∘ b`; known numbers are computed now, as Python does."""
        if isinstance(a, Either) or isinstance(b, Either):
            return self.each_way((a, b), partial(self.binary, fn, python))
        if (isinstance(a, Size) or isinstance(b, Size)) and not _of_sizes(fn, a, b):
            a, b = number(a), number(b)
        if not isinstance(a, Scalar) and not isinstance(b, Scalar):
            return python(a, b)
        if not (is_number(a) and is_number(b)):
            raise NotElements(f"{describe(a)} and {describe(b)} are not both numbers")
        x, y = number(a), number(b)
        if x.kind.python is None or y.kind.python is None:
            return self.numpy_binary(fn, a, b)
        return self.python_binary(fn, x, y)

    # ------------------------------------------------------------------------- Python numbers

    def python_binary(self, fn: str, a: Scalar, b: Scalar) -> Scalar:
        """Both are Python numbers."""
        if fn in BITS and a.kind == b.kind == PY_BOOL:
            return Scalar(PY_BOOL, self.apply(fn, a.expr, b.expr), 0, 1)
        if PY_FLOAT in (a.kind, b.kind):
            return self.python_float(fn, self.to_float(a), self.to_float(b))
        a, b = self.to_int(a), self.to_int(b)
        if fn == "divide":
            x, y = self.to_float(a), self.to_float(self.nonzero(b, INT_BY_ZERO[fn]))
            return Scalar(PY_FLOAT, self.apply(fn, x.expr, y.expr))
        method: Callable[[Scalar, Scalar], Scalar] | None = getattr(self, f"int_{fn}", None)
        if method is None:
            raise NotElements(f"{fn} of ints is not compiled")
        return method(a, b)

    def to_float(self, s: Scalar) -> Scalar:
        """A Python number as a float: as exact as Python's own conversion."""
        if s.kind == PY_FLOAT:
            return s
        s = self.to_int(s)
        if s.low < -EXACT or s.high > EXACT:
            # Python divides whole numbers exactly and compares them with floats exactly.
            s = self.keep(s)
            self.out_of_range(s, -EXACT, EXACT, "a whole number beyond 2**53 meets a float")
        return Scalar(PY_FLOAT, self.cast(s.expr, PY_FLOAT))

    def out_of_range(self, s: Scalar, low: int, high: int, why: str) -> None:
        """End the kernel if a whole number is not within low..high."""
        if s.low < low:
            self.fail_if(self.compare("less", s.expr, self.int_const(low)), "OverflowError", why)
        if s.high > high:
            bad = self.compare("greater", s.expr, self.int_const(high))
            self.fail_if(bad, "OverflowError", why)

    def python_float(self, fn: str, a: Scalar, b: Scalar) -> Scalar:
        """Float arithmetic: as NumPy's, but dividing by zero raises."""
        if fn in FLOAT_BY_ZERO:
            b = self.float_nonzero(b, FLOAT_BY_ZERO[fn])
        elif fn == "power":
            return self.float_power(a, b)
        elif fn not in ("add", "subtract", "multiply"):
            raise NotElements(f"{fn} is not defined for floats")
        return Scalar(PY_FLOAT, self.apply(fn, a.expr, b.expr))

    def float_nonzero(self, b: Scalar, error: Words) -> Scalar:
        """A divisor, which is not zero from here on."""
        if not (isinstance(b.expr, Const) and b.expr.value != 0):
            b = self.keep(b)
            self.fail_if(self.compare("equal", b.expr, const(0.0, FLOAT64)), *error)
        return b

    def float_power(self, a: Scalar, b: Scalar) -> Scalar:
        """`a ** b`: what overflows, or divides by zero, ends the kernel; what is complex is left
        to Python, which may well go on with it."""
        a, b = self.keep(a), self.keep(b)
        if isinstance(b.expr, Const) and b.expr.value == 2:
            result = self.keep(Scalar(PY_FLOAT, self.apply("multiply", a.expr, a.expr)))
        else:
            self.fail_where(self.zero_to_negative(a.expr, b.expr), *ZERO_TO_NEGATIVE)
            with self.uncertain():
                self.fail_where(self.complex_power(a.expr, b.expr), "TypeError", "a complex number")
            result = self.keep(Scalar(PY_FLOAT, self.apply("power", a.expr, b.expr)))
        self.needs_finite(result, (a, b), TOO_LARGE_POWER)
        return result

    def zero_to_negative(self, x: Expr, y: Expr) -> Expr:
        """Whether x ** y is a zero to a finite negative power."""
        return self.all_of(
            self.compare("equal", x, const(0.0, FLOAT64)),
            self.compare("less", y, const(0.0, FLOAT64)),
            self.compare("greater", y, const(-math.inf, FLOAT64)),
        )

    def complex_power(self, x: Expr, y: Expr) -> Expr:
        """Whether x ** y is a negative finite number to a finite power that is not whole."""
        return self.all_of(
            self.compare("less", x, const(0.0, FLOAT64)),
            self.compare("greater", x, const(-math.inf, FLOAT64)),
            self.apply("isfinite", y, dtype=BOOL),
            self.compare("not_equal", self.apply("trunc", y), y),
        )

    def needs_finite(self, result: Scalar, args: tuple[Scalar, ...], error: Words) -> None:
        """Python's functions of floats raise where finite arguments give no finite result."""
        bad = self.apply("logical_not", self.finite(result), dtype=BOOL)
        self.fail_if(self.all_of(bad, *(self.finite(a) for a in args)), *error)

    def fail_where(self, bad: Expr, kind: str, message: str) -> None:
        """End the kernel if a condition holds that may be known not to."""
        if not isinstance(bad, Const) or bad.value:
            self.fail_if(bad, kind, message)

    def all_of(self, *tests: Expr) -> Expr:
        """Whether all conditions hold; those on constants are known now."""
        rest = [t for t in map(_folded, tests) if not (isinstance(t, Const) and t.value)]
        if any(isinstance(t, Const) for t in rest):
            return const(False, BOOL)
        return reduce(self.and_also, rest) if rest else const(True, BOOL)

    def and_also(self, a: Expr, b: Expr) -> Expr:
        """Whether two conditions hold."""
        return self.apply("logical_and", a, b, dtype=BOOL)

    def any_of(self, a: Expr, b: Expr) -> Expr:
        """Whether one of two conditions holds."""
        known = [t for t in (a, b) if isinstance(t, Const)]
        if not known:
            return self.apply("logical_or", a, b, dtype=BOOL)
        return known[0] if known[0].value else b if known[0] is a else a

    def finite(self, s: Scalar) -> Expr:
        """Whether a float is finite."""
        return self.apply("isfinite", s.expr, dtype=BOOL)

    # -------------------------------------------------------------------------- NumPy scalars

    def numpy_binary(self, fn: str, a: Any, b: Any) -> Scalar:
        """At least one is a NumPy scalar: NumPy's ufunc decides the dtypes."""
        if fn == "power" and not isinstance(b, Scalar) and b == 2 and number(a).dtype.kind == "f":
            x = self.keep(number(a))
            return self.ufunc("multiply", (x, x))
        if (
            fn in ("left_shift", "right_shift", "power", *BITS)
            or fn in FLOAT_BY_ZERO
            or fn in _PLAIN
        ):
            return self.ufunc(fn, (a, b))
        raise NotElements(f"{fn} is not compiled")

    def ufunc(self, fn: str, args: tuple[Any, ...]) -> Scalar:
        """A NumPy function of numbers, in the dtypes NumPy computes it with."""
        function: np.ufunc = getattr(np, fn)
        scalars = tuple(map(number, args))
        compares = fn in _COMPARISONS
        wanted = [self.weak_dtype(s, args, compares) for s in scalars]
        *ins, out = _loop_of(function, wanted)
        if any(d.kind not in "biuf" for d in (*ins, out)):
            raise NotElements(f"np.{fn} gives {out}, which is not compiled")
        exprs = [self.converted(s, Kind(d)).expr for s, d in zip(scalars, ins, strict=True)]
        if fn == "power" and out.kind in "iu":
            self.no_negative_power(scalars[1])
        result = Kind(out)
        low, high = result.bounds()
        if fn in _EXACT and result.is_int:
            low, high = _clip(_EXACT[fn](scalars[0], scalars[1]), low, high)
        return Scalar(result, self.apply(fn, *exprs, dtype=out), low, high)

    def weak_dtype(self, s: Scalar, args: tuple[Any, ...], compares: bool) -> Any:
        """What NumPy's promotion sees of an argument; comparing takes whole numbers as they are."""
        others = (number(a).ways[0] for a in args if compares)
        seen = (_in_comparison(s.ways[0], other) for other in others)
        return next((dtype for dtype in seen if dtype is not s.kind.weak), s.kind.weak)

    def no_negative_power(self, exponent: Scalar) -> None:
        if exponent.low < 0:
            exponent = self.keep(exponent)
            bad = self.compare("less", exponent.expr, const(0, exponent.dtype))
            self.fail_if(bad, "ValueError", "Integers to negative integer powers are not allowed.")

    def converted(self, s: Scalar, kind: Kind) -> Scalar:
        """A number in the dtype of NumPy's loop; Python ints that do not fit raise."""
        if s.dtype == kind.dtype:
            return Scalar(kind, s.expr, s.low, s.high)
        low, high = kind.bounds()
        if s.kind == PY_INT and kind.is_int and (s.low < low or s.high > high):
            s = self.keep(s)
            message = f"Python integer {{0}} out of bounds for {kind.dtype.name}"
            self.int_fits(s, kind, message)
            return Scalar(kind, self.cast(s.expr, kind), max(low, s.low), min(high, s.high))
        inside = s.low >= low and s.high <= high
        bounds = (s.low, s.high) if s.dtype.kind in "biu" and inside else (low, high)
        return Scalar(kind, self.cast(s.expr, kind), *bounds)

    def int_fits(self, s: Scalar, kind: Kind, message: str) -> None:
        """End the kernel if a whole number is not one of this kind."""
        low, high = kind.bounds()
        own_low, own_high = s.kind.bounds()
        if s.low < low:
            bad = self.compare("less", s.expr, const(max(low, own_low), s.dtype))
            self.fail_if(bad, "OverflowError", message, self.cast(s.expr, PY_INT))
        if s.high > high:
            bad = self.compare("greater", s.expr, const(min(high, own_high), s.dtype))
            self.fail_if(bad, "OverflowError", message, self.cast(s.expr, PY_INT))

    # ------------------------------------------------------------------- comparisons and truth

    def compared(self, fn: str, python: Operator, a: Any, b: Any) -> Any:
        """`a < b` and the like."""
        if isinstance(a, Either) or isinstance(b, Either):
            return self.compared_each_way(fn, python, a, b)
        if any(isinstance(x, Size) for x in (a, b)) and not _lengths(a, b):
            a, b = (number(x) if isinstance(x, Size) else x for x in (a, b))
        if not isinstance(a, Scalar) and not isinstance(b, Scalar):
            return python(a, b)
        if not (is_number(a) and is_number(b)):
            if fn in ("equal", "not_equal") and (a is None or b is None):
                return fn == "not_equal"
            raise NotElements(f"{describe(a)} and {describe(b)} are not both numbers")
        x, y = number(a), number(b)
        if x.kind.python is None or y.kind.python is None:
            return Scalar(NP_BOOL, self.ufunc(fn, (a, b)).expr, 0, 1)
        if PY_FLOAT in (x.kind, y.kind):
            x, y = self.to_float(x), self.to_float(y)
        else:
            x, y = self.to_int(x), self.to_int(y)
            if (found := _decided(fn, x, y)) is not None:
                return found
        return Scalar(PY_BOOL, self.compare(fn, x.expr, y.expr), 0, 1)

    def compared_each_way(self, fn: str, python: Operator, a: Any, b: Any) -> Any:
        """A comparison of numbers of several kinds: of their values, where that is the same."""
        if is_numeric(a) and is_numeric(b):
            a, b = self.keep(numeric(a)), self.keep(numeric(b))
            if (expr := self.compared_exactly(fn, a, b)) is not None:
                return self.each_way((a, b), partial(_truth, expr))
        return self.each_way((a, b), partial(self.compared, fn, python))

    def compared_exactly(self, fn: str, a: Number, b: Number) -> Expr | None:
        """A comparison of numbers of several kinds as one of their values; None where NumPy would
        round some of them first."""
        dtype = carrier(union(a.ways, b.ways))
        ways = *a.ways, *b.ways
        if not all(way.fits(dtype) and way.kind != NONE for way in ways):
            return None
        for x, y in product(a.ways, b.ways):
            if x.kind.python is None or y.kind.python is None:
                *ins, _ = _loop_of(getattr(np, fn), [_in_comparison(x, y), _in_comparison(y, x)])
                if not (x.fits(ins[0]) and y.fits(ins[1])):
                    return None
        return self.compare(fn, self.held(a, dtype), self.held(b, dtype))

    def truth(self, value: Any) -> Any:
        """Whether a number is true: known now, or a bool at run time."""
        if isinstance(value, Either):  # whichever it is
            value = Scalar(Kind(value.expr.dtype), value.expr)
        if not isinstance(value, Scalar):
            if is_number(value) or value is None or isinstance(value, str | tuple | list):
                return bool(value)
            raise NotElements(f"whether {describe(value)} is true")
        if value.dtype == BOOL:
            return value
        zero = const(0, value.dtype)
        return Scalar(PY_BOOL, self.compare("not_equal", value.expr, zero), 0, 1)

    def negated(self, value: Any) -> Any:
        """`not value`"""
        value = self.truth(value)
        if not isinstance(value, Scalar):
            return not value
        return Scalar(PY_BOOL, self.apply("logical_not", value.expr, dtype=BOOL), 0, 1)

    def unary(self, op: ast.unaryop, value: Any) -> Any:
        """`-x`, `+x`, `~x`, `not x`"""
        if isinstance(op, ast.Not):
            return self.negated(value)
        if isinstance(value, Either):
            return self.each_way((value,), partial(self.unary, op))
        if isinstance(value, Size) and isinstance(op, ast.Invert):
            value = number(value)
        if not isinstance(value, Scalar):
            python: dict[type[ast.unaryop], Callable[[Any], Any]] = {
                ast.USub: operator.neg,
                ast.UAdd: operator.pos,
                ast.Invert: operator.invert,
            }
            if not is_number(value):
                raise NotElements(f"{describe(value)} is no number")
            return python[type(op)](value)
        return self.unary_scalar(op, value)

    def unary_scalar(self, op: ast.unaryop, s: Scalar) -> Any:
        if s.kind.python is None:
            names = {ast.USub: "negative", ast.UAdd: "positive", ast.Invert: "invert"}
            return self.ufunc(names[type(op)], (s,))
        if s.kind == PY_FLOAT:
            if isinstance(op, ast.Invert):
                raise NotElements("~ is not defined for floats")
            return (
                Scalar(PY_FLOAT, self.apply("negative", s.expr)) if isinstance(op, ast.USub) else s
            )
        s = self.to_int(s)
        if isinstance(op, ast.USub):
            return self.int_subtract(number(0), s)
        if isinstance(op, ast.Invert):
            return Scalar(PY_INT, self.apply("invert", s.expr), ~s.high, ~s.low)
        return s


def updating(python: Operator) -> Operator:
    """What `op=` does to things that do not change: the operator, which raises other words."""
    in_place: Operator = getattr(operator, f"i{python.__name__.rstrip('_')}")

    def update(a: Any, b: Any) -> Any:
        fixed = a is None or isinstance(a, str | tuple) or is_number(a)
        return in_place(a, b) if fixed else python(a, b)

    return update


def _folded(test: Expr) -> Expr:
    """A condition; of constants, as it is known now."""
    if not isinstance(test, Apply):
        return test
    args = [_folded(a) for a in test.args]
    values = [a.value for a in args if isinstance(a, Const)]
    known = len(values) == len(args)
    return const(getattr(np, test.fn)(*values), test.dtype) if known else test


def _lengths(*values: Any) -> bool:
    """Whether these are lengths, open or not."""
    return all(isinstance(x, Size) or type(x) is int for x in values)


def _of_sizes(fn: str, a: Any, b: Any) -> bool:
    """Whether an operation on lengths, some of which are open, gives another one."""
    divides = fn in ("floor_divide", "remainder")
    return _lengths(a, b) and (fn in _PLAIN or (divides and b > 0))


def _in_comparison(way: Way, other: Way) -> Any:
    """What NumPy's promotion sees of a number that is compared: whole numbers as they are."""
    if way.kind == PY_INT and other.kind.python is None and other.kind.is_int:
        low, high = other.kind.bounds()
        if not (low <= way.low and way.high <= high):
            return way.kind.dtype
    return way.kind.weak


def _truth(expr: Expr, a: Any, b: Any) -> Scalar:
    """What a comparison gives: Python's bool or NumPy's."""
    plain = number(a).kind.python and number(b).kind.python
    return Scalar(PY_BOOL if plain else NP_BOOL, expr, 0, 1)


def _loop_of(function: np.ufunc, wanted: list[Any]) -> tuple[Any, ...]:
    """The dtypes that NumPy computes a function of these in, and gives."""
    try:
        return function.resolve_dtypes((*wanted, None))
    except TypeError as error:
        raise NotElements(str(error)) from None


_PLAIN = ("add", "subtract", "multiply")
_COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")


def _sum(a: Scalar, b: Scalar) -> tuple[int, int]:
    return a.low + b.low, a.high + b.high


def _difference(a: Scalar, b: Scalar) -> tuple[int, int]:
    return a.low - b.high, a.high - b.low


def _maximum(a: Scalar, b: Scalar) -> tuple[int, int]:
    return max(a.low, b.low), max(a.high, b.high)


def _minimum(a: Scalar, b: Scalar) -> tuple[int, int]:
    return min(a.low, b.low), min(a.high, b.high)


_EXACT = {"add": _sum, "subtract": _difference, "maximum": _maximum, "minimum": _minimum}


def _clip(found: tuple[int, int], low: int, high: int) -> tuple[int, int]:
    """Bounds of a result that wraps when it leaves its dtype."""
    return found if found[0] >= low and found[1] <= high else (low, high)


def _decided(fn: str, a: Scalar, b: Scalar) -> bool | None:
    """What a comparison of whole numbers gives whatever they are, by their bounds."""
    if fn in ("greater", "greater_equal"):
        return _decided({"greater": "less", "greater_equal": "less_equal"}[fn], b, a)
    if fn == "less":
        return True if a.high < b.low else False if a.low >= b.high else None
    if fn == "less_equal":
        return True if a.high <= b.low else False if a.low > b.high else None
    if a.high < b.low or a.low > b.high:
        return fn == "not_equal"
    return None
