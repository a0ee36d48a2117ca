"""How fast a program could be on this machine, by what is measured of the machine in the same run.

Either its arithmetic decides: multiply-adds at their peak, all other vector instructions as many
in a second as multiply-adds.  Or its divisions and square roots do, for which a core has one slow
unit: as many as are done in a chain of divisions.  Or its memory does: a plain copy of as many
bytes, or a plain sum where next to nothing is written.  Chain, copy and sum are compiled and timed
here.  Whichever takes longest is the limit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from nbcomp.compiled import Compiled
from nbcomp.jitted import jit
from nbcomp.loop.cost import extent_of
from nbcomp.loop.grammar import (
    Accumulate,
    Apply,
    Call,
    For,
    Kernel,
    Stmt,
    bodies,
    expressions,
    walk_expr,
)
from nbcomp.loop.work import work_of
from nbcomp.measure.limits import limits
from nbcomp.measure.roofline import Limits
from nbcomp.measure.timing import time_call

READING = 8  # times the bytes written that are read, from which a sum is the measure
SECONDS = 0.4  # of timing a copy or a sum
CHAIN = 8  # divisions of an element, so that moving it takes no time beside them
CALLS = 1000  # of the chain, of which the shortest counts
DIVIDING = ("divide", "sqrt")
PROBES = 3  # of the peak, of which the highest counts: what disturbs only lowers it


@dataclass(frozen=True)
class Floor:
    """The least seconds of a call, and by what.

    by: "multiply-adds", "arithmetic", "division", "copy" or "read".
    """

    seconds: float
    by: str


def floor_of(compiled: Compiled, args: Sequence[Any]) -> Floor:
    """Of a compiled program on these arguments."""
    known = limits()
    for _ in range(PROBES - 1):
        known = limits(again=True)
    ways = _arithmetic(compiled, known), _division(compiled), _memory(compiled, args)
    return max(ways, key=lambda floor: floor.seconds)


def _arithmetic(compiled: Compiled, known: Limits) -> Floor:
    products, others = 0.0, 0.0
    for kernel in compiled.kernels:
        fused = 2 * multiply_adds(kernel.lowered)
        products += fused
        others += sum(work_of(kernel.lowered).operations.values()) - fused
    peak = max(known.peak(n, "float32") * known.threads / n for n in (1, known.threads))
    by = "multiply-adds" if products > 2 * others else "arithmetic"
    return Floor(products / peak + others / (peak / 2), by)


def _division(compiled: Compiled) -> Floor:
    count = sum(_divisions(s, 1.0) for k in compiled.kernels for s in k.lowered.stages)
    return Floor(count / _divided_per_second() if count else 0.0, "division")


def _divisions(stmt: Stmt, times: float) -> float:
    if isinstance(stmt, For):
        times *= extent_of(stmt)
    own = [e for root in expressions(stmt) for e in walk_expr(root) if isinstance(e, Apply)]
    count = times * sum(e.fn in DIVIDING for e in own)
    return count + sum(_divisions(s, times) for body in bodies(stmt) for s in body)


@cache
def _divided_per_second() -> float:
    """Elements of float32, by all cores."""

    def chain(x: Any, by: Any) -> Any:
        for _ in range(CHAIN):
            x = x / by
        return x

    x, by = np.ones((512, 512), np.float32), np.full((512, 1), 1.01, np.float32)
    entry = jit(chain).compile(x, by).entry
    least = math.inf
    for _ in range(CALLS):
        start = time.perf_counter()
        entry(x, by)
        least = min(least, time.perf_counter() - start)
    return CHAIN * x.size / least


def multiply_adds(kernel: Kernel) -> float:
    """Of all matrix products in a kernel, written as loops or called."""
    return sum(_multiply_adds(stage, 1.0) for stage in kernel.stages)


def _multiply_adds(stmt: Stmt, times: float) -> float:
    if isinstance(stmt, For):
        times *= extent_of(stmt)
    if isinstance(stmt, Accumulate):
        return times if stmt.contract else 0.0
    if isinstance(stmt, Call):
        out, left, _ = stmt.buffers
        return times * math.prod(out.shape[-2:]) * left.shape[-1]
    return sum(_multiply_adds(s, times) for body in bodies(stmt) for s in body)


def _memory(compiled: Compiled, args: Sequence[Any]) -> Floor:
    read = sum(a.nbytes for a in args)
    written = np.asarray(compiled(*args)).nbytes
    if read > READING * written:
        return Floor(_seconds(lambda x: x.sum(), read), "read")
    return Floor(_seconds(lambda x: -x, (read + written) // 2), "copy")


def _seconds(function: Callable[[Any], Any], size: int) -> float:
    """Of a function of so many bytes of float32: the least, since what disturbs only adds."""
    rows = max(size // 4096, 1)
    x = np.ones((rows, size // rows // 4), np.float32)
    entry = jit(function).compile(x).entry
    return min(time_call(lambda: entry(x), SECONDS / 8).low for _ in range(8))
