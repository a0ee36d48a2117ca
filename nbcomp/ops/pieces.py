"""Arrays put together from parts: concatenate, constant padding, roll and slice assignment.

Each operator lists boxes of its result and the operand every box is a view of.  The boxes are
in order, and cover the result: of two that overlap the later one stays.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbcomp.graph.op import Piece, Piecewise, Sample, phantom
from nbcomp.ops import values
from nbcomp.ops.move import Slice
from nbcomp.sizes import broadcast_shapes
from nbcomp.types import FLOAT32, TensorType


@dataclass(frozen=True)
class Span:
    """Every step-th place of an axis from a start: one side of a box."""

    start: int
    size: int
    step: int = 1


def plain(spans: tuple[Span, ...], operand: int, offset: tuple[int, ...]) -> Piece:
    """A box filled with a part of an operand of the same rank, from an offset."""
    return Piece(
        tuple(s.start for s in spans),
        tuple(s.size for s in spans),
        operand,
        (1,) * len(spans),
        offset,
        tuple(s.step for s in spans),
    )


def spread(
    spans: tuple[Span, ...], operand: int, shape: tuple[int, ...], backwards: tuple[bool, ...]
) -> Piece:
    """A box filled with a whole operand, broadcast to it; `backwards` walks an axis from its
    end.
    """
    missing = len(spans) - len(shape)
    factor, offset = [], []
    for k, span in enumerate(spans):
        still = k < missing or shape[k - missing] == 1
        factor.append(0 if still else -1 if backwards[k] else 1)
        offset.append(0 if still or not backwards[k] else span.size - 1)
    return Piece(
        tuple(s.start for s in spans),
        tuple(s.size for s in spans),
        operand,
        tuple(factor),
        tuple(offset),
        tuple(s.step for s in spans),
    )


@dataclass(frozen=True)
class Concatenate(Piecewise, name="concatenate"):
    """Arrays one after another along an axis"""

    axis: int  # non-negative

    def infer(self, *types: TensorType) -> TensorType:
        first = types[0]
        rest = [(t.dtype, t.shape[: self.axis], t.shape[self.axis + 1 :]) for t in types]
        if any(r != rest[0] for r in rest) or any(t.ndim != first.ndim for t in types):
            np.concatenate([phantom(t) for t in types], self.axis)  # raises on a wrong shape
        dtype = np.result_type(*(t.dtype for t in types))
        size = sum(t.shape[self.axis] for t in types)
        return TensorType(dtype, (*first.shape[: self.axis], size, *first.shape[self.axis + 1 :]))

    def reference(self, *arrays: Any) -> Any:
        return np.concatenate(arrays, self.axis)

    def pieces(self, result: TensorType, *operands: TensorType) -> list[Piece]:
        boxes, place = [], 0
        for k, t in enumerate(operands):
            spans = [Span(0, n) for n in t.shape]
            spans[self.axis] = Span(place, t.shape[self.axis])
            place += t.shape[self.axis]
            if t.size:
                boxes.append(plain(tuple(spans), k, (0,) * t.ndim))
        return boxes

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for axis, shapes in (
            (0, ((3,), (17,), (1,))),
            (0, ((5,),)),
            (1, ((3, 4), (3, 0), (3, 37))),
            (0, ((2, 3, 1), (1, 3, 1))),
            (0, ((0,), (0,))),
        ):
            for dtype in values.TYPICAL:
                yield Sample(cls(axis), tuple(values.ordinary(rng, dtype, s) for s in shapes))


@dataclass(frozen=True)
class Pad(Piecewise, name="pad_constant"):
    """An array with a margin of one value (the second operand, 0-d)"""

    before: tuple[int, ...]
    after: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        x = types[0]
        shape = (n + b + a for n, b, a in zip(x.shape, self.before, self.after, strict=True))
        return TensorType(x.dtype, tuple(shape))

    def reference(self, *arrays: Any) -> Any:
        x, value = arrays
        widths = tuple(zip(self.before, self.after, strict=True))
        return np.pad(x, widths, constant_values=value) if widths else np.array(x)

    def pieces(self, result: TensorType, *operands: TensorType) -> list[Piece]:
        x, value = operands
        centre = tuple(map(Span, self.before, x.shape))
        still = (False,) * result.ndim
        margin = [spread(box, 1, value.shape, still) for box in around(centre, result.shape)]
        return [*([plain(centre, 0, (0,) * x.ndim)] if x.size else []), *margin]

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for before, after, shape in (
            ((), (), ()),
            ((2,), (0,), (3,)),
            ((1, 0), (2, 3), (5, 4)),
            ((1, 1, 1), (1, 1, 1), (2, 3, 1)),
            ((2, 1), (1, 0), (0, 3)),
            ((0, 0), (0, 0), (2, 2)),
        ):
            for dtype in values.TYPICAL:
                x = values.ordinary(rng, dtype, shape)
                yield Sample(cls(before, after), (x, values.ordinary(rng, dtype, ())))


Run = tuple[int, int, int]  # places of an axis: the first, the step (1, -1 or 0), and how many


@dataclass(frozen=True)
class Margin(Piecewise, name="margin"):
    """Runs of places along every axis: an array with margins of its own elements"""

    runs: tuple[tuple[Run, ...], ...]

    def infer(self, *types: TensorType) -> TensorType:
        shape = tuple(sum(size for _, _, size in axis) for axis in self.runs)
        return TensorType(types[0].dtype, shape)

    def reference(self, *arrays: Any) -> Any:
        places = [
            [first + step * k for first, step, n in axis for k in range(n)] for axis in self.runs
        ]
        return np.array(arrays[0][np.ix_(*places)]) if places else np.array(arrays[0])

    def pieces(self, result: TensorType, *operands: TensorType) -> list[Piece]:
        per_axis = []
        for axis in self.runs:
            ends = itertools.accumulate(size for _, _, size in axis)
            per_axis.append([(end - run[2], run) for end, run in zip(ends, axis, strict=True)])
        return [
            Piece(
                tuple(start for start, _ in box),
                tuple(size for _, (_, _, size) in box),
                0,
                tuple(step for _, (_, step, _) in box),
                tuple(first for _, (first, _, _) in box),
                (1,) * len(box),
            )
            for box in itertools.product(*per_axis)
        ]

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        edge = ((0, 0, 3), (0, 1, 5), (4, 0, 1))
        mirrored = ((2, -1, 2), (0, 1, 4), (2, -1, 1))
        for runs, shape in (((edge,), (5,)), ((edge, mirrored), (5, 4)), ((), ())):
            for dtype in values.TYPICAL:
                yield Sample(cls(runs), (values.ordinary(rng, dtype, shape),))


@dataclass(frozen=True)
class Roll(Piecewise, name="roll"):
    """Every axis moved round by a number of places"""

    shifts: tuple[int, ...]  # each from 0 to the length of its axis

    def infer(self, *types: TensorType) -> TensorType:
        return types[0]

    def reference(self, *arrays: Any) -> Any:
        return np.roll(arrays[0], self.shifts, tuple(range(len(self.shifts))))

    def pieces(self, result: TensorType, *operands: TensorType) -> list[Piece]:
        per_axis = []
        for n, shift in zip(result.shape, self.shifts, strict=True):
            halves = ((Span(0, shift), n - shift), (Span(shift, n - shift), 0))
            per_axis.append([half for half in halves if half[0].size])
        return [
            plain(tuple(span for span, _ in box), 0, tuple(offset for _, offset in box))
            for box in itertools.product(*per_axis)
        ]

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for shifts, shape in (
            ((3,), (17,)),
            ((0,), (3,)),
            ((1, 0, 3), (2, 3, 4)),
            ((2, 30), (5, 37)),
        ):
            yield Sample(cls(shifts), (values.ordinary(rng, FLOAT32, shape),))


FEW = 4  # elements from one that is assigned to the next, the others copied in boxes of their own


@dataclass(frozen=True)
class Assign(Piecewise, name="assign"):
    """base with base[slices] = value: a new array; the value is broadcast to the slices"""

    start: tuple[int, ...]
    step: tuple[int, ...]
    size: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        base, value = types
        if value.shape != self.size and broadcast_shapes(value.shape, self.size) != self.size:
            raise ValueError(
                f"could not broadcast input array from shape {value.shape} into shape {self.size}"
            )
        return base

    def reference(self, *arrays: Any) -> Any:
        result = np.array(arrays[0])
        key: Any = (*Slice(self.start, self.step, self.size).key(), ...)
        result[key] = arrays[1]
        return result

    def pieces(self, result: TensorType, *operands: TensorType) -> list[Piece]:
        hole = tuple(map(_forwards, self.start, self.step, self.size))
        if 0 in self.size:  # nothing is assigned
            whole = tuple(Span(0, n) for n in result.shape)
            return [_same_place(whole)] if result.size else []
        new = spread(hole, 1, operands[1].shape, tuple(s < 0 for s in self.step))
        if any(span.step > FEW for span in hole):  # a box for each place between would be many
            return [_same_place(tuple(Span(0, n) for n in result.shape)), new]
        return [new, *(_same_place(box) for box in around(hole, result.shape))]

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for key, shape, value in (
            ((), (), ()),
            ((slice(3, None, 7),), (40,), ()),
            ((slice(None), slice(30, 2, -9)), (5, 37), (5, 4)),
            ((slice(2, 5),), (17,), (3,)),
            ((slice(None, None, -1),), (17,), (17,)),
            ((slice(15, 2, -4),), (17,), (4,)),
            ((slice(1, -1), slice(1, -1)), (5, 37), (3, 35)),
            ((slice(None, None, 2), slice(1, None, 3)), (5, 37), ()),
            ((slice(None), slice(3, 4)), (5, 37), (5, 1)),
            ((slice(None), slice(None)), (5, 37), (37,)),
            ((slice(3, 3), slice(None)), (5, 37), (0, 37)),
            ((slice(0, 2), slice(None), slice(4, None, -2)), (2, 3, 5), (3, 1)),
            ((slice(0, 10),), (0,), (1,)),
        ):
            cut = Slice.of(key, shape)
            for dtype in values.TYPICAL:
                arrays = (values.ordinary(rng, dtype, s) for s in (shape, value))
                yield Sample(cls(cut.start, cut.step, cut.size), tuple(arrays))


def _forwards(start: int, step: int, size: int) -> Span:
    return Span(start, size, step) if step > 0 else Span(start + step * (size - 1), size, -step)


def _same_place(spans: tuple[Span, ...]) -> Piece:
    """A box filled with the same box of the first operand."""
    return Piece(
        tuple(s.start for s in spans),
        tuple(s.size for s in spans),
        0,
        tuple(s.step for s in spans),
        tuple(s.start for s in spans),
        tuple(s.step for s in spans),
    )


def around(hole: tuple[Span, ...], shape: tuple[int, ...]) -> list[tuple[Span, ...]]:
    """The rest of an array around a box, as disjoint boxes: axis by axis, what lies beside the
    box.
    """
    boxes = []
    for axis, n in enumerate(shape):
        for beside in _beside(hole[axis], n):
            rest = tuple(Span(0, m) for m in shape[axis + 1 :])
            box = (*hole[:axis], beside, *rest)
            if all(s.size for s in box):
                boxes.append(box)
    return boxes


def _beside(span: Span, n: int) -> list[Span]:
    """The places of an axis of length n that are not in the span."""
    if span.size == 0:
        return [Span(0, n)]
    last = span.start + span.step * (span.size - 1)
    gaps, width = span.size - 1, span.step - 1
    if width <= gaps:
        between = [Span(span.start + k, gaps, span.step) for k in range(1, span.step)]
    else:
        between = [Span(span.start + span.step * k + 1, width) for k in range(gaps)]
    return [Span(0, span.start), *between, Span(last + 1, n - last - 1)]
