"""A kernel that a rule takes through steps of the schedule language, one after another.

Knows what loops there are after each; it must not know what the steps are for.
"""

from __future__ import annotations

from nbcomp.loop.grammar import Kernel
from nbcomp.schedule.language import Step
from nbcomp.schedule.rewriting import loop_names, noted


class Stepwise:
    """A kernel and its loops, outside in; each step is noted as it would be written by hand."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.loops = loop_names(kernel)

    def do(self, name: str, *arguments: str | int, **options: int) -> list[str]:
        """Take a step; the names of the loops that are new after it.  Raises ScheduleError where
        it is not legal."""
        before = set(self.loops)
        step = Step(name, arguments, tuple(options.items()))
        self.kernel = noted(step.taken(self.kernel), str(step))
        self.loops = loop_names(self.kernel)
        return [v for v in self.loops if v not in before]
