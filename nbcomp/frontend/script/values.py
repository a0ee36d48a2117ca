"""What variables hold in loops over elements: numbers known at run time, and parts of arrays.

A `Scalar` is an expression of the loop IR with the kind of number it is in Python (`int`, `float`,
`bool`, or a NumPy scalar) and, for whole numbers, bounds.  Everything that is known while compiling
is itself: a Python object.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nbcomp.frontend.script.source import Source
from nbcomp.loop.grammar import Affine, Buffer, Const, Expr, affine, const
from nbcomp.sizes import Size, most
from nbcomp.types import BOOL, FLOAT64, INT64, DType

INT_LOW, INT_HIGH = -(2**63), 2**63 - 1
UINT64 = np.dtype(np.uint64)
EXACT = 2**53  # whole numbers up to here are doubles


class NotElements(Exception):
    """This cannot be part of a loop over elements: why, and where.  Someone else may take it on."""

    def __init__(self, reason: str, node: ast.AST | None = None, hint: str = "") -> None:
        super().__init__(reason)
        self.reason, self.node, self.hint = reason, node, hint


# What evaluating something known now may raise: it is raised when the program gets there.
PYTHONS = (ArithmeticError, ValueError, TypeError, LookupError, NameError, AttributeError)


class Raises(Exception):
    """This raises whenever it is run: the exception."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True)
class Kind:
    """What kind of number: a NumPy dtype, and the Python type if it is a Python number."""

    dtype: DType
    python: type | None = None

    def __str__(self) -> str:
        return (
            self.python.__name__.replace("NoneType", "None")
            if self.python
            else f"np.{self.dtype.name.replace('bool', 'bool_')}"
        )

    @property
    def is_int(self) -> bool:
        """Whether it is a whole number (bool is not)."""
        return self.dtype.kind in "iu"

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
NONE = Kind(BOOL, type(None))  # in the place of a number, with `is None` to ask for it
PYTHON = {int: PY_INT, float: PY_FLOAT, bool: PY_BOOL}
# All kinds; at run time one is told by its place here, its tag.
KINDS = (
    NONE,
    PY_BOOL,
    PY_INT,
    PY_FLOAT,
    *(Kind(np.dtype(c)) for c in ["?", "i1", "i2", "i4", "i8"]),
)
KINDS += tuple(Kind(np.dtype(c)) for c in ["u1", "u2", "u4", "u8", "f2", "f4", "f8"])
TAG = np.dtype(np.uint8)


@dataclass(frozen=True)
class Way:
    """One kind that a number may be of, and what is known of those that are.

    low, high: bounds of whole numbers.  bits: the width of floats that holds a Python float.
    """

    kind: Kind
    low: int = INT_LOW
    high: int = INT_HIGH
    bits: int = 64

    @property
    def tag(self) -> int:
        """Its kind at run time."""
        if self.kind not in KINDS:
            raise NotElements(f"a number that is np.{self.kind.dtype.name} on one way only")
        return KINDS.index(self.kind)

    def fits(self, dtype: DType) -> bool:
        """Whether a dtype surely holds the numbers exactly."""
        if self.kind.dtype.kind == "f":
            bits = self.bits if self.kind == PY_FLOAT else 8 * self.kind.dtype.itemsize
            return dtype.kind == "f" and bits <= 8 * dtype.itemsize
        least, most = exact_range(dtype)
        return least <= self.low and self.high <= most


def exact_range(dtype: DType) -> tuple[int, int]:
    """The whole numbers that a dtype holds without gaps."""
    if dtype.kind == "f":
        most = 2 ** (np.finfo(dtype.str).nmant + 1)
        return -most, most
    return Kind(dtype).bounds()


def _bits(expr: Expr) -> int:
    """The width of the narrowest float that holds a Python float."""
    if not isinstance(expr, Const):
        return 64
    with np.errstate(over="ignore"):
        kept = [np.dtype(f"f{n}").type(expr.value) for n in (2, 4)]
    same = [float(k) == float(expr.value) or k != k for k in kept]
    return 16 if same[0] else 32 if same[1] else 64


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

    @property
    def ways(self) -> tuple[Way, ...]:
        """The one kind it is of."""
        bits = _bits(self.expr) if self.kind == PY_FLOAT else 64
        return (Way(self.kind, self.low, self.high, bits),)


