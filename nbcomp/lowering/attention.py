"""Attention as loops over blocks of rows: scores, what is done to a row, the product with values.

    for h: for b: (alloc s[rows, m]
                   for i: for j: (total = 0; for d: total += q[i, d] * kt[d, j]; s[i, j] = total)
                   for i: [the walks over a row of s, as in `rows`; the last leaves weights in s]
                   for i: for e: (total = 0; for j: total += s[i, j] * v[j, e]; out[i, e] = total))

The scores are where the cache is.  Operands whose columns are not neighbours in memory are copied
first.  Source of the idea: Dao, Fu, Ermon, Rudra and Ré, FlashAttention, arXiv:2205.14135; a row is
kept whole here, so that softmax has NumPy's own steps.
"""

from __future__ import annotations

from collections.abc import Callable

from nbcomp.graph.ir import Node
from nbcomp.graph.op import Contract, Reduce
from nbcomp.graph.passes.attention import ROWS_BYTES
from nbcomp.graph.passes.materialise import element_strides
from nbcomp.graph.passes.operands import base_of
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Apply,
    Buffer,
    Expr,
    Load,
    Store,
    affine,
    const,
    index_scale,
)
from nbcomp.lowering.elements import Index, broadcast_index
from nbcomp.lowering.rows import Rows
from nbcomp.lowering.windows import add

TALL, STEP = 64, 8  # rows of a block: at most, and the multiple of which they are if they may
PARALLEL = 4  # iterations that are enough for the outermost loop


