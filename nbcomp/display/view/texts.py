"""How much of many texts is kept, line by line, so that a report stays within its size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nbcomp.origin import Line

FEW = 2000  # characters that are not worth beginning a text for


@dataclass(frozen=True)
class Text:
    """The lines of a text that are kept, out of `total`."""

    lines: tuple[Line, ...]
    total: int

    @property
    def cut(self) -> bool:
        """Whether lines were left out."""
        return len(self.lines) < self.total

    def __str__(self) -> str:
        return "\n".join(line.text for line in self.lines)


class Budget:
    """Characters that are left for texts; each text takes what it needs, or as much as there is.

    None is no limit.
    """

    def __init__(self, characters: int | None) -> None:
        self.left = characters

    @property
    def spent(self) -> bool:
        """Whether nothing worth showing is left."""
        return self.left is not None and self.left < FEW

    def keep(self, lines: Sequence[Line], share: float = 1.0) -> Text:
        """As many whole lines from the start as fit; at most that share of what is left."""
        if self.left is None:
            return Text(tuple(lines), len(lines))
        room, kept = self.left * share, 0
        for line in lines:
            room -= len(line.text) + 1
            if room < 0:
                break
            kept += 1
        self.left -= sum(len(line.text) + 1 for line in lines[:kept])
        return Text(tuple(lines[:kept]), len(lines))
