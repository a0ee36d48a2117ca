"""Layers as functions of arrays, by PyTorch's names and arguments.

What is one operator of the graph (`linear`, `softmax`, `conv`, ...) is declared as one; the rest is
NumPy.  All of them take NumPy arrays and parameters, run as NumPy, and are captured as nodes.
Convolution and pooling are in `spatial`, what makes images larger in `resizing`, the rest of what
has a module of its own in `normalizing` and `attending`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.graph.numpy_function import traces
from nbcomp.nn.arrays import Tensor, reduction
from nbcomp.nn.attending import additive_mask, scaled_dot_product_attention
from nbcomp.nn.function import Described, function
from nbcomp.nn.inputs import shape_of
from nbcomp.nn.normalizing import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from nbcomp.nn.resizing import interpolate
from nbcomp.nn.spatial import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    check_groups,
    check_padding,
    conv1d,
    conv2d,
    conv3d,
    margins,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    pad,
    sizes,
)
from nbcomp.nn.transposed import conv_transpose1d, conv_transpose2d, conv_transpose3d
from nbcomp.ops import nn
from nbcomp.ops.operand import traced
from nbcomp.ops.ranking import TopK

# ------------------------------------------------------------------------------- activations


@function
def relu(x: Any) -> Described:
    """max(x, 0)"""
    return nn.Relu(), (x,)


@function
def leaky_relu(x: Any, negative_slope: float = 0.01) -> Described:
    """x for x > 0, negative_slope · x below"""
    return nn.LeakyRelu(float(negative_slope)), (x,)


@function
def elu(x: Any, alpha: float = 1.0) -> Described:
    """x for x > 0, alpha · (e ** x - 1) below"""
    return nn.Elu(float(alpha)), (x,)


@function
def sigmoid(x: Any) -> Described:
    """1 / (1 + e ** -x)"""
    return nn.Sigmoid(), (x,)


@function
def silu(x: Any) -> Described:
    """x · sigmoid(x)"""
    return nn.Silu(), (x,)


@function
def mish(x: Any) -> Described:
    """x · tanh(softplus(x))"""
    return nn.Mish(), (x,)


@function
def gelu(x: Any, approximate: str = "none") -> Described:
    """x · Φ(x); approximate="tanh": its usual approximation"""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"approximate is 'none' or 'tanh', not {approximate!r}")
    return nn.Gelu(approximate == "tanh"), (x,)


@function
def hardsigmoid(x: Any) -> Described:
    """x / 6 + ½, kept between 0 and 1"""
    return nn.HardSigmoid(), (x,)


@function
def hardswish(x: Any) -> Described:
    """x · hardsigmoid(x)"""
    return nn.HardSwish(), (x,)


@function
def _softplus(x: Any) -> Described:
    return nn.Softplus(), (x,)


def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """log(1 + e ** (beta · x)) / beta; x itself where beta · x is beyond the threshold"""
    x = x if hasattr(x, "dtype") else np.asarray(x)
    scaled = x if beta == 1 else x * beta
    soft = _softplus(scaled) if beta == 1 else _softplus(scaled) / beta
    return soft if beta == 1 and _is_far(threshold, x) else np.where(scaled > threshold, x, soft)


def _is_far(threshold: float, x: Any) -> bool:
    """Whether log(1 + e ** x) rounds to x from here on."""
    eps = float(np.finfo(x.dtype if x.dtype.kind == "f" else np.float64).eps)
    return threshold > 0 and math.exp(-threshold) < threshold * eps / 4


def relu6(x: Any) -> Any:
    """x, kept between 0 and 6"""
    return hardtanh(x, 0.0, 6.0)


def hardtanh(x: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """x, kept between two values"""
    return np.clip(x, min_val, max_val)


def selu(x: Any) -> Any:
    """The self-normalising unit: scale · elu(x, alpha)

    Source: Klambauer et al., Self-Normalizing Neural Networks, arXiv:1706.02515.
    """
    return 1.0507009873554805 * elu(x, 1.6732632423543772)


def celu(x: Any, alpha: float = 1.0) -> Any:
    """max(0, x) + min(0, alpha · (e ** (x / alpha) - 1))"""
    return np.maximum(x, 0) + np.minimum(alpha * np.expm1(np.minimum(x, 0) / alpha), 0)


def logsigmoid(x: Any) -> Any:
    """log(sigmoid(x)), without its underflow"""
    return -_softplus(-x)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent"""
    return np.tanh(x)


