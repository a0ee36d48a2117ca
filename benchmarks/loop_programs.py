"""The programs of the loops benchmark: explicit loops over elements, as people write them.

They are plain Python on NumPy arrays, the same text for every contestant.  Sources: the tridiagonal
solve is Thomas' algorithm, the rest are the textbook forms of their names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def mandelbrot(out: Any, limit: Any) -> Any:
    """How many steps each point stays near."""
    height, width = out.shape
    for j in range(height):
        ci = -1.25 + 2.5 * j / height
        for i in range(width):
            cr = -2.0 + 2.5 * i / width
            zr = 0.0
            zi = 0.0
            n = 0
            while n < limit and zr * zr + zi * zi < 4.0:
                t = zr * zr - zi * zi + cr
                zi = 2.0 * zr * zi + ci
                zr = t
                n += 1
            out[j, i] = n
    return out


def nbody(position: Any, velocity: Any, mass: Any, dt: Any, steps: Any) -> Any:
    """Steps of bodies that attract each other."""
    n = mass.shape[0]
    for _ in range(steps):
        for i in range(n):
            for j in range(i + 1, n):
                dx = position[i, 0] - position[j, 0]
                dy = position[i, 1] - position[j, 1]
                dz = position[i, 2] - position[j, 2]
                square = dx * dx + dy * dy + dz * dz
                pull = dt / (square * np.sqrt(square))
                velocity[i, 0] -= dx * mass[j] * pull
                velocity[i, 1] -= dy * mass[j] * pull
                velocity[i, 2] -= dz * mass[j] * pull
                velocity[j, 0] += dx * mass[i] * pull
                velocity[j, 1] += dy * mass[i] * pull
                velocity[j, 2] += dz * mass[i] * pull
        for i in range(n):
            for k in range(3):
                position[i, k] += dt * velocity[i, k]
    return position


def tridiagonal(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Solve a tridiagonal system."""
    n = d.shape[0]
    cp = np.empty(n)
    dp = np.empty(n)
    x = np.empty(n)
    cp[0] = c[0] / b[0]
    dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x[n - 1] = dp[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


def floyd_warshall(distance: Any) -> Any:
    """All shortest paths, in place."""
    n = distance.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                through = distance[i, k] + distance[k, j]
                if through < distance[i, j]:
                    distance[i, j] = through
    return distance


def smith_waterman(a: Any, b: Any, match: Any, mismatch: Any, gap: Any) -> Any:
    """The best local alignment's score."""
    n = a.shape[0]
    m = b.shape[0]
    score = np.zeros((n + 1, m + 1), np.int64)
    best = 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            step = match if a[i - 1] == b[j - 1] else mismatch
            here = max(0, score[i - 1, j - 1] + step, score[i - 1, j] + gap, score[i, j - 1] + gap)
            score[i, j] = here
            best = max(best, here)
    return best


def histogram(values: Any, bins: Any) -> Any:
    """Count values by bin."""
    counts = np.zeros(bins, np.int64)
    for i in range(values.shape[0]):
        counts[values[i]] += 1
    return counts


def prefix_sums(x: Any) -> Any:
    """Running sums."""
    out = np.empty(x.shape[0])
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
        out[i] = total
    return out


def csr_matvec(data: Any, columns: Any, starts: Any, x: Any) -> Any:
    """A sparse matrix (compressed rows) times a vector."""
    n = starts.shape[0] - 1
    y = np.empty(n)
    for i in range(n):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += data[k] * x[columns[k]]
        y[i] = total
    return y


def crc32(data: Any, polynomial: Any) -> Any:
    """A cyclic redundancy check, bit by bit."""
    crc = 0xFFFFFFFF
    for i in range(data.shape[0]):
        crc ^= int(data[i])
        for _ in range(8):
            if crc & 1:
                crc = (crc >> 1) ^ polynomial
            else:
                crc >>= 1
    return crc ^ 0xFFFFFFFF


@dataclass(frozen=True)
class Row:
    """A program and what it is called with."""

    function: Callable[..., Any]
    inputs: Callable[[np.random.Generator], tuple[Any, ...]]

    @property
    def name(self) -> str:
        """How it is called on the command line."""
        return self.function.__name__

    def arguments(self) -> tuple[Any, ...]:
        """Fresh arguments, the same each time."""
        return self.inputs(np.random.default_rng(11))


def _sparse(rng: np.random.Generator) -> tuple[Any, ...]:
    rows, each = 20_000, 16
    starts = np.arange(0, rows * each + 1, each)
    columns = np.sort(rng.integers(0, rows, (rows, each)), axis=1).ravel()
    return rng.random(rows * each), columns, starts, rng.random(rows)


ROWS = (
    Row(mandelbrot, lambda rng: (np.zeros((256, 256), np.int64), 200)),
    Row(nbody, lambda rng: (rng.random((64, 3)), rng.random((64, 3)), rng.random(64), 1e-4, 20)),
    Row(
        tridiagonal,
        lambda rng: tuple(rng.random(100_000) + extra for extra in (0.0, 4.0, 0.0, 0.0)),
    ),
    Row(floyd_warshall, lambda rng: (rng.random((128, 128)),)),
    Row(
        smith_waterman,
        lambda rng: (rng.integers(0, 4, 512), rng.integers(0, 4, 512), 3, -3, -2),
    ),
    Row(histogram, lambda rng: (rng.integers(0, 256, 1_000_000), 256)),
    Row(prefix_sums, lambda rng: (rng.random(1_000_000),)),
    Row(csr_matvec, _sparse),
    Row(crc32, lambda rng: (rng.integers(0, 256, 100_000, dtype=np.uint8), 0xEDB88320)),
)
