"""Blocks of arrays read across: of two loops, one walks along what the other strides through.

A step of the default schedule (`default`).  Knows loops and cache lines.
"""

from __future__ import annotations

from nbcomp.errors import ScheduleError
from nbcomp.loop import cost
from nbcomp.loop.grammar import Affine, Call, For, Kernel, Load, Stmt, Store, exprs_of
from nbcomp.machine import Machine
from nbcomp.schedule import remarks, steps
from nbcomp.schedule.decisions import Decide, among, usual
from nbcomp.schedule.rewriting import find, main_loop, noted
from nbcomp.sizes import is_open

TILE = 32  # columns of a block that is read along the other axis: its cache lines stay in reach
BLOCK_ROWS = 16  # of a block whose columns are written out, or more, so that they fill a vector
LINE, PAGE = 64, 4096  # bytes of a cache line, and of all lines of a way of the first cache
AHEAD = (1, 2, 4, 8)  # blocks
TILES = (8, 16, 32, 64, 128, 256)
SHORT = 8  # a loop this short is written out, and the loop around it vectorised
TURNED = 16  # one this short, if its elements are then turned in registers


def tile(kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
    """Walk blocks of two axes where the inner loop strides through what the outer walks along."""
    for position in range(len(kernel.stages)):
        kernel = _tile_stage(kernel, position, machine, decide)
    return kernel


def _tile_stage(kernel: Kernel, position: int, machine: Machine, decide: Decide) -> Kernel:
    """Otherwise every element read brings a cache line of which the rest is gone when needed."""
    outermost = stage = main_loop(kernel.stages[position])
    inner = _all_of(stage)
    while stage is not None and inner is not None and (deeper := _all_of(inner)):
        stage, inner = inner, deeper
    if stage is None or inner is None or any(isinstance(s, For | Call) for s in inner.body):
        return kernel
    if cost.has_accumulate(inner.body):
        return kernel
    turned = turned_by(stage, inner)
    if stage is not outermost and not turned:
        return kernel
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


def _all_of(loop: For | None) -> For | None:
    """The loop that is all there is in a loop."""
    (only,) = loop.body if loop is not None and len(loop.body) == 1 else (None,)
    return only if isinstance(only, For) and only.kind == "serial" else None


def _asked_ahead(kernel: Kernel, inner: For, turned: Load, decide: Decide) -> Kernel:
    """Ask for what later blocks read, whose lines are rows apart: no cache does so by itself."""
    ahead = decide(f"blocks of {inner.var} asked for ahead", 0, (0, *AHEAD))
    if not ahead:
        return kernel
    try:
        asking = steps.prefetch(kernel, turned.buffer.name, f"{inner.var}_o", ahead)
    except ScheduleError:  # every block reads the same
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
        size, step = turned.dtype.itemsize, stride_of(turned, inner.var)
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


def turned_by(outer: For, inner: For) -> Load | None:
    """What is read along the outer of two loops, and across the inner one, if anything is."""
    for e in _loads(inner.body):
        if abs(stride_of(e, outer.var)) == 1 and abs(stride_of(e, inner.var)) > 1:
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
    return [e for s in body for e in exprs_of(s) if isinstance(e, Load)]


def stride_of(load: Load | Store, var: str) -> int:
    """How far a load or store moves, in elements, from one iteration of a loop to the next."""
    total = 0
    for index, stride in zip(load.indices, load.buffer.strides, strict=True):
        if isinstance(index, Affine):
            total += dict(index.terms).get(var, 0) * stride
    return total
