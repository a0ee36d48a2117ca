"""Two loops walked as one: nested ones over axes that are one in memory, and neighbours."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import pairwise

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Buffer,
    Call,
    Expr,
    For,
    Kernel,
    Load,
    Prefetch,
    Stmt,
    Store,
    affine,
    bodies,
    buffers_in,
    exprs_of,
    index_add,
    index_scale,
    loop_var,
    map_expr,
    map_stmt,
    walk,
    walk_expr,
)
from nbcomp.schedule.rewriting import (
    constant_extent,
    find,
    mentions,
    nested,
    replace_in,
    splice,
    stage_of,
    substitute,
)
from nbcomp.types import INT64

ONE = (
    "two loops can be fused that walk two axes of each array they index which lie in memory as one"
)


def fuse(kernel: Kernel, outer: str, inner: str) -> Kernel:
    """`for i in 0..m: for j in 0..n: S(x[i, j])`  ->  `for i in 0..m*n: S(x[i])`

    Legal where every buffer that is indexed by either is indexed by both, along two axes, in
    whatever order, that lie in memory as one; those buffers are seen with the two as one axis.
    """
    stage = stage_of(kernel, outer)
    found, below = nested(kernel, outer, inner)
    rows, columns = constant_extent(found), constant_extent(below)
    merged = _Merge(outer, inner, columns)
    for stmt in walk(below.body):
        merged.check(stmt)
    flat = merged.buffers(kernel, found)
    memo: dict[int, Expr] = {}

    def expr(e: Expr) -> Expr:
        return map_expr(e, lambda x: merged.load(x, flat, expr), memo)

    def stmt_of(s: Stmt) -> Stmt:
        if isinstance(s, Store | Accumulate) and s.buffer in merged.axes:
            indices = merged.indices(s.buffer, s.indices)
            return replace(s, buffer=flat[s.buffer], indices=indices, value=expr(s.value))
        return map_stmt(s, expr, lambda b: flat.get(b, b), stmt_of)

    body = tuple(map(stmt_of, below.body))
    made = For(outer, affine(rows * columns), body, location=found.location)
    renamed = {b: f for b, f in flat.items() if not f.alias}
    stages = tuple(
        replace_in(s, found, made, lambda b: renamed.get(b, b)) if s is stage else s
        for s in kernel.stages
    )
    return replace(kernel, stages=stages, buffers=_declared(kernel, stages, flat))


class _Merge:
    """Two loop variables become one: which buffers see them, at which axes (outer, inner)."""

    def __init__(self, outer: str, inner: str, extent: int) -> None:
        self.outer, self.inner, self.extent = outer, inner, extent
        self.axes: dict[Buffer, tuple[int, int]] = {}
        self.free: set[Buffer] = set()

    def check(self, stmt: Stmt) -> None:
        if isinstance(stmt, Store | Accumulate):
            self.access(stmt.buffer, stmt.indices)
        if isinstance(stmt, Call):
            raise ScheduleError(f"{stmt.fn} is called inside the loops")
        if isinstance(stmt, Prefetch):
            raise ScheduleError(f"{stmt.buffer.name} is fetched ahead: that comes after fusing")
        if isinstance(stmt, For) and self.mentions(stmt.extent):
            raise ScheduleError(f"the extent of {stmt.var} depends on {self.outer} or {self.inner}")
        self.check_values(stmt)

    def check_values(self, stmt: Stmt) -> None:
        """Loop variables may only be used as indices."""
        inside: set[int] = set()
        found = list(exprs_of(stmt))
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
        return mentions(e, self.outer) or mentions(e, self.inner)

    def access(self, buffer: Buffer, indices: tuple[Expr, ...]) -> None:
        places = [k for k, i in enumerate(indices) if self.mentions(i)]
        if not places:
            self.free.add(buffer)
        elif len(places) == 2:
            outer, inner = sorted(places, key=lambda k: mentions(indices[k], self.inner))
            self.pair(buffer, (outer, inner), indices[outer], indices[inner])
        else:
            raise ScheduleError(
                f"{buffer.name} is not walked along both {self.outer} and {self.inner}", hint=ONE
            )
        if buffer in self.free and buffer in self.axes:
            raise ScheduleError(f"{buffer.name} is read in two ways")

    def pair(self, buffer: Buffer, axes: tuple[int, int], first: Expr, second: Expr) -> None:
        outer, inner = axes
        plain = (
            isinstance(first, Affine)
            and isinstance(second, Affine)
            and dict(first.terms).get(self.outer) == 1
            and not mentions(first, self.inner)
            and second.terms == ((self.inner, 1),)
            and second.constant == 0
            and buffer.shape[inner] == self.extent
            and buffer.strides[outer] == buffer.strides[inner] * self.extent
        )
        if not plain or self.axes.setdefault(buffer, axes) != axes:
            why = f"{self.outer} and {self.inner} are not one axis of {buffer.name}"
            raise ScheduleError(why, hint=ONE)

    def indices(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The index into the merged buffer: the new variable is outer·extent + inner."""
        outer, inner = self.axes[buffer]
        first = indices[outer]
        assert isinstance(first, Affine)
        rest = Affine(INT64, tuple(t for t in first.terms if t[0] != self.outer), first.constant)
        place = index_add(index_scale(rest, self.extent), loop_var(self.outer))
        return tuple(place if k == outer else i for k, i in enumerate(indices) if k != inner)

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
        for buffer, (outer, inner) in self.axes.items():
            left = [k for k in range(len(buffer.shape)) if k != inner]
            shape = tuple(buffer.shape[k] * (self.extent if k == outer else 1) for k in left)
            strides = tuple(buffer.strides[inner if k == outer else k] for k in left)
            name, alias = buffer.name, buffer.alias
            if buffer in elsewhere or buffer.alias:
                name = f"{buffer.memory}_{'x'.join(map(str, shape))}"
                alias = buffer.memory
            made[buffer] = replace(buffer, shape=shape, strides=strides, name=name, alias=alias)
        return made


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


