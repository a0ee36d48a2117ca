"""`np.gradient` and `np.trapezoid`: differences of neighbours along an axis, in NumPy's own steps.

Written out at once in slices and elementwise operators.  The steps are those of NumPy's
`_function_base_impl.py`, so that every rounding is the same.  Knows nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nbcomp.graph.ir import Node
from nbcomp.graph.numpy_function import traces
from nbcomp.ops.move import sliced
from nbcomp.ops.operand import as_node, cast, holds_node, normal_axis, traced
from nbcomp.types import FLOAT64


@traces(np.trapezoid)
def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Node:
    node = as_node(y)
    where = normal_axis(axis, len(node.shape))
    width: Any = dx
    if x is not None:
        points = as_node(x)
        width = traced(np.diff, points, axis=-1 if len(points.shape) == 1 else where)
        if len(points.shape) == 1:
            width = traced(np.reshape, width, (-1, *(1,) * (len(node.shape) - 1 - where)))
    upper, lower = sliced(node, where, 1, None), sliced(node, where, None, -1)
    area = traced(np.multiply, width, traced(np.add, upper, lower))
    return traced(np.sum, traced(np.divide, area, 2.0), where)


# --------------------------------------------------------------------------------------- gradient


@traces(np.gradient)
def _gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    node = as_node(f)
    if node.type.dtype.kind in "iu":
        node = cast(node, FLOAT64)
    rank = len(node.shape)
    whole: Any = range(rank) if axis is None else axis
    axes = np.lib.array_utils.normalize_axis_tuple(whole, rank)
    steps = _steps(node, axes, varargs)
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    if any(node.shape[k] < edge_order + 1 for k in axes):
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, "
            "at least (edge_order + 1) elements are required."
        )
    parts = [_slope(node, k, step, edge_order) for k, step in zip(axes, steps, strict=True)]
    return parts[0] if len(parts) == 1 else tuple(parts)


def _steps(node: Node, axes: tuple[int, ...], given: tuple[Any, ...]) -> list[Any]:
    """How far apart neighbours are along each axis: a number, or the distances between them."""
    ranks = [len(s.shape) if isinstance(s, Node) else np.ndim(s) for s in given]
    if not given or (len(given) == 1 and ranks == [0]):
        return list(given or (1.0,)) * len(axes)
    if len(given) != len(axes):
        raise TypeError("invalid number of arguments")
    steps = []
    for k, places, rank in zip(axes, given, ranks, strict=True):
        if rank > 1:
            raise ValueError("distances must be either scalars or 1d")
        steps.append(places if rank == 0 else _distances(places, node.shape[k]))
    return steps


def _distances(places: Any, length: int) -> Any:
    """The distances between these places; a number where it is known that they are equal."""
    points = as_node(places)
    if points.shape[0] != length:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    if points.type.dtype.kind in "iu":
        points = cast(points, FLOAT64)
    if holds_node(places):
        return traced(np.diff, points)
    between = np.diff(np.asarray(places, points.type.dtype))
    return between[0] if between.size and (between == between[0]).all() else as_node(between)


def _slope(node: Node, axis: int, step: Any, edge_order: int) -> Node:
    """Central differences inside, one-sided ones at the ends."""
    if not isinstance(step, Node) or not step.shape:
        return _even(node, axis, step, edge_order)
    if not step.shape[0]:
        return _even(node, axis, traced(np.sum, step), edge_order)
    first = traced(np.take, step, 0)
    same = traced(np.all, traced(np.equal, step, first))
    parts = _even(node, axis, first, edge_order), _uneven(node, axis, step, edge_order)
    return traced(np.where, same, *parts)  # NumPy looks, too


def _even(node: Node, axis: int, step: Any, edge_order: int) -> Node:
    """The slope where neighbours are equally far apart."""

    def part(first: Any, stop: Any) -> Node:
        return sliced(node, axis, first, stop)

    inner = _quotient(node, part(2, None), part(None, -2), _times(2.0, step))
    if edge_order == 1:
        left = _quotient(node, part(1, 2), part(0, 1), step)
        right = _quotient(node, part(-1, None), part(-2, -1), step)
    else:
        by = [traced(np.divide, k, step) for k in (-1.5, 2.0, -0.5, 0.5, -2.0, 1.5)]
        left = _sum(node, by[:3], [part(k, k + 1) for k in range(3)])
        right = _sum(node, by[3:], [part(-3, -2), part(-2, -1), part(-1, None)])
    return traced(np.concatenate, [left, inner, right], axis)


def _uneven(node: Node, axis: int, steps: Node, edge_order: int) -> Node:
    """The slope where neighbours are `steps` apart: weights exact for parabolas."""

    def part(first: Any, stop: Any) -> Node:
        return sliced(node, axis, first, stop)

    def along(weights: Node) -> Node:
        return traced(np.reshape, weights, (-1, *(1,) * (len(node.shape) - 1 - axis)))

    before, after = sliced(steps, 0, None, -1), sliced(steps, 0, 1, None)
    three = [part(None, -2), part(1, -1), part(2, None)]
    inner = _sum(node, [along(w) for w in _weights(before, after, 0)], three)
    if edge_order == 1:
        left = _quotient(node, part(1, 2), part(0, 1), along(sliced(steps, 0, 0, 1)))
        right = _quotient(node, part(-1, None), part(-2, -1), along(sliced(steps, 0, -1, None)))
    else:
        head, tail = (
            [part(k, k + 1) for k in range(3)],
            [part(-3, -2), part(-2, -1), part(-1, None)],
        )
        begin = _weights(sliced(steps, 0, 0, 1), sliced(steps, 0, 1, 2), -1)
        end = _weights(sliced(steps, 0, -2, -1), sliced(steps, 0, -1, None), 1)
        left = _sum(node, [along(w) for w in begin], head)
        right = _sum(node, [along(w) for w in end], tail)
    return traced(np.concatenate, [left, inner, right], axis)


def _weights(one: Node, two: Node, edge: int) -> list[Node]:
    """Of three neighbours, `one` and `two` apart, for the slope at the left (-1), in the middle (0)
    or at the right (1) of them."""
    both, product = traced(np.add, one, two), traced(np.multiply, one, two)
    low, high = traced(np.multiply, one, both), traced(np.multiply, two, both)
    if edge < 0:
        top = traced(np.add, _times(2.0, one), two)
        return [_minus(top, low), traced(np.divide, both, product), _minus(one, high)]
    if edge > 0:
        top = traced(np.add, _times(2.0, two), one)
        return [traced(np.divide, two, low), _minus(both, product), traced(np.divide, top, high)]
    middle = traced(np.divide, traced(np.subtract, two, one), product)
    return [_minus(two, low), middle, traced(np.divide, one, high)]


def _times(factor: float, step: Any) -> Any:
    """factor · step, of a number that is known or of a node."""
    return traced(np.multiply, factor, step) if isinstance(step, Node) else factor * step


def _quotient(node: Node, upper: Node, lower: Node, width: Any) -> Node:
    """(upper - lower) / width, in the dtype of the array."""
    return cast(traced(np.divide, traced(np.subtract, upper, lower), width), node.type.dtype)


def _minus(top: Node, bottom: Node) -> Node:
    """-top / bottom."""
    return traced(np.divide, traced(np.negative, top), bottom)


def _sum(node: Node, weights: list[Node], parts: list[Node]) -> Node:
    """The weighted sum, in the dtype of the array."""
    a, b, c = (traced(np.multiply, w, p) for w, p in zip(weights, parts, strict=True))
    return cast(traced(np.add, traced(np.add, a, b), c), node.type.dtype)
