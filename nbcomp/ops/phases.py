"""Transposed convolutions phase by phase: their weights, and the result put together.

A phase is every stride-th place of the result.  All its places are made by the same taps of the
kernel, so it is an ordinary convolution of the input, and phases that have as many taps each can
be channels of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nbcomp.graph.op import Library, Piece, Piecewise, Sample
from nbcomp.ops import values
from nbcomp.types import FLOAT32, FLOAT64, TensorType

Taps = tuple[tuple[int, ...], ...]  # of each phase along an axis, in the order of the input


@dataclass(frozen=True)
class PhaseWeights(Library, name="phase_weights"):
    """Weights (in, out / groups, *kernel) as (groups · phases · out / groups, in / groups, *taps)

    taps: the taps of each phase, as many for each, along each axis of the kernel.
    """

    groups: int
    taps: tuple[Taps, ...]

    kept: ClassVar[bool] = True

    def infer(self, *types: TensorType) -> TensorType:
        (w,) = types
        inner, each, *_ = w.shape
        phases = math.prod(map(len, self.taps))
        own = (len(axis[0]) for axis in self.taps)
        return TensorType(w.dtype, (self.groups * phases * each, inner // self.groups, *own))

    def reference(self, *arrays: Any) -> Any:
        weight = np.asarray(arrays[0])
        inner, each, *kernel = weight.shape
        rank = len(kernel)
        chosen = weight.reshape(self.groups, inner // self.groups, each, *kernel)
        for axis, taps in enumerate(self.taps):
            chosen = np.take(chosen, taps, axis=3 + 2 * axis)  # phases, taps
        phases, own = range(3, 3 + 2 * rank, 2), range(4, 4 + 2 * rank, 2)
        ordered = chosen.transpose(0, *phases, 2, 1, *own)
        result = (-1, inner // self.groups, *(chosen.shape[k] for k in own))
        return np.ascontiguousarray(ordered.reshape(result))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        four = ((3, 1), (2, 0))
        for groups, taps, dtype, shape in (
            (1, (four, four), FLOAT32, (3, 5, 4, 4)),
            (2, (((1,),), ((2, 0),)), FLOAT32, (4, 3, 3, 3)),
            (3, (((0,), (1,)),), FLOAT64, (3, 2, 2)),
        ):
            yield Sample(cls(groups, taps), (values.ordinary(rng, dtype, shape),))


@dataclass(frozen=True)
class Phase:
    """Every stride-th place of the result, from `first` on: what an operand holds from `start` on,
    in as many channels of each group as the result has, from `channel` on."""

    first: tuple[int, ...]
    operand: int
    start: tuple[int, ...]
    channel: int


@dataclass(frozen=True)
class Interleave(Piecewise, name="interleave"):
    """Phases of an image, place by place

    Operands: (batch, groups, channels, *places) each, the first with the batch and the groups of
    the result; of others an axis of length 1 is repeated.  channels, space: those of the result.
    """

    channels: int
    space: tuple[int, ...]
    stride: tuple[int, ...]
    phases: tuple[Phase, ...]

    def infer(self, *types: TensorType) -> TensorType:
        first = types[0]
        return TensorType(first.dtype, (*first.shape[:2], self.channels, *self.space))

    def reference(self, *arrays: Any) -> Any:
        types = [TensorType(a.dtype, a.shape) for a in arrays]
        made = self.infer(*types)
        result = np.empty(made.shape, made.dtype)
        for piece in self.pieces(made, *types):
            box = zip(piece.start, piece.extent, piece.step, strict=True)
            fields = zip(piece.offset, piece.extent, piece.factor, strict=True)
            source = tuple(slice(a, a + (n if moves else 1)) for a, n, moves in fields)
            result[tuple(slice(a, a + n * s, s) for a, n, s in box)] = arrays[piece.operand][source]
        return result

    def pieces(self, result: TensorType, *operands: TensorType) -> list[Piece]:
        found = []
        for phase in self.phases:
            sides = zip(self.space, phase.first, self.stride, strict=True)
            places = tuple(-(-(n - first) // step) for n, first, step in sides)
            shape = operands[phase.operand].shape
            piece = Piece(
                (0, 0, 0, *phase.first),
                (*result.shape[:3], *places),
                phase.operand,
                tuple(int(n != 1) for n in shape),
                (0, 0, phase.channel, *phase.start),
                (1, 1, 1, *self.stride),
            )
            if all(n > 0 for n in piece.extent):
                found.append(piece)
        return found

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        one, two, bias = (
            values.ordinary(rng, FLOAT32, shape)
            for shape in ((2, 2, 4, 3, 9), (2, 2, 9, 4, 9), (1, 2, 4, 1, 1))
        )
        phases = (
            Phase((0, 0), 0, (0, 0), 0),
            Phase((0, 1), 1, (0, 1), 1),
            Phase((1, 0), 1, (1, 0), 5),
            Phase((1, 1), 2, (0, 0), 0),
        )
        for space in ((5, 16), (6, 15), (1, 1)):
            yield Sample(cls(4, space, (2, 2), phases), (one, two, bias))
        three = tuple(Phase((k,), 0, (0,), k) for k in range(3))
        yield Sample(cls(1, (119,), (3,), three), (values.ordinary(rng, FLOAT64, (1, 5, 3, 40)),))
