"""Linear algebra beyond products: LAPACK through `np.linalg`, on real matrices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import traces
from nbcomp.graph.op import Library, Sample
from nbcomp.ops.move import reshaped, sliced
from nbcomp.ops.operand import as_node, supported, traced
from nbcomp.sizes import broadcast_shapes
from nbcomp.types import INT64, DType, TensorType


def _dtype(function: Any, *types: TensorType) -> DType:
    """The dtype of the result, asked with matrices of one element."""
    return supported(np.asarray(function(*(np.ones((1, 1), t.dtype) for t in types))).dtype)


@dataclass(frozen=True)
class OnMatrices(Library):
    """A routine on the last two axes, which are square; singular matrices raise LinAlgError."""

    raises: ClassVar[bool] = True

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
    raises = False


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

    raises: ClassVar[bool] = True

    def infer(self, *types: TensorType) -> TensorType:
        a, b = types
        if a.ndim < 2 or a.shape[-1] != a.shape[-2] or not b.ndim:
            np.linalg.solve(np.empty(a.shape), np.empty(b.shape))
        vector = b.ndim == 1
        rows = b.shape[0] if vector else b.shape[-2]
        if rows != a.shape[-1]:
            np.linalg.solve(np.empty(a.shape), np.empty(b.shape))
        batch = broadcast_shapes(a.shape[:-2], () if vector else b.shape[:-2])
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


# ------------------------------------------------------------------ routines with several results


@dataclass(frozen=True)
class Decomposition(Library):
    """A routine on matrices with several results of one dtype, packed into one vector.

    One node has one result, so that the parts are slices of the vector, and the routine runs once.
    """

    raises: ClassVar[bool] = True

    def parts(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """The shapes of the results for an operand of this shape."""
        raise NotImplementedError

    def run(self, x: Any) -> Any:
        """NumPy's results."""
        raise NotImplementedError

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if x.ndim < 2:
            self.run(np.empty(x.shape))  # raises
        size = sum(math.prod(part) for part in self.parts(x.shape))
        dtype = supported(np.asarray(self.run(np.ones((1, 1), x.dtype))[0]).dtype)
        return TensorType(dtype, (size,))

    def reference(self, *arrays: Any) -> Any:
        return np.concatenate([np.ravel(part) for part in self.run(arrays[0])])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in (np.float32, np.float64, np.int32):
            for shape in ((1, 1), (4, 4), (2, 3, 3)):
                x = rng.integers(-3, 3, shape) + 9 * np.eye(shape[-1])
                yield Sample(cls(), ((x + np.swapaxes(x, -1, -2)).astype(dtype),))


def unpacked(op: Decomposition, a: Any) -> tuple[Node, ...]:
    """The results of a decomposition, one node each."""
    x = as_node(a)
    packed = apply(op, x)
    results, start = [], 0
    for shape in op.parts(x.shape):
        stop = start + math.prod(shape)
        results.append(reshaped(sliced(packed, 0, start, stop), shape))
        start = stop
    return tuple(results)


