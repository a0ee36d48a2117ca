"""The user's own lines, with what was decided about each, and its share of the run time.

The lines are those of the function, and of whatever else of its cell or file the program was made
of.  Knows locations and remarks; it must not know any markup.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nbcomp.display.view.reads import Compiled
from nbcomp.record import Kind, Location, Remark

WHOLE = 400  # lines of a cell or file beyond which only the function is shown
ORDER = ("applied", "analysis", "missed")


# What a decision is called in a word or two, by what it is about and whether it was done.
LABELS = {
    ("fusion", "applied"): "fused",
    ("fusion", "missed"): "kept apart",
    ("vectorize", "applied"): "vectorised",
    ("vectorize", "missed"): "not vectorised",
    ("vectorize", "analysis"): "vectors not full",
    ("parallel", "applied"): "parallel",
    ("parallel", "missed"): "not parallel",
    ("parallel", "analysis"): "one core",
    ("library", "applied"): "BLAS",
    ("library", "missed"): "not in BLAS",
    ("library", "analysis"): "NumPy's routine",
    ("routine", "applied"): "library call",
    ("routine", "missed"): "no library call",
    ("loops", "applied"): "generated",
    ("layout", "applied"): "packed once",
    ("layout", "missed"): "layout kept",
    ("recurrence", "applied"): "one loop",
    ("recurrence", "analysis"): "step by step",
    ("loop", "missed"): "written out",
    ("narrow", "applied"): "bytes multiplied",
    ("narrow", "missed"): "widened first",
    ("precision", "applied"): "rounded to bfloat16",
    ("precision", "missed"): "not rounded",
    ("recompute", "applied"): "recomputed",
    ("store", "applied"): "kept for a row",
    ("store", "analysis"): "stored",
    ("in place", "applied"): "in place",
    ("copy", "missed"): "copied",
    ("copy", "analysis"): "copied",
    ("tile", "applied"): "tiled",
    ("stream", "applied"): "streamed",
    ("prefetch", "applied"): "fetched ahead",
    ("overlap", "applied"): "rows overlap",
    ("share", "applied"): "kernel shared",
    ("attention", "applied"): "one kernel",
    ("attention", "missed"): "not one kernel",
    ("bands", "applied"): "one kernel",
    ("bands", "missed"): "not one kernel",
    ("windows", "applied"): "loops over windows",
    ("windows", "missed"): "windows copied",
    ("lengths", "applied"): "any length",
    ("lengths", "missed"): "length fixed",
    ("tuned", "applied"): "tuned",
    ("tuned", "missed"): "not as tuned",
    ("registers", "missed"): "spilled",
    ("numpy", "missed"): "runs in NumPy",
    ("break", "missed"): "Python goes on",
}


def label(mark: str, topic: str) -> str:
    """A decision in a word or two."""
    return LABELS.get((topic, mark), topic)


@dataclass(frozen=True)
class Mark:
    """One decision beside a line: done ("applied"), not done ("missed"), or a fact ("analysis")."""

    line: int
    mark: Kind
    topic: str
    reason: str
    hint: str


@dataclass(frozen=True)
class Source:
    """Lines of one file or cell, the first of them numbered `first`; `cost` is a share per line."""

    file: str
    first: int
    lines: tuple[str, ...]
    marks: tuple[Mark, ...]
    cost: tuple[float | None, ...] = ()

    def of_line(self, line: int) -> tuple[Mark, ...]:
        """The marks of one line: what was done first, what was not done last."""
        found = [m for m in self.marks if m.line == line]
        return tuple(sorted(found, key=lambda m: ORDER.index(m.mark)))


def source_of(
    where: Location | None,
    text: str,
    parts: Iterable[Compiled],
    remarks: Iterable[Remark],
    cost: Mapping[int, float] | None = None,
) -> Source | None:
    """The source of a function, given where it is defined and its text; None where it is not at
    hand.

    parts: what was compiled of it.  cost: share of the run time by line.
    """
    lines = linecache.getlines(where.file) if where else []
    if where is None or not lines:
        return None
    first, last = _span(where, text, parts, len(lines))
    found = [r for r in remarks if r.location and r.location.file == where.file]
    marks = [
        Mark(r.location.line, r.kind, r.topic, r.reason, r.hint)
        for r in found
        if r.location and first <= r.location.line <= last
    ]
    marks.sort(key=lambda m: m.line)
    shown = tuple(line.rstrip("\n") for line in lines[first - 1 : last])
    shares = tuple((cost or {}).get(n) for n in range(first, last + 1))
    return Source(where.file, first, shown, tuple(marks), shares if cost else ())


def _span(where: Location, text: str, parts: Iterable[Compiled], total: int) -> tuple[int, int]:
    """The first and the last line to show."""
    used = [where.line, where.line + max(len(text.splitlines()), 1) - 1]
    if total <= WHOLE:
        nodes = (n.location for part in parts for n in part.captured.nodes)
        used += [w.line for w in nodes if w and w.file == where.file]
    return max(min(used), 1), min(max(used), total)
