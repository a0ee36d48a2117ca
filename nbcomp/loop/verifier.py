"""Checks a kernel against the rules of the grammar; an error prints the IR with the line marked."""

from __future__ import annotations

from functools import cache

import numpy as np

from nbcomp.errors import LoopKindError, VerifyError
from nbcomp.loop.grammar import (
    EXTRA,
    Accumulate,
    Affine,
    Alloc,
    Apply,
    Block,
    Buffer,
    Call,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Leave,
    Let,
    Load,
    Prefetch,
    Select,
    Stmt,
    Store,
    Var,
    While,
    expressions,
    neutral,
    spread_loop,
    walk,
    walk_expr,
)
from nbcomp.loop.intrinsics import INTRINSICS, Mismatch, match
from nbcomp.loop.library import LIBRARY
from nbcomp.loop.printer import print_kernel
from nbcomp.types import BOOL, INT64, DType


def verify(kernel: Kernel) -> Kernel:
    """The kernel itself, if it is well formed.

    Every name is bound once and before it is read, indices match their buffer's rank and are int64,
    values have the dtype of what they are stored to and functions the dtypes of NumPy's own loops,
    conditions are bool, blocks are left from inside, parallel loops are stages, vector loops are
    not nested, unrolled loops have a constant extent, instructions do what their loops do, and
    inputs are not written.

    Raises VerifyError.
    """
    names = [b.name for b in kernel.buffers]
    if len(set(names)) != len(names):
        raise VerifyError(f"kernel {kernel.name}: two buffers have the same name")
    known = dict(zip(names, kernel.buffers, strict=True))
    for buffer in kernel.buffers:
        if buffer.alias and (
            buffer.alias not in known or known[buffer.alias].dtype != buffer.dtype
        ):
            raise VerifyError(f"kernel {kernel.name}: {buffer.name} is not a view of a buffer")
    _Checker(kernel, known).body(kernel.stages, set(), True)
    return kernel


class _Checker:
    def __init__(self, kernel: Kernel, buffers: dict[str, Buffer]) -> None:
        self.kernel, self.buffers = kernel, buffers
        self.labels: list[str] = []

    def fail(self, stmt: Stmt, why: str) -> None:
        """Raise, with the statement pointed at."""
        text = print_kernel(self.kernel, mark=stmt)
        raise VerifyError(f"kernel {self.kernel.name}: {why}\n{text}")

    def misplaced(self, loop: For, why: str) -> None:
        """Raise for a loop that cannot run so where it is."""
        text = print_kernel(self.kernel, mark=loop)
        raise LoopKindError(f"kernel {self.kernel.name}: {why}\n{text}", f"{why}: {loop.var}")

    def body(self, body: tuple[Stmt, ...], bound: set[str], top: bool = False) -> None:
        scope, outer = set(bound), dict(self.buffers)
        for stmt in body:
            for expr in expressions(stmt):
                self.expression(stmt, expr, scope)
            self.statement(stmt, scope, top)
        self.buffers = outer

    def statement(self, stmt: Stmt, scope: set[str], top: bool) -> None:
        match stmt:
            case Let():
                self.bind(stmt, stmt.name, scope)
                scope.add(stmt.name)
            case Alloc():
                self.alloc(stmt)
            case Store() | Accumulate():
                self.write(stmt)
            case For():
                self.loop(stmt, scope, top)
            case If() | While():
                if stmt.condition.dtype != BOOL:
                    self.fail(stmt, "a condition that is not bool")
                for inner in (stmt.yes, stmt.no) if isinstance(stmt, If) else (stmt.body,):
                    self.body(inner, scope)
            case Call():
                self.call(stmt)
            case _:
                self.jump(stmt, scope)

    def in_rounds(self, stmt: For) -> bool:
        """Whether a parallel loop is all that the serial loop of a stage does, both as long each
        time."""
        for rounds, loop in filter(None, map(spread_loop, self.kernel.stages)):
            extents = [loop.extent, rounds.extent] if rounds else [loop.extent]
            if loop is stmt:
                return all(isinstance(e, Affine) and not e.terms for e in extents)
        return False

    def jump(self, stmt: Stmt, scope: set[str]) -> None:
        if isinstance(stmt, Block):
            self.labels.append(stmt.label)
            self.body(stmt.body, scope)
            self.labels.pop()
        elif isinstance(stmt, Prefetch):
            self.access(stmt, stmt.buffer, stmt.indices)
        elif isinstance(stmt, Leave) and stmt.label not in self.labels:
            self.fail(stmt, f"leaves {stmt.label}, which is not around it")

    def bind(self, stmt: Stmt, name: str, scope: set[str]) -> None:
        if name in scope:
            self.fail(stmt, f"{name} is bound already")

    def alloc(self, stmt: Alloc) -> None:
        if stmt.buffer.role != "local":
            self.fail(stmt, f"{stmt.buffer.name} is allocated, but not local")
        if stmt.buffer.name in self.buffers:
            self.fail(stmt, f"{stmt.buffer.name} is allocated already")
        self.buffers[stmt.buffer.name] = stmt.buffer

    def write(self, stmt: Store | Accumulate) -> None:
        self.access(stmt, stmt.buffer, stmt.indices)
        if stmt.buffer.role == "input":
            self.fail(stmt, "an input is written")
        if stmt.value.dtype != stmt.buffer.dtype:
            self.fail(stmt, f"stores {stmt.value.dtype} into {stmt.buffer.dtype}")
        if isinstance(stmt, Accumulate):
            try:
                neutral(stmt.fn, stmt.buffer.dtype)
            except ValueError as error:
                self.fail(stmt, str(error))

    def loop(self, stmt: For, scope: set[str], top: bool) -> None:
        self.bind(stmt, stmt.var, scope)
        if stmt.kind == "parallel" and not (top or self.in_rounds(stmt)):
            self.misplaced(stmt, "a parallel loop inside another statement")
        if stmt.extent.dtype != INT64:
            self.fail(stmt, "an extent that is not int64")
        if stmt.kind == "unroll" and not (
            isinstance(stmt.extent, Affine) and not stmt.extent.terms
        ):
            self.misplaced(stmt, "a loop to write out whose extent is not a constant")
        if stmt.kind == "vector" and any(
            isinstance(s, For) and s.kind == "vector" for s in walk(stmt.body)
        ):
            self.misplaced(stmt, "a vector loop inside a vector loop")
        if stmt.kind == "instruction":
            self.instruction(stmt)
        self.body(stmt.body, scope | {stmt.var})

    def instruction(self, stmt: For) -> None:
        if stmt.instruction not in INTRINSICS:
            self.fail(stmt, f"no instruction {stmt.instruction}")
        try:
            match(INTRINSICS[stmt.instruction], stmt)
        except Mismatch as why:
            self.misplaced(stmt, str(why))

    def call(self, stmt: Call) -> None:
        if stmt.fn not in LIBRARY:
            self.fail(stmt, f"no library routine {stmt.fn}")
        if len(stmt.at) != len(stmt.buffers):
            self.fail(stmt, f"{len(stmt.at)} places for {len(stmt.buffers)} buffers")
        for buffer, at in zip(stmt.buffers, stmt.at, strict=True):
            if self.buffers.get(buffer.name) != buffer:
                self.fail(stmt, f"unknown buffer {buffer.name}")
            if len(at) > len(buffer.shape) or any(i.dtype != INT64 for i in at):
                self.fail(stmt, f"not a part of {buffer.name}")
        if stmt.buffers[0].role == "input":
            self.fail(stmt, "an input is written")

    def access(self, stmt: Stmt, buffer: Buffer, indices: tuple[Expr, ...]) -> None:
        known = self.buffers.get(buffer.memory)
        if known is None or (known != buffer and not buffer.alias):
            self.fail(stmt, f"unknown buffer {buffer.name}")
        if len(indices) != len(buffer.shape):
            self.fail(stmt, f"{len(indices)} indices for {buffer.name} of rank {len(buffer.shape)}")
        if any(i.dtype != INT64 for i in indices):
            self.fail(stmt, "an index that is not int64")

    def expression(self, stmt: Stmt, root: Expr, scope: set[str]) -> None:
        for expr in walk_expr(root):
            if isinstance(expr, Load):
                self.access(stmt, expr.buffer, expr.indices)
            why = _unbound(expr, scope) or _ill_typed(expr)
            if why:
                self.fail(stmt, why)


