"""Loops over whole arrays whose rounds are counted at run time: one `While` node.

The body is traced once, on stand-ins for the variables and arrays that it changes.  Knows tracers,
memory and graphs; nothing of syntax.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.frontend.location import here
from nbcomp.frontend.script.branching import (
    Contents,
    Env,
    boundary,
    common,
    described,
    link,
    mixed,
    mixed_words,
    needed,
    outer_nodes,
    results_of,
    subgraph,
    traced,
)
from nbcomp.frontend.session import Session
from nbcomp.frontend.storage import Place, Storage
from nbcomp.frontend.tracer import Tracer
from nbcomp.graph.branches import While
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.op import Input
from nbcomp.ops.operand import cast
from nbcomp.types import DType, TensorType

ATTEMPTS = 4  # at the types of what is carried


@dataclass(frozen=True)
class Carried:
    """A variable that a loop changes: its value before, and what it is to Python."""

    name: str
    start: Node
    scalar: bool
    python: type | None


class Repeat:
    """One loop.

    test: gives the condition as a bool node; body: changes the variables.  Both work on `env`.
    once: there is at least one round, so what each round gives a value has one after the loop.
    """

    def __init__(
        self,
        session: Session,
        env: Env,
        assigned: Sequence[str],
        test: Callable[[], Node],
        body: Callable[[], None],
        once: bool = False,
    ) -> None:
        self.session, self.env = session, env
        self.test, self.body, self.once = test, body, once
        self.unset = [n for n in assigned if n not in env] if once else []
        self.assigned = [n for n in assigned if n in env]
        self.outer = outer_nodes(session, env.values())
        self.widened: dict[str, DType] = {}

    def run(self) -> list[str]:
        """Put the node in place: variables and arrays have their values after the loop.

        Gives the variables that hold nothing usable then.
        """
        storages, values = self._first_round()
        for name in self.unset:
            self._begin(name, values.get(name))
        for _ in range(ATTEMPTS):
            carried = self._carried()
            done = self._attempt(carried, storages)
            if done:
                kept = {c.name for c in carried}
                return [n for n in self.assigned if n not in kept]
        raise Unsupported("the types of what a loop changes do not settle", here())

    def _begin(self, name: str, value: Any) -> None:
        """Carry a variable that every round sets: it has zeros that nobody reads to begin with."""
        found = traced(value)
        if found is not None:
            (node, (scalar, python)), shape = found, found[0].shape
            zeros = self.session.call(np.zeros, (shape, node.type.dtype), {})
            self.env[name] = tracer = Tracer(self.session, zeros._place, scalar)
            tracer._python = python
            self.assigned.append(name)

    def _first_round(self) -> tuple[list[Storage], Env]:
        """The arrays that the body writes to, and the variables after it, found by tracing it once
        for nothing."""
        before = Contents(self.session, self.env.values())
        start = dict(self.env)
        for k, c in enumerate(self._carried()):
            if c.scalar:  # a number that changes is not known in any round, the first one included
                node = _named(c, _stand_in(k, c.start.type, c.start))
                self.env[c.name] = _tracer(self.session, c, node)
        saved = dict(self.env)
        self.test()
        self.body()
        found, values = list(before.changed()), dict(self.env)
        # `x *= 2` on an array gives the name the array it had.
        kept = {n for n, v in saved.items() if type(v) is Tracer and self.env.get(n) is v}
        self.assigned = [n for n in self.assigned if n not in kept]
        before.take_back()
        self._restore(start)
        return found, values

    def _restore(self, saved: Env) -> None:
        self.env.clear()
        self.env.update(saved)

    def _carried(self) -> list[Carried]:
        result = []
        for name in self.assigned:
            found = traced(self.env[name])
            if found is None and type(self.env[name]) is int:
                raise Unsupported(f"`{name}` is a Python int beyond 64 bits", here())
            if found is None:
                continue
            node, (scalar, python) = found
            if name in self.widened:
                node, python = cast(node, self.widened[name]), float if python else None
            result.append(Carried(name, node, scalar, python))
        return result

    def _attempt(self, carried: list[Carried], storages: list[Storage]) -> bool:
        before = Contents(self.session, self.env.values())
        saved = dict(self.env)
        starts = [*(c.start for c in carried), *(s.node for s in storages)]
        inside = [_stand_in(k, n.type, n) for k, n in enumerate(starts)]
        inside[: len(carried)] = [_named(c, n) for c, n in zip(carried, inside, strict=False)]
        for c, node in zip(carried, inside, strict=False):
            self.env[c.name] = _tracer(self.session, c, node)
        heads = {c.name: self.env[c.name]._place.storage for c in carried if not c.scalar}
        for s, node in zip(storages, inside[len(carried) :], strict=True):
            s.node, s.version = node, s.version + 1
        test = self.test()
        self.body()
        after = dict(self.env)
        changed = before.changed()
        ends = [s.node for s in storages]
        if any(s.version for s in heads.values()):
            raise Unsupported("a loop that writes to an array that it also replaces", here())
        sources = {name: _sources(saved[name], after.get(name)) for name in heads}
        if any(found & {*storages, *changed} for found in sources.values()):
            raise Unsupported("a loop that gives another name to an array it writes to", here())
        checks = before.take_back()
        self._restore(saved)
        if set(changed) - set(storages):
            raise Unsupported("a loop that writes to other arrays in every round", here())
        news = []
        for c in carried:
            new = self._next(c, after.get(c.name))
            if new is None:
                return False
            news.append(new)
        self._place(carried, storages, starts, inside, test, [*news, *ends], checks)
        link([(self.env[name]._place.storage, sources[name]) for name in heads])
        return True

    def _next(self, c: Carried, value: Any) -> Node | None:
        """A variable's value after a round; None where another type has to be carried."""
        found = traced(value)
        if found is not None and c.scalar and mixed(c.start, c.python, found[0], found[1][1]):
            floats = self.once and (c.python, found[1][1]) == (int, float)
            if not floats:  # which it is after the first round
                raise Unsupported(mixed_words(c.name, c.python, found[1][1]), here())
        if found is not None and found[0].type == c.start.type:
            return found[0]
        wider = common(c.start, c.python, found[0], found[1][1]) if found and c.scalar else None
        if found and wider is not None and c.start.type.dtype != wider:
            self.widened[c.name] = wider
            return None
        if found and wider is not None:
            return cast(found[0], wider)
        raise Unsupported(
            f"`{c.name}` is {c.start.type} before a round of the loop and {described(value)} after",
            here(),
            "it must be of one type and shape in all rounds",
        )

    def _place(
        self,
        carried: list[Carried],
        storages: list[Storage],
        starts: list[Node],
        inside: list[Node],
        test: Node,
        ends: list[Node],
        checks: list[Node],
    ) -> None:
        outputs = [test, *ends]
        others = [n for n in boundary(outputs, self.outer) if n not in set(inside)]
        operands = [*inside, *others]
        loop = While(subgraph("test", operands, [test]), subgraph("body", operands, ends))
        needed(self.session, checks, outputs)
        made = apply(loop, *starts, *others)
        results = results_of(made)
        if checks:
            self.session.effects.append(made)
        for c, node in zip(carried, results, strict=False):
            self.env[c.name] = _tracer(self.session, c, _named(c, node))
        for s, node in zip(storages, results[len(carried) :], strict=True):
            Place(s).write(node)


def _sources(*values: Any) -> set[Storage]:
    """The storages that an array may be."""
    return {s for v in values if type(v) is Tracer for s in v._place.storage.sharing()}


def _stand_in(k: int, t: TensorType, like: Node) -> Node:
    return Node(Input(k, t), (), t, None, like.name, False)


def _named(c: Carried, node: Node) -> Node:
    return replace(node, weak=c.python in (int, float), name=c.name)


def _tracer(session: Session, c: Carried, node: Node) -> Tracer:
    tracer = Tracer(session, Place(Storage(node)), c.scalar)
    tracer._python = c.python
    return tracer
