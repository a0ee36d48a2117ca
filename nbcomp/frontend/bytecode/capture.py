"""Capture by symbolic execution of bytecode: a whole function, or the part of it from one place on.

`capture` takes a call of a function; `Stopped` says where Python has to go on.  `capture_part`
takes a function that is running: the values of its variables and stack at an instruction, as far as
the graph comes from there.  Knows the machine and the parts of tracing; nothing of code objects to
be made.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nbcomp.errors import NbcompError, Unsupported
from nbcomp.frontend.bytecode import flow
from nbcomp.frontend.bytecode.instructions import Instruction
from nbcomp.frontend.bytecode.machine import (
    EARLY_STEPS,
    Machine,
    Reached,
    Root,
    Stopped,
    TooLong,
    stopped,
)
from nbcomp.frontend.bytecode.opcodes import TABLES
from nbcomp.frontend.bytecode.remade import method, remade
from nbcomp.frontend.bytecode.table import VERSION
from nbcomp.frontend.bytecode.values import NULL, UNBOUND
from nbcomp.frontend.lift import Lazy
from nbcomp.frontend.location import location_of
from nbcomp.frontend.result import Own, Static, Tree, bind
from nbcomp.frontend.session import NOTHING_OPEN, Openings
from nbcomp.frontend.trace import Capture, default_guards, finish, name_of, run, signature_of, start
from nbcomp.frontend.unrolled import EARLY_WRITES, LongLoop, loop_around
from nbcomp.graph.control import Control, Loops
from nbcomp.record import Location
from nbcomp.runtime.plan import ObjectGuard, Source

Places = dict[tuple[types.CodeType, int], Unsupported]  # left to Python, and why
STACKED = "what was computed just before"  # by an expression, on the stack
EARLY_VALUES = 1 << 22  # elements computed while compiling before a loop is asked for as one
MOST_TRIES = 6  # places for a part to end at, the last first


def supported_version() -> bool:
    """Whether the bytecode of this Python is known."""
    return VERSION in TABLES


def capture(
    function: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    places: Places,
    opened: Openings = NOTHING_OPEN,
    by_source: Callable[[], Capture] | None = None,
) -> Capture:
    """The graph of a call, of all of the function; `opened` as for tracing.

    by_source: another way, for a function with loops over elements.

    Raises `Stopped` where Python has to go on, and `Unsupported`.
    """
    signature = signature_of(function)
    values = bind(signature, args, kwargs, function)
    while True:
        session, lifter = start(name_of(function), opened)
        machine = Machine(session, lifter, TABLES[VERSION], places)
        if by_source is not None:
            machine.most_steps, session.unrolled.most = EARLY_STEPS, EARLY_WRITES
            session.budget = EARLY_VALUES
        try:
            return _captured(function, signature, values, machine)
        except (Stopped, LongLoop) as stop:
            long = _is_long(stop)
            if by_source is not None and (long or _in_a_loop(stop)):
                if (loops := loops_over_elements(by_source)) is not None:
                    return loops
                if not long:
                    raise
                by_source = None  # once more, with more room for what is written out
            elif isinstance(stop, LongLoop) or not _left_to_python(stop, places):
                raise
        finally:
            session.close()


def _captured(
    function: Any, signature: inspect.Signature, values: Sequence[Any], machine: Machine
) -> Capture:
    """What a machine makes of a call, in its session."""
    session, lifter = machine.session, machine.lifter
    session.stand_in = machine.stand_in
    copy = lifter.lift(function, Source("object", session.name, function))
    lifted = [
        _argument(lifter, value, Source("argument", i, name=name), parameter)
        for i, (value, (name, parameter)) in enumerate(
            zip(values, signature.parameters.items(), strict=True)
        )
    ]
    for guard in default_guards(function):
        session.guard(guard)
    returned = run(copy, signature, lifted)
    try:
        return finish(session, lifter, signature, returned)
    except NbcompError as error:
        if machine.root is None:
            raise
        raise stopped(machine.root, error) from None


def _is_long(stop: Stopped | LongLoop) -> bool:
    """Whether a loop is too long to be written out."""
    return isinstance(stop if isinstance(stop, LongLoop) else stop.error, LongLoop)


def _in_a_loop(stop: Stopped | LongLoop) -> bool:
    """Whether a loop has come to what Python has to do."""
    if isinstance(stop, LongLoop):
        return False
    inner = stop.error.location if isinstance(stop.error, NbcompError) else None
    if inner is not None and inner.function == "<genexpr>":
        return True
    return loop_around(location_of(stop.frame.f_code, stop.instruction.offset)) is not None


def has_loops(made: Capture) -> bool:
    """Whether it has control flow, all of it loops over elements."""
    return {type(n.op) for n in made.graph.nodes if isinstance(n.op, Control)} == {Loops}


def loops_over_elements(by_source: Callable[[], Capture]) -> Capture | None:
    """What the source gives, if its loops are loops over elements: those of whole arrays are as
    fast when they are written out, or run by Python round by round."""
    try:
        made = by_source()
    except Exception:  # what is wrong with it is Python's to say
        return None
    return made if has_loops(made) else None


def _left_to_python(stop: Stopped, places: Places) -> bool:
    """Whether the machine stopped for a loop that is to be left to Python, which is noted."""
    if not isinstance(stop.error, TooLong):
        return False
    place = stop.error.frame.f_code, stop.error.head.offset
    known = place in places
    # Without its frames, which would keep values alive.
    places[place] = Unsupported(stop.error.message, stop.error.location, stop.error.hint)
    return not known


def _argument(lifter: Any, value: Any, source: Source, parameter: Any) -> Any:
    """An argument that is lifted when it is used; of `*args` and `**kwargs` each."""
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return lifter.lift(value, source, source.name)
    return Lazy(lifter, value, source, source.name)


# ---------------------------------------------------------------------------------------- parts


@dataclass(frozen=True, eq=False)
class Break:
    """Where Python goes on: the instruction, the reason, and what would avoid it."""

    index: int  # of the instruction, in its code
    depth: int  # of the stack before it
    nulls: tuple[int, ...]  # positions of empty entries in the stack
    error: Exception
    location: Location
    within: Location | None = None  # in a function that is called here

    @property
    def reason(self) -> str:
        """In the user's terms."""
        if isinstance(self.error, NbcompError):
            within = self.within
            where = f"in {within.function}, line {within.line}: " if within is not None else ""
            return where + self.error.message
        return f"{type(self.error).__name__} is raised here: {self.error}"

    @property
    def in_numpy(self) -> bool:
        """Whether it is an operation on arrays that NumPy has to do."""
        return isinstance(self.error, Unsupported) and "not compiled" in self.reason

    @property
    def hint(self) -> str:
        """The change that would avoid it."""
        return self.error.hint if isinstance(self.error, NbcompError) else ""


