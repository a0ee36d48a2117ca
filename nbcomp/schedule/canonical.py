"""A kernel without the names its author chose: for finding what is known of kernels like it.

Two kernels that differ only in how arrays, values and loops are called have the same `digest`; what
was written for one plays on the other once the names are exchanged.  Sizes, strides, dtypes and the
order of everything count; of a length that is left open its formula, and the power of two that the
length seen is next below: what is fast for ten rows need not be so for a million.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nbcomp.loop.grammar import Affine, Buffer, For, Kernel, Let, Var
from nbcomp.record import Location
from nbcomp.schedule.language import Argument, Schedule, Step
from nbcomp.sizes import Size, Symbol, is_open, substituted, symbols_of


@dataclass(frozen=True)
class Canonical:
    """A kernel as text with names in order of appearance, and those names by the kernel's own."""

    text: str
    names: Mapping[str, str]

    @cached_property
    def digest(self) -> str:
        """What kernels that differ only in names have in common: 24 hexadecimal digits."""
        return hashlib.blake2b(self.text.encode(), digest_size=12).hexdigest()

    def told(self, schedule: Schedule) -> Schedule:
        """A schedule of this kernel in canonical names."""
        return _renamed(schedule, self.names)

    def own(self, schedule: Schedule) -> Schedule:
        """A schedule in canonical names, in those of this kernel."""
        return _renamed(schedule, {new: old for old, new in self.names.items()})


def canonical(kernel: Kernel) -> Canonical:
    """The canonical form of a kernel as it was lowered."""
    writer = _Writer()
    lines = [writer.declared(b) for b in kernel.buffers]
    lines += map(writer.text, kernel.stages)
    return Canonical("\n".join(lines), writer.names)


class _Writer:
    """Writes IR, whatever its classes, from their fields; shared expressions once."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.buffers: set[Buffer] = set()
        self.written: dict[int, str] = {}
        self.symbols: dict[Symbol, Size] = {}  # lengths that are left open

    def name(self, own: str) -> str:
        return self.names.setdefault(own, f"n{len(self.names)}") if own else ""

    def declared(self, b: Buffer) -> str:
        self.buffers.add(b)
        name, alias = self.name(b.name), self.name(b.alias)
        shape, strides = (self.numbers(n) for n in (b.shape, b.strides))
        return f"{name}={b.role} {b.dtype}{shape}{strides}{alias}{b.aligned:d}"

    def numbers(self, values: tuple[Any, ...]) -> Any:
        """Numbers; of those that are left open texts."""
        return tuple(map(self.number, values)) if is_open(values) else values

    def number(self, value: Any) -> Any:
        """A number; of one that is left open its formula, in symbols by order of appearance."""
        if not isinstance(value, Size):
            return value
        for symbol in sorted(symbols_of(value), key=lambda s: s.key):
            if symbol not in self.symbols:
                named = Symbol(f"s{len(self.symbols)}", symbol.hint)
                self.symbols[symbol] = Size({(named,): 1})
        return f"{substituted(value, self.symbols)}~{value.hint.bit_length()}"

    def text(self, value: Any) -> str:
        match value:
            case Buffer():
                return self.name(value.name) if value in self.buffers else self.declared(value)
            case Affine():
                terms = sorted((self.name(v), self.number(f)) for v, f in value.terms)
                return f"{terms}+{self.number(value.constant)}"
            case Size():
                return str(self.number(value))
            case np.generic():
                return f"{value.dtype}:{value!r}"
            case tuple():
                return f"({', '.join(map(self.text, value))})"
            case Location() | None:
                return ""
        return self.node(value) if is_dataclass(value) else str(value)

    def node(self, value: Any) -> str:
        """A statement or an expression; one that was written already by its number."""
        known = self.written.get(id(value))
        if known is not None:
            return known
        parts = [type(value).__name__]
        for field in fields(value):
            held = getattr(value, field.name)
            own = isinstance(value, For | Let | Var) and field.name in ("var", "name")
            parts.append(self.name(held) if own else self.text(held))
        self.written[id(value)] = f"#{len(self.written)}"
        return f"<{' '.join(parts)}>"


def _renamed(schedule: Schedule, names: Mapping[str, str]) -> Schedule:
    longest = sorted(names, key=len, reverse=True)

    def argument(value: Argument) -> Argument:
        return _exchanged(value, names, longest) if isinstance(value, str) else value

    steps = tuple(
        Step(
            step.name,
            tuple(map(argument, step.arguments)),
            tuple((key, argument(value)) for key, value in step.options),
        )
        for step in schedule.steps
    )
    return Schedule(steps)


def _exchanged(word: str, names: Mapping[str, str], longest: list[str]) -> str:
    """A name exchanged; what a step has named after something (`x_packed`, `i_o`) keeps its end."""
    if word in names:
        return names[word]
    for name in longest:
        if word.startswith(f"{name}_"):
            return names[name] + word[len(name) :]
    return word
