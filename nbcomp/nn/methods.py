"""The methods that arrays have inside a model's `forward` beyond NumPy's, with PyTorch's names.

Where NumPy has a method of a name (`transpose`, `size`, `max`), it is NumPy's.  Knows functions of
layers and arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from nbcomp.nn import functional as F
from nbcomp.nn.arrays import METHODS, REDUCTIONS, Tensor, reduction


def clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    """The nearest values within min..max; one of them may be left out."""
    if min is None and max is None:
        raise ValueError("clamp() needs at least one of min and max")
    return np.clip(x, min, max)


def permute(x: Any, *dims: Any) -> Any:
    """The axes in this order, as numbers or one tuple."""
    return np.transpose(x, _sequence(dims))


def expand(x: Any, *sizes: Any) -> Any:
    """Repeated along axes of length 1; -1 keeps a length."""
    wanted = _sequence(sizes)
    kept = (*(1,) * (len(wanted) - x.ndim), *x.shape)
    return np.broadcast_to(x, [n if w == -1 else w for w, n in zip(wanted, kept, strict=True)])


def masked_fill(x: Any, mask: Any, value: Any) -> Any:
    """`value` where the mask is true."""
    return np.where(mask, np.asarray(value, x.dtype), x)


def chunk(x: Any, chunks: int, dim: int = 0) -> Any:
    """In so many parts of equal length along `dim`, the last one shorter."""
    length = -(-x.shape[dim] // chunks)
    return tuple(np.split(x, [*range(length, x.shape[dim], length)], axis=dim))


def view(x: Any, *shape: Any) -> Any:
    """Another shape, the same elements; of a dtype, NumPy's method of this name."""
    whole = _sequence(shape)
    if whole and all(isinstance(n, int | np.integer) for n in whole):
        return x.reshape(whole)
    return np.ndarray.view(x, *shape)


def _sequence(values: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments one by one, or as one tuple."""
    one = values[0] if len(values) == 1 else None
    return tuple(one) if isinstance(one, tuple | list) else tuple(values)


def _view(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    return np.ndarray.view(self, *args, **kwargs) if kwargs else view(self, *args)


setattr(Tensor, "view", _view)  # noqa: B010

METHODS.update(
    relu=F.relu, sigmoid=F.sigmoid, tanh=F.tanh, softmax=F.softmax, log_softmax=F.log_softmax,
    logsumexp=F.logsumexp, gelu=F.gelu, silu=F.silu, topk=F.topk,
    exp=np.exp, log=np.log, sqrt=np.sqrt, sin=np.sin, cos=np.cos, abs=np.abs, neg=np.negative,
    square=np.square, rsqrt=lambda x: 1 / np.sqrt(x), pow=np.power,
    add=np.add, sub=np.subtract, mul=np.multiply, div=np.true_divide,
    matmul=np.matmul, mm=np.matmul, bmm=np.matmul,
    clamp=clamp, clamp_min=clamp, clamp_max=lambda x, max: clamp(x, None, max),
    unsqueeze=np.expand_dims, permute=permute, expand=expand, view=view, chunk=chunk,
    masked_fill=masked_fill, contiguous=lambda x: x.copy(order="C"),
    float=lambda x: x.astype(np.float32),
    dim=lambda x: x.ndim, numel=lambda x: math.prod(x.shape),
    **{name: reduction(getattr(np, name)) for name in REDUCTIONS},
)  # fmt: skip
