"""Indexing and slice assignment: `x[key]` and `x[key] = value` for every key NumPy takes.

Basic keys (whole numbers, slices, None, ...) become views.  What is left, integer arrays, becomes
one `Gather` or `Scatter` on named axes; a boolean mask known now becomes integer arrays, one
computed at run time can only be assigned through (`where`), because its result's shape depends on
the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.op import Constant, Indexed, Op, Sample, View, phantom
from nbcomp.ops import values
from nbcomp.ops.choose import Where
from nbcomp.ops.move import (
    BroadcastTo,
    Diagonal,
    ExpandDims,
    Reshape,
    Slice,
    Squeeze,
    Transpose,
    expanded,
    squeezed,
    transposed,
)
from nbcomp.ops.operand import as_node, broadcast_to, constant, holds_node, integer, operand
from nbcomp.ops.pieces import Assign
from nbcomp.shapes import asked
from nbcomp.sizes import Size, broadcast_shapes
from nbcomp.types import BOOL, FLOAT32, INT64, TensorType

# --------------------------------------------------------------------------- integer-array indexing


@dataclass(frozen=True)
class Gather(Indexed, name="gather"):
    """x[..., i, ...] with integer arrays i on some axes

    Operands: x and one index array per axis of `axes` (ascending).  Adjacent axes are replaced in
    place by the axes of the index arrays' broadcast shape, others move that to the front.
    """

    def infer(self, *types: TensorType) -> TensorType:
        x, *indices = types
        return TensorType(x.dtype, self._shape(x, indices))

    @property
    def first(self) -> int:
        """The first axis of the index arrays' shape."""
        return self.axes[0] if adjacent(self.axes) else 0

    def _shape(self, x: TensorType, indices: Sequence[TensorType]) -> tuple[int, ...]:
        shape = broadcast_shapes(*(t.shape for t in indices))
        rest = tuple(n for k, n in enumerate(x.shape) if k not in self.axes)
        return (*rest[: self.first], *shape, *rest[self.first :])

    def place_shape(self, x: Node, indices: Sequence[Node]) -> tuple[int, ...]:
        return self._shape(x.type, [i.type for i in indices])

    def key(self, indices: Sequence[Any]) -> tuple[Any, ...]:
        """The key, up to the last indexed axis; single places as Python's numbers, which NumPy
        takes several times as fast."""
        key: list[Any] = [slice(None)] * (self.axes[-1] + 1)
        for axis, index in zip(self.axes, indices, strict=True):
            key[axis] = index if np.ndim(index) else int(index)
        return tuple(key)

    def reference(self, *arrays: Any) -> Any:
        x, *indices = arrays
        return np.array(np.asarray(x)[self.key(indices)])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        x = values.ordinary(rng, FLOAT32, (5, 7, 3))
        for axes, shapes in _GATHERS:
            indices = (rng.integers(-3, 3, shape) for shape in shapes)
            yield Sample(cls(axes), (x, *indices))


_GATHERS: tuple[tuple[tuple[int, ...], tuple[tuple[int, ...], ...]], ...] = (
    ((0,), ((17,),)),
    ((1,), ((),)),
    ((2,), ((2, 3),)),
    ((0, 1), ((4,), ())),
    ((1, 2), ((2, 1), (3,))),
    ((0, 2), ((3,), (3,))),
    ((0, 1, 2), ((4, 1), (1, 2), ())),
    ((0,), ((0,),)),
)


@dataclass(frozen=True)
class Scatter(Indexed, name="scatter"):
    """x with x[..., i, ...] = value for integer arrays i on some axes: a new array

    Operands: x, the value (broadcast to what `Gather` would give) and the index arrays.  Where an
    index occurs twice the last value stays.
    """

    takes_out: ClassVar[bool] = True
    assigns: ClassVar[bool] = True

    @property
    def first(self) -> int:
        """As of `Gather`."""
        return Gather(self.axes).first

    def place_shape(self, x: Node, indices: Sequence[Node]) -> tuple[int, ...]:
        return Gather(self.axes).place_shape(x, indices)

    def in_loops(self, *inputs: Node) -> bool:
        """Whether the last value for a place is the same one, whatever NumPy's order is: each index
        array has one axis at most."""
        x, value, *indices = inputs
        rank = len(self.place_shape(x, indices))
        along = (sum(n != 1 for n in i.shape) for i in indices)
        same = value.type.dtype == x.type.dtype and len(value.shape) <= rank
        return same and all(n < 2 for n in along)

    def infer(self, *types: TensorType) -> TensorType:
        x, value, *indices = types
        place = Gather(self.axes).infer(x, *indices).shape
        if not fits_into(value.shape, place):
            raise ValueError(
                f"shape mismatch: value array of shape {value.shape} could not be broadcast "
                f"to indexing result of shape {place}"
            )
        return x

    def reference(self, *arrays: Any, out: Any = None) -> Any:
        x, value, *indices = arrays
        if out is None:
            out = np.array(x)
        else:
            value, *indices = (_apart(a, out) for a in (value, *indices))
            np.copyto(out, x)  # which does nothing where both are one array
        out[Gather(self.axes).key(indices)] = value
        return out

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        x = values.ordinary(rng, FLOAT32, (5, 7, 3))
        for axes, shapes in _GATHERS:
            indices = [rng.integers(-3, 3, shape) for shape in shapes]
            place = Gather(axes).reference(x, *indices).shape
            yield Sample(cls(axes), (x, values.ordinary(rng, FLOAT32, place), *indices))
            yield Sample(cls(axes), (x, np.float32(2), *indices))


