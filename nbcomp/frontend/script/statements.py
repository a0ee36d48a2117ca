"""Statements of element code, and functions that are written out where they are called."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from nbcomp.errors import CaptureError
from nbcomp.frontend.script.assignments import Restart, first_line
from nbcomp.frontend.script.expressions import Frame
from nbcomp.frontend.script.loops import Key, LoopWriter, leaves
from nbcomp.frontend.script.source import Source
from nbcomp.frontend.script.values import (
    NotElements,
    Number,
    Raises,
    View,
    Way,
    carrier,
    describe,
    is_numeric,
    narrowed,
    numeric,
    union,
)
from nbcomp.loop.grammar import (
    Block,
    Leave,
    Stmt,
)


class Statements(LoopWriter):
    """The statements of one region of a function, and of the functions written out in it."""

    def stmt_Return(self, node: ast.Return) -> None:
        value = None if node.value is None else self.value(node.value)
        if isinstance(value, View) and not value.axes:
            value = self.element(value)
        value = self.frozen(value)
        if self.leaves_to_caller() and not self.can_leave(value):
            raise NotElements("part of an array is returned", node)
        self.frame.results.append(value)
        leaves = _numbers(value)
        known = self.result_ways.setdefault(self.frame_key(), [n.ways for n in leaves])
        self.check_shape(value, len(known), len(leaves))
        for k, n in enumerate(leaves):
            before, known[k] = known[k], union(known[k], n.ways)
            if _memory(known[k]) != _memory(before):
                raise Restart
            self.put(self.memory(f"{self.frame.label}_{k}", known[k]), n)
        self.add(Leave(self.frame.label, self.location))
        self.dead = True

    @abstractmethod
    def leaves_to_caller(self) -> bool:
        """Whether what is returned leaves the kernel."""

    def can_leave(self, value: Any) -> bool:
        """Whether statements on whole arrays can have a value: no part of an array."""
        if isinstance(value, tuple):
            return all(map(self.can_leave, value))
        if not isinstance(value, View):
            return True
        return value.whole and id(value.memory.buffer) not in self.arrays

    def frame_key(self) -> Key:
        """The function being written, as called from here."""
        return self.path, id(self.frame.source.node)

    def check_shape(self, value: Any, expected: int, found: int) -> None:
        """All returns give the same things, but for the numbers in them."""
        if expected != found or not _alike(self.frame.results[0], value):
            raise CaptureError(
                f"{self.frame.source.name} returns {describe(self.frame.results[0])} on one way and"
                f" {describe(value)} on another",
                self.location,
                "return the same number of values of the same types everywhere",
            )

    def run_function(
        self, source: Source, lookup: Callable[[str], Any], bound: dict[str, Any]
    ) -> Any:
        """Write a function's body; its result."""
        frame = Frame(source, {}, lookup, self.fresh(f"{source.name.strip('<>')}_return"))
        values = {k: self.frozen(v) for k, v in bound.items()}
        outer, self.frame = self.frame, frame
        eager, scope, self.scope = self.eager, self.scope, frame.label
        try:
            self.start_flags(source.body)
            for name, value in values.items():
                self.bind(name, value)
            with self.body() as body:
                self.block(list(source.body))
                fell = not self.dead
                self.dead = False
                if fell:
                    self.stmt_Return(ast.Return(None))
                    self.dead = False
            self.add_function(frame, body)
            return self.result_of(frame)
        finally:
            self.frame, self.eager, self.scope = outer, eager, scope

    def add_function(self, frame: Frame, body: list[Stmt]) -> None:
        """The body, without the last jump to its own end."""
        if body and isinstance(body[-1], Leave) and body[-1].label == frame.label:
            body = body[:-1]
        if leaves(body, frame.label):
            self.add(Block(tuple(body), self.location, frame.label))
        else:
            self.stmts.extend(body)

    def result_of(self, frame: Frame) -> Any:
        """What a function returned, its numbers read from memory."""
        returned = [_numbers(r) for r in frame.results]
        leaves = []
        for k in range(len(returned[0]) if returned else 0):
            ways = union(*(numbers[k].ways for numbers in returned))
            whole = self.memory(f"{frame.label}_{k}", self.result_ways[self.frame_key()][k])
            held = narrowed(whole, ways)
            leaves.append(None if held is None else self.keep(self.value_of(held)))
        return _with_numbers(frame.results[0], iter(leaves)) if frame.results else None

    def block(self, body: list[ast.stmt]) -> None:
        """Statements in order, up to the first that cannot be reached."""
        for stmt in body:
            if self.dead:
                return
            self.statement(stmt)

    def statement(self, node: ast.stmt) -> None:
        """One statement."""
        method = getattr(self, f"stmt_{type(node).__name__}", None)
        if method is None:
            raise NotElements(f"`{first_line(node)}` in a loop over elements", node)
        self.location = self.frame.source.at(node)
        self.eager = _changes_things(node)
        self.placed, self.cuts = {}, {}
        try:
            method(node)
        except Raises as raised:
            self.location = self.frame.source.at(node)
            text = str(raised).replace("{", "{{").replace("}", "}}")
            self.fail(type(raised.error).__name__, text)
            self.dead = True


def _alike(a: Any, b: Any) -> bool:
    """Whether two results differ in their numbers only."""
    if a is b:
        return True
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_alike, a, b))
    if is_numeric(a) or is_numeric(b):
        return all(x is None or is_numeric(x) for x in (a, b))
    if isinstance(a, View) and isinstance(b, View):
        return a.memory is b.memory and a.whole and b.whole
    return a is b or a == b


def _numbers(value: Any) -> list[Number]:
    """The numbers in a result, in order."""
    if isinstance(value, tuple):
        return [s for v in value for s in _numbers(v)]
    return [numeric(value)] if value is None or is_numeric(value) else []


def _with_numbers(value: Any, leaves: Any) -> Any:
    """The result with these numbers in place of its own."""
    if isinstance(value, tuple):
        return tuple(_with_numbers(v, leaves) for v in value)
    return next(leaves) if value is None or is_numeric(value) else value


def _memory(ways: tuple[Way, ...]) -> tuple[Any, ...]:
    """What the memory of a number of these kinds depends on."""
    return carrier(ways), *(way.kind for way in ways)


def _changes_things(node: ast.stmt) -> bool:
    """Whether evaluating the statement's expressions may change variables or arrays: a call of a
    function, or an assignment within."""
    own: list[ast.AST] = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
    return any(isinstance(n, ast.NamedExpr | ast.Call) for part in own for n in ast.walk(part))
