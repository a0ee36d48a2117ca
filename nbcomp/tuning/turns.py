"""Times on a machine with others on it: everything is timed in turn with one and the same run.

Other programs make a run take what it takes, or twice that, for milliseconds at a time.
So a run is timed between two of the default schedule, and counts where these took what they take
undisturbed; where none did, what counts is how many times as long it took as they.  What is no
good is told after a few rounds and is not timed any further.  Knows runs, not what they are.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

SAMPLE = 1e-4  # seconds a sample should last: far above the clock's resolution
APART = 5e-4  # seconds after which the default is timed again
MEMORY = 400  # samples of the default by which one is told to be undisturbed
USUAL = 0.1  # quantile of these that is what the default takes undisturbed
QUIET = 1.1  # times that, up to which a sample is undisturbed
ENOUGH = 6  # undisturbed samples of a run
FEWEST, MOST = 3, 16  # rounds
PATIENCE = 0.08  # seconds one run may have of a batch, when its samples are long
# After so many rounds a run is only timed on while it is below so many times the best.
WORTH_ON = {3: 1.6, 5: 1.3, 8: 1.15}

Run = Callable[[], None]


@dataclass(eq=False)
class Side:
    """A run, how many make a sample, and the samples so far: each with those of the default before
    and after it, by their positions."""

    run: Run
    loops: int
    samples: list[tuple[float, int]] = field(default_factory=list)

    def sample(self) -> float:
        """Seconds of a run, now."""
        return sample(self.run, self.loops)


class Turns:
    """A default run, and what else is timed in turn with it: in this process, on this machine."""

    def __init__(self, default: Run) -> None:
        self.default = Side(default, loops_of(default))
        self.known: deque[float] = deque(maxlen=MEMORY)
        self.own: list[float] = []  # of the default, in the batch
        self.last = -math.inf  # when it was timed

    @property
    def level(self) -> float:
        """Seconds of the default where nothing disturbs it."""
        return float(np.quantile(self.known, USUAL))

    def mark(self) -> None:
        """Time the default."""
        self.own.append(self.default.sample())
        self.known.append(self.own[-1])
        self.last = time.perf_counter()

    def shares(self, runs: Sequence[Run], best: float = math.inf) -> list[float]:
        """How many times as long as the default each run takes.

        best: the least share so far; what is far above it is timed less well.
        """
        sides = [Side(run, loops_of(run)) for run in runs]
        self.own, self.last = [], -math.inf
        self.mark()
        active, end = sides, time.perf_counter() + PATIENCE * len(sides)
        for number in range(1, MOST + 1):
            self.round(active)
            if number >= FEWEST and time.perf_counter() > end:
                break
            if number in WORTH_ON:
                self.mark()
                found = [self.share(s) for s in sides]
                most = WORTH_ON[number] * min(best, *found)
                active = [s for s, share in zip(sides, found, strict=True) if share <= most]
            if number >= FEWEST:
                active = [s for s in active if self.count(s) < ENOUGH]
            if not active:
                break
        self.mark()
        return [self.share(s) for s in sides]

    def round(self, sides: Sequence[Side]) -> None:
        """A sample of each, with the default often enough among them."""
        for side in sides:
            if time.perf_counter() - self.last > APART:
                self.mark()
            side.samples.append((side.sample(), len(self.own) - 1))

    def undisturbed(self, side: Side) -> list[float]:
        """The samples of a side around which the default took what it takes."""
        most = QUIET * self.level
        quiet = [s <= most for s in self.own]
        return [t for t, k in side.samples if quiet[k] and quiet[min(k + 1, len(quiet) - 1)]]

    def count(self, side: Side) -> int:
        """How many there are."""
        return len(self.undisturbed(side))

    def share(self, side: Side) -> float:
        """Of the default's time."""
        good = self.undisturbed(side)
        if len(good) >= FEWEST:
            most = QUIET * self.level
            around = [s for s in self.own if s <= most]
            return float(np.quantile(good, 0.25) / np.quantile(around, 0.25))
        last = len(self.own) - 1
        pairs = [2 * t / (self.own[k] + self.own[min(k + 1, last)]) for t, k in side.samples]
        return float(np.median(pairs))

    def race(self, runs: Sequence[Run], seconds: float) -> list[list[float]]:
        """Samples of the default and of other runs, in rounds, for about so many seconds: of the
        rounds in which the default was not disturbed, if there are such."""
        sides = [self.default, *(Side(run, loops_of(run)) for run in runs)]
        end = time.perf_counter() + seconds
        rounds: list[list[float]] = []
        while time.perf_counter() < end or len(rounds) < FEWEST:
            rounds.append([side.sample() for side in sides])
        return [list(column) for column in zip(*_quiet(rounds), strict=True)]


def _quiet(rounds: Sequence[list[float]]) -> Sequence[list[float]]:
    """The rounds whose first sample is what that takes undisturbed; all, if these are few."""
    firsts = [r[0] for r in rounds]
    most = QUIET * float(np.quantile(firsts, USUAL))
    good = [r for r in rounds if r[0] <= most]
    return good if len(good) >= ENOUGH else rounds


def sample(run: Run, loops: int) -> float:
    """Seconds of a run, over so many."""
    start = time.perf_counter()
    for _ in range(loops):
        run()
    return (time.perf_counter() - start) / loops


def loops_of(run: Run) -> int:
    """Runs in one sample; warms up on the way."""
    loops = 1
    while loops < 1 << 14:
        seconds = sample(run, loops) * loops
        if seconds >= SAMPLE:
            break
        loops = min(int(1.2 * loops * SAMPLE / max(seconds, 1e-9)) + 1, 10 * loops)
    return loops
