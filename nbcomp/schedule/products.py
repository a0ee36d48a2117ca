"""The default schedule of a generated matrix product: which blocks, and which copies of operands.

`block_products` looks for products in a kernel (`product_of`), works out how each is walked
(`blocking_for`: a `Blocking`, plain data) and has `blocking` take the steps.  Other kernels that
are sums of products in this form (convolutions, attention) may call the three themselves.  The
numbers are those of the registers and caches; the choices that a tuner may make otherwise are asked
of `decide`.  (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS
34(3), 2008.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from nbcomp.errors import ScheduleError
from nbcomp.loop.bfloat16 import bits_in
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Apply,
    Call,
    Cast,
    Expr,
    For,
    Kernel,
    Load,
    Stmt,
    walk,
)
from nbcomp.loop.intrinsics import INTRINSICS, dots, operands, terms
from nbcomp.machine import Machine
from nbcomp.schedule import remarks, steps
from nbcomp.schedule.blocking import LINE, SHORT, Blocker, Blocking, Factor, Product
from nbcomp.schedule.decisions import Decide, among, usual
from nbcomp.schedule.rewriting import NEAR, find, noted
from nbcomp.schedule.stepwise import Stepwise
from nbcomp.sizes import Size, hint
from nbcomp.types import DType

HEIGHTS = {64: 8, 32: 6, 16: 6}  # rows of a tile, by bytes of a vector
REGISTERS = {64: 32, 32: 16, 16: 16}
WIDE = 8  # vectors of columns, at most
TALL, BROAD = (1, 2, 4, 6, 8, 10, 12, 14, 16), (1, 2, 3, 4, 6, 8)  # what else a tile may be
PANEL = 192 << 10  # bytes of a copied panel of the right operand: in the second cache, with room
DEPTHS = (16, 64, 128, 192, 256, 384, 512, 768, 1024)  # terms of the sum at a time
DOTS = 16  # rows, up to which turning the right operand costs more than adding up lanes
NARROW = 16  # columns, up to which vectors of them would be half empty
TILE = 16  # rows, columns and groups of terms of an instruction on tiles
FITTING = 4  # vectors of columns that are one tile
LONG = 16  # vectors of a row of the right operand that are worth a sum of their own
SQUARE = 4  # rows and columns of a tile of dot products
FEW = 12  # tiles of rows that are few
DEPTH = 2048  # bytes of a block along the sum
NEXT = 16  # of its rows at a time where tiles read it in place: all are near for the next tile
ROWS = 64  # of the right operand at a time, where it is read once: their pages are known at once
FAR = 8  # times the second cache: an operand this large comes from memory
AHEAD = 32  # terms that are asked for before they are needed, when they come from there
SUMS = 128 << 10  # bytes of sums that are kept between terms
READERS = 2  # tiles that read a panel, beyond which it is worth copying
L2 = 1 << 20  # bytes of the second cache that are counted on
PAGE = 4096  # bytes; rows that far apart share a few lines of the first cache


def block_products(kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
    """Compute matrix products in tiles that stay in registers, in blocks that stay in caches."""
    kernel = _written_out(kernel, decide)
    for position in range(len(kernel.stages)):
        kernel = _rows_merged(kernel, position)
    for stage in kernel.stages:
        product = product_of(stage)
        if product is not None and not _packed(product, machine):
            try:
                there = bool(product.inner)  # the terms came in groups, packed
                grouped, product, instruction = _grouped(kernel, product, machine)
                how = (_in_groups if there else blocking_for)(product, machine, decide)
                if instruction:
                    right: Right = "in place" if there else "packed"
                    how = replace(how, right=right, instruction=instruction, ahead=0)
                    how = _in_tiles(product, how, machine, decide)
                kernel = Blocker(grouped, product, how).run()
                if instruction:
                    used = how.tiles or instruction
                    remarks.instructed(used, product.terms, product.sum.location)
            except ScheduleError:  # not as simple as it looked: the other steps do what they can
                continue
    return kernel


def _written_out(kernel: Kernel, decide: Decide) -> Kernel:
    """Products of a library as loops, perhaps with what follows them element by element."""
    for position in range(len(kernel.stages)):
        if position >= len(kernel.stages) or not _calls(kernel.stages[position]):
            continue
        if not decide(f"loops for product {position}", 0, (0, 1)):
            continue
        try:
            kernel = noted(steps.generate(kernel, position), f"generate({position})")
        except ScheduleError:
            continue
        if position + 1 < len(kernel.stages) and decide(f"join product {position}", 0, (0, 1)):
            kernel = _joined(kernel, position)
    return kernel


def _rows_merged(kernel: Kernel, position: int) -> Kernel:
    """The rows of all products of a stack as rows of one, where they share the right operand."""
    while True:
        stage = kernel.stages[position]
        product = product_of(stage)
        if product is None or not product.rows:
            return kernel
        outer = [s for s in walk((stage,)) if isinstance(s, For)]
        above = next((s for s in outer if any(x.var == product.rows for x in _loops_in(s))), None)
        _, right = _factors(product.sum)
        if above is None or _walks(right, above):
            return kernel
        try:
            fused = steps.fuse(kernel, above.var, product.rows)
        except ScheduleError:
            return kernel
        kernel = noted(fused, f'fuse("{above.var}", "{product.rows}")')


def _loops_in(loop: For) -> list[For]:
    """The loops that are statements of a loop."""
    return [s for s in loop.body if isinstance(s, For)]


def _factors(total: Accumulate) -> tuple[Expr, ...]:
    assert isinstance(total.value, Apply)
    return total.value.args


def _calls(stage: Stmt) -> bool:
    return any(isinstance(s, Call) for s in walk((stage,)))


def _joined(kernel: Kernel, position: int) -> Kernel:
    """The loops of a stage joined with those of the next, as many as can be."""
    pair = kernel.stages[position : position + 2]
    while len(pair) == 2 and all(isinstance(s, For) for s in pair):
        first, second = (s.var for s in pair if isinstance(s, For))
        try:
            joined = steps.join(kernel, first, second)
        except ScheduleError:
            break
        kernel = noted(joined, f'join("{first}", "{second}")')
        pair = find(kernel, first).body
    return kernel


def _grouped(kernel: Kernel, product: Product, machine: Machine) -> tuple[Kernel, Product, str]:
    """A product of narrow numbers with its terms in the groups that an instruction of the machine
    adds up, as if each group were one term; and the instruction, if there is one."""
    found = _instruction(product, machine)
    if found is None:
        return kernel, product, ""
    name, group = found
    if product.inner:
        return kernel, product, name
    made = Stepwise(kernel)
    (outer,) = made.do("split", product.shared, group)
    grouped = replace(
        product, shared=outer, depth=product.depth // group, inner=product.shared, terms=group
    )
    return made.kernel, grouped, name


def _instruction(product: Product, machine: Machine) -> tuple[str, int] | None:
    """The instruction for a product of narrow numbers, and how many terms it adds up."""
    if product.left is None or product.right is None or not product.rows:
        return None
    lanes, dtypes = machine.vector_bytes // _size(product), _dtypes(product)
    if dtypes[0] == dtypes[2] or product.height < SQUARE:
        return None
    for intrinsic in INTRINSICS.values():
        shape = dots(intrinsic)
        if shape != (lanes, dtypes) or not intrinsic.runs_on(machine.features):
            continue
        group = terms(intrinsic)
        fits = product.terms == group if product.inner else product.depth % group == 0
        if fits and product.left.turned:
            return intrinsic.name, group
    return None


def _dtypes(product: Product) -> tuple[DType, DType, DType]:
    """The dtypes of the operands, which are arrays, and of the sums."""
    assert product.left is not None
    assert product.right is not None
    return product.left.buffer.dtype, product.right.buffer.dtype, product.sum.buffer.dtype


def _in_tiles(product: Product, how: Blocking, machine: Machine, decide: Decide) -> Blocking:
    """The same by an instruction whose sums are a tile, if the machine has one for these numbers
    and the product fills tiles."""
    name = _tile_instruction(product, machine)
    if not name or min(product.height, product.width) < TILE or product.depth % TILE:
        return how
    if not decide(f"tiles of {product.rows}", 1, (0, 1)):
        return how
    tile = Blocking("panels", TILE, TILE, how.lanes, right=how.right)
    return replace(tile, instruction=how.instruction, tiles=name)


def _tile_instruction(product: Product, machine: Machine) -> str:
    """The instruction that adds products of groups of as many terms to a tile; "" for none."""
    for intrinsic in INTRINSICS.values():
        tiles = dots(intrinsic) is None and intrinsic.runs_on(machine.features)
        if tiles and operands(intrinsic) == _dtypes(product) and terms(intrinsic) == product.terms:
            return intrinsic.name
    return ""


# ------------------------------------------------------------------------------- finding a product


def product_of(stage: Stmt) -> Product | None:
    """The loops of a generated product, if a stage is one: perfect loops, the last two over rows
    and columns, around a sum of products that is kept in a local."""
    around: list[For] = []
    while isinstance(stage, For):
        around.append(stage)
        if len(stage.body) != 1:
            break
        (stage,) = stage.body
    inner = [s for s in around[-1].body if isinstance(s, For)] if around else []
    if len(inner) != 1 or (added := _added(inner[0])) is None:
        return None
    total, group = added
    left, right = _factors(total)
    columns, shared = around[-1], inner[0]
    if not _walks(right, columns) or _walks(left, columns):
        return None
    rows = around[-2] if len(around) > 1 and _walks(left, around[-2]) else None
    if rows is not None and _walks(right, rows):  # a batch of rows
        rows = None
    width, depth = _extent(columns), _extent(shared)
    height = 1 if rows is None else _rows(rows)
    if width is None or depth is None or height is None:
        return None
    return Product(
        rows.var if rows else "",
        columns.var,
        shared.var,
        total,
        height,
        width,
        depth,
        _factor(left, rows, shared),
        _factor(right, columns, shared),
        *((group.var, _extent(group) or 1) if group else ()),
    )


def _added(loop: For) -> tuple[Accumulate, For | None] | None:
    """What a loop over terms adds up, and the loop over those of a group in it, if there is one."""
    group: For | None = None
    (stmt,) = loop.body if len(loop.body) == 1 else (None,)
    if isinstance(stmt, For) and len(stmt.body) == 1 and _extent(stmt) is not None:
        group, (stmt,) = stmt, stmt.body
    if not isinstance(stmt, Accumulate) or not stmt.contract or _extent(loop) is None:
        return None
    if group is not None and not all(map(_narrow, _factors(stmt))):
        return None
    return stmt, group


def _narrow(factor: Expr) -> bool:
    """Whether a factor is narrower in memory than the sums."""
    load = _load(factor)
    return load is not None and load.dtype.itemsize < factor.dtype.itemsize


def _packed(product: Product, machine: Machine) -> bool:
    """Whether the right operand came in blocks as narrow as a tile, with nothing in between: then
    there is nothing to copy, and `sums` has the tile for it."""
    right, lanes = product.right, machine.vector_bytes // _size(product)
    if right is None or len(right.buffer.shape) < 3 or isinstance(product.height, Size):
        return False
    width = right.buffer.shape[right.own] if right.own >= 0 else 0
    together = right.buffer.strides[right.shared] == width and not right.turned
    return together and width == product.width <= FITTING * lanes


def _rows(loop: For) -> int | None:
    """The iterations of the loop over rows, which may be open."""
    extent = loop.extent
    constant = isinstance(extent, Affine) and not extent.terms
    return extent.constant if constant else None  # type: ignore[attr-defined]


def _extent(loop: For) -> int | None:
    extent = loop.extent
    if not isinstance(extent, Affine) or extent.terms or isinstance(extent.constant, Size):
        return None
    return extent.constant


def _walks(factor: Expr, loop: For) -> bool:
    return _axis(factor, loop.var) is not None


def _load(factor: Expr) -> Load | None:
    """What a factor is read from: an array of its dtype, or of narrow numbers."""
    if isinstance(factor, Cast) and factor.value.dtype.itemsize == 1:
        factor = factor.value
    factor = bits_in(factor) or factor
    return factor if isinstance(factor, Load) else None


def _axis(factor: Expr, var: str) -> int | None:
    """The axis of a load along which a loop walks."""
    load = _load(factor)
    if load is None:
        return None
    for axis, index in enumerate(load.indices):
        if isinstance(index, Affine) and dict(index.terms).get(var):
            return axis
    return None


def _factor(factor: Expr, own: For | None, shared: For) -> Factor | None:
    """An operand that is an array, with the axes of the result and of the sum."""
    axes = [_axis(factor, loop.var) if loop else None for loop in (own, shared)]
    load = _load(factor)
    if load is None or axes[1] is None or axes[0] == axes[1]:
        return None
    return Factor(load.buffer, -1 if axes[0] is None else axes[0], axes[1])


# ------------------------------------------------------------------------------ choosing the blocks


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


def _in_groups(product: Product, machine: Machine, decide: Decide) -> Blocking:
    """A tile as broad as a block of weights that came packed, as tall as registers allow."""
    registers = REGISTERS.get(machine.vector_bytes, min(REGISTERS.values()))
    lanes = machine.vector_bytes // _size(product)
    vectors = -(-product.width // lanes)
    most = max(min((registers - 1) // vectors - 1, max(TALL)), 1)
    height = _height(product.height, most)
    height = decide(f"rows of a tile of {product.rows}", height, among(height, TALL))
    return Blocking("panels", min(height, product.height), product.width, lanes)


def _open_rows(product: Product, machine: Machine, decide: Decide) -> Blocking:
    """Rows that are open: the tile for the number seen, and how many tiles of rows are a block.

    Few panels leave the cores to the rows; a left operand beyond the cache is read once, by blocks
    of rows, from which on the right one is packed.
    """
    size, near = _size(product), min(machine.l2, L2)
    tile = _tile(replace(product, height=hint(product.height)), machine, decide)
    tile = replace(tile, walk="panels", height=HEIGHTS.get(machine.vector_bytes, 6))
    if -(-product.width // tile.width) < 2 * machine.cores:
        return replace(tile, rows=1, right="packed" if _turned(product) else "in place")
    row = product.depth * size
    panel = row * tile.width
    if product.height * row > 2 * machine.l2:
        rows = max(min(near // 4, NEAR) // ((row + LINE) * tile.height), 1)
        return replace(tile, rows=rows, left=rows > 1 and _collide(product), right="packed")
    right: Right = "copied" if panel <= PANEL else "packed"
    return replace(tile, left=_collide(product), right=right)


def _tile(product: Product, machine: Machine, decide: Decide) -> Blocking:
    """The tile: sums, a row of the right operand and an element of the left fit in registers."""
    registers = REGISTERS.get(machine.vector_bytes, min(REGISTERS.values()))
    most = HEIGHTS.get(machine.vector_bytes, min(HEIGHTS.values()))
    height = 1
    if product.rows:
        height = _height(product.height, most)
        height = decide(f"rows of a tile of {product.rows}", height, among(height, TALL))
    lanes = machine.vector_bytes // _size(product)
    vectors = _vectors(product, (registers - 2) // (height + 1), lanes, height, machine)
    name = f"vectors of a tile of {product.columns}"
    fitting = (v for v in BROAD if v * (height + 1) <= registers + 2)
    vectors = decide(name, vectors, among(vectors, fitting))
    width = min(vectors * lanes, product.width)
    return Blocking("blocks", min(height, product.height), width, lanes)


def _size(product: Product) -> int:
    """Bytes of an element."""
    return product.sum.buffer.dtype.itemsize


def _height(rows: int, most: int) -> int:
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
        return best
    wanted = 2 * machine.cores if few else 1
    for v in enough:
        if product.width % (v * lanes) == 0 and product.width // (v * lanes) >= wanted:
            return v
    return best


def _walk(product: Product, tile: Blocking, machine: Machine) -> str:
    """The order of the loops around tiles."""
    size = _size(product)
    left, right = (n * product.depth * size for n in (product.height, product.width))
    readers = -(-product.height // tile.height)
    if _along(product) and (product.height <= DOTS or product.width <= NARROW):
        return "dots"
    if readers <= FEW:
        beyond = right > machine.l2 and product.width >= 4 * tile.width
        return "few rows" if beyond and not _turned(product) else "panels"
    if product.width < 2 * machine.cores * tile.width:
        return "bands"
    large = left > 4 * machine.l2 or product.depth * tile.width * size > PANEL
    return "blocks" if large or _collide(product) else "panels"


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
        most = 1
    elif _pages_apart(product.right):
        most = min(most, SQUARE)
    width = -(-product.width // -(-product.width // most)) if product.width < 4 * most else most
    return replace(tile, walk="dots", height=height, width=width)


def _streams(product: Product, tile: Blocking, machine: Machine) -> bool:
    """Whether the right operand, read once, comes from beyond the second cache: it is then read as
    it lies in memory, one long row after another, which is what CPUs foresee."""
    size = product.width * product.depth * _size(product)
    return not product.rows and size > machine.l2 and product.depth >= LONG * tile.lanes


def _one_row(product: Product, tile: Blocking, machine: Machine, decide: Decide) -> Blocking:
    """One row of the result: rows of a large right operand are walked a few at a time, as far as
    a core's columns reach."""
    if product.width * product.depth * _size(product) <= machine.l2:
        return tile
    width = min(FITTING * tile.lanes, tile.width)
    panels = -(-product.width // width)
    columns = max(panels // machine.cores, 1)
    options = among(columns, (2, 4, 8, 16, 32), panels)
    columns = decide(f"panels of {product.columns} in a block", columns, options)
    depth = _depth(product, SHORT, decide)
    return replace(tile, width=width, depth=depth, columns=columns)


def _collide(product: Product) -> bool:
    """Whether the rows of the left operand are at the same places of the first cache."""
    return _pages_apart(product.left)


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
    row = tile.width * _size(product)
    depth = PANEL // row if product.depth * row > PANEL else 0
    depth = _depth(product, depth, decide)
    return replace(tile, walk="panels", depth=depth, right="copied")


def _few_rows(product: Product, tile: Blocking, machine: Machine, decide: Decide) -> Blocking:
    """The right operand is read once, some of its rows at a time, which are whole pages."""
    readers, panels = -(-product.height // tile.height), product.width // tile.width
    sums = readers * tile.height * tile.width * _size(product)
    columns = max(min(SUMS // sums, panels // (2 * machine.cores)), 1)
    options = among(columns, (1, 2, 4, 8, 16, 32), panels)
    columns = decide(f"panels of {product.columns} in a block", columns, options)
    right: Right = "copied" if readers > READERS else "in place"
    far = product.width * product.depth * _size(product) > FAR * machine.l2
    ahead = AHEAD if far and right == "in place" else 0
    ahead = decide(
        f"terms of {product.shared} asked for ahead", ahead, among(ahead, (0, 8, 16, 32))
    )
    depth = _depth(product, ROWS if right == "copied" else NEXT, decide)
    return replace(tile, depth=depth, columns=columns, right=right, ahead=ahead)


def _bands(product: Product, tile: Blocking, machine: Machine, decide: Decide) -> Blocking:
    """Blocks of rows, since there are few panels."""
    rows = max(product.height // tile.height // (2 * machine.cores), 1)
    return replace(tile, rows=rows, right="copied" if _turned(product) else "in place")


def _blocks(product: Product, tile: Blocking, machine: Machine, decide: Decide) -> Blocking:
    """Blocks of rows, columns and terms, so that the sums and a part of the left operand stay in
    the second cache; the right one is packed."""
    size, near = _size(product), min(machine.l2, L2)
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
    return replace(tile, depth=depth, rows=rows, columns=columns, left=True, right="packed")


def _even(tiles: int, most: int, cores: int) -> int:
    """Tiles in a block, at most so many, so that all cores have as many blocks."""
    blocks = -(-tiles // most)
    return -(-tiles // (-(-blocks // cores) * cores))


def _depth(product: Product, depth: int, decide: Decide) -> int:
    """Terms of the sum at a time."""
    options = among(depth, (0, *DEPTHS), max(product.depth // 2, depth))
    return decide(f"terms of {product.shared} at a time", depth, options)


Right = Literal["in place", "copied", "packed"]
WALKS: dict[str, Callable[[Product, Blocking, Machine, Decide], Blocking]] = {
    "panels": _panels,
    "few rows": _few_rows,
    "dots": _dots,
    "bands": _bands,
    "blocks": _blocks,
}
