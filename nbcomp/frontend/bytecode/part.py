"""Capture by symbolic execution of bytecode, of a function that is running: a part of it.

`capture_part` takes the values of the variables and of the stack at an instruction, as far as the
graph comes from there; a `Break` says why it comes no further, an `Exit` what Python needs to go
on.  Knows the machine and the parts of tracing; nothing of code objects to be made.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from nbcomp.conditions import Conditions
from nbcomp.errors import NbcompError, Unsupported
from nbcomp.frontend.bytecode import flow
from nbcomp.frontend.bytecode.capture import Places, left_to_python
from nbcomp.frontend.bytecode.control import callee
from nbcomp.frontend.bytecode.instructions import Instruction
from nbcomp.frontend.bytecode.machine import Machine, Reached, Root, Stopped, stopped
from nbcomp.frontend.bytecode.opcodes import TABLES
from nbcomp.frontend.bytecode.remade import made_of, remade
from nbcomp.frontend.bytecode.table import VERSION
from nbcomp.frontend.bytecode.values import NULL, UNBOUND, force
from nbcomp.frontend.lift import Lazy
from nbcomp.frontend.location import here, location_of
from nbcomp.frontend.objects import attribute, shadowed
from nbcomp.frontend.result import Own, Static, Tree
from nbcomp.frontend.session import Openings
from nbcomp.frontend.trace import Capture, finish, name_of, start
from nbcomp.record import Location
from nbcomp.runtime.plan import WHOLE, ObjectGuard, Source, member
from nbcomp.wrapped import is_model, parted

STACKED = "what was computed just before"  # by an expression, on the stack
Substitute = Callable[[Any, Any], Any]  # of a function, and of the model it is called for or None
MOST_TRIES = 6  # places for a part to end at, the last first


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
    substitute: Substitute,
    varying: frozenset[Source] = frozenset(),
) -> Part:
    """The graph from a place on, for these values of its variables and stack.

    marker: what stands for an exit in what the part hands out, before all else.  substitute: what
    Python calls in place of a function of the user's that cannot be taken into the graph, or of
    the `forward` of a model that is called.  varying:
    numbers that differ from call to call.  An int among them is left open; what needs the number
    itself is Python's to do.
    """
    opened = _opened(varying, values)
    while True:
        capturing = _Capturing(head, values, places, varying - opened.keys(), opened)
        part = capturing.part(marker, substitute)
        needed = {s for s, n in opened.items() if n[WHOLE] in capturing.needed}
        if not needed:
            return part
        opened = {s: n for s, n in opened.items() if s not in needed}


def _opened(varying: frozenset[Source], values: Sequence[Any]) -> dict[Source, Mapping[int, str]]:
    """Names for the ints among the variables that are left open."""
    found: dict[Source, Mapping[int, str]] = {}
    for source in sorted(varying, key=lambda s: str(s.key)):
        if source.kind == "argument" and not source.path and type(values[source.key]) is int:
            name = source.name if source.name.isidentifier() else "n"
            taken = {n[WHOLE] for n in found.values()}
            found[source] = {WHOLE: name if name not in taken else f"{name}{len(found)}"}
    return found


@dataclass
class _Capturing:
    """A capture of a part: a run to see how far it comes, and one up to there.

    needed: the names of open numbers that had to be known.
    """

    head: Head
    values: Sequence[Any]
    places: Places
    varying: frozenset[Source]
    opened: Openings
    needed: set[str] = field(default_factory=set)

    def part(self, marker: Callable[[Exit], Any], substitute: Substitute) -> Part:
        """See `capture_part`."""
        while True:
            with self._run() as run:
                stop = run.go(None)
                if stop is None:
                    try:
                        return run.returned(marker)
                    except NbcompError as error:
                        stop = stopped(run.frame, error)
            if not left_to_python(stop, self.places):
                break
        why = break_of(stop)
        called = stop.called is not None
        ends = _ends(stop.frame, called)
        for end in ends[:MOST_TRIES]:
            with self._run() as run, suppress(NbcompError):
                if run.go(end) is None:
                    return run.left(marker, why, substitute if called and end == ends[0] else None)
        return Part(None, None, why)

    @contextmanager
    def _run(self) -> Iterator[_Run]:
        """A run under conditions of its own; afterwards it is known which numbers it needed."""
        conditions = Conditions(where=here)
        with conditions.in_force() if self.opened else nullcontext():
            yield _Run(self)
        self.needed.update(f.symbol.name for f in conditions.fixed if f.needed)


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

    def __init__(self, asked: _Capturing) -> None:
        self.head = head = asked.head
        self.session, self.lifter = start(name_of(head.function), asked.opened)
        self.session.varying = asked.varying
        self.session.resumed = head.index != flow.first(head.instructions)
        self.machine = Machine(self.session, self.lifter, TABLES[VERSION], asked.places)
        self.session.stand_in = self.machine.stand_in
        self.values = asked.values

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
        self, marker: Callable[[Exit], Any], why: Break, substitute: Substitute | None
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
        if substitute is not None and (k := callee(frame)) is not None:
            called = frame.stack[k]
            stack = [self._substituted(v, substitute) if v is called else v for v in stack]
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

    def _substituted(self, value: Any, substitute: Substitute) -> Any:
        """What is called: compiled by itself."""
        value = force(value)
        if isinstance(value, types.MethodType):
            function = self._substituted(value.__func__, substitute)
            made = _Made(types.MethodType, (function, value.__self__))
            return value if function is value.__func__ else made
        if isinstance(value, functools.partial):
            function = self._substituted(value.func, substitute)
            made = _Made(_partial, (function, value.args, value.keywords))
            return value if function is value.func else made
        if (known := shadowed(value)) is not None:
            return self._object(value, known[0], substitute)
        ours = self.machine.copy_of(value) and id(value) not in self.lifter.given
        original = self.lifter.original(value) if ours else None
        return value if original is None else _Given(substitute(original, None))

    def _object(self, value: Any, original: Any, substitute: Substitute) -> Any:
        """An object that is called: its method, compiled for all objects of its class."""
        if not isinstance(member(type(original), "__call__"), types.FunctionType):
            return value
        method = attribute(value, "__call__", implicit=True)  # assumed to stay what it is
        if not is_model(original):
            made = self._substituted(method, substitute)
            return value if made is method else made
        forward = parted(original)
        if forward is None:
            return value
        attribute(value, "forward")
        return _Made(types.MethodType, (_Given(substitute(forward, original)), value))

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
        if type(value) is _Made:
            return made_of(value.make, value.parts, tree)
        return remade(self.machine, value, tree)


@dataclass(frozen=True)
class _Given:
    """An object to be handed out as it is."""

    value: Any


@dataclass(frozen=True, eq=False)
class _Made:
    """What Python calls, made anew: `make(*parts)`."""

    make: Callable[..., Any]
    parts: tuple[Any, ...]


def _partial(function: Any, args: Any, keywords: Any) -> Any:
    return functools.partial(function, *args, **keywords)


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
