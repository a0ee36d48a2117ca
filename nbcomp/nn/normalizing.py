"""Normalisations as functions of arrays, by PyTorch's names and arguments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nbcomp.nn.function import Described, function
from nbcomp.nn.inputs import check_one_per_channel, check_shape, shape_of
from nbcomp.nn.spatial import check_groups
from nbcomp.ops import nn


@function
def layer_norm(
    x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Described:
    """(x - mean) / sqrt(variance + eps) over the last axes, times weight, plus bias"""
    last = _last_axes("layer_norm", x, normalized_shape, weight, bias)
    if weight is None and bias is not None:
        raise ValueError("layer_norm with a bias has a weight too")
    return nn.LayerNorm(len(last), eps), (x, weight, bias)


def _last_axes(name: str, x: Any, wanted: Any, weight: Any, bias: Any = None) -> tuple[int, ...]:
    """The sizes that are normalised together.  Raises ValueError where x does not end in them."""
    last = tuple(wanted) if isinstance(wanted, tuple | list) else (wanted,)
    shape = shape_of(x)
    if not last or len(shape) < len(last) or shape[len(shape) - len(last) :] != last:
        inner = ", ".join(map(str, last))
        raise ValueError(f"{name} over {last} takes an array of shape (..., {inner}), not {shape}")
    check_shape(name, "weight", weight, last)
    check_shape(name, "bias", bias, last)
    return last


@function
def _rms_norm(x: Any, weight: Any = None, eps: float = 1e-5) -> Described:
    return nn.RmsNorm(eps), (x, weight)


def rms_norm(x: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    """x / sqrt(mean square + eps) over the last axes, times weight; eps: that of x's dtype"""
    eps = float(np.finfo(x.dtype).eps) if eps is None else eps
    shape = _last_axes("rms_norm", x, normalized_shape, weight)
    if len(shape) == 1:
        return _rms_norm(x, weight, eps)
    axes = tuple(range(-len(shape), 0))
    result = x / np.sqrt(np.mean(x * x, axis=axes, keepdims=True) + eps)
    return result if weight is None else result * weight


@function
def _batch_norm(
    x: Any, mean: Any, var: Any, weight: Any, bias: Any, eps: float, own: bool
) -> Described:
    return nn.BatchNorm(eps, own), (x, mean, var, weight, bias)


def batch_norm(
    x: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """(x - mean) / sqrt(variance + eps) · weight + bias per channel (axis 1).

    training: with the batch's own statistics, which move the running ones in place.
    """
    check_one_per_channel(
        "batch_norm", x, running_mean=running_mean, running_var=running_var, weight=weight,
        bias=bias,
    )  # fmt: skip
    own = training or running_mean is None
    if own:
        axes = (0, *range(2, len(x.shape)))
        mean, var = np.mean(x, axis=axes), np.var(x, axis=axes)
        if training and running_mean is not None:
            count = x.size // x.shape[1]
            running_mean[...] = (1 - momentum) * running_mean + momentum * mean
            unbiased = var * (count / max(count - 1, 1))
            running_var[...] = (1 - momentum) * running_var + momentum * unbiased
    else:
        mean, var = running_mean, running_var
    weight = np.ones_like(var) if weight is None else weight
    bias = np.zeros_like(mean) if bias is None else bias
    return _batch_norm(x, mean, var, weight, bias, eps, own)


def group_norm(
    x: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """(x - mean) / sqrt(variance + eps) over groups of channels (axis 1), then per channel an
    affine function.  Source: Wu and He, Group Normalization, arXiv:1803.08494.
    """
    check_one_per_channel("group_norm", x, weight=weight, bias=bias)
    check_groups(num_groups, x.shape[1])
    each = x.shape[1] // num_groups
    grouped = np.reshape(x, (x.shape[0], num_groups, each, math.prod(x.shape[2:])))
    distance = grouped - np.mean(grouped, axis=(-2, -1), keepdims=True)
    spread = np.mean(distance * distance, axis=(-2, -1), keepdims=True)
    result = distance / np.sqrt(spread + eps)
    column = (num_groups, each, 1)
    if weight is not None:
        result = result * np.reshape(weight, column)
    if bias is not None:
        result = result + np.reshape(bias, column)
    return np.reshape(result, x.shape)


def instance_norm(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Each channel of each sample by itself: `group_norm` with one channel a group"""
    return group_norm(x, x.shape[1], weight, bias, eps)
