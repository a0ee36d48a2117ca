"""How time is taken: warm up, then samples of calls that are long enough for the clock."""

from __future__ import annotations

import gc
from collections.abc import Callable
from statistics import median, quantiles
from time import perf_counter
from typing import Any

SAMPLE = 200e-6  # seconds; the clock's own cost (about 50 ns) vanishes in it
WARM_UP = 0.03  # seconds


def samples(call: Callable[[], Any], budget: float) -> list[float]:
    """Seconds per call, one value per sample, for about `budget` seconds; three at least."""
    each = _warm_up(call)
    number = max(1, round(SAMPLE / each))
    taken: list[float] = []
    collecting = gc.isenabled()
    gc.disable()
    try:
        end = perf_counter() + budget
        while len(taken) < 3 or perf_counter() < end:
            taken.append(_timed(call, number) / number)
    finally:
        if collecting:
            gc.enable()
    return taken


def _warm_up(call: Callable[[], Any]) -> float:
    """Call for `WARM_UP` seconds (at least twice); seconds per call."""
    start, count = perf_counter(), 0
    while count < 2 or perf_counter() - start < WARM_UP:
        call()
        count += 1
    return (perf_counter() - start) / count


def _timed(call: Callable[[], Any], number: int) -> float:
    steps = range(number)
    start = perf_counter()
    for _ in steps:
        call()
    return perf_counter() - start


def summary(values: list[float]) -> dict[str, float]:
    """Median, first and ninth decile, and how many samples."""
    low, high = (values[0],) * 2
    if len(values) > 1:
        deciles = quantiles(values, n=10, method="inclusive")
        low, high = deciles[0], deciles[-1]
    return {"median": median(values), "low": low, "high": high, "samples": len(values)}
