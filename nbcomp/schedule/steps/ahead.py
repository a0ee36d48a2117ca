"""Work for later iterations done earlier: what is read is asked for before it is needed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from nbcomp.errors import ScheduleError
from nbcomp.loop.dependence import conflict
from nbcomp.loop.grammar import (
    Affine,
    Alloc,
    Block,
    Buffer,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Prefetch,
    Stmt,
    Store,
    While,
    affine,
    index_add,
    index_scale,
    loads_of,
    loop_var,
    map_expr,
    map_stmt,
)
from nbcomp.schedule.region import Region, accesses, clipped, settled, used
from nbcomp.schedule.rewriting import (
    at,
    constant_extent,
    find,
    free_name,
    mentions,
    nest,
    renamed,
    splice,
    substitute,
)
from nbcomp.schedule.steps.memory import LINE, buffer_named, outlives
from nbcomp.sizes import Size
from nbcomp.types import contiguous_strides

HELD = 2048  # bytes of all vector registers: what is read ahead should stay there
LINES = 16  # cache lines to ask for at once: as many misses as a core keeps in flight
NEAR = 1 << 14  # bytes: half of a first cache


def prefetch(kernel: Kernel, buffer: str, loop: str, ahead: int) -> Kernel:
    """`for k: S(b[k, ...])`  ->  `for k: (prefetch b[k + d, ...]; S(b[k, ...]))`, d ahead

    Asks the caches for what the iteration `ahead` iterations later reads of a buffer: line by line
    where those are few, else each in the loops inside, where this iteration reads what is as far
    from its start.  What does not fit into half of a first cache meanwhile goes to the second.  It
    changes no value: beyond the end of the buffer nothing is fetched.
    """
    whole = buffer_named(kernel, buffer)
    if whole.role == "local":
        raise ScheduleError(f"{buffer} is the kernel's own memory, which is in the cache already")
    if ahead < 1:
        raise ScheduleError(f"{buffer} can be fetched 1 or more iterations ahead, not {ahead}")

    def change(found: For) -> Stmt:
        box = _box(kernel, found, whole)
        later = {loop: index_add(loop_var(loop), affine(ahead))}
        steps = _steps(box, whole)
        near = ahead * math.prod(box.size) * whole.dtype.itemsize <= NEAR
        count = math.prod(-(-n // step) for n, step in zip(box.size, steps, strict=True))
        if count > LINES:
            return replace(found, body=tuple(_asking(found.body, whole, later, near)))
        asked = tuple(Prefetch(whole, place, found.location, near) for place in _lines(box, steps))
        return replace(found, body=(*substitute(asked, later), *found.body))

    return at(kernel, loop, change)


def _asking(
    body: tuple[Stmt, ...], whole: Buffer, later: Mapping[str, Expr], near: bool
) -> Iterator[Stmt]:
    """Statements, each after requests for what it reads of a buffer in a later iteration."""

    def inside(statements: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(_asking(statements, whole, later, near))

    for stmt in body:
        match stmt:
            case For() | While() | Block():
                yield replace(stmt, body=inside(stmt.body))
            case If():
                yield replace(stmt, yes=inside(stmt.yes), no=inside(stmt.no))
            case _:
                places = {e.indices: e for e in loads_of((stmt,)) if e.buffer == whole}
                for place, load in places.items():
                    if any(mentions(i, loop) for i in place for loop in later):
                        request = Prefetch(whole, place, load.location, near)
                        yield from substitute((request,), later)
                yield stmt


def _box(kernel: Kernel, found: For, whole: Buffer) -> Region:
    """What an iteration reads; ScheduleError where iterations are no rounds, or read the same."""
    if found.kind in ("vector", "unroll"):
        how = "lanes of a vector" if found.kind == "vector" else "written out"
        raise ScheduleError(f"the iterations of {found.var} are {how}: take a loop around it")
    box = used(kernel, found, whole)
    if not any(mentions(start, found.var) for start in box.start):
        raise ScheduleError(f"every iteration of {found.var} reads the same part of {whole.name}")
    return box


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


# --------------------------------------------------------------------------------------- pipelines


def software_pipeline(kernel: Kernel, buffer: str, loop: str) -> Kernel:
    """`for k in 0..n: S(b[k, ...])`
    ->  `alloc next; next = b[0, ...]; for k in 0..n-1: (alloc now; now = next;
    next = b[k+1, ...]; S(now)); S(next)`, the last S for k = n-1

    Reads what the next iteration needs of a buffer before this one computes, so that the wait for
    memory and the arithmetic overlap.  (M. Lam, "Software pipelining: an effective scheduling
    technique for VLIW machines", PLDI 1988, for the loads alone.)  Legal where no iteration writes
    what the next one reads, and each reads before it writes.
    """
    whole, found = buffer_named(kernel, buffer), find(kernel, loop)
    if found.kind == "parallel":
        raise ScheduleError(f"the iterations of {loop} run on several cores: none is the next one")
    box = _box(kernel, found, whole)
    n = constant_extent(found)
    if n < 2:
        raise ScheduleError(f"{loop} has {n} iterations: there is no next one to read for")
    outlives(whole, found)
    _may_be_read_before(found, whole)
    axes = [k for k, size in enumerate(box.size) if size > 1]
    shape = tuple(box.size[k] for k in axes)
    near = replace(whole, shape=shape, strides=contiguous_strides(shape), role="local", alias="")
    if near.nbytes > HELD:
        raise ScheduleError(
            f"one iteration of {loop} reads {near.nbytes:,} bytes of {buffer}:"
            f" more than registers hold ({HELD:,})"
        )
    now, following = (
        replace(near, name=free_name(kernel, f"{buffer}_{when}")) for when in ("now", "next")
    )

    def read(base: str, iteration: Expr) -> Stmt:
        """The part of an iteration, into `following`."""
        part = replace(box, start=tuple(_at(s, loop, iteration) for s in box.start))

        def move(inside: list[Affine]) -> Stmt:
            outside: list[Expr] = list(part.start)
            for k, i in zip(axes, inside, strict=True):
                outside[k] = index_add(part.start[k], i)
            return Store(following, tuple(inside), Load(whole.dtype, whole, tuple(outside)))

        return nest(kernel, base, [clipped(kernel, whole, part, k) for k in axes], move)

    def taken(inside: list[Affine]) -> Stmt:
        return Store(now, tuple(inside), Load(near.dtype, following, tuple(inside)))

    def computed(held: Buffer) -> tuple[Stmt, ...]:
        return _reading(found.body, whole, held, [(k, box.start[k]) for k in axes])

    take = nest(kernel, f"{buffer}_take", [affine(size) for size in shape], taken)
    later: tuple[Stmt, ...] = (read(f"{buffer}_read", index_add(loop_var(loop), affine(1))),)
    if not isinstance(n, Size):
        later = settled(later, loop, 0, n - 2)
    begun = (
        Alloc(following),
        read(f"{buffer}_first", affine(0)),
        replace(found, extent=affine(n - 1), body=(Alloc(now), take, *later, *computed(now))),
    )
    last = renamed(kernel, substitute(computed(following), {loop: affine(n - 1)}), begun)
    return splice(kernel, found, (*begun, *last))


def _may_be_read_before(found: For, whole: Buffer) -> None:
    """Raise ScheduleError where an iteration may write what it or the next one reads."""
    writes = [a for a in accesses(found.body, whole) if a.writes]
    if not writes:
        return
    if why := conflict(found):
        raise ScheduleError(f"{why.message}, so the next iteration's cannot be read before")
    inside: tuple[Stmt, ...] = found.body
    while len(inside) == 1 and isinstance(inside[0], For) and not conflict(inside[0]):
        inside = inside[0].body
    if len(inside) != 1 or not isinstance(inside[0], Store):
        raise ScheduleError(
            f"{found.var} writes {whole.name} before it has read all that it needs of it:"
            " only a single store of independent elements may write what is read ahead"
        )


def _reading(
    body: tuple[Stmt, ...], whole: Buffer, held: Buffer, corner: list[tuple[int, Affine]]
) -> tuple[Stmt, ...]:
    """Statements that read a copy in place of a part of a buffer; what they write stays there.

    corner: where the part begins, along each axis that the copy has.
    """
    memo: dict[int, Expr] = {}

    def load(e: Expr) -> Expr | None:
        if not isinstance(e, Load) or e.buffer != whole:
            return None
        inside = tuple(index_add(e.indices[k], index_scale(start, -1)) for k, start in corner)
        return replace(e, buffer=held, indices=inside)

    def stmt_of(stmt: Stmt) -> Stmt:
        return map_stmt(stmt, lambda e: map_expr(e, load, memo), lambda b: b, stmt_of)

    return tuple(map(stmt_of, body))


def _at(start: Affine, loop: str, iteration: Expr) -> Affine:
    """A place with an iteration in place of the loop's variable."""
    factor = dict(start.terms).get(loop, 0)
    rest = replace(start, terms=tuple(t for t in start.terms if t[0] != loop))
    made = index_add(rest, index_scale(iteration, factor))
    assert isinstance(made, Affine)
    return made
