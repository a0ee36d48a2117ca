"""Groups over windows whose channels come first: buffers as lines, taps, the epilogue.

The innermost loop may walk several axes of the result as one, so that vectors reach from one row
into the next.  Memory with these axes is a buffer with one for all of them, and an index has its
place there in the last entry, those before it being 0.
"""

from __future__ import annotations

import math
import operator
from dataclasses import replace
from itertools import product

from nbcomp.graph.ir import Node
from nbcomp.graph.passes.groups import Group
from nbcomp.graph.passes.materialise import element_strides
from nbcomp.graph.passes.operands import base_of
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Apply,
    Buffer,
    Expr,
    Load,
    Store,
    affine,
    const,
    index_scale,
)
from nbcomp.lowering import windows
from nbcomp.lowering.elements import Elements, Index, Steps
from nbcomp.lowering.group import Orders
from nbcomp.lowering.window_sums import WindowSums
from nbcomp.lowering.windows import Axis, Layout, Line, add
from nbcomp.types import INT64


class OverWindows(WindowSums):
    """Loops for one operator over windows and its epilogue."""

    def __init__(self, group: Group, names: dict[Node, str], free: Orders) -> None:
        super().__init__(group, names, free)
        node = self.node
        self.lead = len(node.shape) - self.rank
        x = node.inputs[0]
        sizes = (tuple(map(operator.index, n.shape[self.lead :])) for n in (x, node))
        self.axes = windows.axes_of(self.op, *sizes)
        self.together = self.one_line()
        self.elements: Elements = FlatElements(self, group, names)
        self.elements.uses.update(group.outputs)
        for operand in node.inputs:
            self.elements.uses[base_of(operand)] = 1  # read in one place, whatever its size

    # ---------------------------------------------------------------------------------- buffers

    def buffer(self, node: Node | None, strides: tuple[int, ...], role: str) -> Buffer:
        """Memory that has the axes the innermost loop walks as one has them as one."""
        made = self.closed(super().buffer(node, strides, role))
        if self.together == 1 or node is None or not self.spans(node):
            return made
        lead = len(node.shape) - self.together
        pairs = zip(made.shape[lead:], made.strides[lead:], strict=True)
        step = next((s for n, s in reversed(list(pairs)) if n != 1), 1)
        line = replace(
            made,
            shape=(*made.shape[:lead], math.prod(made.shape[lead:])),
            strides=(*made.strides[:lead], step),
        )
        self.buffers[line] = self.buffers.pop(made)
        return line

    def closed(self, buffer: Buffer) -> Buffer:
        """A buffer whose lengths are known, but for a batch: tiles are made for known lengths."""
        first, rest = buffer.shape[:1], map(operator.index, buffer.shape[1:])
        strides = tuple(map(operator.index, buffer.strides))
        made = replace(buffer, shape=(*first, *rest), strides=strides)
        self.buffers[made] = self.buffers.pop(buffer)
        return made

    def spans(self, node: Node) -> bool:
        """Whether a node has the axes that the innermost loop walks."""
        return node.shape[-self.together :] == self.node.shape[-self.together :]

    def one_line(self) -> int:
        """How many axes, counted from the last, the innermost loop walks as one."""
        return 1

    def memory_of(self, node: Node) -> Buffer:
        """The buffer of an operand as it is, through the views it may be."""
        strides = element_strides(node)
        assert strides is not None
        return self.closed(super().buffer(node, strides, "input"))

    def as_it_is(
        self, source: Buffer, axes: list[Axis] | None = None
    ) -> tuple[Buffer, Layout] | None:
        """The input in a layout, if it needs no copy; axes: those of the windows, or some of
        them."""
        lead, space, axes = self.lead, source.strides[self.lead :], axes or self.axes
        shape: tuple[int, ...]
        strides: tuple[int, ...]
        if self.together == self.rank and windows.flattens(axes, space):
            line = windows.flat(axes)
            steps = [s for a, s in zip(axes, space, strict=True) if a.size != 1] or [1]
            shape, strides = (1, line.size), (0, steps[-1])
            layout = Layout((windows.whole(line),))
        elif self.together > 1 or space[-1] != 1 or not windows.neighbours(axes):
            return None
        else:
            shape = (*(1 for _ in axes), *source.shape[lead:])
            strides = (*(0 for _ in axes), *space)
            layout = Layout((*map(windows.whole, axes[:-1]), windows.phases(axes[-1])))
        shape, strides = (*source.shape[:lead], *shape), (*source.strides[:lead], *strides)
        plain = replace(source, shape=shape, strides=strides)
        self.buffers[plain] = self.buffers.pop(source)
        return plain, layout

    def copied(self, source: Buffer, layout: Layout) -> Buffer:
        """A stage that copies the input into a layout."""
        lead = source.shape[: self.lead]
        image = self.temp(f"{source.name}_windows", source.dtype, (*lead, *layout.shape))
        with self.writer.loops([f"c{k}" for k in range(self.lead)], list(lead)) as at:
            self.fill(image, at, source, at, layout)
        self.close_stage()
        self.writer.complete.add(image.memory)
        return image

    def fill(self, image: Buffer, to: Index, source: Buffer, at: Index, layout: Layout) -> None:
        """Loops that copy one channel of the input."""

        def target(index: tuple[Affine, ...]) -> windows.Place:
            return image, (*to, *index)

        line = layout.lines[-1]
        step = line.step
        apart = self.apart(source, line)

        def read(place: tuple[Affine, ...]) -> Load:
            if apart is None:
                return Load(source.dtype, source, (*at, *place), self.node.location)
            *rows, last = place
            rest = last.constant % step
            terms = tuple((v, f // step) for v, f in last.terms)
            pair = (Affine(INT64, terms, last.constant // step), affine(rest))
            return Load(apart.dtype, apart, (*at, *rows, *pair), self.node.location)

        margin = const(self.op.fill(source.dtype), source.dtype)
        windows.fill(self.writer, layout, target, read, margin, self.location)

    def apart(self, source: Buffer, line: Line) -> Buffer | None:
        """The input with its last axis in groups of as many elements as windows are apart, if all
        that is read is in whole ones: of these short rows code generation reads one element each by
        whole vectors."""
        step, whole = line.step, source.shape[-1] // line.step * line.step
        if step == 1 or line.last >= whole or source.strides[-1] != 1:
            return None
        shape = (*source.shape[:-1], source.shape[-1] // step, step)
        rows = replace(source, shape=shape, strides=(*source.strides[:-1], step, 1))
        if source.role == "local":
            return replace(rows, name=self.writer.fresh(source.name), alias=source.memory)
        self.buffers[rows] = self.buffers.pop(source)
        return rows

    # ------------------------------------------------------------------------------------- loops

    def places(self) -> tuple[list[int], int]:
        """The extents of the loops over the result's space: the outer axes, and the innermost
        loop, which may be several axes in one."""
        sizes = [a.out for a in self.axes]
        cut = len(sizes) - self.together
        return sizes[:cut], math.prod(sizes[cut:])

    def combine(
        self,
        total: Buffer,
        image: tuple[Buffer, Index, Layout],
        places: tuple[Affine, ...],
        weight: tuple[Buffer, Index] | None,
    ) -> None:
        """total = fn(total, element), or total += weight · element, for each place of the kernel.

        image: a buffer, the index of the channel, and the layout from there on.
        """
        buffer, channel, layout = image
        dtype, location = self.node.type.dtype, self.node.location
        for taps in product(*(line.ranges() for line in layout.lines)):
            loops = self.writer.loops(["k"] * len(taps), list(map(len, taps)), location)
            with loops as numbers:
                here = tuple(
                    add(index_scale(k, tap.step), affine(tap.start))
                    for k, tap in zip(numbers, taps, strict=True)
                )
                place = (*channel, *layout.index(taps, numbers, places))
                value: Expr = Load(dtype, buffer, place, location)
                if weight is not None:
                    rest = (affine(0),) * (self.rank - len(here))
                    factor = Load(dtype, weight[0], (*weight[1], *here, *rest), location)
                    value = Apply(dtype, "multiply", (factor, value), location)
                added = Accumulate(total, (), self.op.fn, value, location)
                self.writer.add(replace(added, contract=weight is not None))

    def finish(self, channel: tuple[Affine, ...], places: tuple[Affine, ...]) -> None:
        """Store what becomes of an element, from its total."""
        *outer, line = places
        at = (*channel, *outer, *(affine(0) for _ in range(self.together - 1)), line)
        for node, buffer in self.outputs.items():
            value = self.elements.at(node, at)
            self.writer.add(Store(buffer, (*channel, *places), value, node.location))


class FlatElements(Elements):
    """Elements at an index whose last entry counts along several axes, those before it being 0."""

    def __init__(self, of: OverWindows, group: Group, names: dict[Node, str]) -> None:
        super().__init__(of.writer, group.nodes, names)
        self.of = of

    def steps(self, node: Node, index: Index) -> Steps:
        """The place along the space is kept where the last axis has length 1."""
        long = [k for k, n in enumerate(node.shape) if n != 1]
        if self.of.spans(node) and long and not _zero(index[-1]):
            axis = max(long[-1], len(index) - self.of.together)
            index = (*index[:axis], index[-1], *index[axis + 1 :])
        return super().steps(node, index)

    def compute(self, node: Node, index: Index) -> Steps:
        """Memory of the space has one line per channel."""
        if node in self.memory and self.of.spans(node):
            lead = len(node.shape) - self.of.together
            buffer = self.memory[node]
            place = next((i for i in index[lead:] if not _zero(i)), affine(0))
            return Load(buffer.dtype, buffer, (*index[:lead], place), node.location)
        return (yield from super().compute(node, index))


def _zero(index: Expr) -> bool:
    return isinstance(index, Affine) and not index.terms and not index.constant
