"""What the steps of a schedule are worth, by ablation: each left out, the rest measured.

A step that others build on cannot be left out alone: those are left out with it, and it stands for
them.
"""

from __future__ import annotations

import time

from nbcomp.errors import NbcompError
from nbcomp.loop.grammar import Kernel
from nbcomp.schedule.language import Schedule, Step
from nbcomp.tuning.result import Finding
from nbcomp.tuning.tasks import Task
from nbcomp.tuning.worker import Runner


def findings_of(
    workers: Runner, task: Task, schedule: Schedule, seconds: float
) -> tuple[Finding, ...]:
    """How many times as long a kernel takes without each step, measured in about so many seconds.

    What there was no time for has no factor.
    """
    end = time.perf_counter() + seconds
    found = []
    for position, step in enumerate(schedule.steps):
        if time.perf_counter() > end:
            found.append(Finding(str(step), None, "not measured: the time was over"))
            continue
        rest, gone = without(task.kernel, schedule, position)
        share = max(seconds / len(schedule.steps) / 2, 0.02)
        whole, less = workers.race(task, [schedule, rest], share)
        if not whole or not less:
            found.append(Finding(str(step), None, "cannot be left out"))
            continue
        more = f"with {gone} that build on it" if gone else ""
        found.append(Finding(str(step), min(less) / min(whole), more))
    return tuple(found)


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
