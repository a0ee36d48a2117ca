"""Tables and paragraphs within a width, counted in columns of the terminal.

What comes in is of others, and goes out with everything hidden in it made visible.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Sequence

from nbcomp.display.text.ink import PLAIN, Ink
from nbcomp.display.visible import visible

NARROW = 24  # columns below which a cell is not wrapped beside the others


def columns(text: str) -> int:
    """Columns a text takes: wide letters take two, marks that combine none."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def fill(line: str, width: int, indent: str = "", hanging: str = "") -> str:
    """A paragraph within the width; words that are longer excepted."""
    return textwrap.fill(
        visible(line),
        width,
        initial_indent=indent,
        subsequent_indent=hanging or indent + "  ",
        break_long_words=False,
        drop_whitespace=True,
        break_on_hyphens=False,
    )


def cut(line: str, width: int) -> str:
    """The line, or as much of it as fits, and an ellipsis."""
    if columns(line) <= width:
        return line
    while columns(line) >= width:
        line = line[:-1]
    return line.rstrip(" …") + "…"


def table(
    rows: Sequence[Sequence[str]],
    width: int,
    right: Sequence[int] = (),
    wrap: bool = False,
    ink: Ink = PLAIN,
    bold: int = -1,
    head: bool = False,
) -> list[str]:
    """Columns as wide as their widest cell; the last one is cut at the width, or with `wrap` goes
    on below.

    right: columns that are numbers.  bold: the column of names.  head: the first row is a heading;
    with `wrap`, where even the columns before the last one are too wide, each row is a paragraph.
    """
    if not rows:
        return []
    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(columns(row[i]) for row in rows) for i in range(len(rows[0]))]
    if head and wrap and sum(w + 2 for w in widths[:-1] if w) > width:
        return list(_paragraphs(rows, width, ink))
    lines = []
    for number, row in enumerate(rows):
        kept = [i for i, w in enumerate(widths) if w]
        cells = [_padded(row[i], widths[i], i in right) for i in kept]
        line = "  " + "  ".join(cells).rstrip()
        if wrap and columns(line) > width and row[-1]:
            made = _wrapped("  " + "  ".join(cells[:-1]), row[-1], width)
        else:
            made = [cut(line, width)]
        if head and number == 0:
            made = [ink(part, "faint") for part in made]
        elif bold in kept and row[bold].strip():
            made[0] = made[0].replace(row[bold], ink(row[bold], "bold"), 1)
        lines += made
    return lines


def _paragraphs(rows: Sequence[Sequence[str]], width: int, ink: Ink) -> Iterator[str]:
    """Each row below its first cell, with what the heading calls the others."""
    heading, *others = rows
    for name, *cells in others:
        yield ink(cut(f"  {name}", width), "bold")
        named = [f"{h} {c}".strip() for h, c in zip(heading[1:], cells, strict=True) if c.strip()]
        yield from fill(", ".join(named), width, "      ", "      ").splitlines()


def _padded(cell: str, width: int, right: bool) -> str:
    gap = " " * (width - columns(cell))
    return gap + cell if right else cell + gap


def _wrapped(before: str, last: str, width: int) -> list[str]:
    """A row whose last cell is broken into lines: beside the others, or below them if narrow."""
    start = columns(before) + 2
    beside = width - start >= NARROW
    indent = " " * (start if beside else 6)
    parts = textwrap.wrap(last, width - len(indent), break_long_words=False)
    below = [indent + part for part in parts]
    if not beside:
        return [cut(before.rstrip(), width), *below]
    return [f"{before}  {parts[0]}", *below[1:]]
