"""What a learned model is told of a kernel after its schedule: numbers, the same for all of them.

Counted over all its loops: how often vectors are loaded, stored and computed, how often a loop goes
round, bytes that each cache must be given (by what fits in it of the loops inside), elements that
lie apart, code written out; and of the loop where the most is done: its lanes, vectors in flight,
sums, and the rounds around it.  (In kind those of Zheng et al., "Ansor", OSDI 2020, appendix B.)
Knows loops and the machine; it must not know decisions or times.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from nbcomp.loop import cost
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Alloc,
    Buffer,
    Call,
    Expr,
    For,
    Kernel,
    Load,
    Prefetch,
    Stmt,
    Store,
    bodies,
    expressions,
    exprs_of,
)
from nbcomp.loop.lanes import lanes_of, turned_store
from nbcomp.machine import Machine
from nbcomp.schedule.cores import grain
from nbcomp.tuning.analytic import Estimate, estimate

LINE = 64  # bytes of a cache line

NAMES = (
    "estimated seconds",
    "code",
    "loads",
    "loads apart",
    "broadcasts",
    "stores",
    "stores apart",
    "operations",
    "rounds",
    "bytes into the first cache",
    "bytes into the second cache",
    "bytes from memory",
    "local bytes",
    "loops",
    "pieces of a core",
    "imbalance",
    "work outside of cores",
    "library",
    "prefetches",
    "past the caches",
    "lanes of the hottest loop",
    "vectors of the hottest loop",
    "sums of the hottest loop",
    "extent of the hottest loop",
    "rounds around the hottest loop",
    "masked share of the hottest loop",
    "footprint of the hottest loop",
)


@dataclass
class _Access:
    """A place that is read or written: how far it moves with each loop, in elements."""

    buffer: Buffer
    steps: dict[str, int]
    write: bool


@dataclass
class _Loop:
    """A loop and those around it; what it touches is known when all is walked."""

    loop: For
    around: tuple[_Loop, ...]
    extent: float
    inside: dict[str, float] = field(default_factory=dict)  # extents of it and of those in it
    accesses: list[_Access] = field(default_factory=list)  # in it, however deep
    own: list[_Access] = field(default_factory=list)  # in it and no inner loop
    operations: float = 0.0  # all that is done in it, in vectors

    @property
    def times(self) -> float:
        """How often the loop is begun."""
        return math.prod(a.extent for a in self.around)

    @cached_property
    def footprint(self) -> float:
        """Bytes of the lines that it touches from its beginning to its end."""
        touched: dict[tuple[str, tuple[tuple[str, int], ...]], float] = {}
        for access in self.accesses:
            steps = {v: abs(s) for v, s in access.steps.items() if s and v in self.inside}
            size = access.buffer.dtype.itemsize
            width = min(min(steps.values(), default=1) * size, LINE)
            elements = math.prod(self.inside[v] for v in steps)
            most = max(float(access.buffer.nbytes), LINE)
            key = (access.buffer.memory, tuple(sorted(steps.items())))
            touched[key] = min(elements * width, most)
        return sum(touched.values())


def features_of(
    kernel: Kernel, machine: Machine, known: Estimate | None = None
) -> dict[str, float]:
    """A number for each of `NAMES`, most as logarithms; known: the estimate, if there is one."""
    numbers = _Counted(kernel, machine, known or estimate(kernel, machine)).numbers()
    return dict(zip(NAMES, numbers, strict=True))


class _Counted:
    """One walk over a kernel, and what is counted on it."""

    def __init__(self, kernel: Kernel, machine: Machine, known: Estimate) -> None:
        self.kernel, self.machine, self.known = kernel, machine, known
        self.loops: list[_Loop] = []
        self.loads = self.loads_apart = self.broadcasts = 0.0
        self.stores = self.stores_apart = self.operations = self.rounds = 0.0
        self.local = self.calls = self.prefetches = self.streamed = 0.0
        for stage in kernel.stages:
            self.statement(stage, ())

    # ------------------------------------------------------------------------------- counting

    def statement(self, stmt: Stmt, around: tuple[_Loop, ...]) -> None:
        """A statement inside of these loops."""
        if isinstance(stmt, For):
            loop = _Loop(stmt, around, max(float(cost.extent_of(stmt)), 1.0))
            self.loops.append(loop)
            for a in (*around, loop):
                a.inside[stmt.var] = loop.extent
            self.rounds += loop.times * loop.extent / self.per_round(loop)
            around = (*around, loop)
        else:
            self.simple(stmt, around)
        for body in bodies(stmt):
            for inner in body:
                self.statement(inner, around)

    def per_round(self, loop: _Loop) -> float:
        """Iterations in a round of the loop as machine code; all, where it is written out."""
        if loop.loop.kind == "unroll":
            return loop.extent
        if loop.loop.kind == "vector":
            lanes = lanes_of(loop.loop, self.machine.vector_bytes) * loop.loop.unroll
            return min(float(lanes), loop.extent)
        return 1.0

    def simple(self, stmt: Stmt, around: tuple[_Loop, ...]) -> None:
        """A statement that has no others in it."""
        times = math.prod(a.extent for a in around)
        vectors = times / math.prod(
            lanes_of(a.loop, self.machine.vector_bytes) for a in around if a.loop.kind == "vector"
        )
        if isinstance(stmt, Alloc):
            self.local += stmt.buffer.nbytes
        elif isinstance(stmt, Call):
            self.calls += times * cost.of_stmt(stmt).instructions
        elif isinstance(stmt, Prefetch):
            self.prefetches += times
        elif isinstance(stmt, Store) and stmt.streaming:
            self.streamed += times
        each = sum(cost.of_expr(e).instructions for e in expressions(stmt))
        each += isinstance(stmt, Accumulate)
        self.operations += each * vectors
        for a in around:
            a.operations += each * vectors
        turned = bool(around) and turned_store(around[-1].loop) is stmt
        for access in _accesses(stmt):
            self.access(access, around, times, vectors, turned)

    def access(
        self,
        access: _Access,
        around: tuple[_Loop, ...],
        times: float,
        vectors: float,
        turned: bool,
    ) -> None:
        """A place that is read or written so often; turned: in registers, before it is written."""
        if around:
            around[-1].own.append(access)
        for a in around:
            a.accesses.append(access)
        lanes = [a.loop.var for a in around if a.loop.kind == "vector"]
        step = abs(access.steps.get(lanes[-1], 0)) if lanes else 0
        apart = times if step > 1 and not (turned and access.write) else 0.0
        if access.write:
            self.stores += vectors
            self.stores_apart += apart
        else:
            self.loads += vectors
            self.loads_apart += apart
            self.broadcasts += vectors if lanes and not step else 0.0

    # ---------------------------------------------------------------------------- what is told

    def numbers(self) -> list[float]:
        """A number for each name."""
        machine = self.machine
        l1, l2, l3 = (self.moved(size) for size in (machine.l1, machine.l2, machine.l3))
        logs = (
            *(self.known.seconds * 1e9, self.known.size),
            *(self.loads, self.loads_apart, self.broadcasts, self.stores, self.stores_apart),
            *(self.operations, self.rounds, l1, l2, l3, self.local),
        )
        return [
            *map(_log, logs),
            float(len(self.loops)),
            *self.parallel(),
            _log(self.calls),
            _log(self.prefetches),
            _log(self.streamed),
            *self.hottest(),
        ]

    def moved(self, size: int) -> float:
        """Bytes that a cache of this size must be given: of the outermost loops whose data fit in
        it, all that they touch, each time they begin."""
        total = 0.0
        for loop in self.loops:
            fits = loop.footprint <= size
            if fits and not (loop.around and loop.around[-1].footprint <= size):
                total += loop.times * loop.footprint
            elif not fits:
                total += loop.times * loop.extent * sum(_moved(a, loop) for a in loop.own)
        return total

    def parallel(self) -> tuple[float, float, float]:
        """Pieces each core gets, how unequal its share is, and the share of work not spread."""
        pieces, worst, outside = 0.0, 1.0, 0.0
        for loop in self.loops:
            if loop.around:
                continue
            size = grain(loop.loop, self.machine) if loop.loop.kind == "parallel" else 0
            if not size:
                outside += loop.operations
                continue
            count = math.ceil(loop.extent / size)
            pieces = max(pieces, count / self.machine.cores)
            worst = max(worst, math.ceil(count / self.machine.cores) * self.machine.cores / count)
        return _log(pieces), worst, outside / max(self.operations, 1.0)

    def hottest(self) -> tuple[float, ...]:
        """Of the innermost vector loop, or else loop, in which the most is done."""
        inner = [a for a in self.loops if a.own]
        if not inner:
            return (0.0,) * 7
        hot = max(inner, key=lambda a: (a.operations, a.loop.kind == "vector"))
        lanes = lanes_of(hot.loop, self.machine.vector_bytes) if hot.loop.kind == "vector" else 1
        copies = math.prod(a.extent for a in hot.around if a.loop.kind == "unroll")
        vectors = max(hot.loop.unroll, 1) * copies
        sums = sum(isinstance(s, Accumulate) for s in hot.loop.body)
        rest = hot.extent % (lanes * max(hot.loop.unroll, 1))
        around = next((a for a in reversed(hot.around) if a.loop.kind == "serial"), None)
        return (
            float(lanes),
            float(vectors),
            float(sums * vectors),
            _log(hot.extent),
            _log(around.extent if around else 1.0),
            rest / hot.extent,
            _log(hot.footprint),
        )


def _moved(access: _Access, loop: _Loop) -> int:
    """Bytes that a place brings along in an iteration of a loop."""
    return min(abs(access.steps.get(loop.loop.var, 0)) * access.buffer.dtype.itemsize, LINE)


def _accesses(stmt: Stmt) -> Iterator[_Access]:
    """What a statement reads and writes."""
    for e in exprs_of(stmt):
        if isinstance(e, Load):
            yield _Access(e.buffer, _steps(e.buffer, e.indices), False)
    if isinstance(stmt, Store | Accumulate):
        yield _Access(stmt.buffer, _steps(stmt.buffer, stmt.indices), True)


def _steps(buffer: Buffer, indices: tuple[Expr, ...]) -> dict[str, int]:
    """How far a place moves with each loop, in elements."""
    steps: dict[str, int] = {}
    for index, stride in zip(indices, buffer.strides, strict=True):
        for var, factor in index.terms if isinstance(index, Affine) else ():
            steps[var] = steps.get(var, 0) + factor * stride
    return steps


def _log(value: float) -> float:
    return math.log2(1.0 + value)
