"""What was measured pass by pass, optimisation by optimisation and kernel by kernel, as tables of
words, and as the plain data of the payload.

Knows figures; it must not know any markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nbcomp.display.view.headline import others_words
from nbcomp.display.view.words import called, count, seconds
from nbcomp.measure.figures import UNUSED, Ablation, Measured, PassTime, PassTimes
from nbcomp.measure.roofline import LEVELS, Bandwidth, Held, KernelFigures, Limits, Memory, Numbers
from nbcomp.measure.timing import Timing

TRACK = 32  # columns a timeline has at most


@dataclass(frozen=True)
class Table:
    """A table with its title; the columns in `words` are text, the others numbers."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[int, ...]
    notes: tuple[str, ...] = ()
    chart: str = ""  # what pictures it: "ablation", "roofline" or "memory"


def tables(measured: Measured) -> Iterator[Table]:
    """A table for each part that was measured."""
    if measured.passes:
        yield _passes(measured.passes)
    if measured.ablation:
        yield _ablation(measured.ablation)
    if measured.numbers:
        yield _kernels(measured.numbers)
        if measured.numbers.memory.buffers:
            yield _memory(measured.numbers.memory)


def line_costs(measured: Measured, file: str) -> dict[int, float]:
    """The share of the kernels' time by line of a file."""
    costs = measured.numbers.lines if measured.numbers else ()
    return {c.line: c.share for c in costs if c.file == file}


