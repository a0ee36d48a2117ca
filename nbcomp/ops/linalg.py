"""Linear algebra beyond products: LAPACK through `np.linalg`, on real matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import traces
from nbcomp.graph.op import Library, Sample
from nbcomp.ops.operand import as_node, supported
from nbcomp.types import DType, TensorType


def _dtype(function: Any, *types: TensorType) -> DType:
    """The dtype of the result, asked with matrices of one element."""
    return supported(np.asarray(function(*(np.ones((1, 1), t.dtype) for t in types))).dtype)


@dataclass(frozen=True)
class OnMatrices(Library):
    """A routine on the last two axes, which are square; singular matrices raise LinAlgError."""

    function: ClassVar[Any]
    keeps: ClassVar[bool] = True  # whether the result has the operand's shape, or is a number each

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            type(self).function(np.empty(x.shape))  # raises
        shape = x.shape if self.keeps else x.shape[:-2]
        return TensorType(_dtype(type(self).function, x), shape)

    def reference(self, *arrays: Any) -> Any:
        return type(self).function(arrays[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in (np.float32, np.float64, np.int32):
            for shape in ((1, 1), (5, 5), (2, 3, 3), (0, 2, 2)):
                x = np.triu(rng.integers(-3, 3, shape)) + 9 * np.eye(shape[-1])
                yield Sample(cls(), ((x @ np.swapaxes(x, -1, -2)).astype(dtype),))


class Inverse(OnMatrices, name="inv"):
    """The inverse of each matrix"""

    function = staticmethod(np.linalg.inv)


class Determinant(OnMatrices, name="det"):
    """The determinant of each matrix"""

    function = staticmethod(np.linalg.det)
    keeps = False


class Cholesky(OnMatrices, name="cholesky"):
    """The lower triangle whose product with its transpose is the matrix"""

    function = staticmethod(np.linalg.cholesky)


@traces(np.linalg.inv)
def _inv(a: Any) -> Node:
    return apply(Inverse(), as_node(a))


@traces(np.linalg.det)
def _det(a: Any) -> Node:
    return apply(Determinant(), as_node(a))


@traces(np.linalg.cholesky)
def _cholesky(a: Any) -> Node:
    return apply(Cholesky(), as_node(a))


@dataclass(frozen=True)
class Solve(Library, name="solve"):
    """x of a @ x = b"""

    def infer(self, *types: TensorType) -> TensorType:
        a, b = types
        if a.ndim < 2 or a.shape[-1] != a.shape[-2] or not b.ndim:
            np.linalg.solve(np.empty(a.shape), np.empty(b.shape))
        vector = b.ndim == 1
        rows = b.shape[0] if vector else b.shape[-2]
        if rows != a.shape[-1]:
            np.linalg.solve(np.empty(a.shape), np.empty(b.shape))
        batch = np.broadcast_shapes(a.shape[:-2], () if vector else b.shape[:-2])
        inner = (rows,) if vector else (rows, b.shape[-1])
        return TensorType(_dtype(np.linalg.solve, a, b), (*batch, *inner))

    def reference(self, *arrays: Any) -> Any:
        return np.linalg.solve(*arrays)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for a, b in (((3, 3), (3,)), ((3, 3), (3, 5)), ((2, 3, 3), (3, 1)), ((2, 4, 4), (4,))):
            x = rng.random(a) + 9 * np.eye(a[-1])
            yield Sample(cls(), (x, rng.random(b)))
            yield Sample(cls(), (x.astype(np.float32), rng.random(b).astype(np.float32)))


@traces(np.linalg.solve)
def _solve(a: Any, b: Any) -> Node:
    return apply(Solve(), as_node(a), as_node(b))
