"""NumPy functions through the tracer: results of NumPy's types, scalars where it has scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Agree = Callable[..., Any]
X = np.linspace(-2, 3, 12).reshape(3, 4)
V = np.array([3.0, -1.0, 2.0, 2.0, -0.0, 5.0])
Z = np.array(1.5)
M = np.array([[4.0, 1.0], [1.0, 3.0]])

# Each runs on a matrix, a vector and a 0-d array, as far as NumPy takes them.
ANY_RANK: list[Callable[..., Any]] = [
    lambda x: np.sum(x),
    lambda x: np.prod(x, axis=0, keepdims=True),
    lambda x: (np.mean(x), np.std(x), np.var(x), np.median(x)),
    lambda x: (np.max(x), np.min(x), np.ptp(x), np.argmax(x), np.argmin(x)),
    lambda x: (np.any(x), np.all(x > -9), np.count_nonzero(x)),
    lambda x: np.average(x),
    lambda x: (np.quantile(x, 0.3), np.percentile(x, [25, 75])),
    lambda x: (np.nansum(x), np.nanmean(x), np.nanmax(x)),
    lambda x: (np.cumsum(x), np.cumprod(x)),
    lambda x: np.linalg.norm(x),
    lambda x: np.where(x > 0, x, 0),
    lambda x: np.clip(x, -1, 1),
    lambda x: (np.round(x, 1), np.around(x), np.fix(x)),
    lambda x: (np.nan_to_num(x), np.isclose(x, 1.5), np.isfinite(x)),
    lambda x: (np.zeros_like(x), np.full_like(x, 3), np.empty_like(x).shape),
    lambda x: (np.copy(x), np.array(x), np.asarray(x), np.ascontiguousarray(x)),
    lambda x: (np.ravel(x), np.reshape(x, -1), np.squeeze(x), np.transpose(x)),
    lambda x: (np.atleast_1d(x), np.atleast_2d(x), np.atleast_3d(x)),
    lambda x: (np.expand_dims(x, 0), x[None], x[...], np.broadcast_to(x, (2, *x.shape))),
    lambda x: (np.add(x, 1), np.negative(x), np.maximum(x, 0), np.divmod(x, 2), np.modf(x)),
    lambda x: (np.sqrt(abs(x)), np.sign(x), np.signbit(x), np.exp(x), np.hypot(x, 3)),
    lambda x: (x.astype(np.float32), x.astype(int), x.astype(bool), x.copy(), x.round()),
    lambda x: (x.clip(0, 1), x.T, x.reshape(-1), x.ravel(), x.flatten(), x.squeeze(), x.conj()),
    lambda x: (x.any(), x.all(), x.sum(), x.mean(), x.max(), x.argmin(), x.var()),
    lambda x: (np.append(x, 1.0), np.repeat(x, 2), np.tile(x, 2), np.roll(x, 1), np.flip(x)),
    lambda x: np.interp(x, [0.0, 1.0], [5.0, 6.0]),
    lambda x: np.searchsorted([0.0, 1.0, 2.0], x),
    lambda x: np.digitize(x, [0.0, 1.0, 2.0]),
    lambda x: (np.isin(x, [1.5, 2.0]), np.sinc(x), np.heaviside(x, 0.5)),
    lambda x: (np.select([x > 1, x > 0], [x, -x], 7.0), np.polyval([1.0, 2.0], x)),
    lambda x: (np.allclose(x, x), np.array_equal(x, x)),
    lambda x: (np.multiply.outer(x, x), np.add.reduce(x) if x.ndim else x),
    lambda x: (np.dot(x + 9, 2.0), np.inner(2.0, x + 9), np.vdot(x, x), np.outer(x, x)),
    lambda x: (np.kron(x, x), np.tensordot(x, x, 0), np.einsum("...->...", x)),
    lambda x: (np.sum(x, dtype=np.float32), np.mean(x, dtype=np.float32)),
    lambda x: (np.sum(x[None], axis=0), np.max(x[..., None], -1), np.linalg.norm(x[None], axis=0)),
    lambda x: (+x, abs(x), x == x, x**2, x % 2, x // 1, 1 - x, divmod(x, 2)),
    lambda x: (np.stack([x, x]), np.array([x, x]), np.concatenate([x[None], x[None]])),
    lambda x: (np.ndim(x), np.shape(x), np.size(x), x.size, len(x.shape)),
    lambda x: [np.take(x, 0), np.take(x, [0, 0])],
    lambda x: [a + 1 for a in np.broadcast_arrays(x, x[None])],
]

VECTORS: list[Callable[..., Any]] = [
    lambda v: (v @ v, np.dot(v, v), np.inner(v, v), v.dot(v), np.linalg.vecdot(v, v)),
    lambda v: (np.sort(v), np.argsort(v, kind="stable"), np.partition(v, 2)[2], np.sort(v)[::-1]),
    lambda v: (np.diff(v), np.ediff1d(v), np.gradient(v), np.trapezoid(v)),
    lambda v: (np.convolve(v, [1.0, 2.0]), np.correlate(v, v)),
    lambda v: (np.diag(v), np.diagflat(v), np.vander(v, 3), np.tri(3), np.tril(np.outer(v, v))),
    lambda v: (np.resize(v, (2, 2)), np.append(v, v), np.nan_to_num(v)),
    lambda v: (np.pad(v, 2), np.pad(v, 1, mode="edge"), np.split(v, 3), np.array_split(v, 4)),
    lambda v: (np.meshgrid(v, v), np.cov(v), np.take_along_axis(v, np.argsort(v), 0)),
    lambda v: (v[2], v[-1], v[1:2], v[[1]], v[np.array(2)], v[np.int64(3)], v[v.argmax()]),
    lambda v: (v.take(2), v.take([2, 1]), v.repeat(2), v.cumsum(), v.argsort(kind="stable")),
    lambda v: (v.item(0) if v.ndim == 2 else v[0], list(v), tuple(v), sum(v), [*v]),
    lambda v: (np.hstack([v, v]), np.vstack([v, v]), np.column_stack([v, v]), np.dstack([v, v])),
    lambda v: (np.maximum.reduce(v), np.add.accumulate(v), np.logical_or.reduce(v)),
    lambda v: (np.cross(v[:3], v[3:]), np.unstack(v) if hasattr(np, "unstack") else v),
    lambda v: (v[::-1][::2], np.rot90(v[None])),
    lambda v: (np.nanargmax(v) if v.ndim == 2 else v[0], np.sum(v, where=v > 0)),
    lambda v: (v[v > 0].sum(), v[v > 0].mean(), v[v > 0].any(), np.sum(v[v > 1] * 2)),
    lambda v: (np.logspace(0, 1, 3) * v[0], np.geomspace(1, 8, 4), np.arange(6) + v),
]

# Functions of NumPy that have no operator, but are written in Python.
BY_SOURCE: list[Callable[..., Any]] = [
    lambda v: (np.corrcoef(np.outer(v, v) + np.eye(6)), np.unwrap(v * 3)),
    lambda v: (np.polyadd(v, v[:3]), np.polysub(v, v[:2]), np.polyder(v), np.polyint(v)),
    lambda v: (np.fft.fftshift(v), np.fft.ifftshift(v), np.apply_over_axes(np.sum, v, [0])),
    lambda v: (np.linalg.outer(v, v), np.linalg.tensordot(v, v, axes=1), np.poly(v[:2])),
    lambda v: np.outer(v, v)[np.ix_([0, 1], [2, 3])],
    lambda v: np.outer(v, v)[np.tril_indices_from(np.outer(v, v))],
    lambda v: (np.r_[v, 1.0, v[:2]], np.c_[v, v], np.r_[0:3], np.c_[np.outer(v, v), v]),
    lambda v: (np.mgrid[0:2, 0:3] * v[0], np.ogrid[0:2] + v[0]),
    lambda v: (
        np.lib.stride_tricks.sliding_window_view(v, 3) + 0,
        np.linalg.matrix_transpose(v[None]),
    ),
    lambda v: np.lib.stride_tricks.sliding_window_view(np.outer(v, v), (2, 3)).sum((2, 3)),
]

MATRICES: list[Callable[..., Any]] = [
    lambda m: (np.linalg.det(m), np.linalg.inv(m), np.linalg.solve(m, m[0])),
    lambda m: (np.linalg.cholesky(m), np.linalg.matrix_power(m, 3), np.linalg.norm(m, axis=1)),
    lambda m: (np.trace(m), np.diagonal(m), np.diag(m), m.trace(), m.diagonal(), np.diag(m).sum()),
    lambda m: (np.matmul(m, m[0]), m[0] @ m, m @ m, np.linalg.multi_dot([m, m, m])),
    lambda m: (np.einsum("ii", m), np.einsum("ij->ji", m) + 0, np.einsum("ii->i", m) + 0),
    lambda m: (np.tensordot(m, m), np.tensordot(m, m, 1), np.cov(m), np.kron(m, m)),
    lambda m: (np.linalg.svd(m), np.linalg.eigh(m), np.linalg.slogdet(m), np.linalg.qr(m)),
    lambda m: (np.linalg.svd(m).S, np.linalg.svd(m, compute_uv=False), np.linalg.pinv(m)),
    lambda m: (np.triu(m), np.tril(m, -1), np.block([[m, m], [m, m]]), np.moveaxis(m, 0, 1)),
]


@pytest.mark.parametrize("k", range(len(ANY_RANK)))
@pytest.mark.parametrize("array", [X, V, Z], ids=["matrix", "vector", "0-d"])
def test_any_rank(k: int, array: Any, agree: Agree) -> None:
    function = ANY_RANK[k]
    try:
        with np.errstate(all="ignore"):
            function(array.copy())
    except (ValueError, TypeError, IndexError):
        pytest.skip("NumPy does not take it")
    agree(function, array)


@pytest.mark.parametrize("k", range(len(ANY_RANK)))
def test_numpy_scalars(k: int, agree: Agree) -> None:
    """The same on a NumPy scalar: the sum of a vector."""
    function = ANY_RANK[k]
    try:
        with np.errstate(all="ignore"):
            function(V.sum())
    except (ValueError, TypeError, IndexError):
        pytest.skip("NumPy does not take it")
    agree(lambda v: function(v.sum()), V)


@pytest.mark.parametrize("k", range(len(VECTORS)))
def test_vectors(k: int, agree: Agree) -> None:
    agree(VECTORS[k], V)


@pytest.mark.parametrize("k", range(len(BY_SOURCE)))
def test_by_source(k: int, agree: Agree) -> None:
    agree(BY_SOURCE[k], V)


@pytest.mark.parametrize("k", range(len(MATRICES)))
def test_matrices(k: int, agree: Agree) -> None:
    agree(MATRICES[k], M)
