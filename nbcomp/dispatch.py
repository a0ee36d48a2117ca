"""Library dispatch: routines that users bring along, in place of what they compute.

    library = nbcomp.Library("mylib")

    @library.routine(lambda x, w, b: np.maximum(x @ w.T + b, 0))
    def linear_relu(x, w, b): ...

    fast = nbcomp.jit(model, libraries=[library])

What a routine computes is a pattern: a function in NumPy, whose arguments stand for anything.
Where the pattern is found in a program, a call of the routine takes its place, always or, with an
estimate of its seconds, where it is faster than what the compiler would make by its own model; a
remark says so.  Knows patterns and graphs, and what products cost; not how calls are made.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nbcomp.errors import NbcompError
from nbcomp.frontend.location import raised_at
from nbcomp.function_pattern import FunctionPattern, Pass, parameters
from nbcomp.graph.ir import Graph, Node
from nbcomp.graph.match import Match, closed, substitute
from nbcomp.graph.op import Contract, View
from nbcomp.graph.passes import product_cost
from nbcomp.graph.passes.product_cost import CLOCK
from nbcomp.graph.passes.products import product_of, time_text
from nbcomp.machine import host
from nbcomp.ops.external import CFunction, External, Routine
from nbcomp.options import Routines
from nbcomp.record import Trace, remark
from nbcomp.target.llvm.pointers import address_of
from nbcomp.types import TensorType


@dataclass(frozen=True, eq=False)
class Rule:
    """When a routine is called: what it computes, for which types, and how long it takes."""

    routine: Routine
    pattern: Callable[..., Any]
    where: Callable[..., Any] | None
    seconds: Callable[..., float] | None


class Library:
    """Routines by name, each with the pattern it may take the place of; earlier ones come first."""

    def __init__(self, name: str) -> None:
        if not name.isidentifier():
            raise ValueError(f"the name of a library is one like mylib, not {name!r}")
        self.name = name
        self.rules: list[Rule] = []

    def __repr__(self) -> str:
        return f"<nbcomp.Library {self.name}: {', '.join(r.routine.name for r in self.rules)}>"

    def routine(
        self,
        pattern: Callable[..., Any],
        where: Callable[..., Any] | None = None,
        seconds: Callable[..., float] | None = None,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """A decorator for a Python function of arrays that computes what `pattern` does.

        It has the pattern's arguments, read-only arrays which it must not keep, and gives an array
        of the same dtype and shape; if it has an argument `out` besides, it writes there instead.
        where, seconds: functions of the arguments' types (`dtype`, `shape`): whether it is for
        them, and how long a call takes, if it is to be called only where that is faster than the
        compiler's own estimate.  Raises TypeError where the arguments differ from the pattern's.
        """

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            names = list(inspect.signature(function).parameters)
            wanted = parameters(pattern)
            into = "out" in names and "out" not in wanted
            if len(names) - into != len(wanted):
                raise TypeError(
                    f"{function.__name__}({', '.join(names)}) takes other arguments than its "
                    f"pattern ({', '.join(wanted)})"
                )
            self._add(function.__name__, pattern, function, into, where, seconds)
            return function

        return add

    def c_routine(
        self,
        name: str,
        pattern: Callable[..., Any],
        pointer: Any,
        arguments: Callable[..., Sequence[Any]],
        *,
        by_reference: bool = False,
        where: Callable[..., Any] | None = None,
        seconds: Callable[..., float] | None = None,
    ) -> None:
        """Add a function of C that computes what `pattern` does.

        pointer: an address, a function of ctypes, or a PyCapsule such as those of
        `scipy.linalg.cython_blas.__pyx_capi__`.  arguments: what it is passed, as a function of the
        result and the pattern's arguments, each with `shape`, `strides` (in elements, C order) and
        `dtype`, and each passed as a pointer; an int is passed as `int`, a float as `double`, a
        letter as `char`, NumPy's scalars as what they are; all by address if `by_reference`, as
        Fortran does.  where, seconds: see `routine`.  It is called on one thread, without the GIL.
        """
        function = CFunction(address_of(pointer), arguments, by_reference, pointer)
        self._add(name, pattern, function, False, where, seconds)

    def _add(
        self,
        name: str,
        pattern: Callable[..., Any],
        implementation: Callable[..., Any] | CFunction,
        into: bool,
        where: Callable[..., Any] | None,
        seconds: Callable[..., float] | None,
    ) -> None:
        routine = Routine(f"{self.name}.{name}", pattern, implementation, into)
        self.rules.append(Rule(routine, pattern, where, seconds))


def dispatching(libraries: Sequence[Routines], passes: Sequence[Pass]) -> Pass:
    """The pass that calls the routines of libraries; `passes` have been done to the graph."""

    def dispatch(graph: Graph) -> Graph:
        """Call routines of the user's libraries where their patterns are found."""
        for library in libraries:
            for rule in library.rules:
                graph = _dispatched(graph, rule, passes)
        return graph

    return dispatch