def join(kernel: Kernel, first: str, second: str) -> Kernel:
    """`for i in 0..n: A(i); for j in 0..n: B(j)`  ->  `for i in 0..n: (A(i); B(i))`

    The loops follow each other.  Legal where an iteration of the second touches nothing that
    another iteration of the first has written, nor writes what another has touched.
    """
    one, two = find(kernel, first), find(kernel, second)
    if constant_extent(one) != constant_extent(two):
        raise ScheduleError(
            f"{first} has {constant_extent(one)} iterations and {second} {constant_extent(two)}"
        )
    body = substitute(two.body, {second: loop_var(first)})
    if why := crossing(one, body):
        raise ScheduleError(f"{first} and {second} cannot be joined: {why}")
    around = [kernel.stages, *(b for s in walk(kernel.stages) for b in bodies(s))]
    if not any(a is one and b is two for stmts in around for a, b in pairwise(stmts)):
        raise ScheduleError(f"{second} does not follow {first}")
    joined = replace(one, body=(*one.body, *body))
    return splice(splice(kernel, two, ()), one, (joined,))


def crossing(one: For, body: tuple[Stmt, ...], among: Collection[str] = ()) -> str:
    """What different iterations of two loops, the second in the first one's variable, share.

    among: the memory that counts; all of it where none is given.
    """
    touched = {b.memory for s in (*one.body, *body) for b in buffers_in(s)}
    for memory in touched.intersection(among) if among else touched:
        before, after = _touches(one.body, memory), _touches(body, memory)
        for writes, indices in before:
            for rewrites, others in after:
                apart = any(_apart(a, b, one.var) for a, b in zip(indices, others, strict=False))
                if (writes or rewrites) and not (apart and len(indices) == len(others)):
                    return f"other iterations touch {memory} too"
    return ""


def _touches(body: tuple[Stmt, ...], memory: str) -> list[tuple[bool, tuple[Expr, ...]]]:
    """Every access to a memory: whether it writes, and where; a library's may be anywhere."""
    found: list[tuple[bool, tuple[Expr, ...]]] = []
    for stmt in walk(body):
        if isinstance(stmt, Store | Accumulate) and stmt.buffer.memory == memory:
            found.append((True, stmt.indices))
        if isinstance(stmt, Call):
            found += [(True, ()) for b in stmt.buffers if b.memory == memory]
        for e in exprs_of(stmt):
            if isinstance(e, Load) and e.buffer.memory == memory:
                found.append((False, e.indices))
    return found


def _apart(a: Expr, b: Expr, var: str) -> bool:
    """Whether an index is another one whenever a loop's variable is another."""
    if not (isinstance(a, Affine) and isinstance(b, Affine)):
        return False
    return a.terms == b.terms == ((var, dict(a.terms).get(var, 0)),) and a.constant == b.constant
