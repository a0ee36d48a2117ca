"""A function with graph breaks: compiled parts in the user's own bytecode.

`Parts` learns where the graph of a function breaks from the calls that are made, and makes code in
which each part between two breaks is one call of native code; Python runs the rest, in the user's
frame.  A call that finds a further break goes on in newer code at once.  Knows the pipeline and the
bytecode frontend; `jitted` decides which functions come here.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nbcomp.compiled import Compiled
from nbcomp.errors import Unsupported, users_frames
from nbcomp.frontend import reporting
from nbcomp.frontend.bytecode import flow
from nbcomp.frontend.bytecode.capture import Places, has_loops
from nbcomp.frontend.bytecode.instructions import decode
from nbcomp.frontend.bytecode.outline import Outlined, Stub, variables
from nbcomp.frontend.bytecode.part import Break, Exit, Head, Part, capture_part
from nbcomp.frontend.lift import HELD_ARRAY
from nbcomp.frontend.location import location_of
from nbcomp.options import EVERYTHING, Options
from nbcomp.pipeline import compile_captured
from nbcomp.record import Location, Remark
from nbcomp.runtime import interpret, validity
from nbcomp.runtime.entry import NativeFunction
from nbcomp.runtime.plan import Guard, LengthGuard, Source, ValueGuard
from nbcomp.wrapped import calling

VARIANTS = 16  # of one part; further ones run in Python
# How many values of a number, or lengths of a list, a part may see before they count as varying:
# arguments of the function often have a few, variables of its loops have many.
FIRST_VALUES, VALUES = 4, 2
# Calls of a part that Python has to run before the part is given up, if it has taken no call so
# far, and if it has: each costs as much as two operations of NumPy's on a few elements.
VAIN, VAIN_BUT_FOR_SOME = 2, 8

# Functions that look at frames and their variables would see what parts leave out.
FRAME_READERS = {"locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe", "breakpoint"}
GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class RecompileLimit(UserWarning):
    """A part has as many variants as are kept; calls with other arguments run in Python."""


@dataclass(frozen=True)
class Recompilation:
    """A further variant: where, which guard of the nearest one failed, and the seconds it cost."""

    location: Location
    reason: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.location}: {self.reason}; {self.seconds * 1e3:.0f} ms"


def why_whole(function: types.FunctionType) -> str:
    """Why a function cannot be compiled in parts; "" if it can."""
    code = function.__code__
    if code.co_flags & GENERATORS:
        return "generators and async functions are run by Python as they are"
    readers = FRAME_READERS.intersection(code.co_names)
    if readers:
        return f"it uses {min(readers)}, which looks at the variables of the running function"
    setting = reporting.of_whole(code)
    if setting:
        return f"it calls {setting}, after which floating-point errors may be reported"
    return ""


class Parts:
    """A function in parts.  `breaks` by instruction, `recompilations` in order.

    substitute: gives what Python calls in place of a function of the user's that has breaks of its
    own (see `capture_part`).  own: the same for this one, by whether models are called with it.
    options: how parts are compiled.
    """

    def __init__(
        self,
        function: types.FunctionType,
        substitute: Callable[[Any, Any], Any],
        own: Mapping[bool, Any],
        options: Options = EVERYTHING,
    ) -> None:
        self.function, self._substitute, self.options = function, substitute, options
        self.code = function.__code__
        self.instructions = decode(self.code)
        self.live = flow.live(self.code, self.instructions)
        self.places: Places = {}
        self.breaks: dict[int, Break] = {}
        self.recompilations: list[Recompilation] = []
        self.regions: dict[int, Region] = {}
        self.version = 0
        self.lock = threading.RLock()
        self._own = own
        self._partners: dict[Any, Any] = {}
        self._whole: tuple[int, Any] = (-1, None)
        self._entries: dict[tuple[Exit, frozenset[str]], tuple[int, Any]] = {}
        self.begin(flow.first(self.instructions), 0)

    @property
    def callable(self) -> Any:
        """The function to call: the newest code."""
        version, made = self._whole
        function = self.function
        same = version == self.version and made.__defaults__ is function.__defaults__
        if not same or made.__kwdefaults__ is not function.__kwdefaults__:
            with self.lock:
                outlined = self._outlined()
                made = self._function(outlined.whole(), outlined.called)
                made.__defaults__ = self.function.__defaults__
                made.__kwdefaults__ = self.function.__kwdefaults__
                self._whole = (self.version, made)
        return made

    @property
    def compiled(self) -> list[Compiled]:
        """All variants of all parts."""
        return [c for _, r in sorted(self.regions.items()) for c in r.variants]

    @property
    def has_loops(self) -> bool:
        """Whether there are loops over elements in a part, or in a function that Python calls."""
        own = any(has_loops(v.capture) for v in self.compiled)
        return own or any(helper.has_loops for helper in self.helpers)

    @property
    def helpers(self) -> list[Any]:
        """The compiled functions that Python calls for others of the user's, in order."""
        return list(self._partners.values())

    def wake(self) -> None:
        """Let parts that were given up try other calls."""
        for region in self.regions.values():
            if not region.enabled:
                region.wake()
                self.version += 1

    def begin(self, index: int, depth: int) -> None:
        """Let a part begin at an instruction."""
        if index in self.regions:
            return
        names = (*sorted(self.live[index]), *self.code.co_cellvars)
        head = Head(self.function, self.instructions, index, names, depth)
        self.regions[index] = Region(self, head)
        self.version += 1

    def broken(self, why: Break) -> None:
        """Note a break: parts begin after it."""
        if why.index not in self.breaks:
            self.breaks[why.index] = why
            left = self._reporting(why)
            for index in left:
                self.places[self.code, self.instructions[index].offset] = _left(why)
            found = flow.beginnings(self.instructions, why.index, why.depth, why.nulls, left)
            for index, depth in found.items():
                self.begin(index, depth)

    def _reporting(self, why: Break) -> frozenset[int]:
        """The instructions of the `with` at a break, if it has floating-point errors reported."""
        begin = flow.with_of(self.instructions, why.index)
        if begin is None:
            return frozenset()
        body = flow.body_of(self.instructions, begin)
        offsets = {self.instructions[index].offset for index in body}
        set_there = not offsets.isdisjoint(reporting.settings(self.code))
        return body if set_there or isinstance(why.error, reporting.Reports) else frozenset()

    def first_reason(self) -> Unsupported:
        """Why nothing could be compiled: what comes first in the program."""
        if self.breaks:
            why = self.breaks[min(self.breaks)]
            return Unsupported(why.reason, why.location, why.hint)
        for _, region in sorted(self.regions.items()):
            for said in region.remarks:
                return Unsupported(said.reason, said.location, said.hint)
        return Unsupported("there is no operation on arrays in it")

    def partner(self, function: Any, model: Any) -> Any:
        """The compiled function that Python calls for another function of the user's, or for the
        `forward` of a model."""
        of_models = model is not None
        if function is self.function and of_models in self._own:
            return calling(model, self._own[of_models])
        if (function, of_models) not in self._partners:
            self._partners[function, of_models] = self._substitute(function, model)
        return calling(model, self._partners[function, of_models])

    # ----------------------------------------------------------------------------------- code

    def observed(self, observe: Callable[[Region, tuple[Any, ...]], None]) -> Any:
        """The function to call to be told of each part, and what it is given, before it runs."""

        def told(region: Region) -> Callable[..., Any]:
            def run(*args: Any) -> Any:
                observe(region, args)
                return region.native.callable(*args)

            return run

        with self.lock:
            plain = self._outlined()
            regions = {index: self.regions[index] for index in plain.stubs}
            stubs = {k: replace(s, run=told(regions[k])) for k, s in plain.stubs.items()}
            outlined = replace(plain, stubs=stubs)
            made = self._function(outlined.whole(), outlined.called)
        made.__defaults__ = self.function.__defaults__
        made.__kwdefaults__ = self.function.__kwdefaults__
        return made

    def _outlined(self) -> Outlined:
        stubs = {
            index: Stub(r.head, r.native.callable, tuple((e, e) for e in r.exits))
            for index, r in self.regions.items()
            if r.enabled
        }
        return Outlined(self.code, stubs, self.resume, strip)

    def _function(self, code: types.CodeType, called: tuple[Any, ...]) -> Any:
        function = self.function
        closure = (*(function.__closure__ or ()), types.CellType(called))
        made = types.FunctionType(code, function.__globals__, function.__name__, None, closure)
        made.__qualname__, made.__module__ = function.__qualname__, function.__module__
        return made

    def resume(self, result: tuple[Any, ...], cells: tuple[types.CellType, ...]) -> Any:
        """Run the rest of a function that left a part with `result`, which its code does not know.

        The caller is the running function; `cells` are its own.
        """
        __tracebackhide__ = True
        exit: Exit = result[0]
        if exit.index is None:
            return result[1]
        known = dict(sys._getframe(1).f_locals)
        known.update(zip(self.code.co_cellvars, cells, strict=True))
        count = 1 + len(exit.stores)
        for (name, how), value in zip(exit.stores, result[1:count], strict=True):
            if how == "cell":
                known[name].cell_contents = value
            elif how == "gone":
                known.pop(name, None)
            else:
                known[name] = value
        names = variables(self.code)
        unbound = frozenset(n for n in names if n not in known)
        rest = self._entry(exit, unbound)
        values = [known.get(n) for n in names]
        stack = result[: count - 1 : -1]
        del known, result
        return rest(*values, *stack)

    def _entry(self, exit: Exit, unbound: frozenset[str]) -> Any:
        with self.lock:
            version, made = self._entries.get((exit, unbound), (-1, None))
            if version != self.version:
                outlined = self._outlined()
                made = self._function(outlined.enter(exit, unbound), outlined.called)
                self._entries[exit, unbound] = self.version, made
            return made


