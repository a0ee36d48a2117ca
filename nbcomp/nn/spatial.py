"""Convolution, pooling and margins as functions of arrays, by PyTorch's names and arguments.

Layouts are (batch, channels, *space).  The operators are in `nbcomp.ops.windows`; here numbers
become one per axis, and NumPy does what is not an operator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nbcomp.nn.function import Described, function
from nbcomp.nn.inputs import check_space, shape_of
from nbcomp.ops import windows
from nbcomp.sizes import Size


def per_axis(value: Any, space: int, what: str) -> tuple[Any, ...]:
    """One number per axis of the space, from one or from a sequence."""
    result = tuple(value) if isinstance(value, tuple | list) else (value,) * space
    if len(result) != space:
        raise ValueError(f"{what}={value!r} should be one number, or {space}")
    return result


LEAST = {"padding": 0, "output_padding": 0}  # everything else is 1 or more


def sizes(value: Any, space: int, what: str) -> tuple[int, ...]:
    """One whole number per axis of the space, from one or from a sequence; `what` they are.

    Raises ValueError and TypeError for numbers that are not in range or not whole.
    """
    result = per_axis(value, space, what)
    if not all(isinstance(n, int | np.integer | Size) for n in result):
        raise TypeError(f"{what}={value!r} should be a whole number, or {space} of them")
    least = LEAST.get(what, 1)
    if any(n < least for n in result):
        raise ValueError(f"{what}={value!r}: it is at least {least}")
    return result


def check_groups(groups: int, *channels: int) -> None:
    """Raise ValueError where so many groups do not divide these channels."""
    if groups < 1 or any(n % groups for n in channels):
        raise ValueError(f"{' and '.join(map(str, channels))} channels do not make {groups} groups")


@function
def convolved(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Described:
    return windows.Conv(stride, padding, dilation, groups), (x, weight, bias)


def _convolution(
    space: int,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: Any,
) -> Any:
    stride, dilation = sizes(stride, space, "stride"), sizes(dilation, space, "dilation")
    sizes(weight.shape[2:], len(weight.shape) - 2, "kernel_size")
    check_groups(groups, weight.shape[0])
    edges = margins(padding, weight.shape[2:], stride, dilation)
    alone = len(x.shape) == space + 1  # one sample, without an axis for the batch
    batch = np.expand_dims(x, 0) if alone else x
    result = convolved(batch, weight, bias, stride, edges, dilation, groups)
    return result[0] if alone else result


def margins(padding: Any, kernel: Any, stride: Any, dilation: Any) -> tuple[tuple[int, int], ...]:
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding != "same":
        check_padding(padding)
        return tuple((p, p) for p in sizes(padding, len(kernel), "padding"))
    if any(s != 1 for s in stride):
        raise ValueError("padding='same' is for strides of 1")
    totals = (d * (k - 1) for k, d in zip(kernel, dilation, strict=True))
    return tuple((t // 2, t - t // 2) for t in totals)


def check_padding(padding: Any) -> None:
    """Raise ValueError for a word that is no padding."""
    if isinstance(padding, str) and padding not in ("valid", "same"):
        raise ValueError(f"padding={padding!r} is neither 'valid', 'same' nor a whole number")


def conv1d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Any:  # fmt: skip
    """A convolution over the last axis of (batch, channels, length)."""
    return _convolution(1, x, weight, bias, stride, padding, dilation, groups)


def conv2d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Any:  # fmt: skip
    """A convolution over the last two axes of (batch, channels, height, width)."""
    return _convolution(2, x, weight, bias, stride, padding, dilation, groups)


def conv3d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Any:  # fmt: skip
    """A convolution over the last three axes of (batch, channels, depth, height, width)."""
    return _convolution(3, x, weight, bias, stride, padding, dilation, groups)


@function
def _max_pool(
    x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> Described:
    return windows.MaxPool(kernel, stride, padding, dilation, ceil), (x,)


@function
def _avg_pool(
    x: Any, kernel: Any, stride: Any, padding: Any, ceil: bool, margins: bool, divisor: Any
) -> Described:
    ones = (1,) * len(kernel)
    return windows.AvgPool(kernel, stride, padding, ones, ceil, margins, divisor), (x,)


def _maximum(
    space: int, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> Any:
    check_space(f"max_pool{space}d", x, space)
    kernel, padding = sizes(kernel, space, "kernel_size"), sizes(padding, space, "padding")
    stride = kernel if stride is None else sizes(stride, space, "stride")
    _check_half(kernel, padding)
    return _max_pool(x, kernel, stride, padding, sizes(dilation, space, "dilation"), ceil)


def _check_half(kernel: Any, padding: Any) -> None:
    if any(2 * p > k for k, p in zip(kernel, padding, strict=True)):
        raise ValueError(f"the padding {padding} is more than half of the kernel {kernel}")


def max_pool1d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    """The maximum of windows of the last axis."""
    return _maximum(1, x, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    """The maximum of windows of the last two axes."""
    return _maximum(2, x, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    """The maximum of windows of the last three axes."""
    return _maximum(3, x, kernel_size, stride, padding, dilation, ceil_mode)


def _average(
    space: int,
    x: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil: bool,
    margins: bool,
    divisor: Any,
) -> Any:
    check_space(f"avg_pool{space}d", x, space)
    kernel, padding = sizes(kernel, space, "kernel_size"), sizes(padding, space, "padding")
    stride = kernel if stride is None else sizes(stride, space, "stride")
    _check_half(kernel, padding)
    return _avg_pool(x, kernel, stride, padding, ceil, margins, divisor)


def avg_pool1d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:  # fmt: skip
    """The mean of windows of the last axis."""
    return _average(1, x, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Any:  # fmt: skip
    """The mean of windows of the last two axes."""
    return _average(
        2, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def avg_pool3d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Any:  # fmt: skip
    """The mean of windows of the last three axes."""
    return _average(
        3, x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


WIDE = 16  # elements of a line in a window, from which on it is one of the rows of a reduction


def _adaptive(reduce: Any, pool: Any, space: int, x: Any, output_size: Any) -> Any:
    """Windows of (nearly) one size that make an output of the size asked for.

    reduce: what becomes of a window; pool: of all, where their size is the same.
    """
    check_space(f"adaptive pooling over {space} axes", x, space)
    space_in = x.shape[len(x.shape) - space :]
    if any(n == 0 for n in space_in):
        raise ValueError(f"an input of shape {x.shape} has nothing to pool")
    given = per_axis(output_size, space, "output_size")
    counts = given if None in given else sizes(given, space, "output_size")
    wanted = [n if m is None else m for n, m in zip(space_in, counts, strict=True)]
    if all(m == 1 for m in wanted):
        return reduce(x, axis=tuple(range(-space, 0)), keepdims=True)
    whole = all(m and n % m == 0 for n, m in zip(space_in, wanted, strict=True))
    if whole and space_in[-1] // wanted[-1] < WIDE:
        return pool(x, tuple(n // m for n, m in zip(space_in, wanted, strict=True)))
    for axis, count in zip(range(-space, 0), wanted, strict=True):
        size = x.shape[axis]
        if count == 1:
            x = reduce(x, axis=axis, keepdims=True)
        elif size % count == 0:
            at = len(x.shape) + axis
            split = np.reshape(x, (*x.shape[:at], count, size // count, *x.shape[at + 1 :]))
            x = reduce(split, axis=at + 1)
        else:
            bounds = [(k * size // count, -(-(k + 1) * size // count)) for k in range(count)]
            rest = (slice(None),) * (-axis - 1)
            parts = [x[(..., slice(*b), *rest)] for b in bounds]
            x = np.concatenate([reduce(p, axis=axis, keepdims=True) for p in parts], axis=axis)
    return x


def adaptive_avg_pool1d(x: Any, output_size: Any) -> Any:
    """Means of the last axis that make an output of this length."""
    return _adaptive(np.mean, avg_pool1d, 1, x, output_size)


def adaptive_avg_pool2d(x: Any, output_size: Any) -> Any:
    """Means of the last two axes that make an output of this height and width."""
    return _adaptive(np.mean, avg_pool2d, 2, x, output_size)


def adaptive_avg_pool3d(x: Any, output_size: Any) -> Any:
    """Means of the last three axes that make an output of this depth, height and width."""
    return _adaptive(np.mean, avg_pool3d, 3, x, output_size)


def adaptive_max_pool1d(x: Any, output_size: Any) -> Any:
    """Maxima of the last axis that make an output of this length."""
    return _adaptive(np.max, max_pool1d, 1, x, output_size)


def adaptive_max_pool2d(x: Any, output_size: Any) -> Any:
    """Maxima of the last two axes that make an output of this height and width."""
    return _adaptive(np.max, max_pool2d, 2, x, output_size)


def adaptive_max_pool3d(x: Any, output_size: Any) -> Any:
    """Maxima of the last three axes that make an output of this depth, height and width."""
    return _adaptive(np.max, max_pool3d, 3, x, output_size)


# The modes of `pad` but "constant", and what NumPy calls them.
MODES: dict[str, Any] = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def pad(x: Any, pad: Any, mode: str = "constant", value: float = 0.0) -> Any:
    """Margins for the last axes, given last axis first as PyTorch does: (left, right, top, ...).

    Negative ones of mode "constant" cut off.  Raises ValueError for margins that are no pairs, of
    more axes than there are, or wider than the mode allows.
    """
    shape = shape_of(x)
    pairs = list(zip(pad[::2], pad[1::2], strict=False))[::-1]
    if len(pad) % 2 or len(pairs) > len(shape):
        raise ValueError(
            f"pad takes a pair of margins for each of up to {len(shape)} axes, not {tuple(pad)}"
        )
    if mode not in ("constant", *MODES):
        raise ValueError(f"mode is 'constant' or one of {', '.join(MODES)}, not {mode!r}")
    padded = shape[len(shape) - len(pairs) :]
    inner = [(0, 0)] * (len(shape) - len(pairs))
    if mode == "constant":
        if any(n < 0 for pair in pairs for n in pair):
            ends = zip(pairs, padded, strict=True)
            x = x[(..., *(slice(max(-a, 0), n + min(b, 0)) for (a, b), n in ends))]
            pairs = [(max(a, 0), max(b, 0)) for a, b in pairs]
        return np.pad(x, inner + pairs, constant_values=value)
    for pair, n in zip(pairs, padded, strict=True):
        _check_margins(mode, pair, n)
    return np.pad(x, inner + pairs, mode=MODES[mode])


def _check_margins(mode: str, pair: tuple[int, int], n: Any) -> None:
    """Raise ValueError for margins wider than what there is to fill them with."""
    most = {"reflect": n - 1, "circular": n}.get(mode)
    if min(pair) < 0 or (most is not None and max(pair) > most) or (max(pair) and not n):
        allowed = "0 or more" if most is None else f"from 0 to {most}"
        raise ValueError(f"pad of mode {mode!r} on an axis of {n} takes margins {allowed}: {pair}")
