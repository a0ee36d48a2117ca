"""Comparisons, truth functions and bits: one small class per NumPy ufunc."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nbcomp.graph.ir import Node
from nbcomp.loop.grammar import Apply, Expr
from nbcomp.ops.operand import (
    NUMBERS,
    as_node,
    broadcast_to,
    cast,
    constant,
    convert,
    weak_type,
)
from nbcomp.ops.ufunc import Ufunc, call, like, test
from nbcomp.types import BOOL, DType


@dataclass(frozen=True)
class Comparison(Ufunc):
    """A comparison; exact between signed and unsigned integers of any size."""

    def element(self, dtype: DType, *args: Expr) -> Expr:
        x, y = args
        name = self.fn.__name__
        if x.dtype == y.dtype:
            return super().element(dtype, x, y)
        # NumPy has loops for int64 with uint64: a negative number is below every unsigned one.
        signed, other = (x, y) if x.dtype.kind == "i" else (y, x)
        below = test("less", signed, like(0, signed))
        rest = test(name, convert(x, other.dtype), convert(y, other.dtype))
        answer = self.when_less() if signed is x else self.when_greater()
        return call("logical_or", below, rest) if answer else _and_not(rest, below)

    @classmethod
    def trace(cls, *args: Any, **options: Any) -> Node:
        if len(args) == 2 and not options:
            known = cls._known(*args)
            if known is not None:
                return known
            args = tuple(map(_exact, args, reversed(args)))
        return super().trace(*args, **options)

    @classmethod
    def _known(cls, x: Any, y: Any) -> Node | None:
        """The answer against a Python int that the other side's dtype cannot hold: NumPy 2 compares
        by value.
        """
        number, other = (y, x) if type(y) is int else (x, y)
        if type(number) is not int or type(other) in NUMBERS:
            return None
        node = as_node(other)
        dtype = node.type.dtype
        if weak_type(node) or dtype.kind not in "iu" or fits(number, dtype):
            return None
        swapped = number is x and number is not y
        above = (number > 0) != swapped  # is the right-hand side the larger one
        return broadcast_to(constant(cls.when_less() if above else cls.when_greater()), node.shape)

    @classmethod
    def when_less(cls) -> bool:
        """The answer for x < y."""
        return bool(cls.fn(0, 1))

    @classmethod
    def when_greater(cls) -> bool:
        """The answer for x > y."""
        return bool(cls.fn(1, 0))


def _and_not(x: Expr, y: Expr) -> Expr:
    return call("logical_and", x, call("logical_not", y))


def fits(value: int, dtype: DType) -> bool:
    """Whether an integer dtype can hold a Python int."""
    whole: Any = dtype
    info = np.iinfo(whole)
    return int(info.min) <= value <= int(info.max)


def _exact(value: Any, other: Any) -> Any:
    """A Python int read at run time, against integers: compared as int64, which loses nothing."""
    if isinstance(value, Node) and weak_type(value) is int and not isinstance(other, int | float):
        against = as_node(other)
        if weak_type(against) is None and against.type.dtype.kind in "iu":
            return cast(value, value.type.dtype)
    return value


class Equal(Comparison, name="equal", numpy=(np.equal,)):
    """x == y"""


class NotEqual(Comparison, name="not_equal", numpy=(np.not_equal,)):
    """x != y"""

    on_bool = "logical_xor"


class Less(Comparison, name="less", numpy=(np.less,)):
    """x < y"""


class LessEqual(Comparison, name="less_equal", numpy=(np.less_equal,)):
    """x <= y"""


class Greater(Comparison, name="greater", numpy=(np.greater,)):
    """x > y"""


class GreaterEqual(Comparison, name="greater_equal", numpy=(np.greater_equal,)):
    """x >= y"""


@dataclass(frozen=True)
class Logical(Ufunc):
    """A truth function; operands of any dtype count as true when they are not zero."""

    def element(self, dtype: DType, *args: Expr) -> Expr:
        return Apply(dtype, self.fn.__name__, tuple(convert(a, BOOL) for a in args))


class LogicalAnd(Logical, name="logical_and", numpy=(np.logical_and,)):
    """x and y"""


class LogicalOr(Logical, name="logical_or", numpy=(np.logical_or,)):
    """x or y"""


class LogicalXor(Logical, name="logical_xor", numpy=(np.logical_xor,)):
    """One of x and y, not both"""


class LogicalNot(Logical, name="logical_not", numpy=(np.logical_not,)):
    """not x"""


class BitwiseAnd(Ufunc, name="bitwise_and", numpy=(np.bitwise_and,)):
    """x & y"""

    on_bool = "logical_and"


class BitwiseOr(Ufunc, name="bitwise_or", numpy=(np.bitwise_or,)):
    """x | y"""

    on_bool = "logical_or"


class BitwiseXor(Ufunc, name="bitwise_xor", numpy=(np.bitwise_xor,)):
    """x ^ y"""

    on_bool = "logical_xor"


class Invert(Ufunc, name="invert", numpy=(np.invert,)):
    """~x"""

    on_bool = "logical_not"


class LeftShift(Ufunc, name="left_shift", numpy=(np.left_shift,)):
    """x << y; 0 when y is negative or not less than the width"""


class RightShift(Ufunc, name="right_shift", numpy=(np.right_shift,)):
    """x >> y; the sign alone when y is negative or not less than the width"""


class BitwiseCount(Ufunc, name="bitwise_count", numpy=(np.bitwise_count,)):
    """The number of ones in |x|"""

    cost = 4
