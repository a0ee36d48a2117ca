"""Runs a kernel in slow Python, with NumPy scalars: the meaning of the loop IR.

The kinds of loops make no difference here, which is the point: whatever a schedule did, the answer
must be this one (up to the order of an `Accumulate`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from nbcomp.loop.cost import ROUNDS, extent_of
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Alloc,
    Apply,
    Block,
    Buffer,
    Call,
    Cast,
    Const,
    Exit,
    Expr,
    Failure,
    For,
    If,
    Kernel,
    Leave,
    Let,
    Load,
    Select,
    Stmt,
    Store,
    Var,
    While,
    bodies,
    expressions,
    walk_expr,
)
from nbcomp.loop.library import LIBRARY

_OVERFLOWS: dict[str, Callable[[int, int], int]] = {
    "add_overflows": operator.add,
    "subtract_overflows": operator.sub,
    "multiply_overflows": operator.mul,
}


class Exited(Exception):
    """A kernel ended early: with this failure, and the value its message shows."""

    def __init__(self, failure: Failure, detail: int) -> None:
        super().__init__(f"{failure.kind}: {failure.text.format(detail)}")
        self.failure, self.detail = failure, detail


class _Left(Exception):
    """On the way out of the block of this label."""

    def __init__(self, label: str) -> None:
        super().__init__(label)
        self.label = label


def interpret(kernel: Kernel, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
    """Run the kernel on one array per buffer name; outputs and temps are written in place.

    Each array has the buffer's shape and dtype; its own strides count, the buffer's are ignored.
    Raises `Exited` where the kernel ends with a status.
    """
    with np.errstate(all="ignore"):
        _Frame(dict(arrays)).run(kernel.stages)


STEP = 1e-6  # seconds that one step takes here, about


def seconds(kernel: Kernel) -> float:
    """About how long `interpret` takes for a kernel, from the rounds of its loops."""
    return STEP * sum(_steps(stage) for stage in kernel.stages)


def _steps(stmt: Stmt) -> float:
    """Statements and parts of expressions that are run for one statement."""
    own = 1 + sum(1 for root in expressions(stmt) for _ in walk_expr(root))
    inside = sum(_steps(s) for body in bodies(stmt) for s in body)
    rounds = extent_of(stmt) if isinstance(stmt, For) else ROUNDS if isinstance(stmt, While) else 1
    return own + float(rounds) * inside


class _Frame:
    def __init__(self, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        self.arrays = arrays
        self.values: dict[str, Any] = {}

    def run(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            self.statement(stmt)

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case Let():
                self.values[stmt.name] = self.value(stmt.value)
            case Store():
                self.array(stmt.buffer)[self.index(stmt.indices)] = self.value(stmt.value)
            case Accumulate():
                target, index = self.array(stmt.buffer), self.index(stmt.indices)
                target[index] = getattr(np, stmt.fn)(target[index], self.value(stmt.value))
            case Alloc():
                self.alloc(stmt.buffer)
            case For():
                self.loop(stmt)
            case If():
                self.run(stmt.yes if self.value(stmt.condition) else stmt.no)
            case While():
                self.repeat(stmt)
            case Call():
                self.call(stmt)
            case _:
                self.jump(stmt)

    def jump(self, stmt: Stmt) -> None:
        """What changes where the program goes on; `Poll` and `Prefetch` mean nothing."""
        match stmt:
            case Block():
                self.block(stmt)
            case Leave():
                raise _Left(stmt.label)
            case Exit():
                detail = int(self.value(stmt.detail)) if stmt.detail else 0
                raise Exited(stmt.failure, detail)

    def loop(self, stmt: For) -> None:
        for i in range(int(self.value(stmt.extent))):
            self.values[stmt.var] = i
            self.run(stmt.body)

    def repeat(self, stmt: While) -> None:
        while self.value(stmt.condition):
            self.run(stmt.body)

    def block(self, stmt: Block) -> None:
        try:
            self.run(stmt.body)
        except _Left as left:
            if left.label != stmt.label:
                raise

    def call(self, stmt: Call) -> None:
        parts = [
            self.array(b)[self.index(at)] if at else self.array(b)
            for b, at in zip(stmt.buffers, stmt.at, strict=True)
        ]
        box = [(int(self.value(start)), int(self.value(count))) for start, count in stmt.box]
        routine = LIBRARY[stmt.fn]
        routine.reference(routine.part(parts, box) if box else parts, dict(stmt.options))

    def alloc(self, buffer: Buffer) -> None:
        """New memory, of values nobody should read."""
        self.arrays[buffer.name] = np.full(buffer.shape, 77).astype(buffer.dtype)

    def array(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        if buffer.name not in self.arrays and buffer.alias:
            return self.arrays[buffer.alias].reshape(buffer.shape)
        return self.arrays[buffer.name]

    def index(self, indices: tuple[Expr, ...]) -> tuple[int, ...]:
        return tuple(int(self.value(i)) for i in indices)

    def value(self, expr: Expr) -> Any:
        match expr:
            case Const():
                return expr.value
            case Var():
                return self.values[expr.name]
            case Affine():
                return expr.constant + sum(f * self.values[v] for v, f in expr.terms)
            case Load():
                return self.array(expr.buffer)[self.index(expr.indices)]
            case Cast():
                return np.asarray(self.value(expr.value)).astype(expr.dtype)[()]
            case Select():
                return self.value(expr.yes if self.value(expr.condition) else expr.no)
            case Apply():
                args = [self.value(a) for a in expr.args]
                return np.asarray(self.function(expr, args)).astype(expr.dtype)[()]
        raise TypeError(f"not an expression: {expr!r}")

    def function(self, expr: Apply, args: list[Any]) -> Any:
        if expr.fn == "erf":
            from scipy.special import erf  # heavy, and the one function NumPy lacks

            return erf(args[0])
        if expr.fn == "bitcast":
            return np.asarray(args[0], expr.args[0].dtype).view(expr.dtype)[()]
        if expr.fn in _OVERFLOWS:
            return not -(2**63) <= _OVERFLOWS[expr.fn](*map(int, args)) < 2**63
        return getattr(np, expr.fn)(*args)
