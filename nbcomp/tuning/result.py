"""What a search gives, as plain data: what was tried, what was found, what that is worth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nbcomp.measure.timing import Ratio, Timing
from nbcomp.schedule.language import Schedule

EARLY = 100  # trials after which it is asked, too, how well the model ranks


@dataclass(frozen=True)
class Point:
    """A trial: seconds since the search began, and seconds of the kernel (None: not timed)."""

    at: float
    seconds: float | None


@dataclass(frozen=True)
class Finding:
    """What a step of the schedule that was found is worth: how many times as long the kernel takes
    without it; None where nothing was measured, and why.
    """

    step: str
    factor: float | None
    note: str = ""


@dataclass(frozen=True)
class Difference:
    """A decision that is not the usual one: what was found, what is usual, and how many times as
    long the kernel takes with that; None where it was not measured.
    """

    decision: str
    found: str
    usual: str
    factor: float | None


@dataclass(frozen=True)
class Ranking:
    """How well the cost model ranks candidates drawn at random, which it has not seen, as
    correlations of ranks: after the first `EARLY` trials, and after all (NaN: no spread).

    drawn: how many were measured.  again: of one measurement of them with the next, which no model
    can be above.
    """

    drawn: int
    early: float
    late: float
    again: float


@dataclass(frozen=True)
class KernelState:
    """A kernel in a search: seconds of a run with the default schedule and with the best so far.

    calls: in a call of the program.  cut: candidates the estimate ruled out.  correlation: of the
    learned model with measurement, in ranks (NaN: too little measured).  earlier: trials that were
    in the record.  noise: how many times as long one schedule took at another time.  beyond: the
    order the model gives of pairs that differ by more than that, from -1 to 1 (NaN: not known).
    early: the correlation after the first `EARLY` of them.  ranking: the same of candidates drawn
    at random (None: not asked for).
    """

    name: str
    calls: int
    default: float
    best: float
    points: tuple[Point, ...]
    failed: int = 0
    cut: int = 0
    correlation: float = math.nan
    earlier: int = 0
    noise: float = 1.0
    beyond: float = math.nan
    early: float = math.nan
    ranking: Ranking | None = None

    @property
    def speedup(self) -> float:
        """Over the default schedule."""
        return self.default / self.best if self.best > 0 else 1.0


@dataclass(frozen=True)
class State:
    """A search under way: what it does, seconds so far and in all, its kernels."""

    name: str
    doing: str
    spent: float
    seconds: float
    kernels: tuple[KernelState, ...] = ()
    numpy: float | None = None  # seconds of a call in NumPy
    program: float | None = None  # seconds of a call with the default schedules

    @property
    def trials(self) -> int:
        """Of all kernels."""
        return sum(len(k.points) for k in self.kernels)

    @property
    def saved(self) -> float:
        """Seconds of a call that the best schedules so far save."""
        return sum(k.calls * (k.default - k.best) for k in self.kernels)

    @property
    def speedup(self) -> float:
        """Of the whole program over its default, as far as its kernels tell."""
        whole = self.program or sum(k.calls * k.default for k in self.kernels)
        return whole / max(whole - self.saved, 0.02 * whole) if whole else 1.0


Say = Callable[[State], None]


@dataclass(frozen=True)
class Found:
    """A kernel after the search: the schedule to use (None: the default one stays) and its worth.

    change: seconds by it over those by the default, taken in turn at the end; final: those of the
    fastest new one that came so far, used or not (None: nothing did), over those of the schedule
    there was.  stays: it is the one there was.  differences: the
    decisions in which it differs from that; findings: what each of its steps is worth.
    """

    state: KernelState
    schedule: Schedule | None = None
    change: Ratio | None = None
    differences: tuple[Difference, ...] = ()
    findings: tuple[Finding, ...] = ()
    final: Ratio | None = None
    stays: bool = False


@dataclass(frozen=True)
class Tuned:
    """A program after the search; `compiled` is it with the schedules that were found.

    scheduled: whether it had other schedules than the default ones before.
    default, own: seconds of a call before and after, change: own over default; numpy: seconds of
    the Python function.  searching: seconds of the search itself.  record: where the trials are.
    lost: workers that crashed or hung.  interrupted: the user ended it early.  note: what is to be
    known besides; declined: why what was found for the kernels is not used.  phases: what was
    done, and its seconds.  target: the CPU; elsewhere: the same search on others, in a cluster.
    """

    name: str
    compiled: Any
    kernels: tuple[Found, ...]
    spent: float
    searching: float
    default: Timing | None = None
    own: Timing | None = None
    change: Ratio | None = None
    numpy: Timing | None = None
    record: str = ""
    lost: int = 0
    interrupted: bool = False
    note: str = ""
    others: float = 0.0
    problems: tuple[str, ...] = ()
    target: str = ""
    elsewhere: tuple[Tuned, ...] = ()
    declined: str = ""
    scheduled: bool = False
    phases: tuple[tuple[str, float], ...] = ()

    @property
    def better(self) -> bool:
        """Whether another schedule is used now."""
        new = any(k.schedule and not k.stays for k in self.kernels)
        return new or (self.scheduled and self.change is not None)

    @property
    def before(self) -> str:
        """The schedules it had, in words."""
        return "the schedules in use before" if self.scheduled else "the default schedules"

    @property
    def trials(self) -> int:
        """Of all kernels, in this search."""
        return sum(len(k.state.points) for k in self.kernels)

    @property
    def rate(self) -> float:
        """Trials a second."""
        return self.trials / self.searching if self.searching > 0 else 0.0

    @property
    def speedup(self) -> float:
        """Over the schedules it had."""
        return 1 / self.change.median if self.change else 1.0

    def __str__(self) -> str:
        what = f"{self.trials} trials in {self.searching:.1f} s"
        faster = f"{self.speedup:.2f} times as fast as by {self.before}"
        better = faster if self.better else f"{self.before} kept"
        schedules = [f"\n{k.state.name}:\n{k.schedule}" for k in self.kernels if k.schedule]
        return "\n".join([f"{self.name}: {better}; {what}", *schedules])

    __repr__ = __str__
