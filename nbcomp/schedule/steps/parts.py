"""A sum in as many parts as there are cores: each a core's, in memory, then added up.

Knows loops; not which sums are worth it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count as count_from

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Alloc,
    Buffer,
    For,
    Kernel,
    Load,
    Stmt,
    Store,
    affine,
    index_add,
    index_scale,
    loop_var,
    walk,
)
from nbcomp.schedule.rewriting import (
    constant_extent,
    find,
    names_in,
    remapped,
    splice,
    stage_of,
    substitute,
)
from nbcomp.types import INT64, contiguous_strides


def split_sum(kernel: Kernel, loop: str, parts: int) -> Kernel:
    """`for j: (alloc t[]; t = 0; for k in 0..n: t += x; S(t))`
    ->  `for k_o in 0..p: for j: (alloc t[]; t = 0; for k in 0..n/p: t += x; parts[k_o, j] = t)`,
    `for j: (alloc t[]; t = 0; for k_o: t += parts[k_o, j]; S(t))`

    For perfect loops that are a stage.  The parts are in memory, so that each may be a core's;
    terms that fill no part are added with them.  Raises ScheduleError for loops of other forms, and
    for fewer than two parts or more than there are terms.
    """
    around, terms = _nest(kernel, loop)
    count = constant_extent(terms)
    if not 2 <= parts <= count:
        raise ScheduleError(
            f"the {count} terms of {loop} cannot be added up in {parts} parts",
            hint=f"parts are 2 to {count}",
        )
    return _Parts(kernel, around, terms, parts).made()


def _nest(kernel: Kernel, loop: str) -> tuple[tuple[For, ...], For]:
    """The perfect loops of a stage around `alloc t[]; t = 0; for k: t += x; …`, and the last."""
    stage, terms = stage_of(kernel, loop), find(kernel, loop)
    around: list[For] = []
    while isinstance(stage, For) and stage is not terms and stage.kind == "serial":
        around.append(stage)
        stage = stage.body[0]
    if not around or not _adds_up(around[-1], terms):
        raise ScheduleError(
            f"{loop} does not add up one element in each iteration of a stage's loops",
            hint="split_sum is for `for j: (t = 0; for k: t += x; …)`, before other steps",
        )
    return tuple(around), terms


def _adds_up(inner: For, terms: For) -> bool:
    """Whether a body is a scalar, what it begins with, the loop that adds to it, and more."""
    if len(inner.body) < 3:
        return False
    first, start, last, *rest = inner.body
    if not isinstance(first, Alloc) or first.buffer.shape or last is not terms:
        return False
    if not isinstance(start, Store) or start.buffer != first.buffer or len(terms.body) != 1:
        return False
    (added,) = terms.body
    sums = isinstance(added, Accumulate) and added.buffer == first.buffer
    return sums and not any(isinstance(s, Alloc | For) for s in walk(tuple(rest)))


class _Parts:
    """The two stages in the place of one."""

    def __init__(self, kernel: Kernel, around: tuple[For, ...], terms: For, count: int) -> None:
        alloc, start, _, *self.rest = around[-1].body
        (added,) = terms.body
        assert isinstance(alloc, Alloc)
        assert isinstance(start, Store)
        assert isinstance(added, Accumulate)
        self.total, self.start, self.added = alloc.buffer, start, added
        self.kernel, self.around, self.terms, self.count = kernel, around, terms, count
        self.each, self.left = divmod(constant_extent(terms), count)
        self.taken = names_in(kernel)
        name, shape = self.name(f"{self.total.name}_parts"), tuple(map(constant_extent, around))
        strides = contiguous_strides((count, *shape))
        self.parts = Buffer(name, self.total.dtype, (count, *shape), strides, "temp")

    def made(self) -> Kernel:
        """The kernel with both."""
        kernel = replace(self.kernel, buffers=(*self.kernel.buffers, self.parts))
        return splice(kernel, self.around[0], (self.first(), self.second()))

    def name(self, base: str) -> str:
        """A name for something new."""
        numbered = (base if k == 1 else f"{base}_{k}" for k in count_from(1))
        name = next(n for n in numbered if n not in self.taken)
        self.taken.add(name)
        return name

    def first(self) -> Stmt:
        """Every part of every element."""
        part, var = self.name(f"{self.terms.var}_o"), self.terms.var
        index = index_add(loop_var(var), index_scale(loop_var(part), self.each))
        body = substitute(self.terms.body, {var: index})
        terms = replace(self.terms, extent=affine(self.each), body=body)
        place = tuple(map(loop_var, (part, *(s.var for s in self.around))))
        value, where = Load(self.total.dtype, self.total, ()), self.added.location
        stored = Store(self.parts, place, value, where)
        inner = _nested(self.around, (Alloc(self.total), self.start, terms, stored))
        return For(part, affine(self.count), (inner,), location=where)

    def second(self) -> Stmt:
        """The parts of every element added up, and what follows."""
        total = replace(self.total, name=self.name(self.total.name))
        part, where = self.name(f"{self.terms.var}_o"), self.added.location
        place = tuple(map(loop_var, (part, *(s.var for s in self.around))))
        value = Load(total.dtype, self.parts, place)
        added = Accumulate(self.total, (), self.added.fn, value, where)
        parts = For(part, affine(self.count), (added,), location=where)
        body = (Alloc(self.total), self.start, parts, *self.left_over(), *self.rest)
        names = {s.var: self.name(s.var) for s in self.around}
        body = substitute(body, {old: loop_var(new) for old, new in names.items()})
        body = remapped(body, lambda b, at: (total, at) if b == self.total else None)
        return _nested([replace(s, var=names[s.var]) for s in self.around], body)

    def left_over(self) -> list[Stmt]:
        """The terms that fill no part."""
        if not self.left:
            return []
        var = self.name(f"{self.terms.var}_p")
        index = Affine(INT64, ((var, 1),), self.each * self.count)
        body = substitute(self.terms.body, {self.terms.var: index})
        return [replace(self.terms, var=var, extent=affine(self.left), body=body)]


def _nested(loops: Sequence[For], body: tuple[Stmt, ...]) -> Stmt:
    """Perfect loops around statements."""
    for loop in reversed(loops):
        body = (replace(loop, body=body),)
    return body[0]
