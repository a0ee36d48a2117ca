"""Layers with weights, and what stands between them: PyTorch's names, arguments and layouts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nbcomp.nn import functional as F
from nbcomp.nn import init
from nbcomp.nn.arrays import Parameter
from nbcomp.nn.inputs import check_last
from nbcomp.nn.module import Module


class Identity(Module):
    """x itself, whatever it was made with."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        """x"""
        return x


class Linear(Module):
    """x @ weight.T + bias, with weight (out_features, in_features)."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, dtype: Any = np.float32
    ) -> None:
        init.check_sizes(in_features, out_features)
        self.in_features, self.out_features = in_features, out_features
        bound = 1 / math.sqrt(in_features) if in_features else 0.0
        self.weight = init.parameter(out_features, in_features, bound=bound, dtype=dtype)
        self.bias = init.parameter(out_features, bound=bound, dtype=dtype) if bias else None

    def forward(self, x: Any) -> Any:
        """(..., in_features) → (..., out_features)"""
        check_last(self, x, self.in_features)
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features},"
            f" bias={self.bias is not None}"
        )


class Bilinear(Module):
    """x1ᵀ weight x2 + bias, with weight (out_features, in1_features, in2_features)."""

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        dtype: Any = np.float32,
    ) -> None:
        init.check_sizes(in1_features, in2_features, out_features)
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        bound = 1 / math.sqrt(in1_features)
        shape = (out_features, in1_features, in2_features)
        self.weight = init.parameter(*shape, bound=bound, dtype=dtype)
        self.bias = init.parameter(out_features, bound=bound, dtype=dtype) if bias else None

    def forward(self, x1: Any, x2: Any) -> Any:
        """(..., in1_features), (..., in2_features) → (..., out_features)"""
        check_last(self, x1, self.in1_features)
        check_last(self, x2, self.in2_features)
        return F.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features},"
            f" out_features={self.out_features}, bias={self.bias is not None}"
        )


class Embedding(Module):
    """Rows of weight (num_embeddings, embedding_dim) by their index."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        dtype: Any = np.float32,
    ) -> None:
        init.check_sizes(num_embeddings, embedding_dim)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = padding_idx
        shape = (num_embeddings, embedding_dim)
        self.weight: Parameter = init.normal_(Parameter(np.empty(shape, dtype)))
        if padding_idx is not None:
            self.weight[padding_idx] = 0

    @classmethod
    def from_pretrained(cls, embeddings: Any, padding_idx: int | None = None) -> Embedding:
        """An embedding with these rows."""
        array = np.asarray(embeddings)
        rows, columns = array.shape
        result = cls(rows, columns, padding_idx)
        result.weight = Parameter(array, requires_grad=False)
        return result

    def forward(self, indices: Any) -> Any:
        """(...) whole numbers → (..., embedding_dim)"""
        return F.embedding(indices, self.weight)

    def extra_repr(self) -> str:
        padding = f", padding_idx={self.padding_idx}" if self.padding_idx is not None else ""
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


def _axis(layer: Module, x: Any, dim: int) -> int:
    """An axis of x by its number; raises IndexError for one that it has not."""
    axes = max(len(x.shape), 1)
    if not -axes <= dim < axes:
        name, own = type(layer).__name__, layer.extra_repr()
        raise IndexError(f"{name}({own}): an array of shape {tuple(x.shape)} has no axis {dim}")
    return dim % axes


class Flatten(Module):
    """Axes start_dim to end_dim as one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Any) -> Any:
        """(batch, a, b, ...) → (batch, a · b · ...)"""
        start, end = (_axis(self, x, d) for d in (self.start_dim, self.end_dim))
        size = math.prod(x.shape[start : end + 1])
        return x.reshape(*x.shape[:start], size, *x.shape[end + 1 :])

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One axis as several."""

    def __init__(self, dim: int, unflattened_size: tuple[int, ...]) -> None:
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, x: Any) -> Any:
        """(batch, a · b) → (batch, a, b)"""
        dim = _axis(self, x, self.dim)
        return x.reshape(*x.shape[:dim], *self._sizes(x.shape[dim]), *x.shape[dim + 1 :])

    def _sizes(self, length: Any) -> tuple[Any, ...]:
        """The sizes with the one that is -1 from the axis's length, which the sizes have to make:
        other axes may have none."""
        sizes = self.unflattened_size
        rest = math.prod(n for n in sizes if n != -1)
        open_ended = sizes.count(-1) == 1 and rest
        if length % rest if open_ended else length != math.prod(sizes):
            raise ValueError(
                f"Unflatten({self.extra_repr()}): {length} elements do not make {sizes}"
            )
        return tuple(length // rest if n == -1 else n for n in sizes)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Dropout(Module):
    """The identity; in training, elements are set to 0 with probability p, the rest scaled up."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        if not 0 <= p < 1:
            raise ValueError(f"dropout probability is from 0 to below 1, not {p}")
        self.p, self.inplace = p, inplace

    def forward(self, x: Any) -> Any:
        """The shape of x"""
        return F.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout1d(Dropout):
    """In inference, which is all it is for here, the identity."""

    def forward(self, x: Any) -> Any:
        """The shape of x; raises in training, where whole channels are dropped."""
        if self.training:
            raise NotImplementedError(f"{type(self).__name__} in training; model.eval() first")
        return x


class Dropout2d(Dropout1d):
    """In inference, which is all it is for here, the identity."""
