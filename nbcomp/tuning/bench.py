"""One kernel, again and again, each time by another schedule: compiled, checked, timed.

What a worker does; in a process of its own, since a candidate may crash.  Nothing is timed that has
not given the wanted answer, in every element, into memory that held something else before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nbcomp.errors import NbcompError
from nbcomp.loop.grammar import Buffer, Kernel
from nbcomp.loop.verifier import verify
from nbcomp.machine import host
from nbcomp.measure.differences import ABSOLUTE_EPS, RELATIVE_EPS, difference
from nbcomp.measure.timing import no_collection
from nbcomp.planning import step_of
from nbcomp.record import Trace
from nbcomp.runtime import interpret, memory
from nbcomp.runtime.emit import address
from nbcomp.schedule.default import default_schedule
from nbcomp.schedule.language import Schedule
from nbcomp.target.llvm.compile import host_target
from nbcomp.tuning.tasks import PAGE, Array, Task
from nbcomp.tuning.turns import Turns

LINE = 64  # bytes of a cache line
Wanted = Schedule | Kernel  # a candidate: a schedule to play, or the kernel after it
Timed = tuple[float, float]  # a share of the default's time, and the seconds of that


@dataclass(frozen=True)
class Prepared:
    """A candidate that gives the wanted answer, ready to be timed; what must stay alive with it."""

    run: Callable[[], None]
    keep: tuple[object, ...]


class Bench:
    """A task on this machine."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.allowed = {name: _allowed(a, task.eps) for name, a in task.wanted.items()}
        self.arrays: dict[str, Array] = {}
        for b in task.kernel.buffers:
            if b.memory not in self.arrays:
                self.arrays[b.memory] = laid_out(b, task.starts.get(b.memory))
        self.give(task.given)

    def give(self, names: Iterable[str]) -> None:
        """Put into memory what is there before the kernel runs."""
        for name in names:
            self.arrays[name][...] = self.task.given[name]

    def prepare(self, wanted: Wanted) -> Prepared | str:
        """Compile and check a candidate: why it cannot be used, or what to time."""
        try:
            made = wanted(self.task.kernel) if isinstance(wanted, Schedule) else verify(wanted)
            return self.checked(made)
        except NbcompError as error:
            return f"not legal: {error.message}"

    def checked(self, kernel: Kernel) -> Prepared | str:
        """Compile a kernel after its schedule and check it: what is wrong, or what to time."""
        code = host_target().compile(kernel, Trace())
        arrays = dict(self.arrays)
        for b in kernel.buffers:
            if b.memory not in arrays:
                arrays[b.memory] = laid_out(b)
        slots = {name: k for k, name in enumerate(arrays)}
        frame = interpret.Frame([address(a) for a in arrays.values()], [], [])
        steps = [step_of(kernel, k, s, slots) for k, s in enumerate(code.stages)]
        calls = [interpret.prepared(step, frame) for step in steps]

        def run() -> None:
            for call in calls:
                if status := call():
                    raise NbcompError(f"ended with status {status}")

        prepared = Prepared(run, (arrays, frame, code))
        return self.wrong(run, arrays) or prepared

    def wrong(self, run: Callable[[], None], arrays: Mapping[str, Array]) -> str:
        """What is wrong with the answer; empty if nothing is."""
        for name, array in arrays.items():
            if name not in self.task.given:
                _spoil(array)
        self.give(self.task.given.keys() & self.task.wanted)
        try:
            run()
        except NbcompError as error:
            return error.message
        for name, wanted in self.task.wanted.items():
            got = arrays[name]
            if not _agrees(got, wanted, self.allowed[name]):
                found = difference(name, np.array(got), wanted, self.task.eps)
                if found.problem:
                    return f"WRONG ANSWER: {found.problem.replace('NumPy gives', 'there must be')}"
        return ""

    @cached_property
    def turns(self) -> Turns:
        """Where candidates are timed, in turn with the default schedule of the task.  Raises
        NbcompError where that does not give the wanted answer."""
        kernel = replace(self.task.kernel, notes=())
        default = self.checked(default_schedule(kernel, host()))
        if isinstance(default, str):
            raise NbcompError(f"{kernel.name} by its default schedule: {default}")
        self.keep = default.keep
        return Turns(default.run)

    def time(self, prepared: Sequence[Prepared], best: float = math.inf) -> list[Timed]:
        """How long each takes, against the default schedule.

        best: the least share of the default's time so far.
        """
        with no_collection():
            shares = self.turns.shares([p.run for p in prepared], best)
        return [(share, self.turns.level) for share in shares]

    def race(self, prepared: Sequence[Prepared], seconds: float) -> list[list[float]]:
        """Samples of the default schedule, then of several candidates, taken in turn for about so
        many seconds."""
        with no_collection():
            return self.turns.race([p.run for p in prepared], seconds)


def laid_out(b: Buffer, start: int | None = None) -> Array:
    """Memory for a buffer with its strides, that begins there in a page; on a cache line, if no
    matter where."""
    size = b.dtype.itemsize
    reach = [(n - 1) * s for n, s in zip(b.shape, b.strides, strict=True)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    room = memory.empty(np.dtype(np.uint8), (PAGE + max((high - low + 1) * size, 1),))
    first, unit = -low * size, LINE if start is None else PAGE
    first += ((start or 0) - address(room) - first) % unit
    strides = tuple(s * size for s in b.strides)
    return np.ndarray(b.shape, b.dtype, room, first, strides)


def _spoil(array: Array) -> None:
    """Fill memory with what no answer holds: NaN, or -1."""
    if array.dtype.kind == "f":
        array[...] = np.nan
    elif array.dtype.kind != "b":
        array[...] = np.array(-1).astype(array.dtype)


def _allowed(wanted: Array, eps: float) -> Array | None:
    """How far each element may be off (as `measure.differences` has it); None: not at all."""
    if wanted.dtype.kind != "f":
        return None
    coarse = max(float(np.finfo(wanted.dtype).eps), eps)
    size = np.abs(wanted, dtype=np.result_type(wanted.dtype, np.float32))
    largest = float(size[np.isfinite(size)].max(initial=0))
    allowed: Array = RELATIVE_EPS * coarse * size + ABSOLUTE_EPS * coarse * largest
    return allowed


def _agrees(got: Array, wanted: Array, allowed: Array | None) -> bool:
    """Whether all elements surely agree."""
    if allowed is None:
        return bool(np.array_equal(got, wanted))
    with np.errstate(all="ignore"):
        gap: Any = np.abs(np.subtract(got, wanted, dtype=allowed.dtype))
        return bool((gap <= allowed).all())