def _apart(array: Any, other: Any) -> Any:
    """An array, or a copy of one that may share memory with the other."""
    return np.array(array) if np.may_share_memory(array, other) else array


def adjacent(axes: Sequence[int]) -> bool:
    """Whether ascending axes follow one another."""
    return axes[-1] - axes[0] == len(axes) - 1


def fits_into(shape: tuple[int, ...], place: tuple[int, ...]) -> bool:
    """Whether a value of this shape can be assigned to a place: broadcast, leading ones ignored."""
    kept = shape[max(0, len(shape) - len(place)) :]
    leading = shape[: len(shape) - len(kept)]
    pairs = zip(reversed(kept), reversed(place), strict=False)
    return all(n == 1 for n in leading) and all(n in (1, m) for n, m in pairs)


# ------------------------------------------------------------------------------------------- keys


@dataclass
class Key:
    """A key taken apart: the views it begins with, then index arrays on axes of what they give.

    front: the axes of the index arrays' shape come first in the result though they are adjacent.
    """

    views: list[Op] = field(default_factory=list)
    axes: list[int] = field(default_factory=list)
    indices: list[Node] = field(default_factory=list)
    front: bool = False


def basic_index_ops(key: Any, t: TensorType) -> list[View] | None:
    """The views that `x[key]` is, for an x of this type; None if the key holds arrays.

    Raises the IndexError NumPy raises.
    """
    items = _items(key)
    if any(map(_is_advanced, items)):
        return None
    asked(phantom(t), items)[tuple(items)]
    return _views(items, t.shape)


def parse(key: Any, node: Node) -> Key:
    """The key taken apart.  Raises NumPy's IndexError, `Unsupported` for a mask read at run
    time.
    """
    items = [_index_array(i) if _is_advanced(i) else i for i in _items(key)]
    if not any(isinstance(i, Node) for i in items):
        asked(phantom(node.type), items)[tuple(items)]
        return Key(list(_views(items, node.shape)))
    items = _without_masks(items, key, node)
    _complain_if_wrong(items, key, node)
    plain = [slice(None) if _counts(i) else i for i in items]
    parsed = Key(list(_views(plain, node.shape)))
    for place, item in enumerate(_spelled_out(items, len(node.shape))):
        if _counts(item):
            parsed.axes.append(place)
            parsed.indices.append(item if isinstance(item, Node) else constant(item, INT64))
    _check_bounds(parsed, key, node)
    parsed.front = _is_split(items) and adjacent(parsed.axes)
    return parsed


def _items(key: Any) -> list[Any]:
    """The entries of a key; 0-d integers are plain ones."""
    return [_plain(i) for i in (key if isinstance(key, tuple) else (key,))]


def _plain(item: Any) -> Any:
    if isinstance(item, np.integer):
        return int(item)
    if isinstance(item, np.ndarray) and item.ndim == 0 and item.dtype.kind in "iu":
        return int(item)
    if isinstance(item, slice):
        parts = (item.start, item.stop, item.step)
        return slice(*(None if p is None else integer(p, "a slice") for p in parts))
    return item


def _is_advanced(item: Any) -> bool:
    return isinstance(item, Node | np.ndarray | list | tuple | bool | np.bool_)


def _counts(item: Any) -> bool:
    """Whether an entry is an index array, as whole numbers are beside index arrays."""
    return isinstance(item, Node | int | Size)


