"""What is measured: each kernel of a program with its data, and the answer it must give.

The program runs once with its default schedules; what every kernel finds in memory and leaves there
is kept.  That program has been held against NumPy before.  Plain data, to be sent to workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nbcomp.compiled import Compiled
from nbcomp.errors import NbcompError
from nbcomp.frontend.result import bind
from nbcomp.loop.grammar import Buffer, Kernel
from nbcomp.lowering.program import LibraryStep
from nbcomp.measure.arguments import kept, twin
from nbcomp.measure.comparison import coarsest
from nbcomp.measure.timing import quietly
from nbcomp.runtime import interpret, validity

Array = np.ndarray[Any, Any]

PAGE = 4096  # bytes: where an array starts in one is all that its address says about speed


@dataclass(frozen=True)
class Task:
    """A kernel as it was lowered; `given` and `wanted` are arrays by memory: what is there before
    it runs, and what it must have made.

    eps: what one rounding may change, of the coarsest value of the program.  calls: how often a
    call of the program runs it.  starts: where in its page each memory began: rows that lie across
    cache lines take longer.
    """

    kernel: Kernel
    given: Mapping[str, Array]
    wanted: Mapping[str, Array]
    eps: float
    calls: int = 1
    starts: Mapping[str, int] = field(default_factory=dict)


def tasks_of(
    compiled: Compiled, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None
) -> tuple[Task, ...]:
    """The kernels of a program that a schedule can be found for, on the data of a call.

    Loops that came as they were written are left out: LLVM schedules them.  The caller's arrays are
    left as they are.  Raises NbcompError for other arguments than the program was compiled for.
    """
    captured = compiled.capture
    with kept(captured.signature, captured.writes, args, kwargs or {}), quietly():
        return tuple(_run(compiled, args, kwargs or {}))


def _run(compiled: Compiled, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Task]:
    plan = compiled.plan
    given = (tuple(args), dict(kwargs))
    copies = twin(given) if compiled.capture.writes else given
    values = bind(compiled.capture.signature, copies[0], copies[1])
    if why := validity.mismatch(plan, values):
        raise NbcompError(f"{compiled.name} was compiled for other arguments: {why}")
    frame = interpret.framed(plan, values)
    steps = iter(plan.steps)
    eps = coarsest(compiled.captured)
    found: dict[str, Task] = {}
    for part in compiled.program.steps:
        if isinstance(part, LibraryStep) and part.kept:  # it has been made
            continue
        kernel = compiled.kernel_of(part)
        runs = [next(steps) for _ in kernel.code.stages] if kernel else [next(steps)]
        known = found.get(kernel.name) if kernel else None
        wanted = kernel is not None and not kernel.lowered.written and known is None
        slot_of = getattr(part, "slot_of", {})
        places = {b.memory: frame.slots[slot_of[b.memory]] for b in _passed(kernel, wanted)}
        before = {}
        if kernel and wanted:
            before = _arrays(kernel.lowered, places, "input")
            there = _arrays(kernel.lowered, places, "output")
            before |= {name: there[name] for name in getattr(part, "changed", ())}
        for step in runs:
            if status := interpret.prepared(step, frame)():
                raise NbcompError(f"{step.name} cannot be tuned: it ended with status {status}")
        if kernel and wanted:
            after = _arrays(kernel.lowered, places, "output")
            starts = {name: place % PAGE for name, place in places.items()}
            found[kernel.name] = Task(kernel.lowered, before, after, eps, starts=starts)
        elif known and kernel:
            found[kernel.name] = replace(known, calls=known.calls + 1)
    return list(found.values())


def _passed(kernel: Any, wanted: bool) -> list[Buffer]:
    """The buffers whose memory the program passes to a kernel."""
    if not wanted:
        return []
    return [b for b in kernel.lowered.buffers if b.role in ("input", "output")]


def _arrays(kernel: Kernel, places: Mapping[str, int], role: str) -> dict[str, Array]:
    """Copies of what is in memory now, by name, each in the first shape it is shown in."""
    found: dict[str, Array] = {}
    for b in kernel.buffers:
        if b.role == role and b.memory not in found:
            strides = tuple(s * b.dtype.itemsize for s in b.strides)
            view = (0, b.dtype, b.shape, strides)
            found[b.memory] = interpret.array_at([places[b.memory]], view).copy()
    return found
