"""The loops that a group will have, and how often they evaluate an operand.

Says what fusing costs; it decides nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from nbcomp.graph.ir import Node
from nbcomp.graph.op import Piecewise
from nbcomp.graph.passes.drafts import Draft
from nbcomp.graph.passes.operands import base_of
from nbcomp.sizes import among

CHEAP = 2  # instructions: cheaper to compute again than to store and load


@dataclass(frozen=True)
class Nest:
    """The loops of a group, outside in, as they will be lowered: by rows or by columns."""

    space: tuple[int, ...]
    loops: tuple[int, ...]  # axes
    components: tuple[int, ...]

    @staticmethod
    def of(draft: Draft) -> Nest:
        """The loops of a draft as it is."""
        return Nest.made(draft.space, draft.axes, draft.components, draft.late)

    @staticmethod
    def made(
        space: tuple[int, ...], axes: tuple[int, ...], components: tuple[int, ...], late: bool
    ) -> Nest:
        """The loops over a space in which these axes are reduced."""
        kept = [k for k in range(len(space)) if k not in axes and k not in components]
        tail = [k for k in kept if axes and k > max(axes)]
        if math.prod(space[k] for k in tail) <= 4 or late:
            tail = []
        outer = [k for k in kept if k not in tail]
        return Nest(space, (*outer, *axes, *tail), components)

    def evaluations(self, seen: Node) -> int:
        """How often the loops evaluate an operand, hoisted as far out as it goes."""
        offset = len(self.space) - len(seen.shape)
        if offset < 0:
            return seen.type.size
        real = {k + offset for k, n in enumerate(seen.shape) if n != 1}
        inside = [place for place, k in enumerate(self.loops) if k in real]
        loops = self.loops[: max(inside, default=-1) + 1]
        written_out = (k for k in self.components if k in real)
        return math.prod(self.space[k] for k in (*loops, *written_out))


def piece_evaluations(node: Node, seen: Node) -> int:
    """How often the loops over the boxes of a result evaluate an operand."""
    assert isinstance(node.op, Piecewise)
    total = 0
    for piece in node.op.pieces(node.type, *(i.type for i in node.inputs)):
        if node.inputs[piece.operand] is seen:
            offset = len(piece.extent) - len(seen.shape)
            real = [
                k
                for k, (n, factor) in enumerate(zip(piece.extent, piece.factor, strict=True))
                if n != 1 and factor and k >= offset and seen.shape[k - offset] != 1
            ]
            total += math.prod(piece.extent[: max(real, default=-1) + 1])
    return total


def spread_along(seen: Node, axes: tuple[int, ...], space: tuple[int, ...]) -> bool:
    """Whether an operand is the same all along these axes, or is as large as the whole space."""
    offset = len(space) - len(seen.shape)
    if seen.shape == space and base_of(seen).type.size == math.prod(space):
        return True
    return all(k < offset or seen.shape[k - offset] == 1 or space[k] == 1 for k in axes)


def matches(
    shape: tuple[int, ...],
    space: tuple[int, ...],
    gone: tuple[int, ...],
    required: tuple[int, ...] = (),
) -> bool:
    """Whether a shape is `space`, with the axes in `gone` kept, of length 1, or dropped.

    required: axes that must not be kept at full length.
    """
    if not required and among(shape, (space,)):
        return True
    kept = tuple(n for k, n in enumerate(space) if k not in gone)
    ones = tuple(1 if k in gone else n for k, n in enumerate(space))
    if among(shape, (kept, ones)):
        return True
    if required and set(gone) != set(required):
        rest = tuple(k for k in gone if k not in required)
        with_rest = tuple(n for k, n in enumerate(space) if k not in required)
        ones_rest = tuple(1 if k in required else n for k, n in enumerate(space))
        return bool(rest) and among(shape, (with_rest, ones_rest))
    return False
