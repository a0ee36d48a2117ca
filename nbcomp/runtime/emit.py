"""Structured LLVM text for the run time's own native code: locals, fields, ifs and loops.

The native entry, the pool and the buffer cache are small programs over C structs.  A struct is a
NumPy dtype (`struct`), so that Python fills the very layout the code reads: `u8` fields are
pointers, `i4` and `i8` integers.  Locals are stack slots; the SROA pass turns them into registers.
Knows nothing of plans or Python objects.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

Struct = np.dtype[np.void]

# The spin-loop hint: x86 `pause`, AArch64 `yield` (hint 1); elsewhere nothing.
_PAUSE, PAUSE_DECLARATION = {
    "x86_64": ("@llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"),
    "aarch64": ("@llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
}.get(
    {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine()),
    ("@llvm.donothing()", "declare void @llvm.donothing()"),
)

_TYPES = {"u8": "ptr", "i8": "i64", "i4": "i32", "f8": "double", "u1": "i8"}


def struct(**fields: str) -> Struct:
    """A C struct: name → `u8` (pointer), `i8`, `i4`, `f8` or `u1`."""
    return np.dtype(list(fields.items()), align=True)


def _offset(layout: Struct, name: str) -> tuple[int, str]:
    assert layout.fields is not None
    dtype, offset = layout.fields[name][:2]
    return offset, _TYPES[dtype.str[1:]]


class Value:
    """An SSA value of one function: arithmetic and signed comparisons give new ones."""

    def __init__(self, function: Function, text: str, kind: str) -> None:
        self.function, self.text, self.type = function, text, kind

    def __str__(self) -> str:
        return f"{self.type} {self.text}"

    def _binary(self, op: str, other: Value | int, kind: str = "") -> Value:
        text = other.text if isinstance(other, Value) else str(other)
        if self.type == "ptr" and text == "0":
            text = "null"
        return self.function.value(f"{op} {self.type} {self.text}, {text}", kind or self.type)

    def __add__(self, other: Value | int) -> Value:
        return self._binary("add", other)

    def __sub__(self, other: Value | int) -> Value:
        return self._binary("sub", other)

    def __mul__(self, other: Value | int) -> Value:
        return self._binary("mul", other)

    def __and__(self, other: Value | int) -> Value:
        return self._binary("and", other)

    def __or__(self, other: Value | int) -> Value:
        return self._binary("or", other)

    def __xor__(self, other: Value | int) -> Value:
        return self._binary("xor", other)

    def __rshift__(self, other: Value | int) -> Value:
        return self._binary("lshr", other)

    def is_(self, other: Value | int) -> Value:
        """Equal (bits)."""
        return self._binary("icmp eq", other, "i1")

    def is_not(self, other: Value | int) -> Value:
        """Different (bits)."""
        return self._binary("icmp ne", other, "i1")

    def __lt__(self, other: Value | int) -> Value:
        return self._binary("icmp slt", other, "i1")

    def __gt__(self, other: Value | int) -> Value:
        return self._binary("icmp sgt", other, "i1")

    def __le__(self, other: Value | int) -> Value:
        return self._binary("icmp sle", other, "i1")

    def __ge__(self, other: Value | int) -> Value:
        return self._binary("icmp sge", other, "i1")

    # Pointers

    def at(self, offset: Value | int) -> Value:
        """The pointer this many bytes further."""
        if isinstance(offset, int) and offset == 0:
            return self
        text = str(offset) if isinstance(offset, Value) else f"i64 {offset}"
        if self.text.startswith("@") and isinstance(offset, int):  # a constant, not an instruction
            return Value(self.function, f"getelementptr (i8, ptr {self.text}, {text})", "ptr")
        return self.function.value(f"getelementptr i8, ptr {self.text}, {text}", "ptr")

    def load(self, kind: str, offset: Value | int = 0) -> Value:
        """The value of a type at a byte offset."""
        return self.function.value(f"load {kind}, {self.at(offset)}", kind)

    def store(self, value: Value, offset: Value | int = 0) -> None:
        """Write a value at a byte offset."""
        self.function.effect(f"store {value}, {self.at(offset)}")

    def item(self, index: Value | int, kind: str = "ptr") -> Value:
        """Element `index` of an array of 8-byte values."""
        return self.load(kind, index * 8)

    def set_item(self, index: Value | int, value: Value) -> None:
        """Write element `index` of an array of 8-byte values."""
        self.store(value, index * 8)

    def field(self, layout: Struct, name: str) -> Value:
        """A member of the struct this points at."""
        offset, kind = _offset(layout, name)
        return self.load(kind, offset)

    def address(self, layout: Struct, name: str) -> Value:
        """The address of a member."""
        return self.at(_offset(layout, name)[0])

    def set_field(self, layout: Struct, name: str, value: Value | int) -> None:
        """Write a member."""
        offset, kind = _offset(layout, name)
        self.store(self.function.constant(value, kind), offset)

    # Widths

    def integer(self) -> Value:
        """As i64: a pointer's address, a sign-extended integer."""
        if self.type == "i64":
            return self
        op = "ptrtoint" if self.type == "ptr" else "zext" if self.type in ("i1", "i8") else "sext"
        return self.function.value(f"{op} {self} to i64", "i64")


