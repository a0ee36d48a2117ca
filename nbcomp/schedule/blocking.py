"""The schedule of a matrix product in blocks, as steps: tiles in registers, copies in caches.

A `Blocking` says how; `Blocker` takes the steps of the schedule language, one after another, each
noted in the kernel as it would be written by hand.  The walks are

    panels   for j_o: (copy b[:, j_o]; for i_o: tile)
    blocks   for i_b: for j_b: for k_b: (copy a[i_b, k_b]; for j_o: (copy b[k_b, j_o]; for i_o:
             tile))
    dots     for j_o: for i_o: tile, whose lanes are terms of the sum

each without the copies and the loops over blocks that it does not need.  What does not fill a tile
is peeled off and gets smaller tiles of its own.  Knows steps; not why a blocking was chosen
(`products`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import Accumulate, Buffer, For, Kernel, Store, walk
from nbcomp.schedule.rewriting import constant_extent, find
from nbcomp.schedule.stepwise import Stepwise
from nbcomp.sizes import Size

FLIGHT = 4  # vectors of sums that are added to at a time, to hide the latency of an addition
SHORT = 4  # terms at a time that are written out
LINE = 64  # bytes between rows of a copy beyond their length, so that they are not all in one set


@dataclass(frozen=True)
class Factor:
    """An operand: its axis of the result's rows or columns (-1: none), and that of the sum."""

    buffer: Buffer
    own: int
    shared: int

    @property
    def turned(self) -> bool:
        """Whether its elements lie side by side along the sum, not along the result."""
        strides = self.buffer.strides
        return strides[self.shared] == 1 and (self.own < 0 or strides[self.own] != 1)


@dataclass(frozen=True)
class Product:
    """The loops over rows ("" where there is one row), columns and the shared axis; the sum.

    left, right: the operands that are arrays; None for those that are computed.  inner, terms: the
    loop over the terms of a group, and how many there are, where an instruction adds up groups:
    then the shared axis is that of the groups.
    """

    rows: str
    columns: str
    shared: str
    sum: Accumulate
    height: int
    width: int
    depth: int
    left: Factor | None
    right: Factor | None
    inner: str = ""
    terms: int = 1


@dataclass(frozen=True)
class Blocking:
    """How a product is walked.

    height, width: rows and columns of a register tile; `lanes` elements are a vector.  depth: terms
    of the sum at a time, 0 for all.  rows, columns: tiles of rows and panels of columns in a block,
    0 for all; where rows are open, 0 tiles in a block have all rows go panel by panel.  left: the
    part of the left operand that a block reads is copied.  right: whether the right one is read in
    place, copied panel by panel, or packed, once and as a whole.  ahead: how many terms ahead the
    right one is asked for, 0 for not at all.  instruction: what adds up groups of terms for a
    vector of sums.  tiles: what does so for a whole tile, of as many groups as it has rows.
    """

    walk: Literal["panels", "blocks", "dots"]
    height: int
    width: int
    lanes: int
    depth: int = 0
    rows: int = 0
    columns: int = 0
    left: bool = False
    right: Literal["in place", "copied", "packed"] = "in place"
    ahead: int = 0
    instruction: str = ""
    tiles: str = ""


@dataclass(frozen=True)
class Part:
    """A part of the result: its loops over rows ("" for none) and columns, and their extents."""

    rows: str
    columns: str
    height: int
    width: int


