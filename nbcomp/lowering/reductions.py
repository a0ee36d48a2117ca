"""What reductions have in common: the order memory is walked in, accumulators, partial results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from nbcomp.graph.ir import Node
from nbcomp.graph.op import Contract, Reduce
from nbcomp.graph.passes.nests import CHEAP
from nbcomp.graph.passes.operands import base_of, is_tiny
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Apply,
    Buffer,
    Expr,
    Let,
    Load,
    Store,
    affine,
    const,
    expressions,
    index_add,
    index_scale,
    loop_var,
    walk_expr,
)
from nbcomp.lowering.elements import Elements, Index
from nbcomp.lowering.group import GroupLowering
from nbcomp.lowering.writer import Writer
from nbcomp.sizes import among, leaves_rest
from nbcomp.types import INT64

BLOCK = 2048  # terms added up before their sum joins others: bounds the rounding error of long sums
LONG = 4096  # reductions up to this length are one block
ACCUMULATORS = 16 << 10  # bytes of the columns reduced together: half of a first-level cache
SPLIT = 1 << 15  # elements from which a reduction to few results is split over the cores
GROUP = 64  # partial results added up together


class Reduction(GroupLowering):
    """A group that reduces some axes of its space."""

    def analyse(self) -> list[int]:
        """Find the reductions, the walks they need, the order of the axes; gives the kept axes."""
        self.find_reductions()
        axes = self.group.axes
        order = self.memory_order()
        self.reduced = [k for k in order if k in axes]
        last = order.index(self.reduced[-1])
        self.tail = self.columns_together(order[last + 1 :])
        return [k for k in order if k not in axes]

    def find_reductions(self) -> None:
        """Find the reductions and the walks they need."""
        axes = self.group.axes
        self.main = [
            n
            for n in self.group.nodes
            if isinstance(n.op, Reduce)
            and n.op.axes == axes
            and not is_tiny(n)
            and self.full(n.inputs[0])
        ]
        self.phases = self.number_phases()

    @property
    def wide(self) -> int:
        """How many columns are reduced together."""
        column = sum(n.type.dtype.itemsize * math.prod(self.component_shape(n)) for n in self.main)
        return max(64, ACCUMULATORS // max(column, 1))

    @property
    def late(self) -> bool:
        """Whether something of the whole space needs a finished reduction."""
        return any(self.full(n) and self.phases[n] > 0 for n in self.group.nodes)

    def number_phases(self) -> dict[Node, int]:
        """In which walk over the reduced axes each node is computed; a reduction ends its walk."""
        phases: dict[Node, int] = {}
        ending = set(self.main)
        for node in self.group.nodes:
            phase = 0
            for operand in node.inputs:
                b = base_of(operand)
                if b in phases:
                    phase = max(phase, phases[b] + (b in ending))
            phases[node] = phase
        return phases

    def memory_order(self) -> list[int]:
        """The axes that are looped over, those with the largest steps in memory first.

        Decided by the largest array that is read along all of them; else the order of the space.
        """
        space, components = self.group.space, self.group.components
        axes = [k for k in range(len(space)) if k not in components]
        best: tuple[int, list[int]] = (0, axes)
        for load in self.probe(axes):
            steps = dict.fromkeys(axes, 0)
            for place, stride in zip(load.indices, load.buffer.strides, strict=True):
                for var, factor in place.terms if isinstance(place, Affine) else ():
                    steps[int(var[1:])] += abs(stride * factor)
            if all(steps[k] or space[k] == 1 for k in axes) and load.buffer.nbytes > best[0]:
                best = (load.buffer.nbytes, sorted(axes, key=lambda k: -steps[k]))
        return best[1]

    def probe(self, axes: list[int]) -> Iterator[Load]:
        """What the reductions read, as loads indexed by one variable per axis, `a0`, `a1`, …"""
        writer = Writer()
        elements = Elements(writer, self.group.nodes, self.names)
        elements.memory = self.elements.memory
        position = {k: loop_var(f"a{k}") if self.group.space[k] > 1 else affine(0) for k in axes}
        writer.depth = {f"a{k}": 0 for k in axes}
        for node in self.main:
            for _, index in self.operand_indices(node.inputs[0], position):  # type: ignore[arg-type]
                if self.phases[node] == 0:
                    writer.add(Let("probe", elements.at(node.inputs[0], index)))
        for stmt in writer.stage():
            for root in expressions(stmt):
                yield from (e for e in walk_expr(root) if isinstance(e, Load))

    def full(self, node: Node) -> bool:
        """Whether a node (seen through views) has the whole space, components kept or not."""
        space, components = self.group.space, self.group.components
        dropped = tuple(n for k, n in enumerate(space) if k not in components)
        ones = tuple(1 if k in components else n for k, n in enumerate(space))
        return among(node.shape, (space, dropped, ones))

    def full_output_phases(self) -> list[int]:
        return [self.phases[n] for n in self.outputs if self.is_full_output(n)]

    def is_full_output(self, node: Node) -> bool:
        return (
            self.full(node)
            and node in self.phases
            and node not in self.main
            and not isinstance(node.op, Contract)
        )

    def columns_together(self, tail: list[int]) -> list[int]:
        """The innermost of the axes after the reduced ones whose accumulators fit the cache."""
        space = self.group.space
        while len(tail) > 1 and math.prod(space[k] for k in tail[1:]) > self.wide:
            tail = tail[1:]
        return tail

    def block_extent(self, block: Affine, chunk: int, extent: int) -> Expr | int:
        """Iterations of a block: `chunk`, fewer in the last one."""
        if extent <= chunk or not leaves_rest(extent, chunk):
            return min(chunk, extent)
        left = index_scale(block, -chunk, extent)
        return Apply(INT64, "minimum", (affine(chunk), left))

    def accumulator(self, node: Node) -> Buffer:
        """A local for a reduction's result at one point of the outer loops, one per component."""
        shape = self.component_shape(node)
        buffer = self.local(node.name or f"{node.op.name}_", node.type.dtype, shape)
        self.start(buffer, (), node)
        return buffer

    def component_shape(self, node: Node) -> tuple[int, ...]:
        """Lengths of the component axes that a reduction keeps."""
        space, components = self.group.space, self.group.components
        if node.inputs[0].shape != space:
            return ()
        return tuple(space[k] for k in components)

    def start(self, buffer: Buffer, at: Index, node: Node) -> None:
        """buffer[at, …] = the value a reduction starts from: for a sum 0.0, so that one of -0.0
        only is 0.0, as in NumPy."""
        assert isinstance(node.op, Reduce)
        value = node.op.identity(buffer.dtype)
        for position in np.ndindex(*buffer.shape[len(at) :]):
            own = tuple(affine(int(p)) for p in position)
            self.writer.add(Store(buffer, (*at, *own), const(value, buffer.dtype), node.location))

    def accumulate(self, node: Node, position: dict[int, Expr], target: Buffer, at: Index) -> None:
        """target[at, component] op= the operand's element, for every component."""
        assert isinstance(node.op, Reduce)
        operand = node.inputs[0]
        for component, index in self.operand_indices(operand, position):
            value = self.elements.at(operand, index)
            own = tuple(affine(c) for c in component) if self.component_shape(node) else ()
            self.writer.add(Accumulate(target, (*at, *own), node.op.fn, value, node.location))

    def operand_indices(
        self, operand: Node, position: dict[int, Expr]
    ) -> Iterator[tuple[tuple[int, ...], Index]]:
        """(component, index) of a full node at one point of the loops."""
        space, components = self.group.space, self.group.components
        if operand.shape != space:
            yield (), self.reduced_index(operand, position, components)  # type: ignore[arg-type]
            return
        for component in np.ndindex(*(space[k] for k in components)):
            fixed = dict(zip(components, map(int, component), strict=True))
            yield (
                tuple(fixed.values()),
                tuple(affine(fixed[k]) if k in fixed else position[k] for k in range(len(space))),
            )

    def components_of(self, node: Node, index: Index) -> Index:
        """The component part of a reduction's own index."""
        if not self.component_shape(node):
            return ()
        assert isinstance(node.op, Reduce)
        left = iter(index)
        own = []
        for k in range(len(self.group.space)):
            if k in node.op.axes:
                if node.op.keepdims:
                    next(left)
                continue
            place = next(left)
            if k in self.group.components:
                own.append(place)
        return tuple(own)

    def row_outputs(self, at: dict[int, Affine]) -> None:
        """Results with one element per row (per component)."""
        axes, components = self.group.axes, self.group.components
        for node, buffer in self.outputs.items():
            if self.is_full_output(node) or isinstance(node.op, Contract):
                continue
            for index in self.row_indices(node, at, (*axes, *components)):
                value = self.elements.at(node, index)
                self.writer.add(Store(buffer, index, value, node.location))

    def row_indices(
        self, node: Node, at: dict[int, Affine], gone: Sequence[int]
    ) -> Iterator[Index]:
        """The indices of a per-row node: one, or one per component it keeps."""
        space, axes, components = self.group.space, self.group.axes, self.group.components
        keeps = [k for k in range(len(space)) if k not in axes]
        with_components = among(
            node.shape,
            (
                tuple(space[k] for k in keeps),
                tuple(1 if k in axes else n for k, n in enumerate(space)),
            ),
        )
        if not components or not with_components:
            yield self.reduced_index(node, at, gone)
            return
        ones = len(node.shape) == len(space)
        for component in np.ndindex(*(space[k] for k in components)):
            fixed = dict(zip(components, map(int, component), strict=True))
            full = {**at, **{k: affine(c) for k, c in fixed.items()}}
            yield tuple(
                affine(0) if k in axes else full[k]
                for k in range(len(space))
                if ones or k not in axes
            )

    def store_full(self, position: dict[int, Expr], phase: int = 0) -> None:
        """Store the results of a walk that have the whole space, at one point of the loops."""
        for node, buffer in self.outputs.items():
            if self.is_full_output(node) and self.phases[node] == phase:
                for own in self.component_indices(node, position):  # type: ignore[arg-type]
                    value = self.elements.at(node, own)
                    self.writer.add(Store(buffer, own, value, node.location))

    def store_parts(
        self, accumulators: dict[Node, Buffer], parts: dict[Node, Buffer], at: Index
    ) -> None:
        for node, buffer in accumulators.items():
            for position in np.ndindex(*buffer.shape):
                own = tuple(affine(int(p)) for p in position)
                value = Load(buffer.dtype, buffer, own)
                self.writer.add(Store(parts[node], (*at, *own), value, node.location))

    def fewer_parts(
        self, parts: dict[Node, Buffer], blocks: int, names: list[str], outer: list[int]
    ) -> tuple[dict[Node, Buffer], int]:
        """Add up many partial results in groups first, so that no sum has many terms."""
        if blocks <= 2 * GROUP:
            return parts, blocks
        groups = -(-blocks // GROUP)
        fewer = {
            n: self.temp(f"{b.name}_groups", b.dtype, (groups, *b.shape[1:]))
            for n, b in parts.items()
        }
        with (
            self.writer.loop("g", groups, self.location) as group,
            self.writer.loops(names, outer, self.location) as index,
        ):
            accumulators = {n: self.accumulator(n) for n in parts}
            inner = self.block_extent(group, GROUP, blocks)
            with self.writer.loop("b", inner, self.location) as within:
                block = index_add(index_scale(group, GROUP), within)
                for node, buffer in accumulators.items():
                    self.add_part(node, parts[node], (block, *index), buffer)
            self.store_parts(accumulators, fewer, (group, *index))
        self.close_stage()
        return fewer, groups

    def sum_parts(
        self, node: Node, parts: Buffer, blocks: int, target: Buffer, index: Index
    ) -> None:
        """target op= parts[0..blocks, index], for every component."""
        with self.writer.loop("b", blocks, self.location) as block:
            self.add_part(node, parts, (block, *index), target)

    def add_part(self, node: Node, parts: Buffer, at: Index, target: Buffer) -> None:
        assert isinstance(node.op, Reduce)
        for position in np.ndindex(*target.shape):
            own = tuple(affine(int(p)) for p in position)
            value = Load(parts.dtype, parts, (*at, *own))
            self.writer.add(Accumulate(target, own, node.op.fn, value, node.location))

    def price(self, node: Node, keep: dict[Node, Buffer]) -> int:
        """Instructions to compute a full node again from what is in memory or per row, as far as
        they tell cheap from dear."""
        total, seen, stack = 0, set(), [node]
        while stack and total <= CHEAP:
            n = base_of(stack.pop())
            if n in seen or n in keep or n not in self.inside or n in self.main:
                continue
            per_row = not self.full(n) and self.phases[n] > 0  # made of finished reductions
            if per_row or isinstance(n.op, Contract):
                continue
            seen.add(n)
            total += n.op.cost
            stack.extend(n.inputs)
        return total
