"""A fused group becomes a `Kernel`: the loop structure of each kind of group.

Only structure is decided here (which loops, which passes over a row, which partial results); how
loops run (vectors, cores, unrolling) is the schedule's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from nbcomp.graph.ir import Node
from nbcomp.graph.op import Contract
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
from nbcomp.lowering.group import AXES, GroupLowering, Layouts, Lowered, Orders, strides_in
from nbcomp.lowering.indexed import Places
from nbcomp.lowering.maps import Maps
from nbcomp.lowering.pooling import Channelwise, is_channelwise
from nbcomp.lowering.recurrence import Steps
from nbcomp.lowering.reductions import BLOCK, SPLIT
from nbcomp.lowering.rows import Rows
from nbcomp.lowering.writer import Writer


def lower(
    group: Group,
    names: dict[Node, str],
    free: Orders | None = None,
    laid: Layouts | None = None,
) -> Lowered:
    """The kernel of a fused group.

    free: results that may have any memory order, since nobody but the caller reads them; with the
    order of axes that NumPy gives them, where it is known.  laid: the strides of values that were
    computed before and are not in C order.
    """
    made = _kind(group)(group, names, free or {})
    made.laid = laid or {}
    return made.run()


def _kind(group: Group) -> type[GroupLowering]:
    """What writes the loops of a group."""
    if group.kind == "bands":
        return Bands
    if is_contraction(group):
        return Contraction
    if (last := with_channels_last(group)) is not None:
        return last
    if is_channelwise(group):
        return Channelwise
    if is_convolution(group):
        return Convolution
    kinds: dict[str, type[GroupLowering]] = {
        **{"map": _Map, "pieces": _Pieces, "reduce": _Reduce},
        "attention": Attention,
        "recurrence": Steps,
        "indexed": Places,
    }
    return kinds.get(group.kind, GroupLowering)


class _Map(Maps):
    def body(self) -> None:
        self.map()


class _Pieces(Maps):
    def body(self) -> None:
        self.pieces()


class _Reduce(Rows, Columns):
    def output(self, node: Node) -> Buffer:
        """A new array, as NumPy lays it out, or as the arrays are that it is made from."""
        order: Sequence[int] | None = self.free.get(node)
        own = node in self.free and order is None and not self.group.components
        if own and node.shape == self.group.space:
            order = self.own_order
        return self.buffer(node, strides_in(node.shape, order), "output")

    @cached_property
    def own_order(self) -> Sequence[int] | None:
        """That of the arrays it is made from, if these are in memory before all else."""
        if any(isinstance(n.op, Contract) for n in self.group.nodes):
            return None
        self.find_reductions()
        return self.memory_order()

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


def copy_kernel(node: Node, name: str, laid: tuple[int, ...], strides: tuple[int, ...]) -> Kernel:
    """Copies an array with the strides `laid` (in elements) into one with others."""
    dtype, shape = node.type.dtype, node.shape
    source = Buffer(f"new_{name}", dtype, shape, laid, "input")
    target = Buffer(name, dtype, shape, strides, "output", aligned=False)
    writer = Writer()
    with writer.loops([AXES[k % 8] for k in range(len(shape))], list(shape)) as index:
        writer.add(Store(target, index, Load(dtype, source, index), node.location))
    return Kernel(f"write_{name}", (source, target), writer.stage(), node.location)
