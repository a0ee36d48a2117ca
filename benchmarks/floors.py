"""How fast a program could be on this machine, by what is measured of the machine in the same run.

Either its multiply-adds decide, at their peak.  Or its memory does: a plain copy of as many bytes,
or a plain sum where next to nothing is written.  Or else the least that any way to compute it must
do, where somebody has written that down (`benchmarks.ten_kernels`).  All are compiled and timed
here, beside what is held against them.  Whichever takes longest is the limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.ten_kernels import Least
from nbcomp.compiled import Compiled
from nbcomp.jitted import jit
from nbcomp.loop.cost import extent_of
from nbcomp.loop.grammar import (
    Accumulate,
    Call,
    For,
    Kernel,
    Stmt,
    bodies,
)
from nbcomp.measure.limits import limits
from nbcomp.measure.roofline import Limits
from nbcomp.measure.timing import time_call
from nbcomp.runtime import pool

READING = 8  # times the bytes written that are read, from which a sum is the measure
SECONDS = 0.4  # of timing a copy or a sum
PROBES = 3  # of the peak, of which the highest counts: what disturbs only lowers it


@dataclass(frozen=True)
class Floor:
    """The least seconds of a call, and by what.

    by: "multiply-adds", "copy", "read", or what the least work is called.
    """

    seconds: float
    by: str


def floor_of(compiled: Compiled, args: Sequence[Any], least: Least | None = None) -> Floor:
    """Of a compiled program on these arguments; least: what it must do in any case."""
    known = limits()
    for _ in range(PROBES - 1):
        known = limits(again=True)
    arithmetic = _arithmetic(compiled, known)
    ways = [arithmetic, _memory(compiled, args)]
    if least is not None:
        own = _seconds(least.function, *least.given(*args), cores=1 if least.times else 0)
        beside = arithmetic.seconds + least.times * own / known.threads
        ways.append(Floor(beside if least.times else own, least.by))
    return max(ways, key=lambda floor: floor.seconds)


def _arithmetic(compiled: Compiled, known: Limits) -> Floor:
    products = sum(2 * multiply_adds(kernel.lowered) for kernel in compiled.kernels)
    peak = max(known.peak(n, "float32") * known.threads / n for n in (1, known.threads))
    return Floor(products / peak, "multiply-adds")


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
        return Floor(_seconds(lambda x: x.sum(), _array(read)), "read")
    return Floor(_seconds(lambda x: -x, _array((read + written) // 2)), "copy")


def _array(size: int) -> Any:
    """Of so many bytes."""
    rows = max(size // 4096, 1)
    return np.ones((rows, size // rows // 4), np.float32)


def _seconds(function: Callable[..., Any], *args: Any, cores: int = 0) -> float:
    """Of a function, compiled: the least, since what disturbs only adds; cores: all for 0."""
    entry, usual = jit(function).compile(*args).entry, pool.threads()
    pool.set_threads(cores or usual)
    try:
        return min(time_call(lambda: entry(*args), SECONDS / 8).low for _ in range(8))
    finally:
        pool.set_threads(usual)
