"""What the default schedule decided about a kernel's loops, said in the user's terms.

Each function makes the remark of one decision; the schedule calls it where it decides.  Loops are
named by what the user wrote: the line of the loop, how many iterations it has, the arrays it reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nbcomp.errors import ScheduleError
from nbcomp.loop.cost import extent_of, has_accumulate
from nbcomp.loop.grammar import (
    Affine,
    Buffer,
    Call,
    For,
    Kernel,
    Let,
    Load,
    loads_of,
    steps_of,
    variables,
    walk,
)
from nbcomp.loop.intrinsics import INTRINSICS, dots
from nbcomp.loop.lanes import lanes_of
from nbcomp.machine import Machine
from nbcomp.record import Location, remark
from nbcomp.schedule.blocks import Product
from nbcomp.sizes import hint
from nbcomp.types import contiguous_strides

COPY = "an array in that order, made once with {}, would be read whole vectors"


def vectorized(kernel: Kernel, loop: For, machine: Machine) -> None:
    """A loop became a vector loop; and what keeps its vectors from being full or whole."""
    lanes, at = lanes_of(loop, machine.vector_bytes), _place(kernel, loop)
    n = hint(extent_of(loop))
    reason = f"{kernel.name} works on {lanes} elements per instruction"
    remark("applied", "vectorize", reason, at)
    if 0 < n < lanes:
        remark(
            "analysis",
            "vectorize",
            f"{n} elements at a time for {lanes} lanes: the others stand idle",
            at,
            f"a last axis of {lanes} or more would fill the vectors",
        )
    for load in {found.buffer: found for found in _apart(loop)}.values():
        name, where = load.buffer.memory, load.location or at
        step = steps_of(load).get(loop.var, 0)
        if step:
            reason = f"`{name}` is read in steps of {step:,} elements, one lane at a time"
            remark("missed", "vectorize", reason, where, _copy(kernel, load, loop))
        else:
            reason = f"`{name}` is read at computed places, one lane at a time"
            remark("missed", "vectorize", reason, where)


def instructed(name: str, terms: int, at: Location | None) -> None:
    """A product of narrow numbers by an instruction that adds up several terms."""
    whole = "vector" if dots(INTRINSICS[name]) else "tile"
    reason = f"{name} adds {terms} products to each of its sums, an instruction for a whole {whole}"
    remark("applied", "vectorize", reason, at)


def _copy(kernel: Kernel, load: Load, loop: For) -> str:
    """What would turn an array's order in memory so that the loop's elements lie side by side: a
    step along an axis that another order has first or last.  "" where no order does, because the
    program itself leaves elements out, and where the array is read in its present order, too."""
    buffer, shape = load.buffer, load.buffer.shape
    moved = [k for k, index in enumerate(load.indices) if loop.var in variables(index)]
    if buffer.role != "input" or len(moved) != 1 or not isinstance(load.indices[moved[0]], Affine):
        return ""
    if _also_whole(kernel, buffer):
        return ""
    rows = contiguous_strides(shape)
    columns = tuple(reversed(contiguous_strides(shape[::-1])))
    for order, strides in (("np.ascontiguousarray", rows), ("np.asfortranarray", columns)):
        stretched = replace(load, buffer=replace(buffer, strides=strides))
        if buffer.strides != strides and hint(steps_of(stretched).get(loop.var, 0)) == 1:
            return COPY.format(order)
    return ""


def _also_whole(kernel: Kernel, buffer: Buffer) -> bool:
    """Whether an innermost loop reads the same array side by side."""
    loops = [s for s in walk(kernel.stages) if isinstance(s, For)]
    return any(
        load.buffer.memory == buffer.memory and hint(steps_of(load).get(loop.var, 0)) == 1
        for loop in loops
        if not any(isinstance(s, For) for s in walk(loop.body))
        for load in loads_of(loop.body)
    )


def _apart(loop: For) -> Iterator[Load]:
    """Loads whose lanes do not lie side by side in memory."""
    varying = {loop.var}
    for stmt in walk(loop.body):
        if isinstance(stmt, Let) and variables(stmt.value) & varying:
            varying.add(stmt.name)
    for load in loads_of(loop.body):
        computed = any(not isinstance(i, Affine) and variables(i) & varying for i in load.indices)
        strided = hint(steps_of(load).get(loop.var, 0)) > 1
        if load.buffer.role != "local" and (computed or strided):
            yield load


def interleaved(kernel: Kernel, loop: For, count: int, machine: Machine) -> None:
    """Several vectors of a loop are in flight."""
    if hint(extent_of(loop)) >= count * lanes_of(loop, machine.vector_bytes):
        reason = f"{kernel.name} keeps {count} vectors in flight, which hides their latency"
        remark("applied", "vectorize", reason, _place(kernel, loop))


def not_vectorized(kernel: Kernel, loop: For, why: ScheduleError) -> None:
    """A loop stays as it is."""
    remark("missed", "vectorize", f"one element at a time: {why.message}", _place(kernel, loop))


def parallel(kernel: Kernel, loop: For, alone: bool, machine: Machine) -> None:
    """The iterations of an outermost loop may be spread over the cores."""
    at, n = _whole(kernel, loop), extent_of(loop)
    if isinstance(loop.body[0], Call) and loop.body[0].box:
        return  # the parts of a product, of which `split_product` tells
    if alone and machine.cores > 1:
        reason = f"on one core: {kernel.name} takes less time than waking another one"
        remark("analysis", "parallel", reason, at, "more rows per call would be spread over cores")
    elif machine.cores > 1:
        reason = f"the {n:,} iterations of {kernel.name} are spread over the cores"
        remark("applied", "parallel", reason, at)


def not_parallel(kernel: Kernel, loop: For, why: ScheduleError) -> None:
    """One core runs all of a loop."""
    remark("missed", "parallel", f"on one core: {why.message}", _whole(kernel, loop))


def in_rounds(kernel: Kernel, rounds: For, loop: For) -> None:
    """Each round of a loop is spread over the cores."""
    at, n, times = _place(kernel, loop), extent_of(loop), extent_of(rounds)
    reason = (
        f"the {n:,} iterations of each of {times:,} rounds of {kernel.name} are spread over the"
        " cores, one round after another"
    )
    remark("applied", "parallel", reason, at)


def short(kernel: Kernel, loop: For) -> None:
    """A loop that is over too soon to be spread."""
    n = extent_of(loop)
    if has_accumulate(loop.body):
        why = f"its {n:,} elements are added up in one go, too few to be worth a second core"
    else:
        why = f"{n:,} elements take less time than waking another core"
    remark("analysis", "parallel", f"on one core: {why}", _whole(kernel, loop))


def split_product(call: Call, parts: int, axis: int) -> None:
    """A matrix product is computed in parts."""
    reason = f"the product's {('rows', 'columns')[axis]} are spread over {parts} cores"
    remark("applied", "parallel", reason, call.location)


def whole_product(call: Call) -> None:
    """A matrix product stays on one core."""
    reason = "the product runs on one core: it is too small to be split"
    remark("analysis", "parallel", reason, call.location)


def in_parts(product: Product, parts: int) -> None:
    """The terms of a product are added up in parts."""
    assert product.right is not None
    reason = (
        f"the {product.depth:,} terms of each sum are added up in {parts} parts, a core each: then"
        f" every core reads its rows of `{product.right.buffer.name}` from first to last"
    )
    remark("applied", "parallel", reason, product.sum.location)


def tiled(kernel: Kernel, loop: For, tile: int) -> None:
    """Loops over memory in two orders go block by block."""
    reason = f"read in blocks of {tile} columns, so that cache lines are used whole"
    remark("applied", "tile", reason, _place(kernel, loop))


def streamed(kernel: Kernel, buffer: Buffer) -> None:
    """A result is written past the caches."""
    size = buffer.nbytes / 2**20
    reason = f"`{buffer.name}` ({size:,.0f} MiB) is written past the caches, which it would flush"
    remark("applied", "stream", reason, kernel.location)


def overlapped(kernel: Kernel, loop: For, rows: int) -> None:
    """Rows overlap; rows: of a block, 0 where there are none."""
    reason = "the end of a row runs beside the beginning of the next"
    reason += f", {rows} rows at a time" if rows else ""
    remark("applied", "overlap", reason, _place(kernel, loop))


def asked_ahead(kernel: Kernel, buffer: Buffer, loop: For) -> None:
    """Rows are fetched before they are needed."""
    size = buffer.nbytes / 2**20
    reason = f"the next rows of `{buffer.name}` ({size:,.0f} MiB) are fetched while these are added"
    remark("applied", "prefetch", reason, _place(kernel, loop))


def _place(kernel: Kernel, loop: For) -> Location | None:
    return loop.location or kernel.location


def _whole(kernel: Kernel, loop: For) -> Location | None:
    """The place of all a kernel computes: an outermost loop may be only at what is inside."""
    return kernel.location or loop.location
