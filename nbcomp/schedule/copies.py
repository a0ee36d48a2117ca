"""Copies of the operands of a matrix product, in the order in which tiles read them, as steps.

Knows the product and its blocking; not the loops of tiles (`blocking`).
"""

from __future__ import annotations

from contextlib import suppress

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import Kernel, Store, walk
from nbcomp.schedule.blocks import Blocking, Factor, Product
from nbcomp.schedule.rewriting import constant_extent, find
from nbcomp.schedule.stepwise import Stepwise

LINE = 64  # bytes between rows of a copy beyond their length, so that they are not all in one set


class Copier(Stepwise):
    """Takes the steps that copy operands."""

    def __init__(self, kernel: Kernel, product: Product, how: Blocking) -> None:
        super().__init__(kernel)
        self.product, self.how = product, how

    def split(self, loop: str, extent: int, by: int) -> list[str]:
        """The loop over blocks of a loop, if there is more than one block."""
        return self.do("split", loop, by) if loop and extent > by else []

    def reorder(self, *loops: str) -> None:
        """These loops in this order, but for those that are not there."""
        order = [v for v in loops if v]
        present = [v for v in self.loops if v in order]
        if present != order:
            self.do("reorder", *order)

    def copy_right(self, loop: str) -> None:
        """Copy what an iteration of a loop reads of the right operand, rows of a tile side by
        side."""
        right = self.product.right
        if right is None:
            return
        order: list[int] = []
        if right.turned:
            axes = range(len(right.buffer.shape))
            order = [*(k for k in axes if k not in (right.own, right.shared))]
            order += [right.shared, right.own]
        with suppress(ScheduleError):  # it is read in several places, or the part is too large
            *_, rows, columns = self.do("stage", right.buffer.name, loop, *order)
            if right.turned:
                self.turn(rows, columns)
            else:
                self.do("vectorize", columns, unroll=max(self.how.width // self.how.lanes, 1))

    def turn(self, rows: str, columns: str) -> None:
        """Copy rows to columns in square blocks, which are read and written by whole vectors."""
        lanes = self.how.lanes
        if constant_extent(find(self.kernel, columns)) > lanes:
            (blocks,) = self.do("split", columns, lanes)
            self.reorder(blocks, rows, columns)
        self.do("unroll", columns)
        self.do("vectorize", rows)

    def turn_blocks(self, blocks: str, rows: str, columns: str) -> None:
        """Turn blocks of columns, the last of which may have fewer of them."""
        if self.product.width % self.how.width:
            last = self.do("peel", blocks, 1)
            self.turn(last[-2], last[-1])
        self.turn(rows, columns)

    def copy_left(self, loop: str) -> None:
        """Copy what an iteration of a loop reads of the left operand, its rows a bit apart."""
        left = self.product.left
        if left is None:
            return
        with suppress(ScheduleError):
            copy = self.do("stage", left.buffer.name, loop)
            self.do("vectorize", copy[-1], unroll=4)
            near = next(
                s.buffer for s in walk(find(self.kernel, copy[0]).body) if isinstance(s, Store)
            )
            self.do("pad", near.name, near.shape[-1] + LINE // near.dtype.itemsize)

    def pack(self) -> None:
        """Copy the right operand into the order in which tiles read it, once."""
        right = self.product.right
        if right is None or right.own < 0:
            return
        if self.how.instruction:
            self.pack_groups(right)
            return
        with suppress(ScheduleError):
            blocks, *_, rows, columns = self.do(
                "pack", right.buffer.name, right.own, self.how.width
            )
            if right.turned:
                self.turn_blocks(blocks, rows, columns)

    def pack_groups(self, right: Factor) -> None:
        """Copy the right operand into panels in which the terms of a group lie side by side."""
        axes = (right.own, self.how.width, right.shared, self.product.terms)
        blocks, *_, columns, terms = self.do("pack", right.buffer.name, *axes)
        if right.turned:
            self.do("vectorize", terms)
            return
        if self.product.width % self.how.width and self.product.width > self.how.width:
            last = self.do("peel", blocks, 1)
            self.do("unroll", last[-1])
            self.do("vectorize", last[-2])
        if self.product.width >= self.how.width:
            self.split(columns, self.how.width, self.how.lanes)
        self.do("unroll", terms)
        self.do("vectorize", columns)
