"""Choosing elements by index or by condition: take, take_along_axis, choose, select, piecewise.

Also the functions that write into an array they are given (`np.put_along_axis`, `np.add.at`, ...):
their tracers give the array's new value, and `WRITES` tells them from functions with a result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import traces
from nbcomp.graph.op import Library, Sample
from nbcomp.ops import values
from nbcomp.ops.create import DiagonalMask
from nbcomp.ops.index import Gather, Scatter, assign, index
from nbcomp.ops.join import flat
from nbcomp.ops.move import reshaped
from nbcomp.ops.operand import (
    NUMBERS,
    as_node,
    broadcast_to,
    cast,
    converted,
    elements,
    normal_axis,
    operand,
    result_type,
    traced,
)
from nbcomp.ops.ufunc import loop_dtypes
from nbcomp.sizes import broadcast_shapes
from nbcomp.types import BOOL, FLOAT32, INT64, TensorType

# ------------------------------------------------------------------------------------ by an index


@traces(np.take)
def _take(a: Any, indices: Any, axis: Any = None, mode: str = "raise") -> Node:
    node = as_node(a)
    if axis is None:
        node, axis = flat(node), 0
    where = normal_axis(axis, len(node.shape))
    if isinstance(indices, list) and not indices:
        indices = np.empty(0, np.intp)
    places = as_node(indices)
    if places.type.dtype.kind not in "biu":
        np.take(np.empty(1), np.ones(1, places.type.dtype))  # raises: not safe to cast to int64
    n = node.shape[where]
    if mode == "clip":
        places = traced(np.clip, cast(places, INT64), 0, n - 1)
    elif mode == "wrap":
        places = traced(np.remainder, cast(places, INT64), n)
    elif mode != "raise":
        np.take(np.empty(1), 0, mode=mode)  # type: ignore[call-overload]
    if places.type.dtype == BOOL:
        places = cast(places, INT64)
    return index(node, (*[slice(None)] * where, places))


@dataclass(frozen=True)
class TakeAlongAxis(Library, name="take_along_axis"):
    """x[..., i[...], ...]: along one axis by an array of indices, elsewhere in place"""

    raises: ClassVar[bool] = True

    axis: int

    def infer(self, *types: TensorType) -> TensorType:
        x, places = (list(t.shape) for t in types)
        n = places[self.axis]
        x[self.axis] = places[self.axis] = 1
        shape = list(broadcast_shapes(tuple(x), tuple(places)))
        shape[self.axis] = n
        return TensorType(types[0].dtype, tuple(shape))

    def reference(self, *arrays: Any) -> Any:
        return np.take_along_axis(arrays[0], arrays[1], self.axis)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        x = values.ordinary(rng, FLOAT32, (5, 37))
        for axis, shape in ((0, (2, 37)), (1, (5, 3)), (1, (1, 4)), (0, (0, 37))):
            yield Sample(cls(axis), (x, rng.integers(-5, 5, shape)))


@traces(np.take_along_axis)
def _take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Node:
    node, places = as_node(arr), as_node(indices)
    if axis is None:
        node, axis = flat(node), 0
    where = _along(node, places, axis)
    return apply(TakeAlongAxis(where), node, places)


def _along(node: Node, places: Node, axis: Any) -> int:
    """The axis, after the checks NumPy makes."""
    where = normal_axis(axis, len(node.shape))
    if places.type.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if len(node.shape) != len(places.shape):
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    return where


@dataclass(frozen=True)
class PutAlongAxis(Library, name="put_along_axis"):
    """x with x[..., i[...], ...] = value along one axis: a new array"""

    raises: ClassVar[bool] = True

    axis: int

    def infer(self, *types: TensorType) -> TensorType:
        return types[0]

    def reference(self, *arrays: Any) -> Any:
        x, places, value = arrays
        result = np.array(x)
        np.put_along_axis(result, places, value, self.axis)
        return result

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        x = values.ordinary(rng, FLOAT32, (5, 37))
        for axis, shape in ((0, (2, 37)), (1, (5, 3)), (1, (5, 0))):
            places = rng.integers(-5, 5, shape)
            yield Sample(cls(axis), (x, places, values.ordinary(rng, FLOAT32, shape)))
            yield Sample(cls(axis), (x, places, np.float32(1)))


# ------------------------------------------------------------------------------- by a condition


@dataclass(frozen=True)
class Choose(Library, name="choose"):
    """The element of the k-th choice where the first operand is k; other numbers raise
    ValueError
    """

    raises: ClassVar[bool] = True

    def infer(self, *types: TensorType) -> TensorType:
        dtype = np.result_type(*(t.dtype for t in types[1:]))
        return TensorType(dtype, broadcast_shapes(*(t.shape for t in types)))

    def reference(self, *arrays: Any) -> Any:
        return np.choose(arrays[0], arrays[1:])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((), (17,), (5, 1)):
            choices = [values.ordinary(rng, FLOAT32, s) for s in ((4,), (1,), (5, 4))]
            kept = choices if shape == (5, 1) else choices[1:2] * 3
            yield Sample(cls(), (rng.integers(0, 3, shape), *kept))


@traces(np.choose)
def _choose(a: Any, choices: Any, mode: str = "raise") -> Node:
    which = as_node(a)
    rows = (
        [index(choices, k) for k in range(choices.shape[0])]
        if isinstance(choices, Node)
        else list(choices)
    )
    dtype = result_type(*rows)
    nodes = [converted(r, dtype) for r in rows]
    if mode == "raise":
        return apply(Choose(), which, *nodes)
    if mode == "clip":
        which = traced(np.clip, which, 0, len(nodes) - 1)
    else:
        which = traced(np.remainder, which, len(nodes))
    result = nodes[-1]
    for k in reversed(range(len(nodes) - 1)):
        result = traced(np.where, traced(np.equal, which, k), nodes[k], result)
    return broadcast_to(result, broadcast_shapes(which.shape, *(n.shape for n in nodes)))


@traces(np.select)
def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Node:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if len(condlist) == 0:
        raise ValueError("select with an empty condition list is not possible")
    conditions = list(map(as_node, condlist))
    for k, c in enumerate(conditions):
        if c.type.dtype != BOOL:
            raise TypeError(f"invalid entry {k} in condlist: should be boolean ndarray")
    dtype = result_type(*choicelist, default)
    for choice in choicelist:
        np.copyto(
            np.empty(1, dtype), np.empty(1, as_node(choice).type.dtype)
        )  # same kind or raises
    result = converted(default, dtype)
    for condition, choice in zip(reversed(conditions), reversed(choicelist), strict=True):
        result = traced(np.where, condition, converted(choice, dtype), result)
    shape = broadcast_shapes(*(as_node(v).shape for v in (*conditions, *choicelist)))
    return broadcast_to(result, shape)


@traces(np.piecewise)
def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Node:
    if any(map(callable, funclist)):
        raise Unsupported(
            "np.piecewise calls its functions on selections whose size depends on the data",
            hint="np.select(conditions, [f(x), g(x)]), or np.where",
        )
    node = as_node(x)
    conditions = (
        [as_node(c) for c in condlist] if isinstance(condlist, list) else [as_node(condlist)]
    )
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or "
            f"{len(conditions) + 1} functions are expected"
        )
    default = funclist[len(conditions)] if len(funclist) > len(conditions) else 0
    result = broadcast_to(elements(default, node.type.dtype), node.shape)
    for condition, value in zip(conditions, funclist, strict=False):
        chosen = elements(value, node.type.dtype)
        result = traced(np.where, cast(condition, BOOL), chosen, result)
    return result


# ------------------------------------------------------------------- functions that write in place

WRITES: set[Any] = {np.copyto, np.putmask, np.put_along_axis, np.fill_diagonal, np.put, np.place}


@traces(np.copyto)
def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> Node:
    target = as_node(dst)
    small: Any = src if type(src) in NUMBERS else np.empty(1, as_node(src).type.dtype)
    rule: Any = casting
    np.copyto(np.empty(1, target.type.dtype), small, casting=rule)  # raises where it cannot be cast
    value = assign(target, ..., operand(src, target.type.dtype))
    if where is True:
        return value
    chosen = traced(np.where, cast(as_node(where), BOOL), value, target)
    return broadcast_to(chosen, target.shape)


@traces(np.putmask)
def _putmask(a: Any, mask: Any, values: Any) -> Node:
    target, condition = as_node(a), as_node(mask)
    if condition.shape != target.shape:
        raise ValueError("putmask: mask and data must be the same size")
    if type(values) not in NUMBERS and not isinstance(values, list | tuple):
        small = np.empty(1, as_node(values).type.dtype)
        np.putmask(np.empty(1, target.type.dtype), [True], small)  # raises unless it is a safe cast
    new = elements(values, target.type.dtype)
    if new.type.size != 1 and new.shape != target.shape:
        new = reshaped(traced(np.resize, new, target.shape), target.shape)
    return traced(np.where, cast(condition, BOOL), new, target)


@traces(np.place)
def _place(arr: Any, mask: Any, vals: Any) -> Node:
    target = as_node(arr)
    new = flat(elements(vals, target.type.dtype))
    if new.type.size != 1:
        raise Unsupported(
            "np.place with several values puts them at places that depend on the data",
            hint="np.where(mask, values of the array's shape, array)",
        )
    return traced(np.where, cast(as_node(mask), BOOL), new, target)


@traces(np.put_along_axis)
def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> Node:
    node, places = as_node(arr), as_node(indices)
    new = elements(values, node.type.dtype)
    if axis is None:
        line = apply(PutAlongAxis(_along(flat(node), places, 0)), flat(node), places, new)
        return reshaped(line, node.shape)
    return apply(PutAlongAxis(_along(node, places, axis)), node, places, new)


@traces(np.put)
def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> Node:
    if mode != "raise":
        raise Unsupported("mode= of np.put is not compiled", hint="clip or wrap the indices first")
    node, places = as_node(a), flat(cast(as_node(ind), INT64))
    new = flat(elements(v, node.type.dtype))
    if new.type.size != 1:
        new = traced(np.resize, new, places.shape)
    return reshaped(apply(Scatter((0,)), flat(node), new, places), node.shape)


@traces(np.fill_diagonal)
def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> Node:
    node = as_node(a)
    new = elements(val, node.type.dtype)
    if len(node.shape) != 2 or wrap or new.type.size != 1:
        if len(node.shape) < 2:
            raise ValueError("array must be at least 2-d")
        raise Unsupported("np.fill_diagonal of anything but a matrix with one number")
    mask = apply(DiagonalMask(node.shape[0], node.shape[1], 0))
    return traced(np.where, mask, reshaped(new, ()), node)


@dataclass(frozen=True)
class ScatterReduce(Library, name="scatter_reduce"):
    """x after fn.at(x, i, value): every value is combined into its place, one after another

    Operands: x, the index arrays of `axes`, and, for binary functions, the value.
    """

    raises: ClassVar[bool] = True

    fn: str
    axes: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        return types[0]

    def reference(self, *arrays: Any) -> Any:
        x, *rest = arrays
        indices, value = rest[: len(self.axes)], rest[len(self.axes) :]
        result = np.array(x)
        getattr(np, self.fn).at(result, Gather(self.axes).key(indices), *value)
        return result

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        x = values.ordinary(rng, FLOAT32, (5, 3))
        for fn in ("add", "subtract", "multiply", "maximum", "minimum"):
            places = rng.integers(-3, 3, (17,))
            yield Sample(cls(fn, (0,)), (x, places, values.ordinary(rng, FLOAT32, (17, 3))))
        yield Sample(cls("negative", (0, 1)), (x, np.array([1, 1]), np.array([0, 2])))


def _at(ufunc: np.ufunc) -> None:
    @traces(ufunc.at)
    def at(a: Any, indices: Any, *value: Any) -> Node:
        node = as_node(a)
        keys = indices if isinstance(indices, tuple) else (indices,)
        nodes = [as_node(k) for k in keys if not isinstance(k, slice) and k is not None]
        if len(nodes) != len(keys) or any(n.type.dtype.kind not in "iu" for n in nodes):
            raise Unsupported(
                f"np.{ufunc.__name__}.at with anything but integer arrays is not compiled",
                hint="use x[key] op= value, or integer arrays",
            )
        new = [_addend(ufunc, node, v) for v in value]
        ones = [np.ones((), n.type.dtype) for n in new]
        ufunc.at(np.ones(1, node.type.dtype), 0, *ones)  # raises where the dtypes do not fit
        return apply(ScatterReduce(ufunc.__name__, tuple(range(len(nodes)))), node, *nodes, *new)

    WRITES.add(ufunc.at)


def _addend(ufunc: np.ufunc, node: Node, value: Any) -> Node:
    """The value of `ufunc.at`; a Python number in the dtype of the ufunc's loop."""
    if type(value) not in NUMBERS:
        return as_node(value)
    kind = BOOL if type(value) is bool else type(value)
    return operand(value, loop_dtypes(ufunc, (node.type.dtype, kind))[1])


for _ufunc in (np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum, np.negative):
    _at(_ufunc)