class Function:
    """One function under construction; blocks end where a jump, return or label says so."""

    def __init__(self, name: str, result: str, linkage: str = "", /, **params: str) -> None:
        self.result, self._lines, self._entry, self._next = result, [""], [""], 0
        self._lines.clear()
        self._entry.clear()
        self._open = True
        arguments = ", ".join(f"{kind} %{n}" for n, kind in params.items())
        self._head = f"define {linkage} {result} @{name}({arguments})"
        self.attributes = ""
        self.params = {n: Value(self, f"%{n}", kind) for n, kind in params.items()}

    def __getitem__(self, name: str) -> Value:
        return self.params[name]

    def text(self) -> str:
        """The finished definition."""
        if self._open:
            self._lines.append("  unreachable")
        head = f"{self._head} {self.attributes} {{\nentry:"
        return "\n".join([head, *self._entry, *self._lines, "}"])

    # Plain instructions

    def fresh(self, stem: str = "v") -> str:
        """A name nobody has."""
        self._next += 1
        return f"{stem}{self._next}"

    def effect(self, text: str) -> None:
        """An instruction without a result; code after a jump is dropped."""
        if self._open:
            self._lines.append(f"  {text}")

    def value(self, text: str, kind: str) -> Value:
        """An instruction with a result."""
        name = f"%{self.fresh()}"
        self.effect(f"{name} = {text}")
        return Value(self, name, kind)

    def constant(self, value: Value | int, kind: str) -> Value:
        """A literal of a type (0 is the null pointer)."""
        if isinstance(value, Value):
            return value
        if kind == "ptr":
            return Value(self, "null", kind)
        return Value(self, ("false", "true")[value] if kind == "i1" else str(value), kind)

    def call(self, callee: str | Value, result: str, *args: Value | int) -> Value:
        """Call a function by name or address; plain integers are i64."""
        values = ", ".join(str(self.constant(a, "i64")) for a in args)
        target = callee.text if isinstance(callee, Value) else f"@{callee}"
        if result == "void":
            self.effect(f"call void {target}({values})")
            return self.constant(0, "i64")
        return self.value(f"call {result} {target}({values})", result)

    def select(
        self, condition: Value, yes: Value | int, no: Value | int, kind: str = "i64"
    ) -> Value:
        """One of two values."""
        a, b = self.constant(yes, kind), self.constant(no, kind)
        return self.value(f"select {condition}, {a}, {b}", kind)

    # Locals

    def local(self, kind: str, initial: Value | int | None = None) -> Local:
        """A mutable variable."""
        name = f"%{self.fresh('local')}"
        self._entry.append(f"  {name} = alloca {kind}")
        variable = Local(Value(self, name, "ptr"), kind)
        if initial is not None:
            variable.set(initial)
        return variable

    def reserve(self, kind: str, count: int) -> Value:
        """A small array on the stack."""
        name = f"%{self.fresh('array')}"
        self._entry.append(f"  {name} = alloca [{count} x {kind}]")
        return Value(self, name, "ptr")

    # Control

    def goto(self, label: str) -> None:
        """Jump."""
        self.effect(f"br label %{label}")
        self._open = False

    def branch(self, condition: Value, yes: str, no: str) -> None:
        """Jump to one of two labels."""
        self.effect(f"br {condition}, label %{yes}, label %{no}")
        self._open = False

    def label(self, name: str) -> None:
        """Start a block, falling through into it."""
        if self._open:
            self.goto(name)
        self._lines.append(f"{name}:")
        self._open = True

    def give(self, value: Value | int | None = None) -> None:
        """Return."""
        text = "ret void" if value is None else f"ret {self.constant(value, self.result)}"
        self.effect(text)
        self._open = False

    def goto_if(self, condition: Value, label: str) -> None:
        """Jump when a condition holds, else go on."""
        after = self.fresh("go")
        self.branch(condition, label, after)
        self.label(after)

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """Run the body when a condition holds."""
        yes, end = self.fresh("then"), self.fresh("end")
        self.branch(condition, yes, end)
        self.label(yes)
        yield
        self.label(end)

    @contextmanager
    def count(self, limit: Value) -> Iterator[Value]:
        """Run the body for 0 … limit - 1; yields the index."""
        index = self.local("i64", 0)
        head, body, end = (self.fresh(s) for s in ("head", "body", "done"))
        self.label(head)
        self.branch(index.get() < limit, body, end)
        self.label(body)
        yield index.get()
        index.set(index.get() + 1)
        self.goto(head)
        self.label(end)

    def switch(self, value: Value, cases: dict[int, str], default: str) -> None:
        """Jump by number."""
        lines = " ".join(f"{value.type} {n}, label %{name}" for n, name in cases.items())
        self.effect(f"switch {value}, label %{default} [ {lines} ]")
        self._open = False

    def pause(self) -> None:
        """Tell the core that this is a spin loop (`PAUSE_DECLARATION` must be in the module)."""
        self.effect(f"call void {_PAUSE}")


class Local:
    """A mutable variable of a function."""

    def __init__(self, pointer: Value, kind: str) -> None:
        self._pointer, self._kind = pointer, kind

    def get(self) -> Value:
        """Its value now."""
        return self._pointer.load(self._kind)

    def set(self, value: Value | int) -> None:
        """Assign."""
        self._pointer.store(self._pointer.function.constant(value, self._kind))

    @property
    def pointer(self) -> Value:
        """Its address."""
        return self._pointer


def fill(layout: Struct, rows: list[dict[str, Any]]) -> np.ndarray[Any, Any]:
    """An array of structs, one per row; members not given are zero."""
    block = np.zeros(max(len(rows), 1), layout)
    for target, row in zip(block, rows, strict=False):
        for name, value in row.items():
            target[name] = value
    return block


def address(block: np.ndarray[Any, Any]) -> int:
    """Where an array's data lies."""
    return int(block.ctypes.data)  # its array interface would describe every field of a struct
