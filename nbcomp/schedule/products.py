"""The default schedule of a generated matrix product: register tiles, packed operands.

The result is computed in tiles whose sums stay in registers while the shared axis is walked; what
does not fill a tile is peeled off and gets smaller tiles of its own.  The operands are copied first
into the order in which the tiles read them.  (Goto and van de Geijn, "Anatomy of high-performance
matrix multiplication", ACM TOMS 34(3), 2008; the sizes are those of the register files.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Apply,
    Buffer,
    Expr,
    For,
    Kernel,
    Load,
    Stmt,
    walk,
)
from nbcomp.machine import Machine
from nbcomp.schedule import steps
from nbcomp.schedule.decisions import Decide, among, usual
from nbcomp.schedule.language import Step
from nbcomp.schedule.rewriting import constant_extent, find, loop_names

VECTORS = 2  # of columns in a tile
# Rows of a tile, by bytes of a vector: with 32 registers or 16, some of which hold the operands.
HEIGHTS = {64: 12, 32: 6, 16: 6}
WIDE = 8  # vectors of columns where the result has one row
TALL, BROAD = (1, 2, 4, 6, 8, 10, 12, 14, 16), (1, 2, 3, 4, 6, 8)  # what else a tile may be
PACKED_ROWS = 4  # tiles of rows from which packing the right operand pays


def block_products(kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
    """Compute matrix products in tiles that stay in registers, from packed operands."""
    for stage in kernel.stages:
        product = _product(stage)
        if product is not None:
            try:
                kernel = _Blocking(kernel, product, machine, decide).run()
            except ScheduleError:  # not as simple as it looked: the other steps do what they can
                continue
    return kernel


@dataclass(frozen=True)
class _Product:
    """The loops over rows ("" where there is one row), columns and the shared axis; the sum."""

    rows: str
    columns: str
    shared: str
    sum: Accumulate


def _product(stage: Stmt) -> _Product | None:
    """The loops of a generated product, if a stage is one."""
    around: list[str] = []
    while isinstance(stage, For) and len(stage.body) == 1:
        around.append(stage.var)
        stage = stage.body[0]
    if not isinstance(stage, For):
        return None
    around.append(stage.var)
    inner = [s for s in stage.body if isinstance(s, For)]
    if len(inner) != 1 or len(inner[0].body) != 1:
        return None
    (total,) = inner[0].body
    if not isinstance(total, Accumulate) or not total.contract:
        return None
    left, right = _factors(total)
    columns = around[-1]
    if _axis(right, columns) is None or _axis(left, columns) is not None:
        return None
    rows = around[-2] if len(around) > 1 and _axis(left, around[-2]) is not None else ""
    if rows and _axis(right, rows) is not None:  # a batch of rows
        rows = ""
    return _Product(rows, columns, inner[0].var, total)


def _factors(total: Accumulate) -> tuple[Expr, Expr]:
    assert isinstance(total.value, Apply)
    left, right = total.value.args
    return left, right


def _axis(factor: Expr, var: str) -> int | None:
    """The axis of a load along which a loop walks."""
    if not isinstance(factor, Load):
        return None
    for axis, index in enumerate(factor.indices):
        if isinstance(index, Affine) and dict(index.terms).get(var):
            return axis
    return None


@dataclass(frozen=True)
class _Nest:
    """A part of the result: its loops over rows and columns, and their extents."""

    rows: str
    columns: str
    height: int
    width: int


class _Blocking:
    """The steps, one after another, each noted."""

    def __init__(self, kernel: Kernel, product: _Product, machine: Machine, decide: Decide) -> None:
        self.kernel, self.product, self.decide = kernel, product, decide
        self.lanes = machine.vector_bytes // product.sum.buffer.dtype.itemsize
        height = HEIGHTS.get(machine.vector_bytes, min(HEIGHTS.values()))
        vectors = VECTORS if product.rows else WIDE
        if product.rows:
            height = decide(f"rows of a tile of {product.rows}", height, among(height, TALL))
        vectors = decide(f"vectors of a tile of {product.columns}", vectors, among(vectors, BROAD))
        self.height, self.width = height, self.lanes * vectors

    def run(self) -> Kernel:
        rows, columns = self.product.rows, self.product.columns
        height = constant_extent(find(self.kernel, rows)) if rows else 1
        width = constant_extent(find(self.kernel, columns))
        self.width, self.height = min(self.width, width), min(self.height, height)
        whole = _Nest(rows, columns, height, width)
        for nest in list(self.parts(whole)):
            self.block(nest)
        self.pack(height)
        return self.kernel

    def do(self, name: str, *arguments: str | int, **options: int) -> list[str]:
        """Take a step; the names of the loops that are new after it."""
        before = loop_names(self.kernel)
        step = Step(name, arguments, tuple(options.items()))
        made = getattr(steps, name)(self.kernel, *arguments, **options)
        self.kernel = replace(made, notes=(*self.kernel.notes, str(step)))
        return [v for v in loop_names(self.kernel) if v not in before]

    def parts(self, whole: _Nest) -> Iterator[_Nest]:
        """What whole tiles cover, and what is left at the sides."""
        sides = [whole]
        rest = whole.width % self.width
        if rest:
            (last,) = [v for v in self.do("peel", whole.columns, rest) if self.around_sum(v)]
            below = whole.rows
            if whole.rows:
                (below,) = self.do("distribute", whole.rows)
            sides = [
                replace(whole, width=whole.width - rest),
                _Nest(below, last, whole.height, rest),
            ]
        for side in sides:
            rest = side.height % self.height
            if not rest:
                yield side
                continue
            new = self.do("peel", side.rows, rest)
            yield replace(side, height=side.height - rest)
            yield _Nest(new[0], new[1], rest, side.width)

    def around_sum(self, var: str) -> bool:
        """Whether a loop holds the loop over the shared axis, rather than being it."""
        return any(isinstance(s, For) for s in walk(find(self.kernel, var).body))

    def block(self, nest: _Nest) -> None:
        """One part of the result in tiles."""
        outer: list[str] = []
        height, width = min(nest.height, self.height), min(nest.width, self.width)
        if nest.height > height:
            outer += self.do("split", nest.rows, height)
        if nest.width > width:
            outer += self.do("split", nest.columns, width)
        inner = [v for v in (nest.rows, nest.columns) if v]
        if len(outer) == 2 or (outer and nest.rows and nest.width > width):
            self.do("reorder", *self.ordered(outer), *inner)
        shared = self.shared(nest.columns)
        columns = [nest.columns, *self.do("distribute", nest.columns)]
        rows = [nest.rows, *self.do("distribute", nest.rows)] if nest.rows else []
        self.do("reorder", shared, *self.around(shared))
        if rows and width % self.lanes:
            (total,) = (
                s for s in walk(find(self.kernel, shared).body) if isinstance(s, Accumulate)
            )
            self.do("pad", total.buffer.name, -(-width // self.lanes) * self.lanes)
        for var in rows:
            self.do("unroll", var)
        vectors = -(-width // self.lanes)
        for var in columns:
            self.do("vectorize", var, unroll=vectors)

    def ordered(self, outer: list[str]) -> list[str]:
        """The loops over tiles, outside in."""
        name = f"tiles of {self.product.columns} outside"
        return outer[::-1] if len(outer) == 2 and self.decide(name, 0, (0, 1)) else outer

    def shared(self, columns: str) -> str:
        """The loop over the shared axis in a loop over columns."""
        return next(s.var for s in find(self.kernel, columns).body if isinstance(s, For))

    def around(self, shared: str) -> list[str]:
        """The loops of a tile, of which the loop over the shared axis is all there is."""
        found = find(self.kernel, shared)
        around = [
            s.var
            for s in walk(self.kernel.stages)
            if isinstance(s, For) and len(s.body) == 1 and any(x is found for x in walk(s.body))
        ]
        return [v for v in around if v != shared][-(2 if self.product.rows else 1) :]

    def pack(self, height: int) -> None:
        """Copy the operands into the order of the tiles, where enough tiles read them."""
        _, right = _factors(self.product.sum)
        pays = int(height >= PACKED_ROWS * self.height)
        if self.decide(f"pack for {self.product.columns}", pays, (0, 1)):
            self.pack_one(right, self.product.columns, self.width)

    def pack_one(self, factor: Expr, var: str, by: int) -> None:
        buffer = factor.buffer if isinstance(factor, Load) else None
        axis = _axis(factor, var)
        if isinstance(buffer, Buffer) and axis is not None and by > 1:
            self.do("pack", buffer.name, axis, by)
