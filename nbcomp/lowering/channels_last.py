"""Convolutions and pools of images whose channels come last, with what follows element by element.

    for block: for n: for y: for x: for o:
        (total = 0
         for ky: for kx: for c: total += image[n, y + ky, x + kx, c] * w[block, ky, kx, c, o]
         out[n, y, x, block + o] = f(total))

The channels of a block are the lanes: one element of the image meets a vector of weights.  Of a
convolution with a kernel per channel, and of a pool, the channels of the image are.  A result with
margins is written within them, and they are filled.  Tiles and threads are the schedule's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from nbcomp.graph.ir import Node
from nbcomp.graph.op import ChannelsLast, Piece, Piecewise
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
    index_scale,
)
from nbcomp.lowering.contraction import wide
from nbcomp.lowering.elements import Index, broadcast_index
from nbcomp.lowering.maps import stepped
from nbcomp.lowering.window_sums import WindowSums, windowed
from nbcomp.lowering.windows import add


def with_channels_last(group: Group) -> type[LastChannels] | None:
    """The loops of a group over windows of an image whose channels come last; None for others."""
    node = windowed(group)
    if node is None or not isinstance(node.op, ChannelsLast):
        return None
    return NarrowChannels if node.op.narrow else LastChannels


class LastChannels(WindowSums):
    """Loops for one such operator and its epilogue."""

    def body(self) -> None:
        for operand in self.node.inputs:
            self.elements.uses[base_of(operand)] = 1  # read in one place, whatever its size
        self.operands = [self.memory_of(x) for x in self.node.inputs]
        self.per_channel()
        for node in self.outputs:
            self.margins(node)
        if self.packed and self.op.groups == 1:
            self.blocks()
        else:
            self.channels()

    @property
    def packed(self) -> Buffer | None:
        """The weights, if there are any."""
        return self.operands[1] if len(self.operands) > 1 else None

    @property
    def width(self) -> int:
        """Channels of the result in a block of weights."""
        return self.operands[1].shape[-1]

    def memory_of(self, node: Node) -> Buffer:
        """The buffer of an operand as it is, through the views it may be."""
        strides = element_strides(node)
        assert strides is not None
        return self.buffer(node, strides, "input")

    def same_in_space(self, node: Node) -> bool:
        return all(n == 1 for n in node.shape[:-1])

    # ------------------------------------------------------------------------------------- loops

    def blocks(self) -> None:
        """A convolution: block by block of its channels; the last may be narrower."""
        for first, blocks, extent in self.blocks_of_channels():
            self.stage(first, blocks, extent)

    def blocks_of_channels(self) -> Iterator[tuple[int, int, int]]:
        """Blocks of equal width, those that are whole and the last: first, number and width."""
        count, width, channels = self.operands[1].shape[0], self.width, self.node.shape[-1]
        rest = channels - (count - 1) * width
        whole = count if rest == width else count - 1
        for first, blocks, extent in ((0, whole, width), (whole, count - whole, rest)):
            if blocks:
                yield first, blocks, extent

    def stage(self, first: int, blocks: int, wide: int) -> None:
        """The loops over some blocks of equal width."""
        batch, *space, _ = self.node.shape
        names = ["b", *self.axes(len(space) + 1), "o"]
        with self.writer.loops(names, [blocks, batch, *space, wide], self.location) as index:
            self.perfect(index)
            b, n, *places, o = index
            block = add(b, affine(first))
            self.sums(n, tuple(places), (block, o))
            self.finish((n, *places, add(index_scale(block, self.width), o)))
        self.close_stage()

    def channels(self) -> None:
        """A pool, or a convolution with a kernel per channel."""
        batch, *space, channels = self.node.shape
        names = [*self.axes(len(space) + 1), "c"]
        with self.writer.loops(names, [batch, *space, channels], self.location) as index:
            self.perfect(index)
            n, *places, c = index
            self.sums(n, tuple(places), (affine(0), c))
            self.finish(index)
        self.close_stage()

    def sums(self, n: Affine, places: tuple[Affine, ...], channel: tuple[Affine, Affine]) -> None:
        """total += element · weight, for each place of the kernel and each channel of the sum."""
        total, packed = self.start(), self.packed
        block, o = channel
        each = packed.shape[-2] if packed else 1
        location, dtype = self.node.location, self.node.type.dtype
        taps = [f"k{'zyx'[3 - self.rank + k]}" for k in range(self.rank)]
        with self.writer.loops([*taps, "c"], [*self.op.kernel, each], location) as (*ks, c):
            at = tuple(map(self.place, range(self.rank), places, ks)) if self.rank else places
            apart = packed is None or self.op.groups > 1
            value = self.element(n, at, o if apart else c)
            if packed is not None:
                weight = Load(dtype, packed, (block, *ks, c, o), location)
                value = Apply(dtype, "multiply", (value, weight), location)
            added = Accumulate(total, (), self.op.fn, value, location, packed is not None)
            self.writer.add(added)

    def element(self, n: Affine, at: tuple[Affine, ...], channel: Affine) -> Expr:
        """An element of the image."""
        image = self.operands[0]
        return Load(image.dtype, image, (n, *at, channel), self.node.location)

    def place(self, axis: int, place: Affine, tap: Affine) -> Affine:
        """Where in the image a tap of a window is."""
        op = self.op
        start = index_scale(place, op.stride[axis], -op.margins[axis][0])
        return add(start, index_scale(tap, op.dilation[axis]))

    def axes(self, count: int) -> list[str]:
        """Names of loops over the places of a result."""
        return (
            list("nzyx"[:1] + "zyx"[4 - count :]) if count <= 4 else [f"d{k}" for k in range(count)]
        )

    # ------------------------------------------------------------------------------------ results

    def finish(self, index: Index) -> None:
        """Store what becomes of an element, from its total."""
        for node, buffer in self.outputs.items():
            inner, at = node, index
            if isinstance(node.op, Piecewise):
                inner = node.inputs[0]
                centre = next(p for p in self.pieces(node) if p.operand == 0)
                at = stepped(index, centre.step, centre.start)
            value = self.elements.at(inner, broadcast_index(index, inner.shape))
            self.writer.add(Store(buffer, at, value, node.location))

    def pieces(self, node: Node) -> Iterator[Piece]:
        """The boxes of a result with margins."""
        assert isinstance(node.op, Piecewise)
        yield from node.op.pieces(node.type, *(i.type for i in node.inputs))

    def margins(self, node: Node) -> None:
        """Fill the margins of a result that has some."""
        if not isinstance(node.op, Piecewise):
            return
        for piece in self.pieces(node):
            if piece.operand == 0 or not math.prod(piece.extent):
                continue
            names = [*"nzyx"[: len(piece.extent) - 1], "c"]
            with self.writer.loops(names, list(piece.extent), node.location) as index:
                value = self.elements.at(node.inputs[piece.operand], ())
                place = stepped(index, piece.step, piece.start)
                self.writer.add(Store(self.outputs[node], place, value, node.location))
        self.close_stage()


class NarrowChannels(LastChannels):
    """The same for a product of narrow numbers: the terms of a group lie side by side.

    for block: for n: for o:
        (total = 0
         for k: for q: total += x[n, G * k + q] * w[block, k, o, q]
         out[n, block + o] = f(total))
    """

    @property
    def width(self) -> int:
        return self.operands[1].shape[-2]

    def sums(self, n: Affine, places: tuple[Affine, ...], channel: tuple[Affine, Affine]) -> None:
        total = self.start()
        image, packed = self.operands
        block, o = channel
        _, groups, _, group = packed.shape
        dtype, location = self.node.type.dtype, self.node.location
        with self.writer.loops(["k", "q"], [groups, group], location) as (k, q):
            term = add(index_scale(k, group), q)
            left = Load(image.dtype, image, (n, *places, term), location)
            right = Load(packed.dtype, packed, (block, k, o, q), location)
            value = Apply(dtype, "multiply", (wide(left, dtype), wide(right, dtype)), location)
            self.writer.add(Accumulate(total, (), "add", value, location, contract=True))
