"""A report as text, section by section."""

from __future__ import annotations

from nbcomp.display.text.ink import PLAIN, Ink
from nbcomp.display.text.measured import measured_text
from nbcomp.display.text.source import annotated
from nbcomp.display.text.tables import fill, table
from nbcomp.display.view.checks import BOUND
from nbcomp.display.view.cpus import HEAD, cpu_cells
from nbcomp.display.view.kernels import listed
from nbcomp.display.view.speed import SpeedRow, speed_cells
from nbcomp.display.view.view import View
from nbcomp.display.view.words import seconds

WIDTH = 100
ROOM = 70  # columns that all there is to say of a batch size takes
STATUS = {"faster": "good", "slower": "bad", "wrong": "wrong", "numpy": "bad"}


def text(view: View, width: int = WIDTH, ink: Ink = PLAIN) -> str:
    """The whole report, no line longer than `width` (words that are longer excepted)."""
    width = max(width, 40)
    blocks = [headline(view, width, ink)]
    checks = [(c.level, c.words) for c in view.checks]
    bound = [fill(BOUND, width, "  ", "  ")] if checks else []
    sections = (
        ("check", "Levels checked", [*table(checks, width), *bound]),
        ("history", _since(view), history_lines(view, width)),
        ("remarks", "Line by line", _marked(view, width, ink)),
        ("kernels", "Kernels", kernels_table(view, width, ink)),
        ("passes", "Passes", passes_table(view, width, ink)),
        ("speed", "Speed across batch sizes", speed_table(view, width, ink)),
    )
    for name, title, lines in sections:
        if lines and name in view.show:
            blocks.append("\n".join([ink(title, "bold"), *lines]))
    if "measured" in view.show:
        blocks += measured_text(view.measured, width, ink)
    if view.cpus and "cpus" in view.show:
        lines = table(
            [HEAD, *cpu_cells(view.cpus)], width, (3, 4, 5), ink=ink, head=True, wrap=True
        )
        blocks.append("\n".join([ink("One source, many CPUs", "bold"), *lines]))
    if view.whole:
        hint = 'All of it: .compiled.text("graph" | "loop" | "llvm" | "asm")'
        # A lambda or a callable object has no name that `%ir` could find.
        more = f", or %ir {view.name} asm" if view.named else ""
        blocks.append(ink(fill(hint + more, width), "faint"))
    return "\n\n".join(blocks)


def headline(view: View, width: int = WIDTH, ink: Ink = PLAIN) -> str:
    """The title and one fact per line; the facts that tell good from bad in their colour."""
    kind = STATUS.get(view.status, "")
    facts = []
    for sentence in view.sentences:
        tells = kind and any(word in sentence for word in ("NumPy in", "WRONG", "first wrong"))
        made = fill(sentence, width, "  ")
        facts.append(ink(made, kind) if tells else made)
    if view.stale:
        what = f"stale: {'; '.join(view.stale)}; the next call compiles it anew"
        facts.append(ink(fill(what, width, "  "), "bad"))
    return "\n".join([ink(fill(view.title, width), "bold"), *facts])


def _marked(view: View, width: int, ink: Ink) -> list[str]:
    """The user's lines, with the reasons that ask for something; `%explain` has all of them."""
    lines = annotated(view.source, view.remarks, width, ink, brief=True)
    if view.source and view.named:
        lines.append(ink(fill(f"Why, for each: %explain {view.name}", width, "  "), "faint"))
    return lines


def _since(view: View) -> str:
    return f"Against the run {view.history.when}: {view.history.title}" if view.history else ""


def history_lines(view: View, width: int) -> list[str]:
    """What changed since the run before."""
    if view.history is None:
        return []
    changes = view.history.changes or ("nothing else",)
    return [fill(f"  {change}", width, hanging="    ") for change in changes]


def kernels_table(view: View, width: int, ink: Ink = PLAIN) -> list[str]:
    """Name, kind, operators and source lines of each kernel."""
    rows = [
        (f"{k.title}, {more} more" if more else k.title, k.sort, k.lines, k.operators)
        for k, more in listed(view.kernels, view.detailed)
    ]
    return table(rows, width, wrap=True, ink=ink, bold=0)


def passes_table(view: View, width: int, ink: Ink = PLAIN) -> list[str]:
    """Level, name, seconds and change of each pass that begins a level or changed something; the
    names of the others."""
    first = {p.level: p.name for p in reversed(view.passes)}
    told = [p for p in view.passes if p.diffs or first[p.level] == p.name]
    rows = [
        (p.level, p.name, _spent(p.seconds), p.change if p.diffs else "", p.description)
        for p in told
    ]
    lines = table(rows, width, right=(2,), wrap=True, ink=ink, bold=1)
    idle = [p.name for p in view.passes if p not in told]
    if idle:
        words = f"without a change: {', '.join(idle)}"
        lines.append(ink(fill(words, width, "  ", "    "), "faint"))
    return lines


def _spent(value: float) -> str:
    return seconds(value) if value else ""


def speed_table(view: View, width: int, ink: Ink = PLAIN) -> list[str]:
    """Batch size, both times, their ratio with quartiles, distance from NumPy, verdict."""
    if not view.speed and not view.speed_notes:
        return []
    head = ("batch", "compiled", "NumPy", "speed-up", "quartiles", "differs", "verdict")
    kept = range(len(head)) if width >= ROOM else (0, 1, 2, 3, 6)
    rows = [[row[i] for i in kept] for row in (head, *map(speed_cells, view.speed))]
    made = table(rows, width, range(len(kept) - 1), ink=ink, head=True) if view.speed else []
    marked = [_verdict(line, r, ink) for line, r in zip(made[1:], view.speed, strict=True)]
    return (
        made[:1] + marked + [fill(f"  {note}", width, hanging="    ") for note in view.speed_notes]
    )


def _verdict(line: str, row: SpeedRow, ink: Ink) -> str:
    return ink(line, "bad") if "slower" in row.verdict or "WRONG" in row.verdict else line
