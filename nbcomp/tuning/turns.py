"""Times on a machine with others on it: everything is timed in turn with one and the same run.

Other programs make a run take what it takes, or twice that, for milliseconds at a time.  What they
take away shows in the cores a run had: its processor time over its time.  So a sample counts that
had as many as the run ever has, or is between two of the default schedule that had; where no sample
counts, what does is how many times as long as the default around it it took.  What is no good is
told after a few rounds and is not timed any further.

What ran before leaves the caches as it pleases: results written past them, or data in those of one
core, make the next run of another schedule slow.  So short runs run once or twice before they are
timed, and find what they left themselves, as in calls that follow each other.

Knows runs, not what they are.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

import numpy as np

from nbcomp.runtime.pool import processor_seconds

SAMPLE = 1e-4  # seconds a sample should last: far above the clock's resolution
WARM = (1e-3, 4e-4)  # seconds of a run, below which it runs once before a sample, and twice
APART = 1.5e-3  # seconds after which the default is timed again
MEMORY = 400  # samples of the default by which one is told to be undisturbed
USUAL = 0.1  # quantile of these that is what the default takes undisturbed
QUIET = 1.1  # times that, up to which a sample of the default is undisturbed
CORES = 0.93  # of the cores it can have, which a sample that is undisturbed had
ENOUGH, PLENTY = 4, 20  # undisturbed samples of a run: at least, and at most
LONG = 2e-3  # seconds of samples, from which fewer are enough
FEWEST, MOST = 3, 2.5  # rounds: at least, and at most for each sample that is wanted
PATIENCE = 0.08  # seconds one run may have of a batch, when its samples are long
# After so many rounds a run is only timed on while it is below so many times the best.
LOOK = 4  # rounds after which it is asked whether a run has enough samples
WORTH_ON = {3: 1.6, 5: 1.3, 8: 1.15}
COARSE = time.get_clock_info("process_time").resolution > SAMPLE / 50

Run = Callable[[], None]


class Sample(NamedTuple):
    """Seconds of a run, and the cores it had meanwhile (1 where the clock cannot tell)."""

    seconds: float
    cores: float


@dataclass(eq=False)
class Side:
    """A run, how many make a sample, how many go before it, and the samples so far: each with
    the position of that of the default before it."""

    run: Run
    loops: int
    warm: int = 1
    samples: list[tuple[Sample, int]] = field(default_factory=list)

    @staticmethod
    def of(run: Run) -> Side:
        """A run, which is run a few times to find out."""
        loops, seconds = loops_of(run)
        return Side(run, loops, sum(seconds < most for most in WARM))

    def sample(self) -> Sample:
        """A run, now."""
        for _ in range(self.warm):
            self.run()
        return sample(self.run, self.loops)

    @property
    def wanted(self) -> int:
        """How many samples tell what it takes: more of those that take no time."""
        first, _ = self.samples[0]
        return max(ENOUGH, min(PLENTY, int(LONG / (first.seconds * self.loops))))


class Turns:
    """A default run, and what else is timed in turn with it: in this process, on this machine."""

    def __init__(self, default: Run) -> None:
        self.default = Side.of(default)
        self.known: deque[Sample] = deque(maxlen=MEMORY)
        self.own: list[Sample] = []  # of the default, in the batch
        self.last = -math.inf  # when it was timed

    @property
    def cores(self) -> float:
        """The cores the default has where nothing disturbs it."""
        return float(np.quantile([s.cores for s in self.known], 1 - USUAL))

    @property
    def level(self) -> float:
        """Its seconds then."""
        least = CORES * self.cores
        return float(np.quantile([s.seconds for s in self.known if s.cores >= least], USUAL))

    def mark(self) -> None:
        """Time the default."""
        self.own.append(self.default.sample())
        self.known.append(self.own[-1])
        self.last = time.perf_counter()

    def shares(self, runs: Sequence[Run], best: float = math.inf) -> list[float]:
        """How many times as long as the default each run takes.

        best: the least share so far; what is far above it is timed less well.
        """
        sides = list(map(Side.of, runs))
        self.own, self.last = [], -math.inf
        self.mark()
        active, end = sides, time.perf_counter() + PATIENCE * len(sides)
        for number in count(1):
            self.round(active)
            if number >= FEWEST and time.perf_counter() > end:
                break
            if number in WORTH_ON:
                self.mark()
                found = [self.share(s) for s in sides]
                most = WORTH_ON[number] * min(best, *found)
                active = [s for s, share in zip(sides, found, strict=True) if share <= most]
            if number in WORTH_ON or number % LOOK == 0:
                active = [s for s in active if self.unsure(s)]
            if not active:
                break
        self.mark()
        return [self.share(s) for s in sides]

    def unsure(self, side: Side) -> bool:
        """Whether a run is worth another round."""
        few = len(side.samples) < MOST * side.wanted
        return few and len(self.undisturbed(side)) < side.wanted

    def round(self, sides: Sequence[Side]) -> None:
        """A sample of each, with the default often enough among them."""
        for side in sides:
            if time.perf_counter() - self.last > APART:
                self.mark()
            side.samples.append((side.sample(), len(self.own) - 1))

    def quiet(self) -> list[bool]:
        """Which samples of the default in this batch were undisturbed."""
        least, most = CORES * self.cores, QUIET * self.level
        return [s.cores >= least and s.seconds <= most for s in self.own]

    def undisturbed(self, side: Side) -> list[float]:
        """Seconds of the samples of a side that count."""
        quiet, all_cores = self.quiet(), CORES * self.cores
        own = CORES * _most([s.cores for s, _ in side.samples])
        return [
            s.seconds
            for s, k in side.samples
            if s.cores >= own
            and (s.cores >= all_cores or (quiet[k] and quiet[min(k + 1, len(quiet) - 1)]))
        ]

    def share(self, side: Side) -> float:
        """Of the default's time."""
        good = self.undisturbed(side)
        usual = [s.seconds for s, fine in zip(self.own, self.quiet(), strict=True) if fine]
        if len(good) >= FEWEST and len(usual) >= FEWEST:
            return float(np.quantile(good, 0.25) / np.quantile(usual, 0.25))
        most = min(s.seconds for s, _ in side.samples) / self.level
        last = len(self.own) - 1
        around = [self.own[k].seconds + self.own[min(k + 1, last)].seconds for _, k in side.samples]
        pairs = zip(side.samples, around, strict=True)
        share = float(np.median([2 * s.seconds / both for (s, _), both in pairs]))
        # It takes no longer than it once took, and others can take away no more than all cores but
        # one: then it would have been as long as on a single one.
        return min(max(share, most / max(self.cores, 1.0)), most)

    def race(self, runs: Sequence[Run], seconds: float) -> list[list[float]]:
        """Samples of the default and of other runs, in rounds, for about so many seconds: of the
        rounds in which nobody took a core away from any of them, if there are enough; else of those
        in which the default was not disturbed."""
        sides = [self.default, *map(Side.of, runs)]
        end = time.perf_counter() + seconds
        rounds: list[list[Sample]] = []
        while time.perf_counter() < end or len(rounds) < FEWEST:
            rounds.append([side.sample() for side in sides])
        self.own = [r[0] for r in rounds]
        self.known.extend(self.own)
        most = [CORES * _most([s.cores for s in column]) for column in zip(*rounds, strict=True)]
        whole = [r for r in rounds if all(s.cores >= m for s, m in zip(r, most, strict=True))]
        good = [r for r, fine in zip(rounds, self.quiet(), strict=True) if fine]
        kept = next((some for some in (whole, good) if len(some) >= ENOUGH), rounds)
        return [[s.seconds for s in column] for column in zip(*kept, strict=True)]


def _most(values: Sequence[float]) -> float:
    """The third largest: where threads have no clocks of their own, those of other cores are read
    late, and then too much at a time."""
    return sorted(values)[-3] if len(values) >= 3 else max(values, default=0.0)


def sample(run: Run, loops: int) -> Sample:
    """A run, over so many."""
    busy, start = processor_seconds(), time.perf_counter()
    for _ in range(loops):
        run()
    seconds = time.perf_counter() - start
    cores = 1.0 if COARSE else (processor_seconds() - busy) / seconds
    return Sample(seconds / loops, cores)


def loops_of(run: Run) -> tuple[int, float]:
    """Runs in one sample, and the seconds of one; warms up on the way."""
    loops, each = 1, 0.0
    while loops < 1 << 14:
        each = sample(run, loops).seconds
        if each * loops >= SAMPLE:
            break
        loops = min(int(1.2 * loops * SAMPLE / max(each * loops, 1e-9)) + 1, 10 * loops)
    return loops, each
