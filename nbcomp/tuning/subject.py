"""A kernel of the program that is tuned: its search, its trials, and what is used in the end.

Knows what came of trials; it must not know where they are made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from nbcomp.errors import ScheduleError
from nbcomp.measure.timing import Ratio, ratio
from nbcomp.schedule.canonical import Canonical
from nbcomp.schedule.database import Entry
from nbcomp.schedule.language import Schedule, from_json
from nbcomp.sizes import is_open
from nbcomp.tuning.result import EARLY, KernelState, Point, Ranking
from nbcomp.tuning.search import Search, Trial
from nbcomp.tuning.tasks import Task

WORTH = 0.97  # of the default's time: what a schedule must be below to be used
PATIENT = 16  # trials without a better one that halve a kernel's claim to the next


@dataclass(eq=False)
class Subject:
    """A kernel in the search.

    in_use: the schedule it had before, if that was not the default one.
    over: its space has no more.  chosen: what is used in the end, and change: its time over that of
    the default schedule; final: that of the fastest new one in the final comparison, used or not,
    over that of the schedule so far.
    ranking: how well the model ranks candidates drawn at random, if that was asked for.
    """

    task: Task
    search: Search
    known: Canonical
    in_use: Trial | None = None
    points: list[Point] = field(default_factory=list)
    over: bool = False
    chosen: Trial | None = None
    change: Ratio | None = None
    final: Ratio | None = None
    ranking: Ranking | None = None
    usual: Ratio | None = None  # the time by the schedule in use over that by the default one

    @property
    def held(self) -> Trial:
        """What stays unless something is clearly faster."""
        return self.in_use or self.search.trials[0]

    def hold(self) -> None:
        """Let the schedule stay that there was."""
        self.chosen, self.change = self.held, self.usual

    @property
    def name(self) -> str:
        """Of the kernel."""
        return self.task.kernel.name

    @cached_property
    def open(self) -> bool:
        """Whether a length differs from call to call."""
        return any(is_open(b.shape) for b in self.task.kernel.buffers)

    @property
    def claim(self) -> float:
        """To the next trials: what a call spends in it, less where nothing was found lately."""
        return self.task.calls * self.search.best / (1 + self.search.stale / PATIENT)

    def key_of(self, entry: Entry) -> str:
        """The key of the candidate that an entry is of; empty where it cannot be read."""
        try:
            return str(self.known.own(from_json(entry.schedule)))
        except ScheduleError:
            return ""

    def state(self, correlation: bool = False) -> KernelState:
        """As it is now."""
        search = self.search
        rank, beyond = search.correlation() if correlation else (math.nan, math.nan)
        more = correlation and len(search.timed) > EARLY
        early = search.correlation(EARLY)[0] if more else rank
        return KernelState(
            self.name,
            self.task.calls,
            search.default,
            search.best,
            tuple(self.points),
            sum(t.outcome.share is None for t in search.trials),
            search.cut,
            rank,
            len(search.earlier),
            search.noise,
            beyond,
            early,
            self.ranking,
        )

    def entry(self, target: str, trial: Trial, verdict: bool) -> Entry:
        """A trial on a CPU as a line of the record."""
        is_default = trial.candidate.key == self.search.trials[0].candidate.key
        schedule = Schedule() if is_default else trial.candidate.schedule
        share, default = trial.outcome.share, self.search.default
        if verdict and self.change:  # what was taken in turn at the end counts more
            share = self.change.median
        return Entry(
            self.known.digest,
            target,
            self.known.told(schedule).to_json(),
            None if share is None else share * default,
            None if share is None else default,
            verdict,
            trial.outcome.note,
            self.name,
            datetime.now(UTC).isoformat(timespec="seconds"),
            trial.candidate.decisions,
        )

    def judge(self, trials: Sequence[Trial], samples: Sequence[Sequence[float]]) -> None:
        """Choose the fastest, if it is clearly faster than what there was; the default comes
        first."""
        place = next(k for k, t in enumerate(trials) if t is self.held)
        if not samples[0] or not samples[place]:
            return
        changes = _changes(samples, samples[place])
        over_default = _changes(samples, samples[0])
        self.usual = over_default[place] if place else None
        self.hold()
        rivals = [k for k in range(len(trials)) if k != place]
        best = min(rivals, key=lambda k: changes[k].median)
        self.final = changes[best]
        if self.final.median < WORTH and self.final.clear:
            self.chosen, self.change = trials[best], over_default[best] if best else None


def _changes(samples: Sequence[Sequence[float]], base: Sequence[float]) -> list[Ratio]:
    """How many times as long as one of the runs each takes, for ever where it does not run."""
    return [ratio(s, base) if s else Ratio(math.inf, 0, math.inf) for s in samples]
