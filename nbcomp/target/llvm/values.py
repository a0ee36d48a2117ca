"""Expressions as LLVM values: a scalar where all lanes agree, else a vector.

`Lanes` says how the code around runs. Knows which integers become parameters, and the state of the
emitter, which the files that build on this one (`memory`, `loops`) share.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from nbcomp.errors import Unsupported
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Apply,
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    Kernel,
    Load,
    Select,
    Stmt,
    Store,
    Var,
    children,
    walk,
)
from nbcomp.sizes import Size
from nbcomp.target.llvm import scalars
from nbcomp.target.llvm.builder import Builder, Value, element_type
from nbcomp.target.llvm.debug import DebugTable, LocatedOrigins, Origins

NEAR = 8  # integers that differ by up to this are one parameter in loops that were written
LITERAL = 64  # integers up to this size are written into the code, larger ones are parameters


@dataclass(frozen=True)
class Lanes:
    """How the code around a statement runs: scalar (lanes 0), or as lanes of a vector loop."""

    lanes: int = 0
    var: str = ""
    base: Value | None = None  # the loop variable in lane 0
    mask: Value | None = None
    copy: int = 0  # which of the unrolled vectors
    memo: dict[object, Value] = field(default_factory=dict)

    def fresh(self) -> Lanes:
        """The same, for another run of a body: nothing is known yet."""
        return replace(self, memo={})

    def unmasked(self) -> Lanes:
        """The same with all lanes."""
        return replace(self, mask=None)


class ValueEmitter:
    """The code of expressions, and what is known while a stage is written."""

    def __init__(
        self,
        kernel: Kernel,
        number: int,
        stage: Stmt,
        vector_bytes: int,
        debug: DebugTable | None,
        names: dict[str, str],
    ) -> None:
        self.kernel, self.number, self.stage = kernel, number, stage
        self.vector_bytes = vector_bytes
        self.names = names
        self.b = Builder()
        self.origins = LocatedOrigins(self.b, debug, number) if debug else Origins()
        self.entry: list[str] = []
        self.params: dict[int, Value] = {}
        self.env: dict[str, Value] = {}
        self.pointers: dict[str, Value] = {}  # buffer name -> pointer
        self.lane_storage: dict[str, int] = {}  # local buffers that hold one value per lane
        self.block = "entry"
        self.known: dict[tuple[str, str], Value] = {}  # by block and text
        self.labels = 0
        self.used: list[Buffer] = []
        self.written = {b.memory for s in walk((stage,)) for b in targets(s)}
        self.writes = 0  # how many so far: what is read from written memory is known until the next
        self.volatile: dict[int, bool] = {}
        self.positions: dict[tuple[int, int], tuple[Buffer, tuple[Expr, ...], Affine]] = {}
        self.stack = 0
        self.near = False  # integers are literals, whatever their size

    def integer(self, n: int) -> Value:
        """An i64: small ones as literals, large and open ones from the parameters."""
        is_open = isinstance(n, Size)
        if not is_open and (abs(n) <= LITERAL or self.near):
            return Value(str(n), "i64")
        if not is_open and n < 0:
            positive = self.integer(-n)
            return self.once(f"sub nsw i64 0, {positive.text}", "i64", of=(positive,))
        if n not in self.params:
            if self.kernel.written and (near := self._neighbour(n)) is not None:
                return near
            k = len(self.params)
            self.entry.append(
                f"  %pa{k} = getelementptr i64, ptr %params, i64 {k}{self.origins.prologue}"
            )
            self.entry.append(
                f"  %param{k} = load i64, ptr %pa{k}, !invariant.load !4{self.origins.prologue}"
            )
            self.params[n] = Value(f"%param{k}", "i64")
        return self.params[n]

    def _neighbour(self, n: int) -> Value | None:
        """A parameter and a small number, so that LLVM sees how far apart two places are:
        x[n - 1] and x[n - 2] are neighbours, whatever n is."""
        for known, value in self.params.items():
            apart = n - known
            if isinstance(apart, int) and abs(apart) <= NEAR:
                return self.add(value, Value(str(apart), "i64"))
        return None

    def add(self, a: Value, b: Value) -> Value:
        """a + b of two indices, folding zero."""
        if a.text == "0":
            return b
        if b.text == "0":
            return a
        if is_literal(a) and is_literal(b):
            return Value(str(int(a.text) + int(b.text)), "i64")
        return self.once(f"add nsw i64 {a.text}, {b.text}", "i64", of=(a, b))

    def once(
        self, text: str, element: str, lanes: int = 0, of: tuple[Value, ...] | None = None
    ) -> Value:
        """An instruction without effect: what is known already, or a new one.

        of: its operands, if it may stand outside of the loops in which they do not change.

        Unrolled loops compute the same places again and again; LLVM would find that out, slowly.
        """
        depth = len(self.b.loops) if of is None else max(map(self.b.depth, of))
        inside = depth == len(self.b.loops)
        key = (self.block if inside else self.b.loops[depth].block, text)
        if key not in self.known:
            emit = self.b.emit if inside else partial(self.b.emit_ahead, depth)
            self.known[key] = emit(text, element, lanes)
        return self.known[key]

    def scale(self, a: Value, factor: int) -> Value:
        """factor·a of an index."""
        if factor == 1:
            return a
        if is_literal(a):
            return self.integer(int(a.text) * factor)
        by = self.integer(factor)
        return self.once(f"mul nsw i64 {a.text}, {by.text}", "i64", of=(a, by))

    def scalar_index(self, expr: Affine, context: Lanes) -> Value:
        """The value of an affine index in lane 0."""
        key = ("index", expr.terms, expr.constant, self.near)
        if key not in context.memo:
            total = Value("0", "i64")
            for base, factor in self.outer_first(expr, context):
                total = self.add(total, self.scale(base, factor))
            context.memo[key] = self.add(total, self.integer(expr.constant))
        return context.memo[key]

    def outer_first(self, expr: Affine, context: Lanes) -> list[tuple[Value, Any]]:
        """The terms of an index, those first that change in the outer loops only."""
        terms = [
            (context.base if var == context.var and context.base else self.env[var], factor)
            for var, factor in expr.terms
        ]
        return sorted(terms, key=lambda term: self.b.depth(term[0]))

    def value(self, expr: Expr, context: Lanes) -> Value:
        """An expression's value: a scalar where it is the same for all lanes, else a vector."""
        if isinstance(expr, Const):
            return self.b.constant(expr.value, element_type(expr.dtype))
        if isinstance(expr, Var):
            return self.env[expr.name]
        key = (id(expr), self.writes if self.may_change(expr) else 0)
        if key not in context.memo:
            with self.origins.expression(expr):
                context.memo[key] = self._compute(expr, context)
        return context.memo[key]

    def may_change(self, expr: Expr) -> bool:
        """Whether the expression reads memory that this stage writes."""
        found = self.volatile.get(id(expr))
        if found is None:
            read = isinstance(expr, Load) and expr.buffer.memory in self.written
            found = read or any(map(self.may_change, children(expr)))
            self.volatile[id(expr)] = found
        return found

    def _compute(self, expr: Expr, context: Lanes) -> Value:
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

    def select(self, expr: Select, context: Lanes) -> Value:
        condition = self.value(expr.condition, context)
        yes, no = self.value(expr.yes, context), self.value(expr.no, context)
        lanes = max(condition.lanes, yes.lanes, no.lanes)
        yes, no = self.b.splat(yes, lanes), self.b.splat(no, lanes)
        if lanes:
            condition = self.b.splat(condition, lanes)
        return self.b.emit(f"select {condition}, {yes}, {no}", yes.element, lanes)

    def affine_value(self, expr: Affine, context: Lanes) -> Value:
        start = self.scalar_index(expr, context)
        factor = dict(expr.terms).get(context.var, 0) if context.var else 0
        if not factor:
            return start
        step = self.steps(1 if isinstance(factor, Size) else factor, context.lanes)
        if isinstance(factor, Size):
            by = self.b.splat(self.integer(factor), context.lanes)
            step = self.b.emit(f"mul nsw {by}, {step}", "i64", context.lanes).text
        return self.b.emit(
            f"add {self.b.splat(start, context.lanes)}, {step}", "i64", context.lanes
        )

    def steps(self, factor: int, lanes: int) -> str:
        """The literal vector 0, factor, 2·factor, …; the factor is part of the code."""
        return f"<{', '.join(f'i64 {k * factor}' for k in range(lanes))}>"

    def load(self, expr: Load, context: Lanes) -> Value:
        """The element of a buffer; `memory` knows how."""
        raise NotImplementedError


def targets(stmt: Stmt) -> tuple[Buffer, ...]:
    """The buffers a statement itself writes."""
    match stmt:
        case Store() | Accumulate():
            return (stmt.buffer,)
        case Call():
            return stmt.buffers[:1]
    return ()


def is_literal(v: Value) -> bool:
    return not v.lanes and not v.text.startswith("%")
