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
        F.check_groups(groups, in_channels, out_channels)
        if padding_mode not in PADDING_MODES:
            raise ValueError(f"padding_mode is one of {PADDING_MODES}, not {padding_mode!r}")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = F.sizes(kernel_size, self.space, "kernel_size")
        self.stride = F.sizes(stride, self.space, "stride")
        self.dilation = F.sizes(dilation, self.space, "dilation")
        F.check_padding(padding)
        word = isinstance(padding, str)
        self.padding = padding if word else F.sizes(padding, self.space, "padding")
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
        F.check_groups(groups, in_channels, out_channels)
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = F.sizes(kernel_size, self.space, "kernel_size")
        self.stride = F.sizes(stride, self.space, "stride")
        self.dilation = F.sizes(dilation, self.space, "dilation")
        self.padding = F.sizes(padding, self.space, "padding")
        self.output_padding = F.sizes(output_padding, self.space, "output_padding")
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
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            if getattr(self, name) != (usual,) * self.space:
                parts.append(f"{name}={getattr(self, name)}")
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
        self.size, self.scale_factor = size, _floats(scale_factor)
        self.mode, self.align_corners = mode, align_corners

    def forward(self, x: Any) -> Any:
        """(batch, channels, *space) → (batch, channels, *size)"""
        return F.interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners)

    def extra_repr(self) -> str:
        how = f"scale_factor={self.scale_factor}" if self.size is None else f"size={self.size}"
        return f"{how}, mode={self.mode!r}"


def _floats(factor: Any) -> Any:
    """A factor, or one for each axis, as PyTorch keeps them."""
    if isinstance(factor, tuple | list):
        return tuple(map(float, factor))
    return None if factor is None else float(factor)
