"""A convolution as the loops of a textbook, with what follows it element by element.

    for n: for g: for y: for o: for x:
        (total = 0; for c: for ky: for kx: total += w[o, c, ky, kx] * x[c, y + ky, x + kx]
         out[n, o, y, x] = f(total))

The input is first copied into an order in which neighbouring windows are neighbours in memory
(`windows`), with its margins, unless it is so already.  Where lines are shorter than a few vectors
the copy has a line for each place of the kernel, so that all rows of the result are one axis.
Tiles and the order of loops are the schedule's.
"""

from __future__ import annotations

import operator

from nbcomp.graph.passes.groups import Group
from nbcomp.graph.passes.materialise import element_strides
from nbcomp.loop.grammar import Affine, Buffer, index_scale
from nbcomp.lowering import windows
from nbcomp.lowering.over_windows import OverWindows
from nbcomp.lowering.window_sums import windowed
from nbcomp.lowering.windows import Layout, add

NARROW = 48  # elements of a line, below which vectors would often be part empty


def is_convolution(group: Group) -> bool:
    """Whether a group is sums over windows with weights, and elementwise operators."""
    node = windowed(group)
    return node is not None and len(node.inputs) == 2


class Convolution(OverWindows):
    """Loops for one convolution and its epilogue."""

    def body(self) -> None:
        x, weights = self.node.inputs
        source = self.memory_of(x)
        image, layout = self.as_it_is(source) or (source, self.arranged())
        if image is source:
            image = self.copied(source, layout)
        self.image, self.layout, self.weight = image, layout, self.memory_of(weights)
        self.per_channel()
        self.sums()

    def arranged(self) -> Layout:
        """The order in which the input is copied."""
        *outer, last = self.axes
        if self.together > 1:
            rows = (*map(windows.whole, outer[:-1]), windows.phases(outer[-1]))
            return Layout((*rows, windows.copies(last)), joined=True)
        return Layout((*map(windows.whole, outer), windows.phases(last)))

    def one_line(self) -> int:
        strides = element_strides(self.node.inputs[0])
        assert strides is not None
        if windows.flattens(self.axes, tuple(map(operator.index, strides[self.lead :]))):
            return self.rank
        narrow = self.axes[-1].out < NARROW and self.filters > 1
        return 2 if narrow and self.rank > 1 else 1

    @property
    def filters(self) -> int:
        """Channels of the result that are made from the same elements."""
        return operator.index(self.node.shape[1]) // self.op.groups

    def sums(self) -> None:
        """The loops over the result."""
        outer, inner = self.places()
        names = ["n", "g", *"zy"[2 - len(outer) :], "o", "x"]
        extents = [self.node.shape[0], self.op.groups, *outer, self.filters, inner]
        with self.writer.loops(names, extents, self.location) as index:
            self.perfect(index)
            n, g, *rows, o, x = index
            places, channel = (*rows, x), add(index_scale(g, self.filters), o)
            total = self.start()
            self.add_channels(total, n, g, channel, places)
            self.finish((n, channel), places)
        self.close_stage()

    def add_channels(
        self, total: Buffer, n: Affine, g: Affine, channel: Affine, places: tuple[Affine, ...]
    ) -> None:
        """The sum over the channels of the group."""
        each = self.weight.shape[1]
        with self.writer.loop("c", each, self.node.location) as c:
            image = (self.image, (n, add(index_scale(g, each), c)), self.layout)
            self.combine(total, image, places, (self.weight, (channel, c)))
