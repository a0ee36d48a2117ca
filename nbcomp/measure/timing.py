"""How time is taken: samples of calls, long enough for the clock, of all sides in turn.

Knows how to call functions; it must not know what they are.
"""

from __future__ import annotations

import gc
import itertools
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

Function = Callable[..., Any]
Call = tuple[Function, Sequence[Any], Mapping[str, Any]]

# Seconds one sample should last: far above the clock's resolution and the loop's cost.
SAMPLE = 1e-3
ROUNDS = 3  # turns of each side
REST = 0.12  # seconds between turns, at most: somewhat more than OpenBLAS's threads spin for
NAP = 1e-2  # seconds, after each of which it is seen whether they still do: more than a clock tick
IDLE = 0.25  # of a nap: processor time of threads that do nothing
FEW = 3  # pairs of samples, below which a ratio is not told from 1
DISTURBED = 2.0  # times the shortest sample: a quartile there tells of others on the machine
SURE = 16.0  # times as long: far more than others on the machine make of a run
MOST = 1 << 20  # calls in one sample
DRIFT = 16  # of a function that changes its arguments, before they are restored
COARSE = time.get_clock_info("process_time").resolution > NAP / 50
BUSY = 0.2  # cores other programs may use before a report says that they disturbed


@dataclass(frozen=True)
class Timing:
    """Seconds per call: the median of `samples` samples of `loops` calls each, and quartiles."""

    median: float
    low: float
    high: float
    samples: int
    loops: int


class Neighbours:
    """How many of our cores other programs have kept busy since this was made; 0 when not known.

    From the sums of /proc/stat (proc(5)), in clock ticks; iowait and idle time are not work.  Cores
    this process may not use are taken to be the ones the others use first.
    """

    def __init__(self) -> None:
        self._start, self._busy = time.perf_counter(), self._seconds()

    def cores(self) -> float:
        """The mean number so far."""
        elapsed = max(time.perf_counter() - self._start, 1e-9)
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        elsewhere = (os.cpu_count() or usable) - usable
        return max((self._seconds() - self._busy) / elapsed - elsewhere, 0.0)

    @staticmethod
    def _seconds() -> float:
        try:
            with open("/proc/stat", encoding="ascii") as file:
                user, nice, system, _, _, irq, soft = map(int, file.readline().split()[1:8])
        except (OSError, ValueError):
            return 0.0
        own = os.times()
        ticks = user + nice + system + irq + soft
        return ticks / os.sysconf("SC_CLK_TCK") - own.user - own.system


