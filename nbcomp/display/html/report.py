"""A report as HTML, section by section."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nbcomp.display.html.blocks import (
    faint,
    fold,
    image,
    paragraph,
    prose,
    root,
    rows,
    section,
    table,
)
from nbcomp.display.html.code import excerpt, pre
from nbcomp.display.html.history import history, stale
from nbcomp.display.html.measured import measured_html
from nbcomp.display.html.source import annotated
from nbcomp.display.html.style import FAINT, STATUS
from nbcomp.display.picture.svg import PALETTE, data_uri, svg
from nbcomp.display.view.checks import BOUND
from nbcomp.display.view.cpus import HEAD, cpu_cells
from nbcomp.display.view.kernels import LEVELS, KernelRow, heading, listed
from nbcomp.display.view.passes import PassRow
from nbcomp.display.view.remarks import RemarkRow
from nbcomp.display.view.source import Source
from nbcomp.display.view.speed import speed_cells
from nbcomp.display.view.texts import Budget
from nbcomp.display.view.view import View
from nbcomp.display.view.words import count, seconds
from nbcomp.display.visible import escape
from nbcomp.origin import Line

MAX_LINES = 200  # of one text
MANY = 100  # boxes from which the graph is only shown in its kernels
MAX_TEXTS = 100_000  # characters of all kernels' texts
MAX_DIFFS = 30_000  # of all differences between passes
LEFT_OUT = (
    "Only the costliest kernels are shown in full, to keep the notebook small: `%%compile --full` "
    "shows all, `.compiled.text` gives their texts."
)


def html(view: View, plot: str = "", max_lines: int = MAX_LINES) -> str:
    """The report as one `<div class="nbcomp">`; `plot` is the data URI of the speed-up plot."""
    makers: dict[str, Callable[[], str]] = {
        "speed": lambda: section("Speed across batch sizes", _speed(view, plot), opened=True),
        "check": lambda: section("Levels checked", _checks(view)),
        "history": lambda: history(view),
        "remarks": lambda: section(
            f"Line by line ({count(len(view.remarks), 'decision')})",
            annotated(view.source, view.remarks),
            opened=True,
        ),
        "graph": lambda: section("Graph before and after the passes", _graphs(view), opened=True),
        "kernels": lambda: section(heading(view.kernels), _kernels(view, max_lines)),
        "passes": lambda: section(f"Passes ({len(view.passes)})", _passes(view, max_lines)),
        "measured": lambda: measured_html(view.measured, view.stages),
        "cpus": lambda: section("One source, many CPUs", _cpus(view), opened=True),
    }
    return root(_headline(view) + "".join(make() for k, make in makers.items() if k in view.show))


def listing(title: str, text: str, level: str) -> str:
    """One IR text by itself, as `%ir` shows it."""
    return root(f'<p style="margin:0"><b>{escape(title)}</b></p>{pre(text, level)}')


def explanation(
    title: str, remarks: Sequence[RemarkRow], done: str = "", source: Source | None = None
) -> str:
    """The user's lines with the remarks on them, as `%explain` shows them, after what was done."""
    what = f"<br>\n{escape(done)}" if done else ""
    head = f'<p style="margin:0 0 4px"><b>{escape(title)}</b>{what}</p>'
    return root(head + annotated(source, remarks))


# --------------------------------------------------------------------------------------- sections


def _headline(view: View) -> str:
    colour = STATUS.get(view.status, "#8c959f")
    facts = "".join(f"<br>\n{prose(s)}" for s in view.sentences)
    style = f"margin:2px 0 8px;padding:2px 0 2px 10px;border-left:4px solid {colour}"
    head = f'<p style="{style}"><b style="font-size:14px">{escape(view.title)}</b>{facts}</p>'
    return head + stale(view)


def _checks(view: View) -> str:
    if not view.checks:
        return ""
    answers = table(("level", "answer"), [(c.level, c.words) for c in view.checks], (0, 1))
    return answers + paragraph(BOUND)


def _cpus(view: View) -> str:
    return table(HEAD, cpu_cells(view.cpus), left=(0, 1, 6)) if view.cpus else ""


