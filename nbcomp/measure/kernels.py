"""Every kernel of a compiled program by itself, timed on the user's data and held against the
machine's limits.

The steps of the plan are run in order, again and again, and each is timed; so every kernel finds
the caches as it does in a call.  Knows plans and loops; it must not know how numbers are shown.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from nbcomp.compiled import Compiled, CompiledKernel
from nbcomp.errors import NbcompError
from nbcomp.frontend.result import bind
from nbcomp.loop.grammar import For, Kernel, Store, walk
from nbcomp.loop.intrinsics import INTRINSICS, terms
from nbcomp.loop.work import Work, work_of
from nbcomp.lowering.program import KernelStep, LibraryStep, touched
from nbcomp.machine import host
from nbcomp.measure.arguments import kept, restore, twin
from nbcomp.measure.limits import limits, nothing
from nbcomp.measure.memory_plan import memory_plan, step_names
from nbcomp.measure.roofline import KernelFigures, Limits, LineCost, Memory, Numbers
from nbcomp.measure.timing import Neighbours, Timing, no_collection, quietly, timing_of
from nbcomp.record import Location
from nbcomp.runtime import interpret, pool, validity
from nbcomp.runtime.plan import HostStep, Step

ROUNDS = 400  # runs of the whole program at most
FEWEST = 3  # runs at least, unless that takes more than twice the time
BEYOND = 1.05  # of a limit: then it was the limit that was measured wrong
STEP = 20e-9  # seconds the native entry takes for a step that is not spread over threads
LEAST = 100e-9  # seconds a step is said to take at least: less cannot be told from calling it


def measure_numbers(
    compiled: Compiled,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    seconds: float = 1.0,
) -> Numbers:
    """Time each kernel on these arguments for about `seconds`, and count what it does.

    The caller's arrays are left as they are.  Raises NbcompError where a step fails.
    """
    neighbours = Neighbours()
    captured = compiled.capture
    values = bind(captured.signature, args, dict(kwargs or {}))
    if compiled.mismatch(values) is None:
        compiled = compiled.settled(values)
    with kept(captured.signature, captured.writes, args, kwargs or {}):
        samples = _samples(compiled, args, kwargs or {}, seconds)
    memory = memory_plan(compiled)
    calls = [c for c in _calls(compiled, samples, memory) if c.stages]  # others do nothing
    called: dict[str, list[_Call]] = {}
    for call in calls:
        if isinstance(call.program, KernelStep):
            called.setdefault(call.name, []).append(call)
    timed = [_Timed(k, tuple(called[k.name])) for k in compiled.kernels if k.name in called]
    known = limits()
    if any(_figures(kernel, known).of_limit > BEYOND for kernel in timed):
        known = limits(again=True)  # something disturbed them
    kernels = tuple(_figures(kernel, known) for kernel in timed)
    weights = [_by_place(t.work, f) for t, f in zip(timed, kernels, strict=True)]
    libraries = []
    for call in calls:
        if isinstance(call.program, LibraryStep):
            libraries.append((call.name, call.timing))
            weights.append({call.program.node.location: call.timing.median})
    return Numbers(known, kernels, memory, _lines(weights), tuple(libraries), neighbours.cores())


# ----------------------------------------------------------------------------------------- timing


def _samples(
    compiled: Compiled, args: Sequence[Any], kwargs: Mapping[str, Any], seconds: float
) -> list[list[float]]:
    """For each step of the plan its seconds, one value per run of the whole plan.

    Less what calling a step from Python takes, which is measured along with them.
    """
    plan, writes = compiled.plan, bool(compiled.capture.writes)
    given = (tuple(args), dict(kwargs))
    copies = twin(given) if writes else given
    values = bind(compiled.capture.signature, copies[0], copies[1])
    if why := validity.mismatch(plan, values):
        raise NbcompError(f"{compiled.name} was compiled for other arguments: {why}")
    frame = interpret.framed(plan, values)
    runs = [nothing(), *(interpret.prepared(step, frame) for step in plan.steps)]
    taken: list[list[float]] = [[] for _ in runs]
    again = partial(restore, copies, given)
    end = time.perf_counter() + seconds
    with quietly(), no_collection():
        for number in range(ROUNDS):
            if writes:
                again()
            for position, run in enumerate(runs):
                start = time.perf_counter()
                status = run()
                taken[position].append(time.perf_counter() - start)
                if status:
                    name = plan.steps[position - 1].name
                    raise NbcompError(f"{name} cannot be timed: it ended with status {status}")
            late = time.perf_counter() - end
            if number and late > 0 and (number >= FEWEST or late > seconds):
                break
    calling = float(np.median(taken[0]))
    # Not the first run, which finds its memory untouched.
    return [[max(s - calling, LEAST) for s in one[1:]] for one in taken[1:]]


@dataclass(frozen=True)
class _Call:
    """A step of the program: its samples by stage, and how near in time its buffers were used."""

    name: str
    program: KernelStep | LibraryStep
    stages: tuple[Step | HostStep, ...]
    samples: tuple[list[float], ...]
    distances: dict[str, float]  # memory -> bytes touched since it was last used

    @property
    def seconds(self) -> list[float]:
        """Of all stages together, one value per run of the program."""
        return [sum(run) for run in zip(*self.samples, strict=True)]

    @property
    def timing(self) -> Timing:
        """The same in short."""
        return timing_of(self.seconds, 1)


@dataclass(frozen=True)
class _Timed:
    """A kernel with all its calls."""

    kernel: CompiledKernel
    calls: tuple[_Call, ...]

    @cached_property
    def work(self) -> Work:
        """What one call does."""
        return work_of(self.kernel.lowered)

    @property
    def timing(self) -> Timing:
        """Of all calls together."""
        return timing_of(
            [sum(run) for run in zip(*(c.seconds for c in self.calls), strict=True)], 1
        )

    @property
    def threads(self) -> int:
        """How many threads its most parallel stage uses."""
        return max((_threads(s) for c in self.calls for s in c.stages), default=1)


def _threads(step: Step | HostStep) -> int:
    if isinstance(step, HostStep) or not step.grain:
        return 1
    return min(pool.threads(), math.ceil((step.round or step.extent) / step.grain))


def _calls(compiled: Compiled, samples: list[list[float]], memory: Memory) -> list[_Call]:
    """The steps of the program with those of the plan that belong to each."""
    position, result = 0, []
    distances = _distances(compiled, {k: b.bytes for k, b in _slots(compiled, memory).items()})
    for number, (step, name) in enumerate(
        zip(compiled.program.steps, step_names(compiled), strict=True)
    ):
        kernel = compiled.kernel_of(step)
        count = len(kernel.code.stages) if kernel else 1
        if isinstance(step, LibraryStep) and step.kept:
            count = 0
        part = slice(position, position + count)
        position += count
        near: dict[str, float] = {}
        if isinstance(step, KernelStep):
            near = {name: distances[number][slot] for name, slot in step.slot_of.items()}
        result.append(_Call(name, step, compiled.plan.steps[part], tuple(samples[part]), near))
    return result


# --------------------------------------------------------------------------- against the machine


def _slots(compiled: Compiled, memory: Memory) -> dict[int, Any]:
    """The buffers of the memory plan by slot: it lists those that are touched, in order."""
    used = sorted({slot for step in compiled.program.steps for slot in touched(step)})
    return dict(zip(used, memory.buffers, strict=True))


def _distances(compiled: Compiled, sizes: Mapping[int, int]) -> list[dict[int, float]]:
    """For each step and slot the bytes of all that was touched since that slot was, with itself.

    The program runs again and again, so before its first step comes its last.  Where all that fits
    a cache, the slot is still in it (the reuse distance of a cache that keeps what was used last).
    """
    sets = [set(touched(step)) for step in compiled.program.steps]
    result = []
    for number, own in enumerate(sets):
        found: dict[int, float] = {}
        for slot in own:
            seen: set[int] = set(own)
            for back in range(1, len(sets) + 1):
                before = sets[number - back]
                seen |= before
                if slot in before:
                    break
            found[slot] = float(sum(sizes[s] for s in seen))
        result.append(found)
    return result


def _figures(timed: _Timed, known: Limits) -> KernelFigures:
    """What all calls of a kernel do together, and in what time."""
    threads, work = timed.threads, timed.work
    streamed = {
        s.buffer.memory
        for s in walk(timed.kernel.kernel.stages)
        if isinstance(s, Store) and s.streaming
    }
    traffic: dict[str, float] = defaultdict(float)
    for call in timed.calls:
        for memory in {**work.read, **work.written}:
            near = known.level_of(call.distances[memory], threads)
            traffic[near] += work.read[memory]
            traffic["memory" if memory in streamed else near] += work.written[memory]
    operations = work.operations
    widest = max(operations, key=lambda size: operations[size] * size, default=4)
    stages = [s for call in timed.calls for s in call.stages]
    forks = sum(_threads(s) > 1 for s in stages)
    return KernelFigures(
        kernel=timed.kernel.name,
        timing=timed.timing,
        threads=threads,
        dtype="float64" if widest >= 8 else "float32",
        operations=float(len(timed.calls) * sum(operations.values())),
        traffic=tuple((level, size) for level, size in traffic.items() if size),
        overhead=forks * known.fork + len(stages) * STEP,
        limits=known,
        calls=len(timed.calls),
        together=_together(timed.kernel.kernel),
    )


def _together(kernel: Kernel) -> int:
    """How many products the instructions of a kernel add up at a time, on this machine."""
    names = {s.instruction for s in walk(kernel.stages) if isinstance(s, For) and s.instruction}
    found = [INTRINSICS[name] for name in names]
    return max((terms(i) for i in found if i.runs_on(host().features)), default=1)


# ------------------------------------------------------------------------------------------ lines


def _by_place(work: Work, figures: KernelFigures) -> dict[Location | None, float]:
    """A kernel's seconds, distributed over the spans of the source.

    By the bytes each asks for where memory limits the kernel, else by the instructions its
    operators are estimated to take (`nbcomp.loop.cost`), both as often as the loops run them.
    Counting the instructions of the machine code would know nothing of that: the loop of a tail
    has as many as the one that does the work.
    """
    column = 1 if figures.bound in ("L2", "L3", "memory") else 0
    shares = {place: pair[column] for place, pair in work.places.items()}
    whole = sum(shares.values())
    if not whole:
        return {}
    return {place: figures.timing.median * share / whole for place, share in shares.items()}


def _lines(weights: Sequence[Mapping[Location | None, float]]) -> tuple[LineCost, ...]:
    """The share of each line in all the time that can be put on a line."""
    seconds: dict[tuple[str, int], float] = defaultdict(float)
    for kernel in weights:
        for place, value in kernel.items():
            if place is not None:
                seconds[place.file, place.line] += value
    whole = sum(seconds.values()) or 1.0
    costs = (LineCost(file, line, value / whole) for (file, line), value in seconds.items())
    return tuple(sorted(costs, key=lambda c: -c.share))
