"""Reductions along rows: the reduced axes are the inner loops.

A row is walked as often as its reductions depend on each other, while it is in the cache; long
reductions to few results are split into blocks over the cores.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from nbcomp.graph.ir import Node
from nbcomp.graph.op import Contract
from nbcomp.graph.passes.nests import CHEAP
from nbcomp.graph.passes.operands import base_of
from nbcomp.loop.grammar import (
    Affine,
    Buffer,
    Expr,
    Let,
    Load,
    Store,
    Var,
    affine,
    index_add,
    index_scale,
)
from nbcomp.lowering.elements import Index
from nbcomp.lowering.group import AXES
from nbcomp.lowering.reductions import BLOCK, LONG, Reduction
from nbcomp.record import remark


class Rows(Reduction):
    """Loops for reductions whose axes are innermost in memory."""

    def rows(self, kept: list[int], row: int) -> None:
        space = self.group.space
        with self.writer.loops(
            [AXES[n % 8] for n in range(len(kept))], [space[k] for k in kept], self.location
        ) as index:
            at = dict(zip(kept, index, strict=True))
            keep = self.rows_to_keep(at)
            last = max(
                [self.phases[n] for n in (*self.main, *keep)] + self.full_output_phases() + [0]
            )
            for phase in range(last + 1):
                self.walk_row(phase, at, keep, row)
            self.row_outputs(at)
        self.close_stage()

    def rows_to_keep(self, at: dict[int, Affine]) -> dict[Node, Buffer]:
        """Nodes of one walk that a later one needs, dearer to compute again than to keep."""
        keep: dict[Node, Buffer] = {}
        last: dict[
            Node, int
        ] = {}  # the last walk in which something of the whole space needs a node
        for user in self.group.nodes:
            for operand in map(base_of, user.inputs if self.full(user) else ()):
                last[operand] = max(last.get(operand, 0), self.phases[user])
        for node in self.group.nodes:
            if not self.full(node) or node in self.main or isinstance(node.op, Contract):
                continue
            walk = self.phases[node]
            if last.get(node, 0) <= walk:
                continue
            if self.price(node, {} if walk == 0 else keep) <= CHEAP:
                reason = (
                    f"{node.title} is computed again in each walk over a row: cheaper than kept"
                )
                remark("applied", "recompute", reason, node.location)
            elif self.price(node, keep) > CHEAP:
                keep[node] = self.row_kept(node)
        return keep

    def row_kept(self, node: Node) -> Buffer:
        """Where a row of a node's values stays between two walks over it."""
        if node in self.outputs:
            return self.outputs[node]
        shape = self.row_shape(node)
        size = math.prod(shape) * node.type.dtype.itemsize
        reason = f"{node.title} is kept for one row ({size:,} bytes) between the walks over it"
        remark("applied", "store", reason, node.location)
        return self.local(node.name or f"{node.op.name}_row", node.type.dtype, shape)

    def row_shape(self, node: Node) -> tuple[int, ...]:
        """The part of a node's shape that one row has."""
        space, axes, components = self.group.space, self.group.axes, self.group.components
        with_components = node.shape == space
        return tuple(
            space[k]
            for k in range(len(space))
            if k in axes or (k in components and with_components)
        )

    def walk_row(
        self, phase: int, at: dict[int, Affine], keep: dict[Node, Buffer], row: int
    ) -> None:
        """One walk over the reduced axes: what this phase accumulates, keeps and stores."""
        reduced = [n for n in self.main if self.phases[n] == phase]
        kept_now = [n for n in keep if self.phases[n] == phase and n not in self.outputs]
        stored = phase in self.full_output_phases()
        accumulators = {n: self.accumulator(n) for n in reduced}
        blocked = row > LONG and any(n.op.fn in ("add", "multiply") for n in reduced)  # type: ignore[attr-defined]

        def body(position: dict[int, Expr], targets: dict[Node, Buffer]) -> None:
            for node in reduced:
                self.accumulate(node, position, targets[node], ())
            for node in kept_now:
                self.keep_element(node, position, keep[node])
            self.store_full(position, phase)

        if blocked:
            self.blocked_walk(at, row, accumulators, body)
        elif reduced or kept_now or stored:
            self.plain_walk(at, accumulators, body)
        for node, buffer in accumulators.items():
            self.elements.finished[node] = self.finished_row(node, buffer)
        for node, buffer in keep.items():
            if self.phases[node] == phase:
                self.elements.finished[node] = self.kept_row(node, buffer)

    def plain_walk(
        self,
        at: dict[int, Affine],
        targets: dict[Node, Buffer],
        body: Callable[[dict[int, Expr], dict[Node, Buffer]], None],
    ) -> None:
        axes = self.reduced
        extents = [self.group.space[k] for k in axes]
        names = ["r" if len(axes) == 1 else f"r{n}" for n in range(len(axes))]
        with self.writer.loops(names, extents, self.location) as index:
            body({**at, **dict(zip(axes, index, strict=True))}, targets)

    def blocked_walk(
        self,
        at: dict[int, Affine],
        row: int,
        accumulators: dict[Node, Buffer],
        body: Callable[[dict[int, Expr], dict[Node, Buffer]], None],
    ) -> None:
        """Long sums by blocks, whose sums are then added up: the rounding error stays NumPy's."""
        first, *rest = self.reduced
        extent = self.group.space[first]
        chunk = max(1, BLOCK // max(1, row // max(extent, 1)))
        blocks = -(-extent // chunk)
        partial = {
            n: self.local(f"{b.name}_parts", b.dtype, (blocks, *b.shape))
            for n, b in accumulators.items()
        }
        with self.writer.loop("b", blocks, self.location) as block:
            sums = {n: self.accumulator(n) for n in accumulators}
            inner = self.block_extent(block, chunk, extent)
            with (
                self.writer.loop("r", inner, self.location) as within,
                self.writer.loops(
                    [f"r{n}" for n in range(len(rest))], [self.group.space[k] for k in rest]
                ) as index,
            ):
                place = index_add(index_scale(block, chunk), within)
                body({**at, first: place, **dict(zip(rest, index, strict=True))}, sums)
            self.store_parts(sums, partial, (block,))
        for node, buffer in accumulators.items():
            self.sum_parts(node, partial[node], blocks, buffer, ())

    def finished_row(self, node: Node, buffer: Buffer) -> Callable[[Index], Expr]:
        """A finished reduction, read from its accumulator."""

        def read(index: Index) -> Expr:
            own = self.components_of(node, index)
            key = (buffer, tuple(str(o) for o in own))
            known = self.writer.recall(key)
            if known is not None:
                return known
            load = Load(buffer.dtype, buffer, own, node.location)
            name = self.writer.fresh(node.name or node.op.name)
            # The accumulator is final from here on, not earlier: bind it exactly here.
            frame = self.row_frame
            self.writer.frames[frame].stmts.append(Let(name, load, node.location))
            self.writer.depth[name] = frame
            value = Var(buffer.dtype, name)
            self.writer.frames[frame].memo[key] = value
            return value

        self.row_frame = len(self.writer.frames) - 1
        return read

    def keep_element(self, node: Node, position: dict[int, Expr], buffer: Buffer) -> None:
        for component, index in self.operand_indices(node, position):
            value = self.elements.at(node, index)
            axes = [position[k] for k in self.group.axes]
            place = self.merge_row_index(axes, component)
            self.writer.add(Store(buffer, place, value, node.location))

    def merge_row_index(self, axes: list[Expr], component: tuple[int, ...]) -> Index:
        """Reduced axes and components in the order of the space."""
        reduced, parts = iter(axes), iter(component)
        place: list[Expr] = []
        for k in range(len(self.group.space)):
            if k in self.group.axes:
                place.append(next(reduced))
            elif k in self.group.components and component:
                place.append(affine(next(parts)))
        return tuple(place)

    def kept_row(self, node: Node, buffer: Buffer) -> Callable[[Index], Expr]:
        """A node kept from an earlier walk, read back."""
        whole = buffer.role == "output"

        def read(index: Index) -> Expr:
            own = index
            if not whole:
                space, axes, components = (
                    self.group.space,
                    self.group.axes,
                    self.group.components,
                )
                if len(index) == len(space):
                    keep = [k for k in range(len(space)) if k in axes or k in components]
                    own = tuple(index[k] for k in keep)[: len(buffer.shape)]
                    if node.shape != space:
                        own = tuple(index[k] for k in range(len(space)) if k in axes)
                else:
                    left = [k for k in range(len(space)) if k not in components]
                    own = tuple(i for k, i in zip(left, index, strict=True) if k in axes)
            return Load(buffer.dtype, buffer, own, node.location)

        return read

    def split_rows(self, kept: list[int]) -> None:
        space = self.group.space
        first, *rest = self.reduced
        row = math.prod(space[k] for k in self.group.axes)
        extent = space[first]
        chunk = max(1, BLOCK // max(1, row // extent))
        blocks = -(-extent // chunk)
        outer = [space[k] for k in kept]
        names = [AXES[n % 8] for n in range(len(kept))]
        parts = {
            n: self.temp(
                f"{n.name or n.op.name}_parts",
                n.type.dtype,
                (blocks, *outer, *self.component_shape(n)),
            )
            for n in self.main
        }
        with (
            self.writer.loop("b", blocks, self.location) as block,
            self.writer.loops(names, outer, self.location) as index,
        ):
            at = dict(zip(kept, index, strict=True))
            accumulators = {n: self.accumulator(n) for n in self.main}
            inner = self.block_extent(block, chunk, extent)
            with (
                self.writer.loop("r", inner, self.location) as within,
                self.writer.loops(
                    [f"r{n}" for n in range(len(rest))], [space[k] for k in rest]
                ) as tail,
            ):
                place = index_add(index_scale(block, chunk), within)
                position = {**at, first: place, **dict(zip(rest, tail, strict=True))}
                for node, buffer in accumulators.items():
                    self.accumulate(node, position, buffer, ())
                self.store_full(position)
            self.store_parts(accumulators, parts, (block, *index))
        self.close_stage()
        parts, blocks = self.fewer_parts(parts, blocks, names, outer)
        with self.writer.loops(names, outer, self.location) as index:
            at = dict(zip(kept, index, strict=True))
            for node in self.main:
                buffer = self.accumulator(node)
                self.sum_parts(node, parts[node], blocks, buffer, index)
                self.elements.finished[node] = self.finished_row(node, buffer)
            self.row_outputs(at)
        self.close_stage()
