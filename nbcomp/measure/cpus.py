"""One source, many CPUs: the same program for each, those that run here checked and timed in turn.

Knows compilations and the names of CPUs; it must not know what makes them differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from nbcomp.compiled import Compiled
from nbcomp.errors import NbcompError
from nbcomp.measure.arguments import kept, restore, twin
from nbcomp.measure.comparison import Wanted, coarsest
from nbcomp.measure.timing import BUSY, Call, Neighbours, Timing, alternate, quietly
from nbcomp.pipeline import compile
from nbcomp.provenance import instruction_mix
from nbcomp.target.llvm.cpus import CPUS

NAMES = tuple(named.name for named in CPUS)
TURNS = 12  # of each CPU: what disturbs comes and goes
PATIENCE = 0.2  # of the time at most for one call of one CPU's code


@dataclass(frozen=True)
class CpuRow:
    """The program for one CPU: its timing where it runs here, else why there is none.

    vector_bits: of the widest vectors in its loops; 0: none, -1: as wide as the machine has them.
    in_loops: machine instructions there.  same: it gives NumPy's answer, as far as is known.
    """

    name: str
    title: str
    compiled: Compiled | None
    vector_bits: int
    in_loops: int
    timing: Timing | None = None
    same: bool = True
    note: str = ""


@dataclass(frozen=True)
class CpuTable:
    """The rows, this machine's first; others: the cores that other programs kept busy meanwhile."""

    function: str
    rows: tuple[CpuRow, ...]
    others: float = 0.0

    def __iter__(self) -> Iterator[CpuRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> CpuRow:
        return next(row for row in self.rows if row.name == name)

    def __repr__(self) -> str:
        first = self.rows[0].timing
        table = [_cells(row, first) for row in self.rows]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in table]
        notes = [f"{row.name}: {row.note}" for row in self.rows if row.note]
        if self.others > BUSY:
            notes.append(f"other programs kept {self.others:.1f} cores busy: times are uncertain")
        head = f"{self.function} on {len(self.rows)} CPUs"
        return "\n".join([head, *(line.rstrip() for line in lines), *notes])


def _cells(row: CpuRow, first: Timing | None) -> tuple[str, ...]:
    width = "scalable" if row.vector_bits < 0 else f"{row.vector_bits}-bit"
    return (
        row.name,
        row.title,
        f"{width} vectors" if row.vector_bits else "no vectors",
        f"{row.in_loops:,} instructions in loops",
        f"{row.timing.median * 1e6:,.1f} µs" if row.timing else "not run",
        f"{row.timing.median / first.median:.2f}×" if row.timing and first else "",
    )


def cpus(function: Callable[..., Any], *args: Any, **kwargs: Any) -> CpuTable:
    """The function compiled for every CPU there is a name for, timed where this machine can.

    function: a Python function, or one that was compiled.  About five seconds.  Raises what
    compiling it raises.
    """
    compiled = function if isinstance(function, Compiled) else compile(function, *args, **kwargs)
    return compare_cpus(compiled, args, kwargs)


def compare_cpus(
    compiled: Compiled,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    reference: Callable[..., Any] | None = None,
    seconds: float = 5.0,
    names: Sequence[str] = NAMES,
    say: Callable[[str], None] = lambda _: None,
) -> CpuTable:
    """A compiled function for this machine and for the named CPUs, on these arguments.

    Each that runs here is compared with `reference` first, by default the Python function; a wrong
    answer is not timed.  The caller's arrays are left as they are.  Raises ValueError for an
    unknown name, and what the reference raises.
    """
    named = {cpu.name: cpu for cpu in CPUS}
    rows = [_row("host", "this machine", compiled, "")]
    for name in names:
        say(f"compiling for {named[name].title} …")
        notes = filter(None, (named[name].missing, named[name].note))
        try:
            made = compiled.for_cpu(name)
            rows.append(_row(name, named[name].title, made, "; ".join(notes)))
        except NbcompError as error:
            why = str(error).splitlines()[-1]
            rows.append(CpuRow(name, named[name].title, None, 0, 0, note=f"no code: {why}"))
    captured = compiled.capture
    with kept(captured.signature, captured.writes, args, kwargs or {}) as elsewhere:
        python = reference or compiled.function
        eps = coarsest(compiled.captured, compiled.options.precision)
        wanted = Wanted.of(python, args, kwargs, bool(captured.writes), eps, elsewhere)
        neighbours = Neighbours()
        runs = [row.name == "host" or named[row.name].runs for row in rows]
        say("timing those that run here in turn …")
        timed = tuple(_timed(rows, runs, wanted, seconds))
    return CpuTable(compiled.name, timed, neighbours.cores())


def _row(name: str, title: str, compiled: Compiled, note: str) -> CpuRow:
    mixes = [instruction_mix(kernel) for kernel in compiled.kernels]
    widths = [mix.vector_bits for mix in mixes]
    bits = -1 if -1 in widths else max(widths, default=0)
    return CpuRow(
        name, title, compiled, bits, sum(sum(m.in_loops.values()) for m in mixes), note=note
    )


def _timed(
    rows: Sequence[CpuRow], runs: Sequence[bool], wanted: Wanted, seconds: float
) -> Iterator[CpuRow]:
    """The rows with timings, all taken in turn."""
    checked = [
        _checked(row, wanted, PATIENCE * seconds) if can and row.compiled else (row, None)
        for row, can in zip(rows, runs, strict=True)
    ]
    copies = twin(wanted.given) if wanted.writes else wanted.given
    calls: list[Call] = [(call, *copies) for _, call in checked if call]
    again = [partial(restore, copies, wanted.given)] * len(calls)
    with quietly():
        before = again if wanted.writes else ()
        taken = alternate(calls, seconds, before, TURNS, rest=0.0) if calls else []
    timings = iter(taken)
    for row, call in checked:
        yield replace(row, timing=next(timings)[0]) if call else row


def _checked(
    row: CpuRow, wanted: Wanted, patience: float
) -> tuple[CpuRow, Callable[..., Any] | None]:
    """The row, and what to call to time it: None if the answer is wrong, or takes too long."""
    assert row.compiled is not None
    call = row.compiled.entry
    begin = time.perf_counter()
    found = wanted.check(call)
    spent = time.perf_counter() - begin
    if not found.agrees:
        return replace(row, same=False, note=f"WRONG ANSWER: {found.problem}"), None
    if spent > patience:
        return replace(row, note=f"not timed: a call takes about {spent:.2g} s"), None
    return row, call
