"""Loops of element code.

What a loop's variables hold when it comes round is found by writing its body again until nothing
changes: the kinds of their numbers, and the bounds of whole numbers.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from nbcomp.frontend.script.branches import MISSING, same
from nbcomp.frontend.script.calls import RangeOf
from nbcomp.frontend.script.expressions import Env
from nbcomp.frontend.script.items import Items
from nbcomp.frontend.script.source import names_in
from nbcomp.frontend.script.values import (
    PY_FLOAT,
    Kind,
    Local,
    Maybe,
    NotElements,
    Scalar,
    Torn,
    describe,
    is_number,
    number,
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
        self.kinds: dict[tuple[Key, str], Kind] = {}  # of loop variables, by loop and name
        self.wide: set[tuple[Key, str, str]] = set()  # bounds that grow from round to round
        self.result_kinds: dict[Key, list[Kind]] = {}  # of functions, by call
        self.torn: dict[tuple[Key, str], Torn] = {}  # what is of several types in a loop
        self.unsettled: set[Key] = set()  # loops whose variables are of another kind now
        self.heads: list[tuple[Key, list[str]]] = []  # the loops around, and what they assign
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
        self.frame.loops.append(loop)
        with self.body() as inner, self.nested():
            self.block(body)
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
        if names_in(list(node.body)).jumps or has_jumps(node):
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
        location, entry = self.location, dict(self.frame.env)
        assigned = sorted(names_in([node]).assigned)
        key = (self.path, id(node))
        self.depth_of_loops += 1
        for _ in range(ROUNDS):
            mark = len(self.stmts)
            self.frame.env = dict(entry)
            self.enter(key, assigned, entry)
            head = dict(self.frame.env)
            loop = Loop(f"{label}_out", f"{label}_next")
            with self.body() as written:
                stmts = one_round(loop)
                self.round_done()
            del written
            self.location = location
            if self.settled(key, assigned, head, loop):
                break
            del self.stmts[mark:]
        else:
            raise NotElements("the types of variables do not settle", node)
        self.depth_of_loops -= 1
        self.finish_loop(node, loop, stmts, head, sure, key)

    def round_done(self) -> None:
        """After a round was written."""

    def enter(self, key: Key, assigned: list[str], entry: Env) -> None:
        """Before a loop: the variables it changes go to memory, in the kinds known so far."""
        for name in assigned:
            found = entry.get(name, MISSING)
            value = found.value if isinstance(found, Maybe) else found
            kind = self.kinds.get((key, name))
            if (key, name) in self.torn:
                self.frame.env[name] = self.torn[key, name]
                continue
            if value is MISSING:
                if kind is not None:
                    new = Local(kind, self.local(name, kind), *kind.bounds())
                    self.frame.env[name] = Maybe(new)
                continue
            if not (isinstance(value, Local) or is_number(value)):
                continue
            s = self.as_scalar(value)
            kind = self.kinds.setdefault((key, name), s.kind)
            buffer = self.local(name, kind)
            if not (isinstance(value, Local) and value.buffer is buffer):
                again = isinstance(value, Local) and self.narrow_outside(name, s.kind, kind)
                number = self.converted(s, kind) if again else self.as_kind(s, kind, name)
                self.store(buffer, number.expr)
            least, most = kind.bounds()
            low = least if (key, name, "low") in self.wide else s.low
            high = most if (key, name, "high") in self.wide else s.high
            local = Local(kind, buffer, low, high)
            self.frame.env[name] = Maybe(local) if isinstance(found, Maybe) else local
        self.heads.append((key, assigned))

    def narrow_outside(self, name: str, found: Kind, wanted: Kind) -> bool:
        """Give a Python float that loops around carry the narrower dtype it gets in this loop.

        Those loops are then written once more, from where the float was a literal; whether there
        are any.
        """
        if found != PY_FLOAT or wanted.dtype.kind != "f" or wanted.dtype == PY_FLOAT.dtype:
            return False
        around = [key for key, names in self.heads if name in names]
        around = [key for key in around if self.kinds.get((key, name)) == found]
        for key in around:
            self.kinds[key, name] = self.joined(found, wanted, name)
            self.unsettled.add(key)
        return bool(around)

    def settle_round(self, env: Env, head: tuple[Key, list[str]] | None = None) -> None:
        """Where a loop comes round, or is left: its variables in memory, in its kinds."""
        key, assigned = head or self.heads[-1]
        for name in assigned:
            found = env.get(name, MISSING)
            value = found.value if isinstance(found, Maybe) else found
            if not (isinstance(value, Local | Scalar) or is_number(value)):
                self.tear(key, name, value)
                continue
            s = value if isinstance(value, Scalar) else self.as_scalar(value)
            known = self.kinds.get((key, name))
            kind = s.kind if known is None else self.joined(known, s.kind, name)
            if kind != known:
                self.kinds[key, name] = kind
                self.unsettled.add(key)
            if isinstance(value, Scalar) and kind == known:
                continue  # the variable of a `for`: its memory has it from the start of the round
            buffer = self.local(name, kind)
            if not (isinstance(value, Local) and value.buffer is buffer):
                self.store(buffer, self.as_kind(s, kind, name).expr)

    def tear(self, key: Key, name: str, value: Any) -> None:
        """A variable that is a number at first and something else when the loop comes round."""
        kind = self.kinds.get((key, name))
        if kind is not None and value is not MISSING and (key, name) not in self.torn:
            self.torn[key, name] = Torn(str(kind), describe(value))
            self.unsettled.add(key)

    def settled(self, key: Key, assigned: list[str], head: Env, loop: Loop) -> bool:
        """Whether what variables hold when the loop comes round is what it started from."""
        self.heads.pop()
        unsettled = key in self.unsettled
        self.unsettled.discard(key)
        for env in loop.rounds:
            for name in assigned:
                start, end = head.get(name), env.get(name)
                start = start.value if isinstance(start, Maybe) else start
                end = end.value if isinstance(end, Maybe) else end
                if isinstance(start, Local) and start.kind.is_int and end is not None:
                    s = end if isinstance(end, Scalar) else None
                    if s is None and (isinstance(end, Local) or is_number(end)):
                        s = self.as_scalar(end)
                    if s and s.low < start.low:
                        self.wide.add((key, name, "low"))
                        unsettled = True
                    if s and s.high > start.high:
                        self.wide.add((key, name, "high"))
                        unsettled = True
                elif isinstance(start, Local | Torn) or start is None or same(start, end):
                    continue
                else:
                    self.torn[key, name] = Torn(describe(start), describe(end))
                    unsettled = True
        return not unsettled

    def finish_loop(
        self,
        node: ast.For | ast.While,
        loop: Loop,
        stmts: list[Stmt],
        head: Env,
        sure: bool,
        key: Key,
    ) -> None:
        """What follows a loop, and what variables hold there."""
        ways: list[tuple[list[Stmt], Env | None]] = []
        after = self.after(head, loop, sure)
        ended = not (isinstance(node, ast.While) and _endless(node, stmts))
        self.frame.env = after
        with self.body() as orelse:
            self.dead = not ended
            self.block(node.orelse)
            if not self.dead:
                self.settle_round(self.frame.env, (key, sorted(names_in([node]).assigned)))
        exhausted = None if self.dead else self.frame.env
        self.dead = False
        ways.append((orelse, exhausted))
        ways += [([], env) for env in loop.ends]
        self.frame.env = self.met_ends(ways, key)
        self.dead = all(env is None for _, env in ways)
        if loop.ends:
            self.add(Block((*stmts, *orelse), self.location, loop.out))
        else:
            self.stmts.extend((*stmts, *orelse))

    def after(self, head: Env, loop: Loop, sure: bool) -> Env:
        """What variables hold when a loop has run out."""
        env = dict(head)
        for rounds in loop.rounds:
            for name, value in rounds.items():
                start = env.get(name)
                inner = start.value if isinstance(start, Maybe) else start
                if isinstance(start, Maybe) and sure and not isinstance(value, Maybe):
                    env[name] = inner
                elif start is None and not (isinstance(value, Local) or is_number(value)):
                    env[name] = Maybe(value)
        if sure:
            self.from_rounds(env, loop)
        return env

    def from_rounds(self, env: Env, loop: Loop) -> None:
        """After a loop that surely ran, variables are what they were at the end of a round."""
        for name, found in env.items():
            ends = [rounds.get(name) for rounds in loop.rounds]
            if not isinstance(found, Local) or not ends:
                continue
            if all(isinstance(e, Local) and e.buffer is found.buffer for e in ends):
                mixed = any(e.kind.mixed for e in ends if isinstance(e, Local))
                env[name] = replace(found, kind=replace(found.kind, mixed=mixed))

    def met_ends(self, ways: list[tuple[list[Stmt], Env | None]], key: Key) -> Env:
        """The ways out of a loop meet; numbers are in memory, in the loop's kinds, on all."""
        live = [env for _, env in ways if env is not None]
        if not live:
            return dict(self.frame.env)
        result: Env = {}
        for name in dict.fromkeys(n for env in live for n in env):
            found = [env.get(name, MISSING) for env in live]
            values = [f.value if isinstance(f, Maybe) else f for f in found if f is not MISSING]
            missing = any(f is MISSING or isinstance(f, Maybe) for f in found)
            kind = self.kinds.get((key, name))
            numbers = all(isinstance(v, Local | Scalar) or is_number(v) for v in values)
            if all(same(values[0], v) for v in values[1:]):
                merged = values[0]
            elif numbers and kind is not None:
                scalars = [v if isinstance(v, Scalar) else self.as_scalar(v) for v in values]
                low, high = min(s.low for s in scalars), max(s.high for s in scalars)
                merged = Local(kind, self.local(name, kind), low, high)
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
    if not isinstance(stmt, For):
        return inside
    bound = isinstance(stmt.extent, Affine) and all(factor < 0 for _, factor in stmt.extent.terms)
    extent = stmt.extent.constant if bound and isinstance(stmt.extent, Affine) else math.inf
    return max(extent, 1) * inside


def _reach(r: RangeOf) -> int:
    """The most rounds that a range with a step of 1 may have, either way."""
    start, stop = number(r.start), number(r.stop)
    return max(stop.high - start.low, start.high - stop.low)


def _holds_loop(node: ast.AST) -> bool:
    return any(isinstance(n, ast.For | ast.While) for n in ast.walk(node) if n is not node)


def has_jumps(node: ast.For | ast.While | ast.If) -> bool:
    """Whether a statement has a break or continue that is not of a loop in it."""
    stack: list[ast.AST] = list(node.body)
    if isinstance(node, ast.If):
        stack += node.orelse
    while stack:
        n = stack.pop()
        if isinstance(n, ast.Break | ast.Continue):
            return True
        if not isinstance(n, ast.For | ast.While | ast.FunctionDef):
            stack.extend(ast.iter_child_nodes(n))
    return False


def _endless(node: ast.While, stmts: list[Stmt]) -> bool:
    """Whether a loop only ends by a jump out of it."""
    return isinstance(node.test, ast.Constant) and bool(node.test.value)


def leaves(stmts: list[Stmt], label: str) -> bool:
    return any(isinstance(s, Leave) and s.label == label for s in walk(tuple(stmts)))
