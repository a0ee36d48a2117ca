"""A Gaussian process: what is expected of a candidate, from those like it that were measured.

Columns are logarithms, the more alike the closer; options of which there are few also count as the
same or not.  What is expected is linear in the columns plus what neighbours say; how far to trust a
single measurement is what makes all of them likeliest.  (Rasmussen and Williams, "Gaussian
processes for machine learning", MIT Press 2006, chapters 2 and 5: Matérn's covariance, ν = 5/2,
and the marginal likelihood.)  It is written here because SciPy has none and scikit-learn would be
needed for it alone (docs/tuning.md).  Knows numbers; it must not know what they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]

LARGEST = 400  # measurements it learns from: learning takes their third power
FEW = 10  # values of a column up to which they also count as the same or not
SAME = 0.7  # what that weighs beside the distance of the values
LENGTH = 1.0  # standard deviations of the columns, root mean square, that are near
LINEAR = 0.3  # weight of what is linear beside what neighbours say
TRUST = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # variances of one measurement that are weighed


@dataclass(frozen=True)
class _Columns:
    """How rows of numbers become points: learned from some rows, the same for others.

    Without a value (NaN) a column has its mean, and a column of its own says so.
    """

    means: Array
    missing: np.ndarray[Any, np.dtype[np.intp]]  # the columns that lack some values
    values: tuple[tuple[int, float], ...]  # columns and the values that count as the same or not
    centre: Array
    scale: Array

    @staticmethod
    def of(rows: Array) -> _Columns:
        logs = _logs(rows)
        gaps = np.isnan(logs)
        known = np.where(gaps, 0.0, logs).sum(0) / np.maximum((~gaps).sum(0), 1)
        missing = np.flatnonzero(gaps.any(0) & ~gaps.all(0))
        values = []
        for k, column in enumerate(logs.T):
            found = np.unique(column[~np.isnan(column)])
            values += [(k, float(v)) for v in found if 2 < len(found) <= FEW]
        raw = _Columns(known, missing, tuple(values), np.zeros(1), np.ones(1))
        points = raw(rows)
        spread = points.std(0)
        scale = np.where(spread > 1e-9, 1 / np.maximum(spread, 1e-9), 0.0)
        return _Columns(known, missing, tuple(values), points.mean(0), scale)

    def __call__(self, rows: Array) -> Array:
        logs = _logs(rows)
        gaps = np.isnan(logs)
        full = np.where(gaps, self.means, logs)
        same = [SAME * (full[:, k] == v) for k, v in self.values]
        points = np.column_stack([full, gaps[:, self.missing], *same])
        return np.asarray((points - self.centre) * self.scale)


def _logs(rows: Array) -> Array:
    return np.asarray(np.sign(rows) * np.log2(1 + np.abs(rows)))


class Process:
    """A model of a number for each row, learned by `fit` and asked by `predict`."""

    def __init__(self) -> None:
        self.columns: _Columns | None = None
        self.points = self.weights = np.zeros(0)
        self.mean = 0.0

    @property
    def ready(self) -> bool:
        """Whether there is something to ask."""
        return self.columns is not None

    def fit(self, rows: Array, targets: Array) -> None:
        """Learn from rows of numbers (NaN: not known) and what was measured of each; of many, the
        last ones."""
        rows, targets = rows[-LARGEST:], targets[-LARGEST:]
        self.columns = _Columns.of(rows)
        self.points = self.columns(rows)
        self.mean = float(targets.mean())
        values, vectors = np.linalg.eigh(self._covariance(self.points))
        along = vectors.T @ (targets - self.mean)
        self.weights = vectors @ (along / _likeliest(np.maximum(values, 0.0), along))

    def predict(self, rows: Array) -> Array:
        """What is expected of rows."""
        assert self.columns is not None
        return np.asarray(self.mean + self._covariance(self.columns(rows)) @ self.weights)

    def _covariance(self, points: Array) -> Array:
        """Of points with those that were learned from."""
        width = max(points.shape[1], 1)
        inner = points @ self.points.T / width
        squares = [np.square(p).sum(1) / width for p in (points, self.points)]
        apart = np.maximum(squares[0][:, None] + squares[1][None, :] - 2 * inner, 0.0)
        r = np.sqrt(5 * apart) / LENGTH
        return np.asarray((1 + r + r * r / 3) * np.exp(-r) + LINEAR * inner)


def _likeliest(values: Array, along: Array) -> Array:
    """The eigenvalues of the covariance of the measurements, with that variance of one of them
    under which all are likeliest; along: the measurements in the directions of the eigenvectors."""

    def likelihood(all_: Array) -> float:
        scale = np.log(np.mean(np.square(along) / all_) + 1e-300)
        return float(-0.5 * (len(along) * scale + np.log(all_).sum()))

    return max((values + one for one in TRUST), key=likelihood)
