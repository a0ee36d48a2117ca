"""The default schedule of a generated matrix product: which blocks, and which copies of operands.

`block_products` looks for products in a kernel (`product_of`), works out how each is walked
(`blocking_for`: a `Blocking`, plain data) and has `blocking` take the steps.  Other kernels that
are sums of products in this form (convolutions, attention) may call the three themselves.  The
numbers are those of the registers and caches; the choices that a tuner may make otherwise are asked
of `decide`.  (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS
34(3), 2008.)
"""

from __future__ import annotations

from dataclasses import replace

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Apply,
    Call,
    Expr,
    For,
    Kernel,
    Load,
    Stmt,
    walk,
)
from nbcomp.machine import Machine
from nbcomp.schedule import steps
from nbcomp.schedule.blocking import Blocker, Blocking, Factor, Product
from nbcomp.schedule.decisions import Decide, among, usual
from nbcomp.schedule.rewriting import find
from nbcomp.sizes import Size

HEIGHTS = {64: 12, 32: 6, 16: 6}  # rows of a tile, by bytes of a vector
REGISTERS = {64: 32, 32: 16, 16: 16}
WIDE = 8  # vectors of columns, at most
TALL, BROAD = (1, 2, 4, 6, 8, 10, 12, 14, 16), (1, 2, 3, 4, 6, 8)  # what else a tile may be
PANEL = 128 << 10  # bytes of a copied panel of the right operand: in the second cache, with room
DEPTHS = (128, 192, 256, 384, 512, 768, 1024)  # terms of the sum at a time
READERS = 2  # tiles that read a panel, beyond which it is worth copying
L2 = 1 << 20  # bytes of the second cache that are counted on
PAGE = 4096  # bytes; rows that far apart share a few lines of the first cache


def block_products(kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
    """Compute matrix products in tiles that stay in registers, in blocks that stay in caches."""
    kernel = _written_out(kernel, decide)
    for stage in kernel.stages:
        product = product_of(stage)
        if product is not None:
            try:
                how = blocking_for(product, machine, decide)
                kernel = Blocker(kernel, product, how).run()
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
            kernel = _noted(steps.generate(kernel, position), f"generate({position})")
        except ScheduleError:
            continue
        if position + 1 < len(kernel.stages) and decide(f"join product {position}", 0, (0, 1)):
            kernel = _joined(kernel, position)
    return kernel


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
        kernel = _noted(joined, f'join("{first}", "{second}")')
        pair = find(kernel, first).body
    return kernel


def _noted(kernel: Kernel, note: str) -> Kernel:
    return replace(kernel, notes=(*kernel.notes, note))


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
    if len(inner) != 1 or len(inner[0].body) != 1:
        return None
    (total,) = inner[0].body
    if not isinstance(total, Accumulate) or not total.contract or _extent(inner[0]) is None:
        return None
    assert isinstance(total.value, Apply)
    left, right = total.value.args
    columns, shared = around[-1], inner[0]
    if not _walks(right, columns) or _walks(left, columns):
        return None
    rows = around[-2] if len(around) > 1 and _walks(left, around[-2]) else None
    if rows is not None and _walks(right, rows):  # a batch of rows
        rows = None
    sizes = [1 if loop is None else _extent(loop) for loop in (rows, columns, shared)]
    if None in sizes:
        return None
    height, width, depth = (n or 0 for n in sizes)
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
    )


def _extent(loop: For) -> int | None:
    extent = loop.extent
    if not isinstance(extent, Affine) or extent.terms or isinstance(extent.constant, Size):
        return None
    return extent.constant


def _walks(factor: Expr, loop: For) -> bool:
    return _axis(factor, loop.var) is not None


def _axis(factor: Expr, var: str) -> int | None:
    """The axis of a load along which a loop walks."""
    if not isinstance(factor, Load):
        return None
    for axis, index in enumerate(factor.indices):
        if isinstance(index, Affine) and dict(index.terms).get(var):
            return axis
    return None


def _factor(factor: Expr, own: For | None, shared: For) -> Factor | None:
    """An operand that is an array, with the axes of the result and of the sum."""
    axes = [_axis(factor, loop.var) if loop else None for loop in (own, shared)]
    if not isinstance(factor, Load) or axes[1] is None or axes[0] == axes[1]:
        return None
    return Factor(factor.buffer, -1 if axes[0] is None else axes[0], axes[1])


# ------------------------------------------------------------------------------ choosing the blocks


def blocking_for(product: Product, machine: Machine, decide: Decide = usual) -> Blocking:
    """How a product is walked on a machine."""
    tile = _tile(product, machine, decide)
    walk = _walk(product, tile, machine, decide)
    if walk == "panels":
        return _panels(product, tile, decide)
    if walk == "blocks":
        return _blocks(product, tile, machine, decide)
    if walk == "bands":
        return replace(tile, walk="bands")
    return tile