def _left(why: Break) -> Unsupported:
    return Unsupported(why.reason, why.location, why.hint)


def strip(error: BaseException) -> None:
    """Take the frames off an error's traceback that stand for one of the user's twice."""
    traceback = error.__traceback__
    error.__traceback__ = users_frames(traceback.tb_next if traceback else None)


class Region:
    """One part, with its variants.  exits: where they leave, each itself the marker of it."""

    def __init__(self, parts: Parts, head: Head) -> None:
        self.parts, self.head = parts, head
        self.enabled = True
        self.exits: dict[Exit, Exit] = {}
        self.variants: list[Compiled] = []
        self.remarks: list[Remark] = []
        self._vain = 0  # calls that Python had to run, since a variant was made
        self._refused: set[Any] = set()
        self._values: dict[Source, set[Any]] = {}
        self._limited = False
        self.native = NativeFunction(
            f"{parts.function.__name__}:{self.location.line}",
            None,
            self.slow_path,
            lambda args, plan, step, status: None,  # Python runs it, and raises
        )

    @property
    def location(self) -> Location:
        """Where it begins."""
        return location_of(self.parts.code, self.head.instructions[self.head.index].offset)

    def slow_path(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a part gives that no native variant takes; None: Python is to run it.

        Arrays of a class that says how compiled parts are called on them (`__nbcomp_part__`) are
        left to it.
        """
        for value in args:
            call = getattr(type(value), "__nbcomp_part__", None)
            if call is not None:
                return call(self.native.callable, args)
        found = self.find(args)
        if found is not None:
            return _run(found, args)
        if reporting.in_force():
            return None
        key = signature_key(args)
        with self.parts.lock:
            before = self.parts.version
            found = self.find(args)
            made = found or (None if key in self._refused else self._capture(args, key))
            if made is None:
                self._in_vain(args)
            newer = self.parts.version != before
        result = _run(made, args) if made else None
        if not newer:
            return result
        if result is None:  # go on in newer code, at the same place
            stack = args[len(self.head.names) :]
            return (Exit(self.head.index, (), (True,) * len(stack)), *reversed(stack))
        return (replace(result[0]), *result[1:])  # an exit that the running code does not know

    def _in_vain(self, args: tuple[Any, ...]) -> None:
        """Python runs this call: a part that is of no use costs time, and is left out."""
        self._vain += 1
        if not self.enabled or self._vain < VAIN:
            return
        if not self.variants or (self._vain >= VAIN_BUT_FOR_SOME and self._varying(args)):
            self.enabled = False
            self.parts.version += 1

    def wake(self) -> None:
        """Let it try again."""
        self.enabled, self._vain = True, 0

    def find(self, args: tuple[Any, ...]) -> Compiled | None:
        """The variant that takes these values; None if there is none."""
        for variant in reversed(tuple(self.variants)):
            if variant.mismatch(args) is None:
                return variant
        return None

    def _capture(self, args: tuple[Any, ...], key: Any) -> Compiled | None:
        """A variant for these values; None if nothing of the part can be compiled."""
        if len(self.variants) >= VARIANTS:
            self._limit(args)
            return None
        parts, varying = self.parts, self._varying(args)
        reason = validity.why_none([v.plan for v in self.variants], args)
        part: Part | None = None

        def capture() -> Any:
            nonlocal part
            part = capture_part(self.head, args, parts.places, self._marker, parts.partner, varying)
            if part.stop is not None:
                parts.broken(part.stop)
            if part.capture is None:
                raise Unsupported("")
            return part.capture

        try:
            made = compile_captured(parts.function, capture, options=parts.options)
        except Unsupported as error:
            self._nothing(key, error)
            return None
        self._vain = 0
        if part is not None and part.exit is not None and part.exit not in self.exits:
            self.exits[part.exit] = part.exit
            parts.version += 1
        self.variants.append(made)
        if made.plain:
            self.native.add(made.plan)
        if reason is not None:
            seconds = made.compile_seconds
            parts.recompilations.append(Recompilation(self.location, reason, seconds))
        return made

    def _marker(self, exit: Exit) -> Exit:
        return self.exits.get(exit, exit)

    def _nothing(self, key: Any, error: Unsupported) -> None:
        self._refused.add(key)
        if error.message:
            self.remarks.append(
                Remark("missed", "capture", error.message, error.location, error.hint)
            )

    def _limit(self, args: tuple[Any, ...]) -> None:
        """Say, once, that there are as many variants as are kept, and what differed this time."""
        if self._limited:
            return
        self._limited = True
        reason = (
            f"compiled for {VARIANTS} kinds of values from here on; for others it runs in Python"
        )
        if (why := validity.why_none([v.plan for v in self.variants], args)) is not None:
            reason = f"{reason} (this time {why})"
        self.remarks.append(Remark("missed", "variants", reason, self.location))
        name = self.parts.function.__name__
        warnings.warn(f"{name}, {self.location}: {reason}", RecompileLimit, stacklevel=4)

    def _varying(self, args: tuple[Any, ...]) -> frozenset[Source]:
        """The numbers and lengths that differed in the variants so far, or differ now."""
        for variant in self.variants:
            for guard in variant.plan.guards:
                assumed = _assumed(guard)
                if assumed is not None:
                    seen = self._values.setdefault(guard.source, set())
                    seen.add(assumed)
                    with contextlib.suppress(Exception):
                        now = validity.resolve(guard.source, args)
                        seen.add(len(now) if isinstance(guard, LengthGuard) else now)
        most = FIRST_VALUES if self.head.index == flow.first(self.head.instructions) else VALUES
        return frozenset(s for s, seen in self._values.items() if len(seen) >= most)

    def explain(self) -> Iterator[Remark]:
        """What there is to say about it."""
        yield from self.remarks


def _assumed(guard: Guard) -> Any:
    """The number or length that a guard asks for; None for what does not vary."""
    if isinstance(guard, ValueGuard) and isinstance(guard.value, int | float):
        return None if isinstance(guard.value, bool) else guard.value
    return guard.length if isinstance(guard, LengthGuard) else None


def _run(variant: Compiled, args: tuple[Any, ...]) -> Any:
    with contextlib.suppress(interpret.StepFailed):
        return variant.run(args)
    return None


def signature_key(args: tuple[Any, ...]) -> Any:
    """Types and shapes of values, to remember what was refused."""
    return tuple(map(_type_and_shape, args))


def _type_and_shape(value: Any) -> Any:
    held = getattr(type(value), HELD_ARRAY, None)
    array = value if held is None else getattr(value, held)
    if isinstance(array, np.ndarray | np.generic):
        return type(value), array.dtype, array.shape
    return type(value)  # other objects may make up a dtype
