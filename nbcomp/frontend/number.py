"""`Number`: a Python int or float that is read at run time.

In array arithmetic, and in sums, differences and products of floats, it stays symbolic, a weak 0-d
node. Whatever needs its value (a condition, a range, an index, whole-number arithmetic, math.exp)
gets the value, and the compiled code then holds for this value only.  Knows sessions, not arrays.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nbcomp.frontend.session import Session, attributed
from nbcomp.graph.ir import Node
from nbcomp.graph.numpy_function import NUMPY
from nbcomp.ops.operand import as_node, cast
from nbcomp.sizes import Size, hint
from nbcomp.types import FLOAT64

SYMBOLIC = {operator.add: np.add, operator.sub: np.subtract, operator.mul: np.multiply}
# What gives lengths of lengths, and what needs the number.
LENGTHS = {operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod}
LARGEST = (1 << 62) - 1  # of what is made of sizes: Python's own numbers go on
LONGEST_EXPONENT = 700.0  # e to this power is a double, and 1 by it
PYTHON = (Size, int, float)
PLAIN = {complex, hash, format, str, repr, round, math.trunc, operator.invert}


class Number:
    """Stands for a Python number.  `isinstance(n, float)` answers as for the number itself."""

    __slots__ = ("_node", "_roots", "_session", "_value")

    def __init__(
        self, session: Session, value: int | float, node: Node, roots: frozenset[Node]
    ) -> None:
        self._session, self._value, self._node, self._roots = session, value, node, roots

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int if isinstance(self._value, Size) else type(self._value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__array"):  # NumPy asks; a Python number has none
            raise AttributeError(name)
        return getattr(known(self), name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """For a list with numbers that is handed to NumPy itself: their values are assumed."""
        return np.asarray(_number_of(known(self)), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        return self._session.call(
            getattr(ufunc, method) if method != "__call__" else ufunc, args, kwargs
        )

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return self._session.call(function, args, kwargs)


def known(value: Any) -> Any:
    """The number itself, from now on assumed (a length that is open stays so); anything else
    unchanged."""
    if type(value) is not Number:
        return value
    session: Session = value._session
    session.check()
    if not isinstance(value._value, Size):
        session.assume(value._roots)
    return value._value


def length(session: Session, size: Any) -> Any:
    """A length as the program sees it: a number, or what stands for one that is open."""
    if not isinstance(size, Size):
        return size
    if abs(hint(size)) > LARGEST or not -LARGEST <= size <= LARGEST:
        return _number_of(size)
    with attributed():
        node = as_node(size)
    return Number(session, size, node, frozenset((node,)))  # type: ignore[arg-type]


def symbol(value: Any) -> Any:
    """A number's weak node, or its value if that is assumed already; anything else unchanged."""
    if type(value) is not Number:
        return value
    session: Session = value._session
    session.check()
    if value._roots <= session.known_nodes:
        return value._value
    session.use(value._roots)
    return value._node


