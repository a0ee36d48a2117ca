"""The methods that arrays have inside a model's `forward` beyond NumPy's, with PyTorch's names.

Where NumPy has a method of a name (`repeat`, `size`, `max`), it is NumPy's, and takes what only
PyTorch's takes (`flatten(1)`, `transpose(1, 2)` of three axes).  Knows functions of layers and
arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

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


def flatten(x: Any, start_dim: Any = None, end_dim: int = -1, order: Any = "C") -> Any:
    """The axes start_dim..end_dim as one; with an order, or nothing, NumPy's method."""
    if start_dim is None or isinstance(start_dim, str):
        wanted: Any = start_dim or order
        return np.ravel(x, order=wanted).copy()
    first, last = normalize_axis_index(start_dim, x.ndim), normalize_axis_index(end_dim, x.ndim)
    if first > last:
        raise ValueError("flatten() has start_dim after end_dim")
    return x.reshape(*x.shape[:first], math.prod(x.shape[first : last + 1]), *x.shape[last + 1 :])


def unflatten(x: Any, dim: int, sizes: Sequence[int]) -> Any:
    """The axis `dim` as axes of these lengths."""
    at = normalize_axis_index(dim, x.ndim)
    return x.reshape(*x.shape[:at], *sizes, *x.shape[at + 1 :])


def split(x: Any, split_size: int | Sequence[int], dim: int = 0) -> Any:
    """In parts of this length along `dim`, the last one shorter, or of these lengths."""
    if isinstance(split_size, int):
        ends = [*range(split_size, x.shape[dim], split_size)]
    else:
        ends = [sum(split_size[: k + 1]) for k in range(len(split_size) - 1)]
        if sum(split_size) != x.shape[dim]:
            raise ValueError(f"split() of {x.shape[dim]} elements into parts of {split_size}")
    return tuple(np.split(x, ends, axis=dim))


def select(x: Any, dim: int, index: int) -> Any:
    """One place along `dim`."""
    return x[(slice(None),) * normalize_axis_index(dim, x.ndim) + (index,)]


def narrow(x: Any, dim: int, start: int, length: int) -> Any:
    """`length` places along `dim`."""
    return x[(slice(None),) * normalize_axis_index(dim, x.ndim) + (slice(start, start + length),)]


def gather(x: Any, dim: int, index: Any) -> Any:
    """The elements at these places along `dim`."""
    at = normalize_axis_index(dim, x.ndim)
    if (*x.shape[:at], *x.shape[at + 1 :]) != (*index.shape[:at], *index.shape[at + 1 :]):
        raise ValueError("gather() needs an index of the array's shape, but along dim")
    return np.take_along_axis(x, index, at)


def norm(x: Any, p: float = 2.0, dim: Any = None, keepdim: bool = False) -> Any:
    """The p-norm of all elements, or along `dim`."""
    axis = tuple(dim) if isinstance(dim, list) else dim
    if p == math.inf:
        return np.max(np.abs(x), axis=axis, keepdims=keepdim)
    if p == 2:
        return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdim))
    return np.sum(np.abs(x) ** p, axis=axis, keepdims=keepdim) ** (1 / p)


def along(function: Any) -> Any:
    """A function of NumPy's along one axis that PyTorch calls `dim`."""

    def called(x: Any, *args: Any, **kwargs: Any) -> Any:
        if "dim" in kwargs:
            kwargs["axis"] = kwargs.pop("dim")
        if "descending" in kwargs:
            raise TypeError("descending is PyTorch's: write np.flip(x.argsort(axis), axis)")
        return function(x, *args, **kwargs)

    called.__name__ = function.__name__
    return called


def written(function: Any) -> Any:
    """The method of a name that ends in `_`: what the function gives is written to the array."""

    def write(x: Any, *args: Any, **kwargs: Any) -> Any:
        x[...] = function(x, *args, **kwargs)
        return x

    return write


def roll(x: Any, shifts: Any, dims: Any = None) -> Any:
    """Rolled along `dims`."""
    return np.roll(x, shifts, dims)


def named_as_numpys(of: Any) -> dict[str, Any]:
    """The methods that NumPy has too, which take what only PyTorch's takes.

    of: where NumPy's own are: `np.ndarray` for tensors, whose methods NumPy's functions call; `np`
    for arrays that are captured.
    """

    def transpose(x: Any, *axes: Any, dim0: int | None = None, dim1: int | None = None) -> Any:
        """NumPy's; two axes of an array that has more are swapped."""
        if dim0 is not None and dim1 is not None:
            return np.swapaxes(x, dim0, dim1)
        if len(axes) == 2 and x.ndim > 2:
            return np.swapaxes(x, *axes)
        return of.transpose(x, _sequence(axes) or None)

    def squeeze(x: Any, *axes: Any, dim: Any = None, axis: Any = None) -> Any:
        """Without the axes of length 1; of those that are named, without what has length 1."""
        wanted = axes[0] if axes else dim if axis is None else axis
        if wanted is None:
            return of.squeeze(x)
        named = wanted if isinstance(wanted, tuple | list) else (wanted,)
        return of.squeeze(x, tuple(a for a in named if x.shape[a] == 1))

    def repeat(x: Any, *repeats: Any, axis: Any = None) -> Any:
        """NumPy's.  Raises TypeError for the arguments of PyTorch's, which is `tile`."""
        if len(repeats) > 2:
            wanted = ", ".join(map(str, repeats))
            raise TypeError(f"repeat() is NumPy's, which repeats elements: write x.tile({wanted})")
        return of.repeat(x, repeats[0], axis if len(repeats) == 1 else repeats[1])

    def diagonal(
        x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1, axis1: Any = None, axis2: Any = None
    ) -> Any:
        """NumPy's, also with PyTorch's names for its arguments."""
        first, second = dim1 if axis1 is None else axis1, dim2 if axis2 is None else axis2
        return of.diagonal(x, offset, first, second)

    return {
        "transpose": transpose,
        "squeeze": squeeze,
        "repeat": repeat,
        "diagonal": diagonal,
        "flatten": flatten,
        **{name: reduction(getattr(of, name)) for name in (*REDUCTIONS, "argmax", "argmin")},
        **{name: along(getattr(of, name)) for name in ("cumsum", "cumprod", "argsort")},
    }


