"""What changed since the run before, and since this was compiled."""

from __future__ import annotations

from nbcomp.display.html.blocks import fold, paragraph, prose, section
from nbcomp.display.html.code import excerpt
from nbcomp.display.html.style import MARKS
from nbcomp.display.view.view import View
from nbcomp.display.visible import escape


def history(view: View) -> str:
    """What changed since the run before, and the differences at each level."""
    found = view.history
    if found is None:
        return ""
    changes = "".join(f"<li>{prose(change)}</li>" for change in found.changes)
    items = f'<ul style="margin:2px 0">{changes}</ul>' if changes else paragraph("nothing else")
    diffs = "".join(
        fold(
            escape(f"{d.level} {d.kernel}".strip()),
            excerpt(d.lines, len(d.lines), "diff"),
        )
        for d in found.diffs
    )
    return section(f"Against the run {found.when}: {found.title}", items + diffs)


def stale(view: View) -> str:
    """A notice that this was compiled for things that have changed since."""
    if not view.stale:
        return ""
    style = f"margin:2px 0 8px;padding:2px 0 2px 10px;border-left:4px solid {MARKS['missed']}"
    what = prose("; ".join(view.stale))
    return (
        f'<p style="{style}"><b>Stale:</b> {what}. What is shown is the program before that; '
        "the next call compiles it anew.</p>"
    )
