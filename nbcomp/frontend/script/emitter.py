"""Writing a kernel statement by statement: bodies, variables in memory, and ways to fail.

Knows the loop IR; nothing of Python's syntax.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nbcomp.frontend.script.values import PY_BOOL, Kind, Local, Scalar
from nbcomp.loop.grammar import (
    Affine,
    Apply,
    Buffer,
    Cast,
    Const,
    Exit,
    Expr,
    Failure,
    If,
    Let,
    Load,
    Select,
    Stmt,
    Store,
    Var,
    const,
)
from nbcomp.record import Location
from nbcomp.types import BOOL, INT64


class Emitter:
    """The statements of a kernel while it is written."""

    def __init__(self) -> None:
        self.stmts: list[Stmt] = []
        self.locals: dict[tuple[str, str, str], Buffer] = {}  # by function, variable and kind
        self.scope = ""  # the function whose variables these are
        self.location: Location | None = None
        self._names: dict[str, int] = {}
        self._failures: dict[tuple[str, str, Location | None, bool], Failure] = {}
        self.certain = True  # whether what ends the kernel would raise in Python
        # Indices that were checked in this statement: variable, extent → the place.
        self.placed: dict[tuple[str, int], Expr] = {}
        self.fails = False  # whether anything may end the kernel early

    def fresh(self, base: str) -> str:
        """A name nobody has used in this kernel."""
        self._names[base] = self._names.get(base, 0) + 1
        return base if self._names[base] == 1 else f"{base}_{self._names[base]}"

    def add(self, stmt: Stmt) -> None:
        """The next statement."""
        self.stmts.append(stmt)

    @contextmanager
    def body(self) -> Iterator[list[Stmt]]:
        """Statements written meanwhile become a body of their own."""
        outer, self.stmts = self.stmts, []
        placed, self.placed = self.placed, dict(self.placed)
        try:
            yield self.stmts
        finally:
            self.stmts, self.placed = outer, placed

    # ------------------------------------------------------------------------------ variables

    def local(self, name: str, kind: Kind) -> Buffer:
        """The memory of a variable while it holds numbers of this kind."""
        key = (self.scope, name, str(kind))
        if key not in self.locals:
            made = Buffer(self.fresh(name), kind.dtype, (), (), "local")
            self.locals[key] = made
        return self.locals[key]

    def store(self, buffer: Buffer, value: Expr) -> None:
        """Give a variable a value."""
        self.add(Store(buffer, (), value, self.location))
        self.placed = {k: v for k, v in self.placed.items() if k[0] != buffer.name}

    def keep(self, value: Scalar, name: str = "t") -> Scalar:
        """The scalar, computed now: later changes of what it was made from do not matter."""
        if isinstance(value.expr, Const | Var | Affine):
            return value
        bound = self.fresh(name)
        self.add(Let(bound, value.expr, self.location))
        return Scalar(value.kind, Var(value.dtype, bound), value.low, value.high)

    def value_of(self, variable: Local) -> Scalar:
        """A variable's present value."""
        load = Load(variable.kind.dtype, variable.buffer, ())
        return Scalar(variable.kind, load, variable.low, variable.high)

    # -------------------------------------------------------------------------------- failures

    def failure(self, kind: str, message: str) -> Failure:
        """One failure for one place and message."""
        key = (kind, message, self.location, self.certain)
        made = Failure(kind, message, self.location, self.certain)
        return self._failures.setdefault(key, made)

    def fail(self, kind: str, message: str, detail: Expr | None = None) -> None:
        """End the kernel here."""
        self.fails = True
        self.add(Exit(self.failure(kind, message), detail, self.location))

    def fail_if(self, bad: Expr, kind: str, message: str, detail: Expr | None = None) -> None:
        """End the kernel if a condition holds."""
        with self.body() as body:
            self.fail(kind, message, detail)
        self.add(If(bad, tuple(body), (), self.location))

    # ----------------------------------------------------------------------------- expressions

    def apply(self, fn: str, *args: Expr, dtype: object = None) -> Expr:
        """A scalar function; comparisons give bool, others what their first argument is."""
        result = dtype if dtype is not None else args[0].dtype
        return Apply(result, fn, args, self.location)  # type: ignore[arg-type]

    def compare(self, fn: str, a: Expr, b: Expr) -> Expr:
        """A comparison."""
        return Apply(BOOL, fn, (a, b), self.location)

    def cast(self, value: Expr, kind: Kind) -> Expr:
        """The value in another dtype."""
        if value.dtype == kind.dtype:
            return value
        if isinstance(value, Const):
            return const(value.value, kind.dtype)
        return Cast(kind.dtype, value, self.location)

    def choose(self, condition: Expr, yes: Expr, no: Expr) -> Expr:
        """One of two values, both of which may be computed."""
        return Select(yes.dtype, condition, yes, no, self.location)

    def int_const(self, value: int) -> Expr:
        """A whole number."""
        return const(value, INT64)

    def flag(self, name: str) -> Buffer:
        """The memory that says whether a variable is assigned."""
        return self.local(f"{name}_is_assigned", PY_BOOL)
