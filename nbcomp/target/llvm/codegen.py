"""Loops to LLVM IR: one function per stage of a kernel, explicit vectors, masked tails.

    void stage(ptr buffers, ptr params, i64 begin, i64 end) -> i64 status

Loop kinds become code here: a "vector" loop evaluates its body on <W x T> values with the loop
variable as base + 0..W-1, first `unroll` vectors at a time, then the rest under a mask.  Large
integers (extents, strides) are read from `params`, so that kernels that differ only in sizes share
one piece of machine code: the text of a kernel is its cache key.  Every instruction carries a debug
location whose *line* is an index into `KernelCode.locations`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Alloc,
    Apply,
    Block,
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Select,
    Stmt,
    Store,
    Var,
    While,
    affine,
    children,
    index_add,
    index_scale,
    neutral,
    variables,
    walk,
)
from nbcomp.target.llvm import blas, scalars
from nbcomp.target.llvm.builder import Builder, Value, element_type
from nbcomp.trace import Location
from nbcomp.types import BOOL, DType

LITERAL = 64  # integers up to this size are written into the code, larger ones are parameters
MAX_LANES_LOCAL = 64  # elements of a local buffer that may be kept as one accumulator per lane
LLVM_ALIGN = 64  # bytes; streaming stores need it, and the run time gives it to large outputs
STACK = 2 << 20  # bytes of locals: a quarter of the stack of a thread on Linux


@dataclass(frozen=True)
class StageCode:
    """One function of a kernel: `slots` index the kernel's buffers, in the order the code has them.

    A parallel stage runs over begin..end of 0..extent; a serial one is called with 0, 1.
    """

    symbol: str
    slots: tuple[int, ...]
    params: tuple[int, ...]
    extent: int
    parallel: bool


@dataclass(frozen=True)
class KernelCode:
    """The LLVM text of a kernel (functions, declarations, metadata) and how to call its stages."""

    text: str
    stages: tuple[StageCode, ...]
    locations: tuple[Location | None, ...]
    names: dict[str, str]  # names in the text -> the kernel's own

    def readable(self, text: str) -> str:
        """LLVM IR or assembly of this kernel with the kernel's own names in it.

        The text that is compiled has none, so that equal kernels share their code.
        """
        return _CANONICAL.sub(lambda found: self.names.get(found[0], found[0]), text)


_CANONICAL = re.compile(r"(?<=[%@])(?:input|output|temp|local)\d+\b|\bkernel(?=\.\d)")


def generate(kernel: Kernel, vector_bytes: int) -> KernelCode:
    """LLVM IR of a kernel for vectors of `vector_bytes`.  Raises Unsupported for what has none."""
    declarations: dict[str, str] = {}
    locations: dict[Location | None, int] = {kernel.location: 0}
    functions, stages = [], []
    names = {"kernel": kernel.name}
    for number, stage in enumerate(kernel.stages):
        emitter = _Stage(kernel, number, stage, vector_bytes, locations, names)
        text, code = emitter.function()
        functions.append(text)
        stages.append(code)
        declarations.update(emitter.b.declarations)
    text = "\n".join(
        [*functions, *declarations.values(), *_metadata(len(kernel.stages), locations)]
    )
    return KernelCode(text + "\n", tuple(stages), tuple(locations), names)


def _metadata(stages: int, locations: dict[Location | None, int]) -> list[str]:
    """Debug metadata: each stage a subprogram, each location a line, its index plus 1."""
    lines = [
        "!llvm.dbg.cu = !{!0}",
        "!llvm.module.flags = !{!1}",
        '!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !2, producer: "nbcomp", '
        "isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly)",
        '!1 = !{i32 2, !"Debug Info Version", i32 3}',
        '!2 = !DIFile(filename: "cell", directory: "")',
        "!3 = !DISubroutineType(types: !{})",
        "!4 = !{i32 1}",
    ]
    for n in range(stages):
        lines.append(
            f'!{10 + n} = distinct !DISubprogram(name: "stage{n}", scope: !2, file: !2, line: 1, '
            "type: !3, spFlags: DISPFlagDefinition, unit: !0)"
        )
        for k in range(len(locations)):
            lines.append(
                f"!{_location_id(stages, n, k)} = !DILocation(line: {k + 1}, scope: !{10 + n})"
            )
    return lines


def _location_id(stages: int, stage: int, index: int) -> int:
    # Locations are numbered as they are met, so ids interleave the stages to stay unique.
    return 10 + stages + index * stages + stage


@dataclass(frozen=True)
class _Lanes:
    """How the code around a statement runs: scalar (lanes 0), or as lanes of a vector loop."""

    lanes: int = 0
    var: str = ""
    base: Value | None = None  # the loop variable in lane 0
    mask: Value | None = None
    copy: int = 0  # which of the unrolled vectors
    memo: dict[object, Value] = field(default_factory=dict)

    def fresh(self) -> _Lanes:
        """The same, for another run of a body: nothing is known yet."""
        return replace(self, memo={})


@dataclass
class _Accumulator:
    """One accumulator per lane and unrolled copy for each element of an `Accumulate` target."""

    storage: list[Value]  # per copy
    fn: str
    buffer: Buffer
    indices: tuple[Expr, ...] | None  # None: the whole local buffer
    size: int

    def fits(self, stmt: Accumulate) -> bool:
        """Whether a statement adds to the same place (or another of a local) the same way."""
        places = self.indices is None or _places(self.indices) == _places(stmt.indices)
        return stmt.fn == self.fn and places


class _Stage:
    def __init__(
        self,
        kernel: Kernel,
        number: int,
        stage: Stmt,
        vector_bytes: int,
        locations: dict[Location | None, int],
        names: dict[str, str],
    ) -> None:
        self.kernel, self.number, self.stage = kernel, number, stage
        self.vector_bytes, self.locations = vector_bytes, locations
        self.names = names
        self.b = Builder()
        if vector_bytes == 64:  # the instructions that come with 512-bit vectors (machine.host)
            self.b.features = frozenset(("avx512f", "avx512bw", "avx512dq", "avx512vl"))
        self.entry: list[str] = []
        self.params: dict[int, Value] = {}
        self.env: dict[str, Value] = {}
        self.pointers: dict[str, Value] = {}  # buffer name -> pointer
        self.lane_storage: dict[str, int] = {}  # local buffers that hold one value per lane
        self.accumulators: dict[str, _Accumulator] = {}
        self.block = "entry"
        self.labels = 0
        self.used: list[Buffer] = []
        self.written = {b.memory for s in walk((stage,)) for b in _targets(s)}
        self.writes = 0  # how many so far: what is read from written memory is known until the next
        self.volatile: dict[int, bool] = {}
        self.stack = 0

    # ------------------------------------------------------------------------------- the function

    def function(self) -> tuple[str, StageCode]:
        """The text of the stage's two functions: one with typed pointers, one to unpack them."""
        parallel = isinstance(self.stage, For) and self.stage.kind == "parallel"
        self.locate(getattr(self.stage, "location", None) or self.kernel.location)
        self.b.label("body")
        self.block = "body"
        context = _Lanes()
        extent = 1
        if parallel and isinstance(self.stage, For):
            assert isinstance(self.stage.extent, Affine)
            extent = self.stage.extent.constant
            begin, end = Value("%begin", "i64"), Value("%end", "i64")
            self.loop(self.stage.var, begin, end, 1, lambda: self.body(self.stage.body, context))  # type: ignore[union-attr]
        else:
            self.statement(self.stage, context)
        self.b.effect("ret i64 0")
        symbol = f"kernel.{self.number}"
        return self._text(symbol), StageCode(
            symbol,
            tuple(self.kernel.buffers.index(u) for u in self.used),
            tuple(self.params),
            extent,
            parallel,
        )

    def _text(self, symbol: str) -> str:
        scope = f"!dbg !{10 + self.number}"
        pointers = []
        for buffer in self.used:
            # Outputs and temps are the run time's own memory: nothing else points there.
            own = "noalias " if buffer.role != "input" else ""
            access = "" if buffer.memory in self.written else "readonly "
            pointers.append(f"ptr {own}{access}captures(none) {self.pointers[buffer.memory].text}")
        arguments = ", ".join([*pointers, "ptr noalias readonly %params", "i64 %begin", "i64 %end"])
        lines = [
            f'define internal i64 @"{symbol}.code"({arguments}) noinline nounwind {scope} {{',
            "entry:",
            *self.entry,
            "  br label %body",
            *self.b.lines,
            "}",
            f'define i64 @"{symbol}"(ptr %buffers, ptr %params, i64 %begin, i64 %end) nounwind {{',
        ]
        for k in range(len(self.used)):
            lines.append(f"  %a{k} = getelementptr ptr, ptr %buffers, i64 {k}")
            lines.append(f"  %p{k} = load ptr, ptr %a{k}")
        passed = ", ".join(
            [
                *(f"ptr %p{k}" for k in range(len(self.used))),
                "ptr %params",
                "i64 %begin",
                "i64 %end",
            ]
        )
        lines += [f'  %r = call i64 @"{symbol}.code"({passed})', "  ret i64 %r", "}"]
        return "\n".join(lines)

    def locate(self, location: Location | None) -> None:
        """Instructions from here on come from this place."""
        if location is None:
            return
        index = self.locations.setdefault(location, len(self.locations))
        self.b.location = f", !dbg !{_location_id(len(self.kernel.stages), self.number, index)}"

    # --------------------------------------------------------------------------------- integers

    def integer(self, n: int) -> Value:
        """An i64: small ones as literals, large ones from the parameters."""
        if abs(n) <= LITERAL:
            return Value(str(n), "i64")
        if n < 0:
            positive = self.integer(-n)
            return self.b.emit(f"sub nsw i64 0, {positive.text}", "i64")
        if n not in self.params:
            k = len(self.params)
            self.entry.append(f"  %pa{k} = getelementptr i64, ptr %params, i64 {k}")
            self.entry.append(f"  %param{k} = load i64, ptr %pa{k}, !invariant.load !4")
            self.params[n] = Value(f"%param{k}", "i64")
        return self.params[n]

    def add(self, a: Value, b: Value) -> Value:
        """a + b of two indices, folding zero."""
        if a.text == "0":
            return b
        if b.text == "0":
            return a
        if _is_literal(a) and _is_literal(b):
            return Value(str(int(a.text) + int(b.text)), "i64")
        return self.b.emit(f"add nsw i64 {a.text}, {b.text}", "i64")

    def scale(self, a: Value, factor: int) -> Value:
        """factor·a of an index."""
        if factor == 1:
            return a
        if _is_literal(a):
            return self.integer(int(a.text) * factor)
        return self.b.emit(f"mul nsw i64 {a.text}, {self.integer(factor).text}", "i64")

    def scalar_index(self, expr: Affine, context: _Lanes) -> Value:
        """The value of an affine index in lane 0."""
        key = ("index", expr.terms, expr.constant)
        if key not in context.memo:
            total = Value("0", "i64")
            for var, factor in expr.terms:
                base = context.base if var == context.var and context.base else self.env[var]
                total = self.add(total, self.scale(base, factor))
            context.memo[key] = self.add(total, self.integer(expr.constant))
        return context.memo[key]

    # ------------------------------------------------------------------------------- expressions

    def value(self, expr: Expr, context: _Lanes) -> Value:
        """An expression's value: a scalar where it is the same for all lanes, else a vector."""
        if isinstance(expr, Const):
            return self.b.constant(expr.value, element_type(expr.dtype))
        if isinstance(expr, Var):
            return self.env[expr.name]
        key = (id(expr), self.writes if self.may_change(expr) else 0)
        if key not in context.memo:
            outer = self.b.location
            self.locate(getattr(expr, "location", None))
            context.memo[key] = self._compute(expr, context)
            self.b.location = outer
        return context.memo[key]

    def may_change(self, expr: Expr) -> bool:
        """Whether the expression reads memory that this stage writes."""
        found = self.volatile.get(id(expr))
        if found is None:
            read = isinstance(expr, Load) and expr.buffer.memory in self.written
            found = read or any(map(self.may_change, children(expr)))
            self.volatile[id(expr)] = found
        return found

    def _compute(self, expr: Expr, context: _Lanes) -> Value:
        match expr:
            case Affine():
                return self.affine_value(expr, context)
            case Load():
                return self.load(expr, context)
            case Cast():
                return scalars.cast(
                    self.b, self.value(expr.value, context), expr.value.dtype, expr.dtype
                )
            case Select():
                return self.select(expr, context)
            case Apply():
                args = [self.value(a, context) for a in expr.args]
                lanes = max(a.lanes for a in args)
                args = [self.b.splat(a, lanes) for a in args]
                dtypes = tuple(a.dtype for a in expr.args)
                return scalars.emit(self.b, expr.fn, expr.dtype, dtypes, tuple(args))
        raise Unsupported(f"no code for the expression {expr!r}")

    def select(self, expr: Select, context: _Lanes) -> Value:
        condition = self.value(expr.condition, context)
        yes, no = self.value(expr.yes, context), self.value(expr.no, context)
        lanes = max(condition.lanes, yes.lanes, no.lanes)
        yes, no = self.b.splat(yes, lanes), self.b.splat(no, lanes)
        if lanes:
            condition = self.b.splat(condition, lanes)
        return self.b.emit(f"select {condition}, {yes}, {no}", yes.element, lanes)

    def affine_value(self, expr: Affine, context: _Lanes) -> Value:
        start = self.scalar_index(expr, context)
        factor = dict(expr.terms).get(context.var, 0) if context.var else 0
        if not factor:
            return start
        step = self.steps(factor, context.lanes)
        return self.b.emit(
            f"add {self.b.splat(start, context.lanes)}, {step}", "i64", context.lanes
        )

    def steps(self, factor: int, lanes: int) -> str:
        """The literal vector 0, factor, 2·factor, …; the factor is part of the code."""
        return f"<{', '.join(f'i64 {k * factor}' for k in range(lanes))}>"

    # ------------------------------------------------------------------------------------ memory

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
        self, buffer: Buffer, indices: tuple[Expr, ...], context: _Lanes
    ) -> tuple[Affine, list[Value]]:
        """The position in elements: an affine part, and values (strides applied) that are not."""
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
        return total, rest

    def gep(self, buffer: Buffer, offset: Value) -> Value:
        """The address of an element, or of one per lane."""
        memory = _memory_type(buffer.dtype)
        if buffer.memory in self.lane_storage:
            memory = f"<{self.lane_storage[buffer.memory]} x {memory}>"
        pointer = self.pointer(buffer)
        if offset.lanes:
            text = f"getelementptr {memory}, ptr {pointer.text}, {offset}"
            return self.b.emit(text, "ptr", offset.lanes)
        if offset.text == "0":
            return pointer
        return self.b.emit(f"getelementptr {memory}, ptr {pointer.text}, i64 {offset.text}", "ptr")

    def locate_element(
        self, buffer: Buffer, indices: tuple[Expr, ...], context: _Lanes
    ) -> tuple[Value, int | None]:
        """The address (lane 0's), and the step per lane in elements; None: addresses per lane."""
        total, rest = self.offset(buffer, indices, context)
        step = dict(total.terms).get(context.var, 0) if context.var else 0
        scalar = self.scalar_index(total, context)
        vectors = [r for r in rest if r.lanes]
        for r in rest:
            if not r.lanes:
                scalar = self.add(scalar, r)
        if step and buffer.memory in self.lane_storage:
            raise Unsupported(
                f"a lane of {buffer.name} for every lane of the loop over {context.var}"
            )
        strided = abs(step) > 1
        if not vectors and not strided:
            return self.gep(buffer, scalar), step
        offsets = self.b.splat(scalar, context.lanes)
        if step:
            by = self.b.splat(self.integer(step), context.lanes)
            lanes = self.b.emit(
                f"mul nsw {by}, {self.steps(1, context.lanes)}", "i64", context.lanes
            )
            offsets = self.b.emit(f"add nsw {offsets}, {lanes.text}", "i64", context.lanes)
        for v in vectors:
            offsets = self.b.emit(f"add nsw {offsets}, {v.text}", "i64", context.lanes)
        return self.gep(buffer, offsets), None

    def load(self, expr: Load, context: _Lanes) -> Value:
        """The element(s) of a buffer."""
        buffer, memory = expr.buffer, _memory_type(expr.dtype)
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
            got = self.b.emit(f"load {memory}, {address}, align {align}", memory)
        else:
            got = self.load_vector(address, step, memory, align, context)
        return self.from_memory(got, expr.dtype)

    def load_vector(
        self, address: Value, step: int, memory: str, align: int, context: _Lanes
    ) -> Value:
        """A contiguous vector, forwards or (step -1) backwards."""
        lanes, mask = context.lanes, context.mask
        vector = f"<{lanes} x {memory}>"
        if step == -1:
            address = self.backwards(address, memory, lanes)
            mask = self.reverse(mask) if mask else None
        if mask is None:
            got = self.b.emit(f"load {vector}, {address}, align {align}", memory, lanes)
        else:
            name = f"llvm.masked.load.v{lanes}{_mangle(memory)}.p0"
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

    def gather(self, addresses: Value, memory: str, context: _Lanes) -> Value:
        lanes = context.lanes
        vector, mask = f"<{lanes} x {memory}>", self.mask(context)
        name = f"llvm.masked.gather.v{lanes}{_mangle(memory)}.v{lanes}p0"
        self.b.declare(name, vector, f"<{lanes} x ptr>", f"<{lanes} x i1>", vector)
        return self.b.emit(
            f"call {vector} @{name}({addresses}, {mask}, {vector} zeroinitializer)", memory, lanes
        )

    def mask(self, context: _Lanes) -> Value:
        return context.mask or self.b.constant(True, "i1", context.lanes)

    def deinterleave(self, expr: Load, context: _Lanes) -> Value | None:
        """One component of short, whole rows: a wide load, shared by all components, and a shuffle.

        Gathers cost several times as much as loads on today's CPUs.  Only where the row is known to
        be complete, so that nothing outside the buffer is read.
        """
        found = self.row_component(expr, context)
        if found is None:
            return None
        start, width, component = found
        lanes, memory = context.lanes, _memory_type(expr.dtype)
        version = self.writes if expr.buffer.memory in self.written else 0
        key = ("wide", expr.buffer.memory, start.terms, start.constant, version)
        if key not in context.memo:
            address = self.gep(expr.buffer, self.scalar_index(start, context))
            count = lanes * width
            text = f"load <{count} x {memory}>, {address}, align {expr.dtype.itemsize}"
            context.memo[key] = self.b.emit(text, memory, count)
        wide = context.memo[key]
        order = ", ".join(f"i32 {k * width + component}" for k in range(lanes))
        return self.b.emit(
            f"shufflevector {wide}, {wide.type} poison, <{lanes} x i32> <{order}>", memory, lanes
        )

    def row_component(self, expr: Load, context: _Lanes) -> tuple[Affine, int, int] | None:
        """(start of lane 0's row, row width, component) if a load takes one element per row."""
        shape, strides = expr.buffer.shape, expr.buffer.strides
        if not context.lanes or context.mask or expr.buffer.memory in self.lane_storage:
            return None
        if len(shape) < 2 or not 2 <= shape[-1] <= 4 or strides[-2:] != (shape[-1], 1):
            return None
        *outer, last = expr.indices
        if not isinstance(last, Affine) or last.terms or not 0 <= last.constant < shape[-1]:
            return None
        if not all(isinstance(i, Affine) for i in outer):
            return None
        start: Expr = affine(0)
        for index, stride in zip(outer, strides[:-1], strict=True):
            start = index_add(start, index_scale(index, stride))
        assert isinstance(start, Affine)
        if dict(start.terms).get(context.var) != shape[-1]:
            return None
        return start, shape[-1], last.constant

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

    def store(self, stmt: Store, context: _Lanes) -> None:
        value = self.value(stmt.value, context)
        self.store_value(stmt.buffer, stmt.indices, value, context, stmt.streaming)

    def store_value(
        self,
        buffer: Buffer,
        indices: tuple[Expr, ...],
        value: Value,
        context: _Lanes,
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
            self.store_vector(value, address, step, align, context, streaming)

    def store_vector(
        self, value: Value, address: Value, step: int, align: int, context: _Lanes, streaming: bool
    ) -> None:
        mask, streaming = context.mask, streaming and step == 1
        if step == -1:
            address = self.backwards(address, value.element, context.lanes)
            value, mask = self.reverse(value), self.reverse(mask) if mask else None
        if mask is None:
            whole = min(LLVM_ALIGN, align * context.lanes)
            how = f"align {whole}, !nontemporal !4" if streaming else f"align {align}"
            self.b.effect(f"store {value}, {address}, {how}")
            return
        name = f"llvm.masked.store.v{value.lanes}{_mangle(value.element)}.p0"
        self.b.declare(name, "void", value.type, "ptr", mask.type)
        self.b.effect(f"call void @{name}({value}, ptr align {align} {address.text}, {mask})")

    def scatter(self, value: Value, addresses: Value, context: _Lanes) -> None:
        name = f"llvm.masked.scatter.v{value.lanes}{_mangle(value.element)}.v{value.lanes}p0"
        mask = self.mask(context)
        self.b.declare(name, "void", value.type, addresses.type, mask.type)
        self.b.effect(f"call void @{name}({value}, {addresses}, {mask})")

    # -------------------------------------------------------------------------------- statements

    def body(self, body: tuple[Stmt, ...], context: _Lanes) -> None:
        for stmt in body:
            self.statement(stmt, context)

    def statement(self, stmt: Stmt, context: _Lanes) -> None:
        self.locate(getattr(stmt, "location", None))
        match stmt:
            case Let():
                self.env[stmt.name] = self.value(stmt.value, context)
            case Store():
                self.store(stmt, context)
            case Accumulate():
                self.accumulate(stmt, context)
            case Alloc():
                self.alloc(stmt.buffer, context)
            case For():
                self.for_loop(stmt, context)
            case If():
                self.branch(stmt, context)
            case While():
                self.while_loop(stmt, context)
            case Block():
                self.body(stmt.body, context)
            case Call():
                self.call(stmt, context)

    def alloc(self, buffer: Buffer, context: _Lanes) -> None:
        """Stack memory at the function's entry; inside a vector loop, one value per lane."""
        pointer = self.canonical(buffer)
        memory = _memory_type(buffer.dtype)
        self.lane_storage.pop(buffer.memory, None)
        if context.lanes:
            self.lane_storage[buffer.memory] = context.lanes
            memory = f"<{context.lanes} x {memory}>"
        count = int(np.prod(buffer.shape, dtype=np.int64))
        self.stack += count * buffer.dtype.itemsize * max(context.lanes, 1)
        if self.stack > STACK:
            raise Unsupported(f"{self.stack:,} bytes of values kept by one kernel")
        kind = memory if not buffer.shape else f"[{count} x {memory}]"
        self.entry.append(f"  {pointer.text} = alloca {kind}, align {LLVM_ALIGN}")
        self.pointers[buffer.memory] = pointer

    def accumulate(self, stmt: Accumulate, context: _Lanes) -> None:
        value = self.value(stmt.value, context)
        found = self.accumulators.get(stmt.buffer.memory)
        if found and context.lanes:
            self.accumulate_lanes(stmt, found, value, context)
            return
        old = self.load(Load(stmt.buffer.dtype, stmt.buffer, stmt.indices), context)
        new = self.combine(stmt.fn, stmt.buffer.dtype, old, value)
        self.store_value(stmt.buffer, stmt.indices, new, context)

    def accumulate_lanes(
        self, stmt: Accumulate, found: _Accumulator, value: Value, context: _Lanes
    ) -> None:
        address = found.storage[context.copy]
        if found.indices is None and stmt.indices:
            total, _ = self.offset(stmt.buffer, stmt.indices, context)
            position = self.scalar_index(total, context)
            vector = f"<{context.lanes} x {element_type(stmt.buffer.dtype)}>"
            if position.text != "0":
                text = f"getelementptr {vector}, {address}, i64 {position.text}"
                address = self.b.emit(text, "ptr")
        element = element_type(stmt.buffer.dtype)
        old = self.b.emit(f"load <{context.lanes} x {element}>, {address}", element, context.lanes)
        new = self.combine(stmt.fn, stmt.buffer.dtype, old, value)
        if context.mask is not None:
            new = self.b.emit(f"select {context.mask}, {new}, {old}", element, context.lanes)
        self.b.effect(f"store {new}, {address}")

    def combine(self, fn: str, dtype: DType, a: Value, b: Value) -> Value:
        """fn(a, b) on values of one dtype."""
        lanes = max(a.lanes, b.lanes)
        pair = (self.b.splat(a, lanes), self.b.splat(b, lanes))
        return scalars.emit(self.b, fn, dtype, (dtype, dtype), pair)

    def call(self, stmt: Call, context: _Lanes) -> None:
        """A library routine on the parts of its buffers that `at` picks."""
        self.writes += 1
        pointers = []
        zero: Expr = affine(0)
        rows, columns = (start for start, _ in stmt.box) if stmt.box else (zero, zero)
        corners = ((rows, columns), (rows, zero), (zero, columns))
        for buffer, at, corner in zip(stmt.buffers, stmt.at, corners, strict=True):
            pointers.append(self.locate_element(buffer, (*at, *corner), context)[0])
        sizes = [self.value(count, context) for _, count in stmt.box]
        blas.emit(self.b, self.entry, stmt, pointers, sizes, self.integer)

    # ------------------------------------------------------------------------------- control flow

    def label_number(self) -> int:
        self.labels += 1
        return self.labels

    def start(self, label: str) -> None:
        self.b.label(label)
        self.block = label

    def loop(self, var: str, begin: Value, end: Value, step: int, body: Callable[[], None]) -> None:
        """for var from begin to end by step, skipped when empty."""
        n = self.label_number()
        head, done = f"loop{n}", f"done{n}"
        before = self.block
        i = Value(f"%i{n}", "i64")
        go = self.b.emit(f"icmp slt i64 {begin.text}, {end.text}", "i1")
        self.b.effect(f"br {go}, label %{head}, label %{done}")
        self.start(head)
        phi_at, location = len(self.b.lines), self.b.location
        self.b.lines.append("")
        self.env[var] = i
        body()
        after = self.b.emit(f"add nuw nsw i64 {i.text}, {step}", "i64")
        again = self.b.emit(f"icmp slt i64 {after.text}, {end.text}", "i1")
        self.b.lines[phi_at] = (
            f"  {i.text} = phi i64 [ {begin.text}, %{before} ], [ {after.text}, %{self.block} ]"
            f"{location}"
        )
        self.b.effect(f"br {again}, label %{head}, label %{done}")
        self.start(done)

    def for_loop(self, stmt: For, context: _Lanes) -> None:
        if stmt.kind == "vector" and not context.lanes:
            self.vector_loop(stmt)
        elif stmt.kind == "unroll":
            assert isinstance(stmt.extent, Affine)
            for k in range(stmt.extent.constant):
                self.env[stmt.var] = Value(str(k), "i64")
                self.body(stmt.body, context.fresh())
        else:
            end = self.uniform(stmt.extent, context)
            self.loop(
                stmt.var, Value("0", "i64"), end, 1, lambda: self.body(stmt.body, context.fresh())
            )

    def uniform(self, expr: Expr, context: _Lanes) -> Value:
        """A value that must be the same for all lanes: control flow hangs on it."""
        value = self.value(expr, context)
        if value.lanes:
            raise Unsupported(f"the lanes of the loop over {context.var} would part ways")
        return value

    def branch(self, stmt: If, context: _Lanes) -> None:
        n = self.label_number()
        condition = self.uniform(stmt.condition, context)
        no = f"no{n}" if stmt.no else f"join{n}"
        self.b.effect(f"br {condition}, label %yes{n}, label %{no}")
        self.start(f"yes{n}")
        self.body(stmt.yes, context.fresh())
        self.b.effect(f"br label %join{n}")
        if stmt.no:
            self.start(no)
            self.body(stmt.no, context.fresh())
            self.b.effect(f"br label %join{n}")
        self.start(f"join{n}")

    def while_loop(self, stmt: While, context: _Lanes) -> None:
        n = self.label_number()
        self.b.effect(f"br label %while{n}")
        self.start(f"while{n}")
        condition = self.uniform(stmt.condition, context.fresh())
        self.b.effect(f"br {condition}, label %do{n}, label %end{n}")
        self.start(f"do{n}")
        self.body(stmt.body, context.fresh())
        self.b.effect(f"br label %while{n}")
        self.start(f"end{n}")

    # ------------------------------------------------------------------------------- vector loops

    def vector_loop(self, stmt: For) -> None:
        lanes = lanes_of(stmt, self.vector_bytes)
        outer = dict(self.accumulators)
        extent = self.value(stmt.extent, _Lanes())
        constant = int(extent.text) if _is_literal(extent) else None
        unroll = stmt.unroll
        if constant is not None:
            unroll = max(1, min(unroll, constant // lanes))
        made = self.make_accumulators(stmt, lanes, unroll)
        start = Value("0", "i64")
        if constant is None or constant >= lanes:
            block = lanes * unroll
            start = self.round_down(extent, block)
            self.loop(
                stmt.var, Value("0", "i64"), start, block, lambda: self.copies(stmt, lanes, unroll)
            )
        if constant is None or constant % (lanes * unroll):
            self.tail(stmt, lanes, start, extent, constant)
        self.accumulators = outer
        for accumulator in made:
            self.finish(accumulator, lanes)

    def tail(
        self, stmt: For, lanes: int, start: Value, extent: Value, constant: int | None
    ) -> None:
        """The iterations that do not fill the unrolled vectors: under a mask, a single one without.

        LLVM 22 writes too many bytes under a constant mask of one lane (llvm/llvm-project#179489).
        """
        single = constant is not None and constant % lanes == 1
        end = Value(str(int(extent.text) - 1), "i64") if single else extent
        if start.text != end.text:
            self.loop(stmt.var, start, end, lanes, lambda: self.masked(stmt, lanes, end))
        if single:
            self.env[stmt.var] = end
            self.body(stmt.body, _Lanes())

    def round_down(self, extent: Value, block: int) -> Value:
        if _is_literal(extent):
            n = int(extent.text)
            return Value(str(n - n % block), "i64")
        if block & (block - 1) == 0:
            return self.b.emit(f"and i64 {extent.text}, {-block}", "i64")
        rest = self.b.emit(f"urem i64 {extent.text}, {block}", "i64")
        return self.b.emit(f"sub nsw i64 {extent.text}, {rest.text}", "i64")

    def copies(self, stmt: For, lanes: int, unroll: int) -> None:
        base = self.env[stmt.var]
        for copy in range(unroll):
            at = self.add(base, Value(str(copy * lanes), "i64"))
            self.body(stmt.body, _Lanes(lanes, stmt.var, at, None, copy))

    def masked(self, stmt: For, lanes: int, extent: Value) -> None:
        base = self.env[stmt.var]
        left = self.b.emit(f"sub nsw i64 {extent.text}, {base.text}", "i64")
        # Comparing 32-bit lane numbers is cheaper than 64-bit ones; at least `lanes` is as good as
        # more.
        few = self.b.intrinsic("umin", left, Value(str(lanes), "i64"))
        narrow = self.b.emit(f"trunc i64 {few.text} to i32", "i32")
        numbers = f"<{', '.join(f'i32 {k}' for k in range(lanes))}>"
        mask = self.b.emit(f"icmp ugt {self.b.splat(narrow, lanes)}, {numbers}", "i1", lanes)
        self.body(stmt.body, _Lanes(lanes, stmt.var, base, mask, 0))

    def make_accumulators(self, stmt: For, lanes: int, unroll: int) -> list[_Accumulator]:
        """Accumulators for every target inside that is the same for all lanes."""
        made: list[_Accumulator] = []
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
                found = self.new_accumulator(s, lanes, unroll)
                self.accumulators[s.buffer.memory] = found
                made.append(found)
            if not found.fits(s) or (found.indices and used & bound):
                raise Unsupported(f"several ways to add to {s.buffer.name} in one vector loop")
        return made

    def new_accumulator(self, stmt: Accumulate, lanes: int, unroll: int) -> _Accumulator:
        local = stmt.buffer.role == "local"
        size = int(np.prod(stmt.buffer.shape, dtype=np.int64)) if local else 1
        if size > MAX_LANES_LOCAL:
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
        return _Accumulator(storage, stmt.fn, stmt.buffer, indices, size)

    def finish(self, accumulator: _Accumulator, lanes: int) -> None:
        """Combine copies, then lanes, in a fixed tree, and add the result to the target."""
        buffer, element = accumulator.buffer, element_type(accumulator.buffer.dtype)
        vector = f"<{lanes} x {element}>"
        for k in range(accumulator.size):
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
            total = self.horizontal(accumulator.fn, buffer.dtype, parts[0])
            self.add_to_target(accumulator, k, total)

    def horizontal(self, fn: str, dtype: DType, v: Value) -> Value:
        """One value from all lanes: halves are combined until one lane is left."""
        while v.lanes > 1:
            half = v.lanes // 2
            low, high = (
                self.b.emit(
                    f"shufflevector {v}, {v.type} poison, <{half} x i32> "
                    f"<{', '.join(f'i32 {k + offset}' for k in range(half))}>",
                    v.element,
                    half,
                )
                for offset in (0, half)
            )
            v = self.combine(fn, dtype, low, high)
        return self.b.emit(f"extractelement {v}, i64 0", v.element)

    def add_to_target(self, accumulator: _Accumulator, k: int, total: Value) -> None:
        buffer, context = accumulator.buffer, _Lanes()
        if accumulator.indices is not None:
            indices = accumulator.indices
        else:
            indices = tuple(
                affine(int(i)) for i in (np.unravel_index(k, buffer.shape) if buffer.shape else ())
            )
        old = self.load(Load(buffer.dtype, buffer, indices), context)
        new = self.combine(accumulator.fn, buffer.dtype, old, total)
        self.store_value(buffer, indices, new, context)


# ------------------------------------------------------------------------------------- small facts


def lanes_of(stmt: For, vector_bytes: int) -> int:
    """Lanes of a vector loop: as many as the widest element it computes with allows."""
    widest = 1
    for s in walk(stmt.body):
        if isinstance(s, Store | Accumulate):
            widest = max(widest, s.buffer.dtype.itemsize, _widest(s.value))
        elif isinstance(s, Let):
            widest = max(widest, _widest(s.value))
    return max(2, vector_bytes // widest)


def _widest(root: Expr) -> int:
    """Bytes of the widest value below an expression; indices do not count."""
    widest, stack = 1, [root]
    while stack:
        expr = stack.pop()
        widest = max(widest, expr.dtype.itemsize)
        if not isinstance(expr, Load):
            stack.extend(children(expr))
    return widest


def _targets(stmt: Stmt) -> tuple[Buffer, ...]:
    """The buffers a statement itself writes."""
    match stmt:
        case Store() | Accumulate():
            return (stmt.buffer,)
        case Call():
            return stmt.buffers[:1]
    return ()


def _places(indices: tuple[Expr, ...]) -> list[object]:
    """Affine indices, comparable."""
    return [(i.terms, i.constant) if isinstance(i, Affine) else i for i in indices]


def _memory_type(dtype: DType) -> str:
    return "i8" if dtype == BOOL else element_type(dtype)


def _mangle(memory: str) -> str:
    return {"half": "f16", "float": "f32", "double": "f64"}.get(memory, memory)


def _is_literal(v: Value) -> bool:
    return not v.lanes and not v.text.startswith("%")
