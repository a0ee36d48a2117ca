"""Which loops are lanes: innermost loops as vectors, short ones written out, vectors in flight.

Steps of the default schedule (`default`).  Knows loops and the width of vectors.
"""

from __future__ import annotations

from collections.abc import Iterable

from nbcomp.errors import ScheduleError
from nbcomp.loop import cost
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Call,
    For,
    Kernel,
    Let,
    Stmt,
    Store,
    bodies,
    walk,
)
from nbcomp.loop.lanes import lanes_of
from nbcomp.machine import Machine
from nbcomp.schedule import remarks, steps
from nbcomp.schedule.decisions import Decide, among, half_width, usual
from nbcomp.schedule.rewriting import find, noted
from nbcomp.schedule.turning import SHORT, TURNED, stride_of, turned_by
from nbcomp.sizes import Size, hint

VECTORS = (1, 2, 3, 4, 6, 8, 12, 16)  # in flight
FEW = 64  # iterations of a loop that may be over before its vectors pay
RARE, PAIR = 0.04, 2  # of a kernel's work: loops with less have so many vectors in flight at most


def unroll(kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
    """Write short inner loops out, so that the longer loop around them can have the lanes."""
    for stage in kernel.stages:
        for loop, parent in _innermost(stage):
            if parent is None or not _short(loop, TURNED if turned_by(parent, loop) else SHORT):
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
    short = cost.extent_of(loop) - (turned_by(parent, loop) is not None)
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


def _scatters(loop: For) -> bool:
    """Whether a loop stores small elements that are not neighbours: lane by lane, if in lanes.

    What a loop that is written out stores side by side is turned in registers.
    """
    aside = [s.var for s in walk(loop.body) if isinstance(s, For)]
    stores = [s for s in walk(loop.body) if isinstance(s, Store)]
    return any(
        s.buffer.dtype.itemsize < 4
        and abs(stride_of(s, loop.var)) > 1
        and not any(abs(stride_of(s, var)) == 1 for var in aside)
        for s in stores
    )


def interleave(kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
    """Keep several vectors in flight: enough to hide the latency of sums, few in long bodies.

    Where a kernel spends next to no time (what goes before rows that overlap, and after them) two
    are enough: more would only be more code.
    """
    work = _work(kernel.stages, 1.0)
    whole_work = sum(hint(cost.of_stmt(s).instructions) for s in kernel.stages)
    for loop in walk(kernel.stages):
        if not isinstance(loop, For) or loop.kind != "vector" or loop.unroll > 1:
            continue
        if any(isinstance(s, For) for s in walk(loop.body)):
            continue
        whole = cost.extent_of(loop) // lanes_of(loop, machine.vector_bytes)
        if not isinstance(whole, Size) and whole < 2:
            continue  # there is one, and perhaps a part of another
        count = _in_flight(loop)
        if work[loop.var] < RARE * whole_work:
            count = min(count, PAIR)
        else:
            counts = among(count, VECTORS, max(hint(whole), 1))
            count = decide(f"vectors of {loop.var}", count, counts)
        if count == 1:
            continue
        kernel = steps.interleave(kernel, loop.var, count)
        remarks.interleaved(kernel, loop, count, machine)
        kernel = noted(kernel, f'interleave("{loop.var}", {count})')
    return kernel


def _work(body: Iterable[Stmt], times: float) -> dict[str, float]:
    """Instructions of each loop, for all the rounds of those around it."""
    found: dict[str, float] = {}
    for stmt in body:
        rounds = times
        if isinstance(stmt, For):
            found[stmt.var] = times * hint(cost.of_stmt(stmt).instructions)
            rounds *= hint(cost.extent_of(stmt))
        for inner in bodies(stmt):
            found |= _work(inner, rounds)
    return found


def _in_flight(loop: For) -> int:
    """How many vectors at a time."""
    weight = cost.of_body(loop.body).instructions
    sums = [s for s in walk(loop.body) if isinstance(s, Accumulate)]
    if sums and not any(_depends(i, loop.var) for s in sums for i in s.indices):
        return 8 if weight <= 8 else 4 if weight <= 24 else 2
    # rows added to one row of sums come one after the other: what counts is the weight of one
    weight /= max(terms_together(loop), 1)
    few = 2 if terms_together(loop) > 1 else 4
    return few if weight <= 6 else 2 if weight <= 16 else 1


def terms_together(loop: For) -> int:
    """How many terms are added to an element one after the other."""
    sums = [s for s in loop.body if isinstance(s, Accumulate)]
    return len(sums) // max(len({s.buffer for s in sums}), 1)


def _depends(index: object, var: str) -> bool:
    return not isinstance(index, Affine) or any(v == var for v, _ in index.terms)


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
        if isinstance(stmt, For) and (stmt.kind == "vector" or stmt.instruction):
            return  # whose lanes run what is inside, one iteration after another, or it is one step
        for s in inside:
            only = isinstance(stmt, For) and all(isinstance(x, For | Let) for x in inside)
            visit(s, stmt if only and isinstance(stmt, For) else None)

    visit(stage, None)
    return found


def _loops(stmt: Stmt) -> bool:
    """Whether a statement is a loop in the machine code too."""
    return isinstance(stmt, For) and stmt.kind != "unroll"
