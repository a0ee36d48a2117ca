"""Convolution and pooling layers: PyTorch's names, arguments and layouts."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from nbcomp.nn import functional as F
from nbcomp.nn import init
from nbcomp.nn.module import Module

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Conv(Module):
    """A sum over windows of input · weight, with weight (out, in / groups, *kernel)."""

    space: ClassVar[int] = 0
    convolve: ClassVar[Any] = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        dtype: Any = np.float32,
    ) -> None:
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{in_channels} channels in and {out_channels} out do not make {groups} groups"
            )
        if padding_mode not in PADDING_MODES:
            raise ValueError(f"padding_mode is one of {PADDING_MODES}, not {padding_mode!r}")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = F.sizes(kernel_size, self.space)
        self.stride, self.dilation = F.sizes(stride, self.space), F.sizes(dilation, self.space)
        self.padding = padding if isinstance(padding, str) else F.sizes(padding, self.space)
        self.padding_mode = padding_mode
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        bound = 1 / math.sqrt(max(math.prod(shape[1:]), 1))
        self.weight = init.parameter(*shape, bound=bound, dtype=dtype)
        self.bias = init.parameter(out_channels, bound=bound, dtype=dtype) if bias else None

    def forward(self, x: Any) -> Any:
        """(batch, in_channels, *space) → (batch, out_channels, *places)"""
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            margins = F.margins(padding, self.kernel_size, self.stride, self.dilation)
            flat = [n for margin in reversed(margins) for n in margin]
            x, padding = F.pad(x, flat, self.padding_mode), 0
        return self.convolve(
            x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}",
            f"kernel_size={self.kernel_size}",
            f"stride={self.stride}",
        ]
        ones = (1,) * self.space
        if self.padding not in ((0,) * self.space, "valid"):
            parts.append(f"padding={self.padding}")
        if self.dilation != ones:
            parts.append(f"dilation={self.dilation}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class Conv1d(_Conv):
    """A convolution over (batch, channels, length)."""

    space, convolve = 1, staticmethod(F.conv1d)


class Conv2d(_Conv):
    """A convolution over (batch, channels, height, width)."""

    space, convolve = 2, staticmethod(F.conv2d)


class Conv3d(_Conv):
    """A convolution over (batch, channels, depth, height, width)."""

    space, convolve = 3, staticmethod(F.conv3d)


class _ConvTranspose(Module):
    """A convolution with zeros between the elements of its input; weight (in, out / groups, *k)."""

    space: ClassVar[int] = 0
    convolve: ClassVar[Any] = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        dtype: Any = np.float32,
    ) -> None:
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{in_channels} channels in and {out_channels} out do not make {groups} groups"
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = F.sizes(kernel_size, self.space)
        self.stride, self.dilation = F.sizes(stride, self.space), F.sizes(dilation, self.space)
        self.padding = F.sizes(padding, self.space)
        self.output_padding = F.sizes(output_padding, self.space)
        shape = (in_channels, out_channels // groups, *self.kernel_size)
        bound = 1 / math.sqrt(max(math.prod(shape[1:]), 1))
        self.weight = init.parameter(*shape, bound=bound, dtype=dtype)
        self.bias = init.parameter(out_channels, bound=bound, dtype=dtype) if bias else None

    def forward(self, x: Any) -> Any:
        """(batch, in_channels, *space) → (batch, out_channels, *places)"""
        return self.convolve(
            x, self.weight, self.bias, self.stride, self.padding, self.output_padding,
            self.groups, self.dilation,
        )  # fmt: skip

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}",
            f"kernel_size={self.kernel_size}",
            f"stride={self.stride}",
        ]
        zeros = (0,) * self.space
        for name in ("padding", "output_padding"):
            if getattr(self, name) != zeros:
                parts.append(f"{name}={getattr(self, name)}")
        if self.dilation != (1,) * self.space:
            parts.append(f"dilation={self.dilation}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        return ", ".join(parts + (["bias=False"] if self.bias is None else []))


class ConvTranspose1d(_ConvTranspose):
    """A transposed convolution over (batch, channels, length)."""

    space, convolve = 1, staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """A transposed convolution over (batch, channels, height, width)."""

    space, convolve = 2, staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    """A transposed convolution over (batch, channels, depth, height, width)."""

    space, convolve = 3, staticmethod(F.conv_transpose3d)


class Upsample(Module):
    """The space in another size, by interpolation."""

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
    ) -> None:
        self.size, self.scale_factor = size, scale_factor
        self.mode, self.align_corners = mode, align_corners

    def forward(self, x: Any) -> Any:
        """(batch, channels, *space) → (batch, channels, *size)"""
        return F.interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners)

    def extra_repr(self) -> str:
        how = f"scale_factor={self.scale_factor}" if self.size is None else f"size={self.size}"
        return f"{how}, mode={self.mode!r}"


class _MaxPool(Module):
    """The maximum of windows."""

    pool: ClassVar[Any] = None

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding, self.dilation, self.ceil_mode = padding, dilation, ceil_mode

    def forward(self, x: Any) -> Any:
        """(batch, channels, *space) → (batch, channels, *places)"""
        return self.pool(
            x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding},"
            f" dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The maximum of windows of (batch, channels, length)."""

    pool = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """The maximum of windows of (batch, channels, height, width)."""

    pool = staticmethod(F.max_pool2d)


class AvgPool1d(Module):
    """The mean of windows of (batch, channels, length)."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        self.kernel_size, self.padding = F.sizes(kernel_size, 1), F.sizes(padding, 1)
        self.stride = self.kernel_size if stride is None else F.sizes(stride, 1)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, x: Any) -> Any:
        """(batch, channels, length) → (batch, channels, places)"""
        return F.avg_pool1d(
            x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """The mean of windows of (batch, channels, height, width)."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, x: Any) -> Any:
        """(batch, channels, height, width) → (batch, channels, rows, columns)"""
        return F.avg_pool2d(
            x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AdaptivePool(Module):
    """Windows that make an output of the size asked for."""

    pool: ClassVar[Any] = None

    def __init__(self, output_size: Any) -> None:
        self.output_size = output_size

    def forward(self, x: Any) -> Any:
        """(batch, channels, *space) → (batch, channels, *output_size)"""
        return self.pool(x, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptivePool):
    """Means that make an output of this length."""

    pool = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptivePool):
    """Means that make an output of this height and width."""

    pool = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveMaxPool1d(_AdaptivePool):
    """Maxima that make an output of this length."""

    pool = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptivePool):
    """Maxima that make an output of this height and width."""

    pool = staticmethod(F.adaptive_max_pool2d)
