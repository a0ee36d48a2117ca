"""Blocks of loops that are one instruction: where its operands are, and its code there.

The sums of a dot product are a vector, read and written around each instruction, which LLVM keeps
in a register.  The sums of a tile are in a tile, which LLVM does not do for us: they are read once
before a loop that adds to them, and written after it.
"""

from __future__ import annotations

from dataclasses import replace

from nbcomp.loop.grammar import Affine, For, index_add, loop_var, variables
from nbcomp.loop.intrinsics import INTRINSICS, Intrinsic, Place, match
from nbcomp.target.llvm import tensor
from nbcomp.target.llvm.accumulators import AccumulatorEmitter
from nbcomp.target.llvm.builder import Value, element_type
from nbcomp.target.llvm.values import Lanes


class InstructionEmitter(AccumulatorEmitter):
    """The code of instructions."""

    def intrinsic(self, stmt: For, context: Lanes) -> Intrinsic | None:
        """The instruction that a block is, if this CPU has it."""
        found = INTRINSICS[stmt.instruction]
        return found if not context.lanes and found.runs_on(self.b.features) else None

    def one_instruction(self, stmt: For, intrinsic: Intrinsic, context: Lanes) -> None:
        """A block by itself."""
        with self.origins.statement(tensor.adding(stmt)):
            places = match(intrinsic, stmt)
            if tensor.FORMS[stmt.instruction].tile:
                self.tile_in(places["sum"], context)
                self.tiles(stmt, places, context)
                self.tile_out(places["sum"], context)
                return
            full = intrinsic.meaning.extent
            assert isinstance(full, Affine)
            self.dot(stmt, places, full.constant, context)

    # ----------------------------------------------------------------------------- dot products

    def dot(self, stmt: For, places: dict[str, Place], full: int, outer: Lanes) -> None:
        """An instruction whose sums are the lanes of a vector, perhaps not all of them."""
        self.writes += 1
        total, pointers = places["sum"], {n: self.pointer_to(p, outer) for n, p in places.items()}
        assert isinstance(stmt.extent, Affine)
        lanes, element = stmt.extent.constant, element_type(total.buffer.dtype)
        context = Lanes(full, stmt.var, Value("0", "i64"), None, 0)
        if lanes < full:
            mask = ", ".join(f"i1 {int(k < lanes)}" for k in range(full))
            context = replace(context, mask=Value(f"<{mask}>", "i1", full))
            indices = (*total.indices[:-1], index_add(total.indices[-1], loop_var(stmt.var)))
            if self.has_room(total.buffer, indices, context):
                context = context.unmasked()
        align = total.buffer.dtype.itemsize
        old = self.load_vector(self.b.emit, pointers["sum"], 1, element, align, context)
        new = tensor.dot(
            self.b, stmt.instruction, old, pointers["left"], pointers["right"], lanes, full
        )
        self.store_vector(new, pointers["sum"], 1, align, context, False)

    def pointer_to(self, place: Place, context: Lanes) -> Value:
        return self.locate_element(place.buffer, place.indices, context)[0]

    # ------------------------------------------------------------------------------------ tiles

    def tile_sum(self, loop: For, context: Lanes) -> Place | None:
        """The sums of a loop over terms whose body is one product of tiles, the same all along."""
        inner = loop.body[0] if len(loop.body) == 1 else None
        if not isinstance(inner, For) or inner.kind != "instruction":
            return None
        intrinsic = self.intrinsic(inner, context)
        if intrinsic is None or not tensor.FORMS[inner.instruction].tile:
            return None
        places = match(intrinsic, inner)
        total = places["sum"]
        moves = any(loop.var in variables(i) for i in total.indices)
        shared = total.buffer.memory in {places[n].buffer.memory for n in ("left", "right")}
        return None if moves or shared else total

    def tile_in(self, total: Place, context: Lanes) -> None:
        """Read the sums into their tile."""
        tensor.load_tile(self.b, self.entry, 0, *self.tile_place(total, context))

    def tile_out(self, total: Place, context: Lanes) -> None:
        """Write the sums back."""
        self.writes += 1
        tensor.store_tile(self.b, 0, *self.tile_place(total, context))

    def tiles(self, stmt: For, places: dict[str, Place], context: Lanes) -> None:
        """Add a product of two tiles to the sums in theirs."""
        for number, name in ((1, "left"), (2, "right")):
            place = self.tile_place(places[name], context)
            tensor.load_tile(self.b, self.entry, number, *place)
        tensor.multiply_tiles(self.b, stmt.instruction)

    def tile_place(self, place: Place, context: Lanes) -> tuple[Value, Value]:
        """Where a tile begins, and the bytes between its rows."""
        step = self.integer(place.steps[0] * place.buffer.dtype.itemsize)
        return self.pointer_to(place, context), step
