"""The symbolic machine: runs CPython bytecode on lifted values, so that arrays become graph nodes.

A `Frame` is one activation of a user's function; functions it calls run in frames of their own.
Nothing with effects is ever done: what the machine cannot do stops the outermost frame before the
instruction in question (`Stopped`).  What instructions do is in `opcodes`, which calls are allowed
in `calls`.  Knows the lifter and the session, not what becomes of the graph.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nbcomp.errors import NbcompError, Unsupported
from nbcomp.frontend.bytecode import calls
from nbcomp.frontend.bytecode.instructions import Instruction, decode, in_words
from nbcomp.frontend.bytecode.values import Method, force, noticed
from nbcomp.frontend.lift import Lazy, Lifter
from nbcomp.frontend.location import INTERPRETED, here, location_of
from nbcomp.frontend.namespace import Namespace
from nbcomp.frontend.objects import Shadow
from nbcomp.frontend.python_numbers import only_arrays
from nbcomp.frontend.session import Session
from nbcomp.frontend.tracer import Tracer
from nbcomp.frontend.unrolled import HINT, LongLoop, about_caches
from nbcomp.runtime.plan import ObjectGuard, Source, ValueGuard

Execute = Callable[["Frame", Instruction], Any]

MOST_STEPS = 100_000  # instructions of one capture
EARLY_STEPS = 30_000  # the same, where the source can be compiled as the loops it is
MOST_FRAMES = 60  # functions that call each other
MOST_UNROLLED = 1500  # operations of a loop that is written out: a third of a second to compile
FEW_ROUNDS = 8  # loops of so few rounds are written out whatever is in them
GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


@dataclass(frozen=True)
class Returned:
    """The frame is done."""

    value: Any


@dataclass(frozen=True)
class Yielded:
    """The frame of a generator hands out a value."""

    value: Any


class Stopped(Exception):
    """The outermost frame cannot go on: `instruction` is for Python to run.

    called: the function of the user's that was being called when the error came from within it.
    """

    def __init__(
        self, frame: Root, instruction: Instruction, error: Exception, called: Any
    ) -> None:
        super().__init__(str(error))
        self.instruction, self.error, self.called = instruction, error, called
        self.frame: Root = frame


def stopped(root: Root, error: NbcompError) -> Stopped:
    """For a frame that has returned what cannot be handed out."""
    last = next(i for i in root.instructions if i.offset == root.f_lasti)
    return Stopped(root, last, error, None)


class TooLong(LongLoop):
    """A loop is left to Python: `head` is its first instruction, `frame` the activation."""

    def __init__(self, frame: Frame, head: Instruction) -> None:
        place = location_of(frame.f_code, head.offset)
        super().__init__(
            "the loop is run by Python, round by round: written out it would be long to compile",
            place,
            "nbcomp.script compiles the loop itself",
        )
        self.frame, self.head = frame, head


class Reached(Exception):
    """The outermost frame has come to the instruction it was to stop before."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame


