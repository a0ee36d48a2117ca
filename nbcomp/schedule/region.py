"""Which part of a buffer a piece of a kernel touches: a box, whose corner moves with outer loops.

The algebra of boxes is enough for the loops people tile: every index is a sum of loop variables
with constant factors, and so has a lowest and a highest value for one iteration of what is around.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Apply,
    Buffer,
    Call,
    Expr,
    For,
    Kernel,
    Load,
    Stmt,
    Store,
    affine,
    bodies,
    exprs_of,
    index_scale,
    map_stmt,
    walk,
)
from nbcomp.types import INT64


@dataclass(frozen=True)
class Access:
    """One read or write of a buffer."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    writes: bool
    adds: bool = False


@dataclass(frozen=True)
class Region:
    """A box of a buffer: its corner in terms of the loops around, its sizes.

    dense: every element of the box is touched.
    """

    start: tuple[Affine, ...]
    size: tuple[int, ...]
    dense: bool

    def same_as(self, other: Region) -> bool:
        """Whether it is the same box."""
        places = [(s.terms, s.constant) for s in self.start]
        return self.size == other.size and places == [(s.terms, s.constant) for s in other.start]


def accesses(body: tuple[Stmt, ...], buffer: Buffer) -> list[Access]:
    """Every access to a buffer's memory, in order.  Raises ScheduleError where it goes by another
    shape or to a library."""
    found: list[Access] = []
    for stmt in walk(body):
        if isinstance(stmt, Call) and any(b.memory == buffer.memory for b in stmt.buffers):
            raise ScheduleError(f"{buffer.name} is passed to {stmt.fn}")
        loads = (e for e in exprs_of(stmt) if isinstance(e, Load))
        found += (Access(e.buffer, e.indices, False) for e in loads)
        if isinstance(stmt, Store | Accumulate):
            adds = isinstance(stmt, Accumulate)
            found.append(Access(stmt.buffer, stmt.indices, True, adds))
    found = [a for a in found if a.buffer.memory == buffer.memory]
    if any(a.buffer != buffer for a in found):
        raise ScheduleError(f"{buffer.name} is also accessed in another shape")
    return found


def extents(kernel: Kernel) -> dict[str, int]:
    """The most iterations each loop has; loops of unknown extent are left out."""
    return {
        s.var: n
        for s in walk(kernel.stages)
        if isinstance(s, For) and (n := upper(s.extent)) is not None
    }


def upper(extent: Expr) -> int | None:
    """The largest value of a loop's extent: a constant, or the smaller of one and something."""
    if isinstance(extent, Apply) and extent.fn == "minimum":
        extent = next((a for a in extent.args if isinstance(a, Affine) and not a.terms), extent)
    return extent.constant if isinstance(extent, Affine) and not extent.terms else None


def settled(body: tuple[Stmt, ...], loop: str, first: int, last: int) -> tuple[Stmt, ...]:
    """Statements in which a loop's variable is first..last: extents that are the smaller of two
    are the one that is the smaller for all of these."""

    def known(extent: Expr) -> Expr:
        if not isinstance(extent, Apply) or extent.fn != "minimum":
            return extent
        one, other = extent.args
        a, b = (_ends(e, loop, first, last) for e in (one, other))
        if a is None or b is None:
            return extent
        if a[1] <= b[0]:
            return one if a[0] < a[1] else affine(a[0])
        if b[1] <= a[0]:
            return other if b[0] < b[1] else affine(b[0])
        return extent

    def inside(stmt: Stmt) -> Stmt:
        made = map_stmt(stmt, lambda e: e, lambda b: b, inside) if bodies(stmt) else stmt
        return replace(made, extent=known(made.extent)) if isinstance(made, For) else made

    return tuple(map(inside, body))


def _ends(index: Expr, loop: str, first: int, last: int) -> tuple[int, int] | None:
    """The lowest and the highest value of an index that nothing else moves."""
    if not isinstance(index, Affine) or any(v != loop for v, _ in index.terms):
        return None
    factor = dict(index.terms).get(loop, 0)
    ends = (index.constant + factor * first, index.constant + factor * last)
    return min(ends), max(ends)


def used(kernel: Kernel, found: For, buffer: Buffer) -> Region:
    """The box of a buffer that an iteration of a loop touches; raises as `region` does, and says
    where the buffer is used if not there."""
    if not accesses(found.body, buffer):
        loops = [s for s in walk(kernel.stages) if isinstance(s, For)]
        there = [s.var for s in loops if accesses(s.body, buffer)]
        raise ScheduleError(
            f"{buffer.name} is not used in {found.var}",
            hint=f"the loops that use it are {', '.join(there)}" if there else "",
        )
    return region(found.body, buffer)


def region(body: tuple[Stmt, ...], buffer: Buffer) -> Region:
    """The box of a buffer that these statements touch.

    Raises ScheduleError where they touch none of it, or where it is not a box.
    """
    found = accesses(body, buffer)
    if not found:
        raise ScheduleError(f"{buffer.name} is not used there")
    reach = {}
    for stmt in walk(body):
        if isinstance(stmt, For):
            reach[stmt.var] = upper(stmt.extent)
    axes = [
        _axis(buffer, k, [a.indices[k] for a in found], reach) for k in range(len(buffer.shape))
    ]
    starts, sizes, dense = zip(*axes, strict=True) if axes else ((), (), ())
    return Region(tuple(starts), tuple(sizes), all(dense))


def _axis(
    buffer: Buffer, axis: int, indices: list[Expr], reach: dict[str, int | None]
) -> tuple[Affine, int, bool]:
    """Start, size and denseness along one axis."""
    outer: set[tuple[tuple[str, int], ...]] = set()
    low, high, dense = [], [], True
    for index in indices:
        if not isinstance(index, Affine):
            raise ScheduleError(f"data says where {buffer.name} is accessed")
        inside = [(factor, reach[v]) for v, factor in index.terms if v in reach]
        if any(n is None for _, n in inside):
            raise ScheduleError(f"the part of {buffer.name} that is used has no constant size")
        steps = [(factor, (n or 1) - 1) for factor, n in inside]
        outer.add(tuple(t for t in index.terms if t[0] not in reach))
        low.append(index.constant + sum(f * n for f, n in steps if f < 0))
        high.append(index.constant + sum(f * n for f, n in steps if f > 0))
        dense = dense and _without_holes(steps)
    if len(outer) != 1:
        raise ScheduleError(f"{buffer.name} is accessed in several places along axis {axis}")
    return Affine(INT64, outer.pop(), min(low)), max(high) - min(low) + 1, dense


def _without_holes(steps: list[tuple[int, int]]) -> bool:
    """Whether Σ factor·(0..n) takes every value between its ends."""
    reach = 1
    for factor, n in sorted((abs(f), n) for f, n in steps):
        if factor > reach:
            return False
        reach += factor * n
    return True


def clipped(kernel: Kernel, buffer: Buffer, box: Region, axis: int) -> Expr:
    """The size of a box along an axis, cut where the buffer ends."""
    size, start = box.size[axis], box.start[axis]
    reach = extents(kernel)
    last = start.constant
    for var, factor in start.terms:
        if factor > 0:
            last += factor * (reach.get(var, 1) - 1)
    if last + size <= buffer.shape[axis]:
        return affine(size)
    left = index_scale(start, -1, buffer.shape[axis])
    return Apply(INT64, "minimum", (affine(size), left))
