"""NumPy's functions that repeat, move and frame the elements of an array: tile, roll, pad, tril,
...

All are written in views and pieces; differences of neighbours are here too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import NUMPY, UNSET, traces
from nbcomp.graph.op import Constant
from nbcomp.ops.arithmetic import Subtract
from nbcomp.ops.choose import Where
from nbcomp.ops.create import DiagonalMask, Triangle
from nbcomp.ops.index import index
from nbcomp.ops.join import concatenated, flat, is_sequence, joined
from nbcomp.ops.logic import NotEqual
from nbcomp.ops.move import expanded, reshaped, sliced
from nbcomp.ops.operand import (
    as_node,
    at_least_1d,
    broadcast_to,
    cast,
    constant,
    converted,
    elements,
    holds_node,
    integer,
    integers,
    normal_axis,
    number,
)
from nbcomp.ops.pieces import Margin, Pad, Roll, Run
from nbcomp.sizes import broadcast_shapes, is_open
from nbcomp.types import BOOL

# ------------------------------------------------------------------------------- repeating, moving


@traces(np.tile)
def _tile(A: Any, reps: Any) -> Node:
    node, times = as_node(A), integers(reps)
    rank = max(len(times), len(node.shape))
    times = (1,) * (rank - len(times)) + times
    shape = (1,) * (rank - len(node.shape)) + node.shape
    spread = reshaped(node, [n for size in shape for n in (1, size)])
    full = broadcast_to(spread, tuple(n for pair in zip(times, shape, strict=True) for n in pair))
    return reshaped(full, [t * n for t, n in zip(times, shape, strict=True)])


@traces(np.repeat)
def _repeat(a: Any, repeats: Any, axis: Any = None) -> Node:
    node = at_least_1d(a)
    if axis is None:
        node, axis = flat(node), 0
    where = normal_axis(axis, len(node.shape))
    counts = repeats.op.value if _is_known(repeats) else repeats
    if isinstance(counts, Node):
        integer(counts, "the number of repeats")
    if np.ndim(counts) and np.size(counts) != 1:
        places = np.repeat(np.arange(node.shape[where]), counts)
        return index(node, (*[slice(None)] * where, constant(places)))
    times = int(np.asarray(counts).reshape(()))
    if times < 0:
        raise ValueError("repeats may not contain negative values.")
    spread = expanded(node, where + 1)
    shape = list(spread.shape)
    shape[where + 1] = times
    result = list(node.shape)
    result[where] *= times
    return reshaped(broadcast_to(spread, tuple(shape)), result)


def _is_known(value: Any) -> bool:
    return isinstance(value, Node) and isinstance(value.op, Constant)


@traces(np.roll)
def _roll(a: Any, shift: Any, axis: Any = None) -> Node:
    node = as_node(a)
    if axis is None:
        return reshaped(_roll(flat(node), shift, 0), node.shape)
    axes, by = integers(axis), integers(shift)
    if is_open(by) and len(by) == len(axes) == 1:
        return _rolled(node, by[0], normal_axis(axes[0], len(node.shape)))
    total = [0] * len(node.shape)
    for s, k in np.broadcast(by, axes):
        where = normal_axis(k, len(node.shape))
        total[where] += int(s)
    shifts = tuple(s % n if n else 0 for s, n in zip(total, node.shape, strict=True))
    return apply(Roll(shifts), node) if any(shifts) else node


def _rolled(node: Node, by: Any, axis: int) -> Node:
    """A roll along an axis whose distance is open: its two parts, the last of them first."""
    length = node.shape[axis]
    if not length or not (by := by % length):
        return node
    before = (slice(None),) * axis
    parts = [index(node, (*before, slice(length - by, None)))]
    parts.append(index(node, (*before, slice(0, length - by))))
    return concatenated(parts, axis)


@traces(np.fft.fftshift)
def _fftshift(x: Any, axes: Any = None) -> Node:
    return _half_turn(x, axes, 1)


@traces(np.fft.ifftshift)
def _ifftshift(x: Any, axes: Any = None) -> Node:
    return _half_turn(x, axes, -1)


def _half_turn(x: Any, axes: Any, sign: int) -> Node:
    node = as_node(x)
    which = tuple(range(len(node.shape))) if axes is None else integers(axes)
    return _roll(node, tuple(sign * (node.shape[k] // 2) for k in which), which)


@traces(np.diff)
def _diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = None, append: Any = None) -> Node:
    node, times = as_node(a), integer(n)
    if times == 0:
        return node
    if times < 0 or not node.shape:
        np.diff(np.empty(node.shape), times)
    where = normal_axis(axis, len(node.shape))
    ends = (_end(prepend, node, where), [node], _end(append, node, where))
    parts = [part for end in ends for part in end]
    if len(parts) > 1:
        node = concatenated(parts, where)
    step = NotEqual if node.type.dtype == BOOL else Subtract
    for _ in range(times):
        node = apply(step(), sliced(node, where, 1, None), sliced(node, where, None, -1))
    return node


def _end(value: Any, node: Node, axis: int) -> list[Node]:
    """What np.diff puts before or after its array."""
    if value is None or value is UNSET:
        return []
    part = as_node(value)
    if not part.shape:
        shape = list(node.shape)
        shape[axis] = 1
        part = broadcast_to(part, tuple(shape))
    return [part]


@traces(np.delete)
def _delete(arr: Any, obj: Any, axis: Any = None) -> Node:
    node = as_node(arr)
    if axis is None:
        node, axis = flat(node), 0
    where = normal_axis(axis, len(node.shape))
    if holds_node([obj]):
        raise Unsupported(
            "np.delete at places computed at run time gives a shape that depends on the data",
            hint="use np.where with a mask",
        )
    return picked(node, where, np.delete(np.arange(node.shape[where]), obj))


@traces(np.insert)
def _insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Node:
    node = as_node(arr)
    new = elements(values, node.type.dtype)
    if axis is None:
        node = flat(node)
    elif len(node.shape) != 1:
        raise Unsupported("np.insert along an axis", hint="np.concatenate([x[:i], value, x[i:]])")
    if holds_node([obj]):
        raise Unsupported("np.insert at places computed at run time is not compiled")
    n, count = node.shape[0], new.type.size
    places = np.insert(np.arange(n), obj, n if count == 1 else n + np.arange(count))
    return picked(joined([node, flat(new)], 0), 0, places)


@traces(np.ediff1d)
def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Node:
    line = flat(as_node(ary))
    inner = apply(Subtract(), sliced(line, 0, 1, None), sliced(line, 0, None, -1))
    parts = [] if to_begin is None else [flat(as_node(to_begin))]
    parts += [inner] + ([] if to_end is None else [flat(as_node(to_end))])
    for part in parts:
        if not np.can_cast(part.type.dtype, line.type.dtype, "same_kind"):
            raise TypeError("dtype of `to_end` must be compatible with input `ary`")
    return joined([cast(p, inner.type.dtype) for p in parts], 0)


# ------------------------------------------------------------------------------------------ margins

BOXES = 3  # for each axis: the array and a margin on either side


@traces(np.pad)
def _pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Node:
    node = as_node(array)
    if not isinstance(mode, str):
        raise Unsupported("np.pad with a function as its mode", hint="use one of the named modes")
    widths = _widths(pad_width, node, mode, kwargs)
    if mode in ("constant", "empty"):
        return _constant_margin(node, widths, kwargs.get("constant_values", 0))
    if mode not in ("edge", "reflect", "symmetric", "wrap") or "reflect_type" in kwargs:
        raise Unsupported(
            f"np.pad with mode={mode!r} is not compiled", hint="use a constant or edge"
        )
    places = [np.pad(np.arange(n), w, mode=mode) for n, w in zip(node.shape, widths, strict=True)]  # type: ignore[call-overload]
    every = tuple(tuple(_run(p[a:b]) for a, b in _runs(p)) for p in places)
    if math.prod(map(len, every)) <= BOXES ** len(every) and node.type.size:
        return apply(Margin(every), node)
    for axis, along in enumerate(places):
        node = picked(node, axis, along)
    return node


def _widths(pad_width: Any, node: Node, mode: str, kwargs: Any) -> list[tuple[int, int]]:
    """(before, after) for each axis; NumPy checks the arguments on an array of one element."""
    rank = len(node.shape)
    one = np.zeros((1,) * rank, node.type.dtype)
    known = {k: v for k, v in kwargs.items() if not holds_node(v)}
    np.pad(one, _minimal(pad_width), mode=mode, **known)  # type: ignore[call-overload]
    if isinstance(pad_width, dict):
        full = [(0, 0)] * rank
        for axis, w in pad_width.items():
            full[axis] = (w, w) if not is_sequence(w) else tuple(w)
        return [(int(a), int(b)) for a, b in full]
    return [(int(a), int(b)) for a, b in np.broadcast_to(np.asarray(pad_width), (rank, 2))]


def _minimal(pad_width: Any) -> Any:
    """Widths whose mistakes are the same, but small."""
    if isinstance(pad_width, dict):
        return {k: _minimal(v) for k, v in pad_width.items()}
    array = np.asarray(pad_width)
    return np.minimum(array, 1).tolist() if array.dtype.kind in "iu" else pad_width


def _constant_margin(node: Node, widths: list[tuple[int, int]], fill: Any) -> Node:
    before, after = tuple(b for b, _ in widths), tuple(a for _, a in widths)
    if not isinstance(fill, list | tuple | np.ndarray):
        return apply(Pad(before, after), node, converted(fill, node.type.dtype))
    table = np.broadcast_to(np.asarray(fill), (len(widths), 2))
    for axis, (b, a) in enumerate(widths):
        parts = []
        for size, value in ((b, table[axis, 0]), (a, table[axis, 1])):
            shape = (*node.shape[:axis], size, *node.shape[axis + 1 :])
            parts.append(broadcast_to(converted(value, node.type.dtype), shape))
        node = joined([parts[0], node, parts[1]], axis)
    return node


def picked(node: Node, axis: int, places: Any) -> Node:
    """The elements at these places of an axis, as slices one after another."""
    parts = [_part(node, axis, _run(places[a:b])) for a, b in _runs(places)]
    return joined(parts, axis) if parts else sliced(node, axis, 0, 0)


def _runs(places: Any) -> Iterator[tuple[int, int]]:
    """Where runs of places begin and end: they go up, down or stand still by one."""
    start = 0
    while start < len(places):
        stop = start + 1
        if stop < len(places):
            step = places[stop] - places[start]
            while stop < len(places) and places[stop] - places[stop - 1] == step and abs(step) <= 1:
                stop += 1
        yield start, stop
        start = stop


def _run(places: Any) -> Run:
    """A run of places as its first, its step and how many there are."""
    step = int(places[1] - places[0]) if len(places) > 1 else 1
    return int(places[0]), step, len(places)


def _part(node: Node, axis: int, run: Run) -> Node:
    """The elements at a run of places."""
    first, step, size = run
    if step == 0:
        shape = (*node.shape[:axis], size, *node.shape[axis + 1 :])
        return broadcast_to(sliced(node, axis, first, first + 1), shape)
    if step > 0:
        return sliced(node, axis, first, first + size)
    last = first - size + 1
    return sliced(node, axis, first, last - 1 if last else None, -1)


# -------------------------------------------------------------------------------- triangles, grids


@traces(np.tril)
def _tril(m: Any, k: Any = 0) -> Node:
    node = _matrix(np.tril, m)
    mask = apply(Triangle(node.shape[-2], node.shape[-1], integer(k)))
    return apply(Where(), mask, node, number(0, node.type.dtype))


@traces(np.triu)
def _triu(m: Any, k: Any = 0) -> Node:
    node = _matrix(np.triu, m)
    mask = apply(Triangle(node.shape[-2], node.shape[-1], integer(k) - 1))
    return apply(Where(), mask, number(0, node.type.dtype), node)


def _matrix(function: Any, m: Any) -> Node:
    """An operand of at least one axis; a vector stands for equal rows."""
    node = as_node(m)
    if not node.shape:
        function(np.empty(()))
    return broadcast_to(node, node.shape * 2) if len(node.shape) == 1 else node


@traces(np.diag)
def _diag(v: Any, k: Any = 0) -> Node:
    node, offset = as_node(v), integer(k)
    if len(node.shape) != 1:
        if len(node.shape) != 2:
            raise ValueError("Input must be 1- or 2-d.")
        diagonal: Node = NUMPY[np.diagonal].trace(node, offset)
        return diagonal
    return _diagflat(node, offset)


@traces(np.diagflat)
def _diagflat(v: Any, k: Any = 0) -> Node:
    line, offset = flat(as_node(v)), integer(k)
    size = line.shape[0] + abs(offset)
    padded = apply(Pad((max(offset, 0),), (max(-offset, 0),)), line, number(0, line.type.dtype))
    mask = apply(DiagonalMask(size, size, offset))
    return apply(Where(), mask, padded, number(0, line.type.dtype))


@traces(np.meshgrid)
def _meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    rank = len(xi)
    order = list(range(rank))
    if indexing == "xy" and rank > 1:
        order[:2] = [1, 0]
    grids = [
        expanded(flat(as_node(x)), *(k for k in range(rank) if k != at))
        for x, at in zip(xi, order, strict=True)
    ]
    if not sparse:
        shape = broadcast_shapes(*(g.shape for g in grids))
        grids = [broadcast_to(g, shape) for g in grids]
    return tuple(grids)


def _known_mask(node: Node) -> Any:
    if isinstance(node.op, Constant):
        return node.op.value
    raise Unsupported(
        "np.ix_ of a mask computed at run time has a shape that depends on the data",
        hint="np.where(mask, x, 0) keeps the shape",
    )


@traces(np.ix_)
def _ix(*args: Any) -> tuple[Node, ...]:
    nodes = list(map(as_node, args))
    for k, node in enumerate(nodes):
        if len(node.shape) != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if node.type.dtype == BOOL:
            nodes[k] = as_node(np.nonzero(_known_mask(node))[0])
    rank = len(nodes)
    grids = [expanded(n, *(j for j in range(rank) if j != k)) for k, n in enumerate(nodes)]
    return tuple(grids)


@traces(np.kron)
def _kron(a: Any, b: Any) -> Node:
    left, right = as_node(a), as_node(b)
    rank = max(len(left.shape), len(right.shape))
    left = expanded(left, *range(rank - len(left.shape)))
    right = expanded(right, *range(rank - len(right.shape)))
    spread = expanded(left, *range(1, 2 * rank, 2))
    inner = expanded(right, *range(0, 2 * rank, 2))
    product: Node = NUMPY[np.multiply].trace(spread, inner)
    shape = [n * m for n, m in zip(left.shape, right.shape, strict=True)]
    return reshaped(product, shape)


@traces(np.resize)
def _resize(a: Any, new_shape: Any) -> Node:
    line, shape = flat(as_node(a)), integers(new_shape)
    size = math.prod(shape)
    if any(n < 0 for n in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    if not line.type.size:
        return broadcast_to(number(0, line.type.dtype), shape)
    times = -(-size // line.type.size)
    return reshaped(sliced(_tile(line, times), 0, 0, size), shape)
