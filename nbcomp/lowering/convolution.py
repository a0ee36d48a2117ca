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

import math
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

from nbcomp.graph.ir import Node
from nbcomp.graph.op import Windowed
from nbcomp.graph.passes.fusion import Group, base_of
from nbcomp.graph.passes.materialise import element_strides
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
    index_add,
    index_scale,
)
from nbcomp.lowering import windows
from nbcomp.lowering.elements import Elements, Index, Steps
from nbcomp.lowering.group import GroupLowering
from nbcomp.lowering.windows import Axis, Layout

Taps = tuple[int | Affine, ...]  # per axis of a kernel: one of its places, or how many there are

NARROW = 48  # elements of a line, below which vectors would often be part empty


def is_convolution(group: Group) -> bool:
    """Whether a group is sums over windows with weights, and elementwise operators."""
    found = [n for n in group.nodes if isinstance(n.op, Windowed)]
    return len(found) == 1 and len(found[0].inputs) == 2


class Convolution(GroupLowering):
    """Loops for one convolution and its epilogue."""

    def __init__(self, group: Group, names: dict[Node, str], free: set[Node]) -> None:
        super().__init__(group, names, free)
        (self.node,) = (n for n in group.nodes if isinstance(n.op, Windowed))
        assert isinstance(self.node.op, Windowed)
        self.op = self.node.op
        self.rank = len(self.op.kernel)
        self.elements: Elements = FlatElements(self, group, names)
        self.elements.uses.update(group.outputs)

    # ---------------------------------------------------------------------------------- buffers

    def buffer(self, node: Node | None, strides: tuple[int, ...], role: str) -> Buffer:
        """Memory of the result's shape is one line per channel; other memory is as it is."""
        if node is None or not self.spans(node):
            return super().buffer(node, strides, role)
        lead = len(node.shape) - self.rank
        pairs = zip(node.shape[lead:], strides[lead:], strict=True)
        step = next((s for n, s in reversed(list(pairs)) if n != 1), 1)
        made = super().buffer(node, strides, role)
        line = replace(
            made,
            shape=(*node.shape[:lead], math.prod(node.shape[lead:])),
            strides=(*strides[:lead], step),
        )
        self.buffers[line] = self.buffers.pop(made)
        return line

    def spans(self, node: Node) -> bool:
        """Whether a node has the axes of the space."""
        space = node.shape[max(0, len(node.shape) - self.rank) :]
        return space == self.node.shape[2:]

    # ------------------------------------------------------------------------------------- loops

    def body(self) -> None:
        x, weight = self.node.inputs
        axes = windows.axes_of(self.op, x.shape[2:], self.node.shape[2:])
        for operand in (x, weight):
            self.elements.uses[base_of(operand)] = 1  # read in one place, whatever its size
        self.image, self.layout = self.arranged(x, axes)
        self.weight = self.memory_of(weight)
        self.sums(axes)

    def memory_of(self, node: Node) -> Buffer:
        """The buffer of an operand, through the views it may be."""
        strides = element_strides(node)
        assert strides is not None
        return super().buffer(node, strides, "input")

    def arranged(self, x: Node, axes: list[Axis]) -> tuple[Buffer, Layout]:
        """The input in an order that the sums walk along: as it is, or copied."""
        source = self.memory_of(x)
        space = source.strides[2:]
        if windows.flattens(axes, space):
            line = windows.flat(axes)
            shape = (*x.shape[:2], 1, line.size)
            step = [s for a, s in zip(axes, space, strict=True) if a.size != 1] or [1]
            flat = Buffer(source.name, source.dtype, shape, (*source.strides[:2], 0, step[-1]))
            self.buffers[flat] = self.buffers.pop(source)
            return flat, Layout((windows.whole(line),))
        *outer, last = axes
        joined = bool(outer) and last.out < NARROW and self.dense
        if joined:
            lines = (*map(windows.whole, outer[:-1]), windows.phases(outer[-1]))
            layout = Layout((*lines, windows.copies(last)), joined=True)
        else:
            layout = Layout((*map(windows.whole, outer), windows.phases(last)))
            margins = any(a.before or a.after for a in axes)
            if not margins and last.stride == 1 and space[-1] == 1:
                lead = (*x.shape[:2], *(1 for _ in axes), *x.shape[2:])
                steps = (*source.strides[:2], *(0 for _ in axes), *space)
                plain = Buffer(source.name, source.dtype, lead, steps)
                self.buffers[plain] = self.buffers.pop(source)
                return plain, layout
        return self.copied(x, source, layout), layout

    @property
    def dense(self) -> bool:
        """Whether several channels of the result are made from the same elements."""
        return self.node.shape[1] // self.op.groups > 1

    def copied(self, x: Node, source: Buffer, layout: Layout) -> Buffer:
        """A stage that copies the input into a layout."""
        image = self.temp(f"{source.name}_windows", x.type.dtype, (*x.shape[:2], *layout.shape))
        margin = const(self.op.fill(x.type.dtype), x.type.dtype)
        with self.writer.loops(["n", "c"], list(x.shape[:2]), self.location) as lead:

            def target(index: tuple[Affine, ...]) -> tuple[Buffer, tuple[Affine, ...]]:
                return image, (*lead, *index)

            def read(place: tuple[Affine, ...]) -> Load:
                return Load(source.dtype, source, (*lead, *place), self.node.location)

            windows.fill(self.writer, layout, target, read, margin, self.location)
        self.close_stage()
        self.writer.complete.add(image.memory)
        return image

    def sums(self, axes: list[Axis]) -> None:
        """The loops over the result."""
        batch, channels = self.node.shape[:2]
        groups = self.op.groups
        flat = len(self.layout.lines) < len(axes) or self.layout.joined
        kept = 2 if self.layout.joined else len(axes) if flat else 1  # axes of the innermost loop
        outer = [a.out for a in axes[: len(axes) - kept]]
        inner = math.prod(a.out for a in axes[len(axes) - kept :])
        names = ["n", "g", *"zy"[2 - len(outer) :], "o", "x"]
        extents = [batch, groups, *outer, channels // groups, inner]
        with self.writer.loops(names, extents, self.location) as index:
            for name in (v for i in index for v, _ in i.terms):  # a perfect nest (`contraction`)
                self.writer.depth[name] = len(self.writer.frames) - 1
            n, g, *places, o, x = index
            self.add_up((n, g, o), (*places, x))
            channel = _sum(index_scale(g, channels // groups), o)
            line = x
            for k, place in enumerate(places):
                line = _sum(line, index_scale(place, math.prod(a.out for a in axes[k + 1 :])))
            at = (n, channel, *(affine(0) for _ in axes[1:]), line)
            for node, buffer in self.outputs.items():
                value = self.elements.at(node, at)
                self.writer.add(Store(buffer, (n, channel, line), value, node.location))
        self.close_stage()

    def add_up(self, which: tuple[Affine, ...], places: tuple[Affine, ...]) -> None:
        """One element of the sums, in a local."""
        n, g, o = which
        each, weight = self.weight.shape[1], self.weight
        dtype, place = self.node.type.dtype, self.node.location
        total = self.local(self.node.name or "total", dtype, ())
        self.writer.add(Store(total, (), const(0, dtype), place))
        with self.writer.loop("c", each, place) as c:
            channel = _sum(index_scale(g, each), c)
            filters = _sum(index_scale(g, self.node.shape[1] // self.op.groups), o)
            for taps in self.taps():
                with ExitStack() as stack:
                    loops = (self.writer.loop("k", t, place) for t in taps if isinstance(t, int))
                    inner = map(stack.enter_context, loops)
                    here = tuple(next(inner) if isinstance(t, int) else t for t in taps)
                    flat = here if len(self.layout.lines) == len(here) else here[:1]
                    at = (n, channel, *self.layout.index(flat, places))
                    image = Load(dtype, self.image, at, place)
                    factor = Load(dtype, weight, (filters, c, *here), place)
                    term = Apply(dtype, "multiply", (factor, image), place)
                    self.writer.add(Accumulate(total, (), "add", term, place, contract=True))
        self.elements.finished[self.node] = lambda _: Load(dtype, total, (), place)

    def taps(self) -> Iterator[Taps]:
        """The places of the kernel, an axis each: all in one loop (its extent), or one by one."""
        lines = self.layout.lines
        if len(lines) < self.rank:
            yield (1,) * self.rank
            return

        def along(axis: int, chosen: Taps) -> Iterator[Taps]:
            if axis == len(lines):
                yield chosen
            elif lines[axis].regular:
                yield from along(axis + 1, (*chosen, lines[axis].axis.kernel))
            else:
                for tap in range(lines[axis].axis.kernel):
                    yield from along(axis + 1, (*chosen, affine(tap)))

        yield from along(0, ())


class FlatElements(Elements):
    """Elements at an index whose last entry counts along the whole space, the others being 0."""

    def __init__(self, of: Convolution, group: Group, names: dict[Node, str]) -> None:
        super().__init__(of.writer, group.nodes, names)
        self.of = of

    def steps(self, node: Node, index: Index) -> Steps:
        """The place along the space is kept where the last axis has length 1."""
        long = [k for k, n in enumerate(node.shape) if n != 1]
        if self.of.spans(node) and long and not _zero(index[-1]):
            axis = max(long[-1], len(index) - self.of.rank)
            index = (*index[:axis], index[-1], *index[axis + 1 :])
        return super().steps(node, index)

    def compute(self, node: Node, index: Index) -> Steps:
        """Memory of the space has one line per channel."""
        if node in self.memory and self.of.spans(node):
            lead = len(node.shape) - self.of.rank
            buffer = self.memory[node]
            place = next((i for i in index[lead:] if not _zero(i)), affine(0))
            return Load(buffer.dtype, buffer, (*index[:lead], place), node.location)
        return (yield from super().compute(node, index))


def _zero(index: Expr) -> bool:
    return isinstance(index, Affine) and not index.terms and not index.constant


def _sum(a: Expr, b: Expr) -> Affine:
    total = index_add(a, b)
    assert isinstance(total, Affine)
    return total