def softsign(x: Any) -> Any:
    """x / (1 + |x|)"""
    return x / (1 + np.abs(x))


def tanhshrink(x: Any) -> Any:
    """x - tanh(x)"""
    return x - np.tanh(x)


def softshrink(x: Any, lambd: float = 0.5) -> Any:
    """x moved by lambd towards 0, and 0 within"""
    return x - np.clip(x, -lambd, lambd)


def hardshrink(x: Any, lambd: float = 0.5) -> Any:
    """x, but 0 within lambd of 0"""
    return np.where(np.abs(x) > lambd, x, 0)


def threshold(x: Any, threshold: float, value: float) -> Any:
    """x above the threshold, the value elsewhere"""
    return np.where(x > threshold, x, value)


def prelu(x: Any, weight: Any) -> Any:
    """x for x > 0, weight · x below; one weight, or one for each channel (axis 1)"""
    if weight.size > 1:
        shape = shape_of(x)
        channels = shape[1] if len(shape) > 1 else 1
        if channels != weight.size:
            raise ValueError(
                f"PReLU with {weight.size} weights takes {weight.size} channels (axis 1), not an"
                f" array of shape {shape}"
            )
        weight = np.reshape(weight, (-1, *(1,) * (len(x.shape) - 2)))
    return np.where(x > 0, x, weight * x)


def glu(x: Any, dim: int = -1) -> Any:
    """The first half along an axis, times the sigmoid of the second"""
    shape = shape_of(x)
    if shape[dim] % 2:
        raise ValueError(
            f"glu halves axis {dim}, which has {shape[dim]} elements, an odd number: {shape}"
        )
    first, second = np.split(x, 2, axis=dim)
    return first * sigmoid(second)


# ----------------------------------------------------------------------------- along an axis


@function
def softmax(x: Any, dim: int | None = None) -> Described:
    """e ** x, divided by its sum along an axis; None: 0 of one and three axes, else 1"""
    return nn.Softmax(_axis(x, dim)), (x,)


def _axis(x: Any, dim: int | None) -> int:
    """The axis of softmax, by default PyTorch's."""
    if dim is not None:
        return dim
    return 0 if len(shape_of(x)) in (0, 1, 3) else 1


@function
def log_softmax(x: Any, dim: int | None = None) -> Described:
    """The logarithm of softmax, without its underflow"""
    return nn.LogSoftmax(_axis(x, dim)), (x,)


@function
def logsumexp(x: Any, dim: int = -1, keepdim: bool = False) -> Described:
    """The logarithm of the sum of e ** x along an axis"""
    return nn.LogSumExp(dim, keepdim), (x,)


def softmin(x: Any, dim: int | None = None) -> Any:
    """softmax(-x)"""
    return softmax(-x, dim)


sum = reduction(np.sum)
mean = reduction(np.mean)


