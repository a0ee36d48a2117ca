"""What the variables of a loop hold when it comes round: the kinds of their numbers, and bounds.

A body is written for what is known so far; what it leaves its variables with is learnt, and where
that is more than was known, it is written again.  Knows variables, not statements.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from nbcomp.frontend.script.branches import MISSING, same
from nbcomp.frontend.script.choices import Env, Places
from nbcomp.frontend.script.counting import FAR, Growth, counters, is_simple, step_of
from nbcomp.frontend.script.items import Items
from nbcomp.frontend.script.source import names_in
from nbcomp.frontend.script.values import (
    PY_INT,
    Kind,
    Local,
    Maybe,
    NotElements,
    Number,
    Scalar,
    Torn,
    Variable,
    Varying,
    Way,
    describe,
    in_memory,
    narrowed,
    union,
)
from nbcomp.loop.grammar import Stmt
from nbcomp.sizes import most
from nbcomp.types import BOOL

Key = tuple[object, int]  # the calls around, and the node
Bound = tuple[Key, str, Kind, str]  # of a loop's variable while it is of a kind: "low" or "high"


@dataclass(frozen=True)
class Head:
    """Where a loop comes round: what it assigns, and the memory of the numbers among that.

    rounds: the most it may have, None for one that may go on for ever.  steps: how far variables
    get in a round, as far as it has been written; by the calls around and by name.
    """

    key: Key
    node: ast.For | ast.While
    rounds: int | None
    assigned: list[str]
    memory: dict[str, Variable]
    steps: dict[tuple[object, str], Growth] = field(default_factory=dict)

    def far(self, name: str) -> int:
        """How far all rounds take a variable from where it is before the loop."""
        if name not in counters(self.node):
            return FAR + 1
        return self.steps.get((self.key[0], name), Growth()).over(self.rounds).far


@dataclass(eq=False)
class Loop:
    """A loop being written: its labels, and what variables hold where it is left or comes round."""

    out: str
    again: str
    ends: list[Env] = field(default_factory=list)  # at each `break`
    rounds: list[Env] = field(default_factory=list)  # at each `continue`, and at the end


class Settling(Items):
    """Before a loop, where it comes round, and after it."""

    def __init__(self) -> None:
        super().__init__()
        # The kinds of numbers that loop variables hold, by loop and name, and the bounds that grow
        # from round to round.
        self.kinds: dict[tuple[Key, str], frozenset[Kind]] = {}
        self.wide: set[Bound] = set()
        # How far from where they start bounds of counters get, of those that are not that wide.
        self.reach: dict[Bound, int] = {}
        # Of the numbers in what functions return, by call and by what else is returned.
        self.result_ways: dict[Key, list[list[tuple[Way, ...]]]] = {}
        self.torn: dict[tuple[Key, str], Torn] = {}  # what is of several types in a loop
        self.unsettled: set[Key] = set()  # loops whose variables are of another kind now
        self.heads: list[Head] = []  # of the loops around
        self.early: set[tuple[Key, str]] = set()  # variables read before a round assigns them
        self.dead = False  # whether the statement being written cannot be reached
        self.depth_of_loops = 0

    def enter(
        self, node: ast.For | ast.While, rounds: int | None, entry: Env, places: Places
    ) -> Head:
        """Before a loop: what it changes goes to memory that holds the kinds known so far."""
        key, assigned = (self.path, id(node)), sorted(names_in([node]).assigned)
        memory: dict[str, Variable] = {}
        location = self.location
        for name in assigned:
            self.location = places.get(name, location)  # what is stored is of the line that gave it
            found = entry.get(name, MISSING)
            value = found.value if isinstance(found, Maybe) else found
            if (key, name) in self.torn:
                self.frame.env[name] = self.torn[key, name]
                continue
            if value is MISSING:
                if (key, name) in self.kinds:
                    memory[name] = self.memory(name, self.head_ways(key, name, ()))
                    self.frame.env[name] = Maybe(memory[name])
                continue
            none = value is None and (key, name) in self.kinds
            if not (none or in_memory(value)):
                continue
            n = self.as_number(value)
            memory[name] = self.memory(name, self.head_ways(key, name, n.ways))
            self.put(memory[name], n, value)
            maybe = isinstance(found, Maybe)
            self.frame.env[name] = Maybe(memory[name]) if maybe else memory[name]
        self.location = location
        self.heads.append(Head(key, node, rounds, assigned, memory))
        return self.heads[-1]

    def head_ways(self, key: Key, name: str, entry: tuple[Way, ...]) -> tuple[Way, ...]:
        """The kinds that a variable may be of in a loop, and their bounds."""
        first = {way.kind: way for way in entry}
        kinds = self.kinds.get((key, name), frozenset()) | first.keys()
        self.kinds[key, name] = kinds
        ways = []
        for kind in kinds:
            least, greatest = kind.bounds()
            way = first.get(kind, Way(kind, least, greatest))
            if kind.dtype == BOOL:
                way = Way(kind, 0, 1)
            low, high = way.low, way.high
            down, up = (self.reach.get((key, name, kind, side)) for side in ("low", "high"))
            if down is not None:
                low = -most(-low) - down
            if up is not None:
                high = most(high) + up
            if (key, name, kind, "not negative") in self.wide:
                low = min(low, 0)
            if (key, name, kind, "low") in self.wide or (down is not None and low < -FAR):
                low = least
            if (key, name, kind, "high") in self.wide or (up is not None and high > FAR):
                high = greatest
            bits = 64 if (key, name, kind, "bits") in self.wide else way.bits
            ways.append(Way(kind, low, high, bits))
        return union(ways)

    def settle_round(self, env: Env, head: Head | None = None) -> None:
        """Where a loop comes round, or is left: its variables are in the loop's memory."""
        head = head or self.heads[-1]
        for name in head.assigned:
            found = env.get(name, MISSING)
            value = found.value if isinstance(found, Maybe) else found
            none = value is None and (head.key, name) in self.kinds
            if not (none or in_memory(value)):
                self.tear(head.key, name, value)
                continue
            if (head.key, name) in self.torn:
                continue
            n = self.as_number(value)
            known, target = self.kinds.get((head.key, name), frozenset()), head.memory.get(name)
            self.kinds[head.key, name] = known | {way.kind for way in n.ways}
            if target is None or self.kinds[head.key, name] != known:
                self.unsettled.add(head.key)
                continue  # to be written again
            if isinstance(value, Scalar) and isinstance(target, Local):
                continue  # the variable of a `for`: its memory has it from the start of the round
            self.put(target, n, value)

    def tear(self, key: Key, name: str, value: Any) -> None:
        """A variable that is a number at first and something else when the loop comes round."""
        kinds = self.kinds.get((key, name))
        if kinds and value is not MISSING and (key, name) not in self.torn:
            self.torn[key, name] = Torn(" or ".join(map(str, kinds)), describe(value))
            self.unsettled.add(key)

    def unset(self, name: str) -> None:
        self.early |= {(head.key, name) for head in self.heads if name in head.assigned}

    def settled(self, head: Head, start: Env, loop: Loop) -> bool:
        """Whether what variables hold when the loop comes round is what it started from."""
        key = head.key
        unsettled = key in self.unsettled
        self.unsettled.discard(key)
        ways = [(env, True) for env in loop.rounds] + [(env, False) for env in loop.ends]
        for env, again in ways:
            for name in head.assigned:
                first, last = start.get(name, MISSING), env.get(name, MISSING)
                first = first.value if isinstance(first, Maybe) else first
                last = last.value if isinstance(last, Maybe) else last
                numbers = in_memory(last)
                early = first is MISSING and (key, name) in self.early
                if early and not (numbers or last is None or last is MISSING):
                    raise NotElements(f"`{name}` is {describe(last)} of the round before")
                if isinstance(first, Local | Varying):
                    bound = numbers and (again or isinstance(first, Varying))
                    if bound and self.grows(head, name, first, self.as_number(last)):
                        unsettled = True
                elif isinstance(first, Torn) or first is MISSING or same(first, last):
                    continue
                elif first is None and numbers:
                    continue  # its kinds are known from now on
                elif again:
                    self.torn[key, name] = Torn(describe(first), describe(last))
                    unsettled = True
        return not unsettled

    def grows(self, head: Head, name: str, first: Variable, last: Number) -> bool:
        """Whether bounds are wider at the end of a round than at its start; they are then open, or
        as far as a counter gets."""
        known, key = {way.kind: way for way in first.ways}, head.key
        before = len(self.wide), len(self.reach)
        for way in last.ways:
            if way.kind in known and (way.kind.is_int or isinstance(first, Varying)):
                if way.low < known[way.kind].low:
                    below = "low" if way.low < 0 else "not negative"
                    self.widen(head, (key, name, way.kind, "low"), below)
                if way.high > known[way.kind].high:
                    self.widen(head, (key, name, way.kind, "high"), "high")
                if way.bits > known[way.kind].bits:
                    self.wide.add((key, name, way.kind, "bits"))
        return (len(self.wide), len(self.reach)) > before

    def widen(self, head: Head, bound: Bound, to: str) -> None:
        """A bound that is wider at the end of a round.

        What a counter's steps come to in all rounds is as wide as it gets, which needs no looking
        at what one round makes of that.
        """
        key, name, kind, _ = bound
        counts = kind == PY_INT and self.kinds.get((key, name)) == frozenset({PY_INT})
        far = head.far(name) if counts else FAR + 1
        if bound not in self.wide and far <= self.reach.get(bound, -1):
            return
        if far <= FAR and bound not in self.reach:
            self.reach[bound] = far
            return
        wide = (key, name, kind, to)
        self.wide.add(bound if wide in self.wide else wide)

    def stmt_Assign(self, node: ast.Assign) -> None:
        self.step(node)
        super().stmt_Assign(node)

    def stmt_AugAssign(self, node: ast.AugAssign) -> None:
        self.step(node)
        super().stmt_AugAssign(node)

    def step(self, node: ast.stmt) -> None:
        """Note how far a statement of a loop takes a counter."""
        step = step_of(node) if self.heads else None
        if step is not None:
            name, by = step
            steps, place = self.heads[-1].steps, (self.path, name)
            steps[place] = steps.get(place, Growth()) + Growth(self.largest(by))

    def largest(self, by: ast.expr) -> int:
        """The largest size of a whole number; more than a counter may get, if that is not known."""
        if isinstance(by, ast.Compare):
            return 1
        match by:
            case ast.Constant(int(value)):
                return abs(value)
        bounds = self.bounds_of(by) if is_simple(by) else None
        return FAR + 1 if bounds is None else max(most(bounds[1]), most(-bounds[0]))

    def leave(self, head: Head) -> None:
        """After a loop that is written: its steps are of the loop around it."""
        if self.heads:
            steps = self.heads[-1].steps
            for place, growth in head.steps.items():
                steps[place] = steps.get(place, Growth()) + growth.over(head.rounds)

    def after(self, start: Env, loop: Loop, sure: bool, head: Head) -> Env:
        """What variables hold when a loop has run out."""
        env = dict(start)
        for rounds in loop.rounds:
            for name, value in rounds.items():
                first = env.get(name, MISSING)
                inner = first.value if isinstance(first, Maybe) else first
                if isinstance(first, Maybe) and sure and not isinstance(value, Maybe):
                    env[name] = inner
                elif first is MISSING and not in_memory(value):
                    env[name] = value if isinstance(value, Maybe) else Maybe(value)
        if sure:
            self.from_rounds(env, loop, head)
        return env

    def from_rounds(self, env: Env, loop: Loop, head: Head) -> None:
        """After a loop that surely ran, variables are what they were at the end of a round."""
        for name, target in head.memory.items():
            if not isinstance(env.get(name), Local | Varying):
                continue
            ends = [rounds.get(name) for rounds in loop.rounds]
            if ends and all(map(in_memory, ends)):
                ways = union(*(self.as_number(e).ways for e in ends))
                if {w.kind for w in ways} <= {w.kind for w in target.ways}:
                    env[name] = narrowed(target, ways)

    def met_ends(self, ways: list[tuple[list[Stmt], Env | None]], head: Head) -> Env:
        """The ways out of a loop meet; numbers are in the loop's memory on all."""
        live = [env for _, env in ways if env is not None]
        if not live:
            return dict(self.frame.env)
        result: Env = {}
        for name in dict.fromkeys(n for env in live for n in env):
            found = [env.get(name, MISSING) for env in live]
            values = [f.value if isinstance(f, Maybe) else f for f in found if f is not MISSING]
            missing = any(f is MISSING or isinstance(f, Maybe) for f in found)
            numbers = all(v is None or in_memory(v) for v in values)
            if all(same(values[0], v) for v in values[1:]):
                merged = values[0]
            elif numbers and name in head.memory:
                kinds = union(*(self.as_number(v).ways for v in values))
                merged = narrowed(head.memory[name], kinds)
            else:
                merged = Torn(describe(values[0]), describe(values[-1]))
            result[name] = Maybe(merged) if missing else merged
        return result
