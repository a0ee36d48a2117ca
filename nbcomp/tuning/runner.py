"""Where candidates are measured, and what comes of them: what a search knows of workers.

Plain data and a protocol; it must not know processes or clusters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from nbcomp.machine import Machine
from nbcomp.tuning.bench import Wanted
from nbcomp.tuning.tasks import Task


@dataclass(frozen=True)
class Outcome:
    """What came of a candidate: how many times as long as the default schedule it takes, timed in
    turn with that, or why this is not known.

    default: seconds of a run by the default schedule, undisturbed.
    """

    share: float | None
    note: str = ""
    default: float = 1.0

    @property
    def seconds(self) -> float | None:
        """Of a run."""
        return None if self.share is None else self.share * self.default


Outcomes = Mapping[int, Outcome]  # by position


class Runner(Protocol):
    """Where candidates are measured: processes on this machine, or the hosts of a cluster."""

    lost: int  # workers that crashed or hung

    @property
    def machine(self) -> Machine:
        """What candidates run on."""

    @property
    def width(self) -> int:
        """How many machines measure at once."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(self, *error: object) -> None:
        """End."""

    def restart(self) -> None:
        """Begin anew: after an interrupt nobody knows what is under way."""

    def use(self, task: Task) -> None:
        """Work on this kernel from now on."""

    def run(
        self, task: Task, candidates: Iterable[Wanted], best: float = math.inf
    ) -> Iterator[Outcomes]:
        """What came of candidates, by position, as it comes."""

    def race(self, task: Task, candidates: Sequence[Wanted], seconds: float) -> list[list[float]]:
        """Samples of the default schedule, then of others, taken in turn; none where one does not
        work."""
