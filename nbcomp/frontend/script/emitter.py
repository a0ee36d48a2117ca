"""Writing a kernel statement by statement: bodies, variables in memory, and ways to fail.

Knows the loop IR; nothing of Python's syntax.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, overload

from nbcomp.frontend.script.values import Either, Kind, Number, Scalar
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
    Select,
    Stmt,
    Store,
    Var,
    const,
)
from nbcomp.record import Location
from nbcomp.types import BOOL, INT64, DType


class Emitter:
    """The statements of a kernel while it is written."""

    def __init__(self) -> None:
        self.stmts: list[Stmt] = []
        # By function, variable, what of it, and dtype.
        self.locals: dict[tuple[str, str, str, DType], Buffer] = {}
        # What was narrowed to a dtype that surely holds it: the cast, and the number before.
        self.exact: dict[int, tuple[Expr, Expr]] = {}
        self.scope = ""  # the function whose variables these are
        self.location: Location | None = None
        self._names: dict[str, int] = {}
        self._failures: dict[tuple[object, ...], Failure] = {}
        self.certain = True  # whether what ends the kernel would raise in Python
        # Indices that were checked in this statement: variable, extent → the place.
        self.placed: dict[tuple[str, Any], Expr] = {}
        self.cuts: dict[Any, Any] = {}  # slices whose bounds were computed in this statement
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
        cuts, self.cuts = self.cuts, dict(self.cuts)
        try:
            yield self.stmts
        finally:
            self.stmts, self.placed, self.cuts = outer, placed, cuts

    @contextmanager
    def discarded(self) -> Iterator[None]:
        """Statements written meanwhile are forgotten.  Names stay taken: what is read for the first
        time here is an operand from now on."""
        fails = self.fails
        with self.body():
            try:
                yield
            finally:
                self.fails = fails

    # ------------------------------------------------------------------------------ variables

    def local(self, name: str, dtype: DType, part: str = "") -> Buffer:
        """The memory of a variable while it holds numbers of this dtype; `part`: of something about
        it."""
        key = (self.scope, name, part, dtype)
        if key not in self.locals:
            made = Buffer(self.fresh(f"{name}_{part}" if part else name), dtype, (), (), "local")
            self.locals[key] = made
        return self.locals[key]

    def store(self, buffer: Buffer, value: Expr) -> None:
        """Give a variable a value."""
        self.add(Store(buffer, (), value, self.location))
        self.placed = {k: v for k, v in self.placed.items() if k[0] != buffer.name}
        self.cuts = {}

    @overload
    def keep(self, value: Scalar, name: str = "t") -> Scalar: ...

    @overload
    def keep(self, value: Number, name: str = "t") -> Number: ...

    def keep(self, value: Number, name: str = "t") -> Number:
        """The number, computed now: later changes of what it was made from do not matter."""
        expr = self.kept(value.expr, name)
        if isinstance(value, Either):
            return replace(value, expr=expr, tag=self.kept(value.tag, "kind"))
        return replace(value, expr=expr)

    def kept(self, value: Expr, name: str) -> Expr:
        """The expression, computed now."""
        if isinstance(value, Const | Var | Affine):
            return value
        bound = self.fresh(name)
        self.add(Let(bound, value, self.location))
        return Var(value.dtype, bound)

    @contextmanager
    def uncertain(self) -> Iterator[None]:
        """What ends the kernel here says nothing of Python, which then runs the call."""
        outer, self.certain = self.certain, False
        try:
            yield
        finally:
            self.certain = outer

    # -------------------------------------------------------------------------------- failures

    def fail(
        self, kind: str, message: str, detail: Expr | None = None, size: int | None = None
    ) -> None:
        """End the kernel here; one failure for one place and message."""
        self.fails = True
        key = (kind, message, self.location, self.certain, size)
        made = Failure(kind, message, self.location, self.certain, size)
        self.add(Exit(self._failures.setdefault(key, made), detail, self.location))

    def fail_if(
        self,
        bad: Expr,
        kind: str,
        message: str,
        detail: Expr | None = None,
        size: int | None = None,
    ) -> None:
        """End the kernel if a condition holds."""
        with self.body() as body:
            self.fail(kind, message, detail, size)
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
        """The value in the dtype of another kind."""
        return self.to_dtype(value, kind.dtype)

    def to_dtype(self, value: Expr, dtype: DType) -> Expr:
        """The value in another dtype."""
        if value.dtype == dtype:
            return value
        if isinstance(value, Const):
            return const(value.value, dtype)
        if id(value) in self.exact:
            _, before = self.exact[id(value)]
            if before.dtype == dtype or dtype.kind == "f":
                return self.to_dtype(before, dtype)
        return Cast(dtype, value, self.location)

    def exactly(self, value: Expr, dtype: DType) -> Expr:
        """The value in a dtype that is known to hold it."""
        made = self.to_dtype(value, dtype)
        if made is not value and not isinstance(value, Const):
            self.exact[id(made)] = made, value
        return made

    def choose(self, condition: Expr, yes: Expr, no: Expr) -> Expr:
        """One of two values, both of which may be computed."""
        return Select(yes.dtype, condition, yes, no, self.location)

    def int_const(self, value: int) -> Expr:
        """A whole number."""
        return const(value, INT64)

    def flag(self, name: str) -> Buffer:
        """The memory that says whether a variable is assigned."""
        return self.local(name, BOOL, "is_assigned")
