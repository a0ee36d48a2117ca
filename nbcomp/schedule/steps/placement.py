"""Where values are computed: where they are read, in the loop that reads them, or right after."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from nbcomp.errors import ScheduleError
from nbcomp.loop.dependence import conflict
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Block,
    Buffer,
    Call,
    Expr,
    For,
    Kernel,
    Let,
    Load,
    Prefetch,
    Stmt,
    Store,
    index_add,
    loads_of,
    loop_var,
    map_expr,
    map_stmt,
    values_of,
    walk,
)
from nbcomp.schedule.region import accesses, clipped, region, upper
from nbcomp.schedule.rewriting import at, find, loops_around, nest, stage_of, substitute
from nbcomp.schedule.steps.memory import buffer_named, stage


def inline(kernel: Kernel, buffer: str) -> Kernel:
    """`for i: t[i] = f(x[i]); for j: S(t[j])`  ->  `for j: S(f(x[j]))`

    For a temporary that is computed element by element, by one statement.
    """
    made = _elementwise(kernel, _temporary(kernel, buffer))
    if any(isinstance(s, Prefetch) and s.buffer == made.buffer for s in walk(kernel.stages)):
        raise ScheduleError(f"{buffer} is fetched ahead: that comes after it has its place")
    after = kernel.stages[kernel.stages.index(made.stage) + 1 :]
    if made.reads & _written(after):
        raise ScheduleError(f"what {buffer} is computed from is overwritten before it is read")
    memo: dict[int, Expr] = {}

    def change(e: Expr) -> Expr | None:
        if not isinstance(e, Load) or e.buffer != made.buffer:
            return None
        indices = [map_expr(i, change, memo) for i in e.indices]
        (store,) = substitute((made.store,), dict(zip(made.loops, indices, strict=True)))
        assert isinstance(store, Store)
        return store.value

    def stmt_of(stmt: Stmt) -> Stmt:
        return map_stmt(stmt, lambda e: map_expr(e, change, memo), lambda b: b, stmt_of)

    stages = tuple(stmt_of(s) for s in kernel.stages if s is not made.stage)
    buffers = tuple(b for b in kernel.buffers if b != made.buffer)
    return replace(kernel, buffers=buffers, stages=stages)


def compute_at(kernel: Kernel, buffer: str, loop: str) -> Kernel:
    """`for i: t[i] = f(i); for j: for k: S(t[8*j + k])`
    ->  `for j: (alloc near[8]; for i in 0..8: near[i] = f(8*j + i); for k: S(near[k]))`

    Computes a temporary part by part, in the loop that is about to read the part.
    """
    made = _elementwise(kernel, _temporary(kernel, buffer))
    if stage_of(kernel, loop) is made.stage:
        raise ScheduleError(f"{loop} is in the loops that compute {buffer}")
    return inline(stage(kernel, buffer, loop), buffer)


def reverse_compute_at(kernel: Kernel, buffer: str, loop: str) -> Kernel:
    """`for i: for k: t[8*i + k] = f; for j: y[j] = g(t[j])`
    ->  `for i: (for k: t[8*i + k] = f; for j in 0..8: y[8*i + j] = g(t[8*i + j]))`

    Computes an elementwise result in the loop that has just finished the part it is made from.
    """
    made = _elementwise(kernel, buffer_named(kernel, buffer))
    found, producer = find(kernel, loop), stage_of(kernel, loop)
    if producer is made.stage:
        raise ScheduleError(f"{loop} is in the loops that compute {buffer}")
    source = _source(made, producer)
    first, last = kernel.stages.index(producer), kernel.stages.index(made.stage)
    others = made.reads - {source.memory}
    between = kernel.stages[first:last]
    if first > last or others & _written(between) or made.buffer.memory in _touched(between):
        raise ScheduleError(f"something {buffer} needs is not there yet in {loop}")
    for around in (*loops_around((producer,), found), found):
        if why := conflict(around, sums=False):
            raise ScheduleError(f"{source.name} is not finished in {loop}: {why.message}")
    box, whole = region(found.body, source), region((_path(producer, found),), source)
    if not box.dense:
        raise ScheduleError(f"{loop} computes {source.name} only here and there")
    starts = all(not s.terms and not s.constant for s in whole.start)
    short = any(n < m for n, m in zip(whole.size, source.shape, strict=True))
    if short or not starts or not whole.dense:
        raise ScheduleError(f"{loop} computes a part of {source.name}: the rest is elsewhere")

    def finish(place: list[Affine]) -> Stmt:
        indices = [index_add(start, v) for start, v in zip(box.start, place, strict=True)]
        (stmt,) = substitute((made.store,), dict(zip(made.loops, indices, strict=True)))
        return stmt

    sizes = [clipped(kernel, source, box, k) for k in range(len(box.size))]
    epilogue = nest(kernel, f"{buffer}_", sizes, finish)
    rest = replace(kernel, stages=tuple(s for s in kernel.stages if s is not made.stage))
    return at(rest, loop, lambda f: replace(f, body=(*f.body, epilogue)))


def sink(kernel: Kernel, loop: str) -> Kernel:
    """`v = a[]; for i: S(v)`  ->  `for i: (v = a[]; S(v))`

    Binds what is bound right before a loop in each of its iterations: the loop is then a statement
    of its own, as it must be to be spread over the cores.
    """
    found = find(kernel, loop)
    holders = (s for s in walk(kernel.stages) if isinstance(s, For | Block))
    holder = next((s for s in holders if any(x is found for x in s.body)), None)
    body = holder.body if holder else ()
    place = next((k for k, s in enumerate(body) if s is found), 0)
    first = place
    while first and isinstance(body[first - 1], Let):
        first -= 1
    values = body[first:place]
    if holder is None or not values:
        raise ScheduleError(f"no value is bound right before {loop}")
    if lost := {e.buffer.memory for e in loads_of(values)} & _written(found.body):
        raise ScheduleError(f"{loop} writes {min(lost)}, from which a value before it is read")
    names = {v.name for v in values if isinstance(v, Let)}
    if later := names & values_of(body[place + 1 :]):
        raise ScheduleError(f"{min(later)} is used after {loop} too")
    inside = replace(found, body=(*values, *found.body))
    rest = (*body[:first], inside, *body[place + 1 :])
    if isinstance(holder, For):
        return at(kernel, holder.var, lambda f: replace(f, body=rest))
    made = rest[0] if len(rest) == 1 else replace(holder, body=rest)
    return replace(kernel, stages=tuple(made if s is holder else s for s in kernel.stages))


def _path(stmt: Stmt, found: For) -> Stmt:
    """A statement with only those others in it that lead to a loop."""
    if stmt is found or not isinstance(stmt, For | Block):
        return stmt
    inner = next(s for s in stmt.body if any(x is found for x in walk((s,))))
    return replace(stmt, body=(_path(inner, found),))


@dataclass(frozen=True)
class _Elementwise:
    """A stage that computes a buffer, one element per iteration of perfect loops.

    loops: their variables in the order of the buffer's axes.
    """

    buffer: Buffer
    stage: Stmt
    store: Store
    loops: list[str]

    @property
    def reads(self) -> set[str]:
        """The memory it is computed from."""
        return {e.buffer.memory for e in loads_of((self.stage,))}


def _temporary(kernel: Kernel, buffer: str) -> Buffer:
    whole = buffer_named(kernel, buffer)
    if whole.role not in ("temp", "local"):
        raise ScheduleError(f"{buffer} is passed by the caller: it must be in memory")
    return whole


def _elementwise(kernel: Kernel, whole: Buffer) -> _Elementwise:
    if whole.role == "input":
        raise ScheduleError(f"{whole.name} is passed by the caller: it is not computed here")
    writers = [s for s in kernel.stages if any(a.writes for a in accesses((s,), whole))]
    if len(writers) != 1:
        raise ScheduleError(f"{whole.name} is not computed by one stage")
    *loops, store = walk((writers[0],))
    if not isinstance(store, Store) or not all(isinstance(s, For) for s in loops):
        raise ScheduleError(f"{whole.name} is not computed by one statement in perfect loops")
    if len(accesses((writers[0],), whole)) > 1:
        raise ScheduleError(f"{whole.name} is computed from itself")
    extents = {s.var: upper(s.extent) for s in loops if isinstance(s, For)}
    names = [v for i in store.indices if isinstance(i, Affine) for v, _ in i.terms]
    plain = tuple(map(loop_var, names))
    same = [_same(i, p) for i, p in zip(store.indices, plain, strict=False)]
    whole_axes = [extents.get(v) == n for v, n in zip(names, whole.shape, strict=False)]
    if not (len(names) == len(whole.shape) == len(extents) and all(same + whole_axes)):
        raise ScheduleError(f"{whole.name} is not computed one element per iteration")
    return _Elementwise(whole, writers[0], store, names)


def _same(a: Expr, b: Affine) -> bool:
    return isinstance(a, Affine) and a.terms == b.terms and a.constant == b.constant


def _source(made: _Elementwise, producer: Stmt) -> Buffer:
    """The one buffer that the producer computes and the result is made from, element by element."""
    loads = [e for e in loads_of((made.store,)) if e.buffer.memory in _written((producer,))]
    if len({e.buffer for e in loads}) != 1:
        raise ScheduleError(f"{made.buffer.name} is not made from one result of these loops")
    plain = tuple(map(loop_var, made.loops))
    for load in loads:
        pairs = zip(load.indices, plain, strict=False)
        if len(load.indices) != len(plain) or not all(_same(i, p) for i, p in pairs):
            raise ScheduleError(f"{made.buffer.name} is not made element by element")
    return loads[0].buffer


def _written(stmts: Iterable[Stmt]) -> set[str]:
    """The memory that is written."""
    found = set()
    for stmt in walk(tuple(stmts)):
        if isinstance(stmt, Store | Accumulate):
            found.add(stmt.buffer.memory)
        elif isinstance(stmt, Call):
            found.add(stmt.buffers[0].memory)
    return found


def _touched(stmts: Iterable[Stmt]) -> set[str]:
    """The memory that is read or written."""
    stmts = tuple(stmts)
    return _written(stmts) | {e.buffer.memory for e in loads_of(stmts)}
