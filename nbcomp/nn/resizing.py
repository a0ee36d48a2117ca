"""Images made larger: transposed convolution and interpolation, by PyTorch's names and arguments.

A transposed convolution is a convolution of the input with zeros between its elements; what
interpolation reads is known from the sizes, so its places and weights are constants.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nbcomp.nn.spatial import check_groups, conv1d, conv2d, conv3d, per_axis, sizes

_CONV = {1: conv1d, 2: conv2d, 3: conv3d}
MODES = {
    "nearest": (1, 2, 3),
    "nearest-exact": (1, 2, 3),
    "linear": (1,),
    "bilinear": (2,),
    "trilinear": (3,),
}


# -------------------------------------------------------------------- transposed convolution


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
    image = batch
    for axis, (step, more) in enumerate(zip(stride, extra, strict=True), 2):
        image = _spread(image, axis, step, more)
    kernel = weight.shape[2:]
    edges = [d * (k - 1) - p for k, d, p in zip(kernel, dilation, padding, strict=True)]
    inside = tuple(max(0, e) for e in edges)
    ends = zip(edges, image.shape[2:], strict=True)
    key: Any = (..., *(slice(-min(0, e), n + min(0, e)) for e, n in ends))
    turned = _turned(weight, groups)
    result = _CONV[space](image[key], turned, bias, 1, inside, dilation, groups)
    return result[0] if alone else result


def _spread(x: Any, axis: int, step: int, more: int) -> Any:
    """step - 1 zeros between the elements along an axis, and some more after the last."""
    size = x.shape[axis]
    if step > 1:
        apart = [(0, 0)] * len(x.shape)
        apart.insert(axis + 1, (0, step - 1))
        wide = np.pad(np.expand_dims(x, axis + 1), apart)
        x = np.reshape(wide, (*x.shape[:axis], size * step, *x.shape[axis + 1 :]))
        x = x[(slice(None),) * axis + (slice((size - 1) * step + 1),)]
    if not more:
        return x
    after = [(0, 0)] * len(x.shape)
    after[axis] = (0, more)
    return np.pad(x, after)


def _turned(weight: Any, groups: int) -> Any:
    """(in, out / groups, *kernel) → (out, in / groups, *kernel), the kernel backwards."""
    inner, each, *kernel = weight.shape
    grouped = np.reshape(weight, (groups, inner // groups, each, *kernel))
    turned = np.reshape(np.swapaxes(grouped, 1, 2), (groups * each, inner // groups, *kernel))
    backwards: Any = (..., *(slice(None, None, -1) for _ in kernel))
    return turned[backwards]


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


# ------------------------------------------------------------------------------ interpolation


def interpolate(
    x: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Any:
    """(batch, channels, *space) with the space in another size: nearest or linear.

    align_corners: the first and last elements stay at the ends; otherwise elements are areas, whose
    corners do.
    """
    space = len(x.shape) - 2
    if mode not in MODES or space not in MODES[mode]:
        known = ", ".join(f"{m!r} ({'d, '.join(map(str, MODES[m]))}d)" for m in MODES)
        raise ValueError(f"no interpolation {mode!r} over {space} axes; there are {known}")
    if (size is None) == (scale_factor is None):
        raise ValueError("give either size or scale_factor")
    if align_corners is not None and mode.startswith("nearest"):
        raise ValueError("align_corners is for linear interpolation")
    old = x.shape[2:]
    if size is not None:
        new = sizes(size, space, "size")
        scales = tuple(n / m for n, m in zip(old, new, strict=True))
    else:
        factors = per_axis(scale_factor, space, "scale_factor")
        new = tuple(math.floor(n * f) for n, f in zip(old, factors, strict=True))
        scales = tuple(1 / f for f in factors)
    if any(n < 1 for n in (*old, *new)):
        raise ValueError(f"interpolation from {tuple(old)} to {new}: sizes are 1 or more")
    for axis, (n, m, scale) in enumerate(zip(old, new, scales, strict=True), 2):
        x = _along(x, axis, n, m, scale, mode, bool(align_corners))
    return x


def _along(x: Any, axis: int, n: int, m: int, scale: float, mode: str, corners: bool) -> Any:
    """One axis of n elements as m."""
    real_type: Any = np.float64 if x.dtype == np.float64 else np.float32
    if mode.startswith("nearest"):
        place = np.arange(m, dtype=np.float32)
        half = 0.5 if mode == "nearest-exact" else 0.0
        at = np.floor((place + np.float32(half)) * np.float32(scale)).astype(np.int64)
        return np.take(x, np.minimum(at, n - 1), axis=axis)
    place, half = np.arange(m, dtype=real_type), real_type(0.5)
    if corners:
        real = place * real_type((n - 1) / (m - 1) if m > 1 else 0)
    else:
        real = np.maximum((place + half) * real_type(scale) - half, 0)
    low = np.minimum(np.floor(real).astype(np.int64), n - 1)
    high = np.minimum(low + 1, n - 1)
    column = (-1, *(1,) * (len(x.shape) - axis - 1))
    part = np.reshape((real - low).astype(x.dtype), column)
    return np.take(x, low, axis=axis) * (1 - part) + np.take(x, high, axis=axis) * part