def _combine(function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """a ∘ b, one of them a number: symbolic for float sums and products, else by value."""
    left, right = (x._value if type(x) is Number else x for x in (a, b))
    if isinstance(left, Size) or isinstance(right, Size):
        return _sized(function, a, b, left, right)
    if type(left) not in (int, float, bool) or type(right) not in (int, float, bool):
        return (
            NotImplemented if _is_array(left) or _is_array(right) else function(known(a), known(b))
        )
    floats = float in (type(left), type(right))
    if not floats or function not in SYMBOLIC or not _fits(left, right):
        return function(known(a), known(b))
    return _symbolic(function, a, b, function(left, right))


def _sized(function: Callable[[Any, Any], Any], a: Any, b: Any, left: Any, right: Any) -> Any:
    """a ∘ b, one of them a length that is open: a length again, or a float read at run time."""
    session: Session = (a if type(a) is Number else b)._session
    if _is_array(left) or _is_array(right):
        return NotImplemented
    if function is operator.truediv and type(left) in PYTHON and type(right) in PYTHON:
        return _quotient(session, a, b, left, right)
    if type(left) is float or type(right) is float:
        if function is operator.pow and _is_tame_power(left, right):
            return _power(session, a, b, left, right)
        if function in SYMBOLIC:
            values = (float(hint(v)) for v in (left, right))
            return _symbolic(function, a, b, function(*values))
        return function(_number_of(known(a)), _number_of(known(b)))
    if function in LENGTHS:
        made = function(known(a), known(b))
        if all(_is_long(v) for v in (left, right, made)):
            return length(session, made)
    return function(_number_of(known(a)), _number_of(known(b)))


def _is_long(value: Any) -> bool:
    """Whether a number is one that lengths are computed with; Python's go on without end."""
    return isinstance(value, int | Size) and bool(abs(hint(value)) <= LARGEST)


def _is_tame_power(base: Any, exponent: Any) -> bool:
    """Whether a float to an open whole power is a finite float for all values that are taken."""
    if type(base) is not float or not 0 < base < math.inf or not isinstance(exponent, Size):
        return False
    most = LARGEST if base == 1 else int(LONGEST_EXPONENT / abs(math.log(base)))
    return bool(-most <= exponent <= most)


def _power(session: Session, a: Any, b: Any, base: float, exponent: Any) -> Any:
    """A positive float, known now, to a whole power that is read at run time."""
    with attributed():
        if type(a) is Number:
            session.assume(a._roots)
        node = NUMPY[np.power].trace(float(base), cast(symbol(b), FLOAT64))
        return Number(session, base ** hint(exponent), replace(node, weak=True), b._roots)


def _quotient(session: Session, a: Any, b: Any, left: Any, right: Any) -> Any:
    """A quotient with a length in it: a float that is read at run time.  By 0 it is Python's."""
    if not right:
        return operator.truediv(_number_of(known(a)), _number_of(known(b)))
    with attributed():
        top, by = (symbol(x) if type(x) is Number else float(x) for x in (a, b))
        node = NUMPY[np.true_divide].trace(top, by)
        roots = frozenset().union(*(x._roots for x in (a, b) if type(x) is Number))
        return Number(session, hint(left) / hint(right), replace(node, weak=True), roots)


def float_of(value: Any) -> Any:
    """`float(value)`: of an int that is open, a float read at run time."""
    if type(value) is not Number or not isinstance(value._value, Size):
        return float(value)
    with attributed():
        node = cast(symbol(value), FLOAT64)
        return Number(
            value._session, float(hint(value._value)), replace(node, weak=True), value._roots
        )


def is_open_number(value: Any) -> bool:
    """Whether this is a whole number that is left open."""
    return type(value) is Number and isinstance(value._value, Size)


def _number_of(value: Any) -> Any:
    """The number itself, of a length too, which is fixed by that."""
    return operator.index(value) if isinstance(value, Size) else value


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array_ufunc__") and type(value) not in (Number, Size)


def _fits(*values: Any) -> bool:
    """Whole numbers that a double holds exactly; beyond, Python's own rules apply."""
    return all(abs(v) <= 2**53 for v in values if type(v) is int)


def _symbolic(function: Callable[..., Any], a: Any, b: Any, value: float) -> Any:
    session: Session = (a if type(a) is Number else b)._session
    with attributed():
        operands = [symbol(x) for x in (a, b)]
        if not any(isinstance(x, Node) for x in operands):
            return value
        node = NUMPY[SYMBOLIC[function]].trace(*operands)
        roots = frozenset().union(*(x._roots for x in (a, b) if type(x) is Number))
        return Number(session, value, replace(node, weak=True), roots)


def _divide(a: Any, b: Any) -> Any:
    """Division by a constant is symbolic; a divisor read at run time might be zero."""
    if (
        type(b) in (int, float)
        and b != 0
        and type(a) is Number
        and type(a._value) is float
        and _fits(b)
    ):
        with attributed():
            top = symbol(a)
            if isinstance(top, Node):
                node = NUMPY[np.true_divide].trace(top, float(b))
                return Number(a._session, a._value / b, replace(node, weak=True), a._roots)
    return _combine(operator.truediv, a, b)


def _negate(a: Any) -> Any:
    node = symbol(a)
    if type(a._value) is not float or not isinstance(node, Node):
        return length(a._session, -known(a))
    with attributed():
        negative = replace(NUMPY[np.negative].trace(node), weak=True)
        return Number(a._session, -a._value, negative, a._roots)


def _binary(name: str, function: Callable[[Any, Any], Any]) -> None:
    def forward(self: Number, other: Any, *modulus: Any) -> Any:
        if modulus:  # of `pow`
            return pow(known(self), known(other), *map(known, modulus))
        return function(self, other)

    def reflected(self: Number, other: Any) -> Any:
        return function(other, self)

    setattr(Number, f"__{name}__", forward)
    setattr(Number, f"__r{name}__", reflected)


def _by_value(name: str, function: Callable[..., Any]) -> None:
    def method(self: Number, *args: Any) -> Any:
        if any(_is_array(a) for a in args):
            return NotImplemented
        if function in PLAIN:
            return function(_number_of(known(self)), *map(known, args))
        return length(self._session, function(known(self), *map(known, args)))

    setattr(Number, f"__{name}__", method)


for _name in (
    "add",
    "sub",
    "mul",
    "floordiv",
    "mod",
    "pow",
    "and_",
    "or_",
    "xor",
    "lshift",
    "rshift",
):
    _function = getattr(operator, _name)
    _binary(_name.strip("_"), lambda a, b, f=_function: _combine(f, a, b))  # type: ignore[misc]
_binary("truediv", _divide)
_binary("divmod", lambda a, b: _combine(divmod, a, b))
setattr(Number, "__neg__", _negate)  # noqa: B010
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "pos", "abs", "invert", "index"):
    _by_value(_name, getattr(operator, _name))
_CONVERSIONS: dict[str, Callable[..., Any]] = {
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "hash": hash,
    "round": round,
    "trunc": math.trunc,
    "floor": math.floor,
    "ceil": math.ceil,
    "format": format,
    "str": str,
    "repr": repr,
}
for _name, _conversion in _CONVERSIONS.items():
    _by_value(_name, _conversion)
