"""Checks a kernel against the rules of the grammar; an error prints the IR with the line marked."""

from __future__ import annotations

import numpy as np

from nbcomp.errors import VerifyError
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
    expressions,
    walk_expr,
)
from nbcomp.loop.printer import print_body
from nbcomp.types import INT64


def verify(kernel: Kernel) -> Kernel:
    """The kernel itself, if it is well formed.

    Every name is bound before it is read, indices match their buffer's rank and are int64, values
    have the dtype of what they are stored to, conditions are bool, parallel loops are stages, and
    inputs are not written.  Raises VerifyError.
    """
    names = [b.name for b in kernel.buffers]
    if len(set(names)) != len(names):
        raise VerifyError(f"kernel {kernel.name}: two buffers have the same name")
    _Checker(kernel, dict(zip(names, kernel.buffers, strict=True))).body(kernel.stages, set(), True)
    return kernel


class _Checker:
    def __init__(self, kernel: Kernel, buffers: dict[str, Buffer]) -> None:
        self.kernel, self.buffers = kernel, buffers

    def fail(self, stmt: Stmt, why: str) -> None:
        marked = next(iter(print_body((stmt,))))
        text = "\n".join(
            f"{line}    <-- here" if line.strip() == marked.strip() else line
            for line in str(self.kernel).splitlines()
        )
        raise VerifyError(f"kernel {self.kernel.name}: {why}\n{text}")

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
                scope.add(stmt.name)
            case Alloc():
                self.buffers[stmt.buffer.name] = stmt.buffer
            case Store() | Accumulate():
                self.access(stmt, stmt.buffer, stmt.indices)
                if stmt.buffer.role == "input":
                    self.fail(stmt, "an input is written")
                if stmt.value.dtype != stmt.buffer.dtype:
                    self.fail(stmt, f"stores {stmt.value.dtype} into {stmt.buffer.dtype}")
            case For():
                if stmt.kind == "parallel" and not top:
                    self.fail(stmt, "a parallel loop inside another statement")
                if stmt.extent.dtype != INT64:
                    self.fail(stmt, "an extent that is not int64")
                self.body(stmt.body, scope | {stmt.var})
            case If() | While():
                if stmt.condition.dtype != np.bool_:
                    self.fail(stmt, "a condition that is not bool")
                for inner in (stmt.yes, stmt.no) if isinstance(stmt, If) else (stmt.body,):
                    self.body(inner, scope)
            case Block():
                self.body(stmt.body, scope)
            case Call():
                for buffer in stmt.buffers:
                    if buffer.name not in self.buffers:
                        self.fail(stmt, f"unknown buffer {buffer.name}")

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
            match expr:
                case Var() if expr.name not in scope:
                    self.fail(stmt, f"{expr.name} is read before it is bound")
                case Affine() if any(v not in scope for v, _ in expr.terms):
                    self.fail(stmt, "an index uses a loop variable outside its loop")
                case Load():
                    self.access(stmt, expr.buffer, expr.indices)
                    if expr.dtype != expr.buffer.dtype:
                        self.fail(stmt, f"reads {expr.buffer.name} as {expr.dtype}")
                case Select():
                    if expr.condition.dtype != np.bool_ or expr.yes.dtype != expr.no.dtype:
                        self.fail(
                            stmt, "a select with mixed dtypes or a condition that is not bool"
                        )
                case Const() | Apply() | Cast() | Var() | Affine():
                    pass
