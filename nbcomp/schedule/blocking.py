"""The schedule of a matrix product in blocks, as steps: tiles in registers, copies in caches.

A `Blocking` says how; `Blocker` takes the steps of the schedule language, one after another, each
noted in the kernel as it would be written by hand.  The walks are

    panels   for j_o: (copy b[:, j_o]; for i_o: tile)
    blocks   for i_b: for j_b: for k_b: (copy a[i_b, k_b]; copy b[k_b, j_b]; for j_o: for i_o: tile)
    dots     for j_o: for i_o: tile, whose lanes are terms of the sum
    rows     for j_b: for k_b: for j_o: tile, of one row of the result and a few terms

each without the copies and the loops over blocks that it does not need.  What does not fill a tile
is peeled off and gets smaller tiles of its own.  Knows steps; not why a blocking was chosen
(`products`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from nbcomp.errors import ScheduleError
from nbcomp.loop import cost
from nbcomp.loop.grammar import Accumulate, For, Kernel, walk
from nbcomp.schedule.blocks import Blocking, Part, Product
from nbcomp.schedule.copies import Copier
from nbcomp.schedule.rewriting import constant_extent, find
from nbcomp.sizes import Size, hint

FLIGHT = 4  # vectors of sums that are added to at a time, to hide the latency of an addition
SHORT = 4  # terms at a time that are written out
LONG = 20  # instructions an element after the sums: a tanh, an exp and a division
DEEP = 4  # terms of a sum for each of these
BESIDE = 2  # vectors of these at a time
SHARED = 4  # tiles of rows that are worth sharing
PAGE = 4096  # bytes; rows that far apart share a few lines of the first cache


class Blocker(Copier):
    """Takes the steps of a blocking on one product of a kernel."""

    def __init__(self, kernel: Kernel, product: Product, how: Blocking) -> None:
        open_rows = isinstance(product.height, Size)
        height = how.height if open_rows else min(how.height, product.height)
        width = min(how.width, product.width)
        super().__init__(kernel, product, replace(how, height=height, width=width))
        self.instructions: list[tuple[str, str]] = []  # loops over the sums of each, what it is
        self.open = isinstance(product.height, Size)  # rows differ in number from call to call

    def run(self) -> Kernel:
        """The kernel with the product in blocks.  Raises ScheduleError where it cannot be."""
        p = self.product
        if self.how.walk == "rows":
            self.row()
            return self.kernel
        for side in list(self.sides(Part(p.rows, p.columns, p.height, p.width), self.how.width)):
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

    def sides(self, whole: Part, width: int) -> Iterator[Part]:
        """The columns that fill so wide tiles, and those that are left, in loops of their own."""
        rest = whole.width % width
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
        copied = self.how.right == "copied" and not self.shares_rest(part)
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
            self.copy_right(cut[0] if cut else panel[0])

    def shares_rest(self, part: Part) -> bool:
        """Whether columns that fill no panel are read where they lie, by rows, which the cores
        share: a panel that is copied is one core's."""
        right, tiles = self.product.right, part.height // self.how.height
        if right is None or right.turned or self.cuts or part.width == self.product.width:
            return False
        apart = right.buffer.strides[right.shared] * right.buffer.dtype.itemsize
        return part.width < self.how.width and tiles >= SHARED and apart % PAGE != 0

    def row(self) -> None:
        """One row of the result: a few rows of the right operand at a time, all along the columns
        of a block, whose sums are in registers meanwhile and in a local between."""
        p, block = self.product, self.how.columns * self.how.width
        for side in list(self.sides(Part("", p.columns, 1, p.width), min(block, p.width))):
            self.split(side.columns, side.width, block)
            shared, _, (clear, adding, finish) = self.distributed(side)
            self.reorder(shared, adding)
            rest = p.depth % self.how.depth
            lanes = [clear, finish, *(self.do("peel", shared, rest)[1:] if rest else [])]
            (terms,) = self.do("split", shared, self.how.depth)
            self.reorder(terms, adding, shared)
            if self.how.ahead and p.right is not None:
                self.do(
                    "prefetch", p.right.buffer.name, terms, -(-self.how.ahead // self.how.depth)
                )
            self.few_terms(shared, adding, min(block, side.width))
            for var in lanes:
                self.do("vectorize", var, unroll=FLIGHT)

    def few_terms(self, shared: str, columns: str, width: int) -> None:
        """A few terms of all columns: in tiles, and of those that fill none, vector by vector."""
        by = self.how.width
        left = self.do("peel", columns, width % by) if width % by and width > by else []
        for var in left[:1]:
            self.do("unroll", left[1])
            self.do("vectorize", var, unroll=FLIGHT)
        around = self.do("split", columns, by) if width > by else []
        self.reorder(*around, shared, columns)
        self.do("unroll", shared)
        sums = self.sum_in(shared).buffer.name
        moved = self.do("stage", sums, around[0]) if around else []
        for var in (columns, *moved):
            self.do("vectorize", var, unroll=-(-min(by, width) // self.how.lanes))

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
        in_memory = bool(cut and around)  # where sums are between two blocks of terms
        long = bool(rows) and not in_memory and self.is_long(columns[2])
        if long:
            self.put_in_memory(self.sum_in(shared).buffer.name, rows[2], vectors)
        for var in rows[1:2] if in_memory else rows[:2] if long else rows:
            self.do("unroll", var)
        if cut and self.how.depth <= SHORT and self.product.depth % self.how.depth == 0:
            self.do("unroll", shared)
        for var in columns:
            if self.how.instruction and var == columns[1]:
                self.instruct(var, width)
            else:
                apart = long and var == columns[2]
                self.do("vectorize", var, unroll=min(vectors, BESIDE) if apart else vectors)
        return cut

    def is_long(self, finish: str) -> bool:
        """Whether what follows the sums is so long that it is not to be written for each vector of
        a tile (code of that size takes LLVM longest), and the sums so long that it matters little
        whether it runs beside the next ones."""
        each: float = hint(cost.of_body(find(self.kernel, finish).body).instructions)
        depth: int = hint(self.product.depth)
        return each >= LONG and depth >= DEEP * each

    def put_in_memory(self, sums: str, finish: str, vectors: int) -> None:
        """A copy of a tile's sums for the loop over rows that follows them."""
        (whole,) = self.do("split", finish, constant_extent(find(self.kernel, finish)))
        *copied, last = self.do("stage", sums, whole)
        for var in (*copied, whole):
            self.do("unroll", var)
        self.do("vectorize", last, unroll=vectors)

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
