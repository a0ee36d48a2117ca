"""Schedule steps: pure functions from loops to loops.

Each addresses a loop by its variable's name, checks that the result means the same, and raises
`ScheduleError` in the user's words where it would not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Alloc,
    Apply,
    Buffer,
    Call,
    Expr,
    For,
    Kernel,
    Load,
    Stmt,
    Store,
    affine,
    bodies,
    buffers_in,
    expressions,
    index_add,
    index_scale,
    loop_var,
    map_expr,
    map_stmt,
    walk,
    walk_expr,
)
from nbcomp.schedule.dependence import conflict, parting
from nbcomp.types import INT64


def vectorize(kernel: Kernel, loop: str, unroll: int = 1) -> Kernel:
    """`for i in 0..n: S(i)`  ->  `for i in 0..n vector unroll u: S(i)`"""

    def change(found: For) -> Stmt:
        inner = [s.var for s in walk(found.body) if isinstance(s, For) and s.kind == "vector"]
        if inner:
            raise ScheduleError(f"loop {inner[0]} inside {loop} is a vector loop already")
        if any(isinstance(s, Call) for s in walk(found.body)):
            raise ScheduleError(f"a library routine is called inside {loop}")
        if unroll < 1:
            raise ScheduleError(f"{loop} cannot run {unroll} vectors at a time")
        if why := conflict(found):
            raise ScheduleError(why)
        if what := parting(found):
            raise ScheduleError(f"{what} inside {loop} is not the same for all lanes")
        return replace(found, kind="vector", unroll=unroll)

    return _at(kernel, loop, change)


def interleave(kernel: Kernel, loop: str, count: int) -> Kernel:
    """`for i in 0..n vector: S(i)`  ->  `for i in 0..n vector unroll u: S(i)`, u at a time"""

    def change(found: For) -> Stmt:
        if found.kind != "vector":
            raise ScheduleError(f"{loop} is not a vector loop")
        if count < 1:
            raise ScheduleError(f"{loop} cannot run {count} vectors at a time")
        return replace(found, unroll=count)

    return _at(kernel, loop, change)


def parallelize(kernel: Kernel, loop: str) -> Kernel:
    """`for i in 0..n: S(i)`  ->  `for i in 0..n parallel: S(i)`, for an outermost loop"""
    top = [s for s in kernel.stages if isinstance(s, For) and s.var == loop]
    if not top:
        raise ScheduleError(
            f"{loop} is not an outermost loop: only those are spread over the cores"
        )
    if not isinstance(top[0].extent, Affine):
        raise ScheduleError(f"the extent of {loop} is not known before it starts")
    if why := conflict(top[0], sums=False):
        raise ScheduleError(why)
    return _at(kernel, loop, lambda found: replace(found, kind="parallel"))


def unroll(kernel: Kernel, loop: str) -> Kernel:
    """`for i in 0..2: S(i)`  ->  `S(0); S(1)`, when code is generated"""

    def change(found: For) -> Stmt:
        if not isinstance(found.extent, Affine) or found.extent.terms:
            raise ScheduleError(f"the extent of {loop} is not a constant")
        return replace(found, kind="unroll")

    return _at(kernel, loop, change)


def split(kernel: Kernel, loop: str, by: int) -> Kernel:
    """`for i in 0..n: S(i)`  ->  `for i_o in 0..⌈n/b⌉: for i in 0..min(b, n-b*i_o): S(b*i_o+i)`"""
    if by < 1:
        raise ScheduleError(f"{loop} cannot be split into blocks of {by}")
    outer = _free_name(kernel, f"{loop}_o")

    def change(found: For) -> Stmt:
        if not isinstance(found.extent, Affine) or found.extent.terms:
            raise ScheduleError(f"the extent of {loop} is not a constant")
        n = found.extent.constant
        place = index_add(index_scale(loop_var(outer), by), loop_var(loop))
        body = _substitute(found.body, loop, place)
        inner: Expr = affine(by)
        if n % by:
            left = index_scale(loop_var(outer), -by, n)
            inner = Apply(INT64, "minimum", (affine(by), left))
        made = replace(found, extent=inner, body=body)
        return For(outer, affine(-(-n // by)), (made,), location=found.location)

    return _at(kernel, loop, change)


def split_product(kernel: Kernel, stage: int, parts: int, axis: int) -> Kernel:
    """`call gemm(c, a, b)`  ->  `for p in 0..parts: call gemm(c, a, b) for [its rows or columns]`

    stage: the position of the call among the kernel's stages.  axis: 0 for rows, 1 for columns.
    """
    call = kernel.stages[stage]
    if not isinstance(call, Call) or call.box:
        raise ScheduleError(f"stage {stage} is not a whole product")
    shape = call.buffers[0].shape[-2:]
    chunk = -(-shape[axis] // parts)
    chunk += -chunk % 16  # whole register blocks
    parts = -(-shape[axis] // chunk)
    part_name = _free_name(kernel, "p")
    part = loop_var(part_name)
    start = index_scale(part, chunk)
    count: Expr = affine(chunk)
    if shape[axis] % chunk:
        left = index_scale(part, -chunk, shape[axis])
        count = Apply(INT64, "minimum", (affine(chunk), left))
    whole: tuple[Expr, Expr] = (affine(0), affine(shape[1 - axis]))
    box = ((start, count), whole) if axis == 0 else (whole, (start, count))
    made = For(part_name, affine(parts), (replace(call, box=box),), location=call.location)
    stages = (*kernel.stages[:stage], made, *kernel.stages[stage + 1 :])
    return replace(kernel, stages=stages)


def interchange(kernel: Kernel, outer: str, inner: str) -> Kernel:
    """`for i: for j: S`  ->  `for j: for i: S`, for a perfect nest with independent iterations"""

    def change(found: For) -> Stmt:
        nested = _only_loop(found, inner)
        if _mentions(nested.extent, outer):
            raise ScheduleError(f"the extent of {inner} depends on {outer}")
        if why := conflict(found) or conflict(nested):
            raise ScheduleError(why)
        return replace(nested, body=(replace(found, body=nested.body),))

    return _at(kernel, outer, change)


def fuse(kernel: Kernel, outer: str, inner: str) -> Kernel:
    """`for i in 0..m: for j in 0..n: S(x[i, j])`  ->  `for i in 0..m*n: S(x[i])`

    Legal where every buffer that is indexed by either is indexed by both, in neighbouring axes that
    are contiguous; those buffers are seen with the two axes as one.
    """
    stage = _stage_of(kernel, outer)
    found = next(s for s in walk((stage,)) if isinstance(s, For) and s.var == outer)
    nested = _only_loop(found, inner)
    if not (isinstance(found.extent, Affine) and isinstance(nested.extent, Affine)):
        raise ScheduleError(f"the extents of {outer} and {inner} are not constants")
    if nested.extent.terms or found.extent.terms:
        raise ScheduleError(f"the extents of {outer} and {inner} are not constants")
    merged = _Merge(outer, inner, nested.extent.constant)
    for stmt in walk(nested.body):
        merged.check(stmt)
    flat = merged.buffers(kernel, found)
    memo: dict[int, Expr] = {}

    def expr(e: Expr) -> Expr:
        return map_expr(e, lambda x: merged.load(x, flat, expr), memo)

    def stmt_of(s: Stmt) -> Stmt:
        if isinstance(s, Store | Accumulate) and s.buffer in merged.axis:
            indices = merged.indices(s.buffer, s.indices)
            return replace(s, buffer=flat[s.buffer], indices=indices, value=expr(s.value))
        return map_stmt(s, expr, lambda b: flat.get(b, b), stmt_of)

    size = found.extent.constant * nested.extent.constant
    body = tuple(map(stmt_of, nested.body))
    made = For(outer, affine(size), body, location=found.location)
    renamed = {b: f for b, f in flat.items() if not f.alias}
    stages = tuple(
        _replace_in(s, found, made, lambda b: renamed.get(b, b)) if s is stage else s
        for s in kernel.stages
    )
    return replace(kernel, stages=stages, buffers=_declared(kernel, stages, flat))


class _Merge:
    """Two loop variables become one: which buffers see them, at which axis."""

    def __init__(self, outer: str, inner: str, extent: int) -> None:
        self.outer, self.inner, self.extent = outer, inner, extent
        self.axis: dict[Buffer, int] = {}
        self.free: set[Buffer] = set()

    def check(self, stmt: Stmt) -> None:
        if isinstance(stmt, Store | Accumulate):
            self.access(stmt.buffer, stmt.indices)
        if isinstance(stmt, Call):
            raise ScheduleError(f"{stmt.fn} is called inside the loops")
        if isinstance(stmt, For) and self.mentions(stmt.extent):
            raise ScheduleError(f"the extent of {stmt.var} depends on {self.outer} or {self.inner}")
        self.check_values(stmt)

    def check_values(self, stmt: Stmt) -> None:
        """Loop variables may only be used as indices."""
        inside: set[int] = set()
        found = [e for root in expressions(stmt) for e in walk_expr(root)]
        for e in found:
            if isinstance(e, Load):
                self.access(e.buffer, e.indices)
                inside.update(id(x) for i in e.indices for x in walk_expr(i))
        if isinstance(stmt, Store | Accumulate):
            inside.update(id(x) for i in stmt.indices for x in walk_expr(i))
        for e in found:
            if isinstance(e, Affine) and id(e) not in inside and self.mentions(e):
                raise ScheduleError(f"{self.outer} and {self.inner} are used as values")

    def mentions(self, e: Expr) -> bool:
        return _mentions(e, self.outer) or _mentions(e, self.inner)

    def access(self, buffer: Buffer, indices: tuple[Expr, ...]) -> None:
        places = [k for k, i in enumerate(indices) if self.mentions(i)]
        if not places:
            self.free.add(buffer)
        elif len(places) == 2 and places[1] == places[0] + 1:
            first, second = indices[places[0]], indices[places[1]]
            self.pair(buffer, places[0], first, second)
        else:
            raise ScheduleError(
                f"{buffer.name} is not read along both {self.outer} and {self.inner}"
            )
        if buffer in self.free and buffer in self.axis:
            raise ScheduleError(f"{buffer.name} is read in two ways")

    def pair(self, buffer: Buffer, axis: int, first: Expr, second: Expr) -> None:
        plain = (
            isinstance(first, Affine)
            and isinstance(second, Affine)
            and dict(first.terms).get(self.outer) == 1
            and not _mentions(first, self.inner)
            and second.terms == ((self.inner, 1),)
            and second.constant == 0
            and buffer.shape[axis + 1] == self.extent
            and buffer.strides[axis] == buffer.strides[axis + 1] * self.extent
        )
        if not plain or self.axis.setdefault(buffer, axis) != axis:
            raise ScheduleError(f"{self.outer} and {self.inner} are not one axis of {buffer.name}")

    def indices(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The index into the merged buffer: the new variable is outer·extent + inner."""
        k = self.axis[buffer]
        first = indices[k]
        assert isinstance(first, Affine)
        rest = Affine(INT64, tuple(t for t in first.terms if t[0] != self.outer), first.constant)
        place = index_add(index_scale(rest, self.extent), loop_var(self.outer))
        return (*indices[:k], place, *indices[k + 2 :])

    def load(
        self, e: Expr, flat: dict[Buffer, Buffer], expr: Callable[[Expr], Expr]
    ) -> Expr | None:
        if not isinstance(e, Load) or e.buffer not in flat:
            return None
        indices = self.indices(e.buffer, e.indices)
        return replace(e, buffer=flat[e.buffer], indices=tuple(map(expr, indices)))

    def buffers(self, kernel: Kernel, loop: Stmt) -> dict[Buffer, Buffer]:
        """Each merged buffer in its new shape, under a new name if it is used outside the loop."""
        elsewhere = {b for s in kernel.stages for b in buffers_in(s, loop)}
        made = {}
        for buffer, k in self.axis.items():
            shape = (*buffer.shape[:k], buffer.shape[k] * self.extent, *buffer.shape[k + 2 :])
            strides = (*buffer.strides[:k], *buffer.strides[k + 1 :])
            name, alias = buffer.name, buffer.alias
            if buffer in elsewhere or buffer.alias:
                name = f"{buffer.memory}_{'x'.join(map(str, shape))}"
                alias = buffer.memory
            made[buffer] = replace(buffer, shape=shape, strides=strides, name=name, alias=alias)
        return made


