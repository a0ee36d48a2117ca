"""The default schedule: what a kernel gets when nobody has written or tuned one.

`SCHEDULE` is its steps in order.  Each is an optimisation that can be left out by its name
(`Options`), because none changes what the kernel means.  Where one could go either way it asks
`decide`, which a tuner answers.  Knows loops and the machine.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from nbcomp.errors import ScheduleError
from nbcomp.loop import cost
from nbcomp.loop.grammar import Apply, Call, For, Kernel, Stmt, exprs_of, loads_of, walk
from nbcomp.machine import Machine
from nbcomp.options import EVERYTHING, Options
from nbcomp.schedule import remarks, steps
from nbcomp.schedule.cores import parallelize, seconds
from nbcomp.schedule.decisions import Decide, among, usual
from nbcomp.schedule.innermost import interleave, terms_together, unroll, vectorize
from nbcomp.schedule.products import block_products
from nbcomp.schedule.rewriting import noted
from nbcomp.schedule.sums import block_sums
from nbcomp.schedule.turning import tile
from nbcomp.schedule.written import spread
from nbcomp.sizes import hint, is_open

PRODUCT_SECONDS = 20e-6  # of a matrix product on one core, from which it is split over the cores
OVERLAPPING = (128, 64, 32, 16, 8)  # rows of a block, the ends of which have nothing beside them
OVERLAP_SECONDS = 100e-6  # of all rows on one core, from which their overlap is worth its code
LIGHT = 8  # instructions an element, beside which divisions have time
WALKED = 3  # rows that two loops walk: what both read, and what one writes
TOGETHER = 3  # loops that overlap, at most
STREAM_SHARE = 0.5  # of the last-level cache: results of more are written past the caches


def default_schedule(
    kernel: Kernel, machine: Machine, options: Options = EVERYTHING, decide: Decide = usual
) -> Kernel:
    """The kernel after the steps of `SCHEDULE`, but for those that are left out."""
    for step in schedule(options, kernel):
        kernel = step(kernel, machine, decide)
    return kernel


def schedule(options: Options, kernel: Kernel | None = None) -> tuple[Step, ...]:
    """The steps that are not left out, in order; each takes a kernel to one that means the same."""
    if kernel is not None and kernel.written:
        wanted = ((merge_loops, "merge_loops"), (spread, "parallelize"))
        return tuple(step for step, name in wanted if options.does(name))
    return tuple(step for step in SCHEDULE if options.does(step.__name__))


# ------------------------------------------------------------------------------------------ steps


def split_products(kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
    """Compute a large product in as many parts as there are cores."""
    for position, call in enumerate(kernel.stages):
        if not isinstance(call, Call) or machine.cores < 2:
            continue
        rows, columns = call.buffers[0].shape[-2:]
        axis = 0 if rows >= max(32 * machine.cores, columns // 8) else 1
        axis = decide(f"axis of product {position}", axis, (0, 1))
        length = (rows, columns)[axis]
        worth = seconds(call, machine) >= PRODUCT_SECONDS and length >= 32 * machine.cores
        parts = machine.cores if worth else 1
        choices = among(parts, (1, machine.cores, 2 * machine.cores), max(length // 16, parts))
        parts = decide(f"parts of product {position}", parts, choices)
        if parts == 1:
            remarks.whole_product(call)
            continue
        remarks.split_product(call, parts, axis)
        kernel = noted(
            steps.split_product(kernel, position, parts, axis),
            f"split_product({position}, {parts}, {axis})",
        )
    return kernel


def merge_loops(kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
    """Walk neighbouring axes that are one in memory with one loop."""
    for position in range(len(kernel.stages)):
        if decide(f"merge loops of stage {position}", 1, (0, 1)):
            kernel = _merge_stage(kernel, position)
    return kernel


def _merge_stage(kernel: Kernel, position: int) -> Kernel:
    """Fuse every perfect pair of loops that is one axis of all buffers, outside in."""
    again = True
    while again:
        again = False
        for loop in walk((kernel.stages[position],)):
            if not (isinstance(loop, For) and len(loop.body) == 1):
                continue
            (inner,) = loop.body
            if not isinstance(inner, For) or (loop.kind, inner.kind) != ("serial", "serial"):
                continue
            try:
                kernel = steps.fuse(kernel, loop.var, inner.var)
            except ScheduleError:
                continue
            kernel = noted(kernel, f'fuse("{loop.var}", "{inner.var}")')
            again = True
            break
    return kernel


def stream(kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
    """Write results past the caches where all the memory touched is far larger than they are."""
    large = int(_is_large(kernel, machine))
    if is_open([n for b in kernel.buffers for n in b.shape]) and not large:
        return kernel
    for buffer in kernel.buffers:
        try:
            streamed = steps.stream(kernel, buffer.name)
        except ScheduleError:
            continue
        if not decide(f"{buffer.name} past the caches", large, (0, 1)):
            continue
        kernel = streamed
        remarks.streamed(kernel, buffer)
        kernel = noted(kernel, f'stream("{buffer.name}")')
    return kernel


def fetch_ahead(kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
    """Ask for the rows that are added up next, where they come from memory.

    The caches look ahead along a few rows at once, not along as many as are added up together.
    """
    for loop in [s for s in walk(kernel.stages) if isinstance(s, For)]:
        inner = loop.body[0] if len(loop.body) == 1 else None
        if not isinstance(inner, For) or inner.kind != "vector" or terms_together(inner) < 2:
            continue
        read = dict.fromkeys(e.buffer for e in loads_of(inner.body) if e.buffer.role == "input")
        for buffer in read:
            usually = int(buffer.nbytes >= STREAM_SHARE * machine.l3)
            name = f"rounds of {loop.var} that {buffer.name} is asked for ahead"
            ahead = decide(name, usually, (0, 1, 2))
            if not ahead:
                continue
            try:
                kernel = steps.prefetch(kernel, buffer.name, loop.var, ahead)
            except ScheduleError:  # every round reads the same of it
                continue
            remarks.asked_ahead(kernel, buffer, loop)
            kernel = noted(kernel, f'prefetch("{buffer.name}", "{loop.var}", {ahead})')
    return kernel


def overlap(kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
    """Let the divisions at the end of a row run beside the beginning of the next.

    Past the caches rows are better read and written one by one.
    """
    for stage in kernel.stages:
        for rows in [s for s in walk((stage,)) if isinstance(s, For)]:
            loops = [s for s in rows.body if isinstance(s, For)]
            if len(loops) > 1 and rows.body[-1] is loops[-1] and not any(map(_has_loops, loops)):
                kernel = _overlap_rows(kernel, stage, rows, machine, decide)
    return kernel


def _overlap_rows(
    kernel: Kernel, stage: Stmt, rows: For, machine: Machine, decide: Decide
) -> Kernel:
    """Of one loop over rows; if that is what the cores share, it is cut into blocks for them."""
    loops, extent = [s for s in rows.body if isinstance(s, For)], cost.extent_of(rows)
    if is_open((extent,)):  # before it is asked what divides it
        return kernel
    blocks = [0] if rows is not stage else [n for n in OVERLAPPING if extent % n == 0]
    if not blocks:
        return kernel
    many = [n for n in blocks if not n or extent // n >= 2 * machine.cores]
    large = next((n for n in many if n and extent // n >= 4 * machine.cores), 0)
    worth = seconds(stage, machine) >= OVERLAP_SECONDS and many and not _is_large(kernel, machine)
    usually, together = _beside(loops, kernel, machine) if worth else (0, 0)
    name = f"loop that the last of {rows.var} runs beside"
    place = decide(name, usually, range(len(loops)))
    if not place:
        return kernel
    usually = large or (many or blocks)[-1]
    block = decide(f"rows of {rows.var} that overlap", usually, blocks) if blocks[-1] else 0
    between = [loop.var for loop in loops[place:-1]][: TOGETHER - 2]
    if not between or not decide(f"loops of {rows.var} between these, too", together, (0, 1)):
        between = []
    first, last = loops[place - 1].var, loops[-1].var
    in_blocks = steps.split(kernel, rows.var, block) if block else kernel
    for names in ((rows.var, first, *between, last), (rows.var, first, last)):
        with suppress(ScheduleError):
            made = steps.overlap(in_blocks, *names)
            remarks.overlapped(made, rows, block)
            split = (f'split("{rows.var}", {block})',) if block else ()
            quoted = ", ".join(f'"{name}"' for name in names)
            return noted(made, *split, f"overlap({quoted})")
    return kernel


def _has_loops(loop: For) -> bool:
    return any(isinstance(s, For) for s in walk(loop.body))


def _beside(loops: list[For], kernel: Kernel, machine: Machine) -> tuple[int, int]:
    """Which loop of the next row, counted from 1, the last loop of a row runs beside, and whether
    the one between does so, too; 0 for none.

    Loops of three rows have most to do while one of them waits.  Light ones wait for memory: what
    they walk should stay in the first cache.  If it does not, divisions run beside the first loop,
    which is the one that waits; else beside the one before.
    """
    before = loops[-2]
    row = hint(cost.extent_of(before) * max(b.dtype.itemsize for b in kernel.buffers))
    light = cost.of_body(before.body).instructions <= LIGHT
    if len(loops) >= TOGETHER and (not light or (WALKED + 1) * row <= machine.l1):
        return len(loops) - TOGETHER + 1, 1
    if not _divides(loops[-1]):
        return 0, 0
    return (len(loops) - 1 if light and WALKED * row <= machine.l1 else 1), 0


def _divides(loop: For) -> bool:
    """Whether a loop is busy dividing."""
    found = (e for s in walk(loop.body) for e in exprs_of(s))
    return any(isinstance(e, Apply) and e.fn == "divide" for e in found)


def _is_large(kernel: Kernel, machine: Machine) -> bool:
    """Whether what a kernel touches is far larger than the caches."""
    touched = sum(b.nbytes for b in kernel.buffers if not b.alias)
    return touched >= STREAM_SHARE * machine.l3


class Step(Protocol):
    """A step of the default schedule, named like the optimisation it is."""

    __name__: str

    def __call__(self, kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
        """The kernel after it, which means the same."""


SCHEDULE: tuple[Step, ...] = (
    block_products,
    block_sums,
    split_products,
    merge_loops,
    tile,
    overlap,
    unroll,
    vectorize,
    interleave,
    parallelize,
    stream,
    fetch_ahead,
)