def _speed(view: View, plot: str) -> str:
    if not view.speed and not view.speed_notes:
        return ""
    notes = "; ".join(view.speed_notes)
    picture = image(plot, f"Speed-up over NumPy across batch sizes: {notes}") if plot else ""
    head = ("batch", "compiled", "NumPy", "speed-up", "quartiles", "differs from NumPy", "verdict")
    numbers = table(head, map(speed_cells, view.speed), left=(6,)) if view.speed else ""
    return f"{picture}{numbers}{paragraph(notes)}"


def _graphs(view: View) -> str:
    if view.before is None or view.after is None:
        return ""
    pictures = []
    drawings = [("as written", view.before), ("after the passes", view.after)]
    if len(view.before.boxes) > MANY:
        drawings = drawings[1:]
    for title, drawing in drawings:
        picture = image(data_uri(svg(drawing)), drawing.summary)
        caption = f'<p style="margin:4px 0;color:{FAINT}">{escape(title)}</p>'
        pictures.append(f'<div style="flex:0 1 auto;min-width:0">{caption}{picture}</div>')
    return f'<div style="display:flex;flex-wrap:wrap;gap:28px">{"".join(pictures)}</div>'


def _kernels(view: View, max_lines: int) -> str:
    left = Budget(None if view.full else MAX_TEXTS)
    shown = listed(view.kernels, view.detailed)
    rows = "".join(_kernel(kernel, more, left, max_lines, view) for kernel, more in shown)
    return rows + (paragraph(LEFT_OUT) if len(view.detailed) < len(view.kernels) else "")


def _kernel(kernel: KernelRow, more: int, left: Budget, max_lines: int, view: View) -> str:
    colour = PALETTE[kernel.number % len(PALETTE)][0]
    mark = f'<span style="color:{colour}" aria-hidden="true">■</span>'
    what = f"{mark} <b>{escape(kernel.title)}</b> · {escape(kernel.sort)}"
    others = f"; {more} more like it" if more else ""
    about = f"{escape(kernel.operators)} {faint(kernel.lines)}{others}"
    if not kernel.levels or kernel.number not in view.detailed or left.spent:
        return f'<p style="margin:2px 0 2px 16px">{what}: {about}</p>'
    facts = "; ".join(f"{name}: {value}" for name, value in kernel.facts)
    texts = [_level(kernel, level, left, max_lines, view) for level in kernel.levels]
    return fold(f"{what}: {about}", paragraph(facts) + "".join(texts))


def _level(kernel: KernelRow, level: str, left: Budget, max_lines: int, view: View) -> str:
    lines = kernel.listing(level).lines
    kept = left.keep(lines[: None if view.full else max_lines], 0.5).lines
    rest = f'{view.name}.compiled.text("{level}")'
    text = excerpt([line.text for line in kept], len(lines), level, rest)
    return fold(escape(f"{LEVELS[level]}, {len(lines)} lines"), text)


def _passes(view: View, max_lines: int) -> str:
    if not view.passes:
        return ""
    left = Budget(None if view.full else MAX_DIFFS)
    stages = ", ".join(f"{name} {seconds(value)}" for name, value in view.stages)
    times = paragraph(f"Time by stage: {stages}") if stages else ""
    cells = (_pass(row, left, max_lines) for row in view.passes)
    return times + rows(cells, ("level", "pass", "time", "change"))


def _pass(row: PassRow, left: Budget, max_lines: int) -> tuple[str, ...]:
    change = escape(row.change) if row.diffs else faint("no change")
    if row.diffs and not left.spent:
        parts = [f"{kernel}\n" * bool(kernel) + "\n".join(lines) for kernel, lines in row.diffs]
        lines = "\n".join(parts).splitlines()
        kept = left.keep([Line(line) for line in lines[:max_lines]], 0.5).lines
        change = fold(change, excerpt([line.text for line in kept], len(lines), "diff"))
    name = f"<b>{escape(row.name)}</b><br>{faint(row.description)}"
    return escape(row.level), name, seconds(row.seconds) if row.seconds else "", change
