"""Windows of each channel by itself: pooling, and convolutions that have a kernel per channel.

    for c: (image = x[c] with its margins, in the order of the windows
            for y: for x: (total = 0; for ky: for kx: total += image[y + ky, x + kx]
                           out[c, y, x] = f(total)))

Each element is read by a few windows only, so the copy of a channel is made where it is used, and
stays in the cache.
"""

from __future__ import annotations

import math

from nbcomp.graph.op import Windowed
from nbcomp.graph.passes.groups import Group
from nbcomp.loop.grammar import Affine, Buffer, Load, Store, affine
from nbcomp.lowering import windows
from nbcomp.lowering.elements import Index
from nbcomp.lowering.over_windows import OverWindows
from nbcomp.lowering.window_sums import windowed
from nbcomp.lowering.windows import Axis, Layout

NEAR = 256 << 10  # bytes of a channel that a kernel keeps
FEW = 9  # elements of a window


def phases(axes: list[Axis]) -> Layout:
    """The order in which a channel is copied."""
    *outer, last = axes
    return Layout((*map(windows.whole, outer), windows.phases(last)))


def is_channelwise(group: Group) -> bool:
    """Whether a group has windows whose channels are independent, and elementwise operators."""
    node = windowed(group)
    if node is None or len(node.inputs) == 1:
        return node is not None
    assert isinstance(node.op, Windowed)
    return node.shape[1] == node.op.groups == node.inputs[0].shape[1]


class Channelwise(OverWindows):
    """Loops for one pool, or one depthwise convolution, and its epilogue."""

    def body(self) -> None:
        source = self.memory_of(self.node.inputs[0])
        weight = self.memory_of(self.node.inputs[1]) if len(self.node.inputs) > 1 else None
        if weight is None and self.two_ways:
            self.by_lines(source)
            return
        image, layout = self.as_it_is(source) or (None, phases(self.axes))
        near = image is None and math.prod(layout.shape) * source.dtype.itemsize <= NEAR
        if image is None and not near:
            image = self.copied(source, layout)
        self.per_channel()
        names = [f"c{k}" for k in range(self.lead)]
        with self.writer.loops(names, list(source.shape[: self.lead]), self.location) as channel:
            at = channel
            if image is None:
                name = f"{source.name}_windows"
                image, at = self.local(name, source.dtype, layout.shape), ()
                self.fill(image, at, source, channel, layout)
            filters = (weight, (channel[1], affine(0))) if weight else None
            self.elements_of((image, at, layout), channel, filters)
        self.close_stage()

    @property
    def two_ways(self) -> bool:
        """Whether windows are long along the last axis and along others, and a channel is near.

        Sums of few elements, of windows that are neighbours, are as quick at once.
        """
        *outer, last = self.axes
        neighbours = all(a.stride == 1 for a in self.axes)
        if self.op.fn == "add" and neighbours and math.prod(self.op.kernel) <= FEW:
            return False
        size = math.prod(a.size for a in self.axes) * self.node.type.dtype.itemsize
        return last.kernel > 1 and any(a.kernel > 1 for a in outer) and 2 * size <= NEAR

    def by_lines(self, source: Buffer) -> None:
        """What is combined along the outer axes first, for whole lines of the input; of these lines
        then what is combined along the last: each element is read as often as windows are high
        and, of what is left of it, as they are wide."""
        *outer, last = self.axes
        tall = [*outer, windows.single(last.size)]
        wide = [*(windows.single(a.out) for a in outer), last]
        image, layout = self.as_it_is(source, tall) or (None, phases(tall))
        dtype, location = self.node.type.dtype, self.node.location
        self.per_channel()
        names = [f"c{k}" for k in range(self.lead)]
        with self.writer.loops(names, list(source.shape[: self.lead]), self.location) as channel:
            at = channel
            if image is None:
                name = f"{source.name}_windows"
                image, at = self.local(name, dtype, layout.shape), ()
                self.fill(image, at, source, channel, layout)
            extents = [*(a.out for a in outer), last.size]
            lines = self.local(f"{source.name}_lines", dtype, tuple(extents))
            with self.writer.loops([*"zy"[2 - len(outer) :], "x"], extents, location) as places:
                self.perfect((*channel, *places))
                total = self.start()
                self.combine(total, (image, at, layout), places, None)
                self.writer.add(Store(lines, places, Load(dtype, total, (), location), location))
            together = phases(wide)
            within = self.local(f"{source.name}_phases", dtype, together.shape)
            self.fill(within, (), lines, (), together)
            self.elements_of((within, (), together), channel, None)
        self.close_stage()

    def elements_of(
        self,
        image: tuple[Buffer, Index, Layout],
        channel: tuple[Affine, ...],
        filters: tuple[Buffer, Index] | None,
    ) -> None:
        """The loops over one channel of the result."""
        rows, line = self.places()
        names = [*"zy"[2 - len(rows) :], "x"]
        with self.writer.loops(names, [*rows, line], self.location) as places:
            self.perfect((*channel, *places))
            self.combine(self.start(), image, places, filters)
            self.finish(channel, places)
