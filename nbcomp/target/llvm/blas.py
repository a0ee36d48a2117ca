"""Calls of BLAS from generated code, through the function pointers of `scipy.linalg.cython_blas`.

SciPy exports the Fortran interface of the BLAS it ships: every argument by address, 32-bit
integers, column-major.  A row-major product C = A·B is the column-major Cᵀ = Bᵀ·Aᵀ on the same
memory.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import sys
from collections.abc import Callable
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

from nbcomp.errors import Unsupported
from nbcomp.loop.grammar import Call
from nbcomp.loop.library import gemm_layout
from nbcomp.target.llvm.builder import Builder, Value
from nbcomp.target.llvm.pointers import address_of

_ROUTINES = {"float": "sgemm", "double": "dgemm"}


@cache
def address(routine: str) -> int:
    """The address of a BLAS routine, e.g. "sgemm"."""
    return address_of(_cython_blas().__pyx_capi__[routine])


@cache
def _cython_blas() -> Any:
    """`scipy.linalg.cython_blas` by itself: all of `scipy.linalg` takes four times as long."""
    if "scipy.linalg" not in sys.modules and (scipy := importlib.util.find_spec("scipy")):
        for folder in scipy.submodule_search_locations or ():
            for suffix in EXTENSION_SUFFIXES:
                file = Path(folder) / "linalg" / f"cython_blas{suffix}"
                found = importlib.util.spec_from_file_location("cython_blas", file)
                if file.exists() and found and found.loader:
                    module = importlib.util.module_from_spec(found)
                    found.loader.exec_module(module)
                    return module
    return importlib.import_module("scipy.linalg.cython_blas")


def symbol(routine: str) -> str:
    """The name generated code calls it by."""
    return f"nbcomp_blas_{routine}"


def symbols(text: str) -> dict[str, int]:
    """What generated code that calls BLAS needs to find: symbols and their addresses."""
    used = [r for r in _ROUTINES.values() if symbol(r) in text]
    return {**{symbol(r): address(r) for r in used}, **(thread_functions() if used else {})}


def routine_for(element: str) -> str:
    """The routine for an LLVM element type.  Raises Unsupported where BLAS has none."""
    if element not in _ROUTINES:
        raise Unsupported(f"BLAS has no product of {element}")
    return _ROUTINES[element]


def emit(
    b: Builder,
    entry: list[str],
    call: Call,
    pointers: list[Value],
    sizes: list[Value],
    integer: Callable[[int], Value],
) -> None:
    """The call of `blas.gemm`: out = a @ b for the last two axes of each buffer, on this core.

    entry: the lines of the function's entry block, which gets the memory for arguments.  sizes:
    rows and columns of the output, where only a part of it is computed.
    """
    out, left, right = call.buffers
    element = {"f4": "float", "f8": "double"}.get(out.dtype.str[1:], "")
    routine = routine_for(element)
    layouts = [gemm_layout(x.shape, x.strides) for x in (left, right, out)]
    if None in layouts or (layouts[2] or (True, 0))[0]:
        raise Unsupported("BLAS needs one contiguous axis in each operand")
    (trans_a, lda), (trans_b, ldb), (_, ldc) = (x for x in layouts if x)
    m, k = left.shape[-2:]
    n = right.shape[-1]
    if any(size >= 1 << 31 for size in (m, n, k, lda, ldb, ldc)):
        raise Unsupported("BLAS takes sizes below 2**31")
    rows, columns = sizes or (integer(m), integer(n))
    frame = _Frame(b, entry, len(entry))
    arguments = [
        frame.char("T" if trans_b else "N"),
        frame.char("T" if trans_a else "N"),
        *(frame.integer(x) for x in (columns, rows, integer(k))),
        frame.real(1.0, element),
        pointers[2].text,
        frame.integer(integer(ldb)),
        pointers[1].text,
        frame.integer(integer(lda)),
        frame.real(0.0, element),
        pointers[0].text,
        frame.integer(integer(ldc)),
    ]
    b.declare(symbol(routine), "void", *["ptr"] * len(arguments))
    threads = _alone(b)
    b.effect(f"call void @{symbol(routine)}({', '.join(f'ptr {a}' for a in arguments)})")
    if threads:
        b.effect(f"call void @{RESTORE}({threads})")


def _alone(b: Builder) -> Value | None:
    """Make OpenBLAS use this core only, and give the number of threads it had.

    The schedule has split the work over the cores already, and OpenBLAS's own threads wait for work
    by spinning, which takes the cores from ours and from everybody else's.
    """
    if not thread_functions():
        return None
    b.declare(symbol("get_threads"), "i32")
    b.declare(symbol("set_threads"), "void", "i32")
    # Only who found more than one thread puts them back: then the last one to do so is right.
    b.declarations[RESTORE] = (
        f"define internal void @{RESTORE}(i32 %n) {{\n"
        "  %more = icmp sgt i32 %n, 1\n  br i1 %more, label %set, label %done\n"
        f"set:\n  call void @{symbol('set_threads')}(i32 %n)\n  br label %done\n"
        "done:\n  ret void\n}"
    )
    had = b.emit(f"call i32 @{symbol('get_threads')}()", "i32")
    b.effect(f"call void @{symbol('set_threads')}(i32 1)")
    return had


RESTORE = "nbcomp_blas_restore_threads"


@cache
def thread_functions() -> dict[str, int]:
    """Addresses that read and set the threads of SciPy's own OpenBLAS; empty for another BLAS."""
    address("sgemm")
    for path in _loaded("openblas"):
        library = ctypes.CDLL(path)
        for prefix in ("scipy_", ""):
            names = {
                k: f"{prefix}openblas_{k[:3]}_num_threads" for k in ("get_threads", "set_threads")
            }
            if "scipy.libs" in path and all(hasattr(library, n) for n in names.values()):
                found = {
                    k: ctypes.cast(getattr(library, n), ctypes.c_void_p) for k, n in names.items()
                }
                return {symbol(k): v.value or 0 for k, v in found.items()}
    return {}


def _loaded(part: str) -> list[str]:
    """Shared libraries of this process whose path has this in it (Linux only)."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return []
    return sorted({line.split()[-1] for line in lines if part in line})


class _Frame:
    """Memory for arguments that are passed by address."""

    def __init__(self, b: Builder, entry: list[str], tag: int) -> None:
        self.b, self.entry, self.tag, self.count = b, entry, tag, 0

    def slot(self, kind: str) -> str:
        self.count += 1
        name = f"%arg{self.tag}.{self.count}"
        self.entry.append(f"  {name} = alloca {kind}")
        return name

    def char(self, letter: str) -> str:
        name = self.slot("i8")
        self.b.effect(f"store i8 {ord(letter)}, ptr {name}")
        return name

    def integer(self, value: Value) -> str:
        name = self.slot("i32")
        narrow = value.text
        if narrow.startswith("%"):
            narrow = self.b.emit(f"trunc {value} to i32", "i32").text
        self.b.effect(f"store i32 {narrow}, ptr {name}")
        return name

    def real(self, value: float, element: str) -> str:
        name = self.slot(element)
        self.b.effect(f"store {self.b.constant(value, element)}, ptr {name}")
        return name
