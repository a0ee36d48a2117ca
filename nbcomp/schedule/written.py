"""Loops the user wrote, element by element: which of them run on all cores.

They keep their order and are vectorised by LLVM.  What is decided here is whether the iterations of
an outermost loop are independent: nothing one writes is touched by another, and every variable is
given a value in an iteration before it is read there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from nbcomp.loop.dependence import conflict
from nbcomp.loop.grammar import (
    Affine,
    Alloc,
    Block,
    Exit,
    Expr,
    For,
    If,
    Kernel,
    Leave,
    Let,
    Load,
    Poll,
    Stmt,
    Store,
    While,
    bodies,
    expressions,
    exprs_of,
    loads_of,
    map_stmt,
    variables,
    walk,
)
from nbcomp.machine import Machine
from nbcomp.record import remark
from nbcomp.schedule.decisions import Decide, usual


def spread(kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
    """Run an outermost loop on all cores where its iterations are independent."""
    (stage,) = kernel.stages
    if not isinstance(stage, Block):
        return kernel
    allocs = [s for s in stage.body if isinstance(s, Alloc)]
    body = [s for s in stage.body if not isinstance(s, Alloc)]
    loops = [s for s in body if isinstance(s, For)]
    stages: list[Stmt] = []
    for loop in loops:
        why = _why_not(kernel, loop, body, allocs)
        if why:
            remark(
                "missed",
                "parallel",
                f"the loop over `{loop.var}` runs on one core: {why}",
                loop.location,
            )
            continue
        stages = _split(kernel, loop, body, allocs)
        reason = f"the loop over `{loop.var}` runs on {machine.cores} cores"
        remark("applied", "parallel", reason, loop.location)
        return replace(kernel, stages=tuple(stages), notes=(*kernel.notes, f'spread("{loop.var}")'))
    return kernel


def _why_not(kernel: Kernel, loop: For, body: Sequence[Stmt], allocs: list[Alloc]) -> str:
    """What keeps a loop from being spread over the cores; empty if nothing does."""
    inside = list(walk((loop,)))
    if not (isinstance(loop.extent, Affine) and not loop.extent.terms):
        return "how often it runs is known only at run time"
    if any(isinstance(s, Leave) and s.label not in _labels(inside) for s in inside):
        return "it may be left early"
    if kernel.ordered and any(isinstance(s, Exit) for s in inside):
        return "it may fail, and then what it wrote so far is seen"
    own = {a.buffer.name for a in allocs}
    carried = sorted(_carried(loop.body, own))
    if carried:
        return f"each round uses `{carried[0].split('_')[0]}` of the one before"
    at = body.index(loop)
    lets = [s for s in body[:at] if isinstance(s, Let)]
    if any(e.buffer.role != "input" for s in lets for e in loads_of((s,))):
        return "it reads values that are computed before it"
    own_names = {a.buffer.name for a in allocs}
    crossing = own_names & _touched(tuple(body[:at])) & _touched(tuple(body[at + 1 :]))
    if crossing:
        return f"`{sorted(crossing)[0]}` is used before and after it"
    private = [a for a in allocs if a.buffer.name in _touched((loop,))]
    others = [s for s in body if s is not loop]
    shared = {a.buffer.name for a in private} & _touched(tuple(others))
    if shared:
        return f"`{sorted(shared)[0]}` is used outside of it too"
    shared_with = conflict(replace(loop, body=(*private, *loop.body)), sums=False)
    return shared_with.message if shared_with else ""


def _labels(stmts: list[Stmt]) -> set[str]:
    return {s.label for s in stmts if isinstance(s, Block)}


def _touched(stmts: tuple[Stmt, ...]) -> set[str]:
    """The buffers some statements read or write."""
    found = {s.buffer.name for s in walk(stmts) if isinstance(s, Store)}
    return found | {e.buffer.name for e in loads_of(stmts)}


def _carried(body: tuple[Stmt, ...], own: set[str]) -> set[str]:
    """Variables that an iteration may read before it has given them a value, and that it writes."""
    written = {s.buffer.name for s in walk(body) if isinstance(s, Store)} & own
    read_first: set[str] = set()
    _flow(body, set(), written, read_first)
    return read_first


def _flow(body: tuple[Stmt, ...], sure: set[str], written: set[str], first: set[str]) -> set[str]:
    """Which variables surely have a value after a body; `first` gets those read before."""
    for stmt in body:
        first |= _reads(stmt, written) - sure
        match stmt:
            case Store() if not stmt.indices:
                sure = sure | {stmt.buffer.name}
            case If():
                yes = _flow(stmt.yes, sure, written, first)
                no = _flow(stmt.no, sure, written, first)
                sure = _ended(stmt.yes, no) or _ended(stmt.no, yes) or yes & no
            case Block():
                after = _flow(stmt.body, sure, written, first)
                left = stmt.label and any(
                    isinstance(s, Leave) and s.label == stmt.label for s in walk(stmt.body)
                )
                sure = sure if left else after
            case For() | While():
                _flow(stmt.body, sure, written, first)
    return sure


def _ended(body: tuple[Stmt, ...], other: set[str]) -> set[str] | None:
    """What the other way knows, if this one does not come back."""
    return other if body and isinstance(body[-1], Leave | Exit) else None


def _reads(stmt: Stmt, written: set[str]) -> set[str]:
    loads = (e for e in exprs_of(stmt) if isinstance(e, Load))
    return {e.buffer.name for e in loads if e.buffer.name in written}


def _split(kernel: Kernel, loop: For, body: Sequence[Stmt], allocs: list[Alloc]) -> list[Stmt]:
    """The stages: what is before the loop, the loop with variables of its own, what is after."""
    at = body.index(loop)
    values = [s for s in body[:at] if isinstance(s, Let)]  # read again in every round
    private = tuple(a for a in allocs if a.buffer.name in _touched((loop,)))
    inner = (*_used(values, (loop,)), *_without_polls(loop.body))
    stages: list[Stmt] = []
    after = [*_used(values, body[at + 1 :]), *body[at + 1 :]]
    for part in (body[:at], after):
        mine = [a for a in allocs if a.buffer.name in _touched(tuple(part))]
        stages.append(Block((*mine, *part), kernel.location))
    spread_loop = replace(loop, kind="parallel", body=(*private, *inner))
    first, last = stages
    if isinstance(first, Block) and all(isinstance(s, Let) for s in first.body):
        first = Block(())
    whole = [first, spread_loop, last]
    return [s for s in whole if not isinstance(s, Block) or s.body]


def _used(values: Sequence[Let], stmts: Sequence[Stmt]) -> Iterator[Let]:
    """Those of the values that some statements use."""
    names = {n for s in walk(tuple(stmts)) for root in expressions(s) for n in variables(root)}
    return (v for v in values if v.name in names)


def _without_polls(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Threads of the pool do not look for interrupts."""

    def same(e: Expr) -> Expr:
        return e

    def inner(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For | While | Block):
            return replace(stmt, body=tuple(_without_polls(stmt.body)))
        if bodies(stmt):
            return map_stmt(stmt, same, inner=inner)
        return stmt

    yield from (inner(s) for s in body if not isinstance(s, Poll))
