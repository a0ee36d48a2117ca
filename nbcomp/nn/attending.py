"""Attention as a function of arrays, by PyTorch's names and arguments; and what masks are."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.nn.function import Described, function
from nbcomp.nn.inputs import shape_of
from nbcomp.ops import nn


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
    a multiple, and for arrays that do not fit each other.  Source: Ainslie et al., GQA,
    arXiv:2305.13245.
    """
    if dropout_p:
        raise Unsupported("dropout in attention is not there", hint="dropout_p=0")
    _check_fit(query, key, value, grouped=enable_gqa)
    if attn_mask is not None and is_causal:
        raise ValueError("scaled_dot_product_attention takes attn_mask or is_causal, not both")
    mask = additive_mask(attn_mask, query.dtype)
    if mask is not None:
        _check_mask(mask, shape_of(query)[-2], shape_of(key)[-2])
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


def _check_fit(query: Any, key: Any, value: Any, grouped: bool) -> None:
    """Raise ValueError for queries, keys and values that do not fit each other; grouped: the heads
    of queries may be more."""
    q, k, v = map(shape_of, (query, key, value))
    if min(map(len, (q, k, v))) < 2:
        problem = "they have two axes or more"
    elif q[-1] != k[-1]:
        problem = "queries and keys are of one size"
    elif k[-2] != v[-2]:
        problem = "there are as many keys as values"
    elif not all(_spread_alike(a[:-2], k[:-2], grouped) for a in (q, v)):
        problem = "their batches are one"
    else:
        return
    raise ValueError(f"attention: {problem}, but query is {q}, key {k}, value {v}")


def _spread_alike(a: tuple[Any, ...], b: tuple[Any, ...], grouped: bool) -> bool:
    """Whether the axes of two batches are the same or spread over each other; grouped: but for the
    last, that of heads."""
    pairs = list(zip(reversed(a), reversed(b), strict=False))
    return all(n == m or n == 1 or m == 1 for n, m in pairs[1 if grouped else 0 :])


def _check_mask(mask: Any, queries: Any, keys: Any) -> None:
    """Raise ValueError for a mask whose last two axes are not of queries and keys, or 1."""
    wanted = (queries, keys)[-len(shape_of(mask)) :] if shape_of(mask) else ()
    last = shape_of(mask)[-len(wanted) :] if wanted else ()
    if any(n not in (1, m) for n, m in zip(last, wanted, strict=True)):
        raise ValueError(
            f"attention of {queries} queries to {keys} keys takes a mask of shape"
            f" (..., {queries}, {keys}), not {shape_of(mask)}"
        )


def additive_mask(mask: Any, dtype: Any, seen: bool = True) -> Any:
    """A mask that is added: -inf where a key is not seen.  seen: what True says of a key.

    Raises TypeError for masks that are neither booleans nor of floating point: whether their ones
    are added or hide keys is not theirs to say.
    """
    if mask is None or mask.dtype.kind == "f":
        return mask
    if mask.dtype.kind != "b":
        raise TypeError(
            f"a mask of attention is of bool or floating point, not {np.dtype(mask.dtype)}: give"
            " mask.astype(bool), or the numbers to add to the scores"
        )
    return np.where(mask, *((0.0, -np.inf) if seen else (-np.inf, 0.0))).astype(dtype)
