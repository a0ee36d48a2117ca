"""Which loops the cores share, and in what pieces: by rough estimates of what a stage takes.

A step of the default schedule (`default`), and what the plan asks about its loops.  Knows loops and
the machine; not how threads are woken.
"""

from __future__ import annotations

import math
from dataclasses import replace

from nbcomp.errors import ScheduleError
from nbcomp.loop import cost
from nbcomp.loop.dependence import conflict
from nbcomp.loop.grammar import For, Kernel, Stmt, affine
from nbcomp.machine import Machine
from nbcomp.schedule import remarks, steps
from nbcomp.schedule.decisions import Decide, among, usual
from nbcomp.schedule.rewriting import main_loop, noted
from nbcomp.sizes import Size, hint, is_rest, most

BLOCK = 4096  # elements of a one-loop kernel that one core takes at a time
BLOCKS = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)  # what else may pay
ROWS = (1, 2, 4, 8, 16, 32, 64, 128)  # of an outer loop that one core takes at a time
ROUND = 5e-6  # seconds of a round on one core, from which on it is spread over all
PIECES = 8  # of a loop for each core, at most: who is done helps the others with theirs
PIECE = 9e-6  # seconds of what one core takes at a time, at least, where lengths are open


def parallelize(kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
    """Spread the outermost loop of each stage over the cores, in blocks if it is the only one."""
    for position in range(len(kernel.stages)):
        kernel = _parallelize_stage(kernel, position, machine, decide)
    return kernel


def _parallelize_stage(kernel: Kernel, position: int, machine: Machine, decide: Decide) -> Kernel:
    whole = kernel.stages[position]
    stage = main_loop(whole)
    if stage is None:
        return kernel
    size = _part_of(stage, decide)
    if not size:
        remarks.short(kernel, stage)
        return kernel
    try:
        spread, outer = _in_parts(kernel, stage.var, size)
        if stage is not whole:
            spread = noted(steps.sink(spread, outer), f'sink("{outer}")')
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


# ------------------------------------------------------------------------------------- estimates


def seconds(stmt: Stmt, machine: Machine) -> float:
    """A rough estimate of the time one core takes for a stage."""
    total = cost.of_stmt(stmt)
    lanes = machine.vector_bytes / 4
    ways = total.instructions / lanes / 2e9, total.bytes / 12e9
    return max(ways, key=hint)


def grain(stage: For, machine: Machine) -> int:
    """Iterations one core takes at a time, in as many pieces for each; 0 where waking another core
    costs more than it saves."""
    n = cost.extent_of(stage)
    if isinstance(n, Size):
        return _open_grain(n, stage, machine)
    whole = seconds(stage, machine)
    if is_rest(whole):  # of open lengths, which fills no block
        whole = most(whole * 10**9) / 1e9
    if machine.cores < 2 or n < 2 or whole < 16e-6:
        return 0
    at_least: int = max(1, math.ceil(n * 6e-6 / hint(whole)))
    pieces = n // max(at_least, -(-n // (machine.cores * PIECES)))
    if pieces > machine.cores:
        pieces -= pieces % machine.cores
    return -(-n // max(pieces, 1))


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
    return at_least + n // (machine.cores * PIECES)  # type: ignore[no-any-return]