@dataclass(frozen=True, eq=False)
class Either:
    """A number of which the kind, too, is known at run time only: `expr` in the dtype that holds
    all of them (`carrier`), and the tag of its kind."""

    ways: tuple[Way, ...]
    expr: Expr
    tag: Expr


@dataclass(frozen=True, eq=False)
class Local:
    """A variable that holds a number at run time: its memory, and what is known of its value."""

    kind: Kind
    buffer: Buffer
    low: int = INT_LOW
    high: int = INT_HIGH

    @property
    def ways(self) -> tuple[Way, ...]:
        """The one kind it is of."""
        return (Way(self.kind, self.low, self.high),)


@dataclass(frozen=True, eq=False)
class Varying:
    """A variable whose number is of a kind known at run time only: its memory, and the tag's."""

    ways: tuple[Way, ...]
    buffer: Buffer
    tag: Buffer


Number = Scalar | Either
Variable = Local | Varying
Length = int | Size | Scalar  # of an axis


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
    """One axis of a part of an array: index k is element `step`·k + the part's own start.

    step, extent: numbers known at run time only, as scalars, where a slice has such bounds.
    """

    position: int  # of the array's axis
    step: Length
    extent: Length


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
    def shape(self) -> tuple[Length, ...]:
        """Its shape."""
        return tuple(a.extent for a in self.axes)

    @property
    def whole(self) -> bool:
        """Whether it is all of the array."""
        shape = self.memory.buffer.shape
        return len(self.axes) == len(shape) and all(
            a.position == k
            and same_length(a.step, 1)
            and same_length(a.extent, n)
            and is_zero(self.start[k])
            for k, (a, n) in enumerate(zip(self.axes, shape, strict=True))
        )

    @property
    def moves(self) -> bool:
        """Whether its place or size is known at run time only."""
        starts = any(not isinstance(e, Affine) or e.terms for e in self.start)
        return starts or any(isinstance(x, Scalar) for a in self.axes for x in (a.step, a.extent))


@dataclass(frozen=True, eq=False)
class Computed:
    """An array that is computed where it is used: `element(index)` writes what one element needs.

    reads: the parts of arrays it is made of, and whether element k is made of element k of them.
    writes: how often memory had been written to when it was said.
    """

    kind: Kind
    shape: tuple[Length, ...]
    element: Callable[[tuple[Expr, ...]], Scalar]
    reads: tuple[tuple[View, bool], ...]
    writes: int

    @property
    def moves(self) -> bool:
        """Whether it is made of parts whose place or size is known at run time only."""
        return any(view.moves for view, _ in self.reads)


@dataclass(frozen=True, eq=False)
class Rows:
    """The parts of an array that a list of indices names."""

    parts: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Method:
    """A method of an array, not called yet."""

    array: View | Computed
    name: str


@dataclass(frozen=True, eq=False)
class LocalFunction:
    """A function defined among the statements: it sees the variables around it."""

    source: Source
    scope: Any  # the frame of the function around it
    defaults: tuple[Any, ...]
    named_defaults: dict[str, Any]


@dataclass(frozen=True, eq=False)
class GeneratorOf:
    """A generator expression that nobody has used yet: its syntax, the frame it is in, and what it
    goes through first."""

    node: ast.GeneratorExp
    frame: Any
    items: Any


@dataclass(frozen=True, eq=False)
class OneOf:
    """One of several values of different kinds; which of them, a number at run time tells."""

    which: Scalar
    values: tuple[Any, ...]


def union(*values: Iterable[Way]) -> tuple[Way, ...]:
    """The kinds of several numbers, one of which a number is."""
    found: dict[Kind, Way] = {}
    for way in (w for ways in values for w in ways):
        known = found.get(way.kind, way)
        low, high = min(known.low, way.low), max(known.high, way.high)
        found[way.kind] = Way(way.kind, low, high, max(known.bits, way.bits))
    return tuple(found.values()) if len(found) == 1 else tuple(sorted(found.values(), key=_tag))


def _tag(way: Way) -> int:
    return way.tag


