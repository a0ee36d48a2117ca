"""The default schedule of a generated matrix product: found, walked, and the steps for it.

`block_products` looks for products in a kernel (`finding`), works out how each is walked
(`walks`: a `Blocking`, plain data; `instructed` for narrow numbers) and has `blocking` take the
steps.  Other kernels that are sums of products in this form (convolutions, attention) may call the
three themselves.
"""

from __future__ import annotations

from typing import TypeGuard

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import Call, For, Kernel, Stmt, walk
from nbcomp.machine import Machine
from nbcomp.schedule import remarks, steps
from nbcomp.schedule.blocking import Blocker
from nbcomp.schedule.blocks import Product
from nbcomp.schedule.decisions import Decide, usual
from nbcomp.schedule.finding import factors_of, product_of, walks_along
from nbcomp.schedule.instructed import in_groups, instructed, with_groups
from nbcomp.schedule.rewriting import find, noted
from nbcomp.schedule.stepwise import Stepwise
from nbcomp.schedule.walks import FITTING, blocking_for, parts_for, size_of
from nbcomp.sizes import Size

BESIDE = 4  # vectors of sums at a time, where their parts are added up


def block_products(kernel: Kernel, machine: Machine, decide: Decide = usual) -> Kernel:
    """Compute matrix products in tiles that stay in registers, in blocks that stay in caches."""
    kernel = _written_out(kernel, decide)
    for position in range(len(kernel.stages)):
        kernel = _rows_merged(kernel, position)
    for position in reversed(range(len(kernel.stages))):
        kernel = _in_parts(kernel, position, machine, decide)
    for stage in kernel.stages:
        product = product_of(stage)
        if product is not None and not _packed(product, machine):
            try:
                there = bool(product.inner)  # the terms came in groups, packed
                grouped, product, instruction = with_groups(kernel, product, machine)
                how = (in_groups if there else blocking_for)(product, machine, decide)
                if instruction:
                    how = instructed(product, how, instruction, there, machine, decide)
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


def _in_parts(kernel: Kernel, position: int, machine: Machine, decide: Decide) -> Kernel:
    """The sums of a product in parts, a core each, where its operands are read best that way."""
    product = product_of(kernel.stages[position])
    count = parts_for(product, machine, decide) if product is not None else 1
    if product is None or count == 1:
        return kernel
    made = Stepwise(kernel)
    made.do("split_sum", product.shared, count)
    remarks.in_parts(product, count)
    *_, columns = (s for s in walk((made.kernel.stages[position + 1],)) if _walks(s))
    for inner in _loops_in(columns):
        made.do("unroll", inner.var)
    made.do("vectorize", columns.var, unroll=BESIDE)
    return made.kernel


def _rows_merged(kernel: Kernel, position: int) -> Kernel:
    """The rows of all products of a stack as rows of one, where they share the right operand."""
    while True:
        stage = kernel.stages[position]
        product = product_of(stage)
        if product is None or not product.rows:
            return kernel
        outer = [s for s in walk((stage,)) if isinstance(s, For)]
        above = next((s for s in outer if any(x.var == product.rows for x in _loops_in(s))), None)
        _, right = factors_of(product.sum)
        if above is None or walks_along(right, above):
            return kernel
        try:
            fused = steps.fuse(kernel, above.var, product.rows)
        except ScheduleError:
            return kernel
        kernel = noted(fused, f'fuse("{above.var}", "{product.rows}")')


def _loops_in(loop: For) -> list[For]:
    """The loops that are statements of a loop."""
    return [s for s in loop.body if isinstance(s, For)]


def _walks(stmt: Stmt) -> TypeGuard[For]:
    """Whether a statement is a loop around others."""
    return isinstance(stmt, For) and bool(_loops_in(stmt))


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


def _packed(product: Product, machine: Machine) -> bool:
    """Whether the right operand came in blocks as narrow as a tile, with nothing in between: then
    there is nothing to copy, and `sums` has the tile for it."""
    right, lanes = product.right, machine.vector_bytes // size_of(product)
    if right is None or len(right.buffer.shape) < 3 or isinstance(product.height, Size):
        return False
    width = right.buffer.shape[right.own] if right.own >= 0 else 0
    together = right.buffer.strides[right.shared] == width and not right.turned
    return together and width == product.width <= FITTING * lanes
