"""One kernel, again and again, each time by another schedule: compiled, checked, timed.

What a worker does; in a process of its own, since a candidate may crash.  Nothing is timed that has
not given the wanted answer, in every element, into memory that held something else before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbcomp.errors import NbcompError
from nbcomp.loop.grammar import Buffer
from nbcomp.measure.differences import ABSOLUTE_EPS, RELATIVE_EPS, difference
from nbcomp.measure.timing import no_collection
from nbcomp.planning import step_of
from nbcomp.record import Trace
from nbcomp.runtime import interpret, memory
from nbcomp.runtime.emit import address
from nbcomp.schedule.language import Schedule
from nbcomp.target.llvm.compile import host_target
from nbcomp.tuning.tasks import Array, Task

SAMPLE = 1e-4  # seconds one sample should last: far above the clock's resolution
ROUNDS = 4  # turns of each candidate: what disturbs one of them may be over at the next
TURN = (
    2.5e-3  # seconds of a turn, of which the shortest sample counts, since what disturbs only adds
)
HOPELESS = 2.5  # times the best: then one turn is enough


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
                self.arrays[b.memory] = laid_out(b)
        for name, value in task.given.items():
            self.arrays[name][...] = value

    def prepare(self, schedule: Schedule) -> Prepared | str:
        """Compile and check a schedule: why it cannot be used, or what to time."""
        try:
            kernel = schedule(self.task.kernel)
            code = host_target().compile(kernel, Trace())
        except NbcompError as error:
            return f"not legal: {error.message}"
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

    def time(self, prepared: Sequence[Prepared], best: float = math.inf) -> list[float]:
        """Seconds of a run of each: the shortest of some samples, which they take in turns.

        best: seconds of the best so far; what is far beyond gets one turn.
        """
        with no_collection():
            loops = [_loops(p.run) for p in prepared]
            found = [math.inf] * len(prepared)
            for _ in range(ROUNDS):
                best = min(best, *found)
                for k, (p, count) in enumerate(zip(prepared, loops, strict=True)):
                    if found[k] == math.inf or found[k] < HOPELESS * best:
                        found[k] = min(found[k], _turn(p.run, count))
        return found

    def race(self, prepared: Sequence[Prepared], seconds: float) -> list[list[float]]:
        """The shortest samples of the turns of several candidates, for about so many seconds."""
        with no_collection():
            loops = [_loops(p.run) for p in prepared]
            taken: list[list[float]] = [[] for _ in prepared]
            end = time.perf_counter() + seconds
            while time.perf_counter() < end or len(taken[0]) < ROUNDS:
                for p, count, samples in zip(prepared, loops, taken, strict=True):
                    samples.append(_turn(p.run, count))
        return taken


def laid_out(b: Buffer) -> Array:
    """Memory for a buffer with its strides, aligned as that of a call is."""
    size = b.dtype.itemsize
    reach = [(n - 1) * s for n, s in zip(b.shape, b.strides, strict=True)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    room = memory.empty(np.dtype(np.uint8), (max((high - low + 1) * size, 1),))
    strides = tuple(s * size for s in b.strides)
    return np.ndarray(b.shape, b.dtype, room, -low * size, strides)


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


def _sample(run: Callable[[], None], loops: int) -> float:
    start = time.perf_counter()
    for _ in range(loops):
        run()
    return (time.perf_counter() - start) / loops


def _turn(run: Callable[[], None], loops: int) -> float:
    """The shortest sample of a turn."""
    end, shortest = time.perf_counter() + TURN, math.inf
    while True:
        shortest = min(shortest, _sample(run, loops))
        if time.perf_counter() >= end:
            return shortest


def _loops(run: Callable[[], None]) -> int:
    """Runs in one sample; warms up on the way."""
    loops = 1
    while loops < 1 << 14:
        seconds = _sample(run, loops) * loops
        if seconds >= SAMPLE:
            break
        loops = min(int(1.2 * loops * SAMPLE / max(seconds, 1e-9)) + 1, 10 * loops)
    return loops