@dataclass(frozen=True)
class Exit:
    """The state in which a part leaves its function to Python: at which instruction, and what the
    values that it hands out are for.

    index: None when it returns the function's result.  stores: (variable, "local", "cell", or
    "gone" for one that has no value any more).  stack: whether each entry holds a value (else
    NULL), the lowest first.
    """

    index: int | None = None
    stores: tuple[tuple[str, str], ...] = ()
    stack: tuple[bool, ...] = ()


@dataclass(frozen=True)
class Part:
    """What a function does from one place on; no capture if nothing of it can be compiled."""

    capture: Capture | None
    exit: Exit | None
    stop: Break | None


@dataclass(frozen=True, eq=False)
class Head:
    """A place where a part begins: the instruction, the variables handed in, the stack's depth."""

    function: types.FunctionType
    instructions: tuple[Instruction, ...]
    index: int
    names: tuple[str, ...]
    depth: int

    @property
    def signature(self) -> inspect.Signature:
        """Of what runs the part."""
        names = [n if n.isidentifier() else f"v{k}" for k, n in enumerate(self.names)]
        names += [f"stack{k}" for k in range(self.depth)]
        kind = inspect.Parameter.POSITIONAL_ONLY
        return inspect.Signature([inspect.Parameter(n, kind) for n in names])


