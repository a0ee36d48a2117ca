"""Groups without reductions: one loop nest over the space, or one for each part of the result."""

from __future__ import annotations

import math

from nbcomp.graph.op import Contract, Piecewise
from nbcomp.loop.grammar import (
    Store,
    index_scale,
)
from nbcomp.lowering.elements import Index, broadcast_index
from nbcomp.lowering.group import AXES, GroupLowering


class Maps(GroupLowering):
    """Elementwise groups (`map`) and results put together from boxes (`pieces`)."""

    def map(self) -> None:
        """One loop nest over the space; short axes are written out."""
        space, components = self.group.space, self.group.components
        axes = [k for k in range(len(space)) if k not in components]
        with self.writer.loops(
            [AXES[n % 8] for n in range(len(axes))], [space[k] for k in axes], self.location
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
                place = _stepped(index, piece.step, piece.start)
                source = _stepped(index, piece.factor, piece.offset)
                value = self.elements.at(operand, broadcast_index(source, operand.shape))
                self.writer.add(Store(buffer, place, value, node.location))
            self.close_stage()


def _stepped(index: Index, factors: tuple[int, ...], offsets: tuple[int, ...]) -> Index:
    return tuple(index_scale(i, f, o) for i, f, o in zip(index, factors, offsets, strict=True))
