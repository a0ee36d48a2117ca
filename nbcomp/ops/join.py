"""NumPy's functions that put arrays together and take them apart, in views and pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import NUMPY, traces
from nbcomp.ops.index import index
from nbcomp.ops.move import expanded, reshaped, sliced
from nbcomp.ops.operand import (
    as_node,
    ask,
    cast,
    integer,
    integers,
    normal_axis,
    result_type,
    supported,
)
from nbcomp.ops.pieces import Concatenate

# ---------------------------------------------------------------------------------------- together


def joined(parts: Sequence[Node], axis: int) -> Node:
    """Nodes of one dtype after one another along an axis."""
    return parts[0] if len(parts) == 1 else apply(Concatenate(axis), *parts)


@traces(np.concatenate)
def concatenated(
    arrays: Any, axis: Any = 0, out: Any = None, dtype: Any = None, casting: str = "same_kind"
) -> Node:
    if out is not None:
        raise Unsupported("out= of np.concatenate is not compiled", hint="use the result")
    nodes = list(map(as_node, _sequence(arrays)))
    if not nodes or any(n.shape == () for n in nodes):
        ask(np.concatenate, [np.empty(n.shape) for n in nodes], axis)
    target = result_type(*arrays) if dtype is None else supported(dtype)
    for n in nodes:
        if not np.can_cast(n.type.dtype, target, casting):  # type: ignore[arg-type]
            np.concatenate([np.empty(1, n.type.dtype)], dtype=target, casting=casting)  # type: ignore[call-overload]
    nodes = [cast(n, target) for n in nodes]
    if axis is None:
        return joined([reshaped(n, (n.type.size,)) for n in nodes], 0)
    where = normal_axis(axis, len(nodes[0].shape))
    return apply(Concatenate(where), *nodes) if len(nodes) > 1 else nodes[0]


def _sequence(arrays: Any) -> Sequence[Any]:
    """The arrays of a sequence; an array is the sequence of its rows."""
    if isinstance(arrays, Node):
        return [index(arrays, i) for i in range(arrays.shape[0])]
    return list(arrays)


@traces(np.stack)
def _stack(arrays: Any, axis: Any = 0, dtype: Any = None, casting: str = "same_kind") -> Node:
    nodes = list(map(as_node, _sequence(arrays)))
    if not nodes or any(n.shape != nodes[0].shape for n in nodes):
        np.stack([np.empty(n.shape) for n in nodes], axis)  # raises
    where = normal_axis(axis, len(nodes[0].shape) + 1)
    target = result_type(*nodes) if dtype is None else supported(dtype)
    return joined([expanded(cast(n, target), where) for n in nodes], where)


@traces(np.hstack)
def _hstack(tup: Any, dtype: Any = None, casting: str = "same_kind") -> Node:
    parts = _at_least(np.atleast_1d, tup)
    axis = 0 if parts and len(parts[0].shape) == 1 else 1
    return concatenated(parts, axis, dtype=dtype, casting=casting)


@traces(np.vstack)
def _vstack(tup: Any, dtype: Any = None, casting: str = "same_kind") -> Node:
    return concatenated(_at_least(np.atleast_2d, tup), 0, dtype=dtype, casting=casting)


@traces(np.dstack)
def _dstack(tup: Any) -> Node:
    return concatenated(_at_least(np.atleast_3d, tup), 2)


@traces(np.column_stack)
def _column_stack(tup: Any) -> Node:
    nodes = map(as_node, _sequence(tup))
    columns = [reshaped(n, (n.type.size, 1)) if len(n.shape) < 2 else n for n in nodes]
    return concatenated(columns, 1)


def _at_least(function: Any, arrays: Any) -> list[Node]:
    return [NUMPY[function].trace(a) for a in _sequence(arrays)]


@traces(np.append)
def _append(arr: Any, values: Any, axis: Any = None) -> Node:
    first, second = as_node(arr), as_node(values)
    if axis is None:
        return concatenated([flat(first), flat(second)])
    return concatenated([first, second], axis)


def flat(node: Node) -> Node:
    return reshaped(node, (node.type.size,))


@traces(np.block)
def _block(arrays: Any) -> Node:
    depth = _depth(arrays)
    leaves = list(_leaves(arrays))
    rank = max([depth, *(len(as_node(leaf).shape) for leaf in leaves)])
    return _blocked(arrays, depth, rank)


def _depth(arrays: Any) -> int:
    return 1 + max(map(_depth, arrays)) if isinstance(arrays, list) else 0


def _leaves(arrays: Any) -> Any:
    if isinstance(arrays, list):
        for a in arrays:
            yield from _leaves(a)
    else:
        yield arrays


def _blocked(arrays: Any, depth: int, rank: int) -> Node:
    if not isinstance(arrays, list):
        node = as_node(arrays)
        return expanded(node, *range(rank - len(node.shape)))
    return concatenated([_blocked(a, depth - 1, rank) for a in arrays], -depth)


# ------------------------------------------------------------------------------------------ apart


@traces(np.split)
def _split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Node]:
    node, where = as_node(ary), integer(axis)
    if not is_sequence(indices_or_sections):
        parts = integer(indices_or_sections)
        if node.shape[where] % parts:
            raise ValueError("array split does not result in an equal division")
    return _array_split(node, indices_or_sections, where)


@traces(np.array_split)
def _array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Node]:
    node, where = as_node(ary), integer(axis)
    n = node.shape[where]
    if is_sequence(indices_or_sections):
        inner = list(integers(indices_or_sections))
    else:
        parts = integer(indices_or_sections)
        if parts <= 0:
            raise ValueError("number sections must be larger than 0.")
        sizes = [n // parts + (k < n % parts) for k in range(parts)]
        inner = [sum(sizes[:k]) for k in range(1, parts)]
    return [sliced(node, where, a, b) for a, b in zip([0, *inner], [*inner, n], strict=True)]


def is_sequence(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray) and np.ndim(value) > 0


@traces(np.hsplit)
def _hsplit(ary: Any, indices_or_sections: Any) -> list[Node]:
    rank = len(as_node(ary).shape)
    if rank == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return _split(ary, indices_or_sections, 1 if rank > 1 else 0)


@traces(np.vsplit)
def _vsplit(ary: Any, indices_or_sections: Any) -> list[Node]:
    if len(as_node(ary).shape) < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return _split(ary, indices_or_sections, 0)


@traces(np.dsplit)
def _dsplit(ary: Any, indices_or_sections: Any) -> list[Node]:
    if len(as_node(ary).shape) < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return _split(ary, indices_or_sections, 2)


if hasattr(np, "unstack"):

    @traces(np.unstack)
    def _unstack(x: Any, axis: Any = 0) -> tuple[Node, ...]:
        node = as_node(x)
        if not node.shape:
            raise ValueError("Input array must be at least 1-d.")
        where = normal_axis(axis, len(node.shape))
        return tuple(index(node, (*[slice(None)] * where, k)) for k in range(node.shape[where]))
