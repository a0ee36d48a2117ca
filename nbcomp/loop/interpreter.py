"""Runs a kernel in slow Python, with NumPy scalars: the meaning of the loop IR.

The kinds of loops make no difference here, which is the point: whatever a schedule did, the answer
must be this one (up to the order of an `Accumulate`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

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
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Select,
    Stmt,
    Store,
    Var,
    While,
)
from nbcomp.loop.library import LIBRARY


def interpret(kernel: Kernel, arrays: dict[str, np.ndarray[Any, Any]]) -> None:
    """Run the kernel on one array per buffer name; outputs and temps are written in place.

    Each array has the buffer's shape and dtype; its own strides count, the buffer's are ignored.
    """
    with np.errstate(all="ignore"):
        _Frame(dict(arrays)).run(kernel.stages)


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
            case Block():
                self.run(stmt.body)
            case Call():
                self.call(stmt)

    def loop(self, stmt: For) -> None:
        for i in range(int(self.value(stmt.extent))):
            self.values[stmt.var] = i
            self.run(stmt.body)

    def repeat(self, stmt: While) -> None:
        while self.value(stmt.condition):
            self.run(stmt.body)

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
            return args[0].view(expr.dtype)
        return getattr(np, expr.fn)(*args)
