"""Groups without reductions: one loop nest over the space, or one for each part of the result."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby, pairwise

from nbcomp.graph.ir import Node
from nbcomp.graph.op import Contract, Elementwise, Piece, Piecewise, View
from nbcomp.graph.passes.operands import base_of
from nbcomp.loop.grammar import (
    Affine,
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
from nbcomp.lowering.group import AXES, GroupLowering, strides_in
from nbcomp.lowering.writer import Writer
from nbcomp.types import contiguous_strides

THIN = 4  # elements of a row that a part has, up to which rows are written part by part


class Maps(GroupLowering):
    """Elementwise groups (`map`) and results put together from boxes (`pieces`)."""

    def output(self, node: Node) -> Buffer:
        """A new array, in NumPy's order where it may be."""
        order = self.wanted(node)
        if order is None and node in self.free and node.shape == self.group.space:
            order = self.order
        return self.buffer(node, strides_in(node.shape, order), "output")

    def wanted(self, node: Node) -> list[int] | None:
        """The order of an output's axes in memory, where it is known to be NumPy's."""
        if any(isinstance(n.op, Contract) for n in self.group.nodes):
            return None
        order = self.free.get(node)
        return None if order is None else list(order)

    @cached_property
    def order(self) -> list[int]:
        """The axes, outermost in memory first, as NumPy chooses them by the arrays read."""
        group, plain = self.group, list(range(len(self.group.space)))
        wanted = [self.wanted(n) for n in group.outputs if n.shape == group.space]
        if wanted and wanted[0] is not None and not group.components:
            return wanted[0]
        if group.kind == "pieces" and group.outputs[0] in self.free:
            return self.order_of_parts(group.outputs[0])
        if group.kind != "map" or group.components or not set(group.outputs) <= self.free.keys():
            return plain
        if any(isinstance(n.op, Contract) for n in group.nodes):
            return plain
        if any(n.shape != group.space for n in group.outputs):
            return plain
        if not self.reads_out_of_order():
            return plain
        orders = {tuple(self.order_of(node)) for node in group.outputs}
        return list(orders.pop()) if len(orders) == 1 else plain

    def order_of_parts(self, node: Node) -> list[int]:
        """The order of what is put together: that of the first part that lies in memory."""
        plain = list(range(len(node.shape)))
        for operand in node.inputs:
            while operand.op.name == "slice":
                operand = operand.inputs[0]
            part = self.elements.memory.get(operand)
            if part is not None and len(part.strides) == len(plain):
                steps = part.strides
                return sorted(plain, key=lambda k: -abs(steps[k]))
        return plain

    def reads_out_of_order(self) -> bool:
        """Whether any array read may not be in C order; else there is no need to look closer."""
        operands = [i for n in self.group.nodes for i in n.inputs]
        while operands:
            node = operands.pop()
            if node.op.name in ("transpose", "broadcast_to"):
                return True
            operands.extend(node.inputs if isinstance(node.op, View) else ())
        return any(b.strides != contiguous_strides(b.shape) for b in self.elements.memory.values())

    def order_of(self, node: Node) -> list[int]:
        """The order of an output's axes: of a copy that of what is copied, else that of a ufunc."""
        steps = self.steps_read(node)
        source = node.inputs[0] if node.op.name == "cast" else node
        copied = steps and base_of(source) not in self.inside
        return copied_order(steps[0]) if copied else ufunc_order(steps)

    def steps_read(self, node: Node) -> list[list[int]]:
        """How far each array that an output is made from moves in memory along each axis."""
        space, writer = self.group.space, Writer()
        elements = Elements(writer, self.group.nodes, self.names)
        elements.memory = self.elements.memory
        axes = [f"a{k}" for k in range(len(space))]
        index = tuple(loop_var(a) if n > 1 else affine(0) for a, n in zip(axes, space, strict=True))
        writer.depth = {a: 0 for a, n in zip(axes, space, strict=True) if n > 1}
        writer.add(Let("probe", elements.at(node, index)))
        if isinstance(node.op, Elementwise):  # its value may not need what decides its order
            for operand in node.inputs:
                own = broadcast_index(index, operand.shape)
                writer.add(Let("probe", elements.at(operand, own)))
        loads = loads_of(writer.stage())
        plain = [e for e in loads if all(isinstance(i, Affine) for i in e.indices)]
        return [[steps.get(a, 0) for a in axes] for steps in map(steps_of, plain)]

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
        """One loop nest per box of a result that is put together from parts, or one for boxes that
        lie side by side in every row."""
        (node,) = self.group.outputs
        assert isinstance(node.op, Piecewise)
        found = node.op.pieces(node.type, *(i.type for i in node.inputs))
        boxes = [p for p in found if math.prod(p.extent)]
        together = len({p.extent for p in boxes}) == 1 and self.are_thin(boxes)
        for group in [boxes] if together else self.woven(boxes):
            names = [AXES[k % 8] for k in self.order]
            extents = [group[0].extent[k] for k in self.order]
            with self.writer.loops(names, extents, node.location) as loops:
                at = dict(zip(self.order, loops, strict=True))
                for piece in group:
                    self.place(node, piece, tuple(at[k] for k in range(len(loops))))
            self.close_stage()

    def woven(self, boxes: Sequence[Piece]) -> Iterator[list[Piece]]:
        """Boxes that have every n-th element of the same rows each, together; others alone."""
        if not self.order:
            yield from ([p] for p in boxes)
            return
        last = self.order[-1]

        def rows(box: Piece) -> object:
            return [(n[:last], n[last + 1 :]) for n in (box.start, box.extent, box.step)]

        for _, same in groupby(boxes, rows):
            found = sorted(same, key=lambda p: p.start[last])
            step, first = found[0].step[last], found[0].start[last]
            whole = [(p.start[last], p.step[last]) for p in found]
            if step == 1 or whole != [(first + k, step) for k in range(step)]:
                yield from ([p] for p in found)
                continue
            count = min(p.extent[last] for p in found)
            yield [_cut(p, last, 0, count) for p in found]
            yield from ([_cut(p, last, count)] for p in found if p.extent[last] > count)

    def are_thin(self, boxes: Sequence[Piece]) -> bool:
        """Whether boxes have little of each row and lie side by side there: rows are then written
        whole, once."""
        if not self.order or boxes[0].extent[self.order[-1]] > THIN:
            return False
        last = self.order[-1]
        ends = sorted((p.start[last], p.start[last] + p.extent[last]) for p in boxes)
        apart = all(one[1] <= two[0] for one, two in pairwise(ends))
        return apart and all(p.step[last] == 1 for p in boxes)

    def place(self, node: Node, piece: Piece, index: Index) -> None:
        """Write the element of a box at this index."""
        operand = node.inputs[piece.operand]
        place = stepped(index, piece.step, piece.start)
        source = stepped(index, piece.factor, piece.offset)
        value = self.elements.at(operand, broadcast_index(source, operand.shape))
        self.writer.add(Store(self.outputs[node], place, value, node.location))


