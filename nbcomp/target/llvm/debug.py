"""Debug locations as the carrier of origins through LLVM: a line is a place, a column a construct.

LLVM keeps a location with every instruction through its passes and into the assembly.  What it
merges from two places loses its line (0); what it merges from one place under two constructs loses
only its column.  The text without them is the key of the code cache, and LLVM makes the same
instructions of both (tests/target/test_codegen.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from nbcomp.loop.grammar import Expr, Kernel, Stmt
from nbcomp.loop.places import construct_of, places_by_use
from nbcomp.origin import Construct, Origin
from nbcomp.record import Location
from nbcomp.target.llvm.builder import Builder

_CONSTRUCTS = tuple(Construct)


class DebugTable:
    """The debug locations of one kernel's text, numbered as they are met."""

    def __init__(self, kernel: Kernel) -> None:
        self.by_use = places_by_use(kernel)
        self._places: dict[Location | None, int] = {None: 1}  # place -> line
        self._ids: dict[tuple[int, Origin], int] = {}  # (stage, origin) -> metadata id
        # The same by the very objects, which are kept: an origin is looked up for each instruction.
        self._marks: dict[tuple[int, int, str], tuple[Origin, str]] = {}

    def mark(self, stage: int, origin: Origin) -> str:
        """What is written behind an instruction of a stage."""
        key = stage, id(origin.location), origin.construct.value
        if key not in self._marks:
            found = self._ids.setdefault((stage, origin), FIRST + len(self._ids))
            self._places.setdefault(origin.location, len(self._places) + 1)
            self._marks[key] = origin, f", !dbg !{found}"
        return self._marks[key][1]

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


_NOTHING = nullcontext()


class Origins:
    """Says where the instructions of a stage come from while they are written: nowhere.

    This one is for the text that is compiled; `LocatedOrigins` for the one that is looked at.
    """

    prologue = ""  # what is written behind an instruction of the prologue
    scope = ""  # and behind the head of the stage's function

    def within(
        self, construct: Construct | None, node: Stmt | Expr | None = None
    ) -> AbstractContextManager[None]:
        """Instructions inside come from this construct and place; None: as outside."""
        return _NOTHING

    def expression(self, expr: Expr) -> AbstractContextManager[None]:
        """Instructions inside compute this."""
        return _NOTHING

    def statement(self, stmt: Stmt) -> AbstractContextManager[None]:
        """Instructions inside are a statement's, whatever is around it."""
        return _NOTHING

    def copied(self, construct: Construct | None) -> AbstractContextManager[None]:
        """The statements inside are written once more, for this purpose."""
        return _NOTHING


class LocatedOrigins(Origins):
    """Gives every instruction a debug location, by way of the builder."""

    def __init__(self, builder: Builder, table: DebugTable, stage: int) -> None:
        self.builder, self.table, self.stage = builder, table, stage
        self.around = Construct.EXPRESSION  # COPY or TAIL: what the statements here are copies for
        self.scope = f"!dbg !{_subprogram(stage)}"
        prologue = Origin(None, Construct.PROLOGUE)
        self.prologue = table.mark(stage, prologue)
        self.set(prologue)

    def within(
        self, construct: Construct | None, node: Stmt | Expr | None = None
    ) -> AbstractContextManager[None]:
        place = self.place(node) or self.origin.location
        return _Inside(self, Origin(place, self._unless_tail(construct or self.origin.construct)))

    def expression(self, expr: Expr) -> AbstractContextManager[None]:
        return self.within(None, expr)

    def statement(self, stmt: Stmt) -> AbstractContextManager[None]:
        construct = self._unless_tail(construct_of(stmt) or self.around)
        return _Inside(self, Origin(self.place(stmt), construct))

    @contextmanager
    def copied(self, construct: Construct | None) -> Iterator[None]:
        outer, self.around = self.around, self._unless_tail(construct or self.around)
        with self.within(construct):
            yield
        self.around = outer

    def place(self, node: Stmt | Expr | None) -> Location | None:
        """The user's place of an expression or statement."""
        return getattr(node, "location", None) or self.table.by_use.get(id(node))

    def set(self, origin: Origin) -> None:
        """What is written from here on comes from there."""
        self.origin = origin
        self.builder.location = self.table.mark(self.stage, origin)

    def _unless_tail(self, construct: Construct) -> Construct:
        """Whatever is in a tail is the tail's."""
        return Construct.TAIL if self.around == Construct.TAIL else construct


def unlocated(text: str) -> str:
    """A text without the locations in it."""
    return _MARK.sub("", text)


_MARK = re.compile(r"(?:, )?!dbg !\d+")


class _Inside(AbstractContextManager[None]):
    """Where what is written inside comes from; entered for every expression."""

    def __init__(self, origins: LocatedOrigins, origin: Origin) -> None:
        self.origins, self.origin, self.outer = origins, origin, origins.origin

    def __enter__(self) -> None:
        self.outer = self.origins.origin
        self.origins.set(self.origin)

    def __exit__(self, *error: object) -> None:
        self.origins.set(self.outer)


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
