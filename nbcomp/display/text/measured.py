"""What was measured, as tables of a terminal."""

from __future__ import annotations

from nbcomp.display.text.ink import PLAIN, Ink
from nbcomp.display.text.tables import fill, table
from nbcomp.display.view.measured import Table, tables
from nbcomp.measure.figures import Measured


def measured_text(measured: Measured, width: int, ink: Ink = PLAIN) -> list[str]:
    """A block of lines for each part that was measured."""
    return [_block(part, width, ink) for part in tables(measured)]


def _block(part: Table, width: int, ink: Ink) -> str:
    right = [k for k in range(len(part.head)) if k not in part.words]
    lines = table([part.head, *part.rows], width, right, wrap=True, ink=ink, head=True)
    notes = [fill(note, width, "  ", "    ") for note in part.notes]
    return "\n".join([ink(part.title, "bold"), *lines, *notes])
