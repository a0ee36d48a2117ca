"""Python's own functions of numbers in element code, and what loops go through.

Each is a method that writes what the function computes, where its arguments are known at run time;
`BUILTINS` has them by the functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nbcomp.frontend.script.computed import is_array
from nbcomp.frontend.script.errors import FLOAT_BY_ZERO
from nbcomp.frontend.script.mathematics import Mathematics
from nbcomp.frontend.script.values import (
    NP_BOOL,
    PY_BOOL,
    PY_FLOAT,
    PY_INT,
    Either,
    NotElements,
    Scalar,
    describe,
    is_number,
    is_numeric,
    number,
    numeric,
)
from nbcomp.sizes import Size


class PythonFunctions(Mathematics):
    """Functions of numbers."""

    def call_len(self, value: Any) -> Any:
        if is_array(value):
            return value.shape[0]
        if isinstance(value, tuple | list | str | dict):
            return len(value)
        raise NotElements(f"len() of {describe(value)}")

    def call_abs(self, value: Any) -> Any:
        if not isinstance(value, Scalar):
            return abs(value)
        if value.kind.python is None:
            return self.ufunc("absolute", (value,))
        if value.kind == PY_FLOAT:
            return Scalar(PY_FLOAT, self.apply("absolute", value.expr))
        s = self.keep(self.to_int(value))
        negative = self.int_subtract(number(0), s)
        test = self.compare("less", s.expr, self.int_const(0))
        bounds = (0 if s.low < 0 else s.low, max(abs(s.low), abs(s.high)))
        return Scalar(PY_INT, self.choose(test, negative.expr, s.expr), *bounds)

    def call_min(self, *args: Any) -> Any:
        return self.extreme("less", min, args)

    def call_max(self, *args: Any) -> Any:
        return self.extreme("greater", max, args)

    def extreme(self, fn: str, python: Any, args: tuple[Any, ...]) -> Any:
        """min and max of numbers: the first of equals, as Python has it."""
        if len(args) == 1 and isinstance(args[0], tuple):
            args = args[0]
        if not any(isinstance(a, Scalar) for a in args) and all(map(is_number, args)):
            return python(args)
        if not all(map(is_numeric, args)) or not args:
            raise NotElements(f"{python.__name__}() of what are not numbers")
        best = args[0]
        for other in args[1:]:
            best = self.better(fn, best, other)
        return best

    def better(self, fn: str, a: Any, b: Any) -> Any:
        """b if b fn a else a"""
        if not isinstance(a, Scalar | Either) and not isinstance(b, Scalar | Either):
            return (min if fn == "less" else max)(a, b)
        x, y = self.keep(numeric(a)), self.keep(numeric(b))
        test = self.truth(self.compared(fn, lambda p, q: p < q, y, x))
        if not isinstance(test, Scalar):
            return y if test else x
        found = self.one_of(test.expr, y, x, ([], []))
        if isinstance(found, Scalar) and found.kind.is_int:
            pick = min if fn == "less" else max
            (one,), (other,) = x.ways, y.ways
            low, high = pick(one.low, other.low), pick(one.high, other.high)
            return Scalar(found.kind, found.expr, low, high)
        return found

    def call_int(self, value: Any = 0) -> Any:
        if not isinstance(value, Scalar):
            if not is_number(value):
                raise NotElements(f"int() of {describe(value)}")
            return value if isinstance(value, Size) else int(value)
        if value.dtype.kind == "f":
            return self.truncated(value)
        if value.dtype == np.dtype(np.uint64) and value.high >= 2**63:
            value = self.keep(value)
            self.int_fits(value, PY_INT, "a Python int beyond 64 bits")
        return self.converted(value, PY_INT)

    def call_float(self, value: Any = 0.0) -> Any:
        if isinstance(value, Scalar):
            return self.as_float(value)
        if not is_number(value):
            raise NotElements(f"float() of {describe(value)}")
        return float(value)

    def call_bool(self, value: Any = False) -> Any:
        found = self.truth(value)
        return Scalar(PY_BOOL, found.expr, 0, 1) if isinstance(found, Scalar) else found

    def call_round(self, value: Any, digits: Any = None) -> Any:
        if digits is not None or not is_number(value):
            raise NotElements("round() to digits")
        if not isinstance(value, Scalar):
            return round(value)
        if value.kind == NP_BOOL:
            raise NotElements("round() of a bool of NumPy's, which has none")
        return self.rounded("rint", value)

    def call_divmod(self, a: Any, b: Any) -> Any:
        a, b = self.frozen(a), self.frozen(b)
        if isinstance(b, Scalar) and is_number(a) and _divides_floats(number(a), b):
            self.float_nonzero(self.to_float(b), FLOAT_BY_ZERO["divmod"])
        quotient = self.binary("floor_divide", lambda x, y: x // y, a, b)
        return self.frozen(quotient), self.frozen(
            self.binary("remainder", lambda x, y: x % y, a, b)
        )

    def call_range(self, *args: Any) -> Any:
        return RangeOf(tuple(map(self.whole, args)))

    def whole(self, value: Any) -> Any:
        """A whole number, for a range."""
        if isinstance(value, Either):
            return self.each_way((value,), self.whole)
        if isinstance(value, Size):
            return value
        if not isinstance(value, Scalar):
            if type(value) is bool or not hasattr(type(value), "__index__"):
                raise NotElements(f"range() of {describe(value)}")
            return int(value)
        if not value.kind.is_int:
            raise NotElements(f"range() of {describe(value)}")
        return self.keep(self.converted(value, PY_INT))

    def call_enumerate(self, value: Any, start: Any = 0) -> Any:
        return EnumerateOf(value, start)

    def call_zip(self, *args: Any) -> Any:
        return ZipOf(args)


class RangeOf:
    """`range(...)`: one to three whole numbers."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        self.start, self.stop = (0, args[0]) if len(args) == 1 else args[:2]
        self.step = args[2] if len(args) == 3 else 1


class EnumerateOf:
    """`enumerate(value, start)`"""

    def __init__(self, value: Any, start: Any) -> None:
        self.value, self.start = value, start


class ZipOf:
    """`zip(...)`; strict: of things that are equally long."""

    def __init__(self, values: tuple[Any, ...], strict: bool = False) -> None:
        self.values, self.strict = values, strict


def _divides_floats(a: Scalar, b: Scalar) -> bool:
    """Whether both are Python's, and one a float."""
    return PY_FLOAT in (a.kind, b.kind) and bool(a.kind.python and b.kind.python)


BUILTINS: dict[Any, Callable[..., Any]] = {
    len: PythonFunctions.call_len,
    abs: PythonFunctions.call_abs,
    min: PythonFunctions.call_min,
    max: PythonFunctions.call_max,
    int: PythonFunctions.call_int,
    float: PythonFunctions.call_float,
    bool: PythonFunctions.call_bool,
    round: PythonFunctions.call_round,
    divmod: PythonFunctions.call_divmod,
    range: PythonFunctions.call_range,
    enumerate: PythonFunctions.call_enumerate,
    zip: PythonFunctions.call_zip,
}


MANY: dict[Any, tuple[int, float]] = {
    **dict.fromkeys((len, abs), (1, 1)),
    **dict.fromkeys((int, float, bool), (0, 1)),
    **dict.fromkeys((round, enumerate), (1, 2)),
    divmod: (2, 2),
    range: (1, 3),
}  # the least and most arguments that they take here
OF_LENGTHS = (range, enumerate, zip, min, max, abs, int, bool, len)  # open lengths included
OF_ANY_KIND = (range, enumerate, zip, min, max, bool)  # which know of numbers of several kinds
