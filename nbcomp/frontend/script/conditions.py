"""Conditions inside expressions: `a if t else b`, `and`, `or`, `not`, chains of comparisons.

They are rewritten into calls of an `Asker`, which knows what to do where the truth of something is
known at run time only.  Knows Python's syntax; what is done is the asker's business.
"""

from __future__ import annotations

import ast
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

ASKER = "nbcomp_asks"  # the name under which a rewritten statement finds its asker

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda a, b: a in b,
    "NotIn": lambda a, b: a not in b,
}


class Asker(ABC):
    """Python's own meaning of conditions; `choose` is what differs at run time."""

    @abstractmethod
    def choose(self, test: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
        """`yes() if test else no()`"""

    @abstractmethod
    def attempt(self) -> AbstractContextManager[None]:
        """Around what the program may catch the errors of."""

    @abstractmethod
    def negated(self, value: Any) -> Any:
        """`not value`"""

    def conjunction(self, first: Any, *later: Callable[[], Any]) -> Any:
        """`first and later() and …`"""
        if not later:
            return first
        rest = later[1:]
        return self.choose(first, lambda: self.conjunction(later[0](), *rest), lambda: first)

    def disjunction(self, first: Any, *later: Callable[[], Any]) -> Any:
        """`first or later() or …`"""
        if not later:
            return first
        rest = later[1:]
        return self.choose(first, lambda: first, lambda: self.disjunction(later[0](), *rest))

    def chain(self, left: Any, *pairs: Any) -> Any:
        """`left < a < b`: pairs are names of comparisons and functions that give the values."""
        name, right = pairs[0], pairs[1]()
        first = COMPARISONS[name](left, right)
        if len(pairs) == 2:
            return first
        return self.choose(first, lambda: self.chain(right, *pairs[2:]), lambda: first)


class _Rewriter(ast.NodeTransformer):
    changed = False

    def _ask(self, node: ast.expr | ast.stmt, method: str, *args: ast.expr) -> ast.expr:
        self.changed = True
        function = ast.Attribute(ast.Name(ASKER, ast.Load()), method, ast.Load())
        call = ast.copy_location(ast.Call(function, list(args), []), node)
        return ast.fix_missing_locations(call)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        return self._ask(node, "choose", node.test, later(node.body), later(node.orelse))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        method = "conjunction" if isinstance(node.op, ast.And) else "disjunction"
        return self._ask(node, method, node.values[0], *map(later, node.values[1:]))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return self._ask(node, "negated", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        pairs: list[ast.expr] = []
        for op, right in zip(node.ops, node.comparators, strict=True):
            pairs += [ast.Constant(type(op).__name__), later(right)]
        return self._ask(node, "chain", node.left, *pairs)

    def visit_Try(self, node: ast.Try) -> ast.stmt:
        self.generic_visit(node)
        node.body = [self._attempted(node, node.body)]
        return node

    def visit_TryStar(self, node: ast.TryStar) -> ast.stmt:
        self.generic_visit(node)
        node.body = [self._attempted(node, node.body)]
        return node

    def visit_With(self, node: ast.With) -> ast.stmt:
        self.generic_visit(node)
        node.body = [self._attempted(node, node.body)]
        return node

    def _attempted(self, node: ast.stmt, body: list[ast.stmt]) -> ast.stmt:
        item = ast.withitem(self._ask(node, "attempt"), None)
        return ast.fix_missing_locations(ast.copy_location(ast.With([item], body), node))


def later(node: ast.expr) -> ast.expr:
    """An expression that is evaluated when it is asked for."""
    arguments = ast.arguments([], [], None, [], [], None, [])
    return ast.copy_location(ast.Lambda(arguments, node), node)


def rewritten(node: ast.stmt) -> tuple[ast.stmt, bool]:
    """The statement with its conditions as calls, and whether it has any."""
    kinds = ast.IfExp | ast.BoolOp | ast.Compare | ast.Not | ast.Try | ast.TryStar | ast.With
    parts = list(ast.walk(node))
    if not any(isinstance(n, kinds) for n in parts):
        return node, False
    if any(isinstance(n, ast.NamedExpr) for n in parts):
        return node, False  # what it assigns would stay inside
    rewriter = _Rewriter()
    return rewriter.visit(copied(node)), rewriter.changed


def copied(node: Any) -> Any:
    """A tree that may be changed."""
    if isinstance(node, list):
        return [copied(n) for n in node]
    if not isinstance(node, ast.AST):
        return node
    fields = {name: copied(value) for name, value in ast.iter_fields(node)}
    return ast.copy_location(type(node)(**fields), node)
