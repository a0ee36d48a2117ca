"""Rough costs of loops: vector instructions and bytes, for choosing unrolling, cores and streaming.

Only ratios matter, and only roughly; measured figures belong to the tuner.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Apply,
    Block,
    Call,
    Const,
    Expr,
    For,
    If,
    Load,
    Stmt,
    Store,
    While,
    children,
    expressions,
    walk,
)

ROUNDS = 16  # of a loop of which nobody knows how often it runs
# Instructions per vector, where it is not about one.  Measured on AVX-512 code of this compiler.
INSTRUCTIONS = {
    "divide": 8,
    "sqrt": 8,
    "reciprocal": 8,
    "maximum": 3,
    "minimum": 3,
    "floor_divide": 30,
    "remainder": 30,
    "fmod": 60,
    "exp": 16,
    "exp2": 14,
    "expm1": 24,
    "log": 20,
    "log2": 22,
    "log10": 22,
    "log1p": 28,
    "sin": 30,
    "cos": 30,
    "tan": 40,
    "tanh": 24,
    "sinh": 30,
    "cosh": 26,
    "arcsin": 30,
    "arccos": 30,
    "arctan": 30,
    "arctan2": 45,
    "arcsinh": 45,
    "arccosh": 45,
    "arctanh": 40,
    "power": 60,
    "hypot": 20,
    "cbrt": 30,
    "erf": 40,
    "logaddexp": 50,
    "logaddexp2": 50,
}

# Those that stand for arithmetic of many steps; the others are one operation, if a slow one.
ELEMENTARY = INSTRUCTIONS.keys() - {
    *("divide", "sqrt", "reciprocal", "maximum", "minimum", "floor_divide", "remainder", "fmod"),
}


@dataclass(frozen=True)
class Cost:
    """Scalar-equivalent instructions and bytes moved."""

    instructions: float = 0.0
    bytes: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.instructions + other.instructions, self.bytes + other.bytes)

    def times(self, n: float) -> Cost:
        """The cost of n iterations."""
        return Cost(self.instructions * n, self.bytes * n)


def of_expr(root: Expr) -> Cost:
    """Of evaluating an expression once, shared parts counted once."""
    total, seen, stack = Cost(), set(), [root]
    while stack:
        e = stack.pop()
        if id(e) in seen or isinstance(e, Affine | Const):
            continue
        seen.add(id(e))
        if isinstance(e, Load):
            moved = 0 if e.buffer.role == "local" else e.dtype.itemsize
            total += Cost(1, moved)
        elif isinstance(e, Apply):
            total += Cost(INSTRUCTIONS.get(e.fn, 1))
        else:
            total += Cost(1)
        stack.extend(children(e))
    return total


def of_body(body: tuple[Stmt, ...]) -> Cost:
    """Of running a body once."""
    total = Cost()
    for stmt in body:
        total += of_stmt(stmt)
    return total


def of_stmt(stmt: Stmt) -> Cost:
    """Of running a statement once."""
    if isinstance(stmt, For):
        return of_body(stmt.body).times(extent_of(stmt))
    if isinstance(stmt, If):
        return of_body(stmt.yes) + of_body(stmt.no)
    if isinstance(stmt, Block):
        return of_body(stmt.body)
    if isinstance(stmt, While):
        return of_body(stmt.body).times(ROUNDS)
    if isinstance(stmt, Call):
        out, left, _ = stmt.buffers
        sizes = [_upper(count) for _, count in stmt.box] or list(out.shape[-2:])
        # A matrix product keeps two multiply-adds a cycle busy: a quarter instruction each.
        return Cost(0.25 * left.shape[-1] * math.prod(sizes))
    total = Cost()
    for e in expressions(stmt):
        total += of_expr(e)
    if isinstance(stmt, Store | Accumulate):
        moved = 0 if stmt.buffer.role == "local" else stmt.buffer.dtype.itemsize
        total += Cost(1, moved)
    return total


def extent_of(loop: For) -> int:
    """Iterations of a loop; an upper bound where the extent is the smaller of two."""
    return _upper(loop.extent)


def _upper(extent: Expr) -> int:
    if isinstance(extent, Apply):
        extent = next((a for a in extent.args if isinstance(a, Affine) and not a.terms), extent)
    return extent.constant if isinstance(extent, Affine) else ROUNDS


def has_accumulate(body: tuple[Stmt, ...]) -> bool:
    """Whether a body adds to anything."""
    return any(isinstance(s, Accumulate) for s in walk(body))
