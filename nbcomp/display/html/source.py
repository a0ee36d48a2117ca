"""The user's lines with what was decided about each beside it, and below it why."""

from __future__ import annotations

from collections.abc import Sequence

from nbcomp.display.html.blocks import faint, prose, rows
from nbcomp.display.html.code import marked
from nbcomp.display.html.style import FAINT, MARKS, MONO, SIGNS, SUMMARY, TABLE
from nbcomp.display.view.remarks import RemarkRow
from nbcomp.display.view.source import Mark, Source, label
from nbcomp.display.visible import escape

# A `pre`, since only in one are spaces at the start of a line kept by everyone.
_CODE = (
    f"display:inline;font-family:{MONO};font-size:12px;white-space:pre-wrap;color:inherit;"
    "background:transparent;border:0;margin:0;padding:0"
)
_NUMBER = (
    f"text-align:right;vertical-align:top;padding:1px 10px 1px 0;border:0;color:{FAINT};width:1%;"
    f"font-family:{MONO};font-size:12px;user-select:none"
)
_LINE = "text-align:left;vertical-align:top;padding:1px 0;border:0"
_BADGE = "font-size:11px;white-space:nowrap;margin-left:10px;font-family:inherit"


def lines_with_marks(source: Source) -> str:
    """A table with a row per line; a line with marks opens to their reasons."""
    cost = any(share is not None for share in source.cost)
    body = []
    for number, text in enumerate(source.lines, source.first):
        share = source.cost[number - source.first] if cost else None
        cells = [f'<td style="{_NUMBER}">{number}</td>']
        if cost:
            cells.append(_heat(share))
        cells.append(f'<td style="{_LINE}">{_line(text, source.of_line(number))}</td>')
        body.append(f'<tr style="background:transparent">{"".join(cells)}</tr>')
    return f'<table style="{TABLE};width:100%">{"".join(body)}</table>'


def _line(text: str, marks: Sequence[Mark]) -> str:
    code = f'<pre style="{_CODE}">{marked(text, "python") or " "}</pre>'
    if not marks:
        return f'<div style="padding-left:15px">{code}</div>'
    missed = any(m.mark == "missed" for m in marks)
    badges = dict.fromkeys((m.mark, label(m.mark, m.topic)) for m in marks)
    shown = "".join(_badge(*badge) for badge in badges)
    reasons = "".join(f'<div style="padding:1px 0 1px 30px">{_reason(m)}</div>\n' for m in marks)
    return (
        f"<details{' open' if missed else ''}>"
        f'<summary style="{SUMMARY};padding:0">{code}{shown}</summary>\n{reasons}</details>'
    )


def _badge(mark: str, word: str) -> str:
    return f' <span style="{_BADGE};color:{MARKS[mark]}">{SIGNS[mark]} {escape(word)}</span>'


def _reason(mark: Mark) -> str:
    sign = f'<span style="color:{MARKS[mark.mark]}">{SIGNS[mark.mark]}</span>'
    hint = f" <i>{prose(mark.hint)}</i>" if mark.hint else ""
    return f"{sign} {escape(mark.topic)}: {prose(mark.reason)}{hint and ';'}{hint}"


def _heat(share: float | None) -> str:
    """A line's share of the run time, as a number on a bar."""
    if share is None:
        return f'<td style="{_LINE}"></td>'
    part = f"{100 * share:.0f}%"
    bar = f"background:linear-gradient(90deg,#d55e0066 {part},transparent {part})"
    inner = f'<div style="{bar};min-width:44px;border-radius:2px">{part.replace("%", " %")}</div>'
    return f'<td style="{_NUMBER}">{inner}</td>'


def remarks_table(remarks: Sequence[RemarkRow]) -> str:
    """Each decision with the line it is about: whether it was done, why, what would help."""
    if not remarks:
        return ""
    cells = []
    for r in remarks:
        where = f"line {r.line}" if r.line else ""
        source = f'<br><code style="font-size:11px">{escape(r.source)}</code>' if r.source else ""
        hint = f'<br><span style="color:{FAINT}">{prose(r.hint)}</span>' if r.hint else ""
        mark = f"{SIGNS[r.mark]} {escape(label(r.mark, r.topic))}"
        cells.append((where + source, mark, prose(r.reason) + hint))
    return rows(cells)


def annotated(source: Source | None, remarks: Sequence[RemarkRow]) -> str:
    """The source with its marks, then the remarks about other places."""
    if source is None:
        return remarks_table(remarks)
    here = {(m.line, m.mark, m.topic, m.reason) for m in source.marks}
    rest = [r for r in remarks if (r.line, r.mark, r.topic, r.reason) not in here]
    others = f"<p>{faint('About other places:')}</p>{remarks_table(rest)}" if rest else ""
    return lines_with_marks(source) + others
