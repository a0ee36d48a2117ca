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
from nbcomp.frontend.checks import results_of, results_to_reach
from nbcomp.frontend.script.branching import (
    Env,
    Undecided,
    described,
    link,
    mixed,
    traced,
)
from nbcomp.frontend.script.contents import Contents
from nbcomp.frontend.script.entries import unchanged
from nbcomp.frontend.script.heap import Slot
from nbcomp.frontend.script.subgraphs import boundary, outer_nodes, subgraph
from nbcomp.frontend.session import Session
from nbcomp.frontend.storage import Place, Storage
from nbcomp.frontend.tracer import MixedBool, Tracer
from nbcomp.graph.branches import While
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.op import Input
from nbcomp.ops.operand import constant
from nbcomp.record import Location
from nbcomp.types import BOOL

ATTEMPTS = 8  # at what is carried


class Grows(Unsupported):
    """An object gets other entries in each round of a loop."""


class Begins(Unsupported):
    """An int is a float from the second round of a loop on."""


Name = str | Slot  # a variable, or an entry of an object that is used like one


@dataclass(frozen=True)
class Carried:
    """A variable that a loop changes: its value before, and what it is to Python."""

    name: Name
    start: Node
    scalar: bool
    python: type | None

    @property
    def called(self) -> str:
        """Its name."""
        return _called(self.name)