def _unbound(expr: Expr, scope: set[str]) -> str:
    """What the expression reads that is not there; empty if nothing."""
    match expr:
        case Var() if expr.name not in scope:
            return f"{expr.name} is read before it is bound"
        case Affine() if any(v not in scope for v, _ in expr.terms):
            return "an index uses a loop variable outside its loop"
    return ""


def _ill_typed(expr: Expr) -> str:
    """How the expression's dtypes do not fit; empty if they do."""
    match expr:
        case Const() if expr.value.dtype != expr.dtype:
            return f"a literal of {expr.value.dtype} as {expr.dtype}"
        case Load() if expr.dtype != expr.buffer.dtype:
            return f"reads {expr.buffer.name} as {expr.dtype}"
        case Select() if expr.condition.dtype != BOOL:
            return "a select by a condition that is not bool"
        case Select() if not expr.yes.dtype == expr.no.dtype == expr.dtype:
            return f"a select of {expr.yes.dtype} and {expr.no.dtype} as {expr.dtype}"
        case Apply() if expr.fn not in EXTRA:
            given = (*(a.dtype for a in expr.args), expr.dtype)
            if _loop_of(expr.fn, *given[:-1]) != given:
                return f"{expr.fn} has no loop {_chars(given)} in NumPy"
    return ""


def _chars(dtypes: tuple[DType, ...]) -> str:
    """Dtypes as NumPy writes a ufunc's loops: ff->f."""
    return f"{''.join(d.char for d in dtypes[:-1])}->{dtypes[-1].char}"


@cache
def _loop_of(fn: str, *dtypes: DType) -> tuple[DType, ...] | None:
    """The dtypes NumPy computes a ufunc with; None if there is no such ufunc or loop."""
    ufunc = getattr(np, fn, None)
    if not isinstance(ufunc, np.ufunc) or ufunc.nin != len(dtypes):
        return None
    try:
        return ufunc.resolve_dtypes((*dtypes, None))
    except TypeError:
        return None
