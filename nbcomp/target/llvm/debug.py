"""Debug locations as the carrier of origins through LLVM: a line is a place, a column a construct.

LLVM keeps a location with every instruction through its passes and into the assembly.  What it
merges from two places loses its line (0); what it merges from one place under two constructs loses
only its column.  Locations are written only into a text made for looking at, never into the one
that is compiled: that one is the key of the code cache, and LLVM makes the same instructions of
both (tests/provenance/test_code.py).
"""

from __future__ import annotations

from nbcomp.origin import Construct, Origin
from nbcomp.record import Location

_CONSTRUCTS = tuple(Construct)


class DebugTable:
    """The debug locations of one kernel's text, numbered as they are met.

    by_use: places of what has no location of its own, by id (`loop.places`).
    """

    def __init__(self, by_use: dict[int, Location]) -> None:
        self.by_use = by_use
        self._places: dict[Location | None, int] = {None: 1}  # place -> line
        self._ids: dict[tuple[int, Origin], int] = {}  # (stage, origin) -> metadata id

    def mark(self, stage: int, origin: Origin) -> str:
        """What is written behind an instruction of a stage."""
        found = self._ids.setdefault((stage, origin), FIRST + len(self._ids))
        self._places.setdefault(origin.location, len(self._places) + 1)
        return f", !dbg !{found}"

    def scope(self, stage: int) -> str:
        """What is written behind the head of a stage's function."""
        return f"!dbg !{_subprogram(stage)}"

    def metadata(self, stages: int) -> list[str]:
        """The definitions of all that was written, for the end of the module."""
        lines = list(_HEAD)
        for n in range(stages):
            lines.append(
                f'!{_subprogram(n)} = distinct !DISubprogram(name: "stage{n}", scope: !2, '
                "file: !2, line: 1, type: !3, spFlags: DISPFlagDefinition, unit: !0)"
            )
        for (stage, origin), number in self._ids.items():
            line = self._places[origin.location]
            column = _CONSTRUCTS.index(origin.construct) + 1
            scope = _subprogram(stage)
            lines.append(
                f"!{number} = !DILocation(line: {line}, column: {column}, scope: !{scope})"
            )
        return lines

    @property
    def places(self) -> tuple[Location | None, ...]:
        """What the lines mean, from line 1."""
        return tuple(self._places)


class NoDebug(DebugTable):
    """Writes nothing: the text that is compiled."""

    def __init__(self) -> None:
        super().__init__({})

    def mark(self, stage: int, origin: Origin) -> str:
        return ""

    def scope(self, stage: int) -> str:
        return ""

    def metadata(self, stages: int) -> list[str]:
        return []


def origin_of(places: tuple[Location | None, ...], line: int, column: int) -> Origin | None:
    """What a line and a column stand for; None for line 0, which LLVM gives what it merged."""
    if not 0 < line <= len(places):
        return None
    known = 0 < column <= len(_CONSTRUCTS)
    construct = _CONSTRUCTS[column - 1] if known else Construct.EXPRESSION
    return Origin(places[line - 1], construct)


FIRST = 1 << 16  # the id of the first location; subprograms lie below


def _subprogram(stage: int) -> int:
    return 10 + stage


_HEAD = (
    "!llvm.dbg.cu = !{!0}",
    "!llvm.module.flags = !{!1}",
    '!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !2, producer: "nbcomp", '
    "isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly)",
    '!1 = !{i32 2, !"Debug Info Version", i32 3}',
    '!2 = !DIFile(filename: "cell", directory: "")',
    "!3 = !DISubroutineType(types: !{})",
)
