"""Conditions inside expressions: `a if t else b`, `and`, `or`, `not`, chains of comparisons; and
Python's functions of numbers.

They are rewritten into calls of an `Asker`, which knows what to do where the truth of something, or
a number, is known at run time only.  Knows Python's syntax; what is done is the asker's business.
"""

from __future__ import annotations

import ast
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
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

    @abstractmethod
    def number(self, function: Any, *args: Any) -> Any:
        """A call of what may be one of Python's functions of numbers."""

    def given_back(self, value: Any = None) -> GivenBack:
        """What a `return` within a statement gives."""
        return GivenBack(value)

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


@dataclass(frozen=True, eq=False)
class GivenBack:
    """The value of a `return` within a statement that is run as a whole."""

    value: Any


NUMBERS: tuple[Any, ...] = (int, float, *(f for f in vars(math).values() if callable(f)))
NUMBER_NAMES = {f.__name__ for f in NUMBERS}

# Statements with statements in them that are run as a whole.
WHOLE = (ast.Try, ast.TryStar, ast.With, ast.Match)


class _Rewriter(ast.NodeTransformer):
    changed = False

    def __init__(self, node: ast.stmt) -> None:
        self.returns = isinstance(node, WHOLE)  # of the function, not of one made in it

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        return self._ask(node, "number", node.func, *node.args) if _of_numbers(node) else node

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        self.generic_visit(node)
        if self.returns:
            given = [] if node.value is None else [node.value]
            node.value = self._ask(node, "given_back", *given)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        outer, self.returns = self.returns, False
        self.generic_visit(node)
        self.returns = outer
        return node

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


def _of_numbers(node: ast.AST) -> bool:
    """Whether this may be a call of `int`, `float` or a function of `math`, by its name."""
    match node:
        case ast.Call(ast.Name(name) | ast.Attribute(ast.Name(), name), [_, *_], []):
            return name in NUMBER_NAMES and not any(isinstance(a, ast.Starred) for a in node.args)
    return False


def later(node: ast.expr) -> ast.Lambda:
    """An expression that is evaluated when it is asked for."""
    arguments = ast.arguments([], [], None, [], [], None, [])
    return ast.copy_location(ast.Lambda(arguments, node), node)


@lru_cache(maxsize=4096)
def rewritten(node: ast.stmt) -> tuple[ast.stmt, bool]:
    """The statement with its conditions as calls, and whether it has any."""
    kinds = (ast.IfExp, ast.BoolOp, ast.Compare, ast.Not, *WHOLE)
    parts = list(ast.walk(node))
    if not any(isinstance(n, kinds) or _of_numbers(n) for n in parts):
        return node, False
    if any(isinstance(n, ast.NamedExpr) for n in parts):
        return node, False  # what it assigns would stay inside
    rewriter = _Rewriter(node)
    return rewriter.visit(copied(node)), rewriter.changed


def copied(node: Any) -> Any:
    """A tree that may be changed."""
    if isinstance(node, list):
        return [copied(n) for n in node]
    if not isinstance(node, ast.AST):
        return node
    fields = {name: copied(value) for name, value in ast.iter_fields(node)}
    return ast.copy_location(type(node)(**fields), node)
