"""Schedules as data: steps with their arguments, written as code, saved as JSON, played again.

    split("i", 64)
    reorder("i_o", "k", "i")
    vectorize("k", unroll=2)

A line is a call of a function of `steps` with literal arguments; nothing else is understood, and
nothing is executed to read it.  The same schedule plays on the same loops with other sizes.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import Any, TypeVar

from nbcomp.errors import LoopKindError, ScheduleError
from nbcomp.loop.grammar import For, Kernel, walk
from nbcomp.loop.verifier import verify
from nbcomp.schedule import steps
from nbcomp.schedule.rewriting import among_names
from nbcomp.version import VERSION

FORMAT = 1  # of the JSON
LARGEST = 1 << 31  # number in a step: more than any loop has iterations
KINDS = {int: "a whole number", str: "a text", list: "a list", dict: "a map of names"}
Argument = int | str
T = TypeVar("T")


@dataclass(frozen=True)
class Step:
    """One step: the name of a function of `steps` and its arguments after the kernel."""

    name: str
    arguments: tuple[Argument, ...] = ()
    options: tuple[tuple[str, Argument], ...] = ()

    def __post_init__(self) -> None:
        kinds = tuple(map(type, (*self.arguments, *(value for _, value in self.options))))
        # Rules take the same steps again and again; what is no number or name cannot be looked up.
        (_check if {int, str}.issuperset(kinds) else _check.__wrapped__)(self, kinds)

    def __str__(self) -> str:
        positional = [_literal(a) for a in self.arguments]
        named = [f"{k}={_literal(v)}" for k, v in self.options]
        return f"{self.name}({', '.join(positional + named)})"

    def __call__(self, kernel: Kernel) -> Kernel:
        """The kernel after this step; ScheduleError says where it is not legal."""
        return _checked(self, self.taken(kernel))

    def taken(self, kernel: Kernel) -> Kernel:
        """The same, left to the caller to be verified: of many steps the last kernel is enough."""
        made = getattr(steps, self.name)(kernel, *self.arguments, **dict(self.options))
        assert isinstance(made, Kernel)
        return made


def _checked(step: object, kernel: Kernel) -> Kernel:
    """The kernel after a step; ScheduleError where a loop that was vector, parallel or written out
    cannot be so any more."""
    try:
        return verify(kernel)
    except LoopKindError as error:
        raise ScheduleError(
            f"{step}: there would be {error.reason}",
            hint="steps that shape a nest come before those that say how its loops run",
        ) from None


def _literal(value: Argument) -> str:
    return json.dumps(value, ensure_ascii=False)


@lru_cache(maxsize=4096)
def _check(step: Step, kinds: tuple[type, ...]) -> None:
    """Raise ScheduleError unless there is such a step and it takes these arguments, of these
    kinds."""
    if step.name not in steps.__all__:
        near = get_close_matches(step.name, steps.__all__, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise ScheduleError(f"no step {step.name}{hint}; there are {', '.join(steps.__all__)}")
    signature = usage(step.name)
    for name, _ in step.options:
        if name not in signature.parameters:
            wanted = among_names(name, list(signature.parameters), "arguments")
            raise ScheduleError(f"{step.name}{signature}: no argument {wanted}")
    try:
        bound = signature.bind(*step.arguments, **dict(step.options))
    except TypeError as error:
        raise ScheduleError(f"{step.name}{signature}: {error}") from None
    for name, value in bound.arguments.items():
        wanted = signature.parameters[name].annotation
        for one in value if isinstance(value, tuple) else (value,):
            if type(one) is not wanted:
                what = "a name in quotes" if wanted is str else "a whole number"
                raise ScheduleError(f"{step.name}{signature}: {name} is {what}, not {one!r}")
            if isinstance(one, int) and abs(one) > LARGEST:
                most = f"more than {LARGEST:,}"
                raise ScheduleError(f"{step.name}{signature}: {name} is too large: {most}")


@cache
def usage(name: str) -> inspect.Signature:
    """The signature of a step as it is written in a schedule: without the kernel."""
    signature = inspect.signature(getattr(steps, name), eval_str=True)
    _, *parameters = signature.parameters.values()
    return signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)


@dataclass(frozen=True)
class Schedule:
    """Steps in order.  `structure` is that of the kernel they were written for, if it is known."""

    steps: tuple[Step, ...] = ()
    structure: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))

    def play(self, kernel: Kernel) -> Iterator[tuple[Step, Kernel]]:
        """Each step with the kernel after it.

        Raises ScheduleError, naming the step, where it is not legal on this kernel, and before the
        first step where the kernel is not one of the structure the schedule was written for.
        """
        for number, (step, made) in enumerate(self._taken(kernel), 1):
            yield step, _checked(f"step {number}, {step}", made)

    def __call__(self, kernel: Kernel) -> Kernel:
        """The kernel after all steps; raises as `play` does."""
        made = kernel
        for _, made in self._taken(kernel):  # noqa: B007
            pass
        try:
            return verify(made)
        except LoopKindError:
            deque(self.play(kernel), maxlen=0)  # which says what step it was
            raise

    def _taken(self, kernel: Kernel) -> Iterator[tuple[Step, Kernel]]:
        if self.structure and (why := difference(self.structure, structure(kernel))):
            raise ScheduleError(f"the schedule is for another kernel: {why}")
        for number, step in enumerate(self.steps, 1):
            try:
                kernel = step.taken(kernel)
            except ScheduleError as error:
                words = f"step {number}, {step}: {error.message}"
                raise ScheduleError(words, hint=error.hint) from None
            yield step, kernel

    def of(self, kernel: Kernel) -> Schedule:
        """The same steps, remembered to be for kernels like this one."""
        return Schedule(self.steps, structure(kernel))

    def to_json(self) -> str:
        """The schedule as a JSON text."""
        rows = [
            {"step": s.name, "arguments": list(s.arguments), "options": dict(s.options)}
            for s in self.steps
        ]
        structure = list(self.structure)
        data = {"format": FORMAT, "version": VERSION, "structure": structure, "steps": rows}
        return json.dumps(data, indent=1, ensure_ascii=False)


def from_json(text: str) -> Schedule:
    """The schedule in a JSON text; ScheduleError where it is none, of another format, or saved by
    another version, whose steps may mean something else."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ScheduleError(f"not a saved schedule, since no JSON: {error}") from None
    version = _field(data, "format", int)
    if version != FORMAT:
        raise ScheduleError(f"a schedule of format {version}; this version reads {FORMAT}")
    made = tuple(map(_saved_step, _field(data, "steps", list)))
    schedule = Schedule(made, tuple(map(str, _field(data, "structure", list))))
    if (saved := _field(data, "version", str)) != VERSION:
        raise ScheduleError(
            f"the schedule was saved by version {saved} of nbcomp; this is {VERSION}",
            hint=f"to use it all the same, take its steps anew:\n{schedule}",
        )
    return schedule


