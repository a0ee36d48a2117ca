"""The HTML form of a view: complete without script and without style sheets.

Only elements that survive every sanitiser (`details`, `pre`, `table`, `img`) with inline styles;
with those stripped too, everything is still there to read.  Colours come from JupyterLab's
variables, then VS Code's, then neutral fallbacks, so light and dark themes both work.  Everything
is escaped.  Knows views and drawings; it must not know notebooks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape

from nbcomp.display.svg import PALETTE, data_uri, svg
from nbcomp.display.text import speed_cells
from nbcomp.display.view.kernels import LEVELS, KernelRow
from nbcomp.display.view.passes import PassRow
from nbcomp.display.view.remarks import RemarkRow
from nbcomp.display.view.view import View
from nbcomp.display.view.words import seconds

MAX_LINES = 200

_INK = "var(--jp-content-font-color1,var(--vscode-foreground,inherit))"
_FAINT = "var(--jp-content-font-color2,var(--vscode-descriptionForeground,#77808a))"
_RULE = "var(--jp-border-color2,var(--vscode-panel-border,#80808059))"
_SHEET = "var(--jp-layout-color2,var(--vscode-textCodeBlock-background,#8080801a))"
_SANS = "var(--jp-content-font-family,var(--vscode-font-family,system-ui,sans-serif))"
_MONO = "var(--jp-code-font-family,var(--vscode-editor-font-family,ui-monospace,monospace))"

ROOT = f"color:{_INK};font-family:{_SANS};font-size:13px;line-height:1.45;max-width:1000px"
PRE = (
    f"background:{_SHEET};color:inherit;border:0;border-radius:4px;margin:4px 0;padding:8px 10px;"
    f"overflow:auto;max-height:420px;font-family:{_MONO};font-size:12px;line-height:1.4;white-space:pre"
)
CELL = f"padding:2px 10px 2px 0;border:0;border-bottom:1px solid {_RULE};vertical-align:top"
TABLE = "border-collapse:collapse;font-size:inherit"
LEFT, RIGHT = f"text-align:left;{CELL}", f"text-align:right;{CELL}"
SUMMARY = "cursor:pointer;padding:2px 0"
INDENT = f"margin:2px 0 8px 4px;padding-left:12px;border-left:1px solid {_RULE}"

# A bar beside the headline; the words say the same.
STATUS = {"faster": "#009e73", "same": "#8c959f", "slower": "#d55e00", "wrong": "#cf222e"}


def html(view: View, plot: str = "", max_lines: int = MAX_LINES) -> str:
    """The report as one `<div class="nbcomp">`; `plot` is the data URI of the speed-up plot."""
    makers: dict[str, Callable[[], str]] = {
        "speed": lambda: _section("Speed across batch sizes", _speed(view, plot), opened=True),
        "check": lambda: _section("Levels checked", _checks(view)),
        "graph": lambda: _section("Graph before and after the passes", _graphs(view), opened=True),
        "kernels": lambda: _section(
            f"Kernels ({len(view.kernels)})", _kernels(view.kernels, max_lines, view.name)
        ),
        "passes": lambda: _section(f"Passes ({len(view.passes)})", _passes(view, max_lines)),
        "remarks": lambda: _section(
            f"Remarks ({len(view.remarks)})", remarks_table(view.remarks), not view.compiled
        ),
    }
    return _root(_headline(view) + "".join(make() for k, make in makers.items() if k in view.show))


def page(body: str, title: str) -> str:
    """A whole HTML file around a report, for light and dark screens."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title></head>\n"
        f'<body style="margin:24px auto;max-width:1000px;padding:0 16px">{body}</body></html>\n'
    )


def listing(title: str, text: str, level: str) -> str:
    """One IR text by itself, as `%ir` shows it."""
    return _root(f'<p style="margin:0"><b>{escape(title)}</b></p>{code(text, level)}')


def explanation(title: str, remarks: Sequence[RemarkRow], done: str = "") -> str:
    """The remarks by themselves, as `%explain` shows them, after what was done."""
    what = f"<br>\n{escape(done)}" if done else ""
    head = f'<p style="margin:0 0 4px"><b>{escape(title)}</b>{what}</p>'
    return _root(head + remarks_table(remarks))


