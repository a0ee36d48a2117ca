"""Sums of neighbouring elements side by side, as registers hold them."""

from __future__ import annotations

from dataclasses import replace

from nbcomp.errors import ScheduleError
from nbcomp.loop.dependence import conflict
from nbcomp.loop.grammar import Alloc, Buffer, Expr, For, Kernel, Let, Stmt, loop_var, walk
from nbcomp.schedule.region import upper
from nbcomp.schedule.rewriting import (
    Place,
    find,
    mentions,
    names_in,
    nested,
    on_stack,
    remapped,
    splice,
    substitute,
)
from nbcomp.types import contiguous_strides


def tile_sums(kernel: Kernel, *loops: str) -> Kernel:
    """`for i: for j: (alloc t[]; t = 0; for k: t += x; S)`
    ->  `alloc t[m, n]; for i: for j: t[i, j] = 0; for k: for i: for j: t[i, j] += x;
    for i: for j: S`

    For a perfect nest, outside in, whose sums are then walked together: the loops move inside those
    of the sums, however these are nested.
    """
    if not loops:
        raise ScheduleError("give the loops of a tile, outermost first")
    nest = [find(kernel, loops[0])]
    for var in loops[1:]:
        nest.append(nested(kernel, nest[-1].var, var)[1])
    for loop in nest:
        if why := conflict(loop):
            raise why
    body = nest[-1].body
    for stmt in walk(body):
        if isinstance(stmt, For) and any(mentions(stmt.extent, v) for v in loops):
            raise ScheduleError(f"the extent of {stmt.var} is not the same for the whole tile")
    tile = _Tile(nest, names_in(kernel))
    grown = {s.buffer: tile.grown(s.buffer) for s in walk(body) if isinstance(s, Alloc)}
    for buffer in grown.values():
        on_stack(buffer, f"for a tile of {', '.join(loops)}")
    pieces: list[Stmt] = [Alloc(grown[s.buffer]) for s in body if isinstance(s, Alloc)]
    for part in _parts(body):
        pieces += tile.around(part, grown)
    return splice(kernel, nest[0], tuple(pieces))


def _parts(body: tuple[Stmt, ...]) -> list[tuple[Stmt, ...]]:
    """The statements one by one; from a bound value on, all together."""
    stmts = [s for s in body if not isinstance(s, Alloc)]
    first = next((k for k, s in enumerate(stmts) if isinstance(s, Let)), len(stmts))
    return [*((s,) for s in stmts[:first]), *([tuple(stmts[first:])] if stmts[first:] else [])]


class _Tile:
    """The loops of a tile, which are written around each statement under names of its own."""

    def __init__(self, nest: list[For], taken: set[str]) -> None:
        self.nest, self.taken = nest, taken
        self.fresh = False  # the first copy keeps the names

    def grown(self, buffer: Buffer) -> Buffer:
        """A buffer with an element (or row) for each iteration of the tile."""
        sizes = []
        for loop in self.nest:
            if (most := upper(loop.extent)) is None:
                raise ScheduleError(f"the extent of {loop.var} is not a constant")
            sizes.append(most)
        shape = (*sizes, *buffer.shape)
        return replace(buffer, shape=shape, strides=contiguous_strides(shape))

    def around(self, part: tuple[Stmt, ...], grown: dict[Buffer, Buffer]) -> list[Stmt]:
        """The loops of the tile around statements: inside a loop that is all there is."""
        if len(part) == 1 and isinstance(part[0], For):
            inner = [s for p in _parts(part[0].body) for s in self.around(p, grown)]
            here = (s.buffer for s in part[0].body if isinstance(s, Alloc))
            allocated = tuple(Alloc(grown[b]) for b in here)
            return [replace(part[0], body=(*allocated, *inner))]
        names = {loop.var: self.name(loop.var) for loop in self.nest}
        self.fresh = True
        body = substitute(part, {old: loop_var(new) for old, new in names.items() if old != new})
        place = tuple(loop_var(names[loop.var]) for loop in self.nest)

        def larger(b: Buffer, indices: tuple[Expr, ...]) -> Place | None:
            return (grown[b], (*place, *indices)) if b in grown else None

        body = remapped(body, larger)
        for loop in reversed(self.nest):
            body = (replace(loop, var=names[loop.var], body=body),)
        return list(body)

    def name(self, var: str) -> str:
        """The loop's own name, once; then others."""
        if not self.fresh:
            return var
        count = 2
        while f"{var}_{count}" in self.taken:
            count += 1
        self.taken.add(f"{var}_{count}")
        return f"{var}_{count}"
