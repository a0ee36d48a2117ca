"""Whether the iterations of a loop may run in any order: what one writes, no other may touch.

Conservative: indices that are not affine count as anywhere.  The test per buffer is that along one
axis (or in memory) an iteration moves further than the accesses of a single iteration reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from nbcomp.errors import ScheduleError
from nbcomp.loop.cost import extent_of
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Alloc,
    Buffer,
    Call,
    Expr,
    For,
    If,
    Let,
    Load,
    Stmt,
    Store,
    While,
    affine,
    bodies,
    children,
    exprs_of,
    index_add,
    index_scale,
    variables,
    walk,
    walk_expr,
)
from nbcomp.loop.printer import print_expr
from nbcomp.sizes import Size

ANYWHERE = 1 << 62
WORDS = 4  # accesses that a refusal names


@dataclass(frozen=True)
class _Access:
    """One access to a buffer.

    fn: the function of an accumulation, "" for a store, None for a load.  spread: how many elements
    from the index on it touches, per axis; () is one.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    fn: str | None
    spread: tuple[int, ...] = ()

    def __str__(self) -> str:
        place = ", ".join(map(print_expr, self.indices))
        how = "read" if self.fn is None else "added to" if self.fn else "written"
        return f"{self.buffer.name}[{place}] is {how}"


def conflict(loop: For, sums: bool = True) -> ScheduleError | None:
    """What keeps the iterations of a loop from running in any order, to be raised; None if nothing
    does.

    sums: an accumulation may be reordered and split, as long as nobody reads it in the loop.
    """
    for found, added in _shared(loop):
        if added and sums:
            continue
        how = "add to the same elements of" if added else "are not independent: they share"
        which = ", ".join(dict.fromkeys(map(str, found[:WORDS])))
        return ScheduleError(
            f"iterations of {loop.var} {how} {found[0].buffer.name} ({which})",
            hint=_independent(loop, sums),
        )
    return None


def _shared(loop: For) -> Iterator[tuple[list[_Access], bool]]:
    """The accesses to each buffer that iterations share, and whether all of them add to it."""
    own = {s.buffer.memory for s in walk(loop.body) if isinstance(s, Alloc)}
    accesses: dict[str, list[_Access]] = {}
    for stmt in walk(loop.body):
        for access in _accesses(stmt):
            if access.buffer.memory not in own:
                accesses.setdefault(access.buffer.memory, []).append(access)
    reach = {s.var: _most(s) for s in walk(loop.body) if isinstance(s, For)}
    for every in accesses.values():
        found = _meeting(every, {loop.var, *reach})
        if all(a.fn is None for a in found) or _apart(found, loop.var, reach):
            continue
        fn = found[0].fn
        yield found, bool(fn) and all(a.fn == fn for a in found)


def _independent(loop: For, sums: bool) -> str:
    """Which of the loops inside may run in any order instead, in words."""
    inside = [s for s in walk(loop.body) if isinstance(s, For)]
    free = [s.var for s in inside if all(added and sums for _, added in _shared(s))]
    return f"the iterations of {', '.join(free)} may run in any order" if free else ""


def _most(loop: For) -> int:
    """How far a loop's variable may get."""
    known = isinstance(loop.extent, Affine) or getattr(loop.extent, "fn", "") == "minimum"
    bound = any(
        isinstance(e, Affine) and not e.terms for e in (loop.extent, *children(loop.extent))
    )
    if not known or not bound:
        return ANYWHERE
    last = extent_of(loop) - 1
    return last if isinstance(last, Size) else max(last, 0)  # an open loop may be empty


def read_first(stmts: tuple[Stmt, ...], memory: str) -> bool:
    """Whether every element of a memory that is read has not been written before.

    Then what is read there is what was there at first, and the memory may be that of the input.
    """
    reads: list[_Placed] = []
    writes: list[_Placed] = []
    for place in _placed(stmts, memory):
        (reads if place.access.fn is None else writes).append(place)
    if any(w.access.fn or w.access.spread for w in writes):  # added to, or written by a routine
        return not reads
    return not any(_seen(read, write) for read in reads for write in writes)


@dataclass(frozen=True)
class _Placed:
    """An access, the loops around it, and its statement's number in the program's order."""

    access: _Access
    loops: tuple[For, ...]
    number: int


def _placed(stmts: tuple[Stmt, ...], memory: str) -> Iterator[_Placed]:
    """All accesses to a memory."""
    numbers = count()

    def inside(body: tuple[Stmt, ...], loops: tuple[For, ...]) -> Iterator[_Placed]:
        for stmt in body:
            number = next(numbers)
            for access in _accesses(stmt):
                if access.buffer.memory == memory:
                    yield _Placed(access, loops, number)
            for within in bodies(stmt):
                yield from inside(within, (*loops, stmt) if isinstance(stmt, For) else loops)

    return inside(stmts, ())


def _seen(read: _Placed, write: _Placed) -> bool:
    """Whether a read may come after a write of the same element."""
    if read.number > write.number:
        return True
    for loop, other in zip(read.loops, write.loops, strict=False):
        if loop is not other:
            return False
        reach = {s.var: _most(s) for s in walk(loop.body) if isinstance(s, For)}
        if not _apart((read.access, write.access), loop.var, reach):
            return True
    return False


