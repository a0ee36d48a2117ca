"""LLVM IR as text: a small builder of SSA instructions over scalars and fixed vectors.

Text is written directly because LLVM's own parser is much faster than building objects for it in
Python.  Knows instructions and types, not kernels; `scalars` and `elementary` say what a scalar
function becomes, `codegen` what a loop becomes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from nbcomp.types import DType

_ELEMENT = {"b": "i1", "f2": "half", "f4": "float", "f8": "double"}


def element_type(dtype: DType) -> str:
    """The LLVM type of a value of this dtype in a register: bool is i1, float16 is half."""
    kind = dtype.kind
    if kind == "b":
        return "i1"
    if kind == "f":
        return _ELEMENT[f"f{dtype.itemsize}"]
    return f"i{dtype.itemsize * 8}"


@dataclass(frozen=True)
class Value:
    """An SSA value or literal: its text, LLVM element type and number of lanes (0: a scalar)."""

    text: str
    element: str
    lanes: int = 0

    @property
    def type(self) -> str:
        """The LLVM type."""
        return f"<{self.lanes} x {self.element}>" if self.lanes else self.element

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


def float_literal(value: float, element: str) -> str:
    """An exact LLVM literal (hexadecimal double form; half has its own)."""
    if element == "half":
        return f"0xH{np.float16(value).view(np.uint16):04X}"
    as_double = np.float64(np.float32(value)) if element == "float" else np.float64(value)
    return f"0x{as_double.view(np.uint64):016X}"


@dataclass(frozen=True)
class Ahead:
    """The end of the block in front of a loop: where goes what is the same in every iteration."""

    block: str
    lines: list[str] = field(default_factory=list)


class Builder:
    """Collects the lines of one function body; every instruction gets `location`, a metadata id."""

    def __init__(self) -> None:
        self._lines: list[str | Ahead] = []
        self.loops: list[Ahead] = []  # around the place that is being written
        self._depths: dict[str, int] = {}  # of values that were made in loops: how many there were
        self.declarations: dict[str, str] = {}  # intrinsic name -> declare line
        self.location = ""  # e.g. ", !dbg !12"
        self.features: frozenset[str] = frozenset()  # of the target, LLVM's names: "avx512f", ...
        self._next = 0

    def name(self) -> str:
        """A fresh SSA name."""
        self._next += 1
        return f"%{self._next}"

    def emit(self, text: str, element: str, lanes: int = 0) -> Value:
        """`%n = text`, a value of the given type."""
        name, line = self._instruction(text)
        self._lines.append(line)
        self.made(name, len(self.loops))
        return Value(name, element, lanes)

    def emit_ahead(self, depth: int, text: str, element: str, lanes: int = 0) -> Value:
        """The same in front of the loop that is within `depth` others."""
        name, line = self._instruction(text)
        self.loops[depth].lines.append(line)
        self.made(name, depth)
        return Value(name, element, lanes)

    def _instruction(self, text: str) -> tuple[str, str]:
        self._next += 1
        name = f"%v.{self._next}"  # the dot keeps it apart from the user's own names
        return name, f"  {name} = {text}{self.location}"

    def made(self, name: str, depth: int) -> None:
        """Note in how many loops a value was made."""
        if depth:
            self._depths[name] = depth

    def depth(self, value: Value) -> int:
        """In how many loops a value was made."""
        return self._depths.get(value.text, 0)

    def ahead(self, block: str) -> Ahead:
        """The place in front of a loop that begins now, at the end of this block."""
        place = Ahead(block)
        self._lines.append(place)
        return place

    @property
    def lines(self) -> list[str]:
        """The whole text so far."""
        parts = ([p] if isinstance(p, str) else p.lines for p in self._lines)
        return [line for part in parts for line in part]

    def effect(self, text: str) -> None:
        """An instruction without a result."""
        self._lines.append(f"  {text}{self.location}")

    def label(self, name: str) -> None:
        """Start a basic block."""
        self._lines.append(f"{name}:")

    def constant(self, value: object, element: str, lanes: int = 0) -> Value:
        """A literal, splat over the lanes."""
        if element in ("half", "float", "double"):
            text = float_literal(float(value), element)  # type: ignore[arg-type]
        elif element == "i1":
            text = "true" if value else "false"
        else:
            text = str(int(value))  # type: ignore[call-overload]
        return Value(f"splat ({element} {text})" if lanes else text, element, lanes)

    def splat(self, value: Value, lanes: int) -> Value:
        """A scalar in all lanes, made outside of the loops in which it does not change."""
        if value.lanes or not lanes:
            return value
        if not value.text.startswith("%"):
            return Value(f"splat ({value})", value.element, lanes)
        depth = self.depth(value)
        emit = self.emit if depth == len(self.loops) else partial(self.emit_ahead, depth)
        zero = f"<{lanes} x {value.element}>"
        one = emit(f"insertelement {zero} poison, {value}, i64 0", value.element, lanes)
        return emit(
            f"shufflevector {one}, {zero} poison, <{lanes} x i32> zeroinitializer",
            value.element,
            lanes,
        )

    def intrinsic(self, name: str, *args: Value, element: str = "", suffix: str = "") -> Value:
        """Call `llvm.<name>` on values of one type; the first gives the overload suffix."""
        first = args[0]
        lanes = first.lanes
        element = element or first.element
        mangle = suffix or _mangle(first.element, lanes)
        full = f"llvm.{name}.{mangle}"
        result = Value("", element, lanes).type
        self.declare(full, result, *(a.type for a in args))
        return self.emit(f"call {result} @{full}({', '.join(map(str, args))})", element, lanes)

    def declare(self, name: str, result: str, *types: str) -> None:
        """Declare a function once."""
        self.declarations.setdefault(name, f"declare {result} @{name}({', '.join(types)})")


def _mangle(element: str, lanes: int) -> str:
    short = {"half": "f16", "float": "f32", "double": "f64"}.get(element, element)
    return f"v{lanes}{short}" if lanes else short
