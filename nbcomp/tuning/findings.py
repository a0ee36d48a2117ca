"""What was found and what it is worth, by ablation: each answer that is not the usual one given as
usual, each step left out, the rest kept and both timed in turn.

A step that others build on cannot be left out alone: those are left out with it, and it stands for
them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from nbcomp.errors import NbcompError
from nbcomp.loop.grammar import Kernel
from nbcomp.measure.timing import ratio
from nbcomp.schedule.language import Schedule, Step
from nbcomp.tuning.analytic import estimate
from nbcomp.tuning.result import Difference, Finding
from nbcomp.tuning.runner import Runner
from nbcomp.tuning.space import Candidate, Space
from nbcomp.tuning.tasks import Task

LEAST = 0.02  # seconds of a comparison


def differences_of(
    workers: Runner, task: Task, space: Space, found: Candidate, seconds: float
) -> tuple[Difference, ...]:
    """The decisions of a candidate that are not the usual ones, and how many times as long the
    kernel takes with the usual answer; what matters most first.
    """
    usual = space.build({})
    known = usual.decisions if usual else {}
    names = [n for n, v in found.decisions.items() if n in known and known[n] != v]
    end = time.perf_counter() + seconds
    made = []
    for name in names:
        now, before = found.decisions[name], known[name]
        rest = space.build({**found.decisions, name: before})
        if rest is not None and rest.key == found.key:
            continue  # it made no difference
        factor = None
        if rest is not None and time.perf_counter() < end:
            pair = [found.schedule, rest.schedule]
            factor = _factor(workers, task, pair, seconds / len(names))
        made.append(Difference(name, str(now), str(before), factor))
    return tuple(sorted(made, key=lambda d: -(d.factor or 0.0)))


def findings_of(
    workers: Runner, task: Task, schedule: Schedule, seconds: float
) -> tuple[Finding, ...]:
    """How many times as long a kernel takes without each step, measured in about so many seconds.

    What there was no time for has no factor.
    """
    end = time.perf_counter() + seconds
    return tuple(_findings(workers, task, schedule, seconds, end))


def _findings(
    workers: Runner, task: Task, schedule: Schedule, seconds: float, end: float
) -> Iterator[Finding]:
    for position, step in enumerate(schedule.steps):
        if time.perf_counter() > end:
            yield Finding(str(step), None)
            continue
        rest, gone = without(task.kernel, schedule, position)
        factor = _factor(workers, task, [schedule, rest], seconds / len(schedule.steps))
        if factor is None:
            yield Finding(str(step), None, "cannot be left out")
        else:
            yield Finding(str(step), factor, f"with {gone} that build on it" if gone else "")


def _factor(workers: Runner, task: Task, pair: list[Schedule], seconds: float) -> float | None:
    """The time of the second schedule over that of the first; None where it does not run, or would
    take too long to compile."""
    if estimate(pair[1](task.kernel), workers.machine).too_large:
        return None
    _, first, second = workers.race(task, pair, max(seconds / 2, LEAST))
    return ratio(second, first).median if first and second else None


def without(kernel: Kernel, schedule: Schedule, position: int) -> tuple[Schedule, int]:
    """A schedule without one of its steps, and without those that are not legal then; how many
    these are."""
    kept: list[Step] = list(schedule.steps[:position])
    made = Schedule(tuple(kept))(kernel)
    gone = 0
    for step in schedule.steps[position + 1 :]:
        try:
            made = step.taken(made)
        except NbcompError:
            gone += 1
        else:
            kept.append(step)
    return Schedule(tuple(kept)), gone