def _index_array(item: Any) -> Node:
    """An entry as a node of integers or truth values."""
    if isinstance(item, list | tuple) and not holds_node(item):
        array = np.asarray(item)
        item = array.astype(np.intp) if array.size == 0 else array
    if isinstance(item, np.ndarray) and item.dtype.kind not in "biu":
        np.empty(0)[item]
    node = as_node(item)
    if node.type.dtype.kind not in "biu":
        np.empty(0)[np.ones(1, node.type.dtype)]
    return node


def _without_masks(items: list[Any], key: Any, node: Node) -> list[Any]:
    """Masks that are known now as the integer arrays of their true places."""
    result: list[Any] = []
    for item in items:
        if not isinstance(item, Node) or item.type.dtype != BOOL:
            result.append(item)
        elif not isinstance(item.op, Constant):
            raise Unsupported(
                "x[mask] has as many elements as the mask is true, which is known only at run time",
                hint="keep the shape and choose: np.where(mask, x, 0), or x[mask] = value",
            )
        elif not item.shape:
            raise Unsupported("indexing with a single True or False", hint="use x[None] or x[:0]")
        else:
            _stand_in_of(node)[_stand_in_key(items)]  # the mask's shape must fit
            result += [constant(i) for i in np.nonzero(item.op.value)]
    return result


def _stand_in_of(node: Node) -> Any:
    return phantom(node.type)


def _stand_in_key(items: Sequence[Any]) -> Any:
    """The key with zeros for what is computed at run time."""
    return tuple(
        (
            i.op.value
            if isinstance(i.op, Constant)
            else np.broadcast_to(np.zeros((), i.type.dtype), i.shape)
        )
        if isinstance(i, Node)
        else i
        for i in items
    )


def _complain_if_wrong(items: list[Any], key: Any, node: Node) -> None:
    """Let NumPy raise for too many indices or shapes that do not broadcast."""
    used = sum(i is not None and i is not Ellipsis for i in items)
    shapes = [i.shape for i in items if isinstance(i, Node)]
    try:
        broadcast_shapes(*shapes)
    except ValueError:
        used = len(node.shape) + 1
    if used > len(node.shape) or sum(i is Ellipsis for i in items) > 1:
        _stand_in_of(node)[_stand_in_key(items)]
        raise IndexError("shape mismatch: indexing arrays could not be broadcast together")


def _check_bounds(parsed: Key, key: Any, node: Node) -> None:
    """Raise NumPy's IndexError for a known index that is out of bounds."""
    shape = node.type
    for view in parsed.views:
        shape = view.infer(shape)
    for axis, index in zip(parsed.axes, parsed.indices, strict=True):
        if isinstance(index.op, Constant) and index.type.size:
            low, high, n = index.op.value.min(), index.op.value.max(), shape.shape[axis]
            if low < -n or high >= n:
                worst = int(high if high >= n else low)
                raise IndexError(f"index {worst} is out of bounds for axis {axis} with size {n}")


def _is_split(items: list[Any]) -> bool:
    """Whether something, be it an empty Ellipsis, stands between the index arrays."""
    places = [k for k, i in enumerate(items) if _counts(i)]
    return not adjacent(places)


def _spelled_out(items: list[Any], rank: int) -> list[Any]:
    """The entries with a full slice for every axis they do not mention."""
    used = sum(i is not None and i is not Ellipsis for i in items)
    rest = [slice(None)] * (rank - used)
    if not any(i is Ellipsis for i in items):
        return [*items, *rest]
    at = next(k for k, i in enumerate(items) if i is Ellipsis)
    return [*items[:at], *rest, *items[at + 1 :]]


def _views(items: list[Any], shape: tuple[int, ...]) -> list[View]:
    """Views for whole numbers, slices, None and Ellipsis."""
    cuts: list[slice] = []
    drop, new = [], []
    place = 0
    for item in _spelled_out(items, len(shape)):
        if item is None:
            new.append(place)
            place += 1
        elif isinstance(item, slice):
            cuts.append(item)
            place += 1
        else:
            at = item % shape[len(cuts)]
            drop.append(len(cuts))
            cuts.append(slice(at, at + 1))
    cut = Slice.of(cuts, shape)
    whole = cut.size == shape and all(step == 1 for step in cut.step)
    views: list[View] = [] if whole else [cut]
    views += [Squeeze(tuple(drop))] if drop else []
    return views + ([ExpandDims(tuple(new))] if new else [])


# ------------------------------------------------------------------------------ reading and writing


