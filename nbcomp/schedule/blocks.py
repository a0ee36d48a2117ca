"""What a matrix product is, and how it is walked: plain data.

Knows loops by their names and operands by their buffers; no steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nbcomp.loop.grammar import Accumulate, Buffer


@dataclass(frozen=True)
class Factor:
    """An operand: its axis of the result's rows or columns (-1: none), and that of the sum."""

    buffer: Buffer
    own: int
    shared: int

    @property
    def turned(self) -> bool:
        """Whether its elements lie side by side along the sum, not along the result."""
        strides = self.buffer.strides
        return strides[self.shared] == 1 and (self.own < 0 or strides[self.own] != 1)


@dataclass(frozen=True)
class Product:
    """The loops over rows ("" where there is one row), columns and the shared axis; the sum.

    left, right: the operands that are arrays; None for those that are computed.  inner, terms: the
    loop over the terms of a group, and how many there are, where an instruction adds up groups:
    then the shared axis is that of the groups.
    """

    rows: str
    columns: str
    shared: str
    sum: Accumulate
    height: int
    width: int
    depth: int
    left: Factor | None
    right: Factor | None
    inner: str = ""
    terms: int = 1


@dataclass(frozen=True)
class Blocking:
    """How a product is walked.

    height, width: rows and columns of a register tile; `lanes` elements are a vector.  depth: terms
    of the sum at a time, 0 for all.  rows, columns: tiles of rows and panels of columns in a block,
    0 for all; where rows are open, 0 tiles in a block have all rows go panel by panel.  left: the
    part of the left operand that a block reads is copied.  right: whether the right one is read in
    place, copied panel by panel, or packed, once and as a whole.  ahead: how many terms ahead the
    right one is asked for, 0 for not at all.  instruction: what adds up groups of terms for a
    vector of sums.  tiles: what does so for a whole tile, of as many groups as it has rows.
    """

    walk: Literal["panels", "blocks", "dots", "rows"]
    height: int
    width: int
    lanes: int
    depth: int = 0
    rows: int = 0
    columns: int = 0
    left: bool = False
    right: Literal["in place", "copied", "packed"] = "in place"
    ahead: int = 0
    instruction: str = ""
    tiles: str = ""


@dataclass(frozen=True)
class Part:
    """A part of the result: its loops over rows ("" for none) and columns, and their extents."""

    rows: str
    columns: str
    height: int
    width: int