def parting(loop: For) -> str:
    """What would run differently from lane to lane of a vector loop; empty if nothing."""
    varying = {loop.var}
    own = {s.buffer.memory for s in walk(loop.body) if isinstance(s, Alloc)}
    for stmt in walk(loop.body):
        if isinstance(stmt, Let) and _varies(stmt.value, varying, own):
            varying.add(stmt.name)
        if isinstance(stmt, For) and _varies(stmt.extent, varying, own):
            return f"the extent of {stmt.var}"
        if isinstance(stmt, If | While) and _varies(stmt.condition, varying, own):
            return "a condition"
    return ""


def _varies(expr: Expr, varying: set[str], own: set[str]) -> bool:
    local = any(isinstance(e, Load) and e.buffer.memory in own for e in walk_expr(expr))
    return local or bool(variables(expr) & varying)


def _accesses(stmt: Stmt) -> list[_Access]:
    """What a statement itself reads and writes."""
    found = [_Access(e.buffer, e.indices, None) for e in exprs_of(stmt) if isinstance(e, Load)]
    if isinstance(stmt, Store):
        found.append(_Access(stmt.buffer, stmt.indices, ""))
    elif isinstance(stmt, Accumulate):
        found.append(_Access(stmt.buffer, stmt.indices, stmt.fn))
    elif isinstance(stmt, Call):
        out, *operands = stmt.buffers
        found.append(_written_by(stmt, out))
        found += (_part(b, at, None) for b, at in zip(operands, stmt.at[1:], strict=True))
    return found


def _part(buffer: Buffer, at: tuple[Expr, ...], fn: str | None) -> _Access:
    """All of a buffer from its leading indices on."""
    rest = buffer.shape[len(at) :]
    spread = (*(1 for _ in at), *rest)
    return _Access(buffer, (*at, *(affine(0) for _ in rest)), fn, spread)


def _written_by(call: Call, out: Buffer) -> _Access:
    whole = _part(out, call.at[0], "")
    if not call.box:
        return whole
    starts = tuple(start for start, _ in call.box)
    counts = tuple(extent_of(For("", count, ())) for _, count in call.box)
    return _Access(out, (*whole.indices[:-2], *starts), "", (*whole.spread[:-2], *counts))


def _meeting(accesses: list[_Access], moving: set[str]) -> list[_Access]:
    """The accesses of a buffer without those that read where no iteration writes: what an earlier
    round of a loop around this one has left.

    moving: the variables of the loop and of those inside.
    """
    writes = [a for a in accesses if a.fn is not None]

    def elsewhere(read: _Access) -> bool:
        return all(_differ(read, write, moving) for write in writes)

    return [a for a in accesses if a.fn is not None or not elsewhere(a)]


def _differ(one: _Access, other: _Access, moving: set[str]) -> bool:
    """Whether the places differ along an axis by what no iteration changes."""
    if one.spread or other.spread or one.buffer.shape != other.buffer.shape:
        return False
    for a, b in zip(one.indices, other.indices, strict=True):
        if not isinstance(a, Affine) or not isinstance(b, Affine) or a.terms != b.terms:
            continue
        if a.constant != b.constant and moving.isdisjoint(v for v, _ in a.terms):
            return True
    return False


def _apart(accesses: Sequence[_Access], var: str, reach: dict[str, int]) -> bool:
    """Whether different iterations touch different elements."""
    first = accesses[0].buffer
    if all(a.buffer.shape == first.shape for a in accesses) and any(
        _separated([(a.indices[k], a.spread[k] if a.spread else 1) for a in accesses], var, reach)
        for k in range(len(first.shape))
    ):
        return True
    return _separated([_position(a) for a in accesses], var, reach)


def _position(access: _Access) -> tuple[Expr, int]:
    """The first element in memory, and how many from there on may be touched."""
    total: Expr = affine(0)
    for index, stride in zip(access.indices, access.buffer.strides, strict=True):
        total = index_add(total, index_scale(index, stride))
    spread = access.spread or (1,) * len(access.indices)
    steps = zip(spread, access.buffer.strides, strict=True)
    return total, 1 + sum((n - 1) * abs(stride) for n, stride in steps)


def _separated(places: list[tuple[Expr, int]], var: str, reach: dict[str, int]) -> bool:
    """Whether places move further from one iteration to the next than they reach in one."""
    low, high = [], []
    fixed: set[tuple[tuple[str, int], ...]] = set()
    for place, spread in places:
        if not isinstance(place, Affine) or not dict(place.terms).get(var):
            return False
        terms = dict(place.terms)
        moved = [terms[v] * n for v, n in reach.items() if v in terms]
        low.append(place.constant + sum(m for m in moved if m < 0))
        high.append(place.constant + sum(m for m in moved if m > 0) + spread - 1)
        fixed.add(tuple(t for t in place.terms if t[0] not in reach))
    if len(fixed) != 1:
        return False
    step = abs(dict(fixed.pop()).get(var, 0))
    return max(high) - min(low) < step
