"""Sums over the lanes of a vector loop: accumulators per lane, combined in a fixed tree.

An `Accumulate` into something that is the same for all lanes of a loop gets an accumulator for each
lane and each unrolled copy.  After the loop copies are combined, then halves of lanes; the sums of
several elements share the instructions of that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Alloc,
    Buffer,
    Expr,
    For,
    Load,
    affine,
    neutral,
    variables,
    walk,
)
from nbcomp.origin import Construct
from nbcomp.sizes import Size
from nbcomp.target.llvm import scalars
from nbcomp.target.llvm.builder import Value, element_type
from nbcomp.target.llvm.memory import LLVM_ALIGN, MemoryEmitter, memory_type
from nbcomp.target.llvm.values import Lanes
from nbcomp.types import DType, contiguous_strides

MAX_LANES_LOCAL = 64  # elements of a local buffer that may be kept as one accumulator per lane


@dataclass
class Accumulator:
    """One accumulator per lane and unrolled copy for each element of an `Accumulate` target."""

    storage: list[Value]  # per copy
    fn: str
    buffer: Buffer
    indices: tuple[Expr, ...] | None  # None: the whole local buffer
    size: int
    stmt: Accumulate  # the first that adds to it

    def fits(self, stmt: Accumulate) -> bool:
        """Whether a statement adds to the same place (or another of a local) the same way."""
        places = self.indices is None or places_of(self.indices) == places_of(stmt.indices)
        return stmt.fn == self.fn and places


class AccumulatorEmitter(MemoryEmitter):
    """The code of sums over lanes."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.accumulators: dict[str, Accumulator] = {}  # by the memory they are added to

    def label_number(self) -> int:
        """A number that no label has yet."""
        self.labels += 1
        return self.labels

    def accumulate_lanes(
        self, stmt: Accumulate, found: Accumulator, term: tuple[Value, ...], context: Lanes
    ) -> None:
        address = found.storage[context.copy]
        if found.indices is None and stmt.indices:
            # Accumulators lie side by side, whatever is between the rows of their target.
            dense = replace(stmt.buffer, strides=contiguous_strides(stmt.buffer.shape))
            total, _ = self.offset(dense, stmt.indices, context)
            position = self.scalar_index(total, context)
            vector = f"<{context.lanes} x {element_type(stmt.buffer.dtype)}>"
            if position.text != "0":
                text = f"getelementptr {vector}, {address}, i64 {position.text}"
                address = self.b.emit(text, "ptr")
        element = element_type(stmt.buffer.dtype)
        old = self.b.emit(f"load <{context.lanes} x {element}>, {address}", element, context.lanes)
        new = self.combine(stmt.fn, stmt.buffer.dtype, old, *term)
        if context.mask is not None:
            new = self.b.emit(f"select {context.mask}, {new}, {old}", element, context.lanes)
        self.b.effect(f"store {new}, {address}")

    def combine(self, fn: str, dtype: DType, total: Value, *term: Value) -> Value:
        """fn(total, term) on values of one dtype; a term of two factors is added unrounded, where
        the CPU does that in one instruction."""
        lanes = max(v.lanes for v in (total, *term))
        total, *factors = (self.b.splat(v, lanes) for v in (total, *term))
        if len(factors) == 2:
            return scalars.emit(self.b, "muladd", dtype, (dtype,) * 3, (*factors, total))
        return scalars.emit(self.b, fn, dtype, (dtype, dtype), (total, *factors))

    def make_accumulators(self, stmt: For, lanes: int, unroll: int) -> list[Accumulator]:
        """Accumulators for every target inside that is the same for all lanes."""
        made: list[Accumulator] = []
        inside = {s.buffer.memory for s in walk(stmt.body) if isinstance(s, Alloc)}
        bound = {s.var for s in walk(stmt.body) if isinstance(s, For)}
        for s in walk(stmt.body):
            if not isinstance(s, Accumulate) or s.buffer.memory in inside:
                continue
            if not all(isinstance(i, Affine) for i in s.indices):
                raise Unsupported(f"data says where lanes add to {s.buffer.name}")
            used = set().union(*map(variables, s.indices))
            if stmt.var in used:
                continue
            found = self.accumulators.get(s.buffer.memory)
            if found is None:
                with self.origins.within(Construct.REDUCTION, s):
                    found = self.new_accumulator(s, lanes, unroll)
                self.accumulators[s.buffer.memory] = found
                made.append(found)
            if not found.fits(s) or (found.indices and used & bound):
                raise Unsupported(f"several ways to add to {s.buffer.name} in one vector loop")
        return made

    def new_accumulator(self, stmt: Accumulate, lanes: int, unroll: int) -> Accumulator:
        local = stmt.buffer.role == "local"
        size = math.prod(stmt.buffer.shape) if local else 1
        if isinstance(size, Size) or size > MAX_LANES_LOCAL:
            raise Unsupported(f"an accumulator of {size} elements in a vector loop")
        element = element_type(stmt.buffer.dtype)
        start = self.b.constant(neutral(stmt.fn, stmt.buffer.dtype), element, lanes)
        storage = []
        for _ in range(unroll):
            name = f"%acc{self.label_number()}"
            vector = f"<{lanes} x {element}>"
            self.entry.append(f"  {name} = alloca [{size} x {vector}], align {LLVM_ALIGN}")
            for k in range(size):
                where = Value(name, "ptr")
                if k:
                    where = self.b.emit(f"getelementptr {vector}, ptr {name}, i64 {k}", "ptr")
                self.b.effect(f"store {start}, {where}")
            storage.append(Value(name, "ptr"))
        indices = None if local else stmt.indices
        return Accumulator(storage, stmt.fn, stmt.buffer, indices, size, stmt)

    def finish(self, accumulator: Accumulator, lanes: int) -> None:
        """Combine copies, then lanes, in a fixed tree, and add the result to the target."""
        fn, dtype = accumulator.fn, accumulator.buffer.dtype
        for first, count in self.groups(accumulator, lanes):
            sums = [self.one_copy(accumulator, k, lanes) for k in range(first, first + count)]
            segments = 1
            while len(sums) > 1:  # two vectors become one, whose halves are theirs combined
                pairs = zip(sums[::2], sums[1::2], strict=True)
                sums = [self.halved(fn, dtype, a, b, segments) for a, b in pairs]
                segments *= 2
            while sums[0].lanes > count:
                sums = [self.halved(fn, dtype, sums[0], None, segments)]
            if count == 1:
                total = self.b.emit(f"extractelement {sums[0]}, i64 0", sums[0].element)
                self.add_to_target(accumulator, first, total)
            else:
                self.add_to_local(accumulator, first, sums[0])

    def groups(self, accumulator: Accumulator, lanes: int) -> Iterator[tuple[int, int]]:
        """Elements whose sums over lanes are taken together: first and number, a power of two.

        They lie side by side in local memory.
        """
        buffer, first = accumulator.buffer, 0
        dense = buffer.strides == contiguous_strides(buffer.shape)
        while first < accumulator.size:
            left = min(accumulator.size - first, lanes) if dense else 1
            count = 1 << (left.bit_length() - 1)
            yield first, count
            first += count

    def one_copy(self, accumulator: Accumulator, k: int, lanes: int) -> Value:
        """An element's sums, one per lane, of all unrolled copies."""
        buffer, element = accumulator.buffer, element_type(accumulator.buffer.dtype)
        vector = f"<{lanes} x {element}>"
        parts = []
        for storage in accumulator.storage:
            where = storage
            if k:
                where = self.b.emit(f"getelementptr {vector}, {storage}, i64 {k}", "ptr")
            parts.append(self.b.emit(f"load {vector}, {where}", element, lanes))
        while len(parts) > 1:
            half = (len(parts) + 1) // 2
            joined = [
                self.combine(accumulator.fn, buffer.dtype, a, b)
                for a, b in zip(parts[:half], parts[half:], strict=False)
            ]
            parts = joined + parts[len(joined) : half]
        return parts[0]

    def halved(self, fn: str, dtype: DType, a: Value, b: Value | None, segments: int) -> Value:
        """The halves of each segment combined: those of a, then those of b, if there is one."""
        size = a.lanes // segments
        starts = range(0, a.lanes * (1 if b is None else 2), size)
        halves = []
        for offset in (0, size // 2):
            picks = [start + offset + k for start in starts for k in range(size // 2)]
            order = ", ".join(f"i32 {k}" for k in picks)
            other = f"{a.type} poison" if b is None else str(b)
            text = f"shufflevector {a}, {other}, <{len(picks)} x i32> <{order}>"
            halves.append(self.b.emit(text, a.element, len(picks)))
        return self.combine(fn, dtype, *halves)

    def add_to_local(self, accumulator: Accumulator, first: int, sums: Value) -> None:
        """Add a vector of sums to the elements of local memory from one on."""
        self.writes += 1
        buffer = accumulator.buffer
        memory, align = memory_type(buffer.dtype), buffer.dtype.itemsize
        where = self.gep(buffer, Value(str(first), "i64"))
        text = f"load <{sums.lanes} x {memory}>, {where}, align {align}"
        old = self.from_memory(self.b.emit(text, memory, sums.lanes), buffer.dtype)
        new = self.to_memory(self.combine(accumulator.fn, buffer.dtype, old, sums), buffer.dtype)
        self.b.effect(f"store {new}, {where}, align {align}")

    def add_to_target(self, accumulator: Accumulator, k: int, total: Value) -> None:
        buffer, context = accumulator.buffer, Lanes()
        if accumulator.indices is not None:
            indices = accumulator.indices
        else:
            indices = tuple(
                affine(int(i)) for i in (np.unravel_index(k, buffer.shape) if buffer.shape else ())
            )
        old = self.load(Load(buffer.dtype, buffer, indices), context)
        new = self.combine(accumulator.fn, buffer.dtype, old, total)
        self.store_value(buffer, indices, new, context)


def places_of(indices: tuple[Expr, ...]) -> list[object]:
    """Affine indices, comparable."""
    return [(i.terms, i.constant) if isinstance(i, Affine) else i for i in indices]