def carrier(ways: tuple[Way, ...]) -> DType:
    """The dtype in which numbers of several kinds are kept: exact for all, as far as 64 bits go."""
    dtypes = {w.kind.dtype for w in ways if w.kind != NONE} or {BOOL}
    if len(dtypes) == 1:
        return next(iter(dtypes))
    floats = any(d.kind == "f" for d in dtypes)
    wanted = [d for d in dtypes if d != BOOL and (d.kind == "f") == floats]
    for dtype in sorted(wanted, key=lambda d: d.itemsize):
        if all(way.fits(dtype) for way in ways):
            return dtype
    unsigned = all(way.low >= 0 for way in ways) and UINT64 in dtypes
    return FLOAT64 if floats else UINT64 if unsigned else INT64


def number(value: Any) -> Scalar:
    """A number known while compiling, as a scalar.  Raises NotElements for what is none."""
    if isinstance(value, Scalar):
        return value
    if isinstance(value, Size):
        return Scalar(PY_INT, affine(value), value, value)  # type: ignore[arg-type]
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
    return isinstance(value, Scalar | np.generic | Size) or type(value) in PYTHON


def numeric(value: Any) -> Number:
    """A number, or None in its place, of which the kind may be known at run time only.

    Raises NotElements for anything else.
    """
    if value is None:
        return Scalar(NONE, const(False, BOOL), 0, 0)
    return value if isinstance(value, Either) else number(value)


def is_numeric(value: Any) -> bool:
    """Whether this is a number, whatever is known of it."""
    return isinstance(value, Either) or is_number(value)


def in_memory(value: Any) -> bool:
    """Whether a variable holds a number."""
    return isinstance(value, Local | Varying | Scalar) or is_number(value)


def narrowed(variable: Variable, ways: tuple[Way, ...]) -> Variable | None:
    """A variable of which more is known: the kinds that it may be of."""
    if isinstance(variable, Varying) and len(ways) > 1:
        return Varying(ways, variable.buffer, variable.tag)
    kind = ways[0].kind
    return Local(kind, variable.buffer, ways[0].low, ways[0].high) if kind != NONE else None


def as_index(expr: Expr) -> Expr:
    """A whole number in the canonical form of indices, where it has one."""
    if isinstance(expr, Const) and expr.dtype == INT64:
        return affine(int(expr.value))
    return expr


def from_index(expr: Expr) -> Expr:
    """The reverse: an index without variables is a literal."""
    if isinstance(expr, Affine) and not expr.terms and not isinstance(expr.constant, Size):
        return const(expr.constant, INT64)
    return expr


def is_zero(expr: Expr) -> bool:
    """Whether an index is surely 0."""
    return isinstance(expr, Affine) and not expr.terms and expr.constant == 0


def same_length(a: Length, b: Length) -> bool:
    """Whether two lengths are one, as far as is known now."""
    if isinstance(a, Size) and isinstance(b, Size):
        return a.key == b.key
    return a is b or (type(a) is type(b) is int and a == b)


def plain_bounds(s: Scalar) -> tuple[int, int]:
    """The bounds of a whole number for all lengths that are taken."""
    return -most(-s.low), most(s.high)


def clipped(s: Scalar, low: int, high: int) -> Scalar:
    """The scalar with narrower bounds."""
    return replace(s, low=max(s.low, low), high=min(s.high, high))


def describe(value: Any) -> str:
    """A value's type in the user's terms."""
    if isinstance(value, Scalar | Local | Either | Varying):
        return " or ".join(str(w.kind) for w in value.ways)
    if isinstance(value, View | Computed):
        lengths = ", ".join("?" if isinstance(n, Scalar) else str(n) for n in value.shape)
        return f"an array of shape ({lengths}{',' * (len(value.shape) == 1)})"
    if isinstance(value, Method):
        return f"the method .{value.name} of an array"
    if isinstance(value, Maybe):
        return describe(value.value)
    if isinstance(value, Torn):
        return f"{value.one} on one way and {value.other} on another"
    if isinstance(value, np.generic):
        return f"np.{value.dtype.name}"
    if isinstance(value, Size):
        return "int"
    return "None" if value is None else type(value).__name__
