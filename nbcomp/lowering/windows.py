"""Where the elements of windows lie: an image with its margins, in an order that loops walk along.

Windows a stride apart take every s-th element, so an axis may be kept in s phases; and the last
axis may be kept once for each place of the kernel, each line as long as the result's.  A `Line` is
one axis in such an order.  Knows geometry and the loop IR.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from nbcomp.graph.op import Windowed
from nbcomp.graph.passes.operands import as_one
from nbcomp.loop.grammar import (
    Affine,
    Buffer,
    Const,
    Expr,
    Load,
    Store,
    affine,
    index_add,
    index_scale,
)
from nbcomp.lowering.writer import Writer
from nbcomp.record import Location

Place = tuple[Buffer, tuple[Expr, ...]]  # an element of a buffer


@dataclass(frozen=True)
class Axis:
    """One axis of the space: sizes of the input, of the result and of the kernel; how they fit."""

    size: int
    out: int
    kernel: int
    stride: int
    before: int  # elements of the margin before the input
    after: int
    dilation: int

    @property
    def plain(self) -> bool:
        """Whether a window is one element, and every element a window."""
        return self.kernel == self.stride == 1 and not self.before and not self.after


def axes_of(op: Windowed, size: tuple[int, ...], out: tuple[int, ...]) -> list[Axis]:
    """The axes of the space."""
    fields = zip(size, out, op.kernel, op.stride, op.margins, op.dilation, strict=True)
    return [Axis(n, m, k, s, a, b, d) for n, m, k, s, (a, b), d in fields]


@dataclass(frozen=True)
class Line:
    """An axis in memory: element q of variant v is element step·q + starts[v] of the input.

    starts are counted from the input's first element, so margins are below 0 or beyond its end.
    taps: for each place of the kernel the variant it is in, and its shift there: of the window at
    `place` it is element advance · place + shift.
    """

    axis: Axis
    step: int
    starts: tuple[int, ...]
    length: int
    advance: int
    taps: tuple[tuple[int, int], ...]

    def ranges(self) -> list[range]:
        """The taps, in ranges along which their places are an affine function of the number."""
        pairs = zip(self.taps, self.taps[1:], strict=False)
        if len({(b[0] - a[0], b[1] - a[1]) for a, b in pairs}) <= 1:
            return [range(len(self.taps))]
        found = []
        for variant in range(len(self.starts)):
            own = [k for k, tap in enumerate(self.taps) if tap[0] == variant]
            step = own[1] - own[0] if len(own) > 1 else 1
            found.append(range(own[0], own[-1] + 1, step))
        return found

    def at(self, taps: range, number: Affine) -> tuple[Affine, Affine]:
        """The variant and the shift of a tap, by its number in a range."""
        first, second = self.taps[taps[0]], self.taps[taps[min(1, len(taps) - 1)]]
        variant, shift = (
            add(index_scale(number, b - a), affine(a)) for a, b in zip(first, second, strict=True)
        )
        return variant, shift

    @property
    def last(self) -> int:
        """The last element of the input that is read; below 0 if none is."""
        ends = (
            self.step * (high - 1) + start
            for variant, start in enumerate(self.starts)
            for _, high, inside in self.parts(variant)
            if inside
        )
        return max(ends, default=-1)

    def parts(self, variant: int) -> Iterator[tuple[int, int, bool]]:
        """Stretches (from, to, whether they are in the input) of one variant."""
        start = self.starts[variant]
        first = min(max(0, -(start // self.step)), self.length)
        end = min(max(first, -((start - self.axis.size) // self.step)), self.length)
        for low, high, inside in ((0, first, False), (first, end, True), (end, self.length, False)):
            if low < high:
                yield low, high, inside


def whole(axis: Axis) -> Line:
    """The axis with its margins, as far as windows reach."""
    span = (axis.kernel - 1) * axis.dilation
    taps = tuple((0, k * axis.dilation) for k in range(axis.kernel))
    length = (axis.out - 1) * axis.stride + span + 1
    return Line(axis, 1, (-axis.before,), length, axis.stride, taps)


def phases(axis: Axis) -> Line:
    """The axis in phases, so that neighbouring windows are neighbours."""
    s, d = axis.stride, axis.dilation
    used = sorted({k * d % s for k in range(axis.kernel)})
    taps = tuple((used.index(k * d % s), k * d // s) for k in range(axis.kernel))
    starts = tuple(phase - axis.before for phase in used)
    return Line(axis, s, starts, axis.out + taps[-1][1], 1, taps)


def copies(axis: Axis) -> Line:
    """The axis once per tap of the kernel, each as long as the result's."""
    starts = tuple(k * axis.dilation - axis.before for k in range(axis.kernel))
    taps = tuple((k, 0) for k in range(axis.kernel))
    return Line(axis, axis.stride, starts, axis.out, 1, taps)


