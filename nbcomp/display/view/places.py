"""Numbered spans of the user's source, by which every level refers to it.

Columns are converted from UTF-8 bytes, as Python counts, to the UTF-16 units of the line as it is
shown, as JavaScript counts.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from dataclasses import dataclass

from nbcomp.display.visible import visible
from nbcomp.record import Location


@dataclass(frozen=True)
class Place:
    """The span of one expression; line 0 stands for another file than the one that is shown."""

    line: int
    column: int
    end_line: int
    end_column: int
    function: str


class Places:
    """Hands out numbers; equal spans have one."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: dict[Location, int] = {}

    def number(self, location: Location) -> int:
        """The number of a span."""
        return self.found.setdefault(location, len(self.found))

    def numbers(self, locations: Iterable[Location]) -> list[int]:
        """The numbers of several spans, each once."""
        found = self.found
        return list(dict.fromkeys([found.setdefault(at, len(found)) for at in locations]))

    @property
    def places(self) -> list[Place]:
        """All spans, in the order of their numbers."""
        return [self._place(location) for location in self.found]

    def _place(self, at: Location) -> Place:
        if at.file != self.file:
            return Place(0, 0, 0, 0, f"{at.function or 'code'}, line {at.line} of {at.file}")
        end = at.end_line or at.line
        start, stop = self._column(at.line, at.column), self._column(end, at.end_column)
        return Place(at.line, start, end, stop, at.function)

    def _column(self, line: int, column: int) -> int:
        if not column:
            return 0
        raw = linecache.getline(self.file, line).encode()[:column]
        before = visible(raw.decode(errors="replace"))
        return len(before.encode("utf-16-le", "surrogatepass")) // 2
