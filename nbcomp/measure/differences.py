"""Whether two answers are the same, and how far apart they are: kind, dtype, shape, every element.

Knows values; it must not know where they came from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbcomp.errors import an

Array = np.ndarray[Any, np.dtype[Any]]

CHUNK = 1 << 20  # elements compared at a time: the comparison needs a few arrays of that size

# How far a floating-point result may be from NumPy's before it counts as a different answer: orders
# of summation differ, so a few roundings do; a wrong formula is far beyond.
RELATIVE_EPS = 1024
ABSOLUTE_EPS = 64


@dataclass(frozen=True)
class Difference:
    """One output against NumPy's: the largest distance in ulp and in absolute value.

    `scaled` is the absolute distance in ulp of the output's largest magnitude: what remains of the
    difference where values near zero came from subtracting larger ones.  `problem` says what makes
    it a different answer (dtype, shape, a value); empty when it agrees.
    """

    name: str
    ulp: float = 0.0
    absolute: float = 0.0
    problem: str = ""
    scaled: float = 0.0


def ulp_distance(a: Array, b: Array) -> Array:
    """For each element how many representable values lie between a and b (same floating dtype).

    NaN against NaN is 0, NaN against a number is inf; -0.0 and 0.0 are the same point.
    """
    if a.dtype.kind == "c":
        worse: Array = np.maximum(ulp_distance(a.real, b.real), ulp_distance(a.imag, b.imag))
        return worse
    bits = np.dtype(f"u{a.dtype.itemsize}")
    sign = bits.type(1 << (8 * bits.itemsize - 1))

    def key(x: Array) -> Array:
        u = np.ascontiguousarray(x).view(bits)
        ordered: Array = np.where(u & sign, sign - (u & ~sign), sign + u)
        return ordered

    ka, kb = key(a), key(b)
    distance = np.where(ka > kb, ka - kb, kb - ka).astype(np.float64)
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    distance[nan_a & nan_b] = 0.0
    distance[nan_a ^ nan_b] = np.inf
    return distance.reshape(a.shape)


def difference(name: str, ours: Any, theirs: Any, eps: float = 0.0) -> Difference:
    """Compare one value of ours with NumPy's: kind, dtype and shape first, then every element.

    eps: what one rounding may change, where something on the way is rounded to fewer digits than
    the value itself has.
    """
    kind_a, kind_b = (
        type(v).__name__ if not isinstance(v, np.generic) else "scalar" for v in (ours, theirs)
    )
    a, b = np.asarray(ours), np.asarray(theirs)
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return _problem(
            name, f"is {a.dtype}{list(a.shape)} where NumPy gives {b.dtype}{list(b.shape)}"
        )
    if kind_a != kind_b:
        return _problem(name, f"is {an(kind_a)} where NumPy gives {an(kind_b)}")
    if a.dtype.char not in "efdFD":
        equal = bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))
        return Difference(name) if equal else _problem(name, _first(a, b, a != b))
    return _float_difference(name, np.atleast_1d(a), np.atleast_1d(b), eps)


def _float_difference(name: str, a: Array, b: Array, coarse: float) -> Difference:
    """In chunks; a value is judged by its own size and by the largest of the whole output."""
    flat = list(_chunks(a, b))
    if not flat:
        return Difference(name)
    largest = max(float(np.abs(y[np.isfinite(y)]).max(initial=0)) for _, _, y in flat)
    parts = [_chunk_difference(name, x, y, largest, start, a.shape, coarse) for start, x, y in flat]
    eps = float(np.finfo(a.dtype).eps)
    gap = max(d.absolute for d in parts)
    return Difference(
        name,
        ulp=max(d.ulp for d in parts),
        absolute=gap,
        problem=next((d.problem for d in parts if d.problem), ""),
        scaled=gap / (eps * largest) if largest else 0.0,
    )


def _chunks(a: Array, b: Array) -> Iterator[tuple[int, Array, Array]]:
    """Pieces of two arrays of one shape, in C order, with the index of their first element."""
    x, y = a.reshape(-1), b.reshape(-1)
    for start in range(0, x.size, CHUNK):
        yield start, x[start : start + CHUNK], y[start : start + CHUNK]


def _chunk_difference(
    name: str,
    a: Array,
    b: Array,
    largest: float,
    start: int,
    shape: tuple[int, ...],
    coarse: float,
) -> Difference:
    ulp = ulp_distance(a, b)
    finite = np.isfinite(a) & np.isfinite(b)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    gap = np.abs(np.subtract(a, b, where=finite, out=np.zeros(a.shape, wide), dtype=wide))
    size = np.where(finite, np.abs(b), 0).astype(np.float64)
    eps = max(float(np.finfo(a.dtype).eps), coarse)
    allowed = RELATIVE_EPS * eps * size + ABSOLUTE_EPS * eps * largest
    wrong = np.where(finite, gap > allowed, ulp > 0)
    problem = ""
    if wrong.any():
        first = int(np.argmax(wrong))
        where = [int(i) for i in np.unravel_index(start + first, shape)]
        problem = f"differs at {where}: {a[first]!s} where NumPy gives {b[first]!s}"
    return Difference(name, float(ulp.max()), float(gap.max()), problem)


def _problem(name: str, problem: str) -> Difference:
    return Difference(name, math.inf, math.inf, problem)


def _first(a: Array, b: Array, wrong: Array) -> str:
    where = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
    ours, theirs = np.atleast_1d(a)[where], np.atleast_1d(b)[where]
    return f"differs at {list(where)}: {ours!s} where NumPy gives {theirs!s}"


def leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The arrays and numbers in nested tuples, lists and dicts, with a name for each."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{name}[{key!r}]")
    elif isinstance(value, (tuple, list)):
        for i, item in enumerate(value):
            yield from leaves(item, f"{name}[{i}]")
    else:
        yield name, value


def differences(
    ours: Any, theirs: Any, name: str = "result", eps: float = 0.0
) -> tuple[Difference, ...]:
    """Compare two nested results; a different structure is one problem.

    eps: as for `difference`.
    """
    a, b = list(leaves(ours, name)), list(leaves(theirs, name))
    if [n for n, _ in a] != [n for n, _ in b]:
        return (_problem(name, f"has {len(a)} values where NumPy gives {len(b)}"),)
    return tuple(difference(n, x, y, eps) for (n, x), (_, y) in zip(a, b, strict=True))
