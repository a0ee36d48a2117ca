"""Pooling layers: PyTorch's names, arguments and layouts."""

from __future__ import annotations

from typing import Any, ClassVar

from nbcomp.nn import functional as F
from nbcomp.nn.module import Module


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


class MaxPool3d(_MaxPool):
    """The maximum of windows of (batch, channels, depth, height, width)."""

    pool = staticmethod(F.max_pool3d)


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
        self.kernel_size = F.sizes(kernel_size, 1, "kernel_size")
        self.padding = F.sizes(padding, 1, "padding")
        self.stride = self.kernel_size if stride is None else F.sizes(stride, 1, "stride")
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, x: Any) -> Any:
        """(batch, channels, length) → (batch, channels, places)"""
        return F.avg_pool1d(
            x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Module):
    """The mean of windows."""

    pool: ClassVar[Any] = None

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
        """(batch, channels, *space) → (batch, channels, *places)"""
        return self.pool(
            x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
            self.divisor_override,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPool):
    """The mean of windows of (batch, channels, height, width)."""

    pool = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPool):
    """The mean of windows of (batch, channels, depth, height, width)."""

    pool = staticmethod(F.avg_pool3d)


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


class AdaptiveAvgPool3d(_AdaptivePool):
    """Means that make an output of this depth, height and width."""

    pool = staticmethod(F.adaptive_avg_pool3d)


class AdaptiveMaxPool1d(_AdaptivePool):
    """Maxima that make an output of this length."""

    pool = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptivePool):
    """Maxima that make an output of this height and width."""

    pool = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptivePool):
    """Maxima that make an output of this depth, height and width."""

    pool = staticmethod(F.adaptive_max_pool3d)