class Frame:
    """One activation: code, variables by name, stack, and the next instruction."""

    def __init__(
        self, machine: Machine, function: types.FunctionType, variables: dict[str, Any]
    ) -> None:
        self.machine, self.function, self.variables = machine, function, variables
        self.f_code, self.f_lasti = function.__code__, 0
        self.instructions = decode(self.f_code)
        self.names = function.__globals__
        self.stack: list[Any] = []
        self.index = 0
        self.keywords: tuple[str, ...] = ()  # of the next CALL
        # Operations recorded when a loop's first round ended, and rounds, by its first instruction.
        self.loops: dict[int, tuple[int, int]] = {}

    @property
    def f_locals(self) -> dict[str, Any]:
        """The variables, under the name that Python's frames have for them."""
        return self.variables

    def push(self, value: Any) -> None:
        """Onto the stack."""
        self.stack.append(value)

    def raw(self) -> Any:
        """From the stack, as it is."""
        return self.stack.pop()

    def pop(self) -> Any:
        """From the stack, lifted."""
        return force(self.stack.pop())

    def pops(self, count: int) -> list[Any]:
        """Several, in order, lifted."""
        values = self.raws(count)
        return [force(v) for v in values]

    def raws(self, count: int) -> list[Any]:
        """Several, in order, as they are."""
        if not count:
            return []
        values = self.stack[-count:]
        del self.stack[-count:]
        return values

    def jump(self, target: Instruction, beyond: int = 0) -> None:
        """Go on there."""
        self.index = target.index + beyond

    def run(self) -> Any:
        """Until it returns or yields: `Returned` or `Yielded`."""
        INTERPRETED.frames.append(self)
        try:
            while True:
                instruction = self.instructions[self.index]
                self.f_lasti = instruction.offset
                outcome = self._step(instruction)
                if outcome is not None:
                    return outcome
        finally:
            INTERPRETED.frames.pop()

    def _step(self, instruction: Instruction) -> Any:
        self.machine.count_step()
        depth = list(self.stack) if instruction.handler else None
        try:
            return self.execute(instruction)
        except NbcompError:
            raise
        except Exception as error:
            if depth is None or isinstance(error, Stopped | Reached):
                raise
            self.stack = depth
            self.handle(instruction, error)
            return None

    def handle(self, instruction: Instruction, error: Exception) -> None:
        """Go on in the `except`, `finally` or `with` that the exception table names."""
        handler = instruction.handler
        assert handler is not None
        del self.stack[handler.depth :]
        if handler.lasti:
            self.push(instruction.offset)
        self.push(error.with_traceback(None))
        self.jump(handler.target)

    def execute(self, instruction: Instruction) -> Any:
        """One instruction, after which `index` is that of the next."""
        self.index += 1
        execute = self.machine.opcodes.get(instruction.name)
        if execute is None:
            raise Unsupported(in_words(instruction), here())
        return execute(self, instruction)


class Root(Frame):
    """The outermost frame: it notes how far the graph has come, and stops where it has to.

    count: instructions run so far.  useful: after how many of them the last operation was recorded.
    stop: how many to run.
    """

    def __init__(
        self,
        machine: Machine,
        function: types.FunctionType,
        variables: dict[str, Any],
        stop: int | None = None,
    ) -> None:
        super().__init__(machine, function, variables)
        self.stop = stop
        self.count = self.useful = self.operations = 0
        self.boundaries: list[int] = []  # after how many instructions a statement began
        self._line: int | None = None

    def _step(self, instruction: Instruction) -> Any:
        if self.count == self.stop:
            raise Reached(self)
        self.machine.count_step()
        session = self.machine.session
        index, stack, keywords = self.index, list(self.stack), self.keywords
        self.machine.called = None
        try:
            self.machine.check_place(self, instruction)
            outcome = self.execute(instruction)
        except (Stopped, Reached):
            raise
        except Exception as error:
            self.index, self.stack, self.keywords = index, stack, keywords
            raise Stopped(self, instruction, error, self.machine.called) from None
        self.count += 1
        following = self.instructions[min(self.index, len(self.instructions) - 1)]
        if following.positions[0] != self._line:
            self._line = following.positions[0]
            self.boundaries.append(self.count)
        if session.calls != self.operations:
            self.operations, self.useful = session.calls, self.count
        return outcome


class Generated:
    """A generator of the program's, run by the machine."""

    def __init__(self, frame: Frame) -> None:
        self._frame, self._started, self._done = frame, False, False

    def __iter__(self) -> Generated:
        return self

    def __next__(self) -> Any:
        if self._done:
            raise StopIteration
        if self._started or sys.version_info < (3, 14):
            self._frame.push(None)
        self._started = True
        outcome = self._frame.run()
        if isinstance(outcome, Yielded):
            return force(outcome.value)
        self._done = True
        raise StopIteration(outcome.value)


