"""Groups without reductions: one loop nest over the space, or one for each part of the result."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

from nbcomp.graph.ir import Node
from nbcomp.graph.op import Contract, Piecewise, View
from nbcomp.loop.grammar import (
    Buffer,
    Let,
    Store,
    affine,
    index_scale,
    loads_of,
    loop_var,
    steps_of,
)
from nbcomp.lowering.elements import Elements, Index, broadcast_index
from nbcomp.lowering.group import AXES, GroupLowering
from nbcomp.lowering.writer import Writer
from nbcomp.types import contiguous_strides


class Maps(GroupLowering):
    """Elementwise groups (`map`) and results put together from boxes (`pieces`)."""

    def output(self, node: Node) -> Buffer:
        """A new array, in the order of what it is made from where it may be, as in NumPy."""
        order = self.order
        strides, step = [0] * len(node.shape), 1
        for k in reversed(order if node.shape == self.group.space else range(len(node.shape))):
            strides[k] = step
            step *= max(node.shape[k], 1)
        return self.buffer(node, tuple(strides), "output")

    @cached_property
    def order(self) -> list[int]:
        """The axes, outermost in memory first: that of all whole arrays read, if they agree."""
        group, plain = self.group, list(range(len(self.group.space)))
        if group.kind != "map" or group.components or not set(group.outputs) <= self.free:
            return plain
        if any(isinstance(n.op, Contract) for n in group.nodes):
            return plain
        if any(n.shape != group.space for n in group.outputs):
            return plain
        if not self.reads_out_of_order():
            return plain
        orders = {tuple(order) for order in self.orders_read()}
        return list(orders.pop()) if len(orders) == 1 else plain

    def reads_out_of_order(self) -> bool:
        """Whether any array read may not be in C order; else there is no need to look closer."""
        operands = [i for n in self.group.nodes for i in n.inputs]
        while operands:
            node = operands.pop()
            if node.op.name == "transpose":
                return True
            operands.extend(node.inputs if isinstance(node.op, View) else ())
        return any(b.strides != contiguous_strides(b.shape) for b in self.elements.memory.values())

    def orders_read(self) -> Iterator[list[int]]:
        """For each array that is read along all axes: the axes by their steps in memory."""
        space, writer = self.group.space, Writer()
        elements = Elements(writer, self.group.nodes, self.names)
        elements.memory = self.elements.memory
        long = [k for k, n in enumerate(space) if n > 1]
        index = tuple(loop_var(f"a{k}") if n > 1 else affine(0) for k, n in enumerate(space))
        writer.depth = {f"a{k}": 0 for k in long}
        for node in self.group.outputs:
            writer.add(Let("probe", elements.at(node, index)))
        for load in loads_of(writer.stage()):
            steps = steps_of(load)
            if all(steps.get(f"a{k}") for k in long):
                yield sorted(range(len(space)), key=lambda k: -steps.get(f"a{k}", 1 << 62))

    def map(self) -> None:
        """One loop nest over the space, in memory's order; short axes are written out."""
        space, components = self.group.space, self.group.components
        axes = [k for k in self.order if k not in components]
        with self.writer.loops(
            [AXES[k % 8] for k in axes], [space[k] for k in axes], self.location
        ) as index:
            at = dict(zip(axes, index, strict=True))
            for node, buffer in self.outputs.items():
                if isinstance(node.op, Contract):
                    continue
                for own in self.component_indices(node, at):
                    value = self.elements.at(node, own)
                    self.writer.add(Store(buffer, own, value, node.location))
        self.close_stage()

    def pieces(self) -> None:
        """One loop nest per box of a result that is put together from parts."""
        (node,) = self.group.outputs
        assert isinstance(node.op, Piecewise)
        buffer = self.outputs[node]
        for piece in node.op.pieces(node.type, *(i.type for i in node.inputs)):
            if math.prod(piece.extent) == 0:
                continue
            operand = node.inputs[piece.operand]
            with self.writer.loops(
                [AXES[k % 8] for k in range(len(piece.extent))], list(piece.extent), node.location
            ) as index:
                place = stepped(index, piece.step, piece.start)
                source = stepped(index, piece.factor, piece.offset)
                value = self.elements.at(operand, broadcast_index(source, operand.shape))
                self.writer.add(Store(buffer, place, value, node.location))
            self.close_stage()


def stepped(index: Index, factors: tuple[int, ...], offsets: tuple[int, ...]) -> Index:
    """factor·i + offset for each entry of an index."""
    return tuple(index_scale(i, f, o) for i, f, o in zip(index, factors, offsets, strict=True))
