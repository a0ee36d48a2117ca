"""Loads and stores: contiguous, backwards, gathered, of short rows, masked, past the caches."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce

from nbcomp.errors import Unsupported
from nbcomp.loop.grammar import (
    Affine,
    Buffer,
    Expr,
    Load,
    Prefetch,
    Store,
    affine,
    index_add,
    index_scale,
)
from nbcomp.origin import Construct
from nbcomp.sizes import Size, most
from nbcomp.target.llvm.builder import Value, element_type
from nbcomp.target.llvm.values import Lanes, ValueEmitter, is_literal
from nbcomp.types import BOOL, DType

LLVM_ALIGN = 64  # bytes; streaming stores need it, and the run time gives it to large outputs
STACK = 2 << 20  # bytes of locals: a quarter of the stack of a thread on Linux


class MemoryEmitter(ValueEmitter):
    """The code that reads and writes buffers."""

    def pointer(self, buffer: Buffer) -> Value:
        """The pointer of a buffer; outer buffers become arguments when they are first used."""
        if buffer.memory not in self.pointers:
            self.used.append(buffer)
            self.pointers[buffer.memory] = self.canonical(buffer)
        return self.pointers[buffer.memory]

    def canonical(self, buffer: Buffer) -> Value:
        """A pointer named by role and number, so that equal kernels have equal text."""
        if buffer.role == "local":
            name = f"local{len(self.names)}"
        else:
            name = f"{buffer.role}{self.kernel.buffers.index(buffer)}"
        self.names[name] = buffer.name
        return Value(f"%{name}", "ptr")

    def offset(
        self, buffer: Buffer, indices: tuple[Expr, ...], context: Lanes
    ) -> tuple[Affine, list[Value]]:
        """The position in elements: an affine part, and values (strides applied) that are not."""
        key = (id(buffer), id(indices))  # of what is held here, so that nothing else gets the same
        if key in self.positions:
            return self.positions[key][-1], []
        total: Expr = affine(0)
        rest: list[Value] = []
        for index, stride in zip(indices, buffer.strides, strict=True):
            if isinstance(index, Affine):
                total = index_add(total, index_scale(index, stride))
            else:
                v = self.value(index, context)
                if stride != 1:
                    by = self.b.splat(self.integer(stride), v.lanes)
                    v = self.b.emit(f"mul nsw {v.type} {v.text}, {by.text}", "i64", v.lanes)
                rest.append(v)
        assert isinstance(total, Affine)
        if all(isinstance(index, Affine) for index in indices):
            self.positions[key] = buffer, indices, total
        return total, rest

    def at(
        self, buffer: Buffer, place: Affine, context: Lanes, rest: Iterable[Value] = ()
    ) -> Value:
        """The address of an element: first what is the same all through the innermost loop."""
        outer = inner = Value("0", "i64")
        for base, factor in self.outer_first(place, context):
            term = self.scale(base, factor)
            if self.near or is_literal(base) or self.b.depth(base) == len(self.b.loops):
                inner = self.add(inner, term)
            else:
                outer = self.add(outer, term)
        for value in (self.integer(place.constant), *rest):
            inner = self.add(inner, value)
        return self.gep(buffer, inner, self.gep(buffer, outer))

    def gep(self, buffer: Buffer, offset: Value, pointer: Value | None = None) -> Value:
        """The address of an element, or of one per lane, so far from a pointer (the buffer's)."""
        memory = memory_type(buffer.dtype)
        if buffer.memory in self.lane_storage:
            memory = f"<{self.lane_storage[buffer.memory]} x {memory}>"
        pointer = pointer or self.pointer(buffer)
        if offset.lanes:
            text = f"getelementptr {memory}, ptr {pointer.text}, {offset}"
            return self.b.emit(text, "ptr", offset.lanes)
        if offset.text == "0":
            return pointer
        text = f"getelementptr {memory}, ptr {pointer.text}, i64 {offset.text}"
        return self.once(text, "ptr", of=(offset, pointer))

    def locate_element(
        self, buffer: Buffer, indices: tuple[Expr, ...], context: Lanes
    ) -> tuple[Value, int | None]:
        """The address (lane 0's), and the step per lane in elements; None: addresses per lane.

        Places in local memory are literals, so that LLVM can keep what is there in registers.
        """
        outer, self.near = self.near, buffer.role == "local"
        try:
            with self.origins.within(Construct.ADDRESS):
                return self.address(buffer, indices, context)
        finally:
            self.near = outer

    def address(
        self, buffer: Buffer, indices: tuple[Expr, ...], context: Lanes
    ) -> tuple[Value, int | None]:
        total, rest = self.offset(buffer, indices, context)
        step = dict(total.terms).get(context.var, 0) if context.var else 0
        vectors = [r for r in rest if r.lanes]
        scalars = [r for r in rest if not r.lanes]
        if step and buffer.memory in self.lane_storage:
            raise Unsupported(
                f"a lane of {buffer.name} for every lane of the loop over {context.var}"
            )
        strided = abs(step) > 1
        if not vectors and not strided:
            return self.at(buffer, total, context, scalars), step
        offsets = self.b.splat(
            reduce(self.add, scalars, self.scalar_index(total, context)), context.lanes
        )
        if step:
            by = self.b.splat(self.integer(step), context.lanes)
            lanes = self.b.emit(
                f"mul nsw {by}, {self.steps(1, context.lanes)}", "i64", context.lanes
            )
            offsets = self.b.emit(f"add nsw {offsets}, {lanes.text}", "i64", context.lanes)
        for v in vectors:
            offsets = self.b.emit(f"add nsw {offsets}, {v.text}", "i64", context.lanes)
        return self.gep(buffer, offsets), None

    def load(self, expr: Load, context: Lanes) -> Value:
        """The element(s) of a buffer."""
        buffer, memory = expr.buffer, memory_type(expr.dtype)
        if (wide := self.deinterleave(expr, context)) is not None:
            return self.from_memory(wide, expr.dtype)
        address, step = self.locate_element(buffer, expr.indices, context)
        align = expr.dtype.itemsize
        if buffer.memory in self.lane_storage:
            lanes = self.lane_storage[buffer.memory]
            got = self.b.emit(f"load <{lanes} x {memory}>, {address}", memory, lanes)
        elif step is None:
            got = self.gather(address, memory, context)
        elif step == 0:
            got = self.reading(buffer)(f"load {memory}, {address}, align {align}", memory, 0)
        else:
            if self.has_room(buffer, expr.indices, context):
                context = context.unmasked()
            got = self.load_vector(self.reading(buffer), address, step, memory, align, context)
        return self.from_memory(got, expr.dtype)

    def reading(self, buffer: Buffer) -> Callable[[str, str, int], Value]:
        """How a load is written: once in a block, if nothing writes there in this stage."""
        return self.b.emit if buffer.memory in self.written else self.once

    def load_vector(
        self,
        emit: Callable[[str, str, int], Value],
        address: Value,
        step: int,
        memory: str,
        align: int,
        context: Lanes,
    ) -> Value:
        """A contiguous vector, forwards or (step -1) backwards."""
        lanes, mask = context.lanes, context.mask
        vector = f"<{lanes} x {memory}>"
        if step == -1:
            address = self.backwards(address, memory, lanes)
            mask = self.reverse(mask) if mask else None
        if mask is None:
            text = f"load {vector}, {address}, align {align}"
            got = emit(text, memory, lanes)
        else:
            name = f"llvm.masked.load.v{lanes}{mangle(memory)}.p0"
            self.b.declare(name, vector, "ptr", f"<{lanes} x i1>", vector)
            got = self.b.emit(
                f"call {vector} @{name}(ptr align {align} {address.text}, {mask}, "
                f"{vector} zeroinitializer)",
                memory,
                lanes,
            )
        return self.reverse(got) if step == -1 else got

    def backwards(self, address: Value, memory: str, lanes: int) -> Value:
        return self.b.emit(f"getelementptr {memory}, {address}, i64 {1 - lanes}", "ptr")

    def reverse(self, v: Value) -> Value:
        order = ", ".join(f"i32 {k}" for k in reversed(range(v.lanes)))
        return self.b.emit(
            f"shufflevector {v}, {v.type} poison, <{v.lanes} x i32> <{order}>", v.element, v.lanes
        )

    def gather(self, addresses: Value, memory: str, context: Lanes) -> Value:
        lanes = context.lanes
        vector, mask = f"<{lanes} x {memory}>", self.mask(context)
        name = f"llvm.masked.gather.v{lanes}{mangle(memory)}.v{lanes}p0"
        self.b.declare(name, vector, f"<{lanes} x ptr>", f"<{lanes} x i1>", vector)
        return self.b.emit(
            f"call {vector} @{name}({addresses}, {mask}, {vector} zeroinitializer)", memory, lanes
        )

    def mask(self, context: Lanes) -> Value:
        return context.mask or self.b.constant(True, "i1", context.lanes)

    def deinterleave(self, expr: Load, context: Lanes) -> Value | None:
        """One component of short, whole rows: a wide load, shared by all components, and a shuffle.

        Gathers cost several times as much as loads on today's CPUs.  Only where the row is known to
        be complete, so that nothing outside the buffer is read.
        """
        found = self.row_component(expr, context)
        if found is None:
            return None
        start, width, component = found
        lanes, memory = context.lanes, memory_type(expr.dtype)
        version = self.writes if expr.buffer.memory in self.written else 0
        key = ("wide", expr.buffer.memory, start.terms, start.constant, version)
        if key not in context.memo:
            with self.origins.within(Construct.ADDRESS):
                address = self.at(expr.buffer, start, context)
            count = lanes * width
            text = f"load <{count} x {memory}>, {address}, align {expr.dtype.itemsize}"
            context.memo[key] = self.b.emit(text, memory, count)
        wide = context.memo[key]
        order = ", ".join(f"i32 {k * width + component}" for k in range(lanes))
        return self.b.emit(
            f"shufflevector {wide}, {wide.type} poison, <{lanes} x i32> <{order}>", memory, lanes
        )

    def row_component(self, expr: Load, context: Lanes) -> tuple[Affine, int, int] | None:
        """(start of lane 0's row, row width, component) if a load takes one element per row."""
        shape, strides = expr.buffer.shape, expr.buffer.strides
        if not context.lanes or context.mask or expr.buffer.memory in self.lane_storage:
            return None
        if len(shape) < 2 or not 2 <= shape[-1] <= 4 or strides[-2:] != (shape[-1], 1):
            return None
        width = operator.index(shape[-1])
        *outer, last = expr.indices
        if not isinstance(last, Affine) or last.terms or not 0 <= last.constant < width:
            return None
        if not all(isinstance(i, Affine) for i in outer):
            return None
        start: Expr = affine(0)
        for index, stride in zip(outer, strides[:-1], strict=True):
            start = index_add(start, index_scale(index, stride))
        assert isinstance(start, Affine)
        if dict(start.terms).get(context.var) != width:
            return None
        return start, width, operator.index(last.constant)

    def from_memory(self, v: Value, dtype: DType) -> Value:
        if dtype != BOOL:
            return v
        zero = self.b.constant(0, "i8", v.lanes)
        return self.b.emit(f"icmp ne {v}, {zero.text}", "i1", v.lanes)

    def to_memory(self, v: Value, dtype: DType) -> Value:
        if dtype != BOOL:
            return v
        vector = f"<{v.lanes} x i8>" if v.lanes else "i8"
        return self.b.emit(f"zext {v} to {vector}", "i8", v.lanes)

    def store(self, stmt: Store, context: Lanes) -> None:
        value = self.value(stmt.value, context)
        self.store_value(stmt.buffer, stmt.indices, value, context, stmt.streaming)

    def store_value(
        self,
        buffer: Buffer,
        indices: tuple[Expr, ...],
        value: Value,
        context: Lanes,
        streaming: bool = False,
    ) -> None:
        """Write one value per lane, or one for all."""
        self.writes += 1
        align = buffer.dtype.itemsize
        address, step = self.locate_element(buffer, indices, context)
        if buffer.memory in self.lane_storage:
            value = self.to_memory(
                self.b.splat(value, self.lane_storage[buffer.memory]), buffer.dtype
            )
            self.b.effect(f"store {value}, {address}")
            return
        if step == 0 or not context.lanes:
            if value.lanes:
                raise Unsupported(f"all lanes of the loop over {context.var} write one element")
            self.b.effect(f"store {self.to_memory(value, buffer.dtype)}, {address}, align {align}")
            return
        value = self.to_memory(self.b.splat(value, context.lanes), buffer.dtype)
        if step is None:
            self.scatter(value, address, context)
        else:
            if self.has_room(buffer, indices, context):
                context = context.unmasked()
            self.store_vector(value, address, step, align, context, streaming)

    def has_room(self, buffer: Buffer, indices: tuple[Expr, ...], context: Lanes) -> bool:
        """Whether a row of local memory holds whole vectors, and so needs no mask.

        LLVM keeps in registers only what is accessed without one.
        """
        if buffer.role != "local" or not buffer.shape or context.mask is None:
            return False
        last = indices[-1]
        whole = isinstance(last, Affine) and last.terms == ((context.var, 1),)
        if not whole or not isinstance(last, Affine) or last.constant % context.lanes:
            return False
        room = buffer.strides[-2] if len(buffer.shape) > 1 else elements_of(buffer)
        if isinstance(room, Size):
            return False
        return buffer.strides[-1] == 1 and room % context.lanes == 0

    def store_vector(
        self, value: Value, address: Value, step: int, align: int, context: Lanes, streaming: bool
    ) -> None:
        mask, streaming = context.mask, streaming and step == 1
        if step == -1:
            address = self.backwards(address, value.element, context.lanes)
            value, mask = self.reverse(value), self.reverse(mask) if mask else None
        if mask is None:
            whole = min(LLVM_ALIGN, align * context.lanes)
            how = f"align {whole}, !nontemporal !4" if streaming else f"align {align}"
            with self.origins.within(Construct.STREAMING if streaming else None):
                self.b.effect(f"store {value}, {address}, {how}")
            return
        name = f"llvm.masked.store.v{value.lanes}{mangle(value.element)}.p0"
        self.b.declare(name, "void", value.type, "ptr", mask.type)
        self.b.effect(f"call void @{name}({value}, ptr align {align} {address.text}, {mask})")

    def store_turned(
        self, buffer: Buffer, rows: list[Affine], values: list[Value], context: Lanes
    ) -> None:
        """Write one vector per place of a row, a lane to each of `lanes` rows: a transposition.

        rows: the place in memory, in elements, of the first and the second row.  Each round of
        shuffles interleaves the first half of all elements with the second, which moves the highest
        bit of a place to the lowest; after as many rounds as the number of values has bits, the
        values of a lane lie side by side.  Under a mask rows are all there is, and as many values
        as a power of two.
        """
        self.writes += 1
        lanes, count = context.lanes, len(values)
        width = 1 << (count - 1).bit_length()
        values = [self.to_memory(self.b.splat(v, lanes), buffer.dtype) for v in values]
        values = self.rows_of(values + [values[-1]] * (width - count))
        with self.origins.within(Construct.ADDRESS):
            places = [self.scalar_index(row, context) for row in rows]
            step = self.b.emit(f"sub nsw i64 {places[1].text}, {places[0].text}", "i64")
        whole = lanes // width
        align = buffer.dtype.itemsize
        if count == width and apart(rows) == width:  # the rows are all there is
            masks = self.rows_of([context.mask] * width) if context.mask else [None] * width
            for k, (value, mask) in enumerate(zip(values, masks, strict=True)):
                with self.origins.within(Construct.ADDRESS):
                    place = self.b.emit(f"add nsw i64 {places[0].text}, {k * lanes}", "i64")
                    address = self.gep(buffer, place)
                own = replace(context, mask=mask)
                self.store_vector(value, address, 1, align, own, streaming=False)
            return
        place = places[0]
        for k in range(lanes):
            row = self.part_of(values[k // whole], k % whole * width, width)
            with self.origins.within(Construct.ADDRESS):
                address = self.gep(buffer, place)
                place = self.b.emit(f"add nsw i64 {place.text}, {step.text}", "i64")
            if count == width:
                self.b.effect(f"store {row}, {address}, align {align}")
                continue
            mask = Value(
                f"<{', '.join(f'i1 {int(j < count)}' for j in range(width))}>", "i1", width
            )
            name = f"llvm.masked.store.v{width}{mangle(row.element)}.p0"
            self.b.declare(name, "void", row.type, "ptr", mask.type)
            text = f"{row}, ptr align {align} {address.text}, {mask}"
            self.b.effect(f"call void @{name}({text})")

    def rows_of(self, values: list[Value]) -> list[Value]:
        """Vectors, one for each place of a row, as the rows one after another."""
        half, lanes = len(values) // 2, values[0].lanes
        for _ in range(half.bit_length()):
            pairs = list(zip(values[:half], values[half:], strict=True))
            values = [self.interleaved(a, b, side) for a, b in pairs for side in (0, lanes // 2)]
        return values

    def interleaved(self, a: Value, b: Value, start: int) -> Value:
        """a[start], b[start], a[start + 1], … : half of the lanes of each."""
        picks = (
            f"i32 {k + side}" for k in range(start, start + a.lanes // 2) for side in (0, a.lanes)
        )
        text = f"shufflevector {a}, {b}, <{a.lanes} x i32> <{', '.join(picks)}>"
        return self.b.emit(text, a.element, a.lanes)

    def part_of(self, v: Value, start: int, lanes: int) -> Value:
        """Some lanes of a vector."""
        if lanes == v.lanes:
            return v
        picks = ", ".join(f"i32 {start + k}" for k in range(lanes))
        text = f"shufflevector {v}, {v.type} poison, <{lanes} x i32> <{picks}>"
        return self.b.emit(text, v.element, lanes)

    def scatter(self, value: Value, addresses: Value, context: Lanes) -> None:
        name = f"llvm.masked.scatter.v{value.lanes}{mangle(value.element)}.v{value.lanes}p0"
        mask = self.mask(context)
        self.b.declare(name, "void", value.type, addresses.type, mask.type)
        self.b.effect(f"call void @{name}({value}, {addresses}, {mask})")

    def prefetch(self, stmt: Prefetch, context: Lanes) -> None:
        """Have a cache line fetched for reading, to stay in all caches from the first or second on;
        of several lanes, the first's."""
        place, rest = self.offset(stmt.buffer, stmt.indices, context)
        if rest or stmt.buffer.memory in self.lane_storage:
            return  # data says where: to find out would cost what is to be saved
        with self.origins.within(Construct.ADDRESS):
            address = self.at(stmt.buffer, place, context)
        self.b.declare("llvm.prefetch.p0", "void", "ptr", "i32", "i32", "i32")
        locality = 3 if stmt.near else 2
        self.b.effect(f"call void @llvm.prefetch.p0({address}, i32 0, i32 {locality}, i32 1)")

    def alloc(self, buffer: Buffer, context: Lanes) -> None:
        """Stack memory at the function's entry; inside a vector loop, one value per lane."""
        pointer = self.canonical(buffer)
        memory = memory_type(buffer.dtype)
        self.lane_storage.pop(buffer.memory, None)
        if context.lanes:
            self.lane_storage[buffer.memory] = context.lanes
            memory = f"<{context.lanes} x {memory}>"
        count = elements_of(buffer)
        self.stack += count * buffer.dtype.itemsize * max(context.lanes, 1)
        if self.stack > STACK:
            raise Unsupported(f"{self.stack:,} bytes of values kept by one kernel")
        kind = memory if not buffer.shape else f"[{count} x {memory}]"
        self.entry.append(f"  {pointer.text} = alloca {kind}, align {LLVM_ALIGN}")
        self.pointers[buffer.memory] = pointer


def apart(rows: list[Affine]) -> int | None:
    """How far two places are apart, if that is known."""
    first, second = rows
    return second.constant - first.constant if first.terms == second.terms else None


def elements_of(buffer: Buffer) -> int:
    """Elements of a local's memory: its rows with what is between them, a single row to the end of
    its last cache line; as many as there may be where they are open."""
    pairs = zip(buffer.strides, buffer.shape, strict=True)
    count = max((most(abs(s) * n) for s, n in pairs), default=1)
    if len(buffer.shape) == 1 and count > 1:
        line = LLVM_ALIGN // buffer.dtype.itemsize
        count = -(-count // line) * line
    return max(count, most(math.prod(buffer.shape)))


def memory_type(dtype: DType) -> str:
    return "i8" if dtype == BOOL else element_type(dtype)


def mangle(memory: str) -> str:
    return {"half": "f16", "float": "f32", "double": "f64"}.get(memory, memory)