class Machine:
    """Runs the functions of one capture.

    in_python: the places, (code, offset), that are left to Python whatever they are, with the
    reason.  stop: how many instructions of the outermost frame to run.
    """

    def __init__(
        self,
        session: Session,
        lifter: Lifter,
        opcodes: dict[str, Execute],
        in_python: dict[tuple[types.CodeType, int], Unsupported],
        stop: int | None = None,
    ) -> None:
        self.session, self.lifter, self.opcodes = session, lifter, opcodes
        self.in_python, self.stop = in_python, stop
        self.root: Root | None = None
        self.called: Any = None  # the user's function that the outermost frame is calling
        self._copies: dict[types.FunctionType, types.FunctionType] = {}  # by what stands for them
        self.most_steps = MOST_STEPS
        self._steps = 0
        self._depth = 0

    def count_step(self) -> None:
        """One more instruction; raises `LongLoop` for one too many."""
        self._steps += 1
        if self._steps > self.most_steps:
            raise LongLoop(
                f"more than {self.most_steps:,} steps of Python while capturing",
                here(),
                about_caches(self.session.unrolled.cached, HINT),
            )

    def check_place(self, frame: Root, instruction: Instruction) -> None:
        """Raise `Unsupported` for a place that is left to Python."""
        known = self.in_python.get((frame.f_code, instruction.offset))
        if known is not None:
            raise known

    def check_loop(self, frame: Frame, head: Instruction) -> None:
        """Count a round of a loop; raises for one that is long to compile if it is written out."""
        first, rounds = frame.loops.get(head.index, (self.session.calls, 0))
        frame.loops[head.index] = first, rounds + 1
        if rounds >= FEW_ROUNDS and self.session.calls - first > MOST_UNROLLED:
            raise TooLong(frame, head)

    # ------------------------------------------------------------------------------ functions

    def stand_in(self, copy: types.FunctionType) -> types.FunctionType:
        """A function that runs this lifted copy of a user's function on the machine."""

        def shell(*args: Any, **kwargs: Any) -> Any:
            return self.run(copy, list(args), kwargs)

        shell.__name__, shell.__qualname__ = copy.__name__, copy.__qualname__
        shell.__module__ = copy.__module__
        shell.__dict__ = copy.__dict__
        function: Any = shell
        self._copies[function] = copy
        return function  # type: ignore[no-any-return]

    def copy_of(self, function: Any) -> types.FunctionType | None:
        """The lifted copy that a function stands for, if it is one of the machine's."""
        return self._copies.get(function) if type(function) is types.FunctionType else None

    def run(self, copy: types.FunctionType, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Call a lifted function."""
        if self._depth >= MOST_FRAMES:
            raise Unsupported(f"more than {MOST_FRAMES} functions call each other", here())
        variables = bind(copy, args, kwargs)
        root = self._depth == 0
        frame = Frame(self, copy, variables)
        if root:
            frame = self.root = Root(self, copy, variables, self.stop)
        self._depth += 1
        try:
            if copy.__code__.co_flags & GENERATORS:
                return self._generator(frame)
            value = frame.run().value
            return value if root else force(value)
        finally:
            self._depth -= 1

    def enter(self, frame: Root) -> Any:
        """Run a frame that is under way; the value it returns."""
        self._depth += 1
        try:
            return frame.run().value
        finally:
            self._depth -= 1

    def _generator(self, frame: Frame) -> Generated:
        if not frame.f_code.co_flags & inspect.CO_GENERATOR:
            raise Unsupported("an async function is run by Python")
        frame.run()  # as far as RETURN_GENERATOR
        return Generated(frame)

    def call(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """What a call in the program gives.  Raises `Unsupported` for what may have effects."""
        function = force(function)
        if type(function) is Method:
            raise calls.changed_by(function.owner.value, function.owner.source, function.name)
        if isinstance(function, types.MethodType) and self.copy_of(function.__func__):
            return self.call(function.__func__, [function.__self__, *args], kwargs)
        if self._depth == 1 and self._runs_users(function):
            self.called = function
            value = self._call(function, args, kwargs)
            self.called = None
            return value
        return self._call(function, args, kwargs)

    def _runs_users(self, function: Any) -> bool:
        """Whether a call runs a function of the user's that may be compiled by itself."""
        if isinstance(function, functools.partial):
            return self._runs_users(function.func)
        return self.copy_of(function) is not None or issubclass(type(function), Shadow)

    def _call(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        copy = self.copy_of(function)
        if copy is not None:
            return self.run(copy, args, kwargs)
        args = [noticed(a) for a in args]
        kwargs = {k: noticed(v) for k, v in kwargs.items()}
        calls.check(self.lifter, function, args, kwargs)
        return calls.special(self.lifter, function, args)(*args, **kwargs)

    def make_function(
        self, frame: Frame, code: types.CodeType, parts: dict[str, Any]
    ) -> types.FunctionType:
        """The function of a `def` or `lambda` in the program."""
        cells = parts.get("closure") or tuple(types.CellType() for _ in code.co_freevars)
        copy = types.FunctionType(code, frame.names, code.co_name, None, cells)
        copy.__defaults__ = parts.get("defaults")
        copy.__kwdefaults__ = parts.get("kwdefaults")
        copy.__qualname__ = code.co_qualname
        copy.__module__ = frame.function.__module__
        if not code.co_flags & inspect.CO_OPTIMIZED:  # the body of a class: Python runs it
            raise Unsupported("a class statement is run by Python", here(), "define it outside")
        return self.stand_in(copy)

    def with_part(
        self, frame: Frame, function: types.FunctionType, name: str, value: Any
    ) -> types.FunctionType:
        """A function of the program's with its closure or defaults."""
        copy = self._copies[function]
        parts = {"defaults": copy.__defaults__, "kwdefaults": copy.__kwdefaults__}
        parts["closure"] = copy.__closure__
        return self.make_function(frame, copy.__code__, parts | {name: value})

    # ------------------------------------------------------------------------------------ names

    def global_(self, frame: Frame, name: str) -> Any:
        """A global of the program's, or a builtin."""
        names = frame.names
        if not isinstance(names, Namespace):
            return names[name] if name in names else _builtin(names, name)
        variables = names.variables
        if name in variables:
            return self.lifter.lift(variables[name], Source("global", name, variables), name)
        value = _builtin(variables, name)
        self.session.guard(ObjectGuard(Source("global", name, variables), value))
        return value

    def attribute_of(self, value: Any, name: str) -> Any:
        """`value.name` of what may not have been lifted yet."""
        if type(value) is Lazy and calls.mutates(value.value, name):
            return Method(value, name)
        return self.attribute(force(value), name)

    def attribute(self, value: Any, name: str) -> Any:
        """`value.name`."""
        if type(value) is not types.ModuleType:
            if type(value) is Tracer:
                only_arrays(value, name)
            return getattr(value, name)
        found = getattr(value, name)
        if isinstance(found, types.ModuleType):
            return self.lifter.module(found)
        source = Source("global", name, vars(value))
        if type(found) in (int, float, str, bool):
            self.session.guard(ValueGuard(source, found))
            return found
        known = value.__name__ in calls.MODULES or name not in vars(value)
        return found if known else self.lifter.lift(found, source, name)


def _builtin(variables: dict[str, Any], name: str) -> Any:
    found = variables.get("__builtins__", __builtins__)
    table = found if isinstance(found, dict) else vars(found)
    if name not in table:
        raise NameError(f"name {name!r} is not defined")
    return table[name]


def bind(function: types.FunctionType, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The variables of a call.  Raises TypeError for arguments that do not fit."""
    code = function.__code__
    names = code.co_varnames
    count, only = code.co_argcount, code.co_kwonlyargcount
    variables = dict(zip(names[:count], args, strict=False))
    more = args[count:]
    rest = dict(kwargs)
    _by_keyword(function, variables, rest)
    position = count + only
    if code.co_flags & inspect.CO_VARARGS:
        variables[names[position]] = tuple(force(a) for a in more)
        position, more = position + 1, []
    if code.co_flags & inspect.CO_VARKEYWORDS:
        variables[names[position]] = {k: force(v) for k, v in rest.items()}
        rest = {}
    missing = [n for n in names[: count + only] if n not in variables]
    if more or rest or missing:
        inspect.signature(function).bind(*args, **kwargs)  # words it
        raise TypeError(f"{function.__name__}() got arguments that do not fit")
    return variables


def _by_keyword(
    function: types.FunctionType, variables: dict[str, Any], rest: dict[str, Any]
) -> None:
    """Fill in what is given by name, then the defaults."""
    code = function.__code__
    count, only = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    for name in names[code.co_posonlyargcount : count + only]:
        if name in rest:
            if name in variables:
                raise TypeError(f"{function.__name__}() got multiple values for argument {name!r}")
            variables[name] = rest.pop(name)
    defaults = function.__defaults__ or ()
    for name, value in zip(names[count - len(defaults) : count], defaults, strict=True):
        variables.setdefault(name, value)
    for name, value in (function.__kwdefaults__ or {}).items():
        variables.setdefault(name, value)
