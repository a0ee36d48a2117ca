"""What is made of an array once and kept beside it: weights in the order in which loops want them.

The object that holds the array empties its dict of such things whenever the array is written to or
handed out.  As long as somebody else has the array he may write to it without being seen, so that
it is compared with a copy at every call.  Knows such holders; not what is made, nor what for.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from nbcomp.runtime.plan import KEPT, Kept

Array = np.ndarray[Any, np.dtype[Any]]


class _Holder:
    __slots__ = ("array",)

    def __init__(self) -> None:
        self.array = np.empty(1)


def _references(holder: object, name: str) -> int:
    """References to the array in an attribute, as this counts them."""
    return sys.getrefcount(getattr(holder, name))


ALONE = _references(_Holder(), "array")


def value(kept: Kept, holder: Any) -> Array:
    """What is made of the array as it is now, made anew only where that may have changed."""
    table: dict[Any, Any] | None = getattr(holder, KEPT)
    if table is None:  # compiled code writes to it
        return made(kept, getattr(holder, kept.array))
    if kept.key in table:
        found: Array = table[kept.key]
        return found
    alone = not is_shared(holder, kept.array)
    array = getattr(holder, kept.array)
    pair: tuple[Array | None, Array | None] = table.pop((kept.key,), (None, None))
    seen, result = pair
    if seen is None or not _identical(seen, array):
        result = made(kept, array)
        seen = None if alone else array.copy()
    assert result is not None
    if alone:
        table[kept.key] = result
    else:
        table[(kept.key,)] = seen, result
    return result


def is_shared(holder: object, name: str) -> bool:
    """Whether anybody else may have the array in an attribute of an object, or memory of it."""
    if _references(holder, name) > ALONE:
        return True
    base = getattr(holder, name).base
    if base is None:
        return False
    # The array is a view: of memory that nobody else has, if all its owner is there for is this.
    return type(base) is not np.ndarray or base.base is not None or sys.getrefcount(base) > 3


def made(kept: Kept, array: Array) -> Array:
    """What is made of an array, in memory that vectors are read from at once."""
    result: Array = kept.make(array)
    block = np.empty(result.nbytes + 64, np.uint8)
    start = -block.ctypes.data % 64
    aligned = block[start : start + result.nbytes].view(result.dtype).reshape(result.shape)
    aligned[...] = result
    return aligned


def _identical(one: Array, other: Array) -> bool:
    """Whether two arrays have the same bits."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    whole = np.ascontiguousarray(other)
    return bool(np.array_equal(one.reshape(-1).view(np.uint8), whole.reshape(-1).view(np.uint8)))
