"""Loops of element code: `for` and `while`, their rounds, and the ways out of them.

A loop's body is written again until what its variables hold has settled (`settling`).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

from nbcomp.frontend.script.choices import Env
from nbcomp.frontend.script.counting import BITS, FAR, shrinking
from nbcomp.frontend.script.python_functions import RangeOf
from nbcomp.frontend.script.settling import Head, Loop, Settling
from nbcomp.frontend.script.source import names_in
from nbcomp.frontend.script.values import (
    Local,
    NotElements,
    Scalar,
    number,
    plain_bounds,
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
from nbcomp.sizes import most
from nbcomp.types import BOOL

ROUNDS = 12  # of writing a loop's body until the kinds of its variables settle
LONG = 1 << 26  # rounds of all loops in one another that surely end soon
POLL_AROUND = 16  # rounds of a loop around others between looks for an interrupt
POLL = 1 << 16  # iterations of a `while` between looks for an interrupt


class LoopWriter(Settling):
    """`for`, `while`, `break`, `continue`."""

    def stmt_While(self, node: ast.While) -> None:
        label, rounds = self.fresh("while"), self.most_of_while(node)

        def one_round(loop: Loop) -> list[Stmt]:
            test = self.truth(self.scalar_of(self.value(node.test)))
            with self.body() as body:
                if rounds is None:
                    self.add(Poll(POLL, self.location))
                if isinstance(test, Scalar):
                    self.refine(node.test, True)
                elif not test:
                    self.dead = True
                self.again(loop, node.body)
            return self.while_body(loop, test, body)

        self.loop(node, label, one_round, rounds, sure=False)

    def most_of_while(self, node: ast.While) -> int | None:
        """The most rounds of a `while` that surely ends soon; None: it may never end."""
        name, natural = shrinking(node) or ("", False)
        found = self.frame.env.get(name)
        if not (isinstance(found, Local | Scalar) and found.kind.is_int):
            return None
        return BITS if not natural or most(-found.low) <= 0 else None

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

        self.loop(node, label, one_round, _most(count, iterable), sure)

    def rounds_between_polls(self, node: ast.For, loop: For, iterable: Any) -> int:
        """After how many rounds a `for` looks for interrupts; 0: never.

        A loop around others does, unless all surely end soon.  One with no long one inside is
        quicker without, and its 2^31 rounds are seconds; only one that may have more does.
        """
        if most_rounds(loop) <= LONG:
            return 0
        if _holds_loop(node) and max(map(most_rounds, loop.body), default=0) > BITS:
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
        rounds: int | None,
        sure: bool,
    ) -> None:
        """Write a loop: its body again and again until what variables hold settles."""
        location, entry, places = self.location, dict(self.frame.env), dict(self.frame.places)
        self.depth_of_loops += 1
        for _ in range(ROUNDS):
            mark = len(self.stmts)
            self.frame.env = dict(entry)
            head = self.enter(node, rounds, entry, places)
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
        self.leave(head)
        self.finish_loop(loop, stmts, ways, head)

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
        looks = any(isinstance(s, Poll) for s in stmt.body)  # since it may never end
        return math.inf if looks else BITS * inside
    if not isinstance(stmt, For) or inside is math.inf:
        return inside
    known = isinstance(stmt.extent, Affine) and all(factor < 0 for _, factor in stmt.extent.terms)
    if not known or not isinstance(stmt.extent, Affine):
        return math.inf
    return max(stmt.extent.constant, 1) * inside


def _most(count: Expr, iterable: Any) -> int:
    """The most rounds that a `for` may have."""
    if isinstance(iterable, RangeOf):
        (low, high), (least, greatest) = map(
            plain_bounds, (number(iterable.start), number(iterable.stop))
        )
        return max(greatest - low, high - least, 0)
    known = isinstance(count, Affine) and not count.terms
    return most(count.constant) if known and isinstance(count, Affine) else FAR


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
    if isinstance(node, ast.FunctionDef):
        return False
    if isinstance(node, ast.For | ast.While):
        return any(map(jumps_out, node.orelse))
    inside = ast.iter_child_nodes(node)
    return isinstance(node, ast.Break | ast.Continue) or any(map(jumps_out, inside))


def _endless(node: ast.While, stmts: list[Stmt]) -> bool:
    """Whether a loop only ends by a jump out of it."""
    return isinstance(node.test, ast.Constant) and bool(node.test.value)


def leaves(stmts: list[Stmt], label: str) -> bool:
    return any(isinstance(s, Leave) and s.label == label for s in walk(tuple(stmts)))
