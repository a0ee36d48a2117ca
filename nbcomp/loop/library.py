"""Library routines a kernel may `Call`, each with its meaning in NumPy.

A routine works on whole buffers, outputs first.  Its native form is the target's business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Routine:
    """A library routine: its name and its meaning, given the arrays (outputs first) and options.

    part: the arrays it works on for a box of the output: (start, length) along its last two axes.
    """

    name: str
    reference: Callable[[list[np.ndarray[Any, Any]], dict[str, Any]], None]
    part: Callable[[list[np.ndarray[Any, Any]], list[tuple[int, int]]], list[np.ndarray[Any, Any]]]


def gemm_layout(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[bool, int] | None:
    """(transposed, leading dimension) of the last two axes as a row-major BLAS operand, or None.

    BLAS wants one of the two axes contiguous, the other's stride at least its length, and 32 bits
    for each of these numbers.
    """
    (rows, columns), (down, across) = shape[-2:], strides[-2:]
    if any(n >= 1 << 31 for n in (rows, columns, down, across)):
        return None
    if (across == 1 or columns == 1) and (down >= max(columns, 1) or rows == 1):
        return False, max(down if rows > 1 else columns, columns, 1)
    if (down == 1 or rows == 1) and (across >= max(rows, 1) or columns == 1):
        return True, max(across if columns > 1 else rows, rows, 1)
    return None


def _gemm(arrays: list[np.ndarray[Any, Any]], options: dict[str, Any]) -> None:
    out, a, b = arrays
    np.matmul(a, b, out=out)


def _gemm_part(
    arrays: list[np.ndarray[Any, Any]], box: list[tuple[int, int]]
) -> list[np.ndarray[Any, Any]]:
    out, a, b = arrays
    rows, columns = (slice(start, start + count) for start, count in box)
    return [out[..., rows, columns], a[..., rows, :], b[..., :, columns]]


LIBRARY = {"blas.gemm": Routine("blas.gemm", _gemm, _gemm_part)}