# ------------------------------------------------------------------------------------- small tools


def _declared(
    kernel: Kernel, stages: tuple[Stmt, ...], flat: dict[Buffer, Buffer]
) -> tuple[Buffer, ...]:
    used = {b for s in stages for b in buffers_in(s)}
    result: list[Buffer] = []
    for buffer in kernel.buffers:
        if buffer in used or buffer not in flat:
            result.append(buffer)
        if buffer in flat:
            result.append(flat[buffer])
    return tuple(dict.fromkeys(result))


def _mentions(e: Expr, var: str) -> bool:
    return any(isinstance(x, Affine) and any(v == var for v, _ in x.terms) for x in walk_expr(e))


def _only_loop(found: For, inner: str) -> For:
    if len(found.body) == 1 and isinstance(found.body[0], For) and found.body[0].var == inner:
        return found.body[0]
    raise ScheduleError(f"{inner} is not the only statement of {found.var}")


def _stage_of(kernel: Kernel, loop: str) -> Stmt:
    for stage in kernel.stages:
        if any(isinstance(s, For) and s.var == loop for s in walk((stage,))):
            return stage
    raise ScheduleError(f"no loop {loop}; the loops are {', '.join(loop_names(kernel))}")


def loop_names(kernel: Kernel) -> list[str]:
    """The variables of all loops, outside in."""
    return [s.var for s in walk(kernel.stages) if isinstance(s, For)]


