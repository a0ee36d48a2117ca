"""Lowered groups become kernels: each is scheduled and compiled, and every step of it recorded.

Knows schedules and targets; it must not know where the groups came from.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from nbcomp.compiled import CompiledKernel
from nbcomp.errors import PassError, ScheduleError
from nbcomp.loop.grammar import Kernel
from nbcomp.lowering.group import in_users_words
from nbcomp.lowering.program import LibraryStep, Part, Program
from nbcomp.machine import Machine
from nbcomp.options import Options
from nbcomp.record import Snapshot, Trace
from nbcomp.schedule.database import recorded
from nbcomp.schedule.default import schedule
from nbcomp.target.base import Target


def make_kernels(
    parts: Sequence[Part], trace: Trace, options: Options, target: Target
) -> dict[str, CompiledKernel]:
    """Every kernel of these parts scheduled and compiled, by name; not yet with the groups that
    call it.

    Raises ScheduleError where options have a schedule for another kernel.
    """
    of = _distinct(parts)
    _known(options, of)
    shown = _costliest(parts, trace.shown.kernels)
    scheduled: list[Kernel] = []

    def in_turn() -> Iterator[Kernel]:
        for part, kernel in of.values():
            with trace.reworded(partial(in_users_words, nodes=part.nodes)):
                scheduled.append(_schedule(kernel, trace, options, target.machine))
            yield scheduled[-1]
        # LLVM is still at work on them: time to print what will be shown.
        for snapshot in trace.snapshots if shown else ():
            if not snapshot.kernel or snapshot.kernel in shown:
                _ = snapshot.text

    codes = target.compile_all(in_turn(), trace, shown)
    each = zip(of.items(), scheduled, codes, strict=True)
    return {name: CompiledKernel(name, (), k, made, code) for (name, (_, k)), made, code in each}


def _distinct(parts: Sequence[Part]) -> dict[str, tuple[Part, Kernel]]:
    """The kernels, each with the first part it computes, by names of which each means one."""
    found: dict[str, tuple[Part, Kernel]] = {}
    for part in parts:
        kernel = part.kernel
        if kernel and found.setdefault(kernel.name, (part, kernel))[1] is not kernel:
            raise PassError(f"two kernels of one program are called {kernel.name}")
    return found


def _known(options: Options, names: Collection[str]) -> None:
    """Raise ScheduleError where a schedule is for a kernel that the program does not have."""
    for name, _ in options.schedules:
        if name not in names:
            raise ScheduleError(f"no kernel {name}; the kernels are {', '.join(names)}")


def _costliest(parts: Sequence[Part], most: int) -> set[str]:
    """The names of the kernels whose calls touch the most memory."""
    touched = Counter[str]()
    for kernel in (p.kernel for p in parts if p.kernel and most):
        touched[kernel.name] += sum(b.nbytes for b in kernel.buffers)
    return {name for name, _ in touched.most_common(most)}


def _schedule(kernel: Kernel, trace: Trace, options: Options, machine: Machine) -> Kernel:
    """A kernel after its schedule, each step recorded."""
    lowered = Snapshot("lower", "loop", "The group as loops.", kernel, 0.0, kernel=kernel.name)
    trace.record(lowered)
    if (written := options.schedule_of(kernel.name)) is not None:
        return _in_steps(kernel, written.play(kernel), trace)
    if options.does_whole("loop") and not kernel.written:
        with trace.timed("schedule"):
            played = recorded(kernel, machine)
        if played:
            return _in_steps(kernel, played, trace)
    for step in schedule(options, kernel):
        begin = time.perf_counter()
        with trace.timed("schedule"):
            kernel = step(kernel, machine)
        spent = time.perf_counter() - begin
        name, description = step.__name__, summary(step)
        trace.record(Snapshot(name, "loop", description, kernel, spent, kernel=kernel.name))
    return kernel


def _in_steps(kernel: Kernel, played: Iterable[tuple[Any, Kernel]], trace: Trace) -> Kernel:
    """A kernel after a schedule that was written or found for it, each step recorded."""
    begin = time.perf_counter()
    with trace.timed("schedule"):
        for step, made in played:
            kernel = replace(made, notes=(*kernel.notes, str(step)))
            spent, begin = time.perf_counter() - begin, time.perf_counter()
            what = "A step of the schedule for this kernel, in place of the default one."
            trace.record(Snapshot(str(step), "loop", what, kernel, spent, kernel=kernel.name))
    return kernel


def with_groups(made: Mapping[str, CompiledKernel], program: Program) -> dict[str, CompiledKernel]:
    """The kernels, each with the groups that it computes, in the order of the first of them."""
    kernels: dict[str, CompiledKernel] = {}
    for step in program.steps:
        if not isinstance(step, LibraryStep):
            name = step.kernel.name
            known = kernels.get(name, made[name])
            kernels[name] = replace(known, groups=(*known.groups, step.group))
    return kernels


def summary(step: Callable[..., Any]) -> str:
    """What a pass or step says it does: the first line of its docstring."""
    return (step.__doc__ or "").strip().split("\n")[0]
