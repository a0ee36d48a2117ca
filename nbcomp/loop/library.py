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
    """A library routine: its name and its meaning, given the arrays (outputs first) and options."""

    name: str
    reference: Callable[[list[np.ndarray[Any, Any]], dict[str, Any]], None]


def _gemm(arrays: list[np.ndarray[Any, Any]], options: dict[str, Any]) -> None:
    out, a, b = arrays
    np.matmul(a, b, out=out)


LIBRARY = {"blas.gemm": Routine("blas.gemm", _gemm)}
