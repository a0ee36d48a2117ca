"""Layers as functions of arrays, by PyTorch's names and arguments.

What is one operator of the graph (`linear`, `softmax`, `conv`, ...) is declared as one; the rest is
NumPy.  All of them take NumPy arrays and parameters, run as NumPy, and are captured as nodes.
Convolution and pooling are in `spatial`, what makes images larger in `resizing`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.nn.arrays import reduction
from nbcomp.nn.function import Described, function
from nbcomp.nn.resizing import (
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    interpolate,
)
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
from nbcomp.ops import nn
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
        weight = np.reshape(weight, (-1, *(1,) * (len(x.shape) - 2)))
    return np.where(x > 0, x, weight * x)


def glu(x: Any, dim: int = -1) -> Any:
    """The first half along an axis, times the sigmoid of the second"""
    first, second = np.split(x, 2, axis=dim)
    return first * sigmoid(second)


# ----------------------------------------------------------------------------- along an axis


@function
def softmax(x: Any, dim: int = -1) -> Described:
    """e ** x, divided by its sum along an axis"""
    return nn.Softmax(dim), (x,)


@function
def log_softmax(x: Any, dim: int = -1) -> Described:
    """The logarithm of softmax, without its underflow"""
    return nn.LogSoftmax(dim), (x,)


@function
def logsumexp(x: Any, dim: int = -1, keepdim: bool = False) -> Described:
    """The logarithm of the sum of e ** x along an axis"""
    return nn.LogSumExp(dim, keepdim), (x,)


def softmin(x: Any, dim: int = -1) -> Any:
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
    return nn.Linear(), (x, weight, bias)


def bilinear(x1: Any, x2: Any, weight: Any, bias: Any = None) -> Any:
    """Σᵢⱼ x1ᵢ · weightₒᵢⱼ · x2ⱼ + bias, with weight of shape (out, in1, in2)"""
    result = np.einsum("...i,oij,...j->...o", x1, weight, x2)
    return result if bias is None else result + bias


def embedding(indices: Any, weight: Any) -> Any:
    """The rows of weight at these indices"""
    return weight[indices]


def one_hot(indices: Any, num_classes: int) -> Any:
    """A new last axis with 1 at the index, 0 elsewhere (int64)"""
    return (np.expand_dims(indices, -1) == np.arange(num_classes)).astype(np.int64)


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


# --------------------------------------------------------------------------- normalisations


@function
def layer_norm(
    x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Described:
    """(x - mean) / sqrt(variance + eps) over the last axes, times weight, plus bias"""
    rank = len(normalized_shape) if isinstance(normalized_shape, tuple | list) else 1
    if weight is None and bias is not None:
        raise ValueError("layer_norm with a bias has a weight too")
    return nn.LayerNorm(rank, eps), (x, weight, bias)


@function
def _rms_norm(x: Any, weight: Any = None, eps: float = 1e-5) -> Described:
    return nn.RmsNorm(eps), (x, weight)


def rms_norm(x: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    """x / sqrt(mean square + eps) over the last axes, times weight; eps: that of x's dtype"""
    eps = float(np.finfo(x.dtype).eps) if eps is None else eps
    shape = normalized_shape if isinstance(normalized_shape, tuple | list) else (normalized_shape,)
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


# --------------------------------------------------------------------------------- attention


@function
def _attention(
    q: Any, k: Any, v: Any, mask: Any = None, scale: float | None = None, causal: bool = False
) -> Described:
    return nn.Attention(scale, causal), (q, k, v, mask)


def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """softmax(query keyᵀ · scale + mask) value over the last two axes; 0 where a query sees no key.

    attn_mask: added to the scores, or booleans, True where a key is seen.  is_causal: no query sees
    a later key.  enable_gqa: the axis before the last two is that of heads, and each head of key
    and value is that of several neighbouring ones of query.  Raises ValueError where these are not
    a multiple.  Source: Ainslie et al., GQA, arXiv:2305.13245.
    """
    if dropout_p:
        raise Unsupported("dropout in attention is not there", hint="dropout_p=0")
    mask = additive_mask(attn_mask, query.dtype)
    if not enable_gqa:
        return _attention(query, key, value, mask, scale, is_causal)
    heads, shared = query.shape[-3], key.shape[-3]
    if heads % shared or value.shape[-3] != shared:
        raise ValueError(
            f"{heads} heads of query are no multiple of {shared} of key and {value.shape[-3]} of"
            " value"
        )
    if mask is not None and len(mask.shape) > 2:
        mask = _in_groups(mask, shared) if mask.shape[-3] == heads else np.expand_dims(mask, -3)
    key, value = np.expand_dims(key, -3), np.expand_dims(value, -3)
    result = _attention(_in_groups(query, shared), key, value, mask, scale, is_causal)
    return np.reshape(result, (*query.shape[:-1], result.shape[-1]))


def _in_groups(x: Any, shared: int) -> Any:
    """The heads (the axis before the last two) as groups, each of those that share a key."""
    *batch, heads, rows, columns = x.shape
    return np.reshape(x, (*batch, shared, heads // shared, rows, columns))


def additive_mask(mask: Any, dtype: Any) -> Any:
    """A mask that is added: 0 where booleans are True, -inf where they are False."""
    if mask is None or mask.dtype.kind != "b":
        return mask
    return np.where(mask, 0.0, -np.inf).astype(dtype)


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