def _dispatched(graph: Graph, rule: Rule, passes: Sequence[Pass]) -> Graph:
    """The graph with one routine called wherever it is to be."""
    pattern = FunctionPattern(rule.pattern, passes=passes)
    with Trace().listening():  # what passes say about the pattern is of no interest
        try:
            pattern.prepare(graph)
        except NbcompError as error:
            name = rule.routine.name
            raise NbcompError(f"the pattern of {name}: {error.message}", error.location) from error
        except Exception as error:  # whatever the user's pattern raises
            raised = f"{type(error).__name__}: {error}"
            message = f"the pattern of {rule.routine.name} fails for every kind of array: {raised}"
            raise NbcompError(message, raised_at(error)) from error

    reasons: dict[Node, str] = {}

    def find(node: Node) -> tuple[Match, Graph] | None:
        with Trace().listening():
            found = pattern.find(node)
        if found is None or not closed(graph, found[0]):
            return None
        match = found[0]
        yes, reasons[node] = _choice(rule, match, graph)
        if not yes:
            remark("missed", "routine", f"{_described(match)}: {reasons[node]}", node.location)
            return None
        wildcards = tuple(match.bound)
        call = Node(External(rule.routine, node.type), wildcards, node.type)
        return match, Graph(rule.routine.name, wildcards, (call,))

    changed, matches = substitute(graph, find)
    for match in matches:
        reason = f"{_described(match)}: {reasons[match.anchor]}"
        remark("applied", "routine", reason, match.anchor.location)
    return changed


def _choice(rule: Rule, match: Match, graph: Graph) -> tuple[bool, str]:
    """Whether the routine is called, and why or why not."""
    name, types = rule.routine.name, [n.type for n in match.bound.values()]
    if rule.where is not None and not _asked(rule, "where", types):
        return False, f"{name} is not for {', '.join(map(str, types))}"
    if rule.seconds is None:
        return True, f"a call of {name}"
    own, theirs = _estimate(match, graph), _asked(rule, "seconds", types)
    times = f"{name} about {time_text(theirs)}, the compiler's own code {time_text(own)}"
    return theirs <= own, f"{'a' if theirs <= own else 'no'} call of {name}: {times}"


def _asked(rule: Rule, what: str, types: Sequence[TensorType]) -> Any:
    """What `where` or `seconds` of a rule, functions of the user's, say about types; what goes
    wrong in them is said of them, at their line."""
    function = rule.where if what == "where" else rule.seconds
    assert function is not None
    try:
        answer = function(*types)
        return bool(answer) if what == "where" else float(answer)
    except Exception as error:
        given = ", ".join(map(str, types))
        raised = f"{type(error).__name__}: {error}"
        message = f"`{what}` of {rule.routine.name} failed for {given}: {raised}"
        raise NbcompError(message, raised_at(error)) from error


def _described(match: Match) -> str:
    """What is computed where a pattern was found, and by which operators, in order."""
    names = [n.op.name for n in match.inside if not isinstance(n.op, View)]
    return f"{match.anchor.title}: {' + '.join(names)}"


def _estimate(match: Match, graph: Graph) -> float:
    """Seconds on one core of the compiler's own code for what was matched."""
    machine, cycles = host(), 0.0
    for node in match.inside:
        if isinstance(node.op, Contract):
            product = product_of(node, graph)
            sides = product_cost.generated(product, machine), product_cost.blas(product, machine)
            cycles += min(sides)
        elif not isinstance(node.op, View):
            cycles += node.op.cost * _vectors(node.type, machine.vector_bytes)
    return cycles / CLOCK


def _vectors(t: TensorType, vector_bytes: int) -> float:
    return math.ceil(t.size * t.dtype.itemsize / vector_bytes)
