"""Norms of vectors and matrices, in the steps of `numpy.linalg`.  Knows nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.graph.ir import Node
from nbcomp.graph.numpy_function import traces
from nbcomp.ops.operand import (
    as_node,
    cast,
    normal_axis,
    traced,
)
from nbcomp.types import FLOAT64


@traces(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Node:
    node = as_node(x)
    if node.type.dtype.kind != "f":
        node = cast(node, FLOAT64)
    rank = len(node.shape)
    if axis is None and (
        ord is None or (ord in ("f", "fro") and rank == 2) or (ord == 2 and rank == 1)
    ):
        flat = traced(np.reshape, node, -1)
        length = traced(np.sqrt, traced(np.dot, flat, flat))
        return traced(np.reshape, length, (1,) * rank) if keepdims else length
    axes = tuple(range(rank)) if axis is None else axis if isinstance(axis, tuple) else (int(axis),)
    if len(axes) == 1:
        return _vector_norm(node, ord, normal_axis(axes[0], rank), bool(keepdims))
    if len(axes) == 2:
        return _matrix_norm(node, ord, axes, bool(keepdims))
    raise ValueError("Improper number of dimensions to norm.")


def _vector_norm(x: Node, order: Any, axis: int, keepdims: bool) -> Node:
    size = traced(np.abs, x)
    if order in (np.inf, -np.inf):
        if order > 0:
            return traced(np.max, size, axis, keepdims=keepdims, initial=0)
        return traced(np.min, size, axis, keepdims=keepdims)
    if order is None or order == 2:
        squares = traced(np.multiply, x, x)
        return traced(np.sqrt, traced(np.sum, squares, axis, keepdims=keepdims))
    if order == 0:
        size = cast(traced(np.not_equal, x, 0), x.type.dtype)
    if order in (0, 1):
        return traced(np.sum, size, axis, keepdims=keepdims)
    if isinstance(order, str | Node):
        raise ValueError(f"Invalid norm order '{order}' for vectors")
    total = traced(np.sum, traced(np.power, size, order), axis, keepdims=keepdims)
    return traced(np.power, total, np.reciprocal(order, dtype=x.type.dtype))


def _matrix_norm(x: Node, order: Any, axes: tuple[Any, Any], keepdims: bool) -> Node:
    row, column = (normal_axis(k, len(x.shape)) for k in axes)
    if row == column:
        raise ValueError("Duplicate axes given.")
    if order in (None, "fro", "f"):
        squares = traced(np.multiply, x, x)
        return traced(np.sqrt, traced(np.sum, squares, (row, column), keepdims=keepdims))
    if order not in (1, -1, np.inf, -np.inf):
        if order in (2, -2, "nuc"):
            raise Unsupported("norms by singular values are not compiled", hint="use 'fro' or 1")
        raise ValueError("Invalid norm order for matrices.")
    first, second = (row, column) if abs(order) == 1 else (column, row)
    sums = traced(np.sum, traced(np.abs, x), first, keepdims=True)
    start = {"initial": 0} if order > 0 else {}
    best = traced(np.max if order > 0 else np.min, sums, second, keepdims=True, **start)
    return best if keepdims else traced(np.squeeze, best, (row, column))


@traces(np.linalg.vector_norm)
def _vector_norm_of(x: Any, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Node:
    node = as_node(x)
    rank = len(node.shape)
    if axis is None:
        flat = traced(np.reshape, node, -1)
        result = _norm(flat, ord, 0)
        return traced(np.reshape, result, (1,) * rank) if keepdims else result
    if isinstance(axis, tuple) and len(axis) > 1:
        raise Unsupported("vector_norm over several axes is not compiled", hint="reshape first")
    return _norm(node, ord, axis, keepdims)


@traces(np.linalg.matrix_norm)
def _matrix_norm_of(x: Any, keepdims: Any = False, ord: Any = "fro") -> Node:
    return _norm(x, ord, (-2, -1), keepdims)
