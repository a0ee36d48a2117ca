"""Where the code below the user's lines comes from, and listings that say so line by line.

An `Origin` is the user's expression, a named construct of the compiler, or both: a user's
expression within the masked tail of a loop.  `Construct` is the whole set of names, each with the
sentence a reader is shown.  Plain data: the levels fill listings, the display reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from nbcomp.record import Location


class Construct(StrEnum):
    """What the compiler added, by name; `sentence` explains it.  EXPRESSION added nothing."""

    sentence: str

    def __new__(cls, name: str, sentence: str) -> Construct:
        member = str.__new__(cls, name)
        member._value_ = name
        member.sentence = sentence
        return member

    EXPRESSION = "", "The user's own expression."
    LOOP = "loop control", "Counts a loop's iterations and decides whether there is another one."
    TAIL = "tail", "The last iterations, too few to fill all lanes: the others are masked out."
    PROLOGUE = "prologue", "Arguments, sizes and strides, read once before the loops."
    ADDRESS = "address", "Where in memory an element lies: loop variables times strides."
    COPY = "unrolled copy", "The same expression on the vectors after the first: several at a time."
    REDUCTION = (
        "reduction",
        "Partial results, one per lane and unrolled vector, are combined in a fixed tree.",
    )
    PACKING = "packing", "A part of an array is copied, into the order in which it is read then."
    STREAMING = "streaming store", "Writes past the caches what would not fit into them."
    CALL = "library call", "A routine of a library, and the arguments it takes by address."
    BRANCH = "branch", "Goes on elsewhere: which statements run next; all lanes agree."
    HELPER = "helper", "A scalar function that loops or branches, kept as a function of its own."
    # What only machine code has:
    CONSTANT = "constant", "A number the compiler needs, brought from read-only memory."
    SPILL = "spill", "A value moved to the stack and back: there were more values than registers."
    MOVE = "register move", "A copy between registers, where a value must be in another one."
    FRAME = "frame", "Entry and exit of a function: registers saved, stack reserved, cleaned up."
    MODE = "mode", "Says how the next instructions work: on how many lanes, rounded how."


@dataclass(frozen=True)
class Origin:
    """Where an instruction comes from: the user's place, a construct, or both."""

    location: Location | None = None
    construct: Construct = Construct.EXPRESSION


@dataclass(frozen=True)
class Line:
    """One line of a text: the user's places it came from, and what the compiler added.

    Of a machine instruction also `kind`, what it does ("fma", "load", …; empty for all that is
    none), `in_loop`, whether it can run more than once in a call, `width`, the bits of its widest
    vector register (-1: as many as the machine has), and `reads`, whether it reads memory.
    """

    text: str
    places: tuple[Location, ...] = ()
    construct: Construct = Construct.EXPRESSION
    kind: str = ""
    in_loop: bool = False
    width: int = 0
    reads: bool = False

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the user's lines, each once, in order."""
        return tuple(sorted({place.line for place in self.places}))

    @property
    def mapped(self) -> bool:
        """Whether it is known where this comes from."""
        return bool(self.places or self.construct)


@dataclass(frozen=True)
class Listing:
    """A text at one level, line by line; of machine code also the name of its assembly language."""

    level: str  # "source", "graph", "loop", "llvm", "asm", …
    lines: tuple[Line, ...]
    language: str = ""  # "x86-64", "AArch64", "RISC-V", "WebAssembly", "PTX"

    @property
    def text(self) -> str:
        """All of it, without what is known about it."""
        return "\n".join(line.text for line in self.lines)

    @property
    def instructions(self) -> tuple[Line, ...]:
        """The machine instructions."""
        return tuple(line for line in self.lines if line.kind)

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)
