"""A fused group becomes a `Kernel`: the loop structure of each kind of group.

Only structure is decided here (which loops, which passes over a row, which partial results); how
loops run (vectors, cores, unrolling) is the schedule's.
"""

from __future__ import annotations

import math

from nbcomp.graph.ir import Node
from nbcomp.graph.passes.groups import Group
from nbcomp.loop.grammar import (
    Buffer,
    Kernel,
    Load,
    Store,
)
from nbcomp.lowering.attention import Attention
from nbcomp.lowering.bands import Bands
from nbcomp.lowering.channels_last import with_channels_last
from nbcomp.lowering.columns import Columns
from nbcomp.lowering.contraction import Contraction, is_contraction
from nbcomp.lowering.convolution import Convolution, is_convolution
from nbcomp.lowering.group import AXES, GroupLowering, Lowered
from nbcomp.lowering.maps import Maps
from nbcomp.lowering.pooling import Channelwise, is_channelwise
from nbcomp.lowering.recurrence import Steps
from nbcomp.lowering.reductions import BLOCK, SPLIT
from nbcomp.lowering.rows import Rows
from nbcomp.lowering.writer import Writer
from nbcomp.types import contiguous_strides


def lower(group: Group, names: dict[Node, str], free: set[Node] | None = None) -> Lowered:
    """The kernel of a fused group.

    free: results that may have any memory order, since nobody but the caller reads them.
    """
    if group.kind == "bands":
        return Bands(group, names, free or set()).run()
    if is_contraction(group):
        return Contraction(group, names, free or set()).run()
    if (last := with_channels_last(group)) is not None:
        return last(group, names, free or set()).run()
    if is_channelwise(group):
        return Channelwise(group, names, free or set()).run()
    if is_convolution(group):
        return Convolution(group, names, free or set()).run()
    kinds: dict[str, type[GroupLowering]] = {
        **{"map": _Map, "pieces": _Pieces, "reduce": _Reduce},
        "attention": Attention,
        "recurrence": Steps,
    }
    return kinds.get(group.kind, GroupLowering)(group, names, free or set()).run()


class _Map(Maps):
    def body(self) -> None:
        self.map()


class _Pieces(Maps):
    def body(self) -> None:
        self.pieces()


class _Reduce(Rows, Columns):
    def body(self) -> None:
        kept = self.analyse()
        space = self.group.space
        row = math.prod(space[k] for k in self.group.axes)
        outer = math.prod(space[k] for k in kept)
        if self.tail and not self.late and math.prod(space[k] for k in self.tail) > 4:
            self.columns([k for k in kept if k not in self.tail], row)
        elif not self.late and outer < 64 and math.prod(space) >= SPLIT and row >= 2 * BLOCK:
            self.split_rows(kept)
        else:
            self.rows(kept, row)


def copy_kernel(node: Node, name: str, strides: tuple[int, ...]) -> Kernel:
    """Copies a contiguous array into one with these strides (in elements)."""
    dtype, shape = node.type.dtype, node.shape
    source = Buffer(f"new_{name}", dtype, shape, contiguous_strides(shape), "input")
    target = Buffer(name, dtype, shape, strides, "output", aligned=False)
    writer = Writer()
    with writer.loops([AXES[k % 8] for k in range(len(shape))], list(shape)) as index:
        writer.add(Store(target, index, Load(dtype, source, index), node.location))
    return Kernel(f"write_{name}", (source, target), writer.stage(), node.location)
