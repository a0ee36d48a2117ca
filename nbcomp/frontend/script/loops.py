"""Loops of element code.

What a loop's variables hold when it comes round is found by writing its body again until nothing
changes: the kinds of their numbers, and the bounds of whole numbers.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nbcomp.frontend.script.branches import MISSING, same
from nbcomp.frontend.script.expressions import Env, Places
from nbcomp.frontend.script.items import Items
from nbcomp.frontend.script.python_functions import RangeOf
from nbcomp.frontend.script.source import names_in
from nbcomp.frontend.script.values import (
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
    number,
    union,
)
from nbcomp.loop.grammar import (
    Affine,
    Block,
    Expr,
    For,
    If,
    Leave,
    Poll,
    Stmt,
    While,
    bodies,
    const,
    loop_var,
    walk,
)
from nbcomp.types import BOOL

ROUNDS = 12  # of writing a loop's body until the kinds of its variables settle
LONG = 1 << 26  # rounds of all loops in one another that surely end soon
POLL_AROUND = 16  # rounds of a loop around others between looks for an interrupt
POLL = 1 << 16  # iterations of a `while` between looks for an interrupt

Key = tuple[object, int]  # the calls around, and the node


@dataclass(frozen=True)
class Head:
    """Where a loop comes round: what it assigns, and the memory of the numbers among that."""

    key: Key
    assigned: list[str]
    memory: dict[str, Variable]


@dataclass(eq=False)
class Loop:
    """A loop being written: its labels, and what variables hold where it is left or comes round."""

    out: str
    again: str
    ends: list[Env] = field(default_factory=list)  # at each `break`
    rounds: list[Env] = field(default_factory=list)  # at each `continue`, and at the end


class LoopWriter(Items):
    """`for`, `while`, `break`, `continue`."""

    def __init__(self) -> None:
        super().__init__()
        # The kinds of numbers that loop variables hold, by loop and name, and the bounds that grow
        # from round to round.
        self.kinds: dict[tuple[Key, str], frozenset[Kind]] = {}
        self.wide: set[tuple[Key, str, Kind, str]] = set()
        # Of the numbers in what functions return, by call and by what else is returned.
        self.result_ways: dict[Key, list[list[tuple[Way, ...]]]] = {}
        self.torn: dict[tuple[Key, str], Torn] = {}  # what is of several types in a loop
        self.unsettled: set[Key] = set()  # loops whose variables are of another kind now
        self.heads: list[Head] = []  # of the loops around
        self.early: set[tuple[Key, str]] = set()  # variables read before a round assigns them
        self.dead = False  # whether the statement being written cannot be reached
        self.depth_of_loops = 0

    def stmt_While(self, node: ast.While) -> None:
        label = self.fresh("while")

        def one_round(loop: Loop) -> list[Stmt]:
            test = self.truth(self.scalar_of(self.value(node.test)))
            with self.body() as body:
                if self.polls(node):
                    self.add(Poll(POLL, self.location))
                if isinstance(test, Scalar):
                    self.refine(node.test, True)
                elif not test:
                    self.dead = True
                self.again(loop, node.body)
            return self.while_body(loop, test, body)

        self.loop(node, label, one_round, sure=False)

    def polls(self, node: ast.AST) -> bool:
        """Whether this loop looks for interrupts: every `while`, as it may never end."""
        return True

    def while_body(self, loop: Loop, test: Any, body: list[Stmt]) -> list[Stmt]:
        """The loop itself, of a round's body; statements the test needs are already written."""
        needed, self.stmts[:] = list(self.stmts), []
        if not needed:
            condition = test.expr if isinstance(test, Scalar) else const(bool(test), BOOL)
            return [While(condition, tuple(body), self.location)]
        stop: list[Stmt] = []
        if isinstance(test, Scalar):
            ended = self.apply("logical_not", test.expr, dtype=BOOL)
            stop = [If(ended, (Leave(f"{loop.out}_else"),), (), self.location)]
        elif not test:
            stop = [Leave(f"{loop.out}_else")]
        inside = While(const(True, BOOL), (*needed, *stop, *body), self.location)
        return [Block((inside,), self.location, f"{loop.out}_else")]

    def again(self, loop: Loop, body: list[ast.stmt]) -> None:
        """One round of a loop's body, at the end of which it comes round."""
        location = self.location
        self.frame.loops.append(loop)
        with self.body() as inner, self.nested():
            self.block(body)
            self.location = location  # what counts the rounds is of the loop, not of its last line
            if not self.dead:
                loop.rounds.append(self.frame.env)
                self.settle_round(self.frame.env)
        self.frame.loops.pop()
        self.dead = False
        self.add(Block(tuple(inner), self.location, loop.again)) if leaves(
            inner, loop.again
        ) else self.stmts.extend(inner)

    def stmt_For(self, node: ast.For) -> None:
        iterable = self.value(node.iter)
        if isinstance(iterable, tuple | list) or (
            isinstance(iterable, range) and len(iterable) == 0
        ):
            self.written_out_loop(node, list(iterable))
            return
        count, sure, bind_item = self.iteration(iterable, node.target)
        if isinstance(count, Affine) and not count.terms and count.constant <= 0:
            self.written_out_loop(node, [])
            return
        label = self.fresh(_loop_name(node.target))

        def one_round(loop: Loop) -> list[Stmt]:
            with self.body() as body:
                bind_item(loop_var(label))
                self.again(loop, node.body)
            every = self.rounds_between_polls(node, For(label, count, tuple(body)), iterable)
            if every:
                body.insert(0, Poll(every, self.location))
            return [For(label, count, tuple(body), location=self.location)]

        self.loop(node, label, one_round, sure)

    def rounds_between_polls(self, node: ast.For, loop: For, iterable: Any) -> int:
        """After how many rounds a `for` looks for interrupts; 0: never.

        A loop around others does, unless all surely end soon.  One with none inside is quicker
        without, and its 2^31 rounds are seconds; only one that may have more does.
        """
        if most_rounds(loop) <= LONG:
            return 0
        if _holds_loop(node):
            return POLL_AROUND
        return POLL if isinstance(iterable, RangeOf) and _reach(iterable) > 2**31 else 0

    def written_out_loop(self, node: ast.For, items: list[Any]) -> None:
        """A loop over a few things known now: its body once for each."""
        if items and (names_in(list(node.body)).jumps or has_jumps(node)):
            self.jumping_loop(node, items)
            return
        for item in items:
            self.assign(node.target, item)
            self.block(node.body)
            if self.dead:
                return
        self.block(node.orelse)

    def jumping_loop(self, node: ast.For, items: list[Any]) -> None:
        raise NotElements("break, continue or return in a loop over a tuple", node)

    def iteration(
        self, iterable: Any, target: ast.expr
    ) -> tuple[Expr, bool, Callable[[Expr], None]]:
        """(rounds, whether there surely is one, what gives the target its value in round k)."""
        count, sure, item = self.items(iterable)

        def bind_item(k: Expr) -> None:
            self.bind_loop_variable(target, item(k))

        return count, sure, bind_item

    def bind_loop_variable(self, target: ast.expr, value: Any) -> None:
        """The target of a `for`: its number stays an affine index where it is one."""
        if isinstance(target, ast.Tuple) and isinstance(value, tuple):
            if len(target.elts) != len(value):
                raise NotElements("unpacking into another number of variables", target)
            for t, v in zip(target.elts, value, strict=True):
                self.bind_loop_variable(t, v)
            return
        self.assign(target, value)
        affine_ = isinstance(value, Scalar) and isinstance(value.expr, Affine)
        if isinstance(target, ast.Name) and affine_:
            self.frame.env[target.id] = value

    def loop(
        self,
        node: ast.For | ast.While,
        label: str,
        one_round: Callable[[Loop], list[Stmt]],
        sure: bool,
    ) -> None:
        """Write a loop: its body again and again until what variables hold settles."""
        location, entry, places = self.location, dict(self.frame.env), dict(self.frame.places)
        assigned = sorted(names_in([node]).assigned)
        key = (self.path, id(node))
        self.depth_of_loops += 1
        for _ in range(ROUNDS):
            mark = len(self.stmts)
            self.frame.env = dict(entry)
            head = self.enter(key, assigned, entry, places)
            start = dict(self.frame.env)
            loop = Loop(f"{label}_out", f"{label}_next")
            with self.body():
                stmts = one_round(loop)
            self.heads.pop()
            self.location = location
            ways = self.ways_out(node, loop, stmts, start, sure, head)
            if self.settled(head, start, loop):
                break
            del self.stmts[mark:]
        else:
            raise NotElements("the types of variables do not settle", node)
        self.depth_of_loops -= 1
        self.finish_loop(loop, stmts, ways, head)

    def enter(self, key: Key, assigned: list[str], entry: Env, places: Places) -> Head:
        """Before a loop: what it changes goes to memory that holds the kinds known so far."""
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
        self.heads.append(Head(key, assigned, memory))
        return self.heads[-1]

    def head_ways(self, key: Key, name: str, entry: tuple[Way, ...]) -> tuple[Way, ...]:
        """The kinds that a variable may be of in a loop, and their bounds."""
        first = {way.kind: way for way in entry}
        kinds = self.kinds.get((key, name), frozenset()) | first.keys()
        self.kinds[key, name] = kinds
        ways = []
        for kind in kinds:
            least, most = kind.bounds()
            way = first.get(kind, Way(kind, least, most))
            if kind.dtype == BOOL:
                way = Way(kind, 0, 1)
            low = least if (key, name, kind, "low") in self.wide else way.low
            high = most if (key, name, kind, "high") in self.wide else way.high
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
                    if bound and self.grows(key, name, first, self.as_number(last)):
                        unsettled = True
                elif isinstance(first, Torn) or first is MISSING or same(first, last):
                    continue
                elif first is None and numbers:
                    continue  # its kinds are known from now on
                elif again:
                    self.torn[key, name] = Torn(describe(first), describe(last))
                    unsettled = True
        return not unsettled

    def grows(self, key: Key, name: str, first: Variable, last: Number) -> bool:
        """Whether bounds are wider at the end of a round than at its start; they are then open."""
        known, before = {way.kind: way for way in first.ways}, len(self.wide)
        for way in last.ways:
            if way.kind in known and (way.kind.is_int or isinstance(first, Varying)):
                if way.low < known[way.kind].low:
                    self.wide.add((key, name, way.kind, "low"))
                if way.high > known[way.kind].high:
                    self.wide.add((key, name, way.kind, "high"))
                if way.bits > known[way.kind].bits:
                    self.wide.add((key, name, way.kind, "bits"))
        return len(self.wide) > before

    def ways_out(
        self,
        node: ast.For | ast.While,
        loop: Loop,
        stmts: list[Stmt],
        start: Env,
        sure: bool,
        head: Head,
    ) -> list[tuple[list[Stmt], Env | None]]:
        """What is done, and what variables hold, where a loop is left: run out, or by a jump."""
        self.frame.env = self.after(start, loop, sure, head)
        with self.body() as orelse:
            self.dead = isinstance(node, ast.While) and _endless(node, stmts)
            self.block(node.orelse)
            if not self.dead and loop.ends:
                self.settle_round(self.frame.env, head)
        exhausted = None if self.dead else self.frame.env
        self.dead = False
        return [(orelse, exhausted), *(([], env) for env in loop.ends)]

    def finish_loop(
        self,
        loop: Loop,
        stmts: list[Stmt],
        ways: list[tuple[list[Stmt], Env | None]],
        head: Head,
    ) -> None:
        """The loop itself, and what variables hold after it."""
        self.frame.env = self.met_ends(ways, head)
        self.dead = all(env is None for _, env in ways)
        orelse = ways[0][0]
        if loop.ends:
            self.add(Block((*stmts, *orelse), self.location, loop.out))
        else:
            self.stmts.extend((*stmts, *orelse))

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

    def innermost(self, node: ast.stmt) -> Loop:
        """The loop that a jump is about."""
        if not self.frame.loops:
            raise NotElements("a jump of a loop that works on whole arrays", node)
        found: Loop = self.frame.loops[-1]
        return found

    def stmt_Break(self, node: ast.Break) -> None:
        loop = self.innermost(node)
        self.settle_round(self.frame.env)
        loop.ends.append(self.frame.env)
        self.add(Leave(loop.out, self.location))
        self.dead = True

    def stmt_Continue(self, node: ast.Continue) -> None:
        loop = self.innermost(node)
        self.settle_round(self.frame.env)
        loop.rounds.append(self.frame.env)
        self.add(Leave(loop.again, self.location))
        self.dead = True


