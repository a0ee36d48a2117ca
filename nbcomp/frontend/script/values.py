"""What variables hold in loops over elements: numbers known at run time, and parts of arrays.

A `Scalar` is an expression of the loop IR with the kind of number it is in Python (`int`, `float`,
`bool`, or a NumPy scalar) and, for whole numbers, bounds.  Everything that is known while compiling
is itself: a Python object.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nbcomp.frontend.script.source import Source
from nbcomp.loop.grammar import Affine, Buffer, Const, Expr, affine, const
from nbcomp.types import BOOL, FLOAT64, INT64, DType

INT_LOW, INT_HIGH = -(2**63), 2**63 - 1
EXACT = 2**53  # whole numbers up to here are doubles


class NotElements(Exception):
    """This cannot be part of a loop over elements: why, and where.  Someone else may take it on."""

    def __init__(self, reason: str, node: ast.AST | None = None, hint: str = "") -> None:
        super().__init__(reason)
        self.reason, self.node, self.hint = reason, node, hint


class Raises(Exception):
    """This raises whenever it is run: the exception."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True)
class Kind:
    """What kind of number: a NumPy dtype, and the Python type if it is a Python number.

    mixed: it is a Python number on some ways, and a NumPy scalar on others.
    """

    dtype: DType
    python: type | None = None
    mixed: bool = False

    def __str__(self) -> str:
        return (
            self.python.__name__
            if self.python
            else f"np.{self.dtype.name.replace('bool', 'bool_')}"
        )

    @property
    def is_int(self) -> bool:
        """Whether it is a whole number (bool is not)."""
        return self.dtype.kind in "iu"

    @property
    def as_python(self) -> Kind | None:
        """The Python number it may be, if it may."""
        if self.python or not self.mixed:
            return self if self.python else None
        return {BOOL: PY_BOOL, INT64: PY_INT, FLOAT64: PY_FLOAT}.get(self.dtype)

    @property
    def weak(self) -> type | DType:
        """How NumPy's promotion sees it: Python numbers give way."""
        return self.python if self.python in (int, float) else self.dtype

    def bounds(self) -> tuple[int, int]:
        """All whole numbers of this kind."""
        if self.is_int:
            limits = np.iinfo(self.dtype.str)
            return int(limits.min), int(limits.max)
        return (0, 1) if self.dtype == BOOL else (INT_LOW, INT_HIGH)


PY_INT, PY_FLOAT, PY_BOOL = Kind(INT64, int), Kind(FLOAT64, float), Kind(BOOL, bool)
NP_BOOL = Kind(BOOL)
PYTHON = {int: PY_INT, float: PY_FLOAT, bool: PY_BOOL}


@dataclass(frozen=True, eq=False)
class Scalar:
    """A number known at run time.  low, high: bounds, if it is a whole number."""

    kind: Kind
    expr: Expr
    low: int = INT_LOW
    high: int = INT_HIGH

    @property
    def dtype(self) -> DType:
        """Its dtype in the loop IR."""
        return self.kind.dtype


@dataclass(frozen=True, eq=False)
class Local:
    """A variable that holds a number at run time: its memory, and what is known of its value."""

    kind: Kind
    buffer: Buffer
    low: int = INT_LOW
    high: int = INT_HIGH


@dataclass(frozen=True, eq=False)
class Maybe:
    """A variable that is not assigned on every way here."""

    value: Any


@dataclass(frozen=True, eq=False)
class Torn:
    """A variable that holds things of different types on the ways here: which."""

    one: str
    other: str


@dataclass(frozen=True, eq=False)
class Axis:
    """One axis of a part of an array: index k is element `step`·k + the part's own start."""

    position: int  # of the array's axis
    step: int
    extent: int


@dataclass(eq=False)
class Memory:
    """An array the loops work on.

    origin: the tracer it came as; None until they are done for one that is made for them.
    written: whether they change it.
    """

    buffer: Buffer
    name: str
    origin: Any = None
    written: bool = False


@dataclass(frozen=True, eq=False)
class View:
    """A part of an array: an index per axis of the array, and the axes the part has."""

    memory: Memory
    start: tuple[Expr, ...]
    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return tuple(a.extent for a in self.axes)

    @property
    def whole(self) -> bool:
        """Whether it is all of the array."""
        return all(a.position == k and a.step == 1 for k, a in enumerate(self.axes)) and len(
            self.axes
        ) == len(self.start)


@dataclass(frozen=True, eq=False)
class LocalFunction:
    """A function defined among the statements: it sees the variables around it."""

    source: Source
    scope: Any  # the frame of the function around it
    defaults: tuple[Any, ...] = ()


def number(value: Any) -> Scalar:
    """A number known while compiling, as a scalar.  Raises NotElements for what is none."""
    if isinstance(value, Scalar):
        return value
    if isinstance(value, np.generic):
        return _numpy_number(value)
    kind = PYTHON.get(type(value))
    if kind is None:
        raise NotElements(f"a {type(value).__name__} is no number")
    if kind == PY_INT and not INT_LOW <= value <= INT_HIGH:
        raise NotElements(f"{value} does not fit 64 bits")
    bound = int(value) if kind != PY_FLOAT else 0
    return Scalar(kind, const(value, kind.dtype), bound, bound)


def _numpy_number(value: np.generic) -> Scalar:
    if value.dtype.kind not in "biuf":
        raise NotElements(f"numbers of dtype {value.dtype} are not compiled")
    bound = int(value) if value.dtype.kind in "biu" else 0
    return Scalar(Kind(value.dtype), const(value, value.dtype), bound, bound)


def is_number(value: Any) -> bool:
    """Whether this is a number, known now or at run time."""
    return isinstance(value, Scalar | np.generic) or type(value) in PYTHON


def as_index(expr: Expr) -> Expr:
    """A whole number in the canonical form of indices, where it has one."""
    if isinstance(expr, Const) and expr.dtype == INT64:
        return affine(int(expr.value))
    return expr


def from_index(expr: Expr) -> Expr:
    """The reverse: an index without variables is a literal."""
    if isinstance(expr, Affine) and not expr.terms:
        return const(expr.constant, INT64)
    return expr


def clipped(s: Scalar, low: int, high: int) -> Scalar:
    """The scalar with narrower bounds."""
    return replace(s, low=max(s.low, low), high=min(s.high, high))


def describe(value: Any) -> str:
    """A value's type in the user's terms."""
    if isinstance(value, Scalar | Local):
        return str(value.kind)
    if isinstance(value, View):
        return f"an array of shape {value.shape}"
    if isinstance(value, Maybe):
        return describe(value.value)
    if isinstance(value, Torn):
        return f"{value.one} on one way and {value.other} on another"
    if isinstance(value, np.generic):
        return f"np.{value.dtype.name}"
    return "None" if value is None else type(value).__name__