class Blocker(Stepwise):
    """Takes the steps of a blocking on one product of a kernel."""

    def __init__(self, kernel: Kernel, product: Product, how: Blocking) -> None:
        super().__init__(kernel)
        self.product = product
        open_rows = isinstance(product.height, Size)
        height = how.height if open_rows else min(how.height, product.height)
        width = min(how.width, product.width)
        self.how = replace(how, height=height, width=width)
        self.instructions: list[tuple[str, str]] = []  # loops over the sums of each, what it is
        self.open = isinstance(product.height, Size)  # rows differ in number from call to call

    def run(self) -> Kernel:
        """The kernel with the product in blocks.  Raises ScheduleError where it cannot be."""
        p = self.product
        for side in list(self.sides(Part(p.rows, p.columns, p.height, p.width))):
            if self.open:
                self.open_rows(side)
                continue
            if self.how.walk == "panels" and side.width > self.how.width:
                self.panels(side)
                continue
            for part in self.bands(side):
                (self.dots if self.how.walk == "dots" else self.block)(part)
        if self.how.right == "packed":
            self.pack()
        for block, name in self.instructions:
            self.do("tensorize", block, name)
        return self.kernel

    @property
    def cuts(self) -> bool:
        """Whether the sum is taken some terms at a time."""
        return 0 < self.how.depth < self.product.depth

    # ------------------------------------------------------------------------------------ parts

    def sides(self, whole: Part) -> Iterator[Part]:
        """The columns that fill tiles, and those that are left, in loops of their own."""
        rest = whole.width % self.how.width
        if not rest:
            yield whole
            return
        (last,) = [v for v in self.do("peel", whole.columns, rest) if self.around_sum(v)]
        below = whole.rows
        if whole.rows:
            (below,) = self.do("distribute", whole.rows)
        yield replace(whole, width=whole.width - rest)
        yield Part(below, last, whole.height, rest)

    def bands(self, side: Part) -> list[Part]:
        """The rows that fill tiles, and those that are left."""
        rest = side.height % self.how.height
        if not rest or side.height < self.how.height:
            return [side]
        new = self.do("peel", side.rows, rest)
        return [
            replace(side, height=side.height - rest),
            Part(new[0], new[1], rest, side.width),
        ]

    def around_sum(self, var: str) -> bool:
        """Whether a loop holds the loop over the shared axis, rather than being it."""
        inside = sum(isinstance(s, For) for s in walk(find(self.kernel, var).body))
        return inside > (1 if self.product.inner else 0)

    def split(self, loop: str, extent: int, by: int) -> list[str]:
        """The loop over blocks of a loop, if there is more than one block."""
        return self.do("split", loop, by) if loop and extent > by else []

    # ------------------------------------------------------------------------------------ walks

    def open_rows(self, side: Part) -> None:
        """Rows that differ in number from call to call: blocks of whole tiles, if there are to be
        any, then panel after panel of columns, with what is left of the rows in smaller tiles."""
        block = self.how.rows * self.how.height
        if block:
            new = self.do("peel_rest", side.rows, block)
            self.open_blocks(side)
            side = replace(side, rows=new[0], columns=new[1])
        panel = self.do("split", side.columns, min(side.width, self.how.width))
        self.reorder(*panel, side.rows, side.columns)
        heights = [self.how.height] if self.how.rows != 1 else []
        heights += [h for h in (8, 4, 2) if h < self.how.height]
        for height in heights:
            new = self.do("peel_rest", side.rows, height)
            tiles = self.do("split", side.rows, height)
            self.tile(side, tiles)
            if self.how.left and height == self.how.height:
                self.copy_left(tiles[0])
            side = replace(side, rows=new[0], columns=new[1])
        self.tile(side, self.do("split", side.rows, 1))
        if self.how.right == "copied":
            self.copy_right(panel[0])

    def open_blocks(self, side: Part) -> None:
        """Whole blocks of rows, which are shared out among the cores."""
        tiles = self.do("split", side.rows, self.how.height)
        blocks = self.do("split", tiles[0], self.how.rows) if self.how.rows > 1 else []
        panel = self.do("split", side.columns, min(side.width, self.how.width))
        inner = [*panel, *tiles] if blocks else [*tiles, *panel]
        self.reorder(*blocks, *inner, side.rows, side.columns)
        self.tile(side, inner)
        if self.how.left and blocks:
            self.copy_left(blocks[0])

    def panels(self, side: Part) -> None:
        """All rows of a panel of columns, which is copied before if it pays."""
        panel = self.split(side.columns, side.width, self.how.width)
        self.reorder(*panel, side.rows, side.columns)
        copied = self.how.right == "copied"
        for part in self.bands(side):
            cut = self.tile(part, self.split(part.rows, part.height, self.how.height))
            if copied and cut:
                self.copy_right(cut[0])
        if copied and not self.cuts:
            self.copy_right(panel[0])

    def block(self, part: Part) -> None:
        """Blocks of rows, columns and terms."""
        copied = self.how.right == "copied"
        width, height = min(part.width, self.how.width), self.how.height
        tile = self.split(part.rows, part.height, height)
        always = copied and part.width <= width and not self.cuts  # a loop to copy in
        panel = self.do("split", part.columns, width) if always else []
        panel = panel or self.split(part.columns, part.width, width)
        blocks = self.blocks_of(tile, part.height // height, self.how.rows)
        blocks += self.blocks_of(panel, part.width // width, self.how.columns)
        inner = [*tile, *panel] if self.cuts else [*panel, *tile]
        self.reorder(*blocks, *inner, part.rows, part.columns)
        cut = self.tile(part, [*tile, *panel])
        if self.how.left and (cut or blocks):
            self.copy_left(cut[0] if cut else blocks[0])
        if copied:
            self.copy_right(cut[-1] if cut else panel[0])

    def dots(self, part: Part) -> None:
        """Tiles whose lanes are terms of the sum: of operands that both lie along it."""
        panel = self.split(part.columns, part.width, self.how.width)
        tile = self.split(part.rows, part.height, self.how.height)
        self.reorder(*panel, *tile, part.rows, part.columns)
        shared, rows, columns = self.distributed(part)
        self.reorder(shared, *(v[1] for v in (rows, columns) if v))
        for var in (*rows, columns[0], columns[1]):
            self.do("unroll", var)
        self.do("vectorize", columns[2])
        if self.how.ahead and self.product.right is not None:
            self.do("prefetch", self.product.right.buffer.name, shared, self.how.ahead)
        sums = min(part.height, self.how.height) * min(part.width, self.how.width)
        self.do("vectorize", shared, unroll=max(FLIGHT // sums, 1))

    def blocks_of(self, loops: list[str], extent: int, by: int) -> list[str]:
        """The loops over blocks of tiles, if there are to be any."""
        return self.split(loops[0], extent, by) if loops and by else []

    def reorder(self, *loops: str) -> None:
        """These loops in this order, but for those that are not there."""
        order = [v for v in loops if v]
        present = [v for v in self.loops if v in order]
        if present != order:
            self.do("reorder", *order)

    # ------------------------------------------------------------------------------ register tiles

    def tile(self, part: Part, around: Sequence[str]) -> list[str]:
        """The loops over a part's rows and columns as a tile in registers, whatever is around.

        around: the loops over tiles, outside in, around which the sum is cut into terms at a time,
        if it is to be.  Gives the loop over these, and after it that over panels, if there are any.
        """
        width = min(part.width, self.how.width)
        shared, rows, columns = self.distributed(part)
        if self.how.tiles and part.height >= self.how.height and width == self.how.width:
            self.one_tile(shared, rows, columns)
            return []
        inner = [v[1] for v in (rows, columns) if v]
        vectors = -(-width // self.how.lanes)
        cut = self.cut_sum(around, shared, inner, vectors) if self.cuts else []
        if not cut:
            self.reorder(shared, *inner)
        if self.how.ahead and self.product.right is not None:
            with suppress(ScheduleError):  # a row of a tile is too long
                self.do("prefetch", self.product.right.buffer.name, shared, self.how.ahead)
        if width % self.how.lanes and (rows or cut):  # whole vectors, which stay in registers
            self.do("pad", self.sum_in(shared).buffer.name, vectors * self.how.lanes)
        for var in rows:
            self.do("unroll", var)
        if cut and self.how.depth <= SHORT and self.product.depth % self.how.depth == 0:
            self.do("unroll", shared)
        for var in columns:
            if self.how.instruction and var == columns[1]:
                self.instruct(var, width)
            else:
                self.do("vectorize", var, unroll=vectors)
        return cut

    def one_tile(self, shared: str, rows: list[str], columns: list[str]) -> None:
        """All sums of a tile by one instruction for as many groups of terms as it has rows."""
        blocks = self.split(shared, self.product.depth, self.how.height)
        self.reorder(*blocks, rows[1], columns[1], shared)
        for outer, inner in ((rows[0], columns[0]), (rows[2], columns[2])):
            self.do("unroll", outer)
            self.do("vectorize", inner)
        self.instructions.append((rows[1], self.how.tiles))

    def instruct(self, columns: str, width: int) -> None:
        """The columns of a tile, a vector of sums and a group of terms an instruction."""
        lanes, pieces = self.how.lanes, [(columns, width)]
        if width > lanes and width % lanes:
            last = self.do("peel", columns, width % lanes)
            pieces = [(columns, width - width % lanes), (last[0], width % lanes)]
        for var, length in pieces:
            for block in self.split(var, length, lanes):
                self.do("unroll", block)
            self.instructions.append((var, self.how.instruction))

    def distributed(self, part: Part) -> tuple[str, list[str], list[str]]:
        """Loops of their own for clearing, adding up and what follows: the loop over the shared
        axis, and the three over rows and over columns."""
        shared = next(s.var for s in find(self.kernel, part.columns).body if isinstance(s, For))
        columns = [part.columns, *self.do("distribute", part.columns)]
        rows = [part.rows, *self.do("distribute", part.rows)] if part.rows else []
        return shared, rows, columns

    def sum_in(self, loop: str) -> Accumulate:
        """The statement that adds up, in a loop."""
        return next(s for s in walk(find(self.kernel, loop).body) if isinstance(s, Accumulate))

    def cut_sum(
        self, around: Sequence[str], shared: str, inner: list[str], vectors: int
    ) -> list[str]:
        """Some terms of all tiles before the next terms of any.

        The sums of a tile are in registers meanwhile, and in a local between.
        """
        tiles = [self.do("distribute", loop)[0] for loop in reversed(around)]
        (terms,) = self.do("split", shared, self.how.depth)
        self.reorder(terms, *tiles, shared, *inner)
        if not tiles:
            return [terms]
        moved = self.do("stage", self.sum_in(shared).buffer.name, tiles[-1])
        ways = len(moved) // 2
        for loops in (moved[:ways], moved[ways:]):
            for var in loops[:-1]:
                self.do("unroll", var)
            self.do("vectorize", loops[-1], unroll=vectors)
        return [terms, *tiles[:-1]]

    # ----------------------------------------------------------------------------------- copies

    def copy_right(self, loop: str) -> None:
        """Copy what an iteration of a loop reads of the right operand, rows of a tile side by
        side."""
        right = self.product.right
        if right is None:
            return
        order: list[int] = []
        if right.turned:
            axes = range(len(right.buffer.shape))
            order = [*(k for k in axes if k not in (right.own, right.shared))]
            order += [right.shared, right.own]
        with suppress(ScheduleError):  # it is read in several places, or the part is too large
            *_, rows, columns = self.do("stage", right.buffer.name, loop, *order)
            if right.turned:
                self.turn(rows, columns)
            else:
                self.do("vectorize", columns, unroll=max(self.how.width // self.how.lanes, 1))

    def turn(self, rows: str, columns: str) -> None:
        """Copy rows to columns in square blocks, which are read and written by whole vectors."""
        lanes = self.how.lanes
        if constant_extent(find(self.kernel, columns)) > lanes:
            (blocks,) = self.do("split", columns, lanes)
            self.reorder(blocks, rows, columns)
        self.do("unroll", columns)
        self.do("vectorize", rows)

    def turn_blocks(self, blocks: str, rows: str, columns: str) -> None:
        """Turn blocks of columns, the last of which may have fewer of them."""
        if self.product.width % self.how.width:
            last = self.do("peel", blocks, 1)
            self.turn(last[-2], last[-1])
        self.turn(rows, columns)

    def copy_left(self, loop: str) -> None:
        """Copy what an iteration of a loop reads of the left operand, its rows a bit apart."""
        left = self.product.left
        if left is None:
            return
        with suppress(ScheduleError):
            copy = self.do("stage", left.buffer.name, loop)
            self.do("vectorize", copy[-1], unroll=4)
            near = next(
                s.buffer for s in walk(find(self.kernel, copy[0]).body) if isinstance(s, Store)
            )
            self.do("pad", near.name, near.shape[-1] + LINE // near.dtype.itemsize)

    def pack(self) -> None:
        """Copy the right operand into the order in which tiles read it, once."""
        right = self.product.right
        if right is None or right.own < 0:
            return
        if self.how.instruction:
            self.pack_groups(right)
            return
        with suppress(ScheduleError):
            blocks, *_, rows, columns = self.do(
                "pack", right.buffer.name, right.own, self.how.width
            )
            if right.turned:
                self.turn_blocks(blocks, rows, columns)

    def pack_groups(self, right: Factor) -> None:
        """Copy the right operand into panels in which the terms of a group lie side by side."""
        axes = (right.own, self.how.width, right.shared, self.product.terms)
        blocks, *_, columns, terms = self.do("pack", right.buffer.name, *axes)
        if right.turned:
            self.do("vectorize", terms)
            return
        if self.product.width % self.how.width and self.product.width > self.how.width:
            last = self.do("peel", blocks, 1)
            self.do("unroll", last[-1])
            self.do("vectorize", last[-2])
        if self.product.width >= self.how.width:
            self.split(columns, self.how.width, self.how.lanes)
        self.do("unroll", terms)
        self.do("vectorize", columns)
