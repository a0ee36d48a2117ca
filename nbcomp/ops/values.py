"""Arrays for the operators' samples: every dtype, every kind of shape, the values that break
things.

Used by `Op.samples` and the tests generated from them; nothing is random but through the generator
that is passed in.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nbcomp.types import DType

FLOATS: tuple[DType, ...] = tuple(map(np.dtype, (np.float16, np.float32, np.float64)))
SIGNED: tuple[DType, ...] = tuple(map(np.dtype, (np.int8, np.int16, np.int32, np.int64)))
UNSIGNED: tuple[DType, ...] = tuple(map(np.dtype, (np.uint8, np.uint16, np.uint32, np.uint64)))
BOOL: DType = np.dtype(np.bool_)
DTYPES: tuple[DType, ...] = (BOOL, *SIGNED, *UNSIGNED, *FLOATS)
TYPICAL: tuple[DType, ...] = tuple(map(np.dtype, (np.bool_, np.int32, np.uint8, np.float32)))

SHAPES: tuple[tuple[int, ...], ...] = (
    (),
    (0,),
    (1,),
    (3,),
    (17,),
    (100,),
    (2, 0),
    (5, 37),
    (2, 3, 4),
)
PAIRS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), ()),
    ((0,), (1,)),
    ((17,), ()),
    ((3, 1), (1, 5)),
    ((4,), (2, 3, 4)),
    ((2, 1, 4), (3, 1)),
)


def edges(dtype: Any) -> np.ndarray[Any, Any]:
    """The special values of a dtype: extremes, zeros of both signs, NaN, infinities, subnormals."""
    dt = np.dtype(dtype)
    if dt.kind == "b":
        return np.array([False, True])
    if dt.kind in "iu":
        info = np.iinfo(dt)
        near = [0, 1, 2, 3, 7, info.max, info.max - 1, info.max // 2, info.min, info.min + 1]
        return np.array(near + ([-1, -2, -3, -7] if dt.kind == "i" else []), dt)
    f = np.finfo(dt)
    some = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 10.0, float(f.tiny), float(f.smallest_subnormal)]
    some += [float(f.max), np.inf, 1 - float(f.epsneg), 1 + float(f.eps), 100.25]
    return np.array([s * v for v in some for s in (1, -1)] + [np.nan], dt)


def ordinary(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Random values of moderate size, both signs."""
    dt = np.dtype(dtype)
    if dt.kind == "b":
        return rng.random(shape) < 0.5
    if dt.kind in "iu":
        low = -9 if dt.kind == "i" else 0
        return rng.integers(low, 10, shape).astype(dt)
    return (4 * rng.standard_normal(shape)).astype(dt)


def mixed(rng: np.random.Generator, dtype: Any, size: int = 37) -> np.ndarray[Any, Any]:
    """All edge values and ordinary ones, shuffled."""
    special = edges(dtype)
    rest = ordinary(rng, dtype, (max(0, size - special.size),))
    return rng.permutation(np.concatenate([special, rest])[:size])


def castable(rng: np.random.Generator, source: DType, target: DType) -> np.ndarray[Any, Any]:
    """Values whose cast C defines: for float to integer those within the target's range."""
    array = mixed(rng, source)
    if source.kind != "f" or target.kind not in "iu":
        return array
    whole: Any = target
    info = np.iinfo(whole)
    with np.errstate(all="ignore"):
        wide = array.astype(np.float64)
        # 2**63 itself is a float64, but no int64
        inside = (np.trunc(wide) >= float(info.min)) & (np.trunc(wide) < float(info.max))
    return np.where(inside, array, np.zeros((), source))
