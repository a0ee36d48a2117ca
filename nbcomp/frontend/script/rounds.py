"""Loops over whole arrays in a scripted function: their rounds one by one while compiling, or as a
loop whose rounds are counted at run time.

Knows statements, and that somebody runs them; what becomes of a loop at run time is `repeating`'s.
"""

from __future__ import annotations

import ast
import functools
import itertools
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.frontend.script.branching import Undecided, truth_of
from nbcomp.frontend.script.closures import Cells
from nbcomp.frontend.script.conditions import Asker
from nbcomp.frontend.script.contents import Contents
from nbcomp.frontend.script.jumps import Straight, leaves, straight
from nbcomp.frontend.script.repeating import Begins, Grows, Repeat
from nbcomp.frontend.script.source import Source, names_in
from nbcomp.frontend.session import Session
from nbcomp.graph.ir import Node, at
from nbcomp.graph.numpy_function import NUMPY
from nbcomp.ops.operand import constant

UNROLLED = 64  # rounds of a loop over a range that are written out; longer ones stay loops
GROWN = 4 * UNROLLED  # the same, if a list grows in each round
COUNT = "nbcomp_count"  # begins the names of variables that count rounds
MOST_ROUNDS = 20_000  # of a loop that is followed while compiling


class RunTimeJump(Unsupported):
    """A jump on a run-time value, in a round of a loop that was followed while compiling."""


class Entered(ast.While):
    """A loop that has at least one round."""


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


JUMPS = (_Break, _Continue)


