"""Loops over whole arrays without jumps: `break`, `continue` and `return` become conditions.

    while test:                      while go and test:
        a                                a
        if c: break                      if c: go = False
        b                                else: b
    else: d                          if go: d

A `return` ends the loop likewise, and is done behind it: nothing has changed there that its value
depends on.  One in a loop within breaks out of that, and is done behind it.  Knows syntax trees,
nothing of values.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nbcomp.errors import Unsupported
from nbcomp.frontend.script.conditions import copied
from nbcomp.frontend.script.loops import has_jumps
from nbcomp.frontend.script.source import names_in
from nbcomp.record import Location

Place = Callable[[ast.AST], Location | None]

LARGEST = 1_000  # statements, those counted twice that both ways of a condition come to


@dataclass(frozen=True)
class Straight:
    """A loop's body without jumps out of it.

    go: the variable that is false once the loop was left, "" where it never is.  returns: variables
    that are true once a certain `return` was reached.  after: what follows the loop.
    """

    body: list[ast.stmt]
    go: str
    returns: tuple[str, ...]
    after: list[ast.stmt]

    @property
    def flags(self) -> tuple[str, ...]:
        """All variables of its own."""
        return (self.go, *self.returns) if self.go else ()


def leaves(node: ast.While | ast.For) -> bool:
    """Whether a loop may be left from inside, or a round of it."""
    return names_in(list(node.body)).jumps or has_jumps(node)


def straight(node: ast.While | ast.For, prefix: str, at: Place) -> Straight:
    """A loop without jumps; the names of new variables begin with `prefix`.

    at: where in the source a node is.  Raises Unsupported for programs that would become too large.
    """
    if not leaves(node):
        return Straight(node.body, "", (), node.orelse)
    rewriter = _Rewriter(prefix, at)
    body = rewriter.block(node.body)
    go = ast.copy_location(ast.Name(rewriter.go, ast.Load()), node)
    after, last = list[ast.stmt](), list[ast.stmt]()
    if node.orelse:
        after.append(ast.copy_location(ast.If(go, node.orelse, []), node.orelse[0]))
    if rewriter.returns and not rewriter.breaks and _endless(node):
        last.append(rewriter.returns.pop()[1])  # nothing else ends the loop
    for flag, statement in rewriter.returns:
        test = ast.copy_location(ast.Name(flag, ast.Load()), statement)
        after.append(ast.copy_location(ast.If(test, [statement], []), statement))
    return Straight(body, rewriter.go, rewriter.flags, [*after, *last])


class _Rewriter:
    def __init__(self, prefix: str, at: Place) -> None:
        self.prefix, self.go, self.at = prefix, f"{prefix}_go", at
        self.returns: list[tuple[str, ast.Return]] = []
        self.flags: tuple[str, ...] = ()  # of all of them
        self.breaks = False
        self.inner = 0  # returns in loops within, so far
        self.size = 0

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Statements up to the first jump, the rest in those ways that come to it."""
        done: list[ast.stmt] = []
        for position, node in enumerate(body):
            self.size += 1
            if self.size > LARGEST:
                raise Unsupported(
                    "so many ways through a loop over whole arrays that is left by jumps",
                    self.at(node),
                )
            if isinstance(node, ast.Break | ast.Continue | ast.Return):
                return [*done, *self.jump(node)]
            if isinstance(node, ast.If) and (has_jumps(node) or names_in([node]).jumps):
                return [*done, self.ways(node, body[position + 1 :])]
            if isinstance(node, ast.For | ast.While) and names_in([node]).jumps:
                inner = self.returning(node)
                return [*done, *self.block([*inner, *body[position + 1 :]])]
            if names_in([node]).jumps or _holds_jump(node):
                what = type(node).__name__.lower()
                raise Unsupported(
                    f"a jump out of a `{what}` in a loop over whole arrays", self.at(node)
                )
            done.append(node)
        return done or [ast.Pass()]

    def jump(self, node: ast.stmt) -> list[ast.stmt]:
        """What remains of a jump: the variables that say it was reached."""
        if isinstance(node, ast.Continue):
            return [ast.Pass()]
        self.breaks = self.breaks or isinstance(node, ast.Break)
        left = [_assigned(self.go, False, node)]
        if isinstance(node, ast.Return):
            self.returns.append((f"{self.prefix}_return_{len(self.returns)}", node))
            self.flags = tuple(flag for flag, _ in self.returns)
            left.append(_assigned(self.returns[-1][0], True, node))
        return left

    def returning(self, node: ast.For | ast.While) -> list[ast.stmt]:
        """A loop within that returns: it is left by `break`, and the `return` comes after it."""
        leaving = _Leaving(self, node)
        inner: ast.For | ast.While = copied(node)
        leaving.generic_visit(inner)
        before = [_assigned(flag, False, node) for flag, _ in leaving.found]
        after: list[ast.stmt] = []
        for flag, statement in leaving.found:
            test = ast.copy_location(ast.Name(flag, ast.Load()), statement)
            after.append(ast.copy_location(ast.If(test, [statement], []), statement))
        return [*before, inner, *after]

    def ways(self, node: ast.If, rest: list[ast.stmt]) -> ast.If:
        """An `if` that jumps on one way, with what follows it on the other."""
        yes, no = self.block([*node.body, *rest]), self.block([*node.orelse, *rest])
        return ast.fix_missing_locations(ast.copy_location(ast.If(node.test, yes, no), node))


class _Leaving(ast.NodeTransformer):
    """Makes every `return` of a loop a `break`, after a variable that says which it was."""

    def __init__(self, rewriter: _Rewriter, loop: ast.For | ast.While) -> None:
        self.rewriter, self.loop = rewriter, loop
        self.found: list[tuple[str, ast.Return]] = []

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        self.rewriter.inner += 1
        flag = f"{self.rewriter.prefix}_inner_{self.rewriter.inner}"
        self.found.append((flag, node))
        return [_assigned(flag, True, node), ast.copy_location(ast.Break(), node)]

    def visit_For(self, node: ast.For) -> Any:
        return self.within(node)

    def visit_While(self, node: ast.While) -> Any:
        return self.within(node)

    def within(self, node: ast.For | ast.While) -> Any:
        """A loop in this one: what it returns goes on from loop to loop."""
        if not names_in([node]).jumps:
            return node
        return [
            self.visit(s) if isinstance(s, ast.If) else s for s in self.rewriter.returning(node)
        ]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node


def _endless(node: ast.While | ast.For) -> bool:
    """Whether only a jump ends a loop."""
    test = node.test if isinstance(node, ast.While) else None
    return isinstance(test, ast.Constant) and bool(test.value)


def _assigned(name: str, value: bool, like: ast.stmt) -> ast.stmt:
    target = ast.copy_location(ast.Name(name, ast.Store()), like)
    constant = ast.copy_location(ast.Constant(value), like)
    return ast.copy_location(ast.Assign([target], constant), like)


def _holds_jump(node: ast.stmt) -> bool:
    """Whether a statement that is no loop has a break or continue in it."""
    if isinstance(node, ast.For | ast.While | ast.FunctionDef):
        return False
    return any(isinstance(n, ast.Break | ast.Continue) for n in ast.walk(node))
