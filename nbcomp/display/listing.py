"""A listing as it is best read: the user's lines stand as comments beside or between the code.

What each line came from is the listing's; this only writes it down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from nbcomp.origin import Line, Listing


def commented(listing: Listing) -> Listing:
    """A level with comments."""
    if listing.level.startswith("llvm"):
        return replace(listing, lines=_without_gaps(map(_beside, listing)))
    if listing.level == "asm":
        return replace(listing, lines=_without_gaps(_between(listing)))
    return listing


def where(line: Line) -> str:
    """The user's lines it came from, in words; empty if there are none."""
    if not line.places:
        return ""
    numbers = line.numbers
    return f"line{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}" if numbers else ""


def _beside(line: Line) -> Line:
    """LLVM IR: each instruction is followed by its source line."""
    words = where(line)
    return Line(f"{line.text:<60}  ; {words}", line.places, line.construct) if words else line


def _between(listing: Listing) -> Iterator[Line]:
    """Assembly: a comment says where the code of another source line begins."""
    last = ""
    for line in listing:
        words = where(line) if line.kind else ""
        if words not in ("", last):
            last = words
            yield Line(f"        # {last}", line.places)
        yield line


def _without_gaps(lines: Iterable[Line]) -> tuple[Line, ...]:
    """The lines, never with two empty ones in a row, nor with one at an end."""
    kept: list[Line] = []
    for line in lines:
        if line.text or (kept and kept[-1].text):
            kept.append(line)
    while kept and not kept[-1].text:
        kept.pop()
    return tuple(kept)