@contextmanager
def no_collection() -> Iterator[None]:
    """Time without the garbage collector."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _sample(call: Function, args: Sequence[Any], kwargs: Mapping[str, Any], loops: int) -> float:
    """Seconds per call over `loops` calls."""
    turns = itertools.repeat(None, loops)
    start = time.perf_counter()
    if kwargs:
        for _ in turns:
            call(*args, **kwargs)
    else:
        for _ in turns:
            call(*args)
    return (time.perf_counter() - start) / loops


def _loops(call: Call, sample: float, most: int, ready: Callable[[], None]) -> int:
    """How many calls one sample of about `sample` seconds takes, at most; warms up on the way."""
    loops = 1
    while True:
        ready()
        seconds = _sample(*call, loops) * loops
        if seconds >= sample or loops >= most:
            return loops
        guess = int(loops * 1.2 * sample / max(seconds, 1e-9)) + 1
        loops = min(max(guess, 2 * loops), 10 * loops, most)


def _loops_of(
    calls: Sequence[Call], sample: float, restore: Sequence[Callable[[], None]]
) -> list[int]:
    """The same for each of several calls.

    What they write may be what they refuse to be given: then no call follows another before its
    arguments are restored.
    """
    if not restore:
        return [_loops(call, sample, MOST, _nothing) for call in calls]
    pairs = list(zip(calls, restore, strict=True))
    try:
        return [_loops(call, sample, DRIFT, ready) for call, ready in pairs]
    except Exception:
        return [_loops(call, sample, 1, ready) for call, ready in pairs]


def timing_of(samples: Sequence[float], loops: int) -> Timing:
    """The median and the quartiles of samples of so many calls each."""
    low, median, high = np.percentile(samples, [25, 50, 75])
    return Timing(float(median), float(low), float(high), len(samples), loops)


def time_call(call: Callable[[], Any], seconds: float = 0.5) -> Timing:
    """Time a call without arguments for about `seconds`; warm-up excluded."""
    return alternate([(call, (), {})], seconds)[0][0]


def alternate(
    calls: Sequence[Call],
    seconds: float,
    restore: Sequence[Callable[[], None]] = (),
    rounds: int = 0,
    rest: float | None = None,
    shortest: bool = False,
) -> list[tuple[Timing, list[float]]]:
    """Time several calls in turn, so that a busy machine slows all of them alike.

    Each side rests before its turn, until the threads of the other side's libraries have gone to
    sleep: those of OpenBLAS spin for a while after a product, and would take a core away.
    `restore`, one for each call, is run before each of its samples, which then are short.  rounds:
    turns of each side (0: `ROUNDS`); rest: seconds between turns at most, 0 for sides that leave no
    threads behind (None: `REST`).  shortest: of each turn only the shortest sample counts, because
    other programs only ever add.
    Returns for each call its timing and its samples, in the order they were taken.
    """
    samples: list[list[float]] = [[] for _ in calls]
    rounds = rounds or ROUNDS
    rest = (REST if rest is None else rest) if len(calls) > 1 else 0.0
    share = seconds / (rounds * len(calls))  # of a turn, its rest included
    with no_collection():
        loops = _loops_of(calls, min(SAMPLE, seconds / 10), restore)
        before = restore or [_nothing] * len(calls)
        for _ in range(rounds):
            for call, count, taken, ready in zip(calls, loops, samples, before, strict=True):
                end = time.perf_counter() + share
                settle(rest)
                ready()
                _sample(*call, 1)  # wakes this side's own threads
                block = max(end - time.perf_counter(), 2 * SAMPLE)
                turn = list(_block(call, count, block, ready))
                taken.extend([min(turn)] if shortest else turn)
    return [(timing_of(taken, count), taken) for taken, count in zip(samples, loops, strict=True)]


def settle(most: float) -> None:
    """Wait until no thread of this process computes any more, `most` seconds at the longest."""
    end = time.perf_counter() + most
    while time.perf_counter() < end:
        start, used = time.perf_counter(), time.process_time()
        time.sleep(NAP)
        used = time.process_time() - used
        if not COARSE and used < IDLE * (time.perf_counter() - start):
            return


def _nothing() -> None:
    """What is to be restored for a function that changes nothing."""


def _block(
    call: Call,
    loops: int,
    seconds: float,
    ready: Callable[[], None],
) -> Iterator[float]:
    """Samples of one call for about `seconds`, at least one."""
    end = time.perf_counter() + seconds
    while True:
        ready()
        yield _sample(*call, loops)
        if time.perf_counter() >= end:
            return


@contextmanager
def quietly() -> Iterator[None]:
    """Warnings of calls that only measure are not the user's."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@dataclass(frozen=True)
class Ratio:
    """Seconds of one side over those of another: of the medians, and how far that may be off.

    low, high: the quartiles of the ratios sample by sample, and at least up to the ratio itself.
    """

    median: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether the quartiles lie on one side of 1: a difference beyond the spread."""
        return not self.low <= 1.0 <= self.high

    @property
    def faster(self) -> str:
        """How many times as fast the one side is, with the quartiles, in words."""
        return f"{1 / self.median:.2f}× ({1 / self.high:.2f}–{_inverse(self.low)})"


def _inverse(value: float) -> str:
    return f"{1 / value:.2f}" if value else "?"


def ratio(one: Sequence[float], other: Sequence[float]) -> Ratio:
    """The ratio of samples that were taken in turn.

    Samples taken at about the same time are paired; the shorter list repeats its entries.  Where
    those of a side are spread far above its shortest, which others cannot make shorter, the ratio
    of the shortest ones is within the range, too.  Of fewer than `FEW` pairs nothing can be said
    for sure, unless each differs by more than `SURE` times.
    """
    count = max(len(one), len(other))
    pairs = ((one[i * len(one) // count], other[i * len(other) // count]) for i in range(count))
    found = [a / b for a, b in pairs]
    low, high = np.percentile(found, [25, 75])
    middle = float(np.median(one) / np.median(other))
    reach = [float(low), middle, float(high)]
    if any(np.percentile(side, 75) > DISTURBED * min(side) for side in (one, other)):
        reach.append(min(one) / min(other))
    if count < FEW and min(found) <= SURE and max(found) >= 1 / SURE:
        reach.append(1.0)
    return Ratio(middle, min(reach), max(reach))
