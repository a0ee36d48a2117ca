"""The default schedule: what a kernel gets when nobody has written or tuned one.

`SCHEDULE` is its steps in order.  Each is an optimisation that can be left out by its name
(`Options`), because none changes what the kernel means.  Where one could go either way it asks
`decide`, which a tuner answers.  Knows loops and the machine.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol

from nbcomp.errors import ScheduleError
from nbcomp.loop import cost
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Call,
    For,
    Kernel,
    Let,
    Load,
    Stmt,
    Store,
    affine,
    bodies,
    expressions,
    walk,
    walk_expr,
)
from nbcomp.loop.lanes import lanes_of
from nbcomp.machine import Machine
from nbcomp.options import EVERYTHING, Options
from nbcomp.schedule import remarks, steps
from nbcomp.schedule.decisions import Decide, among, half_width, usual
from nbcomp.schedule.dependence import conflict
from nbcomp.schedule.products import block_products
from nbcomp.schedule.rewriting import find, noted
from nbcomp.schedule.sums import block_sums
from nbcomp.schedule.written import spread
from nbcomp.sizes import Size, hint, is_open, is_rest, most

BLOCK = 4096  # elements of a one-loop kernel that one core takes at a time
PRODUCT_SECONDS = 20e-6  # of a matrix product on one core, from which it is split over the cores
BLOCKS = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)  # what else may pay
ROWS = (1, 2, 4, 8, 16, 32, 64, 128)  # of an outer loop that one core takes at a time
TILE = 32  # columns of a block that is read along the other axis: its cache lines stay in reach
BLOCK_ROWS = 16  # of a block whose columns are written out, or more, so that they fill a vector
LINE, PAGE = 64, 4096  # bytes of a cache line, and of all lines of a way of the first cache
AHEAD = (1, 2, 4, 8)  # blocks
TILES = (8, 16, 32, 64, 128, 256)
VECTORS = (1, 2, 3, 4, 6, 8, 12, 16)  # in flight
FEW = 64  # iterations of a loop that may be over before its vectors pay
SHORT = 8  # a loop this short is written out, and the loop around it vectorised
TURNED = 16  # one this short, if its elements are then turned in registers
ROUND = 5e-6  # seconds of a round on one core, from which on it is spread over all
PIECE = 9e-6  # seconds of what one core takes at a time, at least, where lengths are open
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
        return (spread,) if options.does("parallelize") else ()
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


def tile(kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
    """Walk blocks of two axes where the inner loop strides through what the outer walks along."""
    for position in range(len(kernel.stages)):
        kernel = _tile_stage(kernel, position, machine, decide)
    return kernel


def _tile_stage(kernel: Kernel, position: int, machine: Machine, decide: Decide) -> Kernel:
    """Otherwise every element read brings a cache line of which the rest is gone when needed."""
    stage = kernel.stages[position]
    if not isinstance(stage, For) or len(stage.body) != 1:
        return kernel
    (inner,) = stage.body
    if not isinstance(inner, For) or any(isinstance(s, For | Call) for s in inner.body):
        return kernel
    if cost.has_accumulate(inner.body):
        return kernel
    turned = _turned(stage, inner)
    extents = [cost.extent_of(loop) for loop in (stage, inner)]
    if (is_open(extents) and not turned) or any(n < TILE for n in extents):
        return kernel
    rows, columns = _tile_of(stage, inner, turned, machine, decide)
    try:
        whole = columns == SHORT or (columns == TURNED and turned is not None)
        tiled = _tiled(kernel, stage.var, inner.var, rows, columns, whole)
    except ScheduleError:
        return kernel
    if columns:
        remarks.tiled(kernel, stage, columns)
    return _asked_ahead(tiled, inner, turned, decide) if turned and columns else tiled


def _asked_ahead(kernel: Kernel, inner: For, turned: Load, decide: Decide) -> Kernel:
    """Ask for what later blocks read, whose lines are rows apart: no cache does so by itself."""
    ahead = decide(f"blocks of {inner.var} asked for ahead", 0, (0, *AHEAD))
    if not ahead:
        return kernel
    try:
        asking = steps.prefetch(kernel, turned.buffer.name, f"{inner.var}_o", ahead)
    except ScheduleError:  # a block has too many lines
        return kernel
    note = f'prefetch("{turned.buffer.name}", "{inner.var}_o", {ahead})'
    return noted(asking, note)


def _tile_of(
    outer: For, inner: For, turned: Load | None, machine: Machine, decide: Decide
) -> tuple[int, int]:
    """Rows and columns of a block; 0 for an axis that is not cut.

    With as many rows as there are, only the columns are cut.  Columns few enough to be written out
    become vectors along the rows, turned in registers: eight, whose vectors stay there, or as many
    as a cache line has where lines below each other push each other out of the first cache.
    """
    sizes = (0, *TILES)
    usual_columns = 0
    if turned:
        size, step = turned.dtype.itemsize, _stride(turned, inner.var)
        crowded = not is_open((step,)) and step * size % PAGE == 0
        usual_columns = max(SHORT, min(TURNED, LINE // size)) if crowded else SHORT
    columns = among(usual_columns, sizes, cost.extent_of(inner) // 2)
    width = decide(f"columns of a block of {outer.var}, {inner.var}", usual_columns, columns)
    if not width:
        return 0, 0
    usual_rows = 0
    if turned and width in (SHORT, TURNED):
        usual_rows = max(BLOCK_ROWS, machine.vector_bytes // turned.dtype.itemsize)
    rows = among(usual_rows, sizes, cost.extent_of(outer) // 2)
    return decide(f"rows of a block of {outer.var}, {inner.var}", usual_rows, rows), width


def _turned(outer: For, inner: For) -> Load | None:
    """What is read along the outer of two loops, and across the inner one, if anything is."""
    for e in _loads(inner.body):
        if abs(_stride(e, outer.var)) == 1 and abs(_stride(e, inner.var)) > 1:
            return e
    return None


def _tiled(kernel: Kernel, outer: str, inner: str, rows: int, columns: int, whole: bool) -> Kernel:
    if not columns:
        return kernel
    rest = cost.extent_of(find(kernel, inner)) % columns
    if whole and rest:  # only whole blocks can be written out
        kernel = noted(steps.peel(kernel, inner, rest), f'peel("{inner}", {rest})')
        kernel = noted(steps.distribute(kernel, outer), f'distribute("{outer}")')
    if rows:
        tiled = steps.tile(kernel, outer, inner, rows, columns)
        return noted(tiled, f'tile("{outer}", "{inner}", {rows}, {columns})')
    tiled = steps.split(kernel, inner, columns)
    tiled = steps.interchange(tiled, outer, f"{inner}_o")
    split = f'split("{inner}", {columns})'
    return noted(tiled, split, f'interchange("{outer}", "{inner}_o")')


def _loads(body: tuple[Stmt, ...]) -> list[Load]:
    """What a body reads."""
    roots = [root for s in body for root in expressions(s)]
    return [e for root in roots for e in walk_expr(root) if isinstance(e, Load)]


def _scatters(loop: For) -> bool:
    """Whether a loop stores small elements that are not neighbours: lane by lane, if in lanes.

    What a loop that is written out stores side by side is turned in registers.
    """
    aside = [s.var for s in walk(loop.body) if isinstance(s, For)]
    stores = [s for s in walk(loop.body) if isinstance(s, Store)]
    return any(
        s.buffer.dtype.itemsize < 4
        and abs(_stride(s, loop.var)) > 1
        and not any(abs(_stride(s, var)) == 1 for var in aside)
        for s in stores
    )


def _stride(load: Load | Store, var: str) -> int:
    """How far a load or store moves, in elements, from one iteration of a loop to the next."""
    total = 0
    for index, stride in zip(load.indices, load.buffer.strides, strict=True):
        if isinstance(index, Affine):
            total += dict(index.terms).get(var, 0) * stride
    return total


def _innermost(stage: Stmt) -> list[tuple[For, For | None]]:
    """Loops with no loops inside but short ones written out, each with the loop whose only
    statement it is."""
    found: list[tuple[For, For | None]] = []

    def visit(stmt: Stmt, parent: For | None) -> None:
        inside = [s for body in bodies(stmt) for s in body]
        if isinstance(stmt, For) and not any(map(_loops, walk(tuple(inside)))):
            if _loops(stmt) and not any(isinstance(s, Call) for s in inside):
                found.append((stmt, parent))
            return
        if isinstance(stmt, For) and stmt.kind == "vector":
            return  # whose lanes run what is inside, one iteration after another
        for s in inside:
            only = isinstance(stmt, For) and all(isinstance(x, For | Let) for x in inside)
            visit(s, stmt if only and isinstance(stmt, For) else None)

    visit(stage, None)
    return found


def _loops(stmt: Stmt) -> bool:
    """Whether a statement is a loop in the machine code too."""
    return isinstance(stmt, For) and stmt.kind != "unroll"


def unroll(kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
    """Write short inner loops out, so that the longer loop around them can have the lanes."""
    for stage in kernel.stages:
        for loop, parent in _innermost(stage):
            if parent is None or not _short(loop, TURNED if _turned(parent, loop) else SHORT):
                continue
            if not decide(f"write out {loop.var}", int(_better_outside(loop, parent)), (0, 1)):
                continue
            try:
                written = steps.unroll(kernel, loop.var)
                steps.vectorize(written, parent.var)  # or else there is nothing to gain
            except ScheduleError:
                continue
            kernel = noted(written, f'unroll("{loop.var}")')
    return kernel


def _better_outside(loop: For, parent: For) -> bool:
    """Whether to write a short loop out and vectorise the longer one around it."""
    alone = sum(isinstance(s, For) for s in parent.body) == 1
    if loop.kind != "serial" or parent.kind != "serial":  # somebody has decided already
        return False
    if not alone or cost.has_accumulate(loop.body):
        return False
    short = cost.extent_of(loop) - (_turned(parent, loop) is not None)
    return cost.extent_of(parent) > short


def _short(loop: For, most: int) -> bool:
    """Whether a loop has so few iterations, as many each time."""
    if not isinstance(loop.extent, Affine) or loop.extent.terms:
        return False
    return not isinstance(loop.extent.constant, Size) and loop.extent.constant <= most


def vectorize(kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
    """Run the iterations of innermost loops in the lanes of vectors, where they are independent."""
    for stage in kernel.stages:
        for loop, _ in _innermost(stage):
            if loop.kind == "vector":
                continue
            few = hint(cost.extent_of(loop)) <= FEW
            if few and not decide(f"lanes for {loop.var}", 1, (0, 1)):
                continue
            if _scatters(loop):
                why = ScheduleError(
                    "what is stored lies apart, in elements of less than 4 bytes,"
                    " which no vector instruction stores"
                )
                remarks.not_vectorized(kernel, loop, why)
                continue
            try:
                wide = steps.vectorize(kernel, loop.var)
            except ScheduleError as why:
                remarks.not_vectorized(kernel, loop, why)
                continue
            most = lanes_of(find(wide, loop.var), machine.vector_bytes)
            lanes = half_width(decide, loop.var, most)
            narrow = "" if lanes == most else f", lanes={lanes}"
            kernel = steps.vectorize(kernel, loop.var, lanes=lanes) if narrow else wide
            remarks.vectorized(kernel, loop, machine)
            kernel = noted(kernel, f'vectorize("{loop.var}"{narrow})')
    return kernel


def interleave(kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
    """Keep several vectors in flight: enough to hide the latency of sums, few in long bodies."""
    for loop in walk(kernel.stages):
        if not isinstance(loop, For) or loop.kind != "vector" or loop.unroll > 1:
            continue
        if any(isinstance(s, For) for s in walk(loop.body)):
            continue
        whole = cost.extent_of(loop) // lanes_of(loop, machine.vector_bytes)
        if not isinstance(whole, Size) and whole < 2:
            continue  # there is one, and perhaps a part of another
        counts = among(_in_flight(loop), VECTORS, max(hint(whole), 1))
        count = decide(f"vectors of {loop.var}", _in_flight(loop), counts)
        if count == 1:
            continue
        kernel = steps.interleave(kernel, loop.var, count)
        remarks.interleaved(kernel, loop, count, machine)
        kernel = noted(kernel, f'interleave("{loop.var}", {count})')
    return kernel


def _in_flight(loop: For) -> int:
    """How many vectors at a time."""
    weight = cost.of_body(loop.body).instructions
    single = all(
        not any(_depends(i, loop.var) for i in s.indices)
        for s in walk(loop.body)
        if isinstance(s, Accumulate)
    )
    if cost.has_accumulate(loop.body) and single:
        return 8 if weight <= 8 else 4 if weight <= 24 else 2
    return 4 if weight <= 6 else 2 if weight <= 16 else 1


def _depends(index: object, var: str) -> bool:
    return not isinstance(index, Affine) or any(v == var for v, _ in index.terms)


def parallelize(kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
    """Spread the outermost loop of each stage over the cores, in blocks if it is the only one."""
    for position in range(len(kernel.stages)):
        kernel = _parallelize_stage(kernel, position, machine, decide)
    return kernel


def _parallelize_stage(kernel: Kernel, position: int, machine: Machine, decide: Decide) -> Kernel:
    stage = kernel.stages[position]
    if not isinstance(stage, For):
        return kernel
    size = _part_of(stage, decide)
    if not size:
        remarks.short(kernel, stage)
        return kernel
    try:
        spread, outer = _in_parts(kernel, stage.var, size)
        spread = steps.parallelize(spread, outer)
    except ScheduleError as why:
        in_rounds = _rounds_of(kernel, stage, machine, decide)
        if in_rounds is None:
            remarks.not_parallel(kernel, stage, why)
        return in_rounds or kernel
    loop = spread.stages[position]
    assert isinstance(loop, For)
    remarks.parallel(kernel, loop, grain(loop, machine) == 0, machine)
    return noted(spread, f'parallelize("{outer}")')


def _rounds_of(kernel: Kernel, stage: For, machine: Machine, decide: Decide) -> Kernel | None:
    """The rounds of a stage spread over the cores one by one, where each is long enough."""
    (inner,) = stage.body if len(stage.body) == 1 else (None,)
    if not isinstance(inner, For) or not conflict(stage):  # a mere sum over rounds is none
        return None
    long = int(machine.cores > 1 and hint(seconds(inner, machine)) >= ROUND)
    if not decide(f"rounds of {inner.var} on all cores", long, (0, 1)):
        return None
    try:
        spread = steps.parallelize(kernel, inner.var)
    except ScheduleError:
        return None
    remarks.in_rounds(kernel, stage, inner)
    return noted(spread, f'parallelize("{inner.var}")')


def _part_of(stage: For, decide: Decide) -> int:
    """Iterations of an outermost loop that are one piece of work for a core; 0: all of them."""
    extent = cost.extent_of(stage)
    if stage.kind != "vector":
        rows = among(1, (0, *ROWS), max(hint(extent) // 2, 1))
        return decide(f"iterations of {stage.var} for a core", 1, rows)
    if cost.has_accumulate(stage.body):
        return 0
    block = BLOCK if extent > 2 * BLOCK else 0
    blocks = among(block, (0, *BLOCKS), extent // 2)
    return decide(f"elements of {stage.var} for a core", block, blocks)


def _in_parts(kernel: Kernel, loop: str, size: int) -> tuple[Kernel, str]:
    """The kernel with a loop over parts of a loop, and the name of that."""
    if size == 1:
        return kernel, loop
    return noted(steps.split(kernel, loop, size), f'split("{loop}", {size})'), f"{loop}_o"


def stream(kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
    """Write results past the caches where all the memory touched is far larger than they are."""
    touched = sum(b.nbytes for b in kernel.buffers if not b.alias)
    large = int(touched >= STREAM_SHARE * machine.l3)
    if isinstance(touched, Size) and not large:
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
    unroll,
    vectorize,
    interleave,
    parallelize,
    stream,
)


# ------------------------------------------------------------------------------------- estimates


def seconds(stmt: Stmt, machine: Machine) -> float:
    """A rough estimate of the time one core takes for a stage."""
    total = cost.of_stmt(stmt)
    lanes = machine.vector_bytes / 4
    ways = total.instructions / lanes / 2e9, total.bytes / 12e9
    return max(ways, key=hint)


def grain(stage: For, machine: Machine) -> int:
    """Iterations one core takes at a time; 0 where waking another core costs more than it saves."""
    n = cost.extent_of(stage)
    if isinstance(n, Size):
        return _open_grain(n, stage, machine)
    whole = seconds(stage, machine)
    if is_rest(whole):  # of open lengths, which fills no block
        whole = most(whole * 10**9) / 1e9
    if machine.cores < 2 or n < 2 or whole < 16e-6:
        return 0
    at_least: int = max(1, math.ceil(n * 6e-6 / hint(whole)))
    return max(at_least, n // (machine.cores * 8))


def share(loop: For, machine: Machine) -> int:
    """Iterations one core takes at a time of each round: always the same ones, what they read being
    in its own caches."""
    n: int = cost.extent_of(loop)
    return -(-n // machine.cores)


def _open_grain(n: Size, stage: For, machine: Machine) -> int:
    """The same for as many iterations as a call brings: a call of few is one piece, which no other
    core is woken for, so that nothing has to be known of their number."""
    if machine.cores < 2:
        return 0
    each = hint(seconds(replace(stage, extent=affine(1)), machine))
    at_least = max(1, math.ceil(PIECE / max(each, 1e-12)))
    return at_least + n // (machine.cores * 8)  # type: ignore[no-any-return]
