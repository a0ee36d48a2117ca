"""One row for each pass: its time, and what it changed in every kernel."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from nbcomp.display.view.words import count
from nbcomp.record import Trace


@dataclass(frozen=True)
class PassRow:
    """One pass, over all kernels: its time, the lines it added and removed, the diffs by kernel."""

    name: str
    level: str
    description: str
    seconds: float
    added: int
    removed: int
    diffs: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def change(self) -> str:
        """What changed, in words."""
        if not self.added and not self.removed:
            return "no change"
        return " ".join(
            f"{sign}{count(lines, 'line')}"
            for sign, lines in (("+", self.added), ("−", self.removed))
            if lines
        )


def pass_rows(trace: Trace, kernels: Collection[str]) -> list[PassRow]:
    """The rows of all passes, in order; what changed is told of these kernels."""
    merged: dict[tuple[str, str], PassRow] = {}
    for snapshot, lines in trace.changed(kernels):
        key = snapshot.level, snapshot.name
        added = sum(line.startswith("+") for line in lines)
        removed = sum(line.startswith("-") for line in lines)
        old = merged.get(key)
        diffs = ((snapshot.kernel, tuple(lines)),) if lines else ()
        merged[key] = PassRow(
            name=snapshot.name,
            level=snapshot.level,
            description=snapshot.description,
            seconds=snapshot.seconds + (old.seconds if old else 0.0),
            added=added + (old.added if old else 0),
            removed=removed + (old.removed if old else 0),
            diffs=(old.diffs if old else ()) + diffs,
        )
    return list(merged.values())