def _root(content: str) -> str:
    return f'<div class="nbcomp" style="{ROOT}">{content}</div>'


# --------------------------------------------------------------------------------------- sections


def _headline(view: View) -> str:
    colour = STATUS.get(view.status, "#8c959f")
    facts = "".join(f"<br>\n{escape(s)}" for s in view.sentences)
    style = f"margin:2px 0 8px;padding:2px 0 2px 10px;border-left:4px solid {colour}"
    return f'<p style="{style}"><b style="font-size:14px">{escape(view.title)}</b>{facts}</p>'


def _section(title: str, content: str, opened: bool = False) -> str:
    if not content:
        return ""
    return (
        f'<details{" open" if opened else ""} style="margin:4px 0"><summary style="{SUMMARY}">'
        f"<b>{escape(title)}</b></summary>\n{content}</details>"
    )


def _checks(view: View) -> str:
    rows = [(c.level, c.words) for c in view.checks]
    return _table(("level", "answer"), rows, left=(0, 1)) if rows else ""


def _speed(view: View, plot: str) -> str:
    if not view.speed and not view.speed_notes:
        return ""
    notes = "; ".join(view.speed_notes)
    picture = _image(plot, f"Speed-up over NumPy across batch sizes: {notes}") if plot else ""
    head = ("batch", "compiled", "NumPy", "speed-up", "quartiles", "differs from NumPy", "verdict")
    table = _table(head, map(speed_cells, view.speed), left=(6,)) if view.speed else ""
    return f'{picture}{table}<p style="margin:4px 0">{escape(notes)}</p>'


def _graphs(view: View) -> str:
    if view.before is None or view.after is None:
        return ""
    pictures = []
    for title, drawing in (("as written", view.before), ("after the passes", view.after)):
        image = _image(data_uri(svg(drawing)), drawing.summary)
        caption = f'<p style="margin:4px 0;color:{_FAINT}">{escape(title)}</p>'
        pictures.append(f'<div style="flex:0 1 auto;min-width:0">{caption}{image}</div>')
    return f'<div style="display:flex;flex-wrap:wrap;gap:28px">{"".join(pictures)}</div>'


def _image(uri: str, alt: str) -> str:
    style = "max-width:100%;height:auto;border-radius:6px"
    return f'<img src="{uri}" alt="{escape(alt)}" style="{style}">'


def _kernels(kernels: Sequence[KernelRow], max_lines: int, name: str) -> str:
    return "".join(_kernel(kernel, max_lines, name) for kernel in kernels)


def _kernel(kernel: KernelRow, max_lines: int, name: str) -> str:
    colour = PALETTE[kernel.number % len(PALETTE)][0]
    mark = f'<span style="color:{colour}" aria-hidden="true">■</span>'
    what = f"{mark} <b>{escape(kernel.name)}</b> · {escape(kernel.kind)}"
    about = f'{escape(kernel.operators)} <span style="color:{_FAINT}">{escape(kernel.lines)}</span>'
    if not kernel.levels:
        return f'<p style="margin:2px 0 2px 16px">{what}: {about}</p>'
    texts = []
    for level in kernel.levels:
        text = kernel.text(level)
        rest = f'{name}.compiled.text("{level}")'
        title = f"{LEVELS[level]}, {len(text.splitlines())} lines"
        texts.append(_fold(escape(title), code(text, level, max_lines, rest)))
    return _fold(f"{what}: {about}", "".join(texts))


def _fold(summary: str, content: str) -> str:
    return (
        f'<details style="margin:2px 0 2px 2px"><summary style="{SUMMARY}">{summary}</summary>'
        f'<div style="{INDENT}">{content}</div></details>'
    )


def _passes(view: View, max_lines: int) -> str:
    rows = "".join(_pass(p, max_lines) for p in view.passes)
    if not rows:
        return ""
    stages = ", ".join(f"{escape(name)} {seconds(value)}" for name, value in view.stages)
    times = f'<p style="margin:4px 0">Time by stage: {stages}</p>' if stages else ""
    head = "".join(f'<th style="{LEFT}">{h}</th>' for h in ("level", "pass", "time", "change"))
    return f'{times}<table style="{TABLE}"><tr>{head}</tr>{rows}</table>'


