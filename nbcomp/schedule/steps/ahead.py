"""Work for later iterations done earlier: what is read is asked for before it is needed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import (
    Affine,
    Buffer,
    For,
    Kernel,
    Prefetch,
    Stmt,
    affine,
    index_add,
    loop_var,
)
from nbcomp.schedule.region import Region, region
from nbcomp.schedule.rewriting import at, mentions, substitute
from nbcomp.schedule.steps.memory import LINE, buffer_named

LINES = 16  # cache lines one iteration may ask for: as many misses as a core keeps in flight


def prefetch(kernel: Kernel, buffer: str, loop: str, ahead: int) -> Kernel:
    """`for k: S(b[k, ...])`  ->  `for k: (prefetch b[k + d, ...]; S(b[k, ...]))`, d ahead

    Asks the caches for what the iteration `ahead` iterations later reads of a buffer, line by line.
    It changes no value: beyond the end of the buffer nothing is fetched.
    """
    whole = buffer_named(kernel, buffer)
    if whole.role == "local":
        raise ScheduleError(f"{buffer} is the kernel's own memory, which is in the cache already")
    if ahead < 1:
        raise ScheduleError(f"{buffer} can be fetched 1 or more iterations ahead, not {ahead}")

    def change(found: For) -> Stmt:
        if found.kind in ("vector", "unroll"):
            how = "lanes of a vector" if found.kind == "vector" else "written out"
            raise ScheduleError(f"the iterations of {loop} are {how}: take a loop around it")
        box = region(found.body, whole)
        if not any(mentions(start, loop) for start in box.start):
            raise ScheduleError(f"every iteration of {loop} reads the same part of {buffer}")
        later = {loop: index_add(loop_var(loop), affine(ahead))}
        steps = _steps(box, whole)
        count = math.prod(-(-n // step) for n, step in zip(box.size, steps, strict=True))
        if count > LINES:
            raise ScheduleError(
                f"one iteration of {loop} reads {count} cache lines of {buffer}:"
                f" more than {LINES} cannot be on their way at once"
            )
        asked = tuple(Prefetch(whole, place, found.location) for place in _lines(box, steps))
        return replace(found, body=(*substitute(asked, later), *found.body))

    return at(kernel, loop, change)


def _steps(box: Region, buffer: Buffer) -> list[int]:
    """How many elements along each axis share a cache line."""
    steps = [1] * len(box.size)
    if buffer.strides[-1:] == (1,):
        steps[-1] = max(LINE // buffer.dtype.itemsize, 1)
    return steps


def _lines(box: Region, steps: list[int]) -> Iterator[tuple[Affine, ...]]:
    """An element of each cache line of a box, as far as that is known."""
    along = (range(0, size, step) for size, step in zip(box.size, steps, strict=True))
    for place in itertools.product(*along):
        pairs = zip(box.start, place, strict=True)
        yield tuple(replace(start, constant=start.constant + offset) for start, offset in pairs)