def size(nbytes: float) -> str:
    """An amount of memory, in units of 1024."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= scale:
            return f"{nbytes / scale:.3g} {unit}"
    return f"{nbytes:.0f} B"


def _times(timing: Timing | None) -> tuple[str, str]:
    """The median, and the quartiles."""
    if timing is None:
        return "", ""
    low, high = seconds(timing.low), seconds(timing.high)
    number, _, unit = low.rpartition(" ")
    return seconds(timing.median), f"{number if high.endswith(' ' + unit) else low}–{high}"


def _disturbed(others: float) -> tuple[str, ...]:
    words = others_words(others)
    return (f"{words}: the times are uncertain",) if words else ()


def _passes(times: PassTimes) -> Table:
    rows = tuple((p.level, p.name, *_times(p.timing), p.words) for p in times.passes)
    return Table(
        "Run time after each pass",
        ("level", "pass", "one call", "quartiles", "the pass made it"),
        rows,
        (0, 1, 4),
        _disturbed(times.others),
    )


def _ablation(ablation: Ablation) -> Table:
    head = ("without", "one call", "quartiles", "is", "what is missing")
    used = [w for w in ablation.rows if w.note != UNUSED]
    unused = ", ".join(w.name for w in ablation.rows if w.note == UNUSED)
    rows = [(w.name, *_times(w.timing), w.words, w.description) for w in used]
    full = ("nothing", *_times(ablation.full), ablation.note, "the whole program")
    title = "Each optimisation left out in turn"
    idle = [f"{UNUSED}: {unused}"] if unused else []
    notes = (*idle, *_disturbed(ablation.others))
    return Table(title, head, (full, *rows), (0, 3, 4), notes, "ablation")


# ---------------------------------------------------------------------------------------- kernels


def _kernels(numbers: Numbers) -> Table:
    head = ("kernel", "time", "threads", "Gop/s", "GB/s", "op/byte", "from", "bound", "of it")
    rows = []
    for k in numbers.kernels:
        rows.append(
            (
                called(k.kernel, k.calls),
                seconds(k.timing.median),
                str(k.threads),
                f"{k.flops_per_second / 1e9:.3g}",
                f"{k.bytes / k.timing.median / 1e9:.3g}",
                f"{k.intensity:.3g}",
                k.level,
                k.bound,
                _of_limit(k),
            )
        )
    for name, timing in numbers.libraries:
        rows.append((name, seconds(timing.median), *("",) * 5, "NumPy's routine", ""))
    notes = (*_limit_notes(numbers.limits), *_disturbed(numbers.others))
    title = "Kernels against this machine's limits"
    return Table(title, head, tuple(rows), (0, 6, 7), notes, "roofline")


def _of_limit(kernel: KernelFigures) -> str:
    """How near a kernel is to its limit; nothing where it starts sooner than was estimated, which
    is no limit."""
    below = kernel.bound == "overhead" and kernel.of_limit > 1
    return "" if below else f"{100 * kernel.of_limit:.0f} %"


def _limit_notes(limits: Limits) -> Iterator[str]:
    """The limits in words, a sentence for each number of threads."""
    for threads in sorted({p.threads for p in limits.peaks}):
        peaks = " and ".join(
            f"{p.value / 1e9:.0f} Gop/s in {p.dtype}" for p in limits.peaks if p.threads == threads
        )
        rates = ", ".join(
            f"{b.level} {b.value / 1e9:.0f}" for b in _hierarchy(limits) if b.threads == threads
        )
        yield f"limits of {count(threads, 'thread')}: {peaks}; GB/s from {rates}"


def _memory(memory: Memory) -> Table:
    rows = tuple(
        (b.name, b.role, size(b.bytes), _place(b), _track(b, len(memory.steps)))
        for b in memory.buffers
    )
    saved = memory.apart - memory.arena
    shared = f", {size(saved)} less than without sharing" if saved > 0 else ""
    steps = " → ".join(memory.steps)
    notes = (
        f"a call holds {size(memory.peak)}, of which {size(memory.arena)} are for values between "
        f"steps{shared}",
        f"steps: {steps}",
    )
    head = ("buffer", "role", "size", "at", "steps")
    return Table("Memory over the steps", head, rows, (0, 1, 4), notes, "memory")


def _place(buffer: Held) -> str:
    return "" if buffer.offset is None else f"+{size(buffer.offset)}" if buffer.offset else "+0"


def _track(buffer: Held, steps: int) -> str:
    """When it is alive, as a bar over the steps."""
    columns = min(steps, TRACK)
    first, last = (n * columns // max(steps, 1) for n in (buffer.first, buffer.last))
    return "·" * first + "█" * (last - first + 1) + "·" * (columns - last - 1)


# ---------------------------------------------------------------------------------- the plain data


def measured_pass(measured: Measured, level: str, name: str) -> dict[str, Any] | None:
    """The run time after a pass; None where it was not measured."""
    found = measured.passes.of(level, name) if measured.passes else None
    return None if found is None else _pass_data(found)


def _pass_data(found: PassTime) -> dict[str, Any]:
    return _timing_data(found.timing) | {"same": found.same, "note": found.words}


def _timing_data(timing: Timing | None) -> dict[str, Any]:
    if timing is None:
        return dict.fromkeys(("seconds", "low", "high"))
    return {"seconds": timing.median, "low": timing.low, "high": timing.high}


def measured_data(measured: Measured) -> dict[str, Any]:
    """The sections "ablation" and "numbers" of the payload, as far as they were measured."""
    data: dict[str, Any] = {}
    if measured.ablation:
        data["ablation"] = list(_ablation_data(measured.ablation))
    if measured.numbers:
        data["numbers"] = _numbers_data(measured.numbers)
    return data


def _ablation_data(ablation: Ablation) -> Iterator[dict[str, Any]]:
    for row in ablation.rows:
        ratio = row.ratio.median if row.ratio else 1.0 if row.timing else None
        times = _timing_data(row.timing)
        told = {"description": row.description, "note": row.words}
        yield {"name": row.name, **times, "ratio": ratio, **told}


def _numbers_data(numbers: Numbers) -> dict[str, Any]:
    limits = numbers.limits
    kernels: Iterable[Mapping[str, Any]] = (
        {
            "kernel": k.kernel,
            **_timing_data(k.timing),
            "operations": k.operations,
            "bytes": k.bytes,
            "intensity": k.intensity,
            "flops_per_second": k.flops_per_second,
            "bound": k.bound,
            "of_limit": min(k.of_limit, 1.0),
        }
        for k in numbers.kernels
    )
    memory = numbers.memory
    return {
        "machine": {
            "name": limits.name,
            "threads": limits.threads,
            "peak_flops": [
                {"threads": p.threads, "dtype": p.dtype, "value": p.value} for p in limits.peaks
            ],
            "bandwidth": [
                {"threads": b.threads, "level": b.level, "value": b.value}
                for b in _hierarchy(limits)
            ],
        },
        "kernels": list(kernels),
        "memory": {
            "peak": memory.peak,
            "arena": memory.arena,
            "buffers": [
                {
                    "name": b.name,
                    "bytes": b.bytes,
                    "offset": b.offset,
                    "first": b.first,
                    "last": b.last,
                    "role": b.role,
                }
                for b in memory.buffers
            ],
            "steps": list(memory.steps),
        },
    }


def _hierarchy(limits: Limits) -> Iterator[Bandwidth]:
    """The bandwidths kernels are held against, by level."""
    for threads in sorted({b.threads for b in limits.bandwidths}):
        for level in LEVELS:
            yield Bandwidth(threads, level, limits.bandwidth(threads, level))
