"""Sums in parts, so that the parts need not wait for each other."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import (
    Accumulate,
    Alloc,
    Buffer,
    Const,
    For,
    Kernel,
    Load,
    Stmt,
    Store,
    affine,
    index_add,
    index_scale,
    loop_var,
    map_stmt,
    neutral,
    walk,
)
from nbcomp.schedule.region import Region, accesses, clipped, region
from nbcomp.schedule.rewriting import NEAR, constant_extent, find, free_name, nest, splice
from nbcomp.types import contiguous_strides


def rfactor(kernel: Kernel, loop: str) -> Kernel:
    """`for i: for k: s[] += x[i, k]`
    ->  `alloc parts[m]; parts = 0; for i: for k: parts[i] += x[i, k]; for i: s[] += parts[i]`

    Gives each iteration of a loop a sum of its own, and adds these up at the end.  The loop may do
    nothing else.
    """
    found = find(kernel, loop)
    try:
        total, fn = _target(found)
    except ScheduleError as error:
        raise ScheduleError(error.message, hint=_summing(kernel)) from None
    n = constant_extent(found)
    box = region(found.body, total)
    if any(v == loop for start in box.start for v, _ in start.terms):
        raise ScheduleError(f"iterations of {loop} add to different elements of {total.name}")
    shape = (n, *box.size)
    parts = Buffer(
        free_name(kernel, f"{total.name}_parts"),
        total.dtype,
        shape,
        contiguous_strides(shape),
        "local",
    )
    if parts.nbytes > NEAR:
        raise ScheduleError(
            f"{n:,} parts of {total.name} take {parts.nbytes:,} bytes, over {NEAR:,}",
            hint=f"split {loop}, and take the inner loop",
        )

    def own(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Accumulate):
            return map_stmt(stmt, lambda e: e, lambda b: b, own)
        pairs = zip(stmt.indices, box.start, strict=True)
        place = tuple(index_add(i, index_scale(s, -1)) for i, s in pairs)
        return replace(stmt, buffer=parts, indices=(loop_var(loop), *place))

    zero = Const(total.dtype, total.dtype.type(neutral(fn, total.dtype)))
    start = nest(
        kernel,
        f"{parts.name}_z",
        [affine(k) for k in shape],
        lambda v: Store(parts, tuple(v), zero),
    )
    summed = _summed(kernel, total, parts, fn, box)
    main = replace(found, body=tuple(map(own, found.body)))
    return splice(kernel, found, (Alloc(parts), start, main, summed))


def _summing(kernel: Kernel) -> str:
    """Which loops only add up, in words."""
    found = []
    for stmt in walk(kernel.stages):
        with suppress(ScheduleError):
            if isinstance(stmt, For) and _target(stmt):
                found.append(stmt.var)
    return f"loops that only add to one buffer are {', '.join(found)}" if found else ""


def _target(found: For) -> tuple[Buffer, str]:
    """What a loop adds to, and how."""
    adds = [s for s in walk(found.body) if not isinstance(s, For)]
    if not adds or not all(isinstance(s, Accumulate) for s in adds):
        raise ScheduleError(f"{found.var} does not only add up")
    targets = {(s.buffer, s.fn) for s in adds if isinstance(s, Accumulate)}
    if len(targets) != 1:
        raise ScheduleError(f"{found.var} adds to several buffers")
    (total, fn) = targets.pop()
    if any(not a.writes for a in accesses(found.body, total)):
        raise ScheduleError(f"{total.name} is read while it is added to")
    return total, fn


def _summed(kernel: Kernel, total: Buffer, parts: Buffer, fn: str, box: Region) -> Stmt:
    """The loops that add the parts up."""

    def add(place: list[object]) -> Stmt:
        part, *rest = place
        target = tuple(index_add(s, v) for s, v in zip(box.start, rest, strict=True))  # type: ignore[arg-type]
        value = Load(parts.dtype, parts, (part, *rest))  # type: ignore[arg-type]
        return Accumulate(total, target, fn, value)

    sizes = [clipped(kernel, total, box, k) for k in range(len(box.size))]
    return nest(kernel, f"{parts.name}_s", [affine(parts.shape[0]), *sizes], add)  # type: ignore[arg-type]
