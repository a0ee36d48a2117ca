"""One source, many CPUs: a row for each, and the machine code of a kernel on each.

Knows the rows by what is read of them; who compiled and timed them is not its business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from nbcomp.display.listing import commented
from nbcomp.display.view.reads import CompiledKernel
from nbcomp.display.view.words import seconds
from nbcomp.measure.timing import Timing
from nbcomp.origin import Listing

HEAD = ("CPU", "", "vectors", "instructions in loops", "time", "of this machine's", "note")


class Program(Protocol):
    """A program for one CPU."""

    @property
    def kernels(self) -> tuple[CompiledKernel, ...]: ...


class Cpu(Protocol):
    """What is read of a row; `compiled` is None where there is no code."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def compiled(self) -> Program | None: ...
    @property
    def vector_bits(self) -> int: ...
    @property
    def in_loops(self) -> int: ...
    @property
    def timing(self) -> Timing | None: ...
    @property
    def same(self) -> bool: ...
    @property
    def note(self) -> str: ...


@dataclass(frozen=True)
class CpuKernel:
    """One kernel on one CPU."""

    name: str
    note: str
    listing: Listing


def cpu_cells(cpus: Iterable[Cpu]) -> list[tuple[str, ...]]:
    """The cells of each CPU under `HEAD`; the first is this machine."""
    rows = list(cpus)
    own = rows[0].timing if rows else None
    return [_cells(row, own) for row in rows]


def _cells(row: Cpu, own: Timing | None) -> tuple[str, ...]:
    width = "scalable" if row.vector_bits < 0 else f"{row.vector_bits} bits"
    time = seconds(row.timing.median) if row.timing else ""
    factor = f"{row.timing.median / own.median:.2f}×" if row.timing and own else ""
    return (
        row.name,
        row.title,
        width if row.vector_bits else "none",
        f"{row.in_loops:,}" if row.compiled else "",
        time,
        factor,
        row.note if row.same else f"WRONG ANSWER {row.note}".strip(),
    )


def cpu_name(row: Cpu) -> str:
    """A CPU by its short and its long name."""
    return f"{row.name} ({row.title})"


def on_each(cpus: Iterable[Cpu], kernel: str) -> Iterator[CpuKernel]:
    """The machine code of a kernel on every CPU that has some."""
    for row in cpus:
        for found in row.compiled.kernels if row.compiled else ():
            if found.name == kernel:
                listing = commented(found.listing("asm"))
                yield CpuKernel(cpu_name(row), row.note, listing)