def _tile(product: Product, machine: Machine, decide: Decide) -> Blocking:
    """The tile: sums, a row of the right operand and an element of the left fit in registers."""
    registers = REGISTERS.get(machine.vector_bytes, min(REGISTERS.values()))
    most = HEIGHTS.get(machine.vector_bytes, min(HEIGHTS.values()))
    height = 1
    if product.rows:
        tiles = -(-product.height // most)
        height = -(-product.height // tiles) if tiles <= 8 else most  # few tiles of one height
        height = decide(f"rows of a tile of {product.rows}", height, among(height, TALL))
    lanes = machine.vector_bytes // product.sum.buffer.dtype.itemsize
    vectors = _vectors(product, (registers - 2) // (height + 1), lanes, height, machine)
    name = f"vectors of a tile of {product.columns}"
    vectors = decide(name, vectors, among(vectors, BROAD))
    height, width = min(height, product.height), min(vectors * lanes, product.width)
    rows = max(product.height // height // (2 * machine.cores), 1)
    return Blocking("tiles", height, width, lanes, rows=rows)


def _vectors(product: Product, most: int, lanes: int, height: int, machine: Machine) -> int:
    """Vectors of columns in a tile: as many as fit, fewer where that leaves no rest or more panels.

    Sums of at least eight vectors are in flight, which hides the latency of multiply-adds.
    """
    best = max(min(most, WIDE), 1)
    enough = [v for v in range(best, 0, -1) if v * height >= 8 or v == best]
    wanted = 2 * machine.cores if product.height <= 4 * height else 1
    for v in enough:
        if product.width % (v * lanes) == 0 and product.width // (v * lanes) >= wanted:
            return v
    return best


def _walk(product: Product, tile: Blocking, machine: Machine, decide: Decide) -> str:
    """The order of the loops around tiles."""
    if not product.rows or (product.height <= tile.height and product.width <= tile.width):
        return "tiles"
    size = product.sum.buffer.dtype.itemsize
    left = product.height * product.depth * size
    tall = product.height >= 8 * tile.height
    large = left > 4 * machine.l2 or product.depth * tile.width * size > PANEL
    kind = "panels"
    if tall and product.width >= 4 * tile.width and (large or _collide(product)):
        kind = "blocks"
    elif tall and product.width < 2 * machine.cores * tile.width:
        kind = "bands"
    return decide(f"walk of {product.rows}, {product.columns}", kind, ("panels", "blocks", "bands"))


def _collide(product: Product) -> bool:
    """Whether the rows of the left operand are at the same places of the first cache."""
    if product.left is None:
        return False
    buffer, axis, shared = product.left.buffer, product.left.own, product.left.shared
    bytes_apart = buffer.strides[axis] * buffer.dtype.itemsize
    return buffer.strides[shared] == 1 and bytes_apart % PAGE == 0


def _panels(product: Product, tile: Blocking, decide: Decide) -> Blocking:
    """Panel after panel of columns; each is copied where many tiles read it."""
    right = product.right
    readers = -(-product.height // tile.height)
    turned = right is not None and right.turned
    copied = int(right is not None and (readers > READERS or turned))
    copied = decide(f"copy panels of {product.columns}", copied, (0, 1))
    depth = 0
    row = tile.width * product.sum.buffer.dtype.itemsize
    if copied and readers > 1 and product.depth * row > PANEL:
        depth = PANEL // row
    depths = among(depth, (0, *DEPTHS), max(product.depth // 2, depth))
    depth = decide(f"terms of {product.shared} at a time", depth, depths)
    return replace(tile, walk="panels", depth=depth, copied=bool(copied))


def _blocks(product: Product, tile: Blocking, machine: Machine, decide: Decide) -> Blocking:
    """Blocks of rows, columns and terms, so that the sums and a part of the left operand stay in
    the second cache; the right one is packed."""
    size = product.sum.buffer.dtype.itemsize
    near = min(machine.l2, L2)
    depths = among(512, DEPTHS, max(product.depth // 2, 512))
    depth = decide(f"terms of {product.shared} at a time", 512, depths)
    tiles = -(-product.height // tile.height)
    rows = max(min(near // 6 // (depth * size * tile.height), tiles // machine.cores), 1)
    rows = decide(f"tiles of {product.rows} in a block", rows, among(rows, (2, 4, 8, 16), tiles))
    panels = -(-product.width // tile.width)
    columns = max(min(near // 5 // (rows * tile.height * tile.width * size), panels), 1)
    columns = decide(
        f"panels of {product.columns} in a block", columns, among(columns, (4, 8, 16, 32), panels)
    )
    return replace(tile, walk="blocks", depth=depth, rows=rows, columns=columns)
