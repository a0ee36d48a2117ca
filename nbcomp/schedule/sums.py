"""The default schedule of sums of products within larger loops: convolutions, attention.

As `products` does for a product that is a kernel of its own, the result is computed in tiles whose
sums stay in registers; but the loops of the sums may be nested in any way, and other loops and
statements may be around them.  The operands are where they should be already: lowering laid them
out so that the columns of a tile are neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import (
    Accumulate,
    Alloc,
    Apply,
    Expr,
    For,
    Kernel,
    Load,
    Stmt,
    Store,
    bodies,
    steps_of,
    variables,
    walk,
    walk_expr,
)
from nbcomp.machine import Machine
from nbcomp.schedule.decisions import Decide, among, half_width, usual
from nbcomp.schedule.rewriting import constant_extent, find
from nbcomp.schedule.stepwise import Stepwise
from nbcomp.sizes import Size, hint

VECTORS = 3  # of columns in a tile
ALONE = 8  # where a row of the result shares nothing with the next
SUMS = {64: 24, 32: 12, 16: 12}  # vectors of sums, by bytes of a vector: the other registers are
TALL, BROAD = (1, 2, 4, 6, 7, 8, 10, 12, 14, 16), (1, 2, 3, 4, 5, 6, 7, 8)  # for the operands
NARROW = 4  # vectors of columns that one tile covers: its rows are then as many as registers allow
REGISTERS = {64: 31, 32: 15, 16: 15}  # there, but for one with an element for all lanes
LATENCY = 4  # additions that must be under way for one to end in each cycle
START = 1.5  # cycles that a tile costs for each term, but for its additions
PARTS = 2  # of the work, for each core
NEAR = 0.5  # of the second cache: weights that all cores read stay there
TAPS = 16  # terms of a sum that are written out; neighbouring rows then share what they read
NEIGHBOURS = 4  # rows that do


@dataclass(frozen=True)
class Nest:
    """The loops of one result: those around, those over rows (or "") and columns, and the sums.

    top: whether these loops are a stage, and so what the cores share.
    """

    around: tuple[str, ...]
    rows: str
    columns: str
    sums: tuple[Accumulate, ...]
    top: bool


def block_sums(kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
    """Compute sums of products in tiles that stay in registers."""
    for nest in list(nests(kernel)):
        try:
            kernel = _Blocking(kernel, nest, machine, decide).run()
        except ScheduleError:  # not as simple as it looked: the other steps do what they can
            continue
    return kernel


def nests(kernel: Kernel) -> Iterator[Nest]:
    """All results that are sums of products, one element per iteration of perfect loops."""
    for stage in kernel.stages:
        yield from _within(stage, (), True)


def _within(stmt: Stmt, around: tuple[str, ...], top: bool) -> Iterator[Nest]:
    if not isinstance(stmt, For):
        for inner in (s for body in bodies(stmt) for s in body):
            yield from _within(inner, (), False)
        return
    if found := _sums(stmt):
        yield _nest(stmt, around, found, top)
    elif stmt.kind == "serial":
        perfect = len(stmt.body) == 1
        for inner in stmt.body:
            yield from _within(inner, (*around, stmt.var) if perfect else (), top and perfect)


def _sums(loop: For) -> tuple[Accumulate, ...]:
    """The sums of a loop over columns: a local of one element, to which inner loops add."""
    totals = {s.buffer for s in loop.body if isinstance(s, Alloc) and not s.buffer.shape}
    inner = tuple(s for s in loop.body if isinstance(s, For))
    added = tuple(s for s in walk(inner) if isinstance(s, Accumulate))
    plain = all(isinstance(s, For | Accumulate) for s in walk(inner))
    if loop.kind != "serial" or not added or not plain:
        return ()
    return added if all(s.buffer in totals and _tiled(s, loop.var) for s in added) else ()


def _tiled(total: Accumulate, columns: str) -> bool:
    """Whether a sum is one of products, or of elements that are neighbours along the columns."""
    if total.contract:
        return True
    steps = [steps_of(e).get(columns, 0) for e in walk_expr(total.value) if isinstance(e, Load)]
    return len(steps) == 1 and steps[0] == 1


def _nest(loop: For, around: tuple[str, ...], sums: tuple[Accumulate, ...], top: bool) -> Nest:
    rows = around[-1] if around and sums[0].contract else ""
    if rows:
        left, right = _factors(sums[0])
        rows = rows if _moves(left, rows) and not _moves(right, rows) else ""
    return Nest(around[:-1] if rows else around, rows, loop.var, sums, top)


def _factors(total: Accumulate) -> tuple[Expr, Expr]:
    """What is the same along a row of the result, and what is not."""
    assert isinstance(total.value, Apply)
    left, right = total.value.args
    return left, right


def _loads(factor: Expr) -> Iterator[Load]:
    return (e for e in walk_expr(factor) if isinstance(e, Load))


def _moves(factor: Expr, var: str) -> bool:
    """Whether a factor depends on a loop."""
    return var in variables(factor)


class _Blocking(Stepwise):
    """The steps for one nest."""

    def __init__(self, kernel: Kernel, nest: Nest, machine: Machine, decide: Decide) -> None:
        super().__init__(kernel)
        self.nest, self.machine, self.decide = nest, machine, decide
        self.full = machine.vector_bytes // nest.sums[0].buffer.dtype.itemsize
        self.lanes = half_width(decide, f"a tile of {nest.columns}", self.full)
        self.room = SUMS.get(machine.vector_bytes, min(SUMS.values()))
        self.registers = REGISTERS.get(machine.vector_bytes, min(REGISTERS.values()))
        self.short = _terms(find(kernel, nest.columns).body) <= TAPS
        self.windows = not nest.rows and self.short and bool(nest.around)
        self.rows = nest.around[-1] if self.windows else nest.rows

    def extent(self, loop: str) -> int:
        """The iterations of a loop; one where there is none.  Tiles need to know them."""
        extent = constant_extent(find(self.kernel, loop)) if loop else 1
        if isinstance(extent, Size):
            raise ScheduleError(f"the extent of {loop} is open")
        return extent

    def open(self, loop: str) -> bool:
        """Whether a loop has another number of iterations in each call."""
        return bool(loop) and isinstance(constant_extent(find(self.kernel, loop)), Size)

    def run(self) -> Kernel:
        if self.nest.top:
            self.spread()
        rows, columns = self.rows, self.nest.columns
        width = self.vectors(columns) * self.lanes
        if not width:
            raise ScheduleError("there are no columns")
        height = self.height(columns, -(-width // self.lanes) * len(self.nest.sums))
        for over, along, tall in self.sides(rows, columns, height):
            for inner, across in self.stretches(over, along, width):
                self.block(inner, across, tall, width)
        return self.kernel

    def vectors(self, columns: str) -> int:
        """Vectors of columns in a tile."""
        extent = self.extent(columns)
        most, whole = -(-extent // self.lanes), extent // self.lanes
        broad = VECTORS if self.rows else ALONE
        if self.narrow(columns):
            broad = most
        elif self.nest.rows and whole % VECTORS and whole % (VECTORS - 1) == 0:
            broad = VECTORS - 1
        broad = min(broad, most)
        return self.decide(f"vectors of a tile of {columns}", broad, among(broad, BROAD, most))

    def narrow(self, columns: str) -> bool:
        """Whether the columns are a few vectors, whole or half: one tile is as broad as they."""
        extent = self.extent(columns)
        fits = extent <= NARROW * self.lanes and extent % max(self.lanes // 2, 1) == 0
        return bool(self.nest.rows) and fits

    def height(self, columns: str, broad: int) -> int:
        """Rows of a tile: as many as there is room for, if that leaves no rest."""
        if not self.rows:
            return 1
        if self.open(self.rows):
            most = max(self.room // broad, 1)
            return 1 << (most.bit_length() - 1)
        rows = self.extent(self.rows)
        if self.narrow(columns):
            tall = self.fitting(rows, broad)
        else:
            most = min(self.room // broad, NEIGHBOURS if self.windows else max(TALL), rows)
            most = max(1, most)
            whole = next(n for n in range(most, 0, -1) if rows % n == 0)
            tall = whole if 2 * whole > most else most
        fitting = (n for n in TALL if n * broad <= self.registers)
        return self.decide(f"rows of a tile of {columns}", tall, among(tall, fitting, rows))

    def fitting(self, rows: int, broad: int) -> int:
        """Rows of a tile of this many vectors for which all tiles together cost least."""

        def cycles(tall: int) -> float:
            return max(tall * broad, LATENCY) + START if tall else 0.0

        def total(tall: int) -> tuple[float, int]:
            return rows // tall * cycles(tall) + cycles(rows % tall), rows % tall

        most = max(1, min((self.registers - broad) // broad, max(TALL), rows))
        return min(range(most, 0, -1), key=total)

    def spread(self) -> None:
        """See that the outermost loop has enough iterations for all cores."""
        around, rows, enough = self.nest.around, self.nest.rows, PARTS * self.machine.cores
        extents = {v: hint(constant_extent(find(self.kernel, v))) for v in around}
        long = [v for v, n in extents.items() if n >= enough]
        if long:
            best = long[0] if long[0] == around[0] else max(long, key=extents.__getitem__)
            best = next((v for v in long if self.stays(v, extents[v])), best)
            if best != around[0]:
                with suppress(ScheduleError):  # its iterations need each other, as steps do
                    self.do("reorder", best, *(v for v in around if v != best))
            return
        if self.open(rows):
            return
        length = self.extent(rows)
        parts = next((n for n in range(enough, 2 * enough) if length % n == 0), 0)
        if rows and parts and length // parts >= max(TALL) // 2:
            (outer,) = self.do("split", rows, length // parts)
            if around:
                self.do("reorder", outer, *around, rows)

    def stays(self, loop: str, extent: int) -> bool:
        """Whether cores that share a loop have as much of it each, and read what they wrote in the
        kernels before: a part of what is the same along rows, while all of the rest, the weights,
        is in their own caches."""
        if not self.nest.rows or extent % self.machine.cores:
            return False
        left, right = (next(_loads(f), None) for f in _factors(self.nest.sums[0]))
        if left is None or right is None:
            return False
        near = NEAR * self.machine.l2 >= right.buffer.nbytes
        return bool(near and _moves(left, loop) and not _moves(right, loop))

    def sides(self, rows: str, columns: str, height: int) -> Iterator[tuple[str, str, int]]:
        """Rows and columns of what whole tiles cover, and of the rows that are left; how tall the
        tiles are.  Rows that differ in number from call to call are left to half as tall ones."""
        if self.open(rows):
            while height > 1:
                last = self.do("peel_rest", rows, height)
                yield rows, columns, height
                rows, columns, height = last[0], last[1], height // 2
            yield "", columns, 1
            return
        rest = self.extent(rows) % height
        if rest:
            last = self.do("peel", rows, rest)
            yield last[0], last[1], height
        yield rows, columns, height

    def stretches(self, rows: str, columns: str, width: int) -> Iterator[tuple[str, str]]:
        """Rows and columns of what whole tiles cover, and of the vectors and the lanes left."""
        rest = self.extent(columns) % width
        lanes = rest % self.lanes if rest % self.lanes <= self.lanes // 2 else 0
        found = [columns]
        for count in (lanes, rest - lanes):
            if 0 < count < self.extent(columns):
                found.insert(1, self.do("peel", columns, count)[0])
        over = [rows]
        if rows and len(found) > 1:
            over += self.do("distribute", rows)
        yield from zip(over if rows else [""] * len(found), found, strict=True)

    def block(self, rows: str, columns: str, height: int, width: int) -> None:
        """One part of the result in tiles."""
        outer: list[str] = []
        across = self.extent(columns) > width
        if rows and (self.open(rows) or self.extent(rows) > height):
            outer += self.do("split", rows, height)
        if across:
            over = self.do("split", columns, width)
            outer = [*outer, *over] if self.windows else [*over, *outer]  # as the image lies
        loops = [v for v in (rows, columns) if v]
        if across and rows:
            self.do("reorder", *outer, *loops)
        width = self.extent(columns)
        terms = [s.var for s in walk(find(self.kernel, columns).body) if isinstance(s, For)]
        for var in terms if self.short else ():
            self.do("unroll", var)
        made = [*loops, *self.do("tile_sums", *loops)]
        lanes = self.lanes
        while lanes // 2 >= width:  # as `lanes_of` has it
            lanes //= 2
        if rows and width % lanes:  # whole vectors need no mask, which would keep them in memory
            (total,) = (s for s in walk(find(self.kernel, columns).body) if isinstance(s, Store))
            self.do("pad", total.buffer.name, -(-width // lanes) * lanes)
        for var in made:
            if any(isinstance(s, For) for s in walk(find(self.kernel, var).body)):
                self.do("unroll", var)
            else:
                narrow = {} if self.lanes == self.full else {"lanes": self.lanes}
                self.do("vectorize", var, unroll=-(-width // self.lanes), **narrow)


def _terms(body: tuple[Stmt, ...]) -> int:
    """How many times a body adds to something."""
    total = sum(isinstance(s, Accumulate) for s in body)
    for loop in body:
        if isinstance(loop, For):
            total += constant_extent(loop) * _terms(loop.body)
    return total
