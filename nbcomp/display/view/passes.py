"""One row for each pass: its time, and what it changed in every kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from nbcomp.display.view.words import count
from nbcomp.record import Snapshot, Trace


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


def pass_rows(trace: Trace, kernels: Mapping[str, str], part: str = "") -> list[PassRow]:
    """The rows of all passes, in order; what changed is told of these kernels, by these names.

    part: what the graph is called, if it is one of several.
    """
    changed = trace.changed(kernels)
    return joined_rows(_row(s, lines, kernels.get(s.kernel, part)) for s, lines in changed)


def _row(snapshot: Snapshot, lines: Sequence[str], name: str) -> PassRow:
    """One pass over one kernel, or over a graph, of that name."""
    return PassRow(
        name=snapshot.name,
        level=snapshot.level,
        description=snapshot.description,
        seconds=snapshot.seconds,
        added=sum(line.startswith("+") for line in lines),
        removed=sum(line.startswith("-") for line in lines),
        diffs=((name, tuple(lines)),) if lines else (),
    )


def joined_rows(*rows: Iterable[PassRow]) -> list[PassRow]:
    """The rows of one pass over several kernels as one, where the first of them is."""
    found: dict[tuple[str, str], list[PassRow]] = {}
    for row in chain(*rows):
        found.setdefault((row.level, row.name), []).append(row)
    return [_joined(same) for same in found.values()]


def _joined(rows: Sequence[PassRow]) -> PassRow:
    """One pass over what all of these are over."""
    return replace(
        rows[0],
        seconds=sum(row.seconds for row in rows),
        added=sum(row.added for row in rows),
        removed=sum(row.removed for row in rows),
        diffs=tuple(chain.from_iterable(row.diffs for row in rows)),
    )
