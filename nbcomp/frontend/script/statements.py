"""Statements of element code, and functions that are written out where they are called."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from nbcomp.errors import CaptureError
from nbcomp.frontend.script.assignments import Restart, first_line
from nbcomp.frontend.script.choices import Frame
from nbcomp.frontend.script.generators import Generators
from nbcomp.frontend.script.loops import leaves
from nbcomp.frontend.script.settling import Key
from nbcomp.frontend.script.source import Source
from nbcomp.frontend.script.values import (
    PY_INT,
    TAG,
    NotElements,
    Number,
    OneOf,
    Raises,
    Scalar,
    Variable,
    Varying,
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
    Load,
    Stmt,
    const,
)
from nbcomp.types import INT64


class Statements(Generators):
    """The statements of one region of a function, and of the functions written out in it."""

    def stmt_Return(self, node: ast.Return) -> None:
        value = None if node.value is None else self.value(node.value)
        if isinstance(value, View) and not value.axes:
            value = self.element(value)
        value = self.frozen(value)
        if self.leaves_to_caller() and not self.can_leave(value):
            raise NotElements("part of an array is returned", node)
        which = self.alternative(value)
        self.frame.results.append(value)
        leaves = _numbers(value)
        alternatives = self.result_ways.setdefault(self.frame_key(), [])
        if which == len(alternatives):
            alternatives.append([n.ways for n in leaves])
            if which:
                raise Restart
        if len(alternatives) > 1:
            self.store(self.local(f"{self.frame.label}_which", INT64), self.int_const(which))
        known = alternatives[which]
        for k, n in enumerate(leaves):
            before, known[k] = known[k], union(known[k], n.ways)
            if _memory(known[k]) != _memory(before):
                raise Restart
            self.put(self.result_memory(which, k), n)
        self.add(Leave(self.frame.label, self.location))
        self.dead = True

    def alternative(self, value: Any) -> int:
        """Which of the results that differ in more than their numbers this one is; raises
        CaptureError where they may not differ, since the program goes on with them."""
        shapes = _alternatives(self.frame.results)
        which = next((k for k, shape in enumerate(shapes) if _alike(shape, value)), len(shapes))
        if which and not self.leaves_to_caller():
            raise CaptureError(
                f"{self.frame.source.name} returns {describe(self.frame.results[0])} on one way and"
                f" {describe(value)} on another",
                self.location,
                "return the same number of values of the same types everywhere",
            )
        return which

    def result_memory(self, which: int, position: int) -> Variable:
        """The memory of one number of a result."""
        ways = self.result_ways[self.frame_key()][which][position]
        name = f"{self.frame.label}_{which}" if which else self.frame.label
        return self.memory(f"{name}_{position}", ways)

    def start_results(self) -> None:
        """What is returned on one way only is 0 on the others."""
        alternatives = self.result_ways.get(self.frame_key(), [])
        if len(alternatives) > 1:
            for which, known in enumerate(alternatives):
                for position, ways in enumerate(known):
                    memory = self.result_memory(which, position)
                    self.store(memory.buffer, const(0, memory.buffer.dtype))
                    if isinstance(memory, Varying):
                        self.store(memory.tag, const(ways[0].tag, TAG))

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
        shapes = _alternatives(frame.results)
        if not shapes:
            return None
        values = [self.result_like(frame, which, shape) for which, shape in enumerate(shapes)]
        if len(values) == 1:
            return values[0]
        which = Load(INT64, self.local(f"{frame.label}_which", INT64), ())
        return OneOf(self.keep(Scalar(PY_INT, which, 0, len(values) - 1)), tuple(values))

    def result_like(self, frame: Frame, which: int, shape: Any) -> Any:
        """One of the results that differ in more than their numbers."""
        returned = [_numbers(r) for r in frame.results if _alike(shape, r)]
        leaves = []
        for k in range(len(returned[0])):
            ways = union(*(numbers[k].ways for numbers in returned))
            held = narrowed(self.result_memory(which, k), ways)
            leaves.append(None if held is None else self.keep(self.value_of(held)))
        return _with_numbers(shape, iter(leaves))

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


def _alternatives(results: list[Any]) -> list[Any]:
    """One of each kind of results that differ in more than their numbers."""
    found = list[Any]()
    for value in results:
        if not any(_alike(other, value) for other in found):
            found.append(value)
    return found


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


@lru_cache(maxsize=4096)
def _changes_things(node: ast.stmt) -> bool:
    """Whether evaluating the statement's expressions may change variables or arrays: a call of a
    function, or an assignment within."""
    own: list[ast.AST] = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
    return any(isinstance(n, ast.NamedExpr | ast.Call) for part in own for n in ast.walk(part))
