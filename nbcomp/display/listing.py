"""LLVM IR and assembly made readable: the user's lines in place of debug metadata and directives.

The line of a debug location is an index, from 1, into a kernel's table of `Location`s; 0 is
nothing. Knows the two notations; the texts themselves stay as they are for tools that want all of
it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

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


def place(index: int, locations: Locations) -> str:
    """The line an index stands for, as a comment; empty when it stands for none."""
    known = locations[index - 1] if 0 < index <= len(locations) else None
    return f"line {known.line}" if known else ""


def readable_llvm(text: str, locations: Locations) -> str:
    """LLVM IR without headers and metadata; each instruction is followed by its source line."""
    lines = {found[1]: int(found[2]) for found in _PLACE.finditer(text)}
    kept: list[str] = []
    for line in text.splitlines():
        if _LLVM_NOISE.match(line):
            continue
        found = _DEBUG.search(line)
        where = place(lines.get(found[1], 0), locations) if found else ""
        code = _DEBUG.sub("", line)
        kept.append(f"{code:<60}  ; {where}" if where else code)
    return _without_gaps(kept)


def readable_assembly(text: str, locations: Locations) -> str:
    """Assembly without directives; a comment says where the code of another source line begins."""
    kept: list[str] = []
    last = ""
    for line in text.splitlines():
        if _DEBUG_SECTION.match(line):
            break  # tables for debuggers, to the end
        found = _LOC.match(line)
        if found:
            where = place(int(found[1]), locations)
            if where and where != last:
                kept.append(f"\t# {where}")
                last = where
        elif not _ASM_NOISE.match(line) and not _UNUSED_LABEL.match(line):
            kept.append(line)
    return _without_gaps(kept).expandtabs(8)


def readable(level: str, text: str, locations: Locations) -> str:
    """The text of a kernel at a level, as it is best read."""
    if level == "llvm":
        return readable_llvm(text, locations)
    return readable_assembly(text, locations) if level == "asm" else text


def _without_gaps(lines: Sequence[str]) -> str:
    """The lines joined, never with two empty ones in a row."""
    kept: list[str] = []
    for line in lines:
        if line.strip() or (kept and kept[-1]):
            kept.append(line.rstrip())
    return "\n".join(kept).strip("\n")
