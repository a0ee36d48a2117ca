"""Comparisons, `and`, `or` and conditional expressions of element code; and what a condition that
holds tells of the variables of the function being written.

Knows how truths are combined; what an expression's value is, `expressions` says.
"""

from __future__ import annotations

import ast
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from nbcomp.errors import NbcompError
from nbcomp.frontend.script.arithmetic import COMPARE
from nbcomp.frontend.script.reductions import Reductions
from nbcomp.frontend.script.source import Source
from nbcomp.frontend.script.values import (
    NONE,
    Either,
    Local,
    NotElements,
    Raises,
    Scalar,
    Varying,
    describe,
    is_numeric,
    narrowed,
    number,
    numeric,
    union,
)
from nbcomp.loop.grammar import Stmt
from nbcomp.record import Location
from nbcomp.types import BOOL

Env = dict[str, Any]
Places = dict[str, Location | None]  # where variables were assigned


@dataclass(eq=False)
class Frame:
    """A function being written out: its variables, and where its other names are found."""

    source: Source
    env: Env
    lookup: Callable[[str], Any]
    label: str = ""  # of the block a `return` leaves
    results: list[Any] = field(default_factory=list)  # what it returned so far
    nested: int = 0  # control flow around the statement being written
    loops: list[Any] = field(default_factory=list)
    places: Places = field(default_factory=dict)


