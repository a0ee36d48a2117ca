"""The user's lines with what was decided about each beside it, and below it why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from nbcomp.display.text.ink import PLAIN, Ink
from nbcomp.display.text.tables import columns, cut, fill
from nbcomp.display.view.remarks import RemarkRow
from nbcomp.display.view.source import Mark, Source, label
from nbcomp.display.visible import visible

SIGNS = {"applied": "+", "missed": "-", "analysis": "·"}
INKS = {"applied": "good", "missed": "bad", "analysis": "faint"}
RULE = "│"


def annotated(
    source: Source | None,
    remarks: Sequence[RemarkRow],
    width: int,
    ink: Ink = PLAIN,
    brief: bool = False,
) -> list[str]:
    """The source with its marks, then the remarks about other places.

    brief: reasons only of what was not done or could be changed.
    """
    if source is None:
        return remarks_list(remarks, width, ink)
    here = {(m.line, m.mark, m.topic, m.reason) for m in source.marks}
    rest = [r for r in remarks if (r.line, r.mark, r.topic, r.reason) not in here]
    told = [r for r in rest if not brief or r.mark == "missed" or r.hint]
    return [*_lines(source, width, ink, brief), *remarks_list(told, width, ink)]


def _lines(source: Source, width: int, ink: Ink, brief: bool) -> Iterator[str]:
    digits = len(str(source.first + len(source.lines)))
    cost = any(share is not None for share in source.cost)
    for number, text in enumerate(source.lines, source.first):
        marks = source.of_line(number)
        share = source.cost[number - source.first] if cost else None
        heat = f" {_heat(share)}" if cost else ""
        gutter = f"  {number:>{digits}}{heat} {RULE} "
        below = " " * (len(gutter) - 2) + RULE + "   "
        yield from _code(gutter, below, visible(text.expandtabs(4)), marks, width, ink)
        for mark in marks:
            if not brief or mark.mark == "missed" or mark.hint:
                yield _reason(mark, below, width, ink)


def _code(
    gutter: str, below: str, text: str, marks: Sequence[Mark], width: int, ink: Ink
) -> Iterator[str]:
    """A line of code, and the labels of its marks at its right, or below if there is no room."""
    labels = dict.fromkeys((m.mark, visible(label(m.mark, m.topic))) for m in marks)
    words = [f"{SIGNS[mark]} {word}" for mark, word in labels]
    painted = [ink(w, INKS[mark]) for w, (mark, _) in zip(words, labels, strict=True)]
    shown = cut(text, width - len(gutter))
    line = ink(gutter, "faint") + ink(shown, "bold" if marks else "")
    room = width - len(gutter) - columns(shown) - columns("  ".join(words))
    if words and room >= 2:
        yield f"{line}{' ' * room}{'  '.join(painted)}"
        return
    yield line.rstrip()
    while words:
        taken = 1
        while taken < len(words) and columns("  ".join(words[: taken + 1])) <= width - len(below):
            taken += 1
        yield ink(below, "faint") + "  ".join(painted[:taken])
        words, painted = words[taken:], painted[taken:]


def _reason(mark: Mark, below: str, width: int, ink: Ink) -> str:
    hint = f" ({mark.hint})" if mark.hint else ""
    body = f"{SIGNS[mark.mark]} {mark.topic}: {mark.reason}{hint}"
    lines = fill(body, width - len(below), "", "  ").splitlines()
    sign = ink(lines[0][0], INKS[mark.mark])
    painted = [sign + lines[0][1:], *lines[1:]]
    return "\n".join(ink(below, "faint") + line for line in painted)


def _heat(share: float | None) -> str:
    return f"{100 * share:>3.0f}%" if share is not None else "    "


def remarks_list(remarks: Iterable[RemarkRow], width: int, ink: Ink = PLAIN) -> list[str]:
    """One paragraph per decision, in the order of the lines they are about, which stand above."""
    lines, shown = [], (0, "")
    for r in sorted(remarks, key=lambda r: (not r.line, r.line, r.source)):
        if r.source and shown != (r.line, r.source):
            shown = r.line, r.source
            gutter = f"  {r.line:>2} {RULE} "
            lines.append(ink(gutter, "faint") + cut(visible(r.source), width - len(gutter)))
        where = f"line {r.line}" if r.line else ""
        body = f"{r.topic}: {r.reason}" + (f" ({r.hint})" if r.hint else "")
        made = fill(f"  {SIGNS[r.mark]} {where:<9}{body}", width, hanging=" " * 13)
        lines.append(made.replace(SIGNS[r.mark], ink(SIGNS[r.mark], INKS[r.mark]), 1))
    return lines