class Rounds(Asker):
    """The loops of one call of a function."""

    session: Session
    source: Source
    env: dict[str, Any]
    cells: Cells
    loops: int  # whose rounds are counted at run time, so far
    follow: list[ast.stmt]  # what comes after the loop that has just been taken

    @abstractmethod
    def block(self, body: list[ast.stmt], needed: set[str], last: bool = False) -> None:
        """Statements in order.  needed: variables read after them."""

    @abstractmethod
    def if_statement(
        self, node: ast.If, rest: list[ast.stmt], needed: set[str], last: bool
    ) -> None:
        """`if`"""

    @abstractmethod
    def evaluate(self, node: ast.expr) -> Any:
        """An expression's value."""

    @abstractmethod
    def execute(self, node: ast.stmt) -> None:
        """A statement without control flow."""

    def stmt_While(self, node: ast.While, needed: set[str]) -> None:
        inner = names_in([node]).read | needed
        for _ in range(MOST_ROUNDS):
            value = self.evaluate(node.test)
            if truth_of(self.session, value) is not None:
                self.while_loop(node, inner, needed)
                return
            if not value:
                self.block(node.orelse, needed)
                return
            try:
                if self.one_round(node, inner):
                    return
            except RunTimeJump:
                self.repeat(node, lambda: self.evaluate(node.test), lambda: None, inner, once=True)
                return
        raise Unsupported(
            f"`while {ast.unparse(node.test)}` went round {MOST_ROUNDS} times while compiling",
            self.source.at(node),
        )

    def while_loop(self, node: ast.While, inner: set[str], needed: set[str]) -> None:
        """A loop whose rounds are counted at run time.

        Where variables get their first values in it, it becomes one way of a branch: there it has a
        round, and without one there is only its `else`.
        """
        first = names_in(list(node.body)).assigned - self.env.keys()
        if names_in([node]).jumps or not first & needed:
            self.repeat(node, lambda: self.evaluate(node.test), lambda: None, inner)
            return
        entered = ast.copy_location(Entered(node.test, node.body, node.orelse), node)
        branch = ast.copy_location(ast.If(node.test, [entered], node.orelse), node)
        self.if_statement(branch, [], needed, False)

    def stmt_Entered(self, node: Entered, needed: set[str]) -> None:
        inner = names_in([node]).read | needed
        self.repeat(node, lambda: self.evaluate(node.test), lambda: None, inner, once=True)

    def stmt_For(self, node: ast.For, needed: set[str]) -> None:
        inner = names_in([node]).read | needed
        items = self.evaluate(node.iter)
        name = node.target.id if isinstance(node.target, ast.Name) else ""
        whole = isinstance(items, range) and name
        if whole and len(items) > UNROLLED and not leaves(node) and self.long(node, items, inner):
            return
        rest = iter(items)
        for position, item in enumerate(rest):
            self.assign(node.target, item)
            try:
                if self.one_round(node, inner):
                    return
            except RunTimeJump:
                if not whole:
                    if rest is items and not self.its_own(node.iter):
                        raise
                    later = list(itertools.islice(rest, UNROLLED))
                    if len(later) == UNROLLED:  # as many as there are, if they ever end
                        raise
                    self.one_by_one(node, [item, *later], inner)
                    return
                self.counted(node, name, items[position:], inner)
                return
        self.block(node.orelse, needed)

    def long(self, node: ast.For, items: range, needed: set[str]) -> bool:
        """A long loop without jumps; whether it is done, or should rather be written out, as one of
        not too many rounds is in each of which a list grows."""
        assert isinstance(node.target, ast.Name)
        before, saved = Contents(self.session, self.env, self.cells.identities), dict(self.env)
        try:
            self.counted(node, node.target.id, items, needed)
            return True
        except Grows:
            if len(items) > GROWN:
                raise
            self.take_back(before, saved)
            return False
        except Begins:  # the first round differs in type from all others
            self.take_back(before, saved)
            self.env[node.target.id] = items[0]
            self.one_round(node, needed)
            self.counted(node, node.target.id, items[1:], needed)
            return True

    def take_back(self, before: Contents, saved: dict[str, Any]) -> None:
        """Everything as it was."""
        before.take_back()
        self.env.clear()
        self.env.update(saved)

    def its_own(self, node: ast.expr) -> bool:
        """Whether nobody else sees an iterator that an expression makes: `enumerate` and `zip` of
        what are none themselves."""
        match node:
            case ast.Call(ast.Name("enumerate" | "zip" | "reversed"), args):
                return all(map(self.its_own, args))
            case ast.Name(name) if name in self.env:
                return not hasattr(type(self.env[name]), "__next__")
            case ast.Call(ast.Name("range")) | ast.List() | ast.Tuple() | ast.Constant():
                return True
        return False

    def one_by_one(self, node: ast.For, items: list[Any], needed: set[str]) -> None:
        """A loop over things known now, which values end: each round is on condition that none
        before it was the last."""
        loop = self.without_jumps(node)
        for item in items:
            self.loops += 1
            name = f"nbcomp_item_{self.loops}"
            self.env[name] = item
            assigned = ast.Assign([node.target], ast.Name(name, ast.Load()))
            test = ast.copy_location(ast.Name(loop.go, ast.Load()), node)
            statement = ast.If(test, [ast.copy_location(assigned, node), *loop.body], [])
            ast.fix_missing_locations(ast.copy_location(statement, node))
            self.block([statement], needed | set(loop.flags))
            del self.env[name]
        self.follow = loop.after

    def without_jumps(self, node: ast.While | ast.For) -> Straight:
        """A loop whose jumps are variables, which are set as they are before it."""
        self.loops += 1
        loop = straight(node, f"nbcomp_loop_{self.loops}", self.source.at)
        self.env.update(dict.fromkeys(loop.returns, False))
        if loop.go:
            self.env[loop.go] = True
        return loop

    def counted(self, node: ast.For, name: str, items: range, needed: set[str]) -> None:
        """A long loop over a range, its rounds counted at run time."""
        depth = sum(other.startswith(COUNT) for other in self.env)  # loops it is in
        count = f"{COUNT}_{depth}"
        self.env[count], self.env[name] = 0, items[0]

        def test() -> Any:
            return self.session.call(np.less, (self.env[count], len(items)), {})

        def begin() -> None:
            self.env[name] = self._whole(items.step, self.env[count], items.start)
            self.env[count] = self._whole(1, self.env[count], 1)

        self.repeat(node, test, begin, needed, (count,), once=True)
        del self.env[count]

    def _whole(self, factor: int, value: Any, offset: int) -> Any:
        """factor·value + offset of an int known at run time."""
        if type(value) is int:
            return factor * value + offset
        product = value if factor == 1 else self.session.call(np.multiply, (value, factor), {})
        result = self.session.call(np.add, (product, offset), {})
        result._python = int
        return result

    def repeat(
        self,
        node: ast.While | ast.For,
        test: Callable[[], Any],
        begin: Callable[[], None],
        needed: set[str],
        own: tuple[str, ...] = (),
        once: bool = False,
    ) -> None:
        """A loop whose rounds are counted at run time; `once`: at least one."""
        loop = self.without_jumps(node)
        assigned = [*own, *loop.flags, *sorted(names_in([node]).assigned)]

        def condition() -> Node:
            nodes = []
            for value in (self.env[loop.go], test()) if loop.go else (test(),):
                node = truth_of(self.session, value)
                nodes.append(constant(np.asarray(bool(value))) if node is None else node)
            return functools.reduce(NUMPY[np.logical_and].trace, nodes)

        def body() -> None:
            begin()
            self.block(loop.body, needed | set(assigned))

        before = set(self.env)
        with at(self.source.at(node)):
            around = self.session, self.env, assigned, condition, body
            place = self.source.at(node)
            torn = Repeat(*around, place, self.cells.identities, once).run()
        unset = [n for n in assigned if n not in before and n not in self.env]
        for name in [*torn, *unset]:
            message = f"`{name}` has a value only inside the loop, and is used after it"
            hint = "give it a value of the same type before the loop"
            self.env[name] = Undecided(Unsupported(message, self.source.at(node), hint))
        self.follow = loop.after

    def one_round(self, node: ast.While | ast.For, needed: set[str]) -> bool:
        """One round of a loop; whether it was left.

        Where that is known at run time only, RunTimeJump is raised with everything as it was.
        """
        if not _may_jump(node):
            self.block(node.body, needed)
            return False
        before, saved = Contents(self.session, self.env, self.cells.identities), dict(self.env)
        try:
            self.block(node.body, needed)
        except _Break:
            return True
        except _Continue:
            pass
        except RunTimeJump:
            self.take_back(before, saved)
            raise
        return False

    def stmt_Break(self, node: ast.Break, needed: set[str]) -> None:
        raise _Break

    def stmt_Continue(self, node: ast.Continue, needed: set[str]) -> None:
        raise _Continue

    def assign(self, target: ast.expr, value: Any) -> None:
        """`target = value`"""
        name = "nbcomp_item"
        self.env[name] = value
        statement = ast.Assign([target], ast.Name(name, ast.Load()))
        ast.copy_location(statement, target)
        ast.copy_location(statement.value, target)
        self.execute(statement)
        del self.env[name]


@functools.lru_cache(maxsize=4096)
def _may_jump(node: ast.While | ast.For) -> bool:
    """Whether anything in a loop's body is a jump."""
    kinds = (ast.Break, ast.Continue, ast.Return)
    return any(isinstance(part, kinds) for inner in node.body for part in ast.walk(inner))