class Repeat:
    """One loop.

    test: gives the condition as a bool node; body: changes the variables.  Both work on `env`.
    once: there is at least one round, so what each round gives a value has one after the loop.
    location: of the loop.  own: as of `Contents`.
    """

    def __init__(
        self,
        session: Session,
        env: Env,
        assigned: Sequence[str],
        test: Callable[[], Node],
        body: Callable[[], None],
        location: Location | None,
        own: frozenset[int] = frozenset(),
        once: bool = False,
    ) -> None:
        self.session, self.env = session, env
        self.location, self.own = location, own
        self.test, self.body, self.once = test, body, once
        self.unset = [n for n in assigned if n not in env] if once else []
        self.assigned: list[Name] = [n for n in assigned if n in env]
        self.storages: list[Storage] = []  # that the body writes to
        self.mixed: set[Name] = set()  # bools that are NumPy's in some rounds only
        self.outer = outer_nodes(Contents(session, env, own))

    def run(self) -> list[str]:
        """Put the node in place: variables and arrays have their values after the loop.

        Gives the variables that hold nothing usable then.
        """
        values = self._first_round()
        for name in self.unset:
            self._begin(name, values.get(name))
        for _ in range(ATTEMPTS):
            carried = self._carried()
            if self._attempt(carried):
                kept = {c.name for c in carried}
                return [n for n in self.assigned if isinstance(n, str) and n not in kept]
        raise Unsupported("what a loop changes does not settle", self.location)

    def _begin(self, name: str, value: Any) -> None:
        """Carry a variable that every round sets: it has zeros that nobody reads to begin with."""
        found = traced(value)
        if found is not None:
            (node, (scalar, python)), shape = found, found[0].shape
            zeros = self.session.call(np.zeros, (shape, node.type.dtype), {})
            self.env[name] = tracer = Tracer(self.session, zeros._place, scalar)
            tracer._python = python
            self.assigned.append(name)

    def _first_round(self) -> Env:
        """The variables after the body, which is traced once for nothing: to find what it changes
        and writes to."""
        before = Contents(self.session, self.env, self.own)
        start = dict(self.env)
        for k, c in enumerate(self._carried()):
            if c.scalar:  # a number that changes is not known in any round, the first one included
                self._set(c.name, _tracer(self.session, c, _named(c, _stand_in(k, c.start))))
        begun = dict(self.env)
        self.test()
        self.body()
        values = dict(self.env)
        names, self.assigned = self.assigned, []
        self._learn(before, begun)  # `x *= 2` on an array gives the name the array it had
        self.assigned.sort(key=lambda n: names.index(n) if n in names else len(names))
        before.take_back()
        self._restore(start)
        return values

    def _learn(self, before: Contents, begun: Env) -> bool:
        """Note what else a round changes, which began with these variables; whether there was
        something.

        Raises `Unsupported` where an object gets other entries in each round.
        """
        known = len(self.storages) + len(self.assigned)
        self.storages += [s for s in before.changed() if s not in self.storages]
        changed: list[Name] = [
            n for n, v in begun.items() if n not in self.env or not unchanged(v, self.env[n])
        ]
        for held, now in before.heap.changed().items():
            then = before.heap.before[held]
            if not then.alike(now):
                raise Grows(
                    f"{held.described()} changes in each round of a loop whose rounds are counted"
                    " at run time",
                    self.location,
                )
            pairs = enumerate(zip(then.values, now.values, strict=True))
            changed += [
                Slot(held, k, held.called(then, k)) for k, (a, b) in pairs if not unchanged(a, b)
            ]
        self.assigned += [n for n in changed if n not in self.assigned]
        return len(self.storages) + len(self.assigned) > known

    def _restore(self, saved: Env) -> None:
        self.env.clear()
        self.env.update(saved)

    def _get(self, name: Name) -> Any:
        return self.env[name] if isinstance(name, str) else name.get()

    def _set(self, name: Name, value: Any) -> None:
        if isinstance(name, str):
            self.env[name] = value
        else:
            name.set(value)

    def _carried(self) -> list[Carried]:
        result = []
        for name in self.assigned:
            value = self._get(name)
            found = traced(value)
            if found is None and type(value) is int:
                raise self._refused(f"`{_called(name)}` is a Python int beyond 64 bits")
            if found is None and isinstance(name, Slot):
                what = f"`{name.name}`, which is {described(value)} and changes in each round"
                raise self._refused(f"{what} of a loop whose rounds values end")
            if found is not None:
                node, (scalar, python) = found
                result.append(
                    Carried(name, node, scalar, MixedBool if name in self.mixed else python)
                )
        return result

    def _attempt(self, carried: list[Carried]) -> bool:
        before = Contents(self.session, self.env, self.own)
        saved = dict(self.env)
        starts = [*(c.start for c in carried), *(s.node for s in self.storages)]
        inside = [_stand_in(k, n) for k, n in enumerate(starts)]
        inside[: len(carried)] = [_named(c, n) for c, n in zip(carried, inside, strict=False)]
        heads = self._begin_round(carried, inside)
        begun = dict(self.env)
        test = self.test()
        tested = len(self.session.effects)
        self.body()
        after = {c.name: self._after(c.name) for c in carried}
        found = {c.name for c in carried if _is_mixed(c, after[c.name])}
        if self._learn(before, begun) or not found <= self.mixed:
            self.mixed |= found
            before.take_back()
            self._restore(saved)
            return False
        written = {*self.storages, *before.changed()}
        ends = [s.node for s in self.storages]
        if any(s.version for s in heads.values()):
            raise self._refused("a loop that writes to an array that it also replaces")
        news = [self._next(c, after[c.name]) for c in carried]
        begun_with, checks = before.effects, before.take_back()
        asked, checks = checks[: tested - begun_with], checks[tested - begun_with :]
        if results_to_reach(asked, [test]):
            raise self._refused("a check in the condition of a loop that it does not depend on")
        self._restore(saved)
        sources = {name: _sources(self._get(name), after[name]) for name in heads}
        if any(found & written for found in sources.values()):
            raise self._refused("a loop that gives another name to an array it writes to")
        told = results_to_reach(checks, [test, *news, *ends])
        if not starts:  # the loop changes nothing, but may never end: a result to reach it by
            told = [constant(np.zeros((), BOOL))]
        starts += [constant(np.zeros(n.shape, n.type.dtype)) for n in told]
        inside += [_stand_in(k, n) for k, n in enumerate(starts) if k >= len(inside)]
        self._place(carried, starts, inside, test, [*news, *ends, *told])
        link([(self._get(name)._place.storage, sources[name]) for name in heads])
        return True

    def _begin_round(self, carried: list[Carried], inside: list[Node]) -> dict[Name, Storage]:
        """Put stand-ins in place; the arrays among them, by their names."""
        for name in self.assigned:
            if isinstance(name, str):
                message = f"`{name}` is {described(self.env[name])} before a loop that changes it"
                hint = "it must be a number or an array of one type in all rounds"
                self.env[name] = Undecided(Unsupported(message, self.location, hint))
        for c, node in zip(carried, inside, strict=False):
            self._set(c.name, _tracer(self.session, c, node))
        for s, node in zip(self.storages, inside[len(carried) :], strict=True):
            s.node, s.version = node, s.version + 1
        return {c.name: self._get(c.name)._place.storage for c in carried if not c.scalar}

    def _after(self, name: Name) -> Any:
        return self.env.get(name) if isinstance(name, str) else name.get()

    def _refused(self, what: str) -> Unsupported:
        return Unsupported(what, self.location)

    def _next(self, c: Carried, value: Any) -> Node:
        """A variable's value after a round."""
        found = traced(value)
        if found is not None:
            node, (scalar, python) = found
            if c.scalar and scalar and (words := mixed(c.called, c.start, c.python, node, python)):
                begins = (c.python, python) == (int, float)
                raise (Begins if begins else Unsupported)(words, self.location)
            if node.type == c.start.type and scalar == c.scalar:
                return node
        raise Unsupported(
            f"`{c.called}` is {described(_tracer(self.session, c, c.start))} before a round of the"
            f" loop and {described(value)} after",
            self.location,
            "it must be of one type and shape in all rounds",
        )

    def _place(
        self,
        carried: list[Carried],
        starts: list[Node],
        inside: list[Node],
        test: Node,
        ends: list[Node],
    ) -> None:
        outputs = [test, *ends]
        others = [n for n in boundary(outputs, self.outer) if n not in set(inside)]
        operands = [*inside, *others]
        loop = While(subgraph("test", operands, [test]), subgraph("body", operands, ends))
        made = apply(loop, *starts, *others)
        results = results_of(made)
        self.session.effects.append(made)  # it may raise, or never end
        for c, node in zip(carried, results, strict=False):
            self._set(c.name, _tracer(self.session, c, _named(c, node)))
        for s, node in zip(self.storages, results[len(carried) :], strict=False):
            Place(s).write(node)


def _is_mixed(c: Carried, value: Any) -> bool:
    """Whether a variable is a bool of Python's before a round and of NumPy's after it, or so."""
    found = traced(value)
    if found is None:
        return False
    node, (scalar, python) = found
    both = c.scalar and scalar and c.start.type.dtype == node.type.dtype == BOOL
    return both and python is not c.python


def _sources(*values: Any) -> set[Storage]:
    """The storages that an array may be."""
    return {s for v in values if type(v) is Tracer for s in v._place.storage.sharing()}


def _called(name: Name) -> str:
    return name if isinstance(name, str) else name.name


def _stand_in(k: int, like: Node) -> Node:
    return Node(Input(k, like.type), (), like.type, None, like.name, False)


def _named(c: Carried, node: Node) -> Node:
    name = c.called if c.called.isidentifier() else node.name
    return replace(node, weak=c.python in (int, float), name=name)


def _tracer(session: Session, c: Carried, node: Node) -> Tracer:
    tracer = Tracer(session, Place(Storage(node)), c.scalar)
    tracer._python = c.python
    return tracer
