"""What a schedule will take, estimated from its loops: enough to leave out what cannot be good.

The work of every loop is counted as in `loop.cost` and divided by the lanes and the cores it runs
on; added are what loops cost in themselves, sums that wait for each other, elements that lie apart,
and registers that do not suffice.  Only ratios matter, and only roughly.  (After Zheng et al.,
"Ansor", OSDI 2020, whose features these are in kind; the constants are this compiler's.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nbcomp.loop import cost
from nbcomp.loop.grammar import (
    Accumulate,
    Call,
    Expr,
    For,
    Kernel,
    Load,
    Stmt,
    Store,
    bodies,
    expressions,
    loads_of,
    steps_of,
    walk,
    walk_expr,
)
from nbcomp.loop.lanes import lanes_of, turned_store
from nbcomp.machine import Machine
from nbcomp.schedule.cores import grain

CYCLE = 0.35e-9  # seconds
LOOP = 2.0  # instructions an iteration takes in itself
LATENCY = 4.0  # cycles until a sum can be added to again
PER_CYCLE = 2.0  # instructions
FUSED = 1.6  # of a multiply-add whose operands are shared by a tile
LIBRARY = 3.0  # times the cycles that a library's multiply-adds would take at the peak
APART = 2.0  # cycles for an element that lies apart from its neighbours
WAKE = 3e-6  # seconds until another core has begun
BYTES = 60e9  # of memory, in a second, at best
LARGEST = 1400  # instructions written out in one kernel: more takes several trials' time


@dataclass(frozen=True)
class Estimate:
    """Seconds of a run, and instructions written out in the code."""

    seconds: float
    size: float

    @property
    def too_large(self) -> bool:
        """Whether compiling it would take more than a trial should."""
        return self.size > LARGEST


def estimate(kernel: Kernel, machine: Machine) -> Estimate:
    """Of a kernel after its schedule.

    What it reads and writes must move at least once, however it is scheduled; that it moves more
    often is not told.
    """
    total, size = 0.0, 0.0
    for stage in kernel.stages:
        found = _Stage(machine)
        seconds = found.statement(stage, 1) * CYCLE
        if isinstance(stage, For) and stage.kind == "parallel" and grain(stage, machine):
            pieces = math.ceil(cost.extent_of(stage) / grain(stage, machine))
            seconds /= pieces / math.ceil(pieces / machine.cores)
            total += WAKE
        total += seconds
        size += found.size
    moved = sum(b.nbytes for b in kernel.buffers if not b.alias and b.role != "local")
    return Estimate(max(total, moved / BYTES), size)


class _Stage:
    """Counts cycles and code of one stage."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.registers = 32 if machine.vector_bytes == 64 else 16
        self.size = 0.0

    def statement(self, stmt: Stmt, copies: int) -> float:
        """Cycles of running a statement once; copies: how often its code is written out."""
        if isinstance(stmt, For):
            return self.loop(stmt, copies)
        inner = sum(self.statement(s, copies) for body in bodies(stmt) for s in body)
        if isinstance(stmt, Call):  # whose cost is two multiply-adds of a lane in a cycle
            lanes = self.machine.vector_bytes / stmt.buffers[0].dtype.itemsize
            return inner + cost.of_stmt(stmt).instructions * LIBRARY / lanes
        own = sum(cost.of_expr(e).instructions for e in expressions(stmt))
        own += isinstance(stmt, Store | Accumulate)
        if isinstance(stmt, Accumulate) and stmt.contract:
            own = FUSED
        self.size += own * copies
        return inner + own / PER_CYCLE

    def loop(self, loop: For, copies: int) -> float:
        """Cycles of a loop, by its kind."""
        n = cost.extent_of(loop)
        if loop.kind == "unroll":
            return n * self.body(loop, copies * n)
        if loop.kind == "serial" and (tile := _tile_in(loop, self.machine)):
            return n * (self.tile(*tile, copies) + LOOP / PER_CYCLE)
        if loop.kind != "vector":
            return n * (self.body(loop, copies) + LOOP / PER_CYCLE)
        lanes = lanes_of(loop, self.machine.vector_bytes)
        vectors = max(math.ceil(n / lanes), 1)
        each = self.body(loop, copies * (loop.unroll + 1)) + lanes * APART * _apart(loop)
        each *= self.pressure(loop)
        waits = LATENCY * _sums(loop) / min(loop.unroll, vectors)
        rounds = math.ceil(vectors / loop.unroll)
        return vectors * max(each, waits) + rounds * LOOP / PER_CYCLE + _tail(n, lanes, loop.unroll)

    def tile(self, height: int, vectors: int, copies: int) -> float:
        """Cycles of a term of all the sums in a register tile: its multiply-adds or its loads,
        whichever are more, no less than until a sum can be added to again."""
        sums = height * vectors
        self.size += (2 * sums + height + vectors) * copies
        spilled = max(sums + vectors + 1 - self.registers, 0)
        return max(sums / PER_CYCLE, (height + vectors + 2 * spilled) / PER_CYCLE, LATENCY)

    def body(self, loop: For, copies: int) -> float:
        return sum(self.statement(s, copies) for s in loop.body)

    def pressure(self, loop: For) -> float:
        """How much longer a body takes whose values do not fit the registers."""
        held = {id(e) for e in loads_of(loop.body)}
        wanted = loop.unroll * (len(held) + 1)
        return 1.0 if wanted <= self.registers else math.sqrt(wanted / self.registers)


def _tile_in(loop: For, machine: Machine) -> tuple[int, int] | None:
    """Rows and vectors of the tile whose sums a loop adds to, if that is all it does."""
    height, vectors, body = 1, 1, loop.body
    while len(body) == 1 and isinstance(body[0], For) and body[0].kind in ("unroll", "vector"):
        inner = body[0]
        if inner.kind == "unroll":
            height *= cost.extent_of(inner)
        else:
            vectors = math.ceil(cost.extent_of(inner) / lanes_of(inner, machine.vector_bytes))
        body = inner.body
    tile = len(body) == 1 and isinstance(body[0], Accumulate) and body[0].contract
    return (height, vectors) if tile and body is not loop.body else None


def _apart(loop: For) -> int:
    """Loads and stores whose lanes do not lie side by side, and are not turned in registers."""
    turned = [turned_store(s) for s in walk(loop.body) if isinstance(s, For)]
    found = sum(steps_of(e).get(loop.var, 0) > 1 for e in loads_of(loop.body))
    for stmt in walk(loop.body):
        if isinstance(stmt, Store) and not any(stmt is s for s in turned):
            place = Load(stmt.buffer.dtype, stmt.buffer, stmt.indices)
            found += steps_of(place).get(loop.var, 0) > 1
    return found


def _sums(loop: For) -> int:
    """Whether something is added up over the lanes' iterations."""
    return int(
        any(
            isinstance(s, Accumulate) and not _depends(s.indices, loop.var) for s in walk(loop.body)
        )
    )


def _depends(indices: tuple[Expr, ...], var: str) -> bool:
    return any(
        var in {v for v, _ in getattr(e, "terms", ())} for i in indices for e in walk_expr(i)
    )


def _tail(n: int, lanes: int, unroll: int) -> float:
    """What is left at the end runs one vector at a time, the last one under a mask."""
    left = n % (lanes * unroll)
    return 1.5 * math.ceil(left / lanes) if left else 0.0