def normalize(x: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    """x divided by its p-norm along an axis, that at least eps"""
    return x / np.maximum(_norm(np.abs(x), p, dim), eps)


def _norm(size: Any, p: float, dim: Any) -> Any:
    """The p-norm along an axis, of absolute values."""
    if math.isinf(p):
        largest = np.max if p > 0 else np.min
        return largest(size, axis=dim, keepdims=True)
    if p == 0:
        return np.sum(size != 0, axis=dim, keepdims=True, dtype=size.dtype)
    with np.errstate(divide="ignore"):  # of zeros, for negative p
        return np.sum(size**p, axis=dim, keepdims=True) ** (1 / p)


@function
def _topk_places(x: Any, k: int, dim: int = -1, largest: bool = True) -> Described:
    return TopK(k, dim, largest), (x,)


def topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest (or smallest) elements along an axis, in order, and their places.

    Of equal elements the first comes first; NaN counts as larger than all numbers.
    """
    places = _topk_places(x, k, dim, largest)
    return np.take_along_axis(x, places, axis=dim), places


# ------------------------------------------------------------------------------------ layers


@function
def linear(x: Any, weight: Any, bias: Any = None) -> Described:
    """x @ weight.T + bias, with weight of shape (out, in)"""
    given, own = shape_of(x), shape_of(weight)
    if not given or len(own) not in (1, 2) or given[-1] != own[-1]:
        raise ValueError(f"linear with a weight of shape {own} does not take an x of {given}")
    if bias is not None and shape_of(bias) not in ((), (1,), own[:-1]):
        raise ValueError(
            f"linear with a weight of shape {own} takes a bias of {own[:-1]}, not {shape_of(bias)}"
        )
    return nn.Linear(), (x, weight, bias)


def bilinear(x1: Any, x2: Any, weight: Any, bias: Any = None) -> Any:
    """Σᵢⱼ x1ᵢ · weightₒᵢⱼ · x2ⱼ + bias, with weight of shape (out, in1, in2)"""
    own = shape_of(weight)
    if len(own) != 3 or (shape_of(x1)[-1:], shape_of(x2)[-1:]) != (own[1:2], own[2:]):
        raise ValueError(
            f"bilinear with a weight of shape {own} does not take arrays of shapes {shape_of(x1)}"
            f" and {shape_of(x2)}"
        )
    result = np.einsum("...i,oij,...j->...o", x1, weight, x2)
    return result if bias is None else result + bias


def embedding(indices: Any, weight: Any) -> Any:
    """The rows of weight at these indices"""
    return weight[indices]


def one_hot(indices: Any, num_classes: int = -1) -> Any:
    """A new last axis with 1 at the index, 0 elsewhere (int64)

    num_classes: by default up to the largest index.  Raises ValueError for indices that are not
    those of classes, IndexError where it is compiled.
    """
    if num_classes == -1:
        num_classes = int(np.max(indices)) + 1
    classes = np.arange(num_classes)
    return (np.expand_dims(_classes(indices, num_classes), -1) == classes).astype(np.int64)


def _classes(indices: Any, num_classes: int) -> Any:
    """The indices.  Raises ValueError for those that are not of so many classes."""
    dispatch = getattr(type(indices), "__array_function__", None)
    if dispatch is not None and type(indices) not in (Tensor, np.ndarray):
        return dispatch(indices, _classes, (type(indices),), (indices, num_classes), {})
    if np.size(indices) and (np.min(indices) < 0 or np.max(indices) >= num_classes):
        raise ValueError(
            f"one_hot of {num_classes} classes takes indices from 0 to {num_classes - 1}, not from"
            f" {np.min(indices)} to {np.max(indices)}"
        )
    return indices


@traces(_classes)
def _compiled_classes(indices: Any, num_classes: Any) -> Any:
    """The same by looking them up, which fails at run time; Python runs the call then."""
    kept = traced(np.where, traced(np.less, indices, 0), num_classes, indices)
    return traced(np.take, np.arange(num_classes), kept)


def dropout(x: Any, p: float = 0.5, training: bool = False) -> Any:
    """x itself; in training, elements are set to 0 with probability p and the rest scaled up."""
    if not training or p == 0:
        return x
    if not issubclass(type(x), np.ndarray):  # it is being captured
        raise Unsupported(
            "dropout in training draws random numbers, which would be the same in every call",
            hint="model.eval() makes it the identity",
        )
    kept = np.random.random(x.shape) >= p
    return np.where(kept, x / (1 - p), 0).astype(x.dtype)


__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "additive_mask",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "bilinear",
    "celu",
    "check_groups",
    "check_padding",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "dropout",
    "elu",
    "embedding",
    "gelu",
    "glu",
    "group_norm",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "instance_norm",
    "interpolate",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "logsumexp",
    "margins",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "mean",
    "mish",
    "normalize",
    "one_hot",
    "pad",
    "prelu",
    "relu",
    "relu6",
    "rms_norm",
    "scaled_dot_product_attention",
    "selu",
    "sigmoid",
    "silu",
    "sizes",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "sum",
    "tanh",
    "tanhshrink",
    "threshold",
    "topk",
]
