"""Transposed convolution, by PyTorch's names and arguments.

It is the gradient of a convolution: each element of the input adds its multiple of the kernel to
the places of the result around it.  Every stride-th place, a phase, takes the same taps of the
kernel, so it is an ordinary convolution of the input with these; no zeros are multiplied.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, product
from typing import Any

import numpy as np

from nbcomp.nn.function import Described, function
from nbcomp.nn.spatial import check_groups, convolved, sizes
from nbcomp.ops.phases import Interleave, Phase, PhaseWeights


@dataclass(frozen=True)
class _Side:
    """One axis of a phase: every stride-th place of the result, from `first` on.

    taps: the taps of the kernel that it takes, in the order of the input.  start: the element of
    the input that the first of these meets, for the phase's first place.
    """

    first: int
    taps: tuple[int, ...]
    start: int


def _sides(kernel: int, stride: int, padding: int, dilation: int) -> list[list[_Side]]:
    """The phases along an axis, those together that take as many taps."""
    found = []
    for first in range(stride):
        places = ((first + padding - k * dilation, k) for k in reversed(range(kernel)))
        met = [(at // stride, k) for at, k in places if at % stride == 0]
        found.append(_Side(first, tuple(k for _, k in met), met[0][0] if met else 0))

    def count(side: _Side) -> int:
        return len(side.taps)

    return [list(same) for _, same in groupby(sorted(found, key=count), count)]


@function
def _phase_weights(weight: Any, groups: int, taps: Any) -> Described:
    return PhaseWeights(groups, taps), (weight,)


@function
def interleaved(*results: Any, **how: Any) -> Described:
    return Interleave(**how), results


@dataclass(frozen=True)
class _Transposed:
    """A transposed convolution; fields have an entry for each axis of the space.

    counts: places of a phase.  steps: elements of the input between the taps of a phase.
    """

    stride: tuple[int, ...]
    out: tuple[Any, ...]
    counts: tuple[Any, ...]
    steps: tuple[int, ...]
    groups: int

    def __call__(self, image: Any, weight: Any, bias: Any, axes: Sequence[Any]) -> Any:
        """The result, (batch, groups, channels, *space)."""
        each = weight.shape[1]
        results: list[Any] = []
        phases: list[Phase] = []
        rest: list[tuple[_Side, ...]] = []
        for alike in product(*axes):
            if not all(sides[0].taps for sides in alike):
                rest += product(*alike)
                continue
            lowest = [min(side.start for side in sides) for sides in alike]
            for number, own in enumerate(product(*alike)):
                start = tuple(side.start - low for side, low in zip(own, lowest, strict=True))
                first = tuple(side.first for side in own)
                phases.append(Phase(first, len(results), start, number * each))
            results.append(self.together(alike, image, weight, bias))
        if len(phases) == 1 and not rest:
            return results[0]
        if rest:  # what no tap reaches
            for own in rest:
                phases.append(Phase(tuple(s.first for s in own), len(results), (0,) * len(own), 0))
            results.append(self.untouched(each, bias, results[0].dtype))
        phases.sort(key=lambda phase: phase.first)
        fields = {"space": self.out, "stride": self.stride, "phases": tuple(phases)}
        return interleaved(*results, channels=each, **fields)

    def together(self, alike: Sequence[list[_Side]], image: Any, weight: Any, bias: Any) -> Any:
        """The phases that take as many taps each, as channels of one convolution."""
        margins, inside = [], []
        lengths = zip(alike, image.shape[2:], self.counts, self.steps, strict=True)
        for sides, n, count, step in lengths:
            low, high = (pick(side.start for side in sides) for pick in (min, max))
            end = high + count + (len(sides[0].taps) - 1) * step
            margins.append((max(0, -low), max(0, end - n)))
            inside.append(slice(max(0, low), min(n, end)))
        taps = tuple(tuple(side.taps for side in sides) for sides in alike)
        turned = _phase_weights(weight, self.groups, taps)
        if bias is not None:
            own = np.reshape(bias, (self.groups, 1, -1))
            shape = (self.groups, math.prod(map(len, alike)), own.shape[2])
            bias = np.reshape(np.broadcast_to(own, shape), -1)
        how = (1,) * len(self.out), tuple(margins), self.steps, self.groups
        result = convolved(image[(..., *inside)], turned, bias, *how)
        return np.reshape(result, (image.shape[0], self.groups, -1, *result.shape[2:]))

    def untouched(self, each: int, bias: Any, dtype: Any) -> Any:
        """The value of places that no tap reaches."""
        shape = (1, self.groups, each, *(1 for _ in self.out))
        return np.zeros(shape, dtype) if bias is None else np.reshape(bias, shape).astype(dtype)


def _of_one_place(image: Any, weight: Any, bias: Any, before: Any, out: Any, groups: int) -> Any:
    """The result, (batch, groups, channels, *space), of an image of one place: the kernel itself,
    summed over the channels, in a product."""
    kernel = weight.shape[2:]
    rows = np.reshape(image, (image.shape[0], groups, 1, -1))
    terms = np.reshape(weight, (groups, weight.shape[0] // groups, -1))
    product = rows[:, 0, 0] @ terms[0] if groups == 1 else rows @ terms
    made: Any = np.reshape(product, (image.shape[0], groups, weight.shape[1], *kernel))
    ends = [(p, min(k, p + n)) for k, p, n in zip(kernel, before, out, strict=True)]
    made = made[(..., *(slice(a, b) for a, b in ends))]
    after = [(0, n - (b - a)) for (a, b), n in zip(ends, out, strict=True)]
    if any(map(any, after)):
        made = np.pad(made, [(0, 0)] * 3 + after)
    column = (groups, weight.shape[1], *(1 for _ in kernel))
    return made if bias is None else made + np.reshape(bias, column)


def _transposed(
    space: int,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Any:
    stride, dilation = sizes(stride, space, "stride"), sizes(dilation, space, "dilation")
    padding = sizes(padding, space, "padding")
    extra = sizes(output_padding, space, "output_padding")
    check_groups(groups)
    alone = len(x.shape) == space + 1
    batch = np.expand_dims(x, 0) if alone else x
    if len(batch.shape) != space + 2 or len(weight.shape) != space + 2:
        raise ValueError(
            f"a transposed convolution over {space} axes takes an input and a weight of {space + 2}"
            f" axes, not {x.shape} and {weight.shape}"
        )
    if weight.shape[0] % groups or batch.shape[1] != weight.shape[0]:
        raise ValueError(
            f"a weight of shape {weight.shape} in {groups} groups takes {weight.shape[0]} channels,"
            f" but the input {x.shape} has {batch.shape[1]}"
        )
    if any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True)):
        raise ValueError(f"output_padding {extra} is smaller than the stride or the dilation")
    kernel = weight.shape[2:]
    fields = zip(batch.shape[2:], kernel, stride, padding, extra, dilation, strict=True)
    out = [(n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, k, s, p, e, d in fields]
    if any(n < 1 for n in out):
        raise ValueError(f"the result would be of {tuple(out)} places: the padding takes all")
    counts = tuple(-(-n // s) for n, s in zip(out, stride, strict=True))
    steps = tuple(d // math.gcd(s, d) for s, d in zip(stride, dilation, strict=True))
    axes = [_sides(*own) for own in zip(kernel, stride, padding, dilation, strict=True)]
    pairs = zip(kernel, padding, strict=True)
    if all(n == 1 for n in (*batch.shape[2:], *dilation)) and all(p < k for k, p in pairs):
        result = _of_one_place(batch, weight, bias, padding, out, groups)
    else:
        how = _Transposed(stride, tuple(out), counts, steps, groups)
        result = how(batch, weight, bias, axes)
    result = np.reshape(result, (batch.shape[0], -1, *out))
    return result[0] if alone else result


def conv_transpose1d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Any:  # fmt: skip
    """The gradient of `conv1d` with regard to its input; weight (in, out / groups, length)."""
    return _transposed(1, x, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Any:  # fmt: skip
    """The gradient of `conv2d` with regard to its input; weight (in, out / groups, *kernel)."""
    return _transposed(2, x, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Any:  # fmt: skip
    """The gradient of `conv3d` with regard to its input; weight (in, out / groups, *kernel)."""
    return _transposed(3, x, weight, bias, stride, padding, output_padding, groups, dilation)