class Choices(Reductions, ABC):
    """Conditions, in the frame that is being written."""

    frame: Frame

    @abstractmethod
    def value(self, node: ast.expr) -> Any:
        """An expression's value."""

    @abstractmethod
    def scalar_of(self, value: Any) -> Any:
        """A 0-d part of an array is its element."""

    @abstractmethod
    def each(self, compute: Callable[..., Any], *values: Any) -> Any:
        """compute(*values) of numbers, or for each element of arrays."""

    @abstractmethod
    def frozen(self, value: Any) -> Any:
        """A value that no later assignment changes."""

    def expr_Compare(self, node: ast.Compare) -> Any:
        left = self.frozen(self.value(node.left)) if len(node.ops) > 1 else self.value(node.left)
        result: Any = None
        sides = [left]

        def next_one(op: ast.cmpop, right: ast.expr) -> Any:
            sides.append(
                self.value(right) if len(node.ops) == 1 else self.frozen(self.value(right))
            )
            return self.one_comparison(op, sides[-2], sides[-1])

        for position, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            later = partial(next_one, op, right)
            result = self.both(result, later, True) if position else later()
            if len(sides) == position + 1:
                break  # known to be false already
        return result

    def one_comparison(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        if isinstance(op, ast.Is | ast.IsNot):
            return self.identity(isinstance(op, ast.Is), left, right)
        if isinstance(op, ast.In | ast.NotIn):
            return self.membership(op, left, right)
        python, fn = COMPARE[type(op)]
        return self.each(partial(self.compared, fn, python), left, right)

    def identity(self, wanted: bool, left: Any, right: Any) -> Any:
        """`left is right`, or `is not`."""
        if left is None:
            left, right = right, left
        if isinstance(left, Scalar | Either) and right is not None:
            raise NotElements("`is` between numbers", hint="use ==")
        same = self.is_none(left) if right is None else left is right
        return same if wanted else self.negated(same)

    def membership(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        """`x in (1, 2, 3)`"""
        if not isinstance(right, tuple | list):
            raise NotElements(f"`in` of {describe(right)}")
        left = self.frozen(self.scalar_of(left))
        found: Any = False
        for entry in right:
            equal = self.compared("equal", operator.eq, left, self.scalar_of(entry))
            found = self.both(found, partial(_identity, equal), False)
        return found if isinstance(op, ast.In) else self.negated(found)

    def expr_BoolOp(self, node: ast.BoolOp) -> Any:
        is_and = isinstance(node.op, ast.And)
        result = self.scalar_of(self.value(node.values[0]))
        for later in node.values[1:]:
            outer = dict(self.frame.env)
            self.refine(node.values[0], is_and)
            result = self.both(result, partial(self.number_at, later), is_and)
            self.frame.env = {**self.frame.env, **outer}
        return result

    def number_at(self, node: ast.expr) -> Any:
        """An expression's value, an element for a part without axes."""
        return self.scalar_of(self.value(node))

    def both(self, first: Any, later: Callable[[], Any], is_and: bool) -> Any:
        """`first and later()` or `first or later()`, the second evaluated only if need be."""
        truth = self.truth(first)
        if not isinstance(truth, Scalar):
            return later() if truth == is_and else first
        first = self.frozen(first)
        truth = self.truth(first)
        with self.body() as body, self.perhaps():
            second = later()
        if not is_numeric(second):
            raise NotElements(f"`and` and `or` of {describe(second)}")
        one, two = numeric(first), numeric(second)
        yes, no = (two, one) if is_and else (one, two)
        if body or not one.expr.dtype == two.expr.dtype == BOOL:
            bodies: tuple[list[Stmt], list[Stmt]] = (body, []) if is_and else ([], body)
            return self.one_of(truth.expr, yes, no, bodies)
        fn = "logical_and" if is_and else "logical_or"
        ways, expr = union(yes.ways, no.ways), self.apply(fn, one.expr, two.expr, dtype=BOOL)
        if len(ways) == 1:
            return Scalar(ways[0].kind, expr, 0, 1)
        return Either(ways, expr, self.choose(truth.expr, self.tag_of(yes), self.tag_of(no)))

    @contextmanager
    def perhaps(self) -> Iterator[None]:
        """Around what is evaluated on some ways only: it cannot end the statement."""
        try:
            yield
        except Raises as raised:
            raise NotElements(f"part of an expression always raises: {raised}") from None

    def expr_IfExp(self, node: ast.IfExp) -> Any:
        test = self.truth(self.scalar_of(self.value(node.test)))
        if not isinstance(test, Scalar):
            return self.value(node.body if test else node.orelse)
        test = self.keep(test)
        sides, bodies = [], []
        for branch, holds in ((node.body, True), (node.orelse, False)):
            outer = dict(self.frame.env)
            self.refine(node.test, holds)
            with self.body() as body, self.perhaps():
                sides.append(self.scalar_of(self.value(branch)))
            self.frame.env = outer
            bodies.append(body)
        return self.one_of(test.expr, sides[0], sides[1], bodies)

    # ------------------------------------------------------------------- what conditions tell

    def refine(self, test: ast.expr, holds: bool) -> None:
        """Narrow the bounds of variables by a condition that holds, or does not, from here on."""
        match test:
            case ast.UnaryOp(ast.Not(), operand):
                self.refine(operand, not holds)
            case ast.BoolOp(op, values) if isinstance(op, ast.And) == holds:
                for v in values:
                    self.refine(v, holds)
            case ast.Compare(left, ops, comparators) if holds or len(ops) == 1:
                sides = [left, *comparators]
                for a, relation, b in zip(sides, ops, comparators, strict=False):
                    self.narrow(a, type(relation), b, holds)

    def narrow(self, a: ast.expr, op: type[ast.cmpop], b: ast.expr, holds: bool) -> None:
        """One comparison of a variable with something whose bounds are known."""
        if op in (ast.Is, ast.IsNot):
            self.narrow_none(a, b, (op is ast.Is) == holds)
            return
        op = op if holds else _OPPOSITE.get(op, op)
        if not holds and op not in _MIRROR:
            return
        for one, relation, other in ((a, op, b), (b, _MIRROR.get(op, op), a)):
            found = self.frame.env.get(one.id) if isinstance(one, ast.Name) else None
            if not (isinstance(found, Local | Scalar) and found.kind.is_int):
                continue
            bounds = self.bounds_of(other)
            if bounds is not None:
                allowed = _ALLOWED.get(relation)
                low, high = allowed(*bounds) if allowed else (None, None)
                assert isinstance(one, ast.Name)
                new_low = found.low if low is None else max(found.low, low)
                new_high = found.high if high is None else min(found.high, high)
                self.frame.env[one.id] = replace(found, low=new_low, high=new_high)

    def narrow_none(self, a: ast.expr, b: ast.expr, is_none: bool) -> None:
        """A variable is None from here on, or not."""
        match a, b:
            case ast.Name(name), ast.Constant(None):
                found = self.frame.env.get(name)
                if isinstance(found, Varying):
                    ways = tuple(w for w in found.ways if (w.kind == NONE) == is_none)
                    self.frame.env[name] = narrowed(found, ways) if ways else found

    def bounds_of(self, node: ast.expr) -> tuple[int, int] | None:
        """The bounds of a whole number, found without writing anything; None if not known."""
        env = dict(self.frame.env)
        with self.discarded():
            try:
                s = number(self.scalar_of(self.value(node)))
            except (NotElements, Raises, NbcompError):
                return None
            finally:
                self.frame.env = env
        return (s.low, s.high) if s.kind.is_int else None


_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
_MIRROR: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
    ast.Eq: ast.Eq,
}
_ALLOWED: dict[type[ast.cmpop], Callable[[int, int], tuple[int | None, int | None]]] = {
    ast.Lt: lambda low, high: (None, high - 1),
    ast.LtE: lambda low, high: (None, high),
    ast.Gt: lambda low, high: (low + 1, None),
    ast.GtE: lambda low, high: (low, None),
    ast.Eq: lambda low, high: (low, high),
}


def _identity(value: Any) -> Any:
    return value
