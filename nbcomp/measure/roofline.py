"""Kernels against the machine's limits, as plain data: the roofline model.

S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
multicore architectures", CACM 52(4), 2009.  A kernel can run no faster than its operations at the
multiply-add peak, nor than the bytes it must move at the bandwidth of where they come from.  Knows
numbers; it must not know how they were taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nbcomp.measure.timing import Timing

LEVELS = ("L1", "L2", "L3", "memory")


@dataclass(frozen=True)
class Peak:
    """Operations per second on so many threads; a multiply-add is two."""

    threads: int
    dtype: str
    value: float


@dataclass(frozen=True)
class Bandwidth:
    """Bytes per second on so many threads, read from a level of the memory hierarchy.

    level: one of `LEVELS`; or "copy" and "stream", copies beyond the caches with ordinary stores
    and with such that go past them, which count the bytes read and those written.
    """

    threads: int
    level: str
    value: float


@dataclass(frozen=True)
class Limits:
    """What this machine can do, measured.

    fork: seconds that spreading work over all threads adds.  capacities: bytes of each cache.
    seconds: how long measuring took.  others: the cores other programs kept busy meanwhile.
    """

    name: str
    threads: int
    peaks: tuple[Peak, ...]
    bandwidths: tuple[Bandwidth, ...]
    fork: float
    capacities: tuple[tuple[str, int], ...]
    seconds: float
    others: float = 0.0

    def peak(self, threads: int, dtype: str) -> float:
        """Operations per second; in between two measured numbers of threads, the smaller one's."""
        found = [p for p in self.peaks if p.dtype == dtype and p.threads <= threads]
        return max(found, key=lambda p: p.threads).value

    def bandwidth(self, threads: int, level: str) -> float:
        """Bytes per second from a level; from memory, of the fastest way to move them."""
        names = ("memory", "stream") if level == "memory" else (level,)
        found = [b for b in self.bandwidths if b.level in names and b.threads <= threads]
        most = max(b.threads for b in found)
        return max(b.value for b in found if b.threads == most)

    def level_of(self, size: float, threads: int) -> str:
        """The first level that holds `size` bytes; each thread has an L1 and an L2 of its own."""
        for level, capacity in self.capacities:
            if size <= capacity * (1 if level == "L3" else threads):
                return level
        return "memory"


@dataclass(frozen=True)
class KernelFigures:
    """One kernel, measured: what it does, how long it takes, and how near a limit that is.

    All numbers are of its `calls` together.

    operations: arithmetic on one dtype, counted in the loops: 1 for each of + − × ÷ √, minimum,
    maximum, comparison and the like; 2 for a multiply-add of a matrix product; for an elementary
    function (exp, log, sin, …) as many as its vector code has instructions
    (`nbcomp.loop.cost.INSTRUCTIONS`).  traffic: bytes that must move, each element of a buffer once
    however often it is used, by the level where they were last.  overhead: seconds of starting its
    stages.  together: products an instruction adds up in the place of one multiply-add.
    """

    kernel: str
    timing: Timing
    threads: int
    dtype: str
    operations: float
    traffic: tuple[tuple[str, float], ...]
    overhead: float
    limits: Limits
    calls: int = 1
    together: int = 1

    @property
    def bytes(self) -> float:
        """All bytes that must move."""
        return sum(size for _, size in self.traffic)

    @property
    def intensity(self) -> float:
        """Operations per byte; inf where nothing moves."""
        return self.operations / self.bytes if self.bytes else float("inf")

    @property
    def flops_per_second(self) -> float:
        """Operations per second."""
        return self.operations / self.timing.median

    @property
    def bounds(self) -> dict[str, float]:
        """The least seconds by each limit: "compute", each level, "overhead"."""
        peak = self.limits.peak(self.threads, self.dtype) * self.together
        times = {"compute": self.operations / peak}
        for level, size in self.traffic:
            times[level] = size / self.limits.bandwidth(self.threads, level)
        return times | {"overhead": self.overhead}

    @property
    def level(self) -> str:
        """The level whose traffic takes longest; empty where nothing moves."""
        times = {level: self.bounds[level] for level, _ in self.traffic}
        return max(times, key=times.__getitem__, default="")

    @property
    def bound(self) -> str:
        """What limits it: "compute", "L1", "L2", "L3", "memory" or "overhead"."""
        return max(self.bounds, key=self.bounds.__getitem__)

    @property
    def of_limit(self) -> float:
        """The least seconds by that limit over those it takes: 1 at the limit."""
        return max(self.bounds.values()) / self.timing.median


@dataclass(frozen=True)
class Held:
    """A buffer of the program: the bytes, where it lies, the first and last step that touch it.

    offset: in the arena, None for memory of its own.  Steps are numbered from 0.
    """

    name: str
    bytes: int
    offset: int | None
    first: int
    last: int
    role: Literal["input", "constant", "output", "temp"]


@dataclass(frozen=True)
class Memory:
    """The memory plan: what a call holds at once, and every buffer over the steps.

    peak: bytes of inputs, constants and outputs, and the arena.  arena: bytes of values that live
    between steps.  apart: what the arena would take if none of them shared memory.
    """

    peak: int
    arena: int
    apart: int
    buffers: tuple[Held, ...]
    steps: tuple[str, ...]


@dataclass(frozen=True)
class LineCost:
    """The share of the kernels' time that a line of the user's source has: 0 to 1."""

    file: str
    line: int
    share: float


@dataclass(frozen=True)
class Numbers:
    """A compiled program in numbers, on the arguments it was measured with.

    kernels: what was compiled; libraries: the steps that NumPy runs, each with its name.  lines:
    from the most costly down.  others: the cores other programs kept busy meanwhile.
    """

    limits: Limits
    kernels: tuple[KernelFigures, ...]
    memory: Memory
    lines: tuple[LineCost, ...]
    libraries: tuple[tuple[str, Timing], ...] = ()
    others: float = 0.0