def capture_part(
    head: Head,
    values: Sequence[Any],
    places: Places,
    marker: Callable[[Exit], Any],
    substitute: Callable[[Any], Any],
    varying: frozenset[Source] = frozenset(),
) -> Part:
    """The graph from a place on, for these values of its variables and stack.

    marker: what stands for an exit in what the part hands out, before all else.  substitute: what
    Python calls in place of a function of the user's that cannot be taken into the graph.
    """
    while True:
        run = _Run(head, values, places, varying)
        stop = run.go(None)
        if stop is None:
            try:
                return run.returned(marker)
            except NbcompError as error:
                stop = stopped(run.frame, error)
        if not _left_to_python(stop, places):
            break
    why = break_of(stop)
    called = stop.called is not None
    ends = _ends(stop.frame, called)
    for end in ends[:MOST_TRIES]:
        run = _Run(head, values, places, varying)
        try:
            if run.go(end) is None:
                return run.left(marker, why, substitute if called and end == ends[0] else None)
        except NbcompError:
            continue
    return Part(None, None, why)


def break_of(stop: Stopped) -> Break:
    """Where and why the machine stopped."""
    frame, i = stop.frame, stop.instruction
    nulls = tuple(k for k, v in enumerate(frame.stack) if v is NULL)
    place = location_of(frame.f_code, i.offset)
    error = stop.error.with_traceback(None)
    error.__context__ = error.__cause__ = None  # frames would keep values alive
    inner = error.location if isinstance(error, NbcompError) else None
    if stop.called is not None:
        return Break(i.index, len(frame.stack), nulls, error, place, inner)
    return Break(i.index, len(frame.stack), nulls, error, inner or place)


def _ends(frame: Root, called: bool) -> list[int]:
    """After how many instructions the part may end, the best first."""
    last = frame.count if called else frame.useful
    if not last:
        return []
    return [last, *(b for b in reversed(frame.boundaries) if 0 < b < last)]


