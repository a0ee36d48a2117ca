"""Matrix products: `matmul` as one operator, and the NumPy functions that are made of it.

dot, inner, outer, tensordot and einsum become transposes, reshapes, elementwise products and
`matmul`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import traces
from nbcomp.graph.op import Contract, Sample, phantom
from nbcomp.ops import values
from nbcomp.ops.create import DiagonalMask
from nbcomp.ops.index import index
from nbcomp.ops.join import flat
from nbcomp.ops.move import expanded, reshaped, squeezed, transposed
from nbcomp.ops.operand import (
    as_array,
    as_node,
    ask,
    broadcast_shape,
    broadcast_to,
    cast,
    integer,
    integers,
    normal_axis,
    operand,
    result_type,
    traced,
)
from nbcomp.ops.reduce import Sum, total
from nbcomp.ops.ufunc import loop_dtypes
from nbcomp.types import TensorType


@dataclass(frozen=True)
class MatMul(Contract, name="matmul"):
    """The matrix product of the last two axes, over broadcast leading axes

    Operands: (..., m, k) and (..., k, n) of one dtype; result (..., m, n).  Floats are added in an
    order of the routine's own.
    """

    def infer(self, *types: TensorType) -> TensorType:
        return product_type(*types)

    def reference(self, *arrays: Any) -> Any:
        return np.matmul(*arrays)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in values.DTYPES:
            small = np.dtype(np.int8) if dtype.kind == "f" else dtype
            for a, b in (((3, 17), (17, 5)), ((2, 3, 4), (4, 1))):
                arrays = (values.ordinary(rng, small, s).astype(dtype) for s in (a, b))
                yield Sample(cls(), tuple(arrays))
        shapes: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
            ((1, 1), (1, 1)),
            ((3, 0), (0, 2)),
            ((0, 3), (3, 2)),
            ((37, 100), (100, 37)),
            ((2, 1, 3, 4), (3, 4, 5)),
        ]
        for left, right in shapes:
            yield Sample(cls(), (rng.random(left), rng.random(right)), 64)


def product_type(a: TensorType, b: TensorType) -> TensorType:
    """The type of a matrix product; raises what NumPy raises."""
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        np.matmul(phantom(a), phantom(b))
        raise ValueError(f"matmul takes matrices, not {a} and {b}")
    stacks = [replace(t, shape=t.shape[:-2]) for t in (a, b)]
    batch = broadcast_shape(lambda *_: np.matmul(phantom(a), phantom(b)), *stacks)
    dtype = loop_dtypes(np.matmul, (a.dtype, b.dtype))[2]
    return TensorType(dtype, (*batch, a.shape[-2], b.shape[-1]))


def product(a: Node, b: Node) -> Node:
    """np.matmul, the rules for vectors included."""
    loop = loop_dtypes(np.matmul, (a.type.dtype, b.type.dtype))
    if not a.shape or not b.shape or a.shape[-1] != b.shape[max(0, len(b.shape) - 2)]:
        ask(np.matmul, a, b)  # raises
    left, right = operand(a, loop[0]), operand(b, loop[1])
    if len(a.shape) == len(b.shape) == 1:
        return summed(traced(np.multiply, left, right), 0)
    if len(a.shape) == 1:
        left = expanded(left, 0)
    if len(b.shape) == 1:
        right = expanded(right, 1)
    result = apply(MatMul(), left, right)
    rank = len(result.shape)
    drop = [rank - 2] * (len(a.shape) == 1) + [rank - 1] * (len(b.shape) == 1)
    return squeezed(result, *drop)


def summed(node: Node, *axes: int) -> Node:
    """The sum over axes in the dtype itself, as products of matrices add up: True + True is
    True.
    """
    return total(Sum, node, tuple(sorted(axes)), False, node.type.dtype) if axes else node


@traces(np.matmul)
def _matmul(x1: Any, x2: Any, dtype: Any = None) -> Node:
    a, b = as_node(x1), as_node(x2)
    if dtype is not None:
        loop = loop_dtypes(np.matmul, (a.type.dtype, b.type.dtype), np.dtype(dtype))
        a, b = operand(a, loop[0]), operand(b, loop[1])
    return product(a, b)


@traces(np.dot)
def _dot(a: Any, b: Any) -> Node:
    left, right = as_array(a), as_array(b)
    if not left.shape or not right.shape:
        return traced(np.multiply, left, right)
    if len(right.shape) <= 2:
        if left.shape[-1] != right.shape[0]:
            np.dot(np.empty(left.shape), np.empty(right.shape))  # raises
        return _product_with_matrix(left, right)
    axis = len(right.shape) - 2
    if left.shape[-1] != right.shape[axis]:
        np.dot(np.empty(left.shape[-2:]), np.empty(right.shape[-2:]))  # raises
    return contracted(left, right, [len(left.shape) - 1], [axis])


def _product_with_matrix(a: Node, b: Node) -> Node:
    """a · b for a vector or matrix b: one product of matrices, whatever axes a begins with."""
    if len(a.shape) <= 2:
        return product(a, b)
    rows = product(reshaped(a, (math.prod(a.shape[:-1]), a.shape[-1])), b)
    return reshaped(rows, (*a.shape[:-1], *b.shape[1:]))


@traces(np.vdot)
def _vdot(a: Any, b: Any) -> Node:
    left, right = flat(as_array(a)), flat(as_array(b))
    if left.shape != right.shape:
        np.vdot(np.empty(left.shape), np.empty(right.shape))  # raises
    return product(left, right)


@traces(np.inner)
def _inner(a: Any, b: Any) -> Node:
    left, right = as_array(a), as_array(b)
    if not left.shape or not right.shape:
        return traced(np.multiply, left, right)
    if left.shape[-1] != right.shape[-1]:
        np.inner(np.empty(left.shape[-2:]), np.empty(right.shape[-2:]))  # raises
    return contracted(left, right, [len(left.shape) - 1], [len(right.shape) - 1])


@traces(np.outer)
def _outer(a: Any, b: Any) -> Node:
    return traced(np.multiply, expanded(flat(as_array(a)), 1), flat(as_array(b)))


def contracted(a: Node, b: Node, a_axes: Sequence[int], b_axes: Sequence[int]) -> Node:
    """The sum of products over pairs of axes; the others of a come first, then those of b."""
    dtype = result_type(a, b)
    a_free = [k for k in range(len(a.shape)) if k not in a_axes]
    b_free = [k for k in range(len(b.shape)) if k not in b_axes]
    inner = math.prod(a.shape[k] for k in a_axes)
    left = transposed(operand(a, dtype), [*a_free, *a_axes])
    right = transposed(operand(b, dtype), [*b_axes, *b_free])
    rows, columns = ([n.shape[k] for k in free] for n, free in ((a, a_free), (b, b_free)))
    if not rows and not columns:
        return product(flat(left), flat(right))
    left = reshaped(left, (math.prod(rows), inner))
    right = reshaped(right, (inner, math.prod(columns)))
    return reshaped(apply(MatMul(), left, right), (*rows, *columns))


@traces(np.tensordot)
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Node:
    left, right = as_array(a), as_array(b)
    if isinstance(axes, int | np.integer):
        pairs = (list(range(-int(axes), 0)), list(range(int(axes))))
    else:
        pairs = (list(integers(axes[0])), list(integers(axes[1])))
    ranks = (len(left.shape), len(right.shape))
    fits = len(pairs[0]) == len(pairs[1]) and all(
        -n <= k < n for own, n in zip(pairs, ranks, strict=True) for k in own
    )
    if not fits or any(left.shape[i] != right.shape[j] for i, j in zip(*pairs, strict=True)):
        np.tensordot(np.empty(left.shape), np.empty(right.shape), axes)
    a_axes, b_axes = ([k % n for k in own] for own, n in zip(pairs, ranks, strict=True))
    return contracted(left, right, a_axes, b_axes)


@traces(np.linalg.multi_dot)
def _multi_dot(arrays: Any) -> Node:
    nodes = list(map(as_node, arrays))
    if len(nodes) < 2:
        raise ValueError("Expecting at least two arrays.")
    first, last = nodes[0], nodes[-1]
    if len(first.shape) == 1:
        nodes[0] = expanded(first, 0)
    if len(last.shape) == 1:
        nodes[-1] = expanded(last, 1)
    if any(len(n.shape) != 2 for n in nodes):
        raise np.linalg.LinAlgError("arrays must be two-dimensional")
    result = _chain(nodes)
    drop = [0] * (len(first.shape) == 1) + [1] * (len(last.shape) == 1)
    return squeezed(result, *drop)


def _chain(nodes: list[Node]) -> Node:
    """The product of matrices in the cheapest order (Cormen et al., Introduction to Algorithms,
    15.2).
    """
    sizes = [nodes[0].shape[0], *(n.shape[1] for n in nodes)]
    best: dict[tuple[int, int], tuple[int, Node]] = {(i, i): (0, n) for i, n in enumerate(nodes)}
    for length in range(2, len(nodes) + 1):
        for i in range(len(nodes) - length + 1):
            j = i + length - 1

            def cost(k: int, i: int = i, j: int = j) -> int:
                here = sizes[i] * sizes[k + 1] * sizes[j + 1]
                return best[i, k][0] + best[k + 1, j][0] + here

            k = min(range(i, j), key=cost)
            best[i, j] = (cost(k), product(best[i, k][1], best[k + 1, j][1]))
    return best[0, len(nodes) - 1][1]


@traces(np.linalg.matrix_power)
def _matrix_power(a: Any, n: Any) -> Node:
    node, power = as_node(a), integer(n)
    if len(node.shape) < 2 or node.shape[-1] != node.shape[-2]:
        np.linalg.matrix_power(np.empty(node.shape), power)
    if power == 0:
        one = cast(apply(DiagonalMask(node.shape[-1], node.shape[-1], 0)), node.type.dtype)
        return broadcast_to(one, node.shape)
    if power < 0:
        node, power = traced(np.linalg.inv, node), -power
    if power == 3:
        return product(product(node, node), node)
    result: Node | None = None
    square = node
    while power:  # binary decomposition, as NumPy does it
        power, bit = divmod(power, 2)
        if bit:
            result = square if result is None else product(result, square)
        if power:
            square = product(square, square)
    assert result is not None
    return result


@traces(np.vecdot, np.linalg.vecdot)
def _vecdot(x1: Any, x2: Any, axis: Any = -1) -> Node:
    products = traced(np.multiply, as_node(x1), as_node(x2))
    if not as_node(x1).shape or not as_node(x2).shape:
        ask(np.vecdot, as_node(x1), as_node(x2))
    if as_node(x1).shape[axis] != as_node(x2).shape[axis]:
        ask(np.vecdot, as_node(x1), as_node(x2))
    return summed(products, normal_axis(axis, len(products.shape)))


@traces(np.trace)
def _trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None) -> Node:
    return traced(np.sum, traced(np.diagonal, a, offset, axis1, axis2), -1, dtype=dtype)


@traces(np.linalg.trace)
def _matrix_trace(x: Any, offset: Any = 0, dtype: Any = None) -> Node:
    return _trace(x, offset, -2, -1, dtype)


@traces(np.cross)
def _cross(
    a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None
) -> Node:
    if axis is not None:
        axisa = axisb = axisc = axis
    left, right = traced(np.moveaxis, a, axisa, -1), traced(np.moveaxis, b, axisb, -1)
    if left.shape[-1] != 3 or right.shape[-1] != 3:
        raise Unsupported("np.cross of vectors without three components", hint="append a zero")
    u, v = ([index(n, (..., k)) for k in range(3)] for n in (left, right))
    parts = [
        traced(
            np.subtract,
            traced(np.multiply, u[(k + 1) % 3], v[(k + 2) % 3]),
            traced(np.multiply, u[(k + 2) % 3], v[(k + 1) % 3]),
        )
        for k in range(3)
    ]
    return traced(np.moveaxis, traced(np.stack, parts, -1), -1, axisc)


@traces(np.linalg.cross)
def _cross_of(x1: Any, x2: Any, axis: Any = -1) -> Node:
    return _cross(x1, x2, axis=axis)


# ---------------------------------------------------------------- the same, by their newer names


@traces(np.linalg.matmul)
def _linalg_matmul(x1: Any, x2: Any) -> Node:
    return product(as_node(x1), as_node(x2))


@traces(np.linalg.outer)
def _linalg_outer(x1: Any, x2: Any) -> Node:
    left, right = as_node(x1), as_node(x2)
    if len(left.shape) != 1 or len(right.shape) != 1:
        np.linalg.outer(np.empty(left.shape), np.empty(right.shape))  # raises
    return _outer(left, right)


@traces(np.linalg.tensordot)
def _linalg_tensordot(x1: Any, x2: Any, axes: Any = 2) -> Node:
    return _tensordot(x1, x2, axes)


@traces(np.linalg.matrix_transpose)
def _linalg_matrix_transpose(x: Any) -> Node:
    return traced(np.matrix_transpose, x)


if hasattr(np, "matvec"):  # since NumPy 2.2

    @traces(np.matvec)
    def _matvec(x1: Any, x2: Any) -> Node:
        matrix, vector = as_node(x1), as_node(x2)
        if len(matrix.shape) < 2 or not vector.shape or matrix.shape[-1] != vector.shape[-1]:
            ask(np.matvec, matrix, vector)
        result = product(matrix, expanded(vector, len(vector.shape)))
        return squeezed(result, len(result.shape) - 1)

    @traces(np.vecmat)
    def _vecmat(x1: Any, x2: Any) -> Node:
        vector, matrix = as_node(x1), as_node(x2)
        if len(matrix.shape) < 2 or not vector.shape or matrix.shape[-2] != vector.shape[-1]:
            ask(np.vecmat, vector, matrix)
        result = product(expanded(vector, len(vector.shape) - 1), matrix)
        return squeezed(result, len(result.shape) - 2)
