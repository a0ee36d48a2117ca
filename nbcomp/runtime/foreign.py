"""Calls of C functions that somebody brought along, as stages of a program.

    int64 call(void **buffers, const int64 *params, int64 begin, int64 end)

passes on pointers, numbers and letters as C does, or all by address as Fortran does.  Integers are
read from `params`, so that they may differ from call to call.  Knows addresses; not what they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from nbcomp.errors import NbcompError
from nbcomp.runtime.engine import Code, load


@dataclass(frozen=True)
class Pointer:
    """The pointer at a position of the stage's buffers."""

    position: int


@dataclass(frozen=True)
class ForeignCall:
    """Machine code for a call: its address, and the numbers it reads from `params`."""

    address: int
    params: tuple[int, ...]


def foreign_call(address: int, arguments: Sequence[Any], by_reference: bool) -> ForeignCall:
    """The code that calls a function with these arguments: pointers (`Pointer`), ints (a C `int`),
    floats (a `double`), letters, scalars of NumPy.

    Raises NbcompError for an argument of another kind.
    """
    writer = _Writer(by_reference)
    passed = [writer.passed(a) for a in arguments]
    lines = [f"  call void %f({', '.join(passed)})", "  ret i64 0", "}"]
    head = [
        "define i64 @call(ptr %buffers, ptr %params, i64 %begin, i64 %end) {",
        f"  %f = inttoptr i64 {address} to ptr",
    ]
    return ForeignCall(
        _loaded("\n".join([*head, *writer.lines, *lines]))["call"], tuple(writer.params)
    )


@cache
def _loaded(text: str) -> Code:
    return load(text, ["call"])


class _Writer:
    """The lines before a call, and the numbers they read."""

    def __init__(self, by_reference: bool) -> None:
        self.by_reference = by_reference
        self.lines: list[str] = []
        self.params: list[int] = []

    def passed(self, value: Any) -> str:
        """An argument as it stands in the call."""
        if isinstance(value, Pointer):
            place = self.emit(f"getelementptr ptr, ptr %buffers, i64 {value.position}")
            return f"ptr {self.emit(f'load ptr, ptr {place}')}"
        kind, text = self.number(value)
        if not self.by_reference:
            return f"{kind} signext {text}" if kind in ("i8", "i16", "i32") else f"{kind} {text}"
        place = self.emit(f"alloca {kind}")
        self.lines.append(f"  store {kind} {text}, ptr {place}")
        return f"ptr {place}"

    def number(self, value: Any) -> tuple[str, str]:
        """The LLVM type of a number or a letter, and what stands for it."""
        if isinstance(value, str) and len(value) == 1 and value.isascii():
            return "i8", str(ord(value))
        if isinstance(value, np.float32 | np.float64 | float):
            kind = "float" if isinstance(value, np.float32) else "double"
            return kind, f"0x{np.float64(value).view(np.uint64):016X}"
        if isinstance(value, np.integer):
            return self.integer(int(value), 8 * value.dtype.itemsize)
        if hasattr(value, "__index__") and not isinstance(value, bool | np.bool_):
            return self.integer(value, 32)
        raise NbcompError(
            f"a C function cannot be passed {value!r}: operands, numbers and letters can"
        )

    def integer(self, value: int, bits: int) -> tuple[str, str]:
        """A number of `params`."""
        self.params.append(value)
        place = self.emit(f"getelementptr i64, ptr %params, i64 {len(self.params) - 1}")
        loaded = self.emit(f"load i64, ptr {place}")
        return f"i{bits}", loaded if bits == 64 else self.emit(f"trunc i64 {loaded} to i{bits}")

    def emit(self, instruction: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {instruction}")
        return name