class _Run:
    """One symbolic execution of a part."""

    def __init__(
        self, head: Head, values: Sequence[Any], places: Places, varying: frozenset[Source]
    ) -> None:
        self.head = head
        self.session, self.lifter = start(name_of(head.function))
        self.session.varying = varying
        self.session.resumed = head.index != flow.first(head.instructions)
        self.machine = Machine(self.session, self.lifter, TABLES[VERSION], places)
        self.session.stand_in = self.machine.stand_in
        self.values = values

    def go(self, stop: int | None) -> Stopped | None:
        """Run, all of it or so many instructions; what stopped it, if anything but that."""
        function, head = self.head.function, self.head
        seen = self.lifter.lift(function, Source("object", function.__name__, function))
        copy = self.machine.copy_of(seen)
        if copy is None:
            raise Unsupported(f"{function.__name__} belongs to a library")
        self.frame = Root(self.machine, copy, self._variables(), stop)
        self.frame.index = head.index
        first = len(head.names)
        self.frame.stack = [self._lazy(first + k, STACKED) for k in range(head.depth)]
        self.before = dict(self.frame.variables)
        cells = zip(function.__code__.co_freevars, copy.__closure__ or (), strict=True)
        self.frame.variables.update(cells)
        try:
            self.value = self.machine.enter(self.frame)
        except Stopped as stopped:
            return stopped
        except Reached:
            pass
        return None

    def _variables(self) -> dict[str, Any]:
        variables: dict[str, Any] = {}
        cells = self.head.function.__code__.co_cellvars
        for k, name in enumerate(self.head.names):
            value = self.values[k]
            source = Source("argument", k, name=name)
            if value is UNBOUND:
                self.session.guard(ObjectGuard(source, UNBOUND))
            elif name in cells:
                variables[name] = self.lifter.own_cell(value, source, name)
            else:
                variables[name] = self._lazy(k, name)
        return variables

    def _lazy(self, k: int, name: str) -> Lazy:
        node = "" if name == STACKED else name
        return Lazy(self.lifter, self.values[k], Source("argument", k, name=name), node)

    def returned(self, marker: Callable[[Exit], Any]) -> Part:
        """The part that ends with the function's own return."""
        if not self.session.calls:
            return Part(None, None, None)  # Python returns as fast
        exit = Exit()
        return Part(self._capture(marker(exit), (self.value,)), exit, None)

    def left(
        self, marker: Callable[[Exit], Any], why: Break, substitute: Callable[[Any], Any] | None
    ) -> Part:
        """The part that ends where the frame is now."""
        frame = self.frame
        index = _before_keywords(frame)
        stores: list[tuple[str, str]] = []
        values: list[Any] = []
        needed = flow.live(frame.f_code, frame.instructions)[index]
        for name, how, value in self._changes(needed):
            stores.append((name, how))
            values.append(value)
        stack = [v for v in frame.stack if v is not NULL]
        if substitute is not None:
            stack = [self._substituted(v, substitute) for v in stack]
        full = tuple(v is not NULL for v in frame.stack)
        exit = Exit(index, tuple(stores), full)
        return Part(self._capture(marker(exit), (*values, *reversed(stack))), exit, why)

    def _changes(self, needed: frozenset[str]) -> list[tuple[str, str, Any]]:
        """The variables that are not what they were, and their values."""
        result: list[tuple[str, str, Any]] = []
        for name in sorted(self.frame.variables.keys() | self.before.keys()):
            value = self.frame.variables.get(name, UNBOUND)
            if type(value) is types.CellType:
                if name in self.frame.f_code.co_cellvars and self.lifter.changed(value):
                    result.append((name, "cell", value.cell_contents))
            elif name in needed and value is not self.before.get(name, UNBOUND):
                result.append((name, "gone" if value is UNBOUND else "local", value))
        return result

    def _substituted(self, value: Any, substitute: Callable[[Any], Any]) -> Any:
        """What is called: compiled by itself."""
        if isinstance(value, types.MethodType):
            function = self._substituted(value.__func__, substitute)
            return value if function is value.__func__ else _Bound(function, value.__self__)
        ours = self.machine.copy_of(value) and id(value) not in self.lifter.given
        original = self.lifter.original(value) if ours else None
        return value if original is None else _Given(substitute(original))

    def _capture(self, marker: Any, values: Sequence[Any]) -> Capture:
        """All of it as a tuple that the run time can make by itself."""
        session = self.session
        try:
            made = finish(
                session, self.lifter, self.head.signature, (_Given(marker), *values), self._remade
            )
        finally:
            session.close()
        assert isinstance(made.result, tuple)
        return replace(made, result=tuple(map(_at_hand, made.result)))

    def _remade(self, value: Any, tree: Callable[[Any], Tree]) -> Tree | None:
        if value is UNBOUND:
            return Static(UNBOUND)
        if type(value) is _Given:
            return Static(value.value)
        if type(value) is _Bound:
            return method(tree(value.function), tree(value.owner))
        return remade(self.machine, value, tree)


@dataclass(frozen=True)
class _Given:
    """An object to be handed out as it is."""

    value: Any


@dataclass(frozen=True, eq=False)
class _Bound:
    """A method of an object of the caller's."""

    function: Any
    owner: Any


def _at_hand(tree: Tree) -> Tree:
    """A known value as an object that is found when the part has run: that needs no Python."""
    if isinstance(tree, Static):
        return Own(Source("object", root=tree.value))
    return tree


def _before_keywords(frame: Root) -> int:
    """The instruction to go on at: not between the names of keywords and their call."""
    index = frame.index
    while index and frame.instructions[index - 1].name in ("KW_NAMES", "PRECALL"):
        index -= 1
    return index
