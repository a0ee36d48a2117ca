"""The terminal form of a view: one headline, then kernels, passes, remarks and speed as narrow
tables.

Reads well alone and within any width.  Knows views; it must not know where they are printed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from nbcomp.display.view.remarks import RemarkRow
from nbcomp.display.view.speed import SpeedRow
from nbcomp.display.view.view import View
from nbcomp.display.view.words import seconds, ulp_words

WIDTH = 100
NARROW = 24  # columns below which a cell is not wrapped beside the others


def text(view: View, width: int = WIDTH) -> str:
    """The whole report, no line longer than `width` (words that are longer excepted)."""
    width = max(width, 40)
    blocks = [headline(view, width)]
    sections = (
        ("check", "Levels checked", _table([(c.level, c.words) for c in view.checks], width)),
        ("kernels", "Kernels", kernels_table(view, width)),
        ("passes", "Passes", passes_table(view, width)),
        ("remarks", "Remarks", remarks_list(view.remarks, width)),
        ("speed", "Speed across batch sizes", speed_table(view, width)),
    )
    for name, title, lines in sections:
        if lines and name in view.show:
            blocks.append("\n".join([title, *lines]))
    if view.compiled:
        hint = 'All of it: .compiled.text("graph" | "loop" | "llvm" | "asm")'
        # A lambda or a callable object has no name that `%ir` could find.
        more = f", or %ir {view.name} asm" if view.named else ""
        blocks.append(_fill(hint + more, width))
    return "\n\n".join(blocks)


def headline(view: View, width: int = WIDTH) -> str:
    """The title and one fact per line."""
    facts = [_fill(s, width, "  ") for s in view.sentences]
    return "\n".join([_fill(view.title, width), *facts])


def kernels_table(view: View, width: int) -> list[str]:
    """Name, kind, operators and source lines of each kernel."""
    rows = [(k.name, k.kind, k.lines, k.operators) for k in view.kernels]
    return _table(rows, width)


def passes_table(view: View, width: int) -> list[str]:
    """Level, name, seconds and change of each pass."""
    rows = [
        (p.level, p.name, _spent(p.seconds), p.change if p.diffs else "", p.description)
        for p in view.passes
    ]
    return _table(rows, width, right=(2,), wrap=True)


def _spent(value: float) -> str:
    return seconds(value) if value else ""


def remarks_list(remarks: Iterable[RemarkRow], width: int) -> list[str]:
    """One paragraph per decision, with the line it is about."""
    lines = []
    for r in remarks:
        where = f"line {r.line}" if r.line else ""
        sign = "+" if r.done else "-"
        body = f"{r.topic}: {r.reason}" + (f" ({r.hint})" if r.hint else "")
        lines.append(_fill(f"  {sign} {where:<9}{body}", width, hanging=" " * 13))
    return lines


def speed_table(view: View, width: int) -> list[str]:
    """Batch size, both times, their ratio with quartiles, distance from NumPy, verdict."""
    if not view.speed and not view.speed_notes:
        return []
    head = ("batch", "compiled", "NumPy", "speed-up", "quartiles", "differs", "verdict")
    rows = [head, *map(speed_cells, view.speed)]
    table = _table(rows, width, right=(0, 1, 2, 3, 4, 5)) if view.speed else []
    return table + [_fill(f"  {note}", width, hanging="    ") for note in view.speed_notes]


def speed_cells(row: SpeedRow) -> tuple[str, ...]:
    """The cells of one row of the speed table."""
    if row.ratio != row.ratio:  # not timed
        return (f"{row.size:,}", "", "", "", "", "", row.verdict)
    return (
        f"{row.size:,}",
        seconds(row.ours),
        seconds(row.theirs),
        f"{_ratio(row.ratio)}×",
        f"{_ratio(row.low)}–{_ratio(row.high)}",
        ulp_words(row.ulp),
        row.verdict,
    )


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.1g}"


def _fill(line: str, width: int, indent: str = "", hanging: str = "") -> str:
    return textwrap.fill(
        line,
        width,
        initial_indent=indent,
        subsequent_indent=hanging or indent + "  ",
        break_long_words=False,
        drop_whitespace=True,
        break_on_hyphens=False,
    )


def _table(
    rows: Sequence[Sequence[str]], width: int, right: Sequence[int] = (), wrap: bool = False
) -> list[str]:
    """Columns as wide as their widest cell; the last one is cut at the width, or with `wrap` goes
    on below.
    """
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(w) if i in right else cell.ljust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            if w
        ]
        line = "  " + "  ".join(cells).rstrip()
        if wrap and len(line) > width and row[-1]:
            lines += _wrapped("  " + "  ".join(cells[:-1]), row[-1], width)
        else:
            lines.append(_cut(line, width))
    return lines


def _wrapped(before: str, last: str, width: int) -> list[str]:
    """A row whose last cell is broken into lines: beside the others, or below them if narrow."""
    start = len(before) + 2
    beside = width - start >= NARROW
    indent = " " * (start if beside else 6)
    parts = textwrap.wrap(last, width - len(indent), break_long_words=False)
    below = [indent + part for part in parts]
    if not beside:
        return [_cut(before.rstrip(), width), *below]
    return [f"{before}  {parts[0]}", *below[1:]]


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1].rstrip(" …") + "…"
