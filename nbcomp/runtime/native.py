"""The run time's own machine code, compiled once per process: entry, pool and buffer cache.

Two parts: the entry, through which every call passes, with its values in registers; and the rest,
made by LLVM's quickest code generator (a third of the time per instruction).  `library()` gives
both, or None where they cannot be used (another interpreter, an unknown struct layout, no
llvmlite): plans then run from Python.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from nbcomp.runtime import entry_code, layout, memory_code, pool_code, rare_code, size_code
from nbcomp.runtime.emit import PAUSE_DECLARATION, Struct, struct
from nbcomp.runtime.engine import Code, load, target_machine

_ENTRY = ("api", "entry", "vectorcall")
_REST = (
    "api", *layout.RARE, "allocate", "memory", "take", "give", "trim",
    "data_malloc", "data_calloc", "data_realloc", "data_free",
    "pool", "pool_started", "pool_run", "pool_worker", "pool_lock", "pool_unlock",
)  # fmt: skip


class Library:
    """The compiled code with its globals as NumPy structs over the memory they lie in."""

    def __init__(self, entry: Code, rest: Code) -> None:
        self._entry, self._rest = entry, rest
        self._functions: dict[str, Callable[..., Any]] = {}
        self.memory = self._struct("memory", memory_code.MEMORY)
        self.pool = self._struct("pool", pool_code.POOL)
        self.pool_started = self._struct("pool_started", struct(value="i8"))
        table = layout.api_table()[0]
        for name in layout.RARE:
            table[name] = rest[name]
        self._table = table
        self.connect()

    def connect(self, **objects: object) -> None:
        """Put (immortal) objects into the tables of both parts."""
        for name, value in objects.items():
            self._table[name] = id(value)
        for code in (self._entry, self._rest):
            _over(code["api"], layout.API)[...] = self._table

    def __getitem__(self, name: str) -> int:
        return self._entry[name] if name in _ENTRY else self._rest[name]

    def _struct(self, name: str, kind: Struct) -> Any:
        return _over(self._rest[name], kind)

    def function(self, name: str, result: Any, *args: Any, gil: bool = True) -> Callable[..., Any]:
        """A native function for Python, made once; `gil`: it runs with the GIL held."""
        if name not in self._functions:
            kind = (ctypes.PYFUNCTYPE if gil else ctypes.CFUNCTYPE)(result, *args)
            self._functions[name] = kind(self[name])
        return self._functions[name]


def _over(where: int, kind: Struct) -> Any:
    """One struct at an address."""
    memory: Any = (ctypes.c_char * kind.itemsize).from_address(where)
    return np.ndarray((), kind, memory)


def texts() -> tuple[str, str]:
    """The LLVM text of the entry, and of everything else."""
    api = f"@api = global [{layout.API.itemsize} x i8] zeroinitializer, align 64"
    head = [
        api,
        memory_code.GLOBALS,
        pool_code.GLOBALS,
        PAUSE_DECLARATION,
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    ]
    head += size_code.DECLARATIONS
    parts = (rare_code, size_code, memory_code, pool_code)
    rest = [*head, *(text for code in parts for text in code.emit())]
    return "\n".join([api, *entry_code.emit()]), "\n".join(rest)


_lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # a child must not inherit a compilation half done
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )


def library() -> Library | None:
    """The compiled library of this process, or None; the first call takes some 30 ms."""
    with _lock:
        return _library()


def loaded() -> Library | None:
    """The library if it has been compiled already."""
    return _library() if _library.cache_info().currsize else None


def prefetch() -> None:
    """Compile the library on another thread, while this one still captures the first program."""
    if layout.trusted() and not _library.cache_info().currsize:
        threading.Thread(target=library, name="nbcomp-native").start()


@cache
def _library() -> Library | None:
    if not layout.trusted():
        return None
    entry, rest = texts()
    try:
        careful = load(entry, _ENTRY, target_machine(1))
        quick = load(rest, _REST, target_machine(0))
    except ImportError:  # no llvmlite
        return None
    made = Library(careful, quick)
    for attach in _parts:
        attach(made)
    return made


_parts: list[Callable[[Library], None]] = []


def part(attach: Callable[[Library], None]) -> None:
    """Call this with the library as soon as it is compiled."""
    with _lock:  # not while the list is being gone through
        _parts.append(attach)
        made = loaded()
        if made is not None:
            attach(made)
