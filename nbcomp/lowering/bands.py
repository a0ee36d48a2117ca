"""Convolutions one after another, by bands of lines of the last result: what lies between two of
them is kept by the band.

    for band: for n: (alloc wide[lines, x, c], near[lines, x, c]
                      for l: (if the line is in the image: wide[l] = first(x))
                      for y: near[y] = second(wide)
                      for y: out[n, band + y] = third(near))

Each is computed as it is by itself (`channels_last`).  Lines that windows of neighbouring bands
share are computed in each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext

from nbcomp.graph.ir import Node
from nbcomp.graph.op import Piecewise, Windowed
from nbcomp.graph.passes.bands import Chain
from nbcomp.graph.passes.operands import base_of
from nbcomp.loop.grammar import (
    Affine,
    Apply,
    Buffer,
    Expr,
    Load,
    Store,
    affine,
    index_scale,
)
from nbcomp.lowering.channels_last import LastChannels
from nbcomp.lowering.windows import add
from nbcomp.types import BOOL, INT64

Block = tuple[Affine, Affine]  # a block of channels, and a channel in it


class Bands(LastChannels):
    """Loops for a chain of convolutions and what follows each."""

    def body(self) -> None:
        self.chain = Chain(tuple(n for n in self.group.nodes if isinstance(n.op, Windowed)))
        links = self.chain.links
        self.read = {link: [*map(self.own, link.inputs)] for link in links}
        for link in links:
            self.turn_to(link)
            self.per_channel()
        for node in self.outputs:
            self.margins(node)
        height = self.chain.height
        count = self.chain.bands(height)
        with self.writer.loops(["band", "n"], [count, links[-1].shape[0]], self.location) as at:
            band, n = at
            self.band(n, add(index_scale(band, height), affine(0)), height)
        self.close_stage()

    def own(self, operand: Node) -> Buffer | None:
        """The buffer of an operand; none for an image that is kept by the band."""
        if operand in self.chain.images:
            return None
        self.elements.uses[base_of(operand)] = 1  # read in one place, whatever its size
        return self.memory_of(operand)

    def turn_to(self, link: Node, image: Buffer | None = None, first: Affine | None = None) -> None:
        """Go on with a link of the chain; the image it reads, if that is kept, from a line on."""
        assert isinstance(link.op, Windowed)
        self.node, self.op, self.rank = link, link.op, len(link.op.kernel)
        self.operands = [b for b in self.read[link] if b]
        if image:
            self.operands.insert(0, image)
        self.first = first if image else None

    def element(self, n: Affine, at: tuple[Affine, ...], channel: Affine) -> Expr:
        if self.first is None:
            return super().element(n, at, channel)
        image, line = self.operands[0], add(at[0], index_scale(self.first, -1))
        return Load(image.dtype, image, (line, *at[1:], channel), self.node.location)

    # -------------------------------------------------------------------------------------- bands

    def band(self, n: Affine, first: Affine, height: int) -> None:
        """The lines of the result from the first on."""
        counts, starts = self.chain.lines(height), [first]
        for link in reversed(self.chain.links[1:]):
            assert isinstance(link.op, Windowed)
            start = index_scale(starts[0], link.op.stride[0], -link.op.margins[0][0])
            starts.insert(0, add(start, affine(0)))
        kept: Buffer | None = None
        for k, link in enumerate(self.chain.links):
            self.turn_to(link, kept, starts[k - 1])
            if k == len(starts) - 1:
                self.result(n, first, height)
                continue
            image = self.chain.images[k]
            name, shape = link.name or f"image{k}", (counts[k], *image.shape[2:])
            kept = self.local(name, image.type.dtype, shape)
            self.fill(image, kept, n, starts[k])

    def result(self, n: Affine, first: Affine, height: int) -> None:
        """Lines of the result; the last band may have fewer."""
        _, lines, *rest, _ = self.node.shape
        extent: Expr | int = height
        if lines % height:
            extent = Apply(INT64, "minimum", (affine(height), index_scale(first, -1, lines)))

        def visit(index: tuple[Affine, ...], block: Block, channel: Affine) -> None:
            y, *places = index
            at = (add(first, y), *places)
            self.sums(n, at, block)
            self.finish((n, *at, channel))

        self.each([extent, *rest], visit)

    def fill(self, image: Node, kept: Buffer, n: Affine, first: Affine) -> None:
        """The lines of an image between two convolutions that a band needs."""
        inner, before = image, (0,) * self.rank
        if isinstance(image.op, Piecewise):
            inner, before = image.inputs[0], image.op.before[1:-1]  # type: ignore[attr-defined]
            self.sides(image, kept)
        with self.writer.loop("l", kept.shape[0], self.location) as near:
            start = add(first, affine(-before[0]))
            line = add(start, near)
            inside = self.within(line, start, inner.shape[1], kept.shape[0])
            with self.writer.when(inside) if inside else nullcontext():
                self.line(inner, (n, line), (kept, near), before[1:])
            if inside and inner is not image:
                with self.writer.when(Apply(BOOL, "logical_not", (inside,))):
                    self.margin(image, kept, (near,), kept.shape[1:])

    def within(self, line: Affine, first: Affine, lines: int, kept: int) -> Expr | None:
        """Whether there is a line of this number, of those that a band keeps from the first on;
        None if there is in all bands."""
        steps = self.chain.bands(self.chain.height) - 1
        last = first.constant + steps * sum(factor for _, factor in first.terms) + kept - 1
        if first.constant >= 0 and last < lines:
            return None
        low = Apply(BOOL, "greater_equal", (line, affine(0)))
        return Apply(BOOL, "logical_and", (low, Apply(BOOL, "less", (line, affine(lines)))))

    def line(
        self,
        inner: Node,
        at: tuple[Affine, Affine],
        to: tuple[Buffer, Affine],
        before: tuple[int, ...],
    ) -> None:
        """A line of an image.  at: which; to: where it is kept; before: the margins there."""
        (n, line), (kept, near) = at, to
        rest = inner.shape[2:-1]

        def visit(index: tuple[Affine, ...], block: Block, channel: Affine) -> None:
            self.sums(n, (line, *index), block)
            value = self.elements.at(inner, (n, line, *index, channel))
            inside = (add(i, affine(b)) for i, b in zip(index, before, strict=True))
            self.writer.add(Store(kept, (near, *inside, channel), value, inner.location))

        self.each(rest, visit)

    def sides(self, image: Node, kept: Buffer) -> None:
        """The margins of the lines of an image."""
        assert isinstance(image.op, Piecewise)
        before, after = (sides[2:-1] for sides in (image.op.before, image.op.after))  # type: ignore[attr-defined]
        for axis, pair in enumerate(zip(before, after, strict=True), 1):
            for start, count in ((0, pair[0]), (kept.shape[axis] - pair[1], pair[1])):
                if count:
                    sizes = (*kept.shape[:axis], count, *kept.shape[axis + 1 :])
                    shift = [0] * axis + [start]
                    self.margin(image, kept, (), sizes, shift)

    def margin(
        self,
        image: Node,
        kept: Buffer,
        at: tuple[Affine, ...],
        sizes: tuple[int, ...],
        shift: Sequence[int] = (),
    ) -> None:
        """Fill a box of what is kept of an image, which begins at `shift`, with its margin."""
        names = [*"myx"[: len(sizes) - 1], "c"]
        with self.writer.loops(names, list(sizes), image.location) as index:
            moved = [*shift, *(0,) * (len(sizes) - len(shift))]
            place = (add(i, affine(b)) for i, b in zip(index, moved, strict=True))
            value = self.elements.at(image.inputs[1], ())
            self.writer.add(Store(kept, (*at, *place), value, image.location))

    # -------------------------------------------------------------------------------------- loops

    def each(
        self,
        extents: Sequence[Expr | int],
        visit: Callable[[tuple[Affine, ...], Block, Affine], None],
    ) -> None:
        """The loops over places and channels: visit(places, block of channels and the channel in
        it, channel)."""
        shared = self.op.groups == 1
        parts = self.blocks_of_channels() if shared else [(0, 1, self.node.shape[-1])]
        for first, blocks, wide in parts:
            names = ["b", *"zyx"[3 - len(extents) :], "o"]
            with self.writer.loops(names, [blocks, *extents, wide], self.location) as index:
                self.perfect(index)
                b, *places, o = index
                block = add(b, affine(first))
                channel = add(index_scale(block, self.width), o)
                visit(tuple(places), (block, o), channel)
