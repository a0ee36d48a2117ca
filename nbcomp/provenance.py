"""From the user's lines to instructions and back: listings of every level, and tables of them.

`listing` gives the text of a level line by line, each with the user's places and the compiler's
construct it came from; `Provenance` is the table of all machine instructions and `instruction_mix`
what they do.  Knows compiled functions; it must not know how anything is shown.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from nbcomp.graph.ir import Graph
from nbcomp.graph.printer import graph_lines
from nbcomp.loop.grammar import Kernel
from nbcomp.loop.printer import kernel_lines
from nbcomp.origin import Construct, Line, Listing
from nbcomp.record import Location
from nbcomp.target.base import Code

LEVELS = ("source", "graph", "loop", "llvm", "asm")


class CompiledKernel(Protocol):
    """What is read of a kernel."""

    @property
    def name(self) -> str: ...
    @property
    def kernel(self) -> Kernel: ...
    @property
    def code(self) -> Code: ...


class Compiled(Protocol):
    """What is read of a compiled function."""

    @property
    def source(self) -> str: ...
    @property
    def location(self) -> Location | None: ...
    @property
    def captured(self) -> Graph: ...
    @property
    def graph(self) -> Graph: ...


def listing(compiled: Compiled, kernel: CompiledKernel | None, level: str) -> Listing:
    """The text of a level, line by line.

    "source" and "graph" (after all passes) are the whole function's, for `kernel` None; "loop",
    "llvm" (after LLVM's passes), "llvm-before" and "asm" are one kernel's.  Raises ValueError for
    another level, or one the target does not have.
    """
    if kernel is None:
        if level == "source":
            return Listing(level, tuple(_source(compiled)))
        if level == "graph":
            lines = graph_lines(compiled.graph)
            return Listing(level, tuple(Line(text, places) for text, places in lines))
        raise ValueError(f"no level {level!r} of a whole function: source or graph")
    return kernel_listing(kernel, level)


def kernel_listing(kernel: CompiledKernel, level: str) -> Listing:
    """One of the levels below the graph: see `listing`."""
    if level == "loop":
        return Listing(level, tuple(Line(*line) for line in kernel_lines(kernel.kernel)))
    return kernel.code.listing(level)


def _source(compiled: Compiled) -> Iterator[Line]:
    """The user's function, each line with the places that begin on it."""
    where = compiled.location
    locations = (node.location for node in compiled.captured.nodes)
    every = dict.fromkeys(p for location in locations if location for p in location.every())
    for number, text in enumerate(compiled.source.splitlines(), where.line if where else 1):
        here = (p for p in every if where and (p.file, p.line) == (where.file, number))
        yield Line(text, tuple(here))


# ------------------------------------------------------------------------------------- the tables


@dataclass(frozen=True)
class Row:
    """One machine instruction: its kernel, its text, and where it comes from.

    lines: numbers of the user's lines.  construct: the name of what the compiler added; empty for
    the user's expression itself.  in_loop: whether it can run more than once in a call.
    """

    kernel: str
    text: str
    in_loop: bool
    lines: tuple[int, ...]
    construct: Construct
    kind: str
    places: tuple[Location, ...]

    @property
    def mapped(self) -> bool:
        """Whether it is known where this comes from."""
        return bool(self.lines or self.construct)


class Provenance:
    """The machine instructions of a compiled function, in order.

    Iterating gives `Row`s; `mapped` is the share of those in loops that are known to come from a
    line of the user's or a named construct of the compiler.
    """

    columns = ("kernel", "text", "in_loop", "lines", "construct", "kind")

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = tuple(rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Row:
        return self.rows[index]

    @property
    def in_loops(self) -> Provenance:
        """Only the instructions in loops."""
        return Provenance(row for row in self.rows if row.in_loop)

    @property
    def mapped(self) -> float:
        """The share of the instructions in loops that are mapped; 1 if there are none."""
        loops = self.in_loops.rows
        return sum(row.mapped for row in loops) / len(loops) if loops else 1.0

    @property
    def kernels(self) -> dict[str, Provenance]:
        """The same, kernel by kernel."""
        names = dict.fromkeys(row.kernel for row in self.rows)
        return {name: Provenance(r for r in self.rows if r.kernel == name) for name in names}

    def of_line(self, number: int) -> Provenance:
        """What a line of the user's became."""
        return Provenance(row for row in self.rows if number in row.lines)

    def counts(self) -> Counter[str]:
        """How many instructions in loops each construct has; "" is the user's expressions."""
        return Counter(str(row.construct) for row in self.in_loops)

    def to_dicts(self) -> list[dict[str, object]]:
        """One dict per instruction, plain data: what a data frame is made from."""
        return [
            {
                name: str(v) if isinstance(v := getattr(row, name), Construct) else v
                for name in self.columns
            }
            for row in self.rows
        ]

    def to_csv(self, path: str | Path) -> None:
        """Write the table; the lines of an instruction are separated by spaces."""
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            for row in self.to_dicts():
                lines = row["lines"]
                assert isinstance(lines, tuple)
                writer.writerow([*({**row, "lines": " ".join(map(str, lines))}).values()])

    def __repr__(self) -> str:
        loops = len(self.in_loops)
        head = (
            f"{len(self.rows):,} instructions, {loops:,} in loops, {self.mapped:.1%} of them mapped"
        )
        shown = [_words(row) for row in self.in_loops.rows[:SHOWN]] if loops else []
        if loops > SHOWN:
            shown.append(f"… and {loops - SHOWN:,} more")
        return "\n".join([head, *shown])


SHOWN = 20  # rows in the repr


def _words(row: Row) -> str:
    where = f"line {', '.join(map(str, row.lines))}" if row.lines else ""
    return f"{row.kernel:<16} {row.text:<52} {', '.join(filter(None, (where, row.construct)))}"


def provenance(kernels: Iterable[CompiledKernel]) -> Provenance:
    """The table of the instructions of some kernels.  Raises ValueError if they have none."""
    return Provenance(
        Row(
            kernel.name,
            " ".join(line.text.split()),
            line.in_loop,
            line.numbers,
            line.construct,
            line.kind,
            line.places,
        )
        for kernel in kernels
        for line in kernel.code.listing("asm").instructions
    )


@dataclass(frozen=True)
class Mix:
    """What the instructions of a kernel do: how many of each kind, in loops and in all.

    vector_bits: the widest vectors in the loops; 0: none, -1: as wide as the machine has them.
    loads counts memory operands of arithmetic, too; spills are the accesses to the stack for want
    of registers, in loops.
    """

    kernel: str
    in_loops: dict[str, int]
    all: dict[str, int]
    vector_bits: int
    loads: int
    stores: int
    spills: int

    def __repr__(self) -> str:
        width = "scalable" if self.vector_bits < 0 else f"{self.vector_bits}-bit"
        vectors = f"{width} vectors" if self.vector_bits else "no vectors"
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in self.in_loops.items())
        return f"{self.kernel}: {vectors}; in loops: {kinds or 'nothing'}; {self.spills:,} spills"


def instruction_mix(kernel: CompiledKernel) -> Mix:
    """The kinds of a kernel's instructions, most frequent first."""
    every = kernel.code.listing("asm").instructions
    loops = [line for line in every if line.in_loop]
    widths = [line.width for line in loops]
    return Mix(
        kernel.name,
        dict(Counter(line.kind for line in loops).most_common()),
        dict(Counter(line.kind for line in every).most_common()),
        -1 if -1 in widths else max(widths, default=0),
        sum(line.reads for line in loops),
        sum(line.kind == "store" for line in loops),
        sum(line.construct == Construct.SPILL for line in loops),
    )