def _field(data: Any, name: str, kind: type[T]) -> T:
    """A part of a saved schedule; ScheduleError where it is not there, or something else."""
    if not isinstance(data, dict) or name not in data:
        raise ScheduleError(f'not a saved schedule: "{name}" is missing')
    value = data[name]
    if type(value) is not kind:
        raise ScheduleError(f'not a saved schedule: "{name}" is not {KINDS[kind]}')
    return value


def _saved_step(row: Any) -> Step:
    name, arguments = _field(row, "step", str), _field(row, "arguments", list)
    return Step(name, tuple(arguments), tuple(_field(row, "options", dict).items()))


def parse(text: str) -> Schedule:
    """The schedule that is written in a text, one call a line, or saved as JSON; ScheduleError
    names the line."""
    if text.lstrip().startswith("{"):
        return from_json(text)
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ScheduleError(f"line {error.lineno}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes; nested without end
        raise ScheduleError(f"not a schedule: {error}") from None
    return Schedule(tuple(_step_of(statement) for statement in tree.body))


def _step_of(statement: ast.stmt) -> Step:
    where = f"line {statement.lineno}"
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ScheduleError(f'{where}: a step is written as a call such as split("i", 64)')
    try:
        arguments = tuple(ast.literal_eval(a) for a in call.args)
        options = tuple((k.arg or "", ast.literal_eval(k.value)) for k in call.keywords)
    except (ValueError, TypeError):
        raise ScheduleError(f"{where}: arguments are names in quotes and whole numbers") from None
    try:
        return Step(call.func.id, arguments, options)
    except ScheduleError as error:
        raise ScheduleError(f"{where}: {error.message}", hint=error.hint) from None


def structure(kernel: Kernel) -> tuple[str, ...]:
    """What a schedule can see of a kernel: its loops, and its buffers but for their sizes."""
    loops = [f"loop {s.var}" for s in walk(kernel.stages) if isinstance(s, For)]
    buffers = [f"{b.role} {b.name}: {b.dtype}, {len(b.shape)} axes" for b in kernel.buffers]
    return (*buffers, *loops)


def difference(wanted: tuple[str, ...], found: tuple[str, ...]) -> str:
    """What one structure has and another has not; empty where they are the same."""
    if wanted == found:
        return ""
    missing = [line for line in wanted if line not in found]
    extra = [line for line in found if line not in wanted]
    parts = [f"it has no {', no '.join(missing)}"] if missing else []
    parts += [f"it has {', '.join(extra)}"] if extra else []
    return "; ".join(parts) or "its loops are in another order"
