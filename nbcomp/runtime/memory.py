"""Large buffers: outputs and arenas of 256 KB or more are 64-byte aligned and recycled when freed.

A fresh 64 MB output costs more in page faults than its arithmetic.  The arrays are ordinary
ndarrays that own their data: NumPy gives it back through our memory handler when they die.  The
cache is bounded; `trim()` empties it, `statistics()` shows it.  The machinery is native
(`memory_code`); this is its face.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from nbcomp.runtime.emit import address, fill
from nbcomp.runtime.layout import LARGE as LARGE_ARRAY
from nbcomp.runtime.layout import LARGE_BYTES, OUTPUT, SMALL
from nbcomp.runtime.native import Library, library, part
from nbcomp.types import DType, TensorType

LARGE = LARGE_BYTES  # from here on outputs are aligned to 64 bytes and recycled
ALIGNMENT = 64
_LIMIT = 512 << 20  # bytes kept for reuse at most, and at most 1/16 of the machine's memory


class _Handler(ctypes.Structure):
    """`PyDataMem_Handler`, version 1 (numpy/ndarraytypes.h)."""

    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    ]


@dataclass(frozen=True)
class Statistics:
    """The cache: bytes and blocks waiting for reuse, bytes lent out, hits and misses."""

    bytes: int
    blocks: int
    lent: int
    hits: int
    misses: int
    limit: int


def attach(native: Library) -> None:
    """Connect a freshly compiled library: its handler capsule and its limit."""
    names = ("malloc", "calloc", "realloc", "free")
    handler = _Handler(b"nbcomp", 1, None, *(native[f"data_{name}"] for name in names))
    name = ctypes.create_string_buffer(b"mem_handler")
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    new = make(("PyCapsule_New", ctypes.pythonapi))
    capsule = new(ctypes.addressof(handler), ctypes.cast(name, ctypes.c_char_p), None)
    for immortal in (handler, name, capsule):  # arrays may outlive every module
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(immortal))
    native.connect(handler=capsule)
    native.memory["limit"] = default_limit()


def default_limit() -> int:
    """Bytes the cache may hold unless told otherwise."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows; systems that do not tell
        return _LIMIT
    return min(_LIMIT, total // 16) if total > 0 else _LIMIT


def set_limit(limit: int) -> None:
    """Let the cache hold at most this many bytes (0: recycle nothing), and empty it."""
    native = library()
    if native is not None:
        native.memory["limit"] = max(0, limit)
    trim()


def trim() -> None:
    """Give every cached block back to the system."""
    native = library()
    if native is not None:
        native.function("trim", None)()


def statistics() -> Statistics:
    """The state of the cache."""
    native = library()
    if native is None:
        return Statistics(0, 0, 0, 0, 0, 0)
    state = {
        name: int(native.memory[name]) for name in ("bytes", "lent", "hits", "misses", "limit")
    }
    return Statistics(blocks=int(native.memory["count"]), **state)


def describe(
    dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...] | None = None
) -> tuple[dict[str, int], list[np.ndarray[Any, Any]]]:
    """A new array for native code: a row of `layout.OUTPUT`, and the blocks that it points to."""
    size = TensorType(dtype, shape).nbytes
    dims = np.array(shape or (0,), np.int64)
    blocks = [dims]
    row = {
        "kind": LARGE_ARRAY if size >= LARGE else SMALL,
        "descr": id(native_dtype(dtype)),
        "nd": len(shape),
        "dims": address(dims),
        "bytes": size,
    }
    if strides is not None:
        blocks.append(np.array(strides or (0,), np.int64))
        row["strides"] = address(blocks[1])
    return row, blocks


def native_dtype(dtype: DType) -> DType:
    """NumPy's own immortal descriptor of a builtin dtype in native byte order."""
    return np.dtype(dtype.char)


def empty(
    dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...] | None = None
) -> np.ndarray[Any, Any]:
    """A new, uninitialised array; 64-byte aligned (and then recycled) when it has 256 KB or more.

    strides: bytes, a permutation of C order without gaps.  Raises MemoryError, as NumPy words it.
    """
    native = library()
    if native is not None:
        row, blocks = describe(dtype, shape, strides)
        output = fill(OUTPUT, [row])
        array: np.ndarray[Any, Any] = _allocate(native)(address(output))
        del blocks
        return array
    # Without a handler of ours an aligned array is a view of a larger one.
    size = TensorType(dtype, shape).nbytes
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -address(raw) % ALIGNMENT
    return np.ndarray(shape, dtype, raw, start, strides)


@cache
def _allocate(native: Library) -> Any:
    return native.function("allocate", ctypes.py_object, ctypes.c_void_p)


part(attach)