@dataclass(frozen=True)
class SingularValues(Decomposition, name="svd"):
    """u, s and vᵀ of the singular value decomposition, packed"""

    full: bool = True

    def parts(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        *batch, m, n = shape
        k = min(m, n)
        left, right = ((m, m), (n, n)) if self.full else ((m, k), (k, n))
        return (*batch, *left), (*batch, k), (*batch, *right)

    def run(self, x: Any) -> Any:
        return np.linalg.svd(x, self.full)


@dataclass(frozen=True)
class EigenHermitian(Decomposition, name="eigh"):
    """Eigenvalues, ascending, and eigenvectors of symmetric matrices, packed"""

    triangle: str = "L"

    def parts(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        return shape[:-1], shape

    def run(self, x: Any) -> Any:
        eigh: Any = np.linalg.eigh
        return eigh(x, self.triangle)


@dataclass(frozen=True)
class QR(Decomposition, name="qr"):
    """The orthogonal and the upper triangular factor, packed"""

    complete: bool = False

    def parts(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        *batch, m, n = shape
        k = m if self.complete else min(m, n)
        return (*batch, m, k), (*batch, k, n)

    def run(self, x: Any) -> Any:
        return np.linalg.qr(x, "complete" if self.complete else "reduced")


@dataclass(frozen=True)
class SignLogDet(Decomposition, name="slogdet"):
    """The sign of the determinant and the logarithm of its size, packed"""

    raises: ClassVar[bool] = False

    def parts(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        return shape[:-2], shape[:-2]

    def run(self, x: Any) -> Any:
        return np.linalg.slogdet(x)


@traces(np.linalg.svd)
def _svd(a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    if hermitian:
        raise Unsupported("hermitian= of np.linalg.svd is not compiled", hint="leave it out")
    if not compute_uv:
        return traced(np.linalg.svdvals, a)
    return unpacked(SingularValues(bool(full_matrices)), a)


@traces(np.linalg.eigh)
def _eigh(a: Any, UPLO: str = "L") -> Any:
    _square(np.linalg.eigh, a)
    return unpacked(EigenHermitian(UPLO.upper()), a)


@traces(np.linalg.qr)
def _qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r"):
        raise Unsupported(f"np.linalg.qr with mode={mode!r} is not compiled", hint="use 'reduced'")
    q, r = unpacked(QR(mode == "complete"), a)
    return r if mode == "r" else (q, r)


@traces(np.linalg.slogdet)
def _slogdet(a: Any) -> Any:
    _square(np.linalg.slogdet, a)
    return unpacked(SignLogDet(), a)


def _square(function: Any, a: Any) -> None:
    shape = as_node(a).shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        function(np.empty(shape))  # raises


@dataclass(frozen=True)
class Spectrum(Library, name="svdvals"):
    """The singular values, descending"""

    raises: ClassVar[bool] = True

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if x.ndim < 2:
            np.linalg.svdvals(np.empty(x.shape))
        return TensorType(_dtype(np.linalg.svdvals, x), (*x.shape[:-2], min(x.shape[-2:])))

    def reference(self, *arrays: Any) -> Any:
        return np.linalg.svdvals(arrays[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((3, 3), (2, 5), (2, 4, 3)):
            yield Sample(cls(), (rng.random(shape),))
            yield Sample(cls(), (rng.random(shape).astype(np.float32),))


@traces(np.linalg.svdvals)
def _svdvals(x: Any) -> Node:
    return apply(Spectrum(), as_node(x))


@dataclass(frozen=True)
class EigenValues(Library, name="eigvalsh"):
    """The eigenvalues of symmetric matrices, ascending"""

    raises: ClassVar[bool] = True

    triangle: str = "L"

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(_dtype(np.linalg.eigvalsh, types[0]), types[0].shape[:-1])

    def reference(self, *arrays: Any) -> Any:
        eigvalsh: Any = np.linalg.eigvalsh
        return eigvalsh(arrays[0], self.triangle)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((1, 1), (3, 3), (2, 4, 4)):
            yield Sample(cls(), (rng.random(shape),))
            yield Sample(cls("U"), (rng.random(shape).astype(np.float32),))


@traces(np.linalg.eigvalsh)
def _eigvalsh(a: Any, UPLO: str = "L") -> Node:
    _square(np.linalg.eigvalsh, a)
    return apply(EigenValues(UPLO.upper()), as_node(a))


@dataclass(frozen=True)
class PseudoInverse(Library, name="pinv"):
    """The pseudo-inverse of each matrix"""

    raises: ClassVar[bool] = True

    rcond: float | None = None

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if x.ndim < 2:
            np.linalg.pinv(np.empty(x.shape))
        turned = (*x.shape[:-2], x.shape[-1], x.shape[-2])
        return TensorType(_dtype(np.linalg.pinv, x), turned)

    def reference(self, *arrays: Any) -> Any:
        return np.linalg.pinv(arrays[0], self.rcond)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((3, 3), (2, 5), (2, 4, 3)):
            yield Sample(cls(), (rng.random(shape),))
            yield Sample(cls(1e-3), (rng.random(shape).astype(np.float32),))


@traces(np.linalg.pinv)
def _pinv(a: Any, rcond: Any = None) -> Node:
    return apply(PseudoInverse(None if rcond is None else float(rcond)), as_node(a))


@dataclass(frozen=True)
class MatrixRank(Library, name="matrix_rank"):
    """The number of singular values that are not nearly zero"""

    raises: ClassVar[bool] = True

    tol: float | None = None

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(INT64, types[0].shape[:-2])

    def reference(self, *arrays: Any) -> Any:
        return np.linalg.matrix_rank(arrays[0], self.tol)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((3, 3), (2, 5), (2, 4, 3)):
            yield Sample(cls(), (rng.random(shape),))
        yield Sample(cls(0.5), (np.eye(3) * 0.4,))


@traces(np.linalg.matrix_rank)
def _matrix_rank(A: Any, tol: Any = None) -> Node:
    if len(as_node(A).shape) < 2:
        raise Unsupported("np.linalg.matrix_rank of a vector", hint="use (x != 0).any()")
    return apply(MatrixRank(None if tol is None else float(tol)), as_node(A))
