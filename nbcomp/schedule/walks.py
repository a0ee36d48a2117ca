"""How a generated product is walked: the tile, the order of the loops around it, the copies.

`blocking_for` gives a `Blocking`, plain data, by the registers and caches of a machine; the choices
that a tuner may make otherwise are asked of `decide`.  (Goto and van de Geijn, "Anatomy of
high-performance matrix multiplication", ACM TOMS 34(3), 2008.)  Knows products; not the steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from nbcomp.machine import Machine
from nbcomp.schedule.blocking import PAGE
from nbcomp.schedule.blocks import Blocking, Factor, Product
from nbcomp.schedule.copies import LINE
from nbcomp.schedule.decisions import Decide, among, usual
from nbcomp.schedule.rewriting import NEAR
from nbcomp.sizes import Size, hint

HEIGHTS = {64: 8, 32: 6, 16: 6}  # rows of a tile, by bytes of a vector
REGISTERS = {64: 32, 32: 16, 16: 16}
WIDE = 8  # vectors of columns, at most
TALL, BROAD = (1, 2, 4, 6, 8, 10, 12, 14, 16), (1, 2, 3, 4, 6, 8)  # what else a tile may be
PANEL = 192 << 10  # bytes of a copied panel of the right operand: in the second cache, with room
DEPTHS = (16, 64, 128, 192, 256, 384, 512, 768, 1024)  # terms of the sum at a time
DOTS = 16  # rows, up to which turning the right operand costs more than adding up lanes
NARROW = 16  # columns, up to which vectors of them would be half empty
FITTING = 4  # vectors of columns that are one tile
LONG = 16  # vectors of a row of the right operand that are worth a sum of their own
SQUARE = 4  # rows and columns of a tile of dot products
FEW = 12  # tiles of rows, as high as they can be, that are few
DEPTH = 2048  # bytes of a block along the sum
NEXT = 16  # of its rows at a time where tiles read it in place: all are near for the next tile
ROWS = 64  # of the right operand at a time, where it is read once: their pages are known at once
FAR = 8  # times the second cache: an operand this large comes from memory
AHEAD = 32  # terms that are asked for before they are needed, when they come from there
SUMS = 128 << 10  # bytes of sums that are kept between terms
STREAMS = 8  # rows of an operand from beyond the second cache, at a time: caches foresee as many
TERMS = 8  # of the sums of one row at a time: more rows of the operand are not foreseen as far
SOON = 16  # of these terms that are asked for ahead, if their rows are so short that caches foresee
SHORT = 8 * PAGE  # little of each: these bytes
LEAST = 32  # terms in a part of a sum, beside which it costs little to add the parts up
READERS = 2  # tiles that read a panel, beyond which it is worth copying
LOADS = 0.12  # what a tile of one vector takes longer than a very wide one, as a share
L2 = 1 << 20  # bytes of the second cache that are counted on

Right = Literal["in place", "copied", "packed"]


def blocking_for(product: Product, machine: Machine, decide: Decide = usual) -> Blocking:
    """How a product is walked on a machine."""
    if isinstance(product.height, Size):
        return _open_rows(product, machine, decide)
    tile = _tile(product, machine, decide)
    if not product.rows:
        return (_dots if _along(product) else _one_row)(product, tile, machine, decide)
    walk = _walk(product, tile, machine)
    walk = decide(f"walk of {product.rows}, {product.columns}", walk, tuple(WALKS))
    return WALKS[walk](product, tile, machine, decide)


def _open_rows(product: Product, machine: Machine, decide: Decide) -> Blocking:
    """Rows that are open: the tile for the number seen, and how many tiles of rows are a block.

    Few panels leave the cores to the rows; a left operand beyond the cache is read once, by blocks
    of rows, from which on the right one is packed.
    """
    size, near = size_of(product), min(machine.l2, L2)
    most = HEIGHTS.get(machine.vector_bytes, 6)
    whole = -(-hint(product.height) // most) * most
    tile = _tile(replace(product, height=whole), machine, decide)
    tile = replace(tile, walk="panels", height=most)
    if -(-product.width // tile.width) < 2 * machine.cores:
        return replace(tile, rows=1, right="packed" if _turned(product) else "in place")
    row = product.depth * size
    panel = row * tile.width
    if product.height * row > 2 * machine.l2:
        rows = max(min(near // 4, NEAR) // ((row + LINE) * tile.height), 1)
        return replace(tile, rows=rows, right="packed")
    right: Right = "copied" if panel <= PANEL else "packed"
    return replace(tile, right=right)


def _tile(product: Product, machine: Machine, decide: Decide) -> Blocking:
    """The tile: sums, a row of the right operand and an element of the left fit in registers."""
    registers = REGISTERS.get(machine.vector_bytes, min(REGISTERS.values()))
    most = HEIGHTS.get(machine.vector_bytes, min(HEIGHTS.values()))
    height = 1
    if product.rows:
        height = height_of(product.height, most)
        height = decide(f"rows of a tile of {product.rows}", height, among(height, TALL))
    lanes = machine.vector_bytes // size_of(product)
    vectors = _vectors(product, (registers - 2) // (height + 1), lanes, height, machine)
    name = f"vectors of a tile of {product.columns}"
    fitting = (v for v in BROAD if v * (height + 1) <= registers + 2)
    vectors = decide(name, vectors, among(vectors, fitting))
    width = min(vectors * lanes, product.width)
    return Blocking("blocks", min(height, product.height), width, lanes)


def size_of(product: Product) -> int:
    """Bytes of an element."""
    return product.sum.buffer.dtype.itemsize


def height_of(rows: int, most: int) -> int:
    """Rows of a tile: few rows are divided evenly, without a rest if that is possible."""
    tiles = -(-rows // most)
    if tiles > FEW:
        return most
    even = -(-rows // tiles)
    return next((h for h in range(most, most // 2, -1) if rows % h == 0), even)


def _vectors(product: Product, most: int, lanes: int, height: int, machine: Machine) -> int:
    """Vectors of columns in a tile: as many as fit, fewer where that leaves no rest or more panels.

    Sums of at least eight vectors are in flight, which hides the latency of multiply-adds.
    """
    best = max(min(most, WIDE), 1)
    enough = [v for v in range(best, 0, -1) if v * height >= 8 or v == best]
    few = product.height <= 4 * height
    if not few and product.width >= 8 * best * lanes:  # so many panels that a rest matters little
        if product.height <= FEW * HEIGHTS.get(machine.vector_bytes, 6):  # blocks are shared
            return best
        wide = [v for v in enough if v > 1 or v == best]
        return min(wide, key=lambda v: _busiest(product, v, lanes, machine))
    wanted = 2 * machine.cores if few else 1
    for v in enough:
        if product.width % (v * lanes) == 0 and product.width // (v * lanes) >= wanted:
            return v
    return best


def _busiest(product: Product, vectors: int, lanes: int, machine: Machine) -> float:
    """Columns of the core that has most, where cores share panels so wide; narrow ones count more,
    since their tiles load more for each multiply-add."""
    panels, rest = divmod(product.width, vectors * lanes)
    most = -(-panels // machine.cores) * vectors * lanes + rest / machine.cores
    return most * (1 + LOADS / vectors)


def _walk(product: Product, tile: Blocking, machine: Machine) -> str:
    """The order of the loops around tiles."""
    size = size_of(product)
    left, right = (n * product.depth * size for n in (product.height, product.width))
    if _along(product) and (product.height <= DOTS or product.width <= NARROW):
        return "dots"
    if product.height <= FEW * HEIGHTS.get(machine.vector_bytes, 6):
        beyond = right > machine.l2 and product.width >= 4 * tile.width
        return "few rows" if beyond and not _turned(product) else "panels"
    if product.width < 2 * machine.cores * tile.width:
        return "bands"
    large = left > FAR * machine.l2 or product.depth * tile.width * size > PANEL
    return "blocks" if large else "panels"


def _turned(product: Product) -> bool:
    return product.right is not None and product.right.turned


def _along(product: Product) -> bool:
    """Whether both operands lie along the sum."""
    return product.left is not None and product.left.turned and _turned(product)


def _dots(product: Product, tile: Blocking, machine: Machine, decide: Decide) -> Blocking:
    """Tiles of single elements, whose lanes are terms of the sum."""
    height = min(tile.height, SQUARE)
    most = min(SQUARE * SQUARE // height, product.width)
    if _streams(product, tile, machine):
        most = min(STREAMS, product.width)
    elif _pages_apart(product.right):
        most = min(most, SQUARE)
    width = -(-product.width // -(-product.width // most)) if product.width < 4 * most else most
    return replace(tile, walk="dots", height=height, width=width)


def _streams(product: Product, tile: Blocking, machine: Machine) -> bool:
    """Whether the right operand, read once, comes from beyond the second cache: then as many of
    its long rows are read side by side as caches foresee."""
    return not product.rows and not _fits(product, machine) and product.depth >= LONG * tile.lanes


def _one_row(product: Product, tile: Blocking, machine: Machine, decide: Decide) -> Blocking:
    """One row of the result: a few rows of a large right operand at a time, whose sums are in
    registers meanwhile, all along the columns."""
    if _fits(product, machine):
        return tile
    assert product.right is not None
    apart = product.right.buffer.strides[product.right.shared] * size_of(product)
    depth = TERMS // 2 if apart == PAGE else TERMS  # rows that are each the next page
    depth = decide(f"terms of {product.shared} at a time", depth, (2, 4, 8))
    registers = REGISTERS.get(machine.vector_bytes, min(REGISTERS.values()))
    least, whole = registers // depth, max(product.width // tile.lanes, 1)
    vectors = min(range(least, 2 * least + 1), key=lambda v: whole % v)
    options = among(vectors, (4, 8, 12, 16), registers // 2)
    vectors = decide(f"vectors of a tile of {product.columns}", vectors, options)
    width = min(vectors * tile.lanes, product.width)
    panels = -(-product.width // width)
    columns = min(SUMS // size_of(product) // width, panels)
    options = among(columns, (4, 8, 16, 32, 64), panels)
    columns = decide(f"panels of {product.columns} in a block", columns, options)
    depth = min(depth, product.depth)
    ahead = SOON if _is_far(product, machine) and apart <= SHORT else 0
    ahead = _ahead(product, ahead, decide)
    return replace(tile, walk="rows", width=width, columns=columns, depth=depth, ahead=ahead)


def parts_for(product: Product, machine: Machine, decide: Decide = usual) -> int:
    """In how many parts the terms of a product are added up: for each core a part of a large right
    operand that one row is multiplied by, which is read from one end to the other."""
    single = not product.rows and not isinstance(product.height, Size)
    if not single or product.right is None or product.right.turned or product.inner:
        return 1
    if _fits(product, machine) or product.depth < LEAST * machine.cores:
        return 1
    options = among(machine.cores, (1, 2 * machine.cores), product.depth // LEAST)
    return decide(f"parts of the sum over {product.shared}", machine.cores, options)


def _fits(product: Product, machine: Machine) -> bool:
    """Whether the right operand stays in the second cache."""
    return product.width * product.depth * size_of(product) <= machine.l2


def _is_far(product: Product, machine: Machine) -> bool:
    """Whether the right operand is so large that it comes from memory."""
    return product.width * product.depth * size_of(product) > FAR * machine.l2


def _pages_apart(factor: Factor | None) -> bool:
    """Whether an operand lies along the sum, in rows that are whole pages."""
    if factor is None or factor.own < 0 or factor.buffer.strides[factor.shared] != 1:
        return False
    return factor.buffer.strides[factor.own] * factor.buffer.dtype.itemsize % PAGE == 0


def _panels(product: Product, tile: Blocking, machine: Machine, decide: Decide) -> Blocking:
    """Panel after panel of columns, each copied where several tiles read it."""
    readers = -(-product.height // tile.height)
    copied = int(product.right is not None and (readers > READERS or _turned(product)))
    if not decide(f"copy panels of {product.columns}", copied, (0, 1)):
        return replace(tile, walk="panels")
    row = tile.width * size_of(product)
    depth = PANEL // row if product.depth * row > PANEL else 0
    depth = _depth(product, depth, decide)
    return replace(tile, walk="panels", depth=depth, right="copied")


def _few_rows(product: Product, tile: Blocking, machine: Machine, decide: Decide) -> Blocking:
    """The right operand is read once, some of its rows at a time, which are whole pages."""
    readers, panels = -(-product.height // tile.height), product.width // tile.width
    right: Right = "copied" if readers > READERS else "in place"
    row = tile.width * size_of(product)
    columns = SUMS // (readers * tile.height * row)
    if right == "copied":  # rows as long as caches foresee them, in blocks that stay near
        columns = min(columns, SUMS // 2 // (ROWS * row))
    columns = max(min(columns, panels // (2 * machine.cores)), 1)
    options = among(columns, (1, 2, 4, 8, 16, 32), panels)
    columns = decide(f"panels of {product.columns} in a block", columns, options)
    depth = _depth(product, ROWS if right == "copied" else NEXT, decide)
    ahead = depth if right == "copied" else AHEAD
    ahead = ahead if _is_far(product, machine) else 0
    ahead = _ahead(product, ahead, decide)
    return replace(tile, depth=depth, columns=columns, right=right, ahead=ahead)


def _bands(product: Product, tile: Blocking, machine: Machine, decide: Decide) -> Blocking:
    """Blocks of rows, since there are few panels."""
    rows = max(product.height // tile.height // (2 * machine.cores), 1)
    return replace(tile, rows=rows, right="copied" if _turned(product) else "in place")


def _blocks(product: Product, tile: Blocking, machine: Machine, decide: Decide) -> Blocking:
    """Blocks of rows, columns and terms, so that the sums and a part of the left operand stay in
    the second cache; the right one is packed."""
    size, near = size_of(product), min(machine.l2, L2)
    depth = _depth(product, DEPTH // size, decide)
    tiles = -(-product.height // tile.height)
    row = (depth or product.depth) * size + LINE
    rows = max(min(near // 4 // (row * tile.height), tiles // machine.cores), 1)
    rows = _even(tiles, rows, machine.cores)
    rows = decide(f"tiles of {product.rows} in a block", rows, among(rows, (2, 4, 8, 16), tiles))
    panels = -(-product.width // tile.width)
    columns = max(min(near // 5 // (rows * tile.height * tile.width * size), panels), 1)
    options = among(columns, (4, 8, 16, 32), panels)
    columns = decide(f"panels of {product.columns} in a block", columns, options)
    left = bool(decide(f"copy blocks of {product.rows}", 0, (0, 1)))
    return replace(tile, depth=depth, rows=rows, columns=columns, left=left, right="packed")


def _even(tiles: int, most: int, cores: int) -> int:
    """Tiles in a block, at most so many, so that all cores have as many blocks."""
    blocks = -(-tiles // most)
    return -(-tiles // (-(-blocks // cores) * cores))


def _ahead(product: Product, ahead: int, decide: Decide) -> int:
    """Terms that are asked for before they are needed."""
    name = f"terms of {product.shared} asked for ahead"
    return decide(name, ahead, among(ahead, (0, 8, 16, 32, 64)))


def _depth(product: Product, depth: int, decide: Decide) -> int:
    """Terms of the sum at a time."""
    options = among(depth, (0, *DEPTHS), max(product.depth // 2, depth))
    return decide(f"terms of {product.shared} at a time", depth, options)


WALKS: dict[str, Callable[[Product, Blocking, Machine, Decide], Blocking]] = {
    "panels": _panels,
    "few rows": _few_rows,
    "dots": _dots,
    "bands": _bands,
    "blocks": _blocks,
}
