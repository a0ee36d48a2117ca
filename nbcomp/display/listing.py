"""LLVM IR and assembly made readable: the user's lines in place of debug metadata and directives.

The line of a debug location is an index, from 1, into a kernel's table of `Location`s; 0 is
nothing. Knows the two notations; the texts themselves stay as they are for tools that want all of
it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nbcomp.display.view.texts import Line
from nbcomp.record import Location

Locations = Sequence[Location | None]

_LLVM_NOISE = re.compile(
    r"(!|source_filename|target datalayout|target triple|attributes #|; Module)"
)
_DEBUG = re.compile(r",? !dbg !(\d+)")
_PLACE = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+)", re.MULTILINE)
_ASM_NOISE = re.compile(
    r"\s+\.(cfi_\w+|file|type|size|globl|section|text|p2align|ident|weak|addrsig\w*)\b"
)
_LOC = re.compile(r"\s+\.loc\s+\d+ (\d+)")
_UNUSED_LABEL = re.compile(r"\.L(func_begin|func_end|tmp|cfi)\w*:")
_DEBUG_SECTION = re.compile(r"\s+\.section\s+\.debug")


def _known(index: int, locations: Locations) -> tuple[Location, ...]:
    """The location an index stands for, if any."""
    known = locations[index - 1] if 0 < index <= len(locations) else None
    return (known,) if known else ()


def llvm_lines(text: str, locations: Locations) -> tuple[Line, ...]:
    """LLVM IR without headers and metadata; each instruction is followed by its source line."""
    places = {found[1]: int(found[2]) for found in _PLACE.finditer(text)}
    kept: list[Line] = []
    for line in text.splitlines():
        if _LLVM_NOISE.match(line):
            continue
        found = _DEBUG.search(line)
        where = _known(places.get(found[1], 0), locations) if found else ()
        code = _DEBUG.sub("", line) if found else line
        kept.append(Line(f"{code:<60}  ; {where[0]}" if where else code, where))
    return _without_gaps(kept)


def assembly_lines(text: str, locations: Locations) -> tuple[Line, ...]:
    """Assembly without directives; a comment says where the code of another source line begins."""
    kept: list[Line] = []
    where: tuple[Location, ...] = ()
    last = 0
    for line in text.splitlines():
        if _DEBUG_SECTION.match(line):
            break  # tables for debuggers, to the end
        found = _LOC.match(line)
        if found:
            where = _known(int(found[1]), locations)
            if where and where[0].line != last:
                last = where[0].line
                kept.append(Line(f"        # {where[0]}", where))
        elif not _ASM_NOISE.match(line) and not _UNUSED_LABEL.match(line):
            kept.append(Line(line.expandtabs(8), () if line[:1] not in "\t " else where))
    return _without_gaps(kept)


def lines_of(level: str, text: str, locations: Locations) -> tuple[Line, ...]:
    """The lines of a kernel's text at a level, as they are best read."""
    if level == "llvm":
        return llvm_lines(text, locations)
    if level == "asm":
        return assembly_lines(text, locations)
    return tuple(map(Line, text.splitlines()))


def _without_gaps(lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines, never with two empty ones in a row, nor with one at an end."""
    kept: list[Line] = []
    for line in lines:
        if line.text.strip() or (kept and kept[-1].text):
            kept.append(Line(line.text.rstrip(), line.places, line.construct))
    while kept and not kept[-1].text:
        kept.pop()
    return tuple(kept)