def to(x: Any, dtype: Any) -> Any:
    """As another dtype; there are no devices."""
    return x.astype(dtype)


def _sequence(values: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments one by one, or as one tuple."""
    one = values[0] if len(values) == 1 else None
    return tuple(one) if isinstance(one, tuple | list) else tuple(values)


METHODS.update(
    relu=F.relu, sigmoid=F.sigmoid, tanh=F.tanh, softmax=F.softmax, log_softmax=F.log_softmax,
    logsumexp=F.logsumexp, gelu=F.gelu, silu=F.silu, topk=F.topk,
    exp=np.exp, log=np.log, sqrt=np.sqrt, sin=np.sin, cos=np.cos, abs=np.abs, neg=np.negative,
    square=np.square, rsqrt=lambda x: 1 / np.sqrt(x), pow=np.power, floor=np.floor, ceil=np.ceil,
    trunc=np.trunc, sign=np.sign, reciprocal=np.reciprocal, log1p=np.log1p, expm1=np.expm1,
    log2=np.log2, log10=np.log10, tan=np.tan, atan=np.arctan, isnan=np.isnan, isinf=np.isinf,
    isfinite=np.isfinite, logical_not=np.logical_not,
    add=lambda x, other, alpha=1: x + other * alpha if alpha != 1 else x + other,
    sub=lambda x, other, alpha=1: x - other * alpha if alpha != 1 else x - other,
    mul=np.multiply, div=np.true_divide, fmod=np.fmod, remainder=np.remainder,
    eq=np.equal, ne=np.not_equal, lt=np.less, le=np.less_equal, gt=np.greater, ge=np.greater_equal,
    maximum=np.maximum, minimum=np.minimum, lerp=lambda x, end, weight: x + weight * (end - x),
    matmul=np.matmul, mm=np.matmul, bmm=np.matmul,
    clamp=clamp, clamp_min=clamp, clamp_max=lambda x, max: clamp(x, None, max),
    where=lambda x, condition, other: np.where(condition, x, np.asarray(other, x.dtype)
        if isinstance(other, int | float) else other),
    unsqueeze=lambda x, dim: np.expand_dims(x, dim), permute=permute, expand=expand, view=view,
    expand_as=lambda x, other: np.broadcast_to(x, other.shape), chunk=chunk, split=split,
    unbind=lambda x, dim=0: tuple(select(x, dim, k) for k in range(x.shape[dim])),
    view_as=lambda x, other: x.reshape(other.shape),
    reshape_as=lambda x, other: x.reshape(other.shape),
    unflatten=unflatten,
    swapdims=np.swapaxes, movedim=np.moveaxis, moveaxis=np.moveaxis, t=lambda x: x.T,
    tile=lambda x, *dims: np.tile(x, _sequence(dims)),
    repeat_interleave=lambda x, repeats, dim=None: np.repeat(x, repeats, dim),
    flip=lambda x, *dims, **named: np.flip(x, _sequence(dims or (named["dims"],))),
    roll=roll, tril=lambda x, diagonal=0: np.tril(x, diagonal),
    triu=lambda x, diagonal=0: np.triu(x, diagonal),
    select=select, narrow=narrow, gather=gather,
    index_select=lambda x, dim, index: np.take(x, index, axis=dim),
    masked_fill=masked_fill, contiguous=lambda x: x.copy(order="C"), clone=lambda x: x.copy(),
    detach=lambda x: x, cpu=lambda x: x, norm=norm, to=to,
    type_as=lambda x, other: x.astype(other.dtype),
    float=lambda x: x.astype(np.float32), double=lambda x: x.astype(np.float64),
    half=lambda x: x.astype(np.float16), int=lambda x: x.astype(np.int32),
    long=lambda x: x.astype(np.int64), bool=lambda x: x.astype(np.bool_),
    dim=lambda x: x.ndim, ndimension=lambda x: x.ndim,
    numel=lambda x: math.prod(x.shape), nelement=lambda x: math.prod(x.shape),
    amax=reduction(np.max), amin=reduction(np.min),
    **named_as_numpys(np),
)  # fmt: skip
IN_PLACE = (
    *("add", "sub", "mul", "div", "pow", "neg", "abs", "exp", "log", "sqrt", "relu", "sigmoid"),
    *("tanh", "clamp", "masked_fill", "floor", "ceil"),
)
METHODS.update({f"{name}_": written(METHODS[name]) for name in IN_PLACE})
METHODS.update(
    fill_=written(lambda x, value: value),
    zero_=written(lambda x: 0),
    copy_=written(lambda x, other: other),
)


def _view(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    return np.ndarray.view(self, *args, **kwargs) if kwargs else view(self, *args)


for _name, _method in named_as_numpys(np.ndarray).items():
    setattr(Tensor, _name, _method)
setattr(Tensor, "view", _view)  # noqa: B010
