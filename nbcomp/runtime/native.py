"""The run time's own machine code: the entry, the pool and the buffer cache, compiled once per process.

`library()` gives it, or None where it cannot be used (another interpreter, an unknown struct layout, no
llvmlite): callers then run plans from Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from nbcomp.runtime import entry_code, layout, memory_code, pool_code
from nbcomp.runtime.emit import PAUSE_DECLARATION, struct
from nbcomp.runtime.engine import Code, load, target_machine

_PASSES = ("sroa", "simplify_cfg", "instruction_combine")
_NAMES = (
    "api", "entry", "allocate", "memory", "take", "give", "trim",
    "data_malloc", "data_calloc", "data_realloc", "data_free",
    "pool", "pool_started", "pool_run", "pool_worker", "pool_lock", "pool_unlock",
)  # fmt: skip


class Library:
    """The compiled code with its globals as NumPy structs over the memory they lie in."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self.api = self._struct("api", layout.API)
        self.memory = self._struct("memory", memory_code.MEMORY)
        self.pool = self._struct("pool", pool_code.POOL)
        self.pool_started = self._struct("pool_started", struct(value="i8"))
        self.api[...] = layout.api_table()[0]

    def __getitem__(self, name: str) -> int:
        return self._code[name]

    def _struct(self, name: str, kind: Any) -> Any:
        memory = (ctypes.c_char * kind.itemsize).from_address(self._code[name])
        return np.frombuffer(memory, kind, 1).reshape(())

    def function(self, name: str, result: Any, *args: Any, gil: bool = True) -> Callable[..., Any]:
        """A native function for Python; `gil`: it runs with the GIL held."""
        kind = (ctypes.PYFUNCTYPE if gil else ctypes.CFUNCTYPE)(result, *args)
        return kind(self._code[name])


def text() -> str:
    """The LLVM text of everything."""
    head = [
        f"@api = global [{layout.API.itemsize} x i8] zeroinitializer, align 64",
        memory_code.GLOBALS,
        pool_code.GLOBALS,
        PAUSE_DECLARATION,
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    ]
    return "\n".join([*head, *entry_code.emit(), *memory_code.emit(), *pool_code.emit()])


@cache
def library() -> Library | None:
    """The compiled library of this process, or None."""
    if not layout.trusted():
        return None
    try:
        code = load(text(), _NAMES, target_machine(1), _PASSES)
    except ImportError:
        return None
    return Library(code)