def index(node: Node, key: Any) -> Node:
    """x[key].  Raises what NumPy raises, and `Unsupported` for a mask computed at run time."""
    parsed = parse(key, node)
    for view in parsed.views:
        node = apply(view, node)
    if not parsed.axes:
        return node
    result = apply(Gather(tuple(parsed.axes)), node, *parsed.indices)
    return transposed(result, _to_front(parsed, result.type)) if parsed.front else result


def _to_front(parsed: Key, result: TensorType) -> list[int]:
    """The order of axes that brings those of the index arrays to the front."""
    rank = len(broadcast_shapes(*(i.shape for i in parsed.indices)))
    moved = list(range(parsed.axes[0], parsed.axes[0] + rank))
    return moved + [k for k in range(len(result.shape)) if k not in moved]


def assign(node: Node, key: Any, value: Any) -> Node:
    """The new value of x after x[key] = value.  Raises what NumPy raises."""
    truth = type(value) is int and node.type.dtype == BOOL  # of an int of any size
    new = operand(bool(value) if truth else value, node.type.dtype)
    mask = _run_time_mask(key)
    if mask is not None:
        return _assign_where(node, mask, new)
    parsed = parse(key, node)
    first = parsed.views[0] if parsed.views else None
    if isinstance(first, Slice) and not new.shape and not parsed.axes:
        return put(first, node, new)
    levels = [node]
    for view in parsed.views:
        levels.append(apply(view, levels[-1]))
    place = levels[-1]
    if parsed.axes:
        written = _scatter(place, parsed, new)
    else:
        written = broadcast_to(_without_leading(new, place.shape), place.shape)
    for view, base in zip(reversed(parsed.views), reversed(levels[:-1]), strict=True):
        written = put(view, base, written)
    return written


def _scatter(place: Node, parsed: Key, value: Node) -> Node:
    axes = tuple(parsed.axes)
    if parsed.front:  # the value is meant for axes in another order
        target = Gather(axes).infer(place.type, *(i.type for i in parsed.indices))
        order = _to_front(parsed, target)
        shape = tuple(target.shape[k] for k in order)
        value = broadcast_to(_without_leading(value, shape), shape)
        value = transposed(value, [order.index(k) for k in range(len(order))])
    return apply(Scatter(axes), place, value, *parsed.indices)


def _without_leading(value: Node, shape: tuple[int, ...]) -> Node:
    """The value without leading axes of length 1 that the place does not have."""
    if not fits_into(value.shape, shape):
        raise ValueError(
            f"could not broadcast input array from shape {_spelt(value.shape)} "
            f"into shape {_spelt(shape)}"
        )
    return squeezed(value, *range(len(value.shape) - len(shape)))


def _spelt(shape: tuple[int, ...]) -> str:
    return "(" + ",".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def _run_time_mask(key: Any) -> Node | None:
    """The mask, if the key is one that is computed at run time."""
    items = [i for i in (key if isinstance(key, tuple) else (key,)) if i is not Ellipsis]
    if len(items) != 1 or not isinstance(items[0], Node) or items[0].type.dtype != BOOL:
        return None
    if isinstance(key, tuple) and key[0] is Ellipsis:
        return None
    return None if isinstance(items[0].op, Constant) else items[0]


def _assign_where(node: Node, mask: Node, value: Node) -> Node:
    """x[mask] = value for a mask of x's leading axes: np.where."""
    rank = len(mask.shape)
    rest = node.shape[rank:]
    if mask.shape != node.shape[:rank]:
        phantom(node.type)[np.zeros(mask.shape, bool)]  # raises, unless the mask is empty
        if fits_into(value.shape, (0, *rest)):
            return node
    if not fits_into(value.shape, rest):
        raise Unsupported(
            "x[mask] = values takes one value for each true place, known only at run time",
            hint="write it in full: x = np.where(mask, value of x's shape, x)",
        )
    value = squeezed(value, *range(len(value.shape) - len(rest)))
    return apply(Where(), expanded(mask, *range(rank, len(node.shape))), value, node)


def put(view: Op, base: Node, value: Node) -> Node:
    """The new value of a base array after `value` was written to this view of it.

    Raises ValueError for views NumPy does not let one write to.
    """
    match view:
        case Slice():
            return apply(Assign(view.start, view.step, view.size), base, value)
        case Transpose():
            return transposed(value, [view.axes.index(k) for k in range(len(view.axes))])
        case ExpandDims():
            return squeezed(value, *view.axes)
        case Squeeze():
            return expanded(value, *view.axes)
        case Reshape():
            return apply(Reshape(base.shape), value)
        case Diagonal() | BroadcastTo():
            raise ValueError("assignment destination is read-only")
    raise Unsupported(f"writing through {view.name} is not compiled")
