"""Runs a scripted function's statements: those that work on whole arrays on tracers, as Python
does, and loops over elements as kernels.

Statements are taken in order.  As many as can be are written as one kernel (`region`); what cannot
is executed, each statement as a small Python function of the variables it uses, and control flow is
followed where it is known while compiling.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from nbcomp.errors import NbcompError, Unsupported
from nbcomp.frontend.checks import raising
from nbcomp.frontend.location import here
from nbcomp.frontend.python_numbers import is_number, number
from nbcomp.frontend.script.branching import Undecided, choose, truth_of
from nbcomp.frontend.script.closures import Cells, check_names, returning, statement_code
from nbcomp.frontend.script.conditions import ASKER, NUMBERS, WHOLE, GivenBack, rewritten
from nbcomp.frontend.script.loops import has_jumps, jumps_out
from nbcomp.frontend.script.raises import Raising, always_raised, text_of
from nbcomp.frontend.script.region import free_names
from nbcomp.frontend.script.rounds import JUMPS, Rounds, RunTimeJump
from nbcomp.frontend.script.source import Source, names_in, source_of
from nbcomp.frontend.script.values import NotElements
from nbcomp.frontend.script.writing import write_call, write_region
from nbcomp.frontend.session import Session
from nbcomp.frontend.tracer import Tracer, read
from nbcomp.frontend.unrolled import LongLoop, about_caches
from nbcomp.graph.ir import at
from nbcomp.graph.numpy_function import NUMPY

MOST_STATEMENTS = 5_000  # that are followed while compiling: some two seconds


class Returned(Exception):
    """The function is done: its value."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Interpreter(Rounds):
    """One call of a function whose source is at hand."""

    def __init__(
        self,
        session: Session,
        function: types.FunctionType,
        env: dict[str, Any],
        outermost: bool = False,
    ) -> None:
        self.outermost = outermost  # whether what is returned is what the caller gets
        self.captured = outermost  # whether this is the function that was compiled
        self.session, self.function = session, function
        self.source: Source = source_of(function)
        self.env = env
        self.free = free_names(function)
        self.locals = names_in(list(self.source.body)).assigned | set(env)
        self.cells = Cells(function)
        self.refused: NbcompError | None = None  # what a `try` of the program's may catch
        # Loops over what has been computed before them, and its variables, by the nodes.
        self.ahead: dict[ast.For, ast.For] = {}
        self.hidden: dict[ast.expr, str] = {}
        self.loops = 0  # whose rounds are counted at run time, so far
        self.follow: list[ast.stmt] = []  # what comes after the loop that has just been taken

    def run(self) -> Any:
        """The function's value."""
        check_names(self.source)
        try:
            self.block(list(self.source.body), set(self.cells.own), last=True)
        except Returned as returned:
            return returned.value
        return None

    def lookup(self, name: str) -> Any:
        """A name that is not among the variables."""
        if name in self.locals:
            raise UnboundLocalError(
                f"cannot access local variable '{name}' where it is not associated with a value"
            )
        return self.free(name)

    # ------------------------------------------------------------------------------ statements

    def block(self, body: list[ast.stmt], needed: set[str], last: bool = False) -> None:
        """Statements in order.  needed: variables read after them."""
        body, position = list(body), 0
        while position < len(body):
            self._follow(body[position])
            rest = body[position:]
            self.cells.fill(self.env)
            around = self.source, rest, self.env, self.lookup, self.cells.names
            written = write_region(self.session, *around, needed, last, self.outermost)
            if written is not None:
                self.env.update(written.env)
                if written.returned:
                    raise Returned(written.value)
                position += written.count
                continue
            if (ahead := self._ahead(rest[0])) is not rest[0]:
                body[position] = ahead
                continue
            after = names_in(rest[1:]).read | needed
            if isinstance(rest[0], ast.If):
                self.if_statement(rest[0], rest[1:], after, last)
            else:
                self.statement(rest[0], after)
            position += 1
            body[position:position], self.follow = self.follow, []

    def _ahead(self, node: ast.stmt) -> ast.stmt:
        """A loop over what is computed from whole arrays (`for k in np.argsort(x)`), which is done
        before it: what is left may be a loop over elements."""
        if not isinstance(node, ast.For) or (over := self._computed_ahead(node.iter)) is node.iter:
            return node
        if node not in self.ahead:
            made = ast.For(node.target, over, node.body, node.orelse)
            self.ahead[node] = ast.fix_missing_locations(ast.copy_location(made, node))
        return self.ahead[node]

    def _computed_ahead(self, node: ast.expr) -> ast.expr:
        """An expression, or one with variables that have the values of its parts from here on."""
        if not isinstance(node, ast.Call | ast.BinOp | ast.Subscript):
            return node
        name = (
            node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        )
        if isinstance(node, ast.Call) and name in ("zip", "enumerate", "reversed"):
            parts = [self._computed_ahead(arg) for arg in node.args]
            if all(new is old for new, old in zip(parts, node.args, strict=True)):
                return node
            return ast.copy_location(ast.Call(node.func, parts, node.keywords), node)
        if name in ("range", "map", "filter", "sorted", "iter"):
            return node
        hidden = self.hidden.setdefault(node, f"nbcomp_items_{len(self.hidden)}")
        self.env[hidden] = self.evaluate(node)
        return ast.copy_location(ast.Name(hidden, ast.Load()), node)

    def _follow(self, node: ast.stmt) -> None:
        """Count a statement that is followed while compiling; raises LongLoop for one too many."""
        self.session.followed += 1
        if self.session.followed > MOST_STATEMENTS:
            raise LongLoop(
                f"more than {MOST_STATEMENTS:,} statements are followed one by one while compiling",
                self.source.at(node),
                about_caches(
                    self.session.unrolled.cached,
                    "loops over the elements of arrays and of ranges become loops of machine code",
                ),
            )

    def statement(self, node: ast.stmt, needed: set[str]) -> None:
        """One statement, on whole arrays."""
        method: Callable[[Any, set[str]], None] | None = getattr(
            self, f"stmt_{type(node).__name__}", None
        )
        if isinstance(node, ast.For | ast.While) and method is not None:
            self.loop_statement(node, method, needed)
        elif method is not None:
            method(node, needed)
        else:
            self.execute(node)

    def loop_statement(
        self, node: ast.stmt, method: Callable[[Any, set[str]], None], needed: set[str]
    ) -> None:
        """A loop that is not one over elements; where it is neither, why it was not is told."""
        try:
            method(node, needed)
        except NbcompError as error:
            why = self.session.refusals.get(id(node))
            mine = isinstance(why, NotElements) and "whole array" not in why.reason
            if not mine or "only at run time" not in error.message:
                raise
            assert isinstance(why, NotElements)
            part = why.node if why.node is not None else node
            reason = f"{why.reason}, and as a loop over whole arrays: {error.message}"
            raise Unsupported(reason, self.source.at(part), why.hint) from None

    def if_statement(
        self, node: ast.If, rest: list[ast.stmt], needed: set[str], last: bool
    ) -> None:
        """`if`: the side that is taken, or both where that is known at run time only.

        A side that returns takes the rest of the function with it.
        """
        value = self.evaluate(node.test)
        test = truth_of(self.session, value)
        if test is None:
            self.block(node.body if value else node.orelse, needed)
            return
        names = names_in([node])
        if has_jumps(node) or (names.jumps and not last):
            raise RunTimeJump(
                "`return`, `break` and `continue` in a branch on a run-time value, in a loop over"
                " whole arrays that is not one over a range",
                self.source.at(node),
            )
        with at(self.source.at(node)):
            place = self.source.at(node.test)
            around = self.session, test, self.env
            own = self.cells.identities
            if names.jumps:
                sides = [self._side([*s, *rest], needed, True) for s in (node.body, node.orelse)]
                raise Returned(choose(*around, sides, place, own, self.captured)[1])
            sides = [self._side(s, needed, False) for s in (node.body, node.orelse)]
            env, _ = choose(*around, sides, place, own)
        for name in (names.assigned | self.env.keys()) - env.keys():
            if name in self.env or name in self.locals:
                message = f"`{name}` is assigned on one way only, and used after both"
                hint = "give it a value before the if"
                self.env[name] = Undecided(Unsupported(message, self.source.at(node), hint))
        self.env.update(env)

    def stmt_Assert(self, node: ast.Assert, needed: set[str]) -> None:
        if any(isinstance(n, ast.NamedExpr) for n in ast.walk(node)):
            self.execute(node)
            return
        value = self.evaluate(node.test)
        test = truth_of(self.session, value)
        if test is None:
            if not value:
                raise AssertionError(*([self.evaluate(node.msg)] if node.msg else []))
            return
        place = self.source.at(node)
        with at(place):
            bad = NUMPY[np.logical_not].trace(test)
            check = raising("AssertionError", text_of(node.msg), bad, place)
        self.session.effects.append(check)

    def _side(
        self, body: list[ast.stmt], needed: set[str], tail: bool
    ) -> Callable[[], tuple[dict[str, Any], Any]]:
        """What runs one side of a condition, on variables of its own."""

        def run() -> tuple[dict[str, Any], Any]:
            if (raised := always_raised(body)) is not None:
                raise raised
            outer, self.env = self.env, dict(self.env)
            outermost, self.outermost = self.outermost, False
            value = None
            try:
                self.block(body, needed, last=tail)
            except Returned as returned:
                value = returned.value
            except (NbcompError, Raising, *JUMPS):
                raise
            except Exception as error:
                raise Raising.of(error) from None
            finally:
                self.outermost = outermost
            after, self.env = self.env, outer
            return ({} if tail else after), value

        return run

    def choose(self, test: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
        condition = truth_of(self.session, test)
        if condition is None:
            return yes() if test else no()
        place = here()
        self.cells.read(self.env)
        around = {**self.env, "": (yes, no)}
        sides = [self._part(yes), self._part(no)]
        with at(place):
            env, value = choose(
                self.session, condition, around, sides, place, self.cells.identities
            )
        self.env.update(env)
        self.cells.fill(self.env)
        return value

    def _part(self, side: Callable[[], Any]) -> Callable[[], tuple[dict[str, Any], Any]]:
        """What runs one side of a condition in an expression, on variables of its own."""

        def run() -> tuple[dict[str, Any], Any]:
            outer, self.env = self.env, dict(self.env)
            self.cells.fill(self.env)
            try:
                value = side()
                self.cells.read(self.env)
                return self.env, value
            except (NbcompError, Raising, *JUMPS):
                raise
            except Exception as error:
                raise Raising.of(error) from None
            finally:
                self.env = outer

        return run

    def number(self, function: Any, *args: Any) -> Any:
        if len(args) == 1 and is_number(function, args[0]):
            return number(function, args[0])
        if function in NUMBERS and any(map(self._at_run_time, args)):
            with suppress(NotElements), at(here()):
                return write_call(self.session, function, args)
        return function(*args)

    def _at_run_time(self, value: Any) -> bool:
        """Whether this is a number that depends on what is in arrays."""
        scalar = type(value) is Tracer and (value._scalar or not value._type.shape)
        return scalar and self.session.known(read(value)) is None

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Around statements whose errors the program may catch: those of nbcomp are kept."""
        try:
            yield
        except NbcompError as error:
            self.refused = self.refused or error
            raise

    def negated(self, value: Any) -> Any:
        if truth_of(self.session, value) is None:
            return not value
        result = self.session.call(np.logical_not, (value,), {})
        result._python = bool
        return result

    def stmt_Return(self, node: ast.Return, needed: set[str]) -> None:
        raise Returned(None if node.value is None else self.evaluate(node.value))

    # -------------------------------------------------------------------------- Python's own way

    def evaluate(self, node: ast.expr) -> Any:
        """An expression's value."""
        return self._call(returning(node), [])

    def execute(self, node: ast.stmt) -> None:
        """A statement that is run as a whole."""
        self._check_jumps(node)
        assigned = sorted(names_in([node]).assigned)
        own = [n for n in assigned if n not in self.cells.all]
        values = self._call(node, own)
        if type(values) is GivenBack:
            raise Returned(values.value)
        if isinstance(node, ast.Delete):
            for name in own:
                self.env.pop(name, None)
        elif values is not None:
            self.env.update(zip(own, values, strict=True))

    def _check_jumps(self, node: ast.stmt) -> None:
        """Raise `Unsupported` for jumps out of a statement that is run as a whole."""
        if not isinstance(node, WHOLE):
            return
        kind = type(node).__name__.lower().replace("trystar", "try")
        hint = "put it after the statement"
        if jumps_out(node):
            raise Unsupported(f"a jump of a loop inside `{kind}`", self.source.at(node), hint)
        if names_in([node]).jumps and not rewritten(node)[1]:
            raise Unsupported(f"`return` and `:=` inside `{kind}`", self.source.at(node), hint)

    def _call(self, node: ast.stmt, results: list[str]) -> Any:
        """Run a statement as the body of a function of the variables it uses.

        Those that inner functions use are shared with it; the others it is given.
        """
        names = names_in([node])
        used = sorted(names.read | names.assigned)
        # What is assigned and not read may be anything before.
        known = {n for n, v in self.env.items() if n in names.read or type(v) is not Undecided}
        given = [n for n in used if n in known and n not in self.cells.all]
        unset = [n for n in used if n in self.locals and n not in known]
        node, asks = rewritten(node)
        asker = [ASKER] if asks else []
        code = statement_code(
            self.source, node, (*given, *asker), tuple(self.cells.all), tuple(unset), tuple(results)
        )
        for name in (*given, *code.co_freevars):
            if isinstance(self.env.get(name), Undecided):
                raise self.env[name].error
        self.cells.fill(self.env)
        closure = tuple(self.cells.all[n] for n in code.co_freevars)
        call = types.FunctionType(code, self.function.__globals__, self.source.name, None, closure)
        try:
            value = call(*(self.env[n] for n in given), *([self] if asks else []))
        finally:
            self.cells.read(self.env)
            refused, self.refused = self.refused, None
        if refused is not None:  # and caught by the program, which Python would not have seen
            raise refused
        return value