@dataclass(frozen=True)
class Layout:
    """The axes of a space as lines: first all their variants, then their lengths.

    joined: the last two lines follow each other without a gap, as one axis.
    """

    lines: tuple[Line, ...]
    joined: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of memory in this layout."""
        variants = tuple(len(line.starts) for line in self.lines)
        lengths = [line.length for line in self.lines]
        if self.joined:
            last = lengths.pop()
            lengths[-1] *= last
        return (*variants, *lengths)

    def index(
        self, taps: tuple[range, ...], numbers: tuple[Affine, ...], places: tuple[Affine, ...]
    ) -> tuple[Affine, ...]:
        """Where a tap of the window at these places lies; joined, the last place counts for both
        axes."""
        found = zip(self.lines, taps, numbers, strict=True)
        pairs = [line.at(tap, number) for line, tap, number in found]
        outer = self.lines[:-2] if self.joined else self.lines
        lengths = [
            add(index_scale(place, line.advance), shift)
            for line, place, (_, shift) in zip(outer, places, pairs, strict=False)
        ]
        if self.joined:
            rows = index_scale(pairs[-2][1], self.lines[-1].length)
            lengths.append(add(rows, places[-1]))
        return (*(variant for variant, _ in pairs), *lengths)

    def joint(self, index: tuple[Affine, ...]) -> tuple[Affine, ...]:
        """An index with one entry per variant and per length, for memory of `shape`."""
        if not self.joined:
            return index
        *rest, row, column = index
        return (*rest, add(index_scale(row, self.lines[-1].length), column))


def fill(
    writer: Writer,
    layout: Layout,
    target: Callable[[tuple[Affine, ...]], Place],
    source: Callable[[tuple[Affine, ...]], Load],
    margin: Const,
    location: Location | None,
) -> None:
    """Loops that copy an input into a layout, with its margins.

    target: the buffer and the place of an index of the layout; source: an element of the input.
    """
    lines = layout.lines

    def along(axis: int, index: tuple[Affine, ...], places: tuple[Affine, ...], out: bool) -> None:
        if axis == len(lines):
            buffer, at = target(layout.joint((*variants, *index)))
            value = margin if out else source(places)
            writer.add(Store(buffer, at, value, location))
            return
        line, variant = lines[axis], chosen[axis]
        stretches = [(0, line.length, True)] if out else list(line.parts(variant))
        for low, high, inside in stretches:
            with writer.loop("yx"[axis == len(lines) - 1], high - low, location) as v:
                q = add(v, affine(low))
                place = add(index_scale(q, line.step), affine(line.starts[variant]))
                along(axis + 1, (*index, q), (*places, place), out or not inside)

    for chosen in product(*(range(len(line.starts)) for line in lines)):
        variants = tuple(map(affine, chosen))
        along(0, (), (), False)


def neighbours(axes: list[Axis]) -> bool:
    """Whether windows next to each other are so in the input itself: no margins, no steps."""
    return axes[-1].stride == 1 and not any(a.before or a.after for a in axes)


def flattens(axes: list[Axis], strides: tuple[int, ...]) -> bool:
    """Whether the whole space is one axis of elements that are windows of their own."""
    sizes = tuple(a.size for a in axes)
    return all(a.plain for a in axes) and as_one(sizes, strides)


def flat(axes: list[Axis]) -> Axis:
    """That one axis."""
    return single(math.prod(a.size for a in axes))


def single(size: int) -> Axis:
    """An axis of elements that are windows of their own."""
    return Axis(size, size, 1, 1, 0, 0, 1)


def add(a: Expr, b: Expr) -> Affine:
    """The sum of two indices."""
    total = index_add(a, b)
    assert isinstance(total, Affine)
    return total
