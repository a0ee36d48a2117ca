"""Attention layers and the transformer's encoder: PyTorch's names, arguments and layouts."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nbcomp.nn import functional as F
from nbcomp.nn import init
from nbcomp.nn.arrays import Parameter
from nbcomp.nn.containers import ModuleList
from nbcomp.nn.inputs import check_axes, check_last, check_shape, shape_of
from nbcomp.nn.layers import Dropout, Linear
from nbcomp.nn.module import Module
from nbcomp.nn.normalization import LayerNorm


class MultiheadAttention(Module):
    """Attention by several heads, each on its own projections of query, key and value.

    Source: Vaswani et al., Attention Is All You Need, arXiv:1706.03762.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        dtype: Any = np.float32,
    ) -> None:
        if embed_dim % num_heads:
            raise ValueError(f"{num_heads} heads do not divide {embed_dim}")
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.batch_first = batch_first
        self.together = self.kdim == self.vdim == embed_dim
        if self.together:
            shape = (3 * embed_dim, embed_dim)
            bound = math.sqrt(6 / sum(shape))
            self.in_proj_weight = init.parameter(*shape, bound=bound, dtype=dtype)
        else:
            for name, size in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
                bound = math.sqrt(6 / (embed_dim + size))
                parameter = init.parameter(embed_dim, size, bound=bound, dtype=dtype)
                setattr(self, f"{name}_proj_weight", parameter)
        self.in_proj_bias = Parameter(np.zeros(3 * embed_dim, dtype)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)

    q_proj_weight: Any
    k_proj_weight: Any
    v_proj_weight: Any

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        """(queries, batch, embed_dim), keys and values alike → output, weights (or None).

        With batch_first the batch's axis comes first; without a batch there is none.  Masks: True
        where a key is *not* seen, or numbers that are added to the scores.
        """
        if self.dropout and self.training:
            query = F.dropout(query, self.dropout, True)  # says what it has to
        check_axes(self, query, "(queries, batch, embed_dim) or (queries, embed_dim)", (2, 3))
        for x, size in ((query, self.embed_dim), (key, self.kdim), (value, self.vdim)):
            check_last(self, x, size)
            check_axes(self, x, "(length, batch, size) or (length, size)", (len(query.shape),))
        alone = len(query.shape) == 2
        if alone:
            query, key, value = (np.expand_dims(x, 0) for x in (query, key, value))
        elif not self.batch_first:
            query, key, value = (np.swapaxes(x, 0, 1) for x in (query, key, value))
        self._check(query, key, value, attn_mask, key_padding_mask)
        q, k, v = self._heads(query, key, value)
        mask = self._mask(attn_mask, key_padding_mask, q)
        if not need_weights:
            joined = F.scaled_dot_product_attention(q, k, v, mask, is_causal=is_causal)
            return self._joined(joined, alone), None
        weights = self._weights(q, k, mask, is_causal and mask is None)
        output = self._joined(np.matmul(weights, v), alone)
        shown = np.mean(weights, axis=1) if average_attn_weights else weights
        return output, shown[0] if alone else shown

    def _check(self, query: Any, key: Any, value: Any, attn_mask: Any, padding: Any) -> None:
        """Raise ValueError for arrays and masks that do not fit each other; the batch is first."""
        (batch, queries), (_, keys) = (shape_of(x)[:2] for x in (query, key))
        name = type(self).__name__
        if shape_of(key)[:2] != shape_of(value)[:2] or shape_of(key)[0] != batch:
            raise ValueError(
                f"{name}: the batch {batch} with {queries} queries does not fit (batch, keys) ="
                f" {shape_of(key)[:2]} of key and {shape_of(value)[:2]} of value"
            )
        if attn_mask is not None:
            each = (batch * self.num_heads,) if len(shape_of(attn_mask)) == 3 else ()
            check_shape(name, "attn_mask", attn_mask, (*each, queries, keys))
        if padding is not None:
            wanted = (keys,) if len(shape_of(padding)) == 1 and batch == 1 else (batch, keys)
            check_shape(name, "key_padding_mask", padding, wanted)

    def _heads(self, query: Any, key: Any, value: Any) -> list[Any]:
        """The projections, each (batch, heads, length, size of a head)."""
        if self.together:
            weights = np.split(self.in_proj_weight, 3)
        else:
            weights = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        bias = self.in_proj_bias
        biases = [None] * 3 if bias is None else np.split(bias, 3)
        result = []
        for x, weight, own in zip((query, key, value), weights, biases, strict=True):
            projected = F.linear(x, weight, own)
            heads = (x.shape[0], x.shape[1], self.num_heads, self.embed_dim // self.num_heads)
            result.append(np.swapaxes(np.reshape(projected, heads), 1, 2))
        return result

    def _mask(self, attn_mask: Any, key_padding_mask: Any, q: Any) -> Any:
        """Both masks as one that is added to the scores (batch, heads, queries, keys)."""
        mask = F.additive_mask(attn_mask, q.dtype, seen=False)
        if mask is not None and len(mask.shape) == 3:  # (batch · heads, queries, keys)
            mask = np.reshape(mask, (q.shape[0], q.shape[1], *mask.shape[1:]))
        padding = F.additive_mask(key_padding_mask, q.dtype, seen=False)
        if padding is None:
            return mask
        padding = np.reshape(padding, (-1, 1, 1, padding.shape[-1]))
        return padding if mask is None else mask + padding

    def _weights(self, q: Any, k: Any, mask: Any, causal: bool) -> Any:
        scores = np.matmul(q, np.swapaxes(k, -1, -2)) * (1 / math.sqrt(q.shape[-1]))
        if mask is not None:
            scores = scores + mask
        if causal:
            scores = np.where(np.tri(q.shape[-2], k.shape[-2], dtype=bool), scores, -np.inf)
        return F.softmax(scores, -1)

    def _joined(self, heads: Any, alone: bool) -> Any:
        """The heads side by side, projected; axes as the caller has them."""
        batch, _, length, _ = heads.shape
        joined = np.reshape(np.swapaxes(heads, 1, 2), (batch, length, self.embed_dim))
        result = self.out_proj(joined)
        if alone:
            return result[0]
        return result if self.batch_first else np.swapaxes(result, 0, 1)


class TransformerEncoderLayer(Module):
    """Self-attention and a feed-forward network, each with a residual and a normalisation."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Any], Any] = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        dtype: Any = np.float32,
    ) -> None:
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        known = {"relu": F.relu, "gelu": F.gelu}
        self.activation = known[activation] if isinstance(activation, str) else activation

    def forward(
        self,
        src: Any,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:
        """The shape of src; masks as in `MultiheadAttention`."""
        x = src
        masks = (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            x = x + self._attended(self.norm1(x), masks)
            return x + self._fed_forward(self.norm2(x))
        x = self.norm1(x + self._attended(x, masks))
        return self.norm2(x + self._fed_forward(x))

    def _attended(self, x: Any, masks: tuple[Any, Any, bool]) -> Any:
        mask, padding, causal = masks
        result, _ = self.self_attn(x, x, x, padding, False, mask, is_causal=causal)
        return self.dropout1(result)

    def _fed_forward(self, x: Any) -> Any:
        hidden = self.dropout(self.activation(self.linear1(x)))
        return self.dropout2(self.linear2(hidden))


class TransformerEncoder(Module):
    """Copies of one encoder layer, one after another."""

    def __init__(
        self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: Module | None = None
    ) -> None:
        self.layers = ModuleList(copy.deepcopy(encoder_layer) for _ in range(num_layers))
        self.norm = norm

    def forward(
        self,
        src: Any,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:
        """The shape of src; masks as in `MultiheadAttention`."""
        x = src
        for layer in self.layers:
            x = layer(x, mask, src_key_padding_mask, is_causal)
        return x if self.norm is None else self.norm(x)
