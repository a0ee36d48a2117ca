"""Matrix products: `matmul` as one operator, and the NumPy functions that are made of it.

dot, inner, outer, tensordot and einsum become transposes, reshapes, elementwise products and
`matmul`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import traces
from nbcomp.graph.op import Contract, Sample, phantom
from nbcomp.ops import values
from nbcomp.ops.move import expanded, squeezed
from nbcomp.ops.operand import as_node, ask, operand
from nbcomp.ops.ufunc import loop_dtypes
from nbcomp.types import TensorType


@dataclass(frozen=True)
class MatMul(Contract, name="matmul"):
    """The matrix product of the last two axes, over broadcast leading axes

    Operands: (..., m, k) and (..., k, n) of one dtype; result (..., m, n).  Floats are added in an
    order of the routine's own.
    """

    def infer(self, *types: TensorType) -> TensorType:
        a, b = types
        if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
            np.matmul(phantom(a), phantom(b))
            raise ValueError(f"matmul takes matrices, not {a} and {b}")
        try:
            batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        except ValueError:
            np.matmul(phantom(a), phantom(b))
            raise
        dtype = loop_dtypes(np.matmul, (a.dtype, b.dtype))[2]
        return TensorType(dtype, (*batch, a.shape[-2], b.shape[-1]))

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


def product(a: Node, b: Node) -> Node:
    """np.matmul, the rules for vectors included."""
    loop = loop_dtypes(np.matmul, (a.type.dtype, b.type.dtype))
    if not a.shape or not b.shape:
        ask(np.matmul, a, b)  # raises: 0-d operands are not matrices
    left, right = operand(a, loop[0]), operand(b, loop[1])
    if a.shape[-1] != b.shape[max(0, len(b.shape) - 2)]:
        ask(np.matmul, a, b)
    if len(a.shape) == 1:
        left = expanded(left, 0)
    if len(b.shape) == 1:
        right = expanded(right, 1)
    result = apply(MatMul(), left, right)
    rank = len(result.shape)
    drop = [rank - 2] * (len(a.shape) == 1) + [rank - 1] * (len(b.shape) == 1)
    return squeezed(result, *drop)


@traces(np.matmul)
def _matmul(x1: Any, x2: Any, dtype: Any = None) -> Node:
    a, b = as_node(x1), as_node(x2)
    if dtype is not None:
        loop = loop_dtypes(np.matmul, (a.type.dtype, b.type.dtype), np.dtype(dtype))
        a, b = operand(a, loop[0]), operand(b, loop[1])
    return product(a, b)
