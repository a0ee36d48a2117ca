"""How many rounds a loop may have, and how far what it counts gets.

A bound that grows from round to round would have to be left open.  But no machine gets through all
the rounds that would take a counter out of 64 bits, so that its sums need no check.  Knows syntax
and bounds, not how loops are written.
"""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

RUN = 1 << 56  # rounds of loops that count them to look for interrupts: more take half a year
FAR = 1 << 62  # as far from 0 as a counter may get: sums of two such numbers fit
BITS = 64  # rounds in each of which a whole number loses a bit or more


@dataclass(frozen=True)
class Growth:
    """How far the steps of a variable take it at most: each time the program comes by, and in all
    rounds of the endless loops in which it does, however often it comes to these."""

    each: int = 0
    ever: int = 0

    def __add__(self, other: Growth) -> Growth:
        return Growth(self.each + other.each, self.ever + other.ever)

    def over(self, rounds: int | None) -> Growth:
        """The same of all rounds of a loop; None: of one that may go on and looks for interrupts
        meanwhile, which takes time."""
        if rounds is None:
            return Growth(0, self.each * RUN + self.ever)
        return Growth(self.each * rounds, self.ever)

    @property
    def far(self) -> int:
        """In all."""
        return self.each + self.ever


def step_of(stmt: ast.AST) -> tuple[str, ast.expr] | None:
    """The variable that a statement adds to or takes from, and what it adds or takes."""
    match stmt:
        case ast.AugAssign(ast.Name(name), ast.Add() | ast.Sub(), by):
            return name, by
        case ast.Assign([ast.Name(name)], ast.BinOp(ast.Name(old), ast.Add() | ast.Sub(), by)):
            return (name, by) if name == old else None
        case ast.Assign([ast.Name(name)], ast.BinOp(by, ast.Add(), ast.Name(old))):
            return (name, by) if name == old else None
    return None


@lru_cache(maxsize=4096)
def counters(loop: ast.For | ast.While) -> frozenset[str]:
    """The variables that a loop changes by steps only."""
    nodes = list(ast.walk(loop))
    if any(isinstance(n, _OTHER_WAYS) for n in nodes):
        return frozenset()
    changed = Counter(n.id for n in nodes if isinstance(n, ast.Name) and _stores(n))
    steps = Counter(step[0] for step in map(step_of, nodes) if step)
    return frozenset(name for name, count in steps.items() if changed[name] == count)


def is_simple(expr: ast.expr) -> bool:
    """Whether looking at an expression twice costs little."""
    return not any(isinstance(n, ast.Call | ast.NamedExpr) for n in ast.walk(expr))


@lru_cache(maxsize=4096)
def shrinking(loop: ast.While) -> tuple[str, bool] | None:
    """The whole number that loses a bit or more in each round of a loop, which ends when none is
    left; and whether that is so only of one that is not negative."""
    match loop.test:
        case ast.Name(name) | ast.Compare(ast.Name(name), [ast.NotEq()], [ast.Constant(0)]):
            above = False
        case ast.Compare(ast.Name(name), [ast.Gt()], [ast.Constant(0)]):
            above = True
        case _:
            return None
    nodes = [n for stmt in loop.body for n in ast.walk(stmt)]
    changed = [n for n in nodes if isinstance(n, ast.Name) and n.id == name and _stores(n)]
    if len(changed) != 1 or any(isinstance(n, ast.Continue | _OTHER_WAYS) for n in nodes):
        return None
    for stmt in loop.body:  # not within anything, so that each round comes by
        match stmt:
            case ast.AugAssign(ast.Name(target), op, by) if target == name:
                return _shrunk(name, op, by, above)
            case ast.Assign([ast.Name(target)], ast.BinOp(ast.Name(old), op, by)) if (
                target == old == name
            ):
                return _shrunk(name, op, by, above)
    return None


def _shrunk(name: str, op: ast.operator, by: ast.expr, above: bool) -> tuple[str, bool] | None:
    match op, by:
        case ast.BitAnd(), ast.BinOp(ast.Name(old), ast.Sub(), ast.Constant(1)) if old == name:
            return name, False
        case (ast.RShift(), ast.Constant(int(k))) if k >= 1:
            return name, not above
        case (ast.FloorDiv(), ast.Constant(int(k))) if k >= 2:
            return name, not above
    return None


_OTHER_WAYS = ast.FunctionDef | ast.Lambda | ast.Match | ast.Try


def _stores(name: ast.Name) -> bool:
    return not isinstance(name.ctx, ast.Load)