class Attention(Rows):
    """Loops for two products and the rows between them."""

    def contract(self, node: Node) -> None:
        """Nothing yet: both products are computed block by block."""

    def body(self) -> None:
        products = [n for n in self.group.nodes if isinstance(n.op, Contract)]
        self.scores, self.result = products
        self.weights = self.result.inputs[0]
        self.find_reductions()
        self.reduced = [len(self.group.space) - 1]
        self.queries = self.operand(self.scores.inputs[0])
        self.keys, self.values = (self.columns(n.inputs[1]) for n in products)
        *batch, rows, row = self.group.space
        height = self.height(rows, row)
        blocks, rest = divmod(rows, height)
        loops = [*((f"b{k}", n) for k, n in enumerate(batch)), ("block", blocks)]
        order = sorted(range(len(loops)), key=lambda k: k != self.outermost(batch, blocks))
        with self.writer.loops([loops[k][0] for k in order], [loops[k][1] for k in order]) as at:
            index = dict(zip(order, at, strict=True))
            outer = tuple(index[k] for k in range(len(batch)))
            self.block(outer, add(index_scale(index[len(batch)], height), affine(0)), height)
        self.close_stage()
        if rest:
            with self.writer.loops([f"b{k}" for k in range(len(batch))], batch) as outer:
                self.block(outer, affine(rows - rest), rest)
            self.close_stage()

    def outermost(self, batch: list[int], blocks: int) -> int:
        """The loop whose iterations are the work of the cores: of whole heads, if there are
        enough, since they share keys and values."""
        sizes = [*batch, blocks]
        longest = max(range(len(batch)), key=batch.__getitem__, default=len(batch))
        enough = sizes[longest] >= PARALLEL
        return longest if enough else max(range(len(sizes)), key=sizes.__getitem__)

    def height(self, rows: int, row: int) -> int:
        """Rows of a block: as the cache has room for, without a rest if that may be."""
        most = max(STEP, ROWS_BYTES // 2 // (row * self.result.type.dtype.itemsize))
        most = min(most - most % STEP, TALL, rows)
        whole = [n for n in range(most, 0, -1) if rows % n == 0 and n % STEP == 0]
        return whole[0] if whole and 2 * whole[0] > most else most

    # --------------------------------------------------------------------------------- operands

    def operand(self, node: Node) -> Buffer:
        """The memory of an operand, through the views it may be."""
        strides = element_strides(node)
        assert strides is not None
        return self.buffer(node, strides, "input")

    def columns(self, node: Node) -> Buffer:
        """A right operand with neighbouring columns: as it is, or copied."""
        source = self.operand(node)
        if source.strides[-1] == 1 or source.shape[-1] == 1:
            return source
        packed = self.temp(f"{source.name}_columns", source.dtype, source.shape)
        names = [f"b{k}" for k in range(len(source.shape) - 2)]
        with self.writer.loops([*names, "d", "j"], list(source.shape), self.location) as index:
            value = Load(source.dtype, source, index, node.location)
            self.writer.add(Store(packed, index, value, node.location))
        self.close_stage()
        self.writer.complete.add(packed.memory)
        return packed

    # ----------------------------------------------------------------------------------- blocks

    def block(self, outer: tuple[Affine, ...], first: Affine, height: int) -> None:
        """One block of rows, from the first on."""
        dtype, row = self.scores.type.dtype, self.group.space[-1]
        near = kept = self.local("scores", dtype, (height, row))
        if self.weights.type.dtype != dtype:
            kept = self.local("weights", self.weights.type.dtype, (height, row))
        q, k, v = self.queries, self.keys, self.values

        def query(i: Affine, d: Affine) -> Load:
            return Load(q.dtype, q, (*broadcast_index(outer, q.shape[:-2]), add(first, i), d))

        def key(d: Affine, j: Affine) -> Load:
            return Load(k.dtype, k, (*broadcast_index(outer, k.shape[:-2]), d, j))

        def value(j: Affine, e: Affine) -> Load:
            return Load(v.dtype, v, (*broadcast_index(outer, v.shape[:-2]), j, e))

        def weight(i: Affine, j: Affine) -> Load:
            return Load(kept.dtype, kept, (i, j))

        def keep(i: Affine, j: Affine, total: Expr) -> None:
            self.writer.add(Store(near, (i, j), total, self.scores.location))

        def finish(i: Affine, e: Affine, total: Expr) -> None:
            place = (*outer, add(first, i), e)
            out = self.outputs[self.result]
            self.writer.add(Store(out, place, total, self.result.location))

        self.product(self.scores, (height, row, q.shape[-1]), query, key, keep)
        with self.writer.loop("i", height, self.location) as i:
            at = {**dict(enumerate(outer)), len(outer): add(first, i)}
            self.rows_of(at, near, kept, i, row)
        self.product(self.result, (height, v.shape[-1], row), weight, value, finish)

    def product(
        self,
        node: Node,
        sizes: tuple[int, int, int],
        left: Callable[[Affine, Affine], Expr],
        right: Callable[[Affine, Affine], Expr],
        store: Callable[[Affine, Affine, Expr], None],
    ) -> None:
        """A perfect nest over (rows, columns) with the sum over the shared axis in a local."""
        rows, columns, shared = sizes
        dtype, place = node.type.dtype, node.location
        with self.writer.loops(["i", "j"], [rows, columns], place) as (i, j):
            for var in (v for index in (i, j) for v, _ in index.terms):
                self.writer.depth[var] = len(self.writer.frames) - 1
            total = self.local("total", dtype, ())
            self.writer.add(Store(total, (), const(0, dtype), place))
            with self.writer.loop("k", shared, place) as k:
                term = Apply(dtype, "multiply", (left(i, k), right(k, j)), place)
                self.writer.add(Accumulate(total, (), "add", term, place, contract=True))
            store(i, j, Load(dtype, total, (), place))

    def rows_of(
        self, at: dict[int, Affine], near: Buffer, kept: Buffer, i: Affine, row: int
    ) -> None:
        """The walks over one row of scores, which leave the weights: in its place, if the dtype
        is the same."""
        scores = self.scores
        self.elements.finished[scores] = lambda index: Load(
            near.dtype, near, (i, index[-1]), scores.location
        )
        self.kept = kept, i
        keep = self.rows_to_keep(at)
        for phase in range(self.phases[self.weights] + 1):
            self.walk_row(phase, at, keep, row)
        self.elements.finished.clear()  # what is known of this block's rows

    def full_output_phases(self) -> list[int]:
        return [self.phases[self.weights]]

    def store_full(self, position: dict[int, Expr], phase: int = 0) -> None:
        """The weights go where the product with values finds them."""
        if phase == self.phases[self.weights]:
            kept, i = self.kept
            index = tuple(position[k] for k in range(len(self.group.space)))
            value = self.scaled(index) or self.elements.at(self.weights, index)
            self.writer.add(Store(kept, (i, index[-1]), value, self.weights.location))

    def scaled(self, index: Index) -> Expr | None:
        """A weight of softmax by a factor for the whole row instead of a division each.

        Both within 1.5 units in the last place of the quotient.  The divisor is 1 or more, or NaN:
        it is a sum of exponentials, the largest of which is that of 0.
        """
        weights = self.weights
        if weights.op.name != "divide" or not _softmax(weights.inputs[0], weights.inputs[1]):
            return None
        above, below = weights.inputs
        dtype, place = weights.type.dtype, weights.location
        total = self.elements.at(below, broadcast_index(index, below.shape))
        key = ("scale", id(total))
        factor = self.writer.recall(key)
        if factor is None:
            quotient = Apply(dtype, "divide", (const(1, dtype), total), place)
            factor = self.writer.remember(key, self.writer.bind("scale", quotient, place))
        return Apply(dtype, "multiply", (self.elements.at(above, index), factor), place)


def _softmax(above: Node, below: Node) -> bool:
    """Whether these are exp(x - max(x)) and its sum, along the last axis; the one may be kept
    finite, the other at least 1."""
    inner = above.inputs[0] if above.op.name == "exp" else above
    if inner.op.name != "subtract":
        return False
    x, top, total = inner.inputs[0], _without_bound(inner.inputs[1]), _without_bound(below)
    rows = all(_along_rows(n) for n in (top, total))
    return (
        rows
        and (top.op.name, total.op.name) == ("max", "sum")
        and top.inputs[0] is x
        and (total.inputs[0] is above)
    )


def _without_bound(node: Node) -> Node:
    """What a bound, for rows in which nothing is seen, was put on."""
    node = base_of(node)
    bounded = {"where": 2, "maximum": 0}.get(node.op.name)
    return node if bounded is None else base_of(node.inputs[bounded])


def _along_rows(node: Node) -> bool:
    return isinstance(node.op, Reduce) and node.op.axes == (len(node.inputs[0].shape) - 1,)
