"""Normalisation layers: PyTorch's names, arguments and layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from nbcomp.nn import functional as F
from nbcomp.nn.arrays import Parameter
from nbcomp.nn.inputs import check_channels, check_last, check_space
from nbcomp.nn.module import Module


def _affine(
    shape: tuple[int, ...], affine: bool, bias: bool, dtype: Any
) -> tuple[Parameter | None, Parameter | None]:
    """A weight of ones and a bias of zeros."""
    weight = Parameter(np.ones(shape, dtype)) if affine else None
    return weight, Parameter(np.zeros(shape, dtype)) if affine and bias else None


class LayerNorm(Module):
    """(x - mean) / sqrt(variance + eps) over the last axes, times weight, plus bias."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: Any = np.float32,
    ) -> None:
        self.normalized_shape = _shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight, self.bias = _affine(self.normalized_shape, elementwise_affine, bias, dtype)

    def forward(self, x: Any) -> Any:
        """(..., *normalized_shape) → the same"""
        check_last(self, x, *self.normalized_shape)
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps},"
            f" elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """x / sqrt(mean square + eps) over the last axes, times weight."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        dtype: Any = np.float32,
    ) -> None:
        self.normalized_shape = _shape(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight, _ = _affine(self.normalized_shape, elementwise_affine, False, dtype)

    def forward(self, x: Any) -> Any:
        """(..., *normalized_shape) → the same"""
        check_last(self, x, *self.normalized_shape)
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


def _shape(value: int | Sequence[int]) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)


class _BatchNorm(Module):
    """Normalisation by the running mean and variance of each channel (axis 1); in training by the
    batch's own, which move the running ones."""

    ranks: ClassVar[tuple[int, ...]] = ()
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: Any = np.float32,
        *,
        bias: bool = True,
    ) -> None:
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.weight, self.bias = _affine((num_features,), affine, bias, dtype)
        tracked = track_running_stats
        zeros, ones = np.zeros(num_features, dtype), np.ones(num_features, dtype)
        self.register_buffer("running_mean", zeros if tracked else None)
        self.register_buffer("running_var", ones if tracked else None)
        self.register_buffer("num_batches_tracked", np.zeros((), np.int64) if tracked else None)

    def forward(self, x: Any) -> Any:
        """(batch, num_features, ...) → the same"""
        if len(x.shape) not in self.ranks:
            ranks = " or ".join(map(str, self.ranks))
            raise ValueError(f"{type(self).__name__} takes {ranks} axes, not an x of {x.shape}")
        check_channels(self, x, self.num_features)
        momentum: Any = self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked[...] += 1
            if momentum is None:
                momentum = 1 / self.num_batches_tracked
        return F.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, self.training,
            momentum, self.eps,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine},"
            f" bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """(batch, channels) or (batch, channels, length), normalised per channel."""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """(batch, channels, height, width), normalised per channel."""

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """(batch, channels, depth, height, width), normalised per channel."""

    ranks = (5,)


class GroupNorm(Module):
    """Normalisation over groups of channels of each sample."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        dtype: Any = np.float32,
        *,
        bias: bool = True,
    ) -> None:
        F.check_groups(num_groups, num_channels)
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.affine = affine
        self.weight, self.bias = _affine((num_channels,), affine, bias, dtype)

    def forward(self, x: Any) -> Any:
        """(batch, num_channels, ...) → the same"""
        check_channels(self, x, self.num_channels)
        return F.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine},"
            f" bias={self.bias is not None}"
        )


class _InstanceNorm(_BatchNorm):
    """Normalisation of each channel of each sample by itself; by running statistics, if tracked."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        dtype: Any = np.float32,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype, bias=bias)

    def forward(self, x: Any) -> Any:
        """(batch, num_features, ...) → the same; one sample may be without the batch's axis"""
        space = self.ranks[0] - 2
        check_space(type(self).__name__, x, space)
        alone = len(x.shape) == space + 1
        batch = np.expand_dims(x, 0) if alone else x
        result = self._normalized(batch)
        return result[0] if alone else result

    def _normalized(self, batch: Any) -> Any:
        if self.track_running_stats:
            if self.training:
                raise NotImplementedError("statistics of instances are not learned here")
            return super().forward(batch)
        if self.weight is not None:
            check_channels(self, batch, self.num_features)
        return F.instance_norm(batch, self.weight, self.bias, self.eps)


class InstanceNorm1d(_InstanceNorm):
    """(batch, channels, length), normalised per channel and sample."""

    ranks = (3,)


class InstanceNorm2d(_InstanceNorm):
    """(batch, channels, height, width), normalised per channel and sample."""

    ranks = (4,)


class InstanceNorm3d(_InstanceNorm):
    """(batch, channels, depth, height, width), normalised per channel and sample."""

    ranks = (5,)
