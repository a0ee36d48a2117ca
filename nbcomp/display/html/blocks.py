"""The pieces a report is put together from: sections, folds, tables, pictures, prose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from nbcomp.display.html.style import FAINT, INDENT, LEFT, RIGHT, ROOT, SUMMARY, TABLE
from nbcomp.display.visible import escape


def root(content: str) -> str:
    """The one element all of a report is in."""
    return f'<div class="nbcomp" style="{ROOT}">{content}</div>'


def section(title: str, content: str, opened: bool = False) -> str:
    """A part of a report with its title; nothing when it has no content."""
    if not content:
        return ""
    return (
        f'<details{" open" if opened else ""} style="margin:4px 0"><summary style="{SUMMARY}">'
        f"<b>{escape(title)}</b></summary>\n{content}</details>"
    )


def fold(summary: str, content: str, opened: bool = False) -> str:
    """A line that opens to more."""
    return (
        f'<details{" open" if opened else ""} style="margin:2px 0 2px 2px">'
        f'<summary style="{SUMMARY}">{summary}</summary>'
        f'<div style="{INDENT}">{content}</div></details>'
    )


def faint(text: str) -> str:
    """A remark beside the matter."""
    return f'<span style="color:{FAINT}">{escape(text)}</span>'


def paragraph(text: str) -> str:
    """A sentence by itself."""
    return f'<p style="margin:4px 0">{prose(text)}</p>'


def prose(text: str) -> str:
    """A sentence in which `code` is set as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def image(uri: str, alt: str) -> str:
    """A picture; the words are for those who do not see it."""
    style = "max-width:100%;height:auto;border-radius:6px"
    return f'<img src="{uri}" alt="{escape(alt)}" style="{style}">'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int]) -> str:
    """A table of texts; the columns in `left` are words, the others numbers."""

    def row(cells: Sequence[str], tag: str) -> str:
        styles = (LEFT if i in left else RIGHT for i in range(len(cells)))
        inner = (
            f'<{tag} style="{s}">{escape(c)}</{tag}>' for s, c in zip(styles, cells, strict=True)
        )
        return f"<tr>{''.join(inner)}</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    return f'<table style="{TABLE}">{row(head, "th") if head else ""}{body}</table>'


def rows(cells: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """A table of pieces of HTML, all of them words."""
    top = "".join(f'<th style="{LEFT}">{escape(h)}</th>' for h in head)
    body = "".join(
        "<tr>" + "".join(f'<td style="{LEFT}">{cell}</td>' for cell in row) + "</tr>"
        for row in cells
    )
    return f'<table style="{TABLE}">{f"<tr>{top}</tr>" if top else ""}{body}</table>'
