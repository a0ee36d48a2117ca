"""Convolution and pooling of images whose channels come last: (batch, *space, channels).

The channels of a place are neighbours in memory, so that they are the lanes of a vector whatever
the size of the image.  Weights are packed: the results of a block of channels lie side by side for
each term of the sum.  The layout pass puts these in the place of the operators in `windows`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nbcomp.graph.ir import Node, apply
from nbcomp.graph.op import ChannelsLast, Library, Margins, Sample, Windowed
from nbcomp.ops import values
from nbcomp.ops.windows import Conv, Sizes, least, places, windows
from nbcomp.types import FLOAT32, FLOAT64, TensorType

MOST = 4  # vectors of channels in a block, if that leaves no rest
FEW = 2  # vectors, if the weights of more would fill the second cache
NEAR = 256 << 10  # bytes of a block that leave room there
PAGE = 4096  # bytes; rows that far apart are at the same places of the first cache
LANES = 64  # bytes of a vector


def block_of(channels: int, terms: int, itemsize: int, row: int) -> int:
    """How many channels of the result, sums of so many terms, are packed side by side.

    As many vectors as a tile has columns, which keeps all its sums in registers.  The broader it is
    the fewer rows it has, whose elements are `row` apart in memory; all tiles of rows read a block.
    """
    lanes = LANES // itemsize
    vectors = -(-channels // lanes)
    small = terms * MOST * LANES <= NEAR or row * itemsize % PAGE == 0
    most = MOST if small else FEW

    def rest(count: int) -> tuple[int, int]:
        return -(-vectors // count) * count - vectors, -count

    return min(channels, min(range(1, most + 1), key=rest) * lanes)


@dataclass(frozen=True)
class PackWeights(Library, name="pack_weights"):
    """Weights (out, in, *kernel) as (blocks, *kernel, in, block), the last filled with zeros"""

    block: int

    kept: ClassVar[bool] = True

    def infer(self, *types: TensorType) -> TensorType:
        (w,) = types
        out, each, *kernel = w.shape
        return TensorType(w.dtype, (-(-out // self.block), *kernel, each, self.block))

    def reference(self, *arrays: Any) -> Any:
        weight = np.asarray(arrays[0])
        out, each, *kernel = weight.shape
        blocks = -(-out // self.block)
        padded = np.zeros((blocks * self.block, each, *kernel), weight.dtype)
        padded[:out] = weight
        rows = padded.reshape(blocks, self.block, each, *kernel)
        rank = len(kernel)
        return np.ascontiguousarray(rows.transpose(0, *range(3, 3 + rank), 2, 1))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for block, shape in ((4, (8, 3, 3, 2)), (16, (5, 2, 3)), (3, (7, 1, 1, 1)), (2, (5, 4, 3))):
            yield Sample(cls(block), (values.ordinary(rng, FLOAT32, shape),))


def unpacked(packed: Any, channels: int) -> Any:
    """The weights that were packed."""
    rank = packed.ndim - 3
    rows = packed.transpose(0, rank + 2, rank + 1, *range(1, rank + 1))
    return rows.reshape(-1, *rows.shape[2:])[:channels]


@dataclass(frozen=True)
class WindowsLast(ChannelsLast):
    """What operators over such images have in common."""

    def space(self, x: TensorType) -> Sizes:
        """The sizes of the space of the result."""
        fields = zip(
            x.shape[1:-1], self.kernel, self.stride, self.margins, self.dilation, strict=True
        )
        return tuple(places(*axis) for axis in fields)

    def infer(self, *types: TensorType) -> TensorType:
        x = types[0]
        if any(side > 0 for margin in self.margins for side in margin):
            raise ValueError(f"the margins of {self.name} are in memory, not {self.margins}")
        space = self.space(x)
        if any(n < 1 for n in space):
            raise ValueError(f"a window of {self.kernel} does not fit into an image {x}")
        return TensorType(x.dtype, (x.shape[0], *space, self.channels_of(x)))

    def channels_of(self, x: TensorType) -> int:
        """The channels of the result."""
        return x.shape[-1]

    def image(self, x: Any) -> Any:
        """What the windows are taken of, channels first."""
        pairs = zip(self.margins, x.shape[1:-1], strict=True)
        inside = (slice(-before, n + after) for (before, after), n in pairs)
        return np.moveaxis(np.asarray(x)[(slice(None), *inside)], -1, 1)

    @property
    def none(self) -> Margins:
        """No margins."""
        return ((0, 0),) * len(self.kernel)


@dataclass(frozen=True)
class ConvolutionLast(WindowsLast, name="convolution_last"):
    """`convolution` of an image whose channels come last, with packed weights

    groups is 1, or as many as there are channels.
    """

    channels: int = 0  # of the result: the last block may have fewer than it has room for

    @classmethod
    def of(cls, op: Windowed, margins: Margins, x: Node, *weights: Node) -> Node:
        (weight,) = weights
        channels = weight.shape[0]
        made = cls(op.kernel, op.stride, margins, op.dilation, op.groups, channels)
        size, row = weight.type.dtype.itemsize, op.stride[-1] * x.shape[-1]
        terms = math.prod(weight.shape[1:])
        block = channels if op.groups > 1 else block_of(channels, terms, size, row)
        return apply(made, x, apply(PackWeights(block), weight))

    def channels_of(self, x: TensorType) -> int:
        return self.channels

    def infer(self, *types: TensorType) -> TensorType:
        x, packed = types
        blocks, *kernel, each, block = packed.shape
        if x.dtype != packed.dtype or tuple(kernel) != self.kernel:
            raise TypeError(f"windows of {x.dtype} {self.kernel} take no packed weights {packed}")
        if each * self.groups != x.shape[-1] or blocks != -(-self.channels // block):
            raise ValueError(f"packed weights {packed} do not fit an image {x}")
        return super().infer(*types)

    def reference(self, *arrays: Any) -> Any:
        x, packed = arrays
        meaning = Conv(self.stride, self.none, self.dilation, self.groups)
        result = meaning.reference(self.image(x), unpacked(np.asarray(packed), self.channels))
        return np.ascontiguousarray(np.moveaxis(result, 1, -1))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        def sample(op: ConvolutionLast, image: Sizes, block: int, dtype: Any = FLOAT32) -> Sample:
            each = image[-1] // op.groups
            weight = rng.integers(-4, 5, (op.channels, each, *op.kernel)).astype(dtype)
            packed = PackWeights(block).reference(weight)
            return Sample(op, (rng.integers(-4, 5, image).astype(dtype), packed))

        none, crop = ((0, 0), (0, 0)), ((-1, 0), (0, -2))
        yield sample(cls((3, 2), (1, 1), none, (1, 1), 1, 40), (2, 7, 16, 3), 16)
        yield sample(cls((3, 3), (2, 1), crop, (1, 2), 1, 24), (1, 9, 17, 5), 24)
        yield sample(cls((1, 1), (2, 2), crop, (1, 1), 1, 70), (1, 8, 15, 20), 64)
        yield sample(cls((3, 3), (1, 1), none, (1, 1), 37, 37), (2, 6, 16, 37), 37)
        yield sample(cls((3, 3), (2, 2), crop, (1, 1), 5, 5), (1, 9, 16, 5), 5, FLOAT64)
        yield sample(cls((4,), (1,), ((0, 0),), (2,), 1, 9), (1, 60, 3), 9, FLOAT64)
        yield sample(
            cls((2, 2, 2), (1, 2, 1), ((0, 0),) * 3, (1, 1, 1), 1, 33), (1, 4, 5, 9, 2), 32
        )


@dataclass(frozen=True)
class PackedProduct(WindowsLast, name="matmul_packed"):
    """x @ weight.T over the last axis of x, with packed weights"""

    channels: int = 0  # of the result

    @classmethod
    def packing(cls, x: Node, weight: Node) -> Node:
        """x @ weight.T, weights packed for it."""
        channels, terms = weight.shape
        block = block_of(channels, terms, weight.type.dtype.itemsize, terms)
        return apply(cls((), (), (), (), 1, channels), x, apply(PackWeights(block), weight))

    def infer(self, *types: TensorType) -> TensorType:
        x, packed = types
        blocks, terms, block = packed.shape
        if x.dtype != packed.dtype or x.shape[-1] != terms or blocks != -(-self.channels // block):
            raise ValueError(f"packed weights {packed} do not fit {x}")
        return TensorType(x.dtype, (*x.shape[:-1], self.channels))

    def reference(self, *arrays: Any) -> Any:
        x, packed = arrays
        return np.matmul(np.asarray(x), unpacked(np.asarray(packed), self.channels).T)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for shape, channels, block, dtype in (
            ((5, 7), 40, 32, FLOAT32), ((2, 3, 9), 24, 24, FLOAT64), ((1, 70, 33), 10, 10, FLOAT32),
            ((300, 20), 70, 64, FLOAT32),
        ):  # fmt: skip
            weight = rng.integers(-4, 5, (channels, shape[-1])).astype(dtype)
            x = rng.integers(-4, 5, shape).astype(dtype)
            made = cls((), (), (), (), 1, channels)
            yield Sample(made, (x, PackWeights(block).reference(weight)))


@dataclass(frozen=True)
class WindowPoolLast(WindowsLast):
    """The elements of each window, combined channel by channel"""

    @classmethod
    def of(cls, op: Windowed, margins: Margins, x: Node, *weights: Node) -> Node:
        return apply(cls(op.kernel, op.stride, margins, op.dilation), x)

    def reference(self, *arrays: Any) -> Any:
        view = windows(np, self.image(arrays[0]), self.kernel, self.stride, self.dilation)
        axes = tuple(range(-len(self.kernel), 0))
        result = getattr(np, self.fn).reduce(view, axis=axes, dtype=view.dtype)
        return np.ascontiguousarray(np.moveaxis(result, 1, -1))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        none, crop = ((0, 0), (0, 0)), ((-1, -1), (-1, 0))
        x = rng.uniform(0.5, 2, (2, 9, 8, 19)).astype(FLOAT32)
        for made in (
            cls((2, 2), (2, 2), none, (1, 1)),
            cls((3, 2), (2, 1), crop, (1, 2)),
            cls((3, 3), (1, 1), none, (1, 1)),
        ):
            yield Sample(made, (x,), 16)
        yield Sample(cls((3,), (2,), ((0, 0),), (1,)), (x[0].astype(FLOAT64),), 16)


@dataclass(frozen=True)
class WindowSumLast(WindowPoolLast, name="window_sum_last"):
    """`window_sum` of an image whose channels come last"""


@dataclass(frozen=True)
class WindowMaxLast(WindowPoolLast, name="window_max_last"):
    """`window_max` of an image whose channels come last"""

    fn: ClassVar[str] = "maximum"

    def fill(self, dtype: Any) -> Any:
        return least(dtype)
