"""Reductions across rows: whole rows are added to a row of accumulators, in memory's own order."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np

from nbcomp.graph.ir import Node
from nbcomp.graph.op import Contract, Reduce
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Apply,
    Buffer,
    Expr,
    Load,
    Store,
    affine,
    index_add,
    index_scale,
)
from nbcomp.lowering.elements import Index
from nbcomp.lowering.group import AXES
from nbcomp.lowering.reductions import BLOCK, LONG, SPLIT, Reduction
from nbcomp.sizes import Size, is_open, leaves_rest
from nbcomp.types import INT64

DEEP = 8  # rows added to an accumulator while it is in a register
PAGE = (
    4096  # bytes between rows of which only half as many are added at a time: they share few sets
)
PIECES = 16  # of work, that many cores may share
PIECE = 1 << 21  # bytes of a piece, at least: its row of sums is added up on one core
ROWS = 128  # that become one in a piece, at least


class Columns(Reduction):
    """Loops for reductions whose axes are not innermost in memory."""

    @cached_property
    def wide_row(self) -> int:
        """Bytes of a row of sums."""
        size = max(n.type.dtype.itemsize for n in self.main)
        return size * math.prod(self.group.space[k] for k in self.tail)

    @cached_property
    def deep(self) -> int:
        """Rows added at a time."""
        page = not isinstance(self.wide_row, Size) and self.wide_row == PAGE
        return DEEP // 2 if page else DEEP

    def columns(self, outer: list[int], row: int) -> None:
        space = self.group.space
        first, *rest = self.tail
        inner = math.prod(space[k] for k in rest)
        tile = max(1, min(space[first], self.wide // max(inner, 1)))
        tiles = -(-space[first] // tile)
        tasks = tiles * math.prod(space[k] for k in outer)
        deep = row * math.prod(space[k] for k in self.tail) * math.prod(space[k] for k in outer)
        long = [k for k in self.reduced if space[k] >= 2 * self.deep]
        if long and deep >= SPLIT and row >= 64 and (tasks < 16 or row > LONG):
            self.split_columns(outer, long[0], tile, tiles, row, tasks)
            return
        names = [AXES[n % 8] for n in range(len(outer))]
        with (
            self.writer.loops(names, [space[k] for k in outer], self.location) as index,
            self.writer.loop("t", tiles, self.location) as block,
        ):
            at: dict[int, Expr] = dict(zip(outer, index, strict=True))
            accumulators = self.column_accumulators(tile)
            width = self.block_extent(block, tile, space[first])
            self.each_column(
                block, tile, width, lambda where, _: self.start_columns(accumulators, where)
            )
            self.add_rows(
                at,
                self.reduced[0],
                space[self.reduced[0]],
                affine(0),
                block,
                tile,
                width,
                accumulators,
            )

            def finish(where: Index, position: dict[int, Expr]) -> None:
                for node, buffer in accumulators.items():
                    self.elements.finished[node] = self.column_value(node, buffer, where)
                self.column_outputs({**at, **position})

            self.each_column(block, tile, width, finish)
        self.close_stage()

    def column_accumulators(self, tile: int) -> dict[Node, Buffer]:
        shape = (tile, *(self.group.space[k] for k in self.tail[1:]))
        return {
            n: self.local(
                n.name or f"{n.op.name}_", n.type.dtype, (*shape, *self.component_shape(n))
            )
            for n in self.main
        }

    def each_column(
        self,
        block: Affine,
        tile: int,
        width: Expr | int,
        body: Callable[[Index, dict[int, Expr]], None],
    ) -> None:
        """For every column of a tile: body(index within the tile, index of the kept axes)."""
        first, *rest = self.tail
        with (
            self.writer.loop("c", width, self.location) as within,
            self.writer.loops(
                [f"c{n}" for n in range(len(rest))], [self.group.space[k] for k in rest]
            ) as index,
        ):
            place = index_add(index_scale(block, tile), within)
            body((within, *index), {first: place, **dict(zip(rest, index, strict=True))})

    def start_columns(self, accumulators: dict[Node, Buffer], where: Index) -> None:
        for node, buffer in accumulators.items():
            self.start(buffer, where, node)

    def add_rows(
        self,
        at: dict[int, Expr],
        axis: int,
        extent: Expr | int,
        base: Expr,
        block: Affine,
        tile: int,
        width: Expr | int,
        accumulators: dict[Node, Buffer],
    ) -> None:
        """Add rows base..base+extent of the first reduced axis to the accumulators."""
        others = [k for k in self.reduced if k != axis]

        def add(rows: list[Expr], position: dict[int, Expr]) -> None:
            def body(where: Index, columns: dict[int, Expr]) -> None:
                for r in rows:
                    place = {**at, **position, **columns, axis: r}
                    for node, buffer in accumulators.items():
                        self.accumulate(node, place, buffer, where)
                    self.store_full(place)

            self.each_column(block, tile, width, body)

        def nest(rows: list[Expr]) -> None:
            with self.writer.loops(
                [f"s{n}" for n in range(len(others))], [self.group.space[k] for k in others]
            ) as index:
                add(rows, dict(zip(others, index, strict=True)))

        if not isinstance(extent, Expr):
            whole, left = divmod(extent, self.deep)
            if whole:
                with self.writer.loop("r", whole, self.location) as r:
                    start = index_add(base, index_scale(r, self.deep))
                    nest([index_add(start, affine(d)) for d in range(self.deep)])
            if isinstance(left, Size):
                with self.writer.loop("s", left, self.location) as r:
                    nest([index_add(index_add(base, affine(whole * self.deep)), r)])
            elif left:
                nest([index_add(base, affine(whole * self.deep + d)) for d in range(left)])
            return
        with self.writer.loop("r", extent, self.location) as r:
            nest([index_add(base, r)])

    def column_value(self, node: Node, buffer: Buffer, where: Index) -> Callable[[Index], Expr]:
        def read(index: Index) -> Expr:
            own = self.components_of(node, index)
            return Load(buffer.dtype, buffer, (*where, *own), node.location)

        return read

    def column_outputs(self, at: dict[int, Expr]) -> None:
        axes, components = self.group.axes, self.group.components
        for node, buffer in self.outputs.items():
            if isinstance(node.op, Contract):
                continue
            if self.is_full_output(node):
                continue
            for index in self.row_indices(node, at, (*axes, *components)):  # type: ignore[arg-type]
                value = self.elements.at(node, index)
                self.writer.add(Store(buffer, index, value, node.location))

    def split_columns(
        self, outer: list[int], axis: int, tile: int, tiles: int, row: int, tasks: int
    ) -> None:
        """A reduced axis in blocks too: partial rows, then their sum."""
        space = self.group.space
        extent = space[axis]
        pieces = min(-(-PIECES // tasks), extent // ROWS)
        if not is_open((row, self.wide_row)):
            pieces = min(pieces, row * self.wide_row // PIECE)
        blocks = min(extent, max(2, pieces, -(-row // BLOCK)))
        chunk = -(-extent // blocks)
        chunk += -chunk % self.deep
        blocks = -(-extent // chunk)
        names = [AXES[n % 8] for n in range(len(outer))]
        outer_shape = tuple(space[k] for k in outer)
        tail_shape = tuple(space[k] for k in self.tail)
        parts = {
            n: self.temp(
                f"{n.name or n.op.name}_parts",
                n.type.dtype,
                (blocks, *outer_shape, *tail_shape, *self.component_shape(n)),
            )
            for n in self.main
        }
        with (
            self.writer.loop("b", blocks, self.location) as piece,
            self.writer.loops(names, list(outer_shape), self.location) as index,
            self.writer.loop("t", tiles, self.location) as block,
        ):
            at: dict[int, Expr] = dict(zip(outer, index, strict=True))
            accumulators = self.column_accumulators(tile)
            width = self.block_extent(block, tile, space[self.tail[0]])
            self.each_column(
                block, tile, width, lambda where, _: self.start_columns(accumulators, where)
            )
            base = index_scale(piece, chunk)
            if not leaves_rest(extent, chunk):
                self.add_rows(at, axis, chunk, base, block, tile, width, accumulators)
            else:
                self.add_uneven(at, axis, extent, chunk, piece, block, tile, width, accumulators)

            def store(where: Index, position: dict[int, Expr]) -> None:
                columns = tuple(position[k] for k in self.tail)
                for node, buffer in accumulators.items():
                    for component in np.ndindex(*self.component_shape(node)):
                        own = tuple(affine(int(c)) for c in component)
                        value = Load(buffer.dtype, buffer, (*where, *own))
                        self.writer.add(
                            Store(
                                parts[node], (piece, *index, *columns, *own), value, node.location
                            )
                        )

            self.each_column(block, tile, width, store)
        self.close_stage()
        self.sum_columns(outer, names, parts, blocks, tile, tiles)

    def add_uneven(
        self,
        at: dict[int, Expr],
        axis: int,
        extent: int,
        chunk: int,
        piece: Affine,
        block: Affine,
        tile: int,
        width: Expr | int,
        accumulators: dict[Node, Buffer],
    ) -> None:
        """As `add_rows`, when the last block has fewer rows: groups of rows, then the rest."""
        count = self.block_extent(piece, chunk, extent)
        assert isinstance(count, Expr)
        base = index_scale(piece, chunk)
        groups = Apply(INT64, "floor_divide", (count, affine(self.deep)))
        with self.writer.loop("r", groups, self.location) as r:
            start = index_add(base, index_scale(r, self.deep))
            self.add_rows(at, axis, self.deep, start, block, tile, width, accumulators)
        rest = Apply(INT64, "remainder", (count, affine(self.deep)))
        left = index_add(base, affine(0))
        done = Apply(INT64, "multiply", (groups, affine(self.deep)))
        start_rest = Apply(INT64, "add", (left, done))
        self.add_rows(at, axis, rest, start_rest, block, tile, width, accumulators)

    def sum_columns(
        self,
        outer: list[int],
        names: list[str],
        parts: dict[Node, Buffer],
        blocks: int,
        tile: int,
        tiles: int,
    ) -> None:
        space = self.group.space
        with (
            self.writer.loops(names, [space[k] for k in outer], self.location) as index,
            self.writer.loop("t", tiles, self.location) as block,
        ):
            at: dict[int, Expr] = dict(zip(outer, index, strict=True))
            accumulators = self.column_accumulators(tile)
            width = self.block_extent(block, tile, space[self.tail[0]])
            self.each_column(
                block, tile, width, lambda where, _: self.start_columns(accumulators, where)
            )
            with self.writer.loop("b", blocks, self.location) as piece:

                def add(where: Index, position: dict[int, Expr]) -> None:
                    columns = tuple(position[k] for k in self.tail)
                    for node, buffer in accumulators.items():
                        assert isinstance(node.op, Reduce)
                        for component in np.ndindex(*self.component_shape(node)):
                            own = tuple(affine(int(c)) for c in component)
                            value = Load(buffer.dtype, parts[node], (piece, *index, *columns, *own))
                            self.writer.add(
                                Accumulate(buffer, (*where, *own), node.op.fn, value, node.location)
                            )

                self.each_column(block, tile, width, add)

            def finish(where: Index, position: dict[int, Expr]) -> None:
                for node, buffer in accumulators.items():
                    self.elements.finished[node] = self.column_value(node, buffer, where)
                self.column_outputs({**at, **position})

            self.each_column(block, tile, width, finish)
        self.close_stage()
