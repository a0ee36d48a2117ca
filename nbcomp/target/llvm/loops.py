"""Statements and loops as LLVM code: serial, unrolled and vector loops, accumulators, branches.

A vector loop evaluates its body on <W x T> values with the loop variable as base + 0..W-1, first
`unroll` vectors at a time, then the rest under a mask.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from nbcomp.errors import Unsupported
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Alloc,
    Apply,
    Block,
    Call,
    Exit,
    Expr,
    For,
    If,
    Leave,
    Let,
    Load,
    Poll,
    Prefetch,
    Stmt,
    Store,
    While,
    affine,
    failures,
    walk_expr,
)
from nbcomp.loop.intrinsics import INTRINSICS, Place, match
from nbcomp.loop.lanes import lanes_of
from nbcomp.origin import Construct
from nbcomp.sizes import Size
from nbcomp.target.llvm import blas, hints, jumps, tensor
from nbcomp.target.llvm.builder import Value
from nbcomp.target.llvm.instructions import InstructionEmitter
from nbcomp.target.llvm.memory import apart
from nbcomp.target.llvm.values import LITERAL, Lanes, is_literal


class LoopEmitter(InstructionEmitter):
    """The code of statements."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.ends: dict[str, str] = {}  # where the blocks that may be left end
        self.around: list[For] = []  # the loops that are being written
        self.exits = {f: k for k, f in enumerate(failures(self.kernel), 1)}  # statuses

    def body(self, body: tuple[Stmt, ...], context: Lanes) -> None:
        rest = body
        while rest:
            count = self.woven(rest, context)
            if count > 1:
                self.weave(rest[:count], context)
            else:
                self.statement(rest[0], context)
            rest = rest[max(count, 1) :]

    def statement(self, stmt: Stmt, context: Lanes) -> None:
        with self.origins.statement(stmt):
            self.dispatch(stmt, context)

    def dispatch(self, stmt: Stmt, context: Lanes) -> None:
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
            case Call():
                self.call(stmt, context)
            case _:
                self.jump(stmt, context)

    def jump(self, stmt: Stmt, context: Lanes) -> None:
        """Statements that change where the program goes on."""
        match stmt:
            case Block():
                self.labelled(stmt, context)
            case Leave():
                self.uniform_jump(context)
                self.b.effect(f"br label %{self.ends[stmt.label]}")
                self.start(f"dead{self.label_number()}")
            case Exit():
                self.uniform_jump(context)
                jumps.leave_kernel(self.b, self.exits[stmt.failure], self.detail(stmt, context))
                self.start(f"dead{self.label_number()}")
            case Prefetch():
                self.prefetch(stmt, context)
            case Poll():
                self.uniform_jump(context)
                self.start(jumps.poll(self.b, self.entry, stmt.every, self.label_number()))

    def labelled(self, stmt: Block, context: Lanes) -> None:
        if not stmt.label:
            self.body(stmt.body, context)
            return
        end = self.ends[stmt.label] = f"end{self.label_number()}"
        self.body(stmt.body, context.fresh())  # what is known at its end holds on one way only
        self.b.effect(f"br label %{end}")
        self.start(end)

    def uniform_jump(self, context: Lanes) -> None:
        if context.lanes:
            raise Unsupported(f"the lanes of the loop over {context.var} would part ways")

    def detail(self, stmt: Exit, context: Lanes) -> Value | None:
        return self.value(stmt.detail, context) if stmt.detail is not None else None

    def call(self, stmt: Call, context: Lanes) -> None:
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

    def accumulate(self, stmt: Accumulate, context: Lanes) -> None:
        term = self.term(stmt, context)
        found = self.accumulators.get(stmt.buffer.memory)
        if found and context.lanes:
            self.accumulate_lanes(stmt, found, term, context)
            return
        old = self.load(Load(stmt.buffer.dtype, stmt.buffer, stmt.indices), context)
        new = self.combine(stmt.fn, stmt.buffer.dtype, old, *term)
        self.store_value(stmt.buffer, stmt.indices, new, context)

    def term(self, stmt: Accumulate, context: Lanes) -> tuple[Value, ...]:
        """What is added: a value, or the two factors of a product that need not be rounded."""
        product = stmt.value
        fused = stmt.contract and stmt.fn == "add" and stmt.buffer.dtype.kind == "f"
        if fused and isinstance(product, Apply) and product.fn == "multiply":
            return tuple(self.value(factor, context) for factor in product.args)
        return (self.value(stmt.value, context),)

    def start(self, label: str) -> None:
        self.b.label(label)
        self.block = label

    def loop(
        self,
        var: str,
        begin: Value,
        end: Value,
        step: int,
        body: Callable[[], None],
        hint: str = "",
    ) -> None:
        """for var from begin to end by step, skipped when empty; a single iteration is no loop."""
        if is_literal(begin) and is_literal(end) and 0 < int(end.text) - int(begin.text) <= step:
            self.env[var] = begin
            body()
            return
        n = self.label_number()
        head, done = f"loop{n}", f"done{n}"
        before = self.block
        i = Value(f"%i{n}", "i64")
        ahead = self.b.ahead(before)
        go = self.b.emit(f"icmp slt i64 {begin.text}, {end.text}", "i1")
        self.b.effect(f"br {go}, label %{head}, label %{done}")
        self.start(head)
        phi, location = self.b.ahead(head), self.b.location
        self.env[var] = i
        self.b.loops.append(ahead)
        self.b.made(i.text, len(self.b.loops))
        body()
        after = self.b.emit(f"add nuw nsw i64 {i.text}, {step}", "i64")
        again = self.b.emit(f"icmp slt i64 {after.text}, {end.text}", "i1")
        phi.lines.append(
            f"  {i.text} = phi i64 [ {begin.text}, %{before} ], [ {after.text}, %{self.block} ]"
            f"{location}"
        )
        self.b.effect(f"br {again}, label %{head}, label %{done}{hint}")
        self.b.loops.pop()
        self.start(done)

    def hint(self, stmt: For | While) -> str:
        """What LLVM is told of a loop that comes as it was written, for its jump back."""
        properties = hints.hints(stmt, self.around) if self.kernel.written else ()
        if not properties:
            return ""
        number = hints.FIRST + hints.STAGE * (self.number + 1) + self.label_number()
        self.b.declarations |= hints.metadata(number, properties)
        return f", !llvm.loop !{number}"

    def for_loop(self, stmt: For, context: Lanes) -> None:
        if stmt.kind == "vector" and not context.lanes:
            self.vector_loop(stmt)
        elif stmt.kind == "instruction":
            self.instruction(stmt, context)
        elif stmt.kind == "unroll":
            assert isinstance(stmt.extent, Affine)
            if (turned := self.turned(stmt, context)) is not None:
                self.transpose(stmt, *turned, context)
                return
            for k in range(stmt.extent.constant):
                self.env[stmt.var] = Value(str(k), "i64")
                self.body(stmt.body, context.fresh())
        else:
            end = self.uniform(stmt.extent, context)
            if (total := self.tile_sum(stmt, context)) is not None:
                self.over_tiles(stmt, total, end, context)
                return
            hint = self.hint(stmt)
            self.around.append(stmt)
            self.loop(
                stmt.var,
                Value("0", "i64"),
                end,
                1,
                lambda: self.body(stmt.body, context.fresh()),
                hint,
            )
            self.around.pop()

    def instruction(self, stmt: For, context: Lanes) -> None:
        """A block as one instruction, if this CPU has it; else as what it means."""
        intrinsic = self.intrinsic(stmt, context)
        if intrinsic is None:
            self.for_loop(tensor.generic(stmt), context)
        else:
            self.one_instruction(stmt, intrinsic, context)

    def over_tiles(self, stmt: For, total: Place, end: Value, context: Lanes) -> None:
        """A loop that adds products of tiles to the same sums, which stay in their tile."""
        (block,) = stmt.body
        assert isinstance(block, For)
        places = match(INTRINSICS[block.instruction], block)
        with self.origins.statement(tensor.adding(block)):
            self.tile_in(total, context)
            step = partial(self.tiles, block, places, context)
            self.loop(stmt.var, Value("0", "i64"), end, 1, step)
            self.tile_out(total, context)

    def turned(self, stmt: For, context: Lanes) -> tuple[Store, Affine] | None:
        """The store of a loop that writes rows side by side where lanes write them apart, and the
        place in memory, if that is all the loop does and whole vectors can be transposed."""
        store = stmt.body[0]
        count = stmt.extent.constant if isinstance(stmt.extent, Affine) else 0
        if len(stmt.body) != 1 or not isinstance(store, Store) or store.streaming:
            return None
        whole = context.lanes and context.mask is None and 2 <= count <= context.lanes
        if not whole or store.buffer.memory in self.lane_storage:
            return None
        place, rest = self.offset(store.buffer, store.indices, context) if whole else (None, [])
        if rest or place is None or mentions_memory(store.value, store.buffer.memory):
            return None
        steps = dict(place.terms)
        if steps.get(stmt.var) != 1 or abs(steps.get(context.var, 0)) < 2:
            return None
        return store, place

    def transpose(self, stmt: For, store: Store, place: Affine, context: Lanes) -> None:
        """The loop's values first, each a vector, then the rows."""
        assert isinstance(stmt.extent, Affine)
        values = []
        for k in range(stmt.extent.constant):
            self.env[stmt.var] = Value(str(k), "i64")
            values.append(self.value(store.value, context.fresh()))
        self.env[stmt.var] = Value("0", "i64")
        step = dict(place.terms)[context.var]
        rows = [place, affine(place.constant + step, **dict(place.terms))]
        self.near, outer = store.buffer.role == "local", self.near
        self.store_turned(store.buffer, rows, values, context.fresh())
        self.near = outer

    def woven(self, body: tuple[Stmt, ...], context: Lanes) -> int:
        """How many statements from the first on store elements side by side, where lanes store them
        as far apart: together they fill whole vectors.  0 where they do not."""
        first = body[0]
        if not isinstance(first, Store) or not context.lanes or first.streaming:
            return 0
        place, rest = self.offset(first.buffer, first.indices, context)
        step = dict(place.terms).get(context.var, 0) if place is not None and not rest else 0
        if not isinstance(step, int) or not 2 <= step <= min(len(body), context.lanes):
            return 0
        if context.mask is not None and step & (step - 1):
            return 0
        if first.buffer.memory in self.lane_storage:
            return 0
        for k, stmt in enumerate(body[:step]):
            if not isinstance(stmt, Store) or stmt.buffer != first.buffer or stmt.streaming:
                return 0
            own, rest = self.offset(stmt.buffer, stmt.indices, context)
            if rest or apart([place, own]) != k:
                return 0
            if mentions_memory(stmt.value, first.buffer.memory):
                return 0
        return step

    def weave(self, stores: tuple[Stmt, ...], context: Lanes) -> None:
        """Such stores as whole vectors: all values first, then transposed."""
        values = []
        for stmt in stores:
            assert isinstance(stmt, Store)
            with self.origins.statement(stmt):
                values.append(self.value(stmt.value, context))
        first = stores[0]
        assert isinstance(first, Store)
        place, _ = self.offset(first.buffer, first.indices, context)
        assert place is not None
        row = affine(place.constant + len(stores), **dict(place.terms))
        with self.origins.statement(first):
            self.store_turned(first.buffer, [place, row], values, context)

    def uniform(self, expr: Expr, context: Lanes) -> Value:
        """A value that must be the same for all lanes: control flow hangs on it."""
        value = self.value(expr, context)
        if value.lanes:
            raise Unsupported(f"the lanes of the loop over {context.var} would part ways")
        return value

    def branch(self, stmt: If, context: Lanes) -> None:
        n = self.label_number()
        condition = self.uniform(stmt.condition, context)
        no = f"no{n}" if stmt.no else f"join{n}"
        rare = jumps.RARE if jumps.fails(stmt.yes) else ""
        self.b.effect(f"br {condition}, label %yes{n}, label %{no}{rare}")
        self.start(f"yes{n}")
        self.body(stmt.yes, context.fresh())
        self.b.effect(f"br label %join{n}")
        if stmt.no:
            self.start(no)
            self.body(stmt.no, context.fresh())
            self.b.effect(f"br label %join{n}")
        self.start(f"join{n}")

    def while_loop(self, stmt: While, context: Lanes) -> None:
        n = self.label_number()
        self.b.effect(f"br label %while{n}")
        self.start(f"while{n}")
        condition = self.uniform(stmt.condition, context.fresh())
        self.b.effect(f"br {condition}, label %do{n}, label %end{n}")
        self.start(f"do{n}")
        self.body(stmt.body, context.fresh())
        self.b.effect(f"br label %while{n}{self.hint(stmt)}")
        self.start(f"end{n}")

    def vector_loop(self, stmt: For) -> None:
        lanes = lanes_of(stmt, self.vector_bytes)
        outer = dict(self.accumulators)
        extent = self.one_round(stmt, lanes) or self.value(stmt.extent, Lanes())
        constant = int(extent.text) if is_literal(extent) else None
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
            with self.origins.copied(Construct.TAIL):
                self.tail(stmt, lanes, start, extent, constant)
        self.accumulators = outer
        for accumulator in made:
            with self.origins.within(Construct.REDUCTION, accumulator.stmt):
                self.finish(accumulator, lanes)

    def one_round(self, stmt: For, lanes: int) -> Value | None:
        """The extent as a literal where it is one round: a row of a tile, which is to stay in
        registers."""
        if not isinstance(stmt.extent, Affine) or stmt.extent.terms:
            return None
        n = stmt.extent.constant
        if isinstance(n, Size) or (n > LITERAL and not self.b.loops):
            return None  # it runs once: as other lengths do, to be the same code
        one = (stmt.unroll - 1) * lanes < n <= stmt.unroll * lanes
        return Value(str(n), "i64") if one else None

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
            self.body(stmt.body, Lanes())

    def round_down(self, extent: Value, block: int) -> Value:
        if is_literal(extent):
            n = int(extent.text)
            return Value(str(n - n % block), "i64")
        if block & (block - 1) == 0:
            return self.b.emit(f"and i64 {extent.text}, {-block}", "i64")
        rest = self.b.emit(f"urem i64 {extent.text}, {block}", "i64")
        return self.b.emit(f"sub nsw i64 {extent.text}, {rest.text}", "i64")

    def copies(self, stmt: For, lanes: int, unroll: int) -> None:
        base = self.env[stmt.var]
        for copy in range(unroll):
            with self.origins.copied(Construct.COPY if copy else None):
                at = self.add(base, Value(str(copy * lanes), "i64"))
                self.body(stmt.body, Lanes(lanes, stmt.var, at, None, copy))

    def masked(self, stmt: For, lanes: int, extent: Value) -> None:
        base = self.env[stmt.var]
        left = self.b.emit(f"sub nsw i64 {extent.text}, {base.text}", "i64")
        # Comparing 32-bit lane numbers is cheaper than 64-bit ones; at least `lanes` is as good as
        # more.
        few = self.b.intrinsic("umin", left, Value(str(lanes), "i64"))
        narrow = self.b.emit(f"trunc i64 {few.text} to i32", "i32")
        numbers = f"<{', '.join(f'i32 {k}' for k in range(lanes))}>"
        mask = self.b.emit(f"icmp ugt {self.b.splat(narrow, lanes)}, {numbers}", "i1", lanes)
        self.body(stmt.body, Lanes(lanes, stmt.var, base, mask, 0))


def mentions_memory(value: Expr, memory: str) -> bool:
    """Whether an expression reads some memory."""
    return any(isinstance(e, Load) and e.buffer.memory == memory for e in walk_expr(value))
