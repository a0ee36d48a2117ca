"""Convolution and pooling: what is computed from each window of an image, a signal or a volume.

Each is one operator with a NumPy meaning, written over the windows of the padded input; `expand`
gives the views, the product of matrices or the reduction it stands for, where a target has no loops
of its own for it.  Layouts are PyTorch's: (batch, channels, *space), weights (out, in, *kernel).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nbcomp.graph.ir import Node, apply
from nbcomp.graph.op import Margins, Sample, Windowed
from nbcomp.ops import values
from nbcomp.ops.index import index
from nbcomp.ops.nn import NODES, CheckedFormula
from nbcomp.ops.operand import traced
from nbcomp.types import FLOAT32, FLOAT64, TensorType

Sizes = tuple[int, ...]


def windows(xp: Any, x: Any, kernel: Sizes, stride: Sizes, dilation: Sizes) -> Any:
    """All windows of the last axes, as a view: (..., *places, *kernel).

    A window takes every `dilation`-th element; windows start `stride` elements apart.
    """
    space = len(kernel)
    axes = tuple(range(len(x.shape) - space, len(x.shape)))
    spans = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
    view: Any = np.lib.stride_tricks.sliding_window_view
    key = (..., *(slice(None, None, s) for s in (*stride, *dilation)))
    if xp is NODES:
        return index(traced(view, x, spans, axes), key)
    return view(x, spans, axes)[key]


def places(size: int, kernel: int, stride: int, margins: tuple[int, int], dilation: int) -> int:
    """How many windows fit along an axis of this size."""
    return (size + sum(margins) - dilation * (kernel - 1) - 1) // stride + 1


def padded(xp: Any, x: Any, margins: Margins, fill: Any) -> Any:
    """The last axes with margins of a constant."""
    if not any(map(any, margins)):
        return x
    widths = [(0, 0)] * (len(x.shape) - len(margins)) + list(margins)
    return xp.pad(x, widths, constant_values=fill)


# ------------------------------------------------------------------------------- convolution


@dataclass(frozen=True)
class Conv(CheckedFormula, name="conv"):
    """The sum over each window of input · weight, per output channel

    Operands: x (batch, channels, *space) and weight (out, channels / groups, *kernel), then
    optionally bias (out,).  As in all of the field the kernel is not flipped.
    """

    stride: Sizes
    padding: Margins
    dilation: Sizes
    groups: int = 1

    def infer(self, *types: TensorType) -> TensorType:
        x, weight = types[:2]
        space = len(self.stride)
        if x.ndim != space + 2 or weight.ndim != space + 2:
            raise ValueError(
                f"a convolution over {space} axes takes an input and a weight of {space + 2} axes,"
                f" not {x} and {weight}"
            )
        channels, each = x.shape[1], weight.shape[1]
        if channels != each * self.groups or weight.shape[0] % self.groups:
            raise ValueError(
                f"a weight of shape {weight.shape} in {self.groups} groups takes"
                f" {each * self.groups} channels, but the input {x} has {channels}"
            )
        if len(types) > 2 and types[2].shape != weight.shape[:1]:
            raise ValueError(
                f"a bias of shape {types[2].shape} does not fit the {weight.shape[0]} channels of"
                " the result"
            )
        out = _output_space(x.shape[2:], weight.shape[2:], self.stride, self.padding, self.dilation)
        dtype = np.result_type(*(t.dtype for t in types))
        return TensorType(dtype, (x.shape[0], weight.shape[0], *out))

    def formula(self, xp: Any, *x: Any) -> Any:
        image, weight = padded(xp, x[0], self.padding, 0), x[1]
        view = windows(xp, image, weight.shape[2:], self.stride, self.dilation)
        depthwise = weight.shape[1] == 1 and self.groups == weight.shape[0]
        result = (self._sums if depthwise else self._product)(xp, view, weight)
        if len(x) < 3:
            return result
        return xp.add(result, xp.reshape(x[2], (-1, *(1,) * len(self.stride))))

    def windowed(self, *inputs: Node) -> Node:
        x, weight, *rest = inputs
        kernel = weight.shape[2:]
        made = Convolution(kernel, self.stride, self.padding, self.dilation, self.groups)
        result = apply(made, x, weight)
        for bias in rest:
            column = tuple(range(1, len(kernel) + 1))
            result = NODES.add(result, NODES.expand_dims(bias, column))
        return result

    def _sums(self, xp: Any, view: Any, weight: Any) -> Any:
        """One kernel per channel: a sum over each window."""
        space = len(self.stride)
        kernel = weight.shape[2:]
        each = xp.reshape(weight, (weight.shape[0], *(1,) * space, *kernel))
        axes = tuple(range(-space, 0))
        return xp.sum(xp.multiply(view, each), axis=axes)

    def _product(self, xp: Any, view: Any, weight: Any) -> Any:
        """A product of the kernels, as rows, with the windows, as columns ("im2col")

        Source: Chellapilla, Puri and Simard, High Performance Convolutional Neural Networks for
        Document Processing, 2006.
        """
        space, groups = len(self.stride), self.groups
        batch, channels = view.shape[:2]
        out, kernel = view.shape[2 : 2 + space], view.shape[2 + space :]
        inner, count = channels // groups * math.prod(kernel), math.prod(out)
        order = (0, 1, *range(2 + space, 2 + 2 * space), *range(2, 2 + space))
        columns = xp.reshape(xp.transpose(view, order), (batch, groups, inner, count))
        rows = xp.reshape(weight, (groups, weight.shape[0] // groups, inner))
        return xp.reshape(xp.matmul(rows, columns), (batch, weight.shape[0], *out))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        def small(*shape: int, dtype: Any = FLOAT32) -> Any:
            return rng.integers(-4, 5, shape).astype(dtype)

        none = ((0, 0), (0, 0))
        yield Sample(cls((1, 1), none, (1, 1)), (small(2, 3, 5, 6), small(4, 3, 3, 2)))
        uneven = ((1, 2), (0, 1))
        yield Sample(
            cls((2, 1), uneven, (1, 2), 2), (small(2, 4, 7, 6), small(6, 2, 3, 3), small(6))
        )
        depth = cls((1, 2), ((1, 1), (1, 1)), (1, 1), 3)
        yield Sample(depth, (small(1, 3, 5, 5), small(3, 1, 3, 3), small(3)))
        yield Sample(cls((1,), ((0, 0),), (1,)), (small(2, 3, 8), small(5, 3, 1)))
        yield Sample(
            cls((1,), ((2, 0),), (2,)), (small(1, 2, 8, dtype=FLOAT64), small(3, 2, 3), small(3))
        )
        volume = cls((1, 1, 2), ((0, 0),) * 3, (1, 1, 1))
        yield Sample(volume, (small(1, 2, 3, 4, 5), small(2, 2, 2, 2, 2)))


@dataclass(frozen=True)
class Convolution(Windowed, name="convolution"):
    """`conv` without bias, as loops over its windows"""

    @property
    def meaning(self) -> Conv:
        """The same as a formula."""
        return Conv(self.stride, self.margins, self.dilation, self.groups)

    def infer(self, *types: TensorType) -> TensorType:
        x, weight = types
        if x.dtype != weight.dtype or weight.shape[2:] != self.kernel:
            raise TypeError(f"windows of {x.dtype} {self.kernel} take no weight {weight}")
        return self.meaning.infer(x, weight)

    def reference(self, *arrays: Any) -> Any:
        return self.meaning.reference(*arrays)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        def small(*shape: int, dtype: Any = FLOAT32) -> Any:
            return rng.integers(-4, 5, shape).astype(dtype)

        uneven = ((1, 2), (0, 1))
        wide = cls((3, 3), (2, 1), uneven, (1, 2), 2)
        yield Sample(wide, (small(2, 4, 7, 61), small(6, 2, 3, 3)))
        yield Sample(wide, (small(2, 4, 7, 6), small(6, 2, 3, 3)))
        apart = cls((3, 2), (2, 2), ((1, 1), (1, 1)), (1, 1), 3)
        yield Sample(apart, (small(1, 3, 9, 9), small(3, 1, 3, 2)))
        strided = cls((3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1))
        yield Sample(strided, (small(1, 3, 9, 9), small(10, 3, 3, 3)))
        yield Sample(cls((1,), (1,), ((0, 0),), (1,)), (small(2, 3, 8), small(5, 3, 1)))
        line = cls((3,), (1,), ((2, 0),), (2,))
        yield Sample(line, (small(1, 2, 80, dtype=FLOAT64), small(11, 2, 3, dtype=FLOAT64)))
        volume = cls((2, 3, 2), (1, 2, 2), ((0, 1), (1, 0), (1, 1)), (2, 1, 1))
        yield Sample(volume, (small(1, 2, 4, 7, 5), small(9, 2, 2, 3, 2)))


def _output_space(
    space: Sequence[int], kernel: Sequence[int], stride: Sizes, margins: Margins, dilation: Sizes
) -> Sizes:
    out = tuple(map(places, space, kernel, stride, margins, dilation))
    if any(n < 1 for n in out):
        full = tuple(n + sum(m) for n, m in zip(space, margins, strict=True))
        span = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))
        raise ValueError(
            f"a window of {span} does not fit into an input of {full}, margins included"
        )
    return out


# ----------------------------------------------------------------------------------- pooling


@dataclass(frozen=True)
class Pool(CheckedFormula):
    """One value per window of the last axes.

    padding: a margin that no window needs to fill is never computed; `ceil` lets the last window
    reach beyond it.
    """

    kernel: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    ceil: bool = False

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        lead = x.ndim - len(self.kernel)
        if lead < 0:
            raise ValueError(f"a pool over {len(self.kernel)} axes takes no {x}")
        out = _output_space(
            x.shape[lead:], self.kernel, self.stride, self.margins(x.shape[lead:]), self.dilation
        )
        return TensorType(self.result_dtype(x), (*x.shape[:lead], *out))

    def result_dtype(self, x: TensorType) -> Any:
        """The dtype of the result."""
        return x.dtype

    def margins(self, space: Sequence[int]) -> Margins:
        """The margins, with what the last window needs beyond them when `ceil`."""
        result = []
        for n, k, s, p, d in zip(
            space, self.kernel, self.stride, self.padding, self.dilation, strict=True
        ):
            after = p
            if self.ceil:
                span = d * (k - 1) + 1
                count = -(-(n + 2 * p - span) // s) + 1
                if (count - 1) * s >= n + p:  # a window must begin in the input or its left margin
                    count -= 1
                after = max(p, (count - 1) * s + span - n - p)
            result.append((p, after))
        return tuple(result)

    def over_windows(self, op: type[WindowPool], x: Node) -> Node:
        """An operator on the windows of this pool."""
        margins = self.margins(x.shape[len(x.shape) - len(self.kernel) :])
        return apply(op(self.kernel, self.stride, margins, self.dilation), x)

    def _windows(self, xp: Any, x: Any, fill: Any) -> tuple[Any, Sizes]:
        space = len(self.kernel)
        margins = self.margins(x.shape[len(x.shape) - space :])
        image = padded(xp, x, margins, fill)
        view = windows(xp, image, self.kernel, self.stride, self.dilation)
        return view, tuple(range(-space, 0))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        x = values.ordinary(rng, FLOAT32, (2, 3, 7, 8))
        ulp = 512  # of sums of both signs, which nearly cancel, in another order
        yield Sample(cls((2, 2), (2, 2), (0, 0), (1, 1)), (x,), ulp)
        yield Sample(cls((3, 2), (2, 1), (1, 0), (1, 1)), (x,), ulp)
        yield Sample(cls((3, 3), (2, 2), (1, 1), (1, 1), True), (x,), ulp)
        yield Sample(cls((3,), (2,), (0,), (1,)), (x.astype(FLOAT64)[0],), ulp)


@dataclass(frozen=True)
class MaxPool(Pool, name="max_pool"):
    """The maximum of each window; margins never win"""

    def formula(self, xp: Any, *x: Any) -> Any:
        dtype = x[0].type.dtype if xp is NODES else x[0].dtype
        view, axes = self._windows(xp, x[0], least(dtype))
        return xp.max(view, axis=axes)

    def windowed(self, *inputs: Node) -> Node:
        return self.over_windows(WindowMax, inputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        yield from super().samples(rng)
        x = values.ordinary(rng, FLOAT32, (2, 9))
        yield Sample(cls((2,), (2,), (0,), (3,)), (x,))
        yield Sample(cls((2,), (1,), (1,), (1,)), (np.arange(-5, 4, dtype=np.int16),))


@dataclass(frozen=True)
class AvgPool(Pool, name="avg_pool"):
    """The mean of each window

    count_margins: elements of the margin count as zeros; otherwise they do not count, and never do
    those beyond it.  divisor: divide by this instead of the number of elements.
    """

    count_margins: bool = True
    divisor: int | None = None

    floats: ClassVar[str] = "fc"

    def result_dtype(self, x: TensorType) -> Any:
        return x.dtype if x.dtype.kind in self.floats else FLOAT64

    def formula(self, xp: Any, *x: Any) -> Any:
        view, axes = self._windows(xp, x[0], 0)
        return self._divided(xp, xp.sum(view, axis=axes), x[0])

    def windowed(self, *inputs: Node) -> Node | None:
        (x,) = inputs
        if x.type.dtype.kind != "f":
            return None
        result: Node = self._divided(NODES, self.over_windows(WindowSum, x), x)
        return result

    def _divided(self, xp: Any, total: Any, x: Any) -> Any:
        """The sums over windows, divided by how many elements each has."""
        dtype = x.type.dtype if xp is NODES else x.dtype
        space = x.shape[len(x.shape) - len(self.kernel) :]
        counts = self._counts(space)
        if isinstance(counts, np.ndarray) and dtype.kind in self.floats:
            counts = counts.astype(dtype)
        return xp.divide(total, counts)

    def _counts(self, space: Sequence[int]) -> Any:
        """How many elements each window has: one number, or one per window."""
        if self.divisor is not None:
            return self.divisor
        per_axis = []
        for k, axis in enumerate(zip(space, self.margins(space), strict=True)):
            n, (before, after) = axis
            inside = before if self.count_margins else 0
            margin = np.zeros(before + n + after)
            margin[before - inside : before + n + inside] = 1
            view = windows(np, margin, self.kernel[k : k + 1], self.stride[k : k + 1], (1,))
            per_axis.append(view.sum(axis=-1))
        counts = per_axis[0]
        for other in per_axis[1:]:
            counts = counts[..., None] * other
        return int(counts.flat[0]) if np.all(counts == counts.flat[0]) else counts

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        yield from super().samples(rng)
        x = values.ordinary(rng, FLOAT32, (2, 3, 7, 8))
        yield Sample(cls((3, 2), (2, 2), (1, 1), (1, 1), True, False), (x,), 512)
        yield Sample(cls((3, 2), (2, 2), (1, 1), (1, 1), False, True, 5), (x,), 512)
        yield Sample(cls((2,), (1,), (1,), (1,), False, False), (np.arange(5),), 4)


@dataclass(frozen=True)
class WindowPool(Windowed):
    """The elements of each window of the last axes, combined"""

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        lead = x.ndim - len(self.kernel)
        if lead < 0:
            raise ValueError(f"windows over {len(self.kernel)} axes take no {x}")
        space = x.shape[lead:]
        out = _output_space(space, self.kernel, self.stride, self.margins, self.dilation)
        return TensorType(x.dtype, (*x.shape[:lead], *out))

    def reference(self, *arrays: Any) -> Any:
        x = np.asarray(arrays[0])
        image = padded(np, x, self.margins, self.fill(x.dtype))
        view = windows(np, image, self.kernel, self.stride, self.dilation)
        axes = tuple(range(-len(self.kernel), 0))
        return getattr(np, self.fn).reduce(view, axis=axes, dtype=x.dtype)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        ulp = 512
        x = values.ordinary(rng, FLOAT32, (2, 3, 7, 8))
        yield Sample(cls((2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)), (x,), ulp)
        yield Sample(cls((3, 2), (2, 1), ((1, 2), (0, 1)), (1, 2)), (x,), ulp)
        wide = values.ordinary(rng, FLOAT64, (5, 9, 70))
        yield Sample(cls((3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)), (wide,), ulp)
        yield Sample(cls((3,), (2,), ((0, 0),), (1,)), (wide[0, 0],), ulp)
        yield Sample(cls((1, 3, 2), (1, 2, 2), ((0, 0), (1, 1), (0, 0)), (1, 1, 1)), (x,), ulp)


@dataclass(frozen=True)
class WindowSum(WindowPool, name="window_sum"):
    """The sum of each window of the last axes"""


@dataclass(frozen=True)
class WindowMax(WindowPool, name="window_max"):
    """The maximum of each window of the last axes"""

    fn: ClassVar[str] = "maximum"

    def fill(self, dtype: Any) -> Any:
        return least(dtype)


def least(dtype: Any) -> Any:
    """What no element is below."""
    if dtype.kind == "b":
        return False
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min
