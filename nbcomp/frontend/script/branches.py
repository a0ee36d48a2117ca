"""Branches of element code, what ends it early, and what variables hold where ways meet.

Where two ways meet a variable is of the kind that holds the numbers of both; what cannot be one
thing is an error once it is read.
"""

from __future__ import annotations

import ast
import builtins
from abc import abstractmethod
from contextlib import contextmanager
from typing import Any

from nbcomp.frontend.script.assignments import Assignments, first_line
from nbcomp.frontend.script.choices import Env
from nbcomp.frontend.script.values import (
    Local,
    Maybe,
    NotElements,
    Number,
    Scalar,
    Torn,
    Variable,
    Varying,
    describe,
    in_memory,
    is_number,
    numeric,
    union,
)
from nbcomp.loop.grammar import If, Stmt
from nbcomp.sizes import Size
from nbcomp.types import BOOL


class Branches(Assignments):
    """`if`, `assert`, `raise`."""

    dead = False  # whether the statement being written cannot be reached

    @abstractmethod
    def block(self, body: list[ast.stmt]) -> None:
        """Statements in order, up to the first that cannot be reached."""

    untold: ast.stmt | None = None  # a statement whose error only Python can make

    def message(self, node: ast.stmt, args: list[ast.expr]) -> str:
        """The message of an error; what is no text known now is left to Python's rerun."""
        match args:
            case []:
                return ""
            case [ast.Constant(str(text))]:
                return text.replace("{", "{{").replace("}", "}}")
        self.untold = node
        return ""

    def stmt_Assert(self, node: ast.Assert) -> None:
        test = self.truth(self.scalar_of(self.value(node.test)))
        if not isinstance(test, Scalar) and test:
            return
        message = self.message(node, [node.msg] if node.msg else [])
        if isinstance(test, Scalar):
            bad = self.apply("logical_not", test.expr, dtype=BOOL)
            self.fail_if(bad, "AssertionError", message)
            self.refine(node.test, True)
        else:
            self.fail("AssertionError", message)
            self.dead = True

    def stmt_Raise(self, node: ast.Raise) -> None:
        kind, args = "", list[ast.expr]()
        match node.exc:
            case ast.Name(kind):
                pass
            case ast.Call(ast.Name(kind), args):
                pass
        known = getattr(builtins, kind, None)
        if not (isinstance(known, type) and issubclass(known, Exception)):
            raise NotElements(f"`{first_line(node)}` in a loop over elements", node)
        self.fail(kind, self.message(node, args))
        self.dead = True

    def stmt_If(self, node: ast.If) -> None:
        test = self.truth(self.scalar_of(self.value(node.test)))
        if not isinstance(test, Scalar):
            self.block(node.body if test else node.orelse)
            return
        location = self.location
        outer = dict(self.frame.env)
        sides: list[tuple[list[Stmt], Env | None]] = []
        for statements, holds in ((node.body, True), (node.orelse, False)):
            self.frame.env = dict(outer)
            self.refine(node.test, holds)
            with self.body() as body, self.nested():
                self.block(statements)
            sides.append((body, None if self.dead else self.frame.env))
            self.dead = False
        self.location = location
        self.frame.env = self.met(sides)
        self.dead = sides[0][1] is None and sides[1][1] is None
        (yes, _), (no, _) = sides
        if not yes and not no:
            return
        if not yes:
            no_test = self.apply("logical_not", test.expr, dtype=BOOL)
            self.add(If(no_test, tuple(no), (), location))
        else:
            self.add(If(test.expr, tuple(yes), tuple(no), location))

    @contextmanager
    def nested(self) -> Any:
        """Inside control flow: a `return` from here is a jump."""
        self.frame.nested += 1
        try:
            yield
        finally:
            self.frame.nested -= 1

    def met(self, sides: list[tuple[list[Stmt], Env | None]]) -> Env:
        """What variables hold where several ways meet; each way is given what makes them agree."""
        live = [(body, env) for body, env in sides if env is not None]
        if not live:
            return dict(self.frame.env)
        names = dict.fromkeys(name for _, env in live for name in env)
        result: Env = {}
        for name in names:
            found = [env.get(name, MISSING) for _, env in live]
            result[name] = self.met_variable(name, found, [body for body, _ in live])
        return result

    def met_variable(self, name: str, found: list[Any], bodies: list[list[Stmt]]) -> Any:
        missing = any(f is MISSING or isinstance(f, Maybe) for f in found)
        values = [f.value if isinstance(f, Maybe) else f for f in found if f is not MISSING]
        first = values[0]
        if all(same(first, v) for v in values[1:]):
            merged = first
        elif all(isinstance(v, Scalar) and v.expr is first.expr for v in values):
            low, high = min(v.low for v in values), max(v.high for v in values)
            merged = Scalar(first.kind, first.expr, low, high)
        elif all(v is None or in_memory(v) for v in values):
            merged = self.met_numbers(name, found, bodies)
        else:
            other = next(v for v in values if not same(first, v))
            merged = Torn(describe(first), describe(other))
        return Maybe(merged) if missing else merged

    def met_numbers(self, name: str, found: list[Any], bodies: list[list[Stmt]]) -> Variable:
        """Numbers of perhaps different kinds: a variable that holds any of them."""
        held = {k: _settled(f) for k, f in enumerate(found) if f is not MISSING}
        numbers = {k: self.as_number(value) for k, value in held.items()}
        target = self.memory(name, union(*(n.ways for n in numbers.values())))
        for k, n in numbers.items():
            with self.body() as stmts:
                self.put(target, n, held[k])
            bodies[k].extend(stmts)
        return target

    def as_number(self, value: Any) -> Number:
        """What a variable holds, as a number."""
        value = _settled(value)
        return self.value_of(value) if isinstance(value, Local | Varying) else numeric(value)


MISSING: Any = object()


def same(a: Any, b: Any) -> bool:
    """Whether two variables hold the same, as far as is known now."""
    if a is b:
        return True
    if isinstance(a, Local | Varying) and isinstance(b, Local | Varying):
        return a.buffer is b.buffer and a.ways == b.ways
    if isinstance(a, Size) and isinstance(b, Size):
        return a.key == b.key
    if is_number(a) and is_number(b) and not isinstance(a, Scalar) and not isinstance(b, Scalar):
        return type(a) is type(b) and repr(a) == repr(b)
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return all(map(same, a, b))
    return isinstance(a, str) and a == b


def _settled(value: Any) -> Any:
    return value.value if isinstance(value, Maybe) else value