def _pass(row: PassRow, max_lines: int) -> str:
    change = escape(row.change) if row.diffs else f'<span style="color:{_FAINT}">no change</span>'
    if row.diffs:
        parts = [f"{kernel}\n" * bool(kernel) + "\n".join(lines) for kernel, lines in row.diffs]
        change = _fold(change, code("\n".join(parts), "diff", max_lines))
    about = f'<span style="color:{_FAINT}">{escape(row.description)}</span>'
    name = f"<b>{escape(row.name)}</b><br>{about}"
    cells = (escape(row.level), name, seconds(row.seconds) if row.seconds else "", change)
    return "<tr>" + "".join(f'<td style="{LEFT}">{cell}</td>' for cell in cells) + "</tr>"


def remarks_table(remarks: Sequence[RemarkRow]) -> str:
    """Each decision on the user's line: what was done (✓), what was not (✗), why, and what would
    help.
    """
    if not remarks:
        return ""
    rows = []
    for r in remarks:
        where = f"line {r.line}" if r.line else ""
        source = f'<br><code style="font-size:11px">{escape(r.source)}</code>' if r.source else ""
        hint = f'<br><span style="color:{_FAINT}">{_prose(r.hint)}</span>' if r.hint else ""
        mark = "✓ done" if r.done else "✗ not done"
        cells = (where + source, mark, escape(r.topic), _prose(r.reason) + hint)
        rows.append("<tr>" + "".join(f'<td style="{LEFT}">{cell}</td>' for cell in cells) + "</tr>")
    return f'<table style="{TABLE}">{"".join(rows)}</table>'


def _prose(text: str) -> str:
    """A sentence in which `code` is set as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int]) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        styles = (LEFT if i in left else RIGHT for i in range(len(cells)))
        inner = (
            f'<{tag} style="{s}">{escape(c)}</{tag}>' for s, c in zip(styles, cells, strict=True)
        )
        return f"<tr>{''.join(inner)}</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    return f'<table style="{TABLE}">{row(head, "th")}{body}</table>'


# ------------------------------------------------------------------------------------------- code

_LOOP = "kernel|for|parallel|vector|unroll|if|else|while|alloc|call"
_LLVM = "define|declare|ret|br|switch|phi|load|store|call|select"
_TOKENS = {
    "graph": r"(?P<c>#.*)|(?P<k>\b(?:graph|return)\b)",
    "loop": rf"(?P<c>#.*|//.*)|(?P<k>\b(?:{_LOOP})\b)",
    "llvm": rf"(?P<c>;.*)|(?P<k>\b(?:{_LLVM})\b)",
    "asm": r"(?P<c>#.*)|(?P<k>^[\w.$]+:)",
    "diff": r"(?P<a>^\+.*)|(?P<d>^-.*)|(?P<c>^@@.*)",
}
_MARKS = {
    "c": (f'<i style="color:{_FAINT}">', "</i>"),
    "k": ("<b>", "</b>"),
    "a": ('<span style="color:#2a9d57">', "</span>"),
    "d": ('<span style="color:#d1604f">', "</span>"),
}


def code(text: str, level: str, max_lines: int = 0, rest: str = "") -> str:
    """A `<pre>` with keywords and comments marked; beyond `max_lines` only how to get the rest."""
    lines = text.splitlines()
    note = ""
    if 0 < max_lines < len(lines):
        more = f": all of it is {rest}" if rest else ""
        note = f'<p style="margin:2px 0;color:{_FAINT}">… {len(lines) - max_lines} more lines'
        note += f"{escape(more)}</p>"
        lines = lines[:max_lines]
    return f'<pre style="{PRE}">{_marked(chr(10).join(lines), level)}</pre>{note}'


def _marked(text: str, level: str) -> str:
    parts, end = [], 0
    for match in re.finditer(_TOKENS[level], text, re.MULTILINE):
        before, after = _MARKS[match.lastgroup or "k"]
        parts += [escape(text[end : match.start()]), before, escape(match.group()), after]
        end = match.end()
    return "".join([*parts, escape(text[end:])])