def _free_name(kernel: Kernel, base: str) -> str:
    """A name for a new loop: `base`, or with a number if there is one already."""
    taken = set(loop_names(kernel))
    numbered = (base if k == 1 else f"{base}_{k}" for k in count(1))
    return next(name for name in numbered if name not in taken)


def _at(kernel: Kernel, loop: str, change: Callable[[For], Stmt]) -> Kernel:
    """The kernel with one loop changed."""
    stage = _stage_of(kernel, loop)
    found = next(s for s in walk((stage,)) if isinstance(s, For) and s.var == loop)
    made = change(found)
    stages = tuple(
        _replace_in(s, found, made, lambda b: b) if s is stage else s for s in kernel.stages
    )
    return replace(kernel, stages=stages)


def _replace_in(stmt: Stmt, old: Stmt, new: Stmt, buffer: Callable[[Buffer], Buffer]) -> Stmt:
    if stmt is old:
        return new
    if isinstance(stmt, Alloc):
        return replace(stmt, buffer=buffer(stmt.buffer))
    if not bodies(stmt):
        return stmt
    return map_stmt(stmt, lambda e: e, lambda b: b, lambda s: _replace_in(s, old, new, buffer))


def _substitute(body: tuple[Stmt, ...], var: str, by: Expr) -> tuple[Stmt, ...]:
    memo: dict[int, Expr] = {}

    def change(e: Expr) -> Expr | None:
        if not isinstance(e, Affine) or all(v != var for v, _ in e.terms):
            return None
        factor = dict(e.terms)[var]
        rest = Affine(INT64, tuple(t for t in e.terms if t[0] != var), e.constant)
        return index_add(rest, index_scale(by, factor))

    return tuple(map_stmt(s, lambda e: map_expr(e, change, memo)) for s in body)