def _loop_name(target: ast.expr) -> str:
    names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
    return names[0] if names else "k"


def most_rounds(stmt: Stmt) -> float:
    """How many rounds of its innermost loops a statement may run."""
    inside = max((most_rounds(s) for body in bodies(stmt) for s in body), default=1)
    if isinstance(stmt, While):
        return math.inf
    if not isinstance(stmt, For) or inside is math.inf:
        return inside
    known = isinstance(stmt.extent, Affine) and all(factor < 0 for _, factor in stmt.extent.terms)
    if not known or not isinstance(stmt.extent, Affine):
        return math.inf
    return max(stmt.extent.constant, 1) * inside


def _reach(r: RangeOf) -> int:
    """The most rounds that a range with a step of 1 may have, either way."""
    start, stop = number(r.start), number(r.stop)
    return max(stop.high - start.low, start.high - stop.low)


def _holds_loop(node: ast.AST) -> bool:
    return any(isinstance(n, ast.For | ast.While) for n in ast.walk(node) if n is not node)


def has_jumps(node: ast.For | ast.While | ast.If) -> bool:
    """Whether a statement has a break or continue that is not of a loop in it."""
    body = [*node.body, *(node.orelse if isinstance(node, ast.If) else [])]
    return any(map(jumps_out, body))


def jumps_out(node: ast.AST) -> bool:
    """Whether a piece of a program is, or has, a jump of a loop around it."""
    if isinstance(node, ast.For | ast.While | ast.FunctionDef):
        return False
    inside = ast.iter_child_nodes(node)
    return isinstance(node, ast.Break | ast.Continue) or any(map(jumps_out, inside))


def _endless(node: ast.While, stmts: list[Stmt]) -> bool:
    """Whether a loop only ends by a jump out of it."""
    return isinstance(node.test, ast.Constant) and bool(node.test.value)


def leaves(stmts: list[Stmt], label: str) -> bool:
    return any(isinstance(s, Leave) and s.label == label for s in walk(tuple(stmts)))