def _cut(piece: Piece, axis: int, first: int, count: int | None = None) -> Piece:
    """The part of a box from the first place along an axis on, of so many places."""

    def changed(values: tuple[int, ...], value: int) -> tuple[int, ...]:
        return (*values[:axis], value, *values[axis + 1 :])

    return replace(
        piece,
        start=changed(piece.start, piece.start[axis] + first * piece.step[axis]),
        extent=changed(piece.extent, piece.extent[axis] - first if count is None else count),
        offset=changed(piece.offset, piece.offset[axis] + first * piece.factor[axis]),
    )


def stepped(index: Index, factors: tuple[int, ...], offsets: tuple[int, ...]) -> Index:
    """factor·i + offset for each entry of an index."""
    return tuple(index_scale(i, f, o) for i, f, o in zip(index, factors, offsets, strict=True))


def copied_order(steps: Sequence[int]) -> list[int]:
    """The axes of a copy, outermost in memory first, by the steps of what is copied.

    As `PyArray_CreateSortedStridePerm` of NumPy: axes along which it is repeated come last.
    """
    return sorted(range(len(steps)), key=lambda k: -steps[k])


def ufunc_order(arrays: Sequence[Sequence[int]]) -> list[int]:
    """The axes of what a ufunc makes, outermost in memory first, by the steps of each operand.

    As `npyiter_find_best_axis_ordering` of NumPy: an axis goes inside those along which operands
    that move along both take larger steps; where these disagree, or none does, C order stays.
    """
    order: list[int] = []
    for axis in reversed(range(len(arrays[0]) if arrays else 0)):
        place = 0
        for k, other in enumerate(order):
            pairs = [(a[axis], a[other]) for a in arrays if a[axis] and a[other]]
            if any(outer >= inner for outer, inner in pairs):
                break
            if pairs:
                place = k + 1
        order.insert(place, axis)
    return order
