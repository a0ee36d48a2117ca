"""Python's functions in loops over elements: of all elements of a part, of what is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

M = np.random.default_rng(2).normal(size=(5, 7))
COUNTS = np.array([[3, 1, 2], [0, 0, 0], [-1, 5, 5]])


def rows(m: Any) -> Any:
    out = np.zeros((m.shape[0], 3))
    for i in range(m.shape[0]):
        out[i, 0] = sum(m[i])
        out[i, 1] = max(m[i, 1:]) - min(m[i])
        out[i, 2] = any(m[i] > 0) + 2 * all(m[i, :2] > -1)
    return out


def row_of_rows(m: Any) -> Any:
    total = 0
    for row in m:
        total += sum(row, 10) * max(row)
    return total


def letters(text: Any) -> Any:
    counts = np.zeros(26, np.int64)
    for ch in text:
        if ord("a") <= ch <= ord("z"):
            counts[ch - ord("a")] += 1
    return counts


def nearest(m: Any) -> Any:
    best = np.zeros(m.shape[0])
    for i in range(m.shape[0]):
        least = np.finfo(m.dtype).max
        for j in range(m.shape[0]):
            if j != i:
                least = min(least, abs(m[i, 0] - m[j, 0]))
        best[i] = least
    return best


def filled(x: Any, n: Any) -> Any:
    total = np.zeros(3)
    for k in range(n):
        row = np.full(3, x[k] / 2)
        row[k % 3] = 1.0
        ones = np.full(3, 1, dtype=np.float32)
        whole = np.full(3, k)
        for j in range(3):
            total[j] += row[j] * whole[j] + ones[j]
    return total


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (rows, (M,)),
        (rows, (COUNTS * 1.5,)),
        (row_of_rows, (M,)),
        (row_of_rows, (COUNTS,)),
        (letters, (np.frombuffer(b"some words, 1 2 3", np.uint8).astype(np.int64),)),
        (nearest, (M,)),
        (filled, (M[0], 5)),
        (filled, (COUNTS[0], 3)),
    ],
)
def test_like_python(like_python: Any, function: Any, args: Any) -> None:
    scripted = like_python(function, *args)
    assert str(scripted.compiled.captured).count("= loops(") == 1
