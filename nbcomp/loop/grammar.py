"""Level 2, the loop IR: a `Kernel` is a loop nest over buffers.  This page is the whole grammar.

    kernel  = Kernel(name, buffers, stages)              a stage is a top-level statement
    stmt    = Store | Accumulate | Let | Alloc | For | If | While | Call | Block
              | Leave | Exit | Poll | Prefetch        (a body is a tuple of them)
    expr    = Const | Var | Affine | Load | Apply | Cast | Select

Expressions are pure and typed by a NumPy dtype; indices are int64 expressions, in the canonical
form `Affine` wherever they are sums of loop variables with constant factors.  The scalar functions
of `Apply` are NumPy's ufuncs, by name and with their meaning (plus `EXTRA` below); their arguments
have the dtypes of the ufunc's own loop, so no conversion is ever implied.  Every statement has the
`Location` of the user's line it came from.  Everything is frozen; passes build new trees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import numpy as np

from nbcomp.record import Location
from nbcomp.types import INT64, DType

T = TypeVar("T")

# Scalar functions that are not NumPy's: the error function, the bits of a value read as another
# dtype of the same width, and whether a sum, difference or product of two int64 leaves int64.
STATUS_BITS = 12  # of an Exit's status; the bits above hold its detail
INTERRUPTED = -1  # the status after a Poll that found an interrupt
OVERFLOWS = ("add_overflows", "subtract_overflows", "multiply_overflows")
EXTRA = ("erf", "bitcast", *OVERFLOWS)


# ---------------------------------------------------------------------------------------- buffers


@dataclass(frozen=True)
class Buffer:
    """Storage a kernel reads or writes: strides are in elements and may be 0 or negative.

    role: "input" and "output" are memory the caller passes, "temp" is memory of the plan passed the
    same way, "local" lives in the kernel (see `Alloc`).  alias: the buffer whose memory this one
    shows in another shape, if any.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    role: Literal["input", "output", "temp", "local"] = "input"
    alias: str = ""
    aligned: bool = True

    @property
    def memory(self) -> str:
        """The name of the memory it shows."""
        return self.alias or self.name

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return math.prod(self.shape) * self.dtype.itemsize


# ------------------------------------------------------------------------------------ expressions


@dataclass(frozen=True, eq=False)
class Expr:
    """A pure, typed value."""

    dtype: DType


@dataclass(frozen=True, eq=False)
class Const(Expr):
    """A literal; `value` is a NumPy scalar of `dtype`."""

    value: np.generic


@dataclass(frozen=True, eq=False)
class Var(Expr):
    """A value bound by `Let`."""

    name: str


@dataclass(frozen=True, eq=False)
class Affine(Expr):
    """An int64 index: constant + Σ factor·loop variable, terms sorted by name, no zero factors."""

    terms: tuple[tuple[str, int], ...]
    constant: int


@dataclass(frozen=True, eq=False)
class Load(Expr):
    """The element of a buffer at an index, one index per axis."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    location: Location | None = None


@dataclass(frozen=True, eq=False)
class Apply(Expr):
    """A scalar function by its NumPy name, e.g. `add`, `exp`, `less`, `floor_divide`."""

    fn: str
    args: tuple[Expr, ...]
    location: Location | None = None


@dataclass(frozen=True, eq=False)
class Cast(Expr):
    """NumPy's `value.astype(dtype)` (float→int out of range as in `docs/semantics.md`)."""

    value: Expr
    location: Location | None = None


@dataclass(frozen=True, eq=False)
class Select(Expr):
    """`yes` where `condition` (bool) holds, else `no`; both may be evaluated."""

    condition: Expr
    yes: Expr
    no: Expr
    location: Location | None = None


# ------------------------------------------------------------------------------------- statements


@dataclass(frozen=True, eq=False)
class Store:
    """buffer[indices] = value"""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    location: Location | None = None
    streaming: bool = False  # write past the caches


@dataclass(frozen=True, eq=False)
class Accumulate:
    """buffer[indices] = fn(buffer[indices], value), fn an associative ufunc (add, maximum, …).

    The one statement that may be reassociated: the order of the terms is the schedule's business.
    contract: the value is a product that may be added unrounded, as the terms of a matrix product.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    fn: str
    value: Expr
    location: Location | None = None
    contract: bool = False


@dataclass(frozen=True, eq=False)
class Let:
    """name = value, visible in the rest of this body."""

    name: str
    value: Expr
    location: Location | None = None


@dataclass(frozen=True, eq=False)
class Alloc:
    """A local buffer, uninitialised, alive in the rest of this body."""

    buffer: Buffer


@dataclass(frozen=True, eq=False)
class For:
    """for var in 0..extent: body

    kind: how the iterations run; the meaning is that of "serial".  "parallel" (only as a stage, or
    as all that a serial loop which is a stage does, in rounds): iterations are independent and
    spread over the cores.  "vector": iterations are SIMD lanes, as
    many as the machine's vectors have but no more than `lanes` (0: whatever these are), `unroll`
    vectors at a time, the rest under a mask; an `Accumulate` into something that does not
    depend on `var` keeps one accumulator per lane and combines them in a fixed tree.  "unroll": all
    iterations are written out (a constant extent).  "instruction": the loop, with all that is in
    it, is one instruction, by its name in `loop.intrinsics`, where the CPU has that.  note: what
    somebody wrote on it.
    """

    var: str
    extent: Expr
    body: tuple[Stmt, ...]
    kind: Literal["serial", "parallel", "vector", "unroll", "instruction"] = "serial"
    unroll: int = 1
    location: Location | None = None
    note: str = ""
    instruction: str = ""
    lanes: int = 0


@dataclass(frozen=True, eq=False)
class If:
    """if condition: yes else: no, with a condition that is the same for all lanes."""

    condition: Expr
    yes: tuple[Stmt, ...]
    no: tuple[Stmt, ...] = ()
    location: Location | None = None


@dataclass(frozen=True, eq=False)
class While:
    """while condition: body"""

    condition: Expr
    body: tuple[Stmt, ...]
    location: Location | None = None


@dataclass(frozen=True, eq=False)
class Call:
    """A library routine (e.g. `blas.gemm`) on buffers, the outputs first.

    `at`: for each buffer the leading indices of the part it works on; () is all of it.  `box`:
    start and length along each of the output's last two axes, if only that part is computed.
    """

    fn: str
    buffers: tuple[Buffer, ...]
    at: tuple[tuple[Expr, ...], ...]
    options: tuple[tuple[str, int | float | str | bool], ...] = ()
    location: Location | None = None
    box: tuple[tuple[Expr, Expr], ...] = ()


@dataclass(frozen=True, eq=False)
class Block:
    """A body as one statement: what it allocates and binds ends with it.  label: for `Leave`."""

    body: tuple[Stmt, ...]
    location: Location | None = None
    label: str = ""


@dataclass(frozen=True, eq=False)
class Leave:
    """Go on after the enclosing `Block` of this label: a `break`, `continue` or early `return`."""

    label: str
    location: Location | None = None


@dataclass(frozen=True, eq=False)
class Failure:
    """What ended a kernel: an exception of Python's; `{0}` in its message is a run-time value,
    `{size}` a length that may be open.

    certain: Python would raise it; otherwise perhaps, and running the program there will tell.
    """

    kind: str
    message: str
    location: Location | None = None
    certain: bool = True
    size: int | None = None

    @property
    def text(self) -> str:
        """The message as it is printed in the kernel."""
        return self.message.replace("{size}", str(self.size))


@dataclass(frozen=True, eq=False)
class Exit:
    """End the kernel with a status: `failure`, and an int64 that its message may show."""

    failure: Failure
    detail: Expr | None = None
    location: Location | None = None


@dataclass(frozen=True, eq=False)
class Poll:
    """Once in `every` times, look whether the user wants the program to stop."""

    every: int
    location: Location | None = None


@dataclass(frozen=True, eq=False)
class Prefetch:
    """Have the cache line of buffer[indices] fetched, if there is one; it means nothing.

    near: into the first cache; else into the second, as what is needed much later.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    location: Location | None = None
    near: bool = True


Stmt = (
    Store
    | Accumulate
    | Let
    | Alloc
    | For
    | If
    | While
    | Call
    | Block
    | Leave
    | Exit
    | Poll
    | Prefetch
)


@dataclass(frozen=True, eq=False)
class Kernel:
    """A loop nest over the buffers it is called with (inputs, outputs and temps, in that order).

    Each stage runs to its end before the next starts; a stage that is a parallel `For` is spread
    over the cores (`spread_loop`).
    """

    name: str
    buffers: tuple[Buffer, ...]
    stages: tuple[Stmt, ...]
    location: Location | None = None
    notes: tuple[str, ...] = field(default=())  # how it is scheduled, one line each
    written: bool = False  # its loops are the user's own, element by element
    ordered: bool = False  # what it wrote is seen even where it fails

    def __str__(self) -> str:
        from nbcomp.loop.printer import print_kernel  # the printer imports the grammar

        return print_kernel(self)


# ----------------------------------------------------------------------- building index expressions


def spread_loop(stage: Stmt) -> tuple[For | None, For] | None:
    """The parallel loop of a stage, after the loop over rounds around it, if there is one; None for
    a stage that one core runs."""
    if not isinstance(stage, For):
        return None
    if stage.kind == "parallel":
        return None, stage
    inner = stage.body[0] if len(stage.body) == 1 else None
    rounds = stage.kind == "serial" and isinstance(inner, For) and inner.kind == "parallel"
    return (stage, inner) if rounds and isinstance(inner, For) else None


def affine(constant: int = 0, **terms: int) -> Affine:
    """An index: `affine(3, i=2)` is 2*i + 3."""
    return Affine(INT64, tuple(sorted((v, f) for v, f in terms.items() if f)), constant)


def loop_var(name: str) -> Affine:
    """The index that is just the loop variable `name`."""
    return Affine(INT64, ((name, 1),), 0)


def index_add(a: Expr, b: Expr) -> Expr:
    """a + b, folded when both are affine."""
    if isinstance(a, Affine) and isinstance(b, Affine):
        if not (a.terms and b.terms):
            return Affine(INT64, a.terms or b.terms, a.constant + b.constant)
        terms = dict(a.terms)
        for var, factor in b.terms:
            terms[var] = terms.get(var, 0) + factor
        return affine(a.constant + b.constant, **terms)
    return Apply(INT64, "add", (a, b))


def index_scale(a: Expr, factor: int, offset: int = 0) -> Expr:
    """factor*a + offset, folded when a is affine."""
    if isinstance(a, Affine):
        constant = a.constant * factor + offset
        if not a.terms:
            return Affine(INT64, (), constant)
        if type(factor) is int and factor:  # the order stays
            return Affine(INT64, tuple([(v, f * factor) for v, f in a.terms]), constant)
        return affine(constant, **{v: f * factor for v, f in a.terms})
    scaled = a if factor == 1 else Apply(INT64, "multiply", (a, affine(factor)))
    return scaled if offset == 0 else Apply(INT64, "add", (scaled, affine(offset)))


def const(value: object, dtype: DType) -> Const:
    """A literal of the given dtype."""
    return Const(dtype, dtype.type(value))


def neutral(fn: str, dtype: DType) -> object:
    """What an accumulation starts from: fn(neutral, x) is x for every x, -0.0 included."""
    if fn == "add":
        return -0.0 if dtype.kind == "f" else 0
    if fn == "multiply":
        return 1
    if fn in ("logical_or", "bitwise_or", "bitwise_xor"):
        return 0
    low, high = _range(dtype)
    if fn in ("logical_and", "bitwise_and"):
        return -1 if dtype.kind == "i" else high  # all bits
    if fn in ("maximum", "minimum"):
        return low if fn == "maximum" else high
    raise ValueError(f"no reduction by {fn}")


def _range(dtype: DType) -> tuple[object, object]:
    """The smallest and the largest value."""
    if dtype.kind == "f":
        return -np.inf, np.inf
    if dtype.kind == "b":
        return False, True
    limits = np.iinfo(dtype.str)
    return limits.min, limits.max


# --------------------------------------------------------------------------------------- walking


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct operands of an expression."""
    match expr:
        case Load():
            return expr.indices
        case Apply():
            return expr.args
        case Cast():
            return (expr.value,)
        case Select():
            return (expr.condition, expr.yes, expr.no)
        case _:
            return ()


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions a statement holds itself, not those of its body."""
    match stmt:
        case Store() | Accumulate():
            return (*stmt.indices, stmt.value)
        case Let():
            return (stmt.value,)
        case For():
            return (stmt.extent,)
        case If() | While():
            return (stmt.condition,)
        case Call():
            return (*(i for at in stmt.at for i in at), *(e for pair in stmt.box for e in pair))
        case Exit() if stmt.detail is not None:
            return (stmt.detail,)
        case Prefetch():
            return stmt.indices
        case _:
            return ()


def bodies(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The bodies of a compound statement."""
    match stmt:
        case For() | While() | Block():
            return (stmt.body,)
        case If():
            return (stmt.yes, stmt.no)
        case _:
            return ()


def walk_expr(expr: Expr) -> Iterator[Expr]:
    """The expression and all below it, each shared node once."""
    seen: set[int] = set()
    stack = [expr]
    while stack:
        e = stack.pop()
        if id(e) not in seen:
            seen.add(id(e))
            yield e
            stack.extend(children(e))


def walk(stmts: tuple[Stmt, ...], without: Stmt | None = None) -> Iterator[Stmt]:
    """All statements, outside in, in order, but for `without` and what is in it."""
    left = [*reversed(stmts)]
    while left:
        stmt = left.pop()
        if stmt is without:
            continue
        yield stmt
        kind = stmt.__class__  # not by `bodies`: schedules walk kernels again and again
        if kind is For or kind is Block or kind is While:
            left.extend(stmt.body[::-1])  # type: ignore[union-attr]
        elif kind is If:
            left.extend(stmt.no[::-1])  # type: ignore[union-attr]
            left.extend(stmt.yes[::-1])  # type: ignore[union-attr]


def failures(kernel: Kernel) -> tuple[Failure, ...]:
    """What the statuses of a kernel mean: status k (its low bits, see `STATUS_BITS`) is the k-th,
    counted from 1, in program order."""
    found = (s.failure for s in walk(kernel.stages) if isinstance(s, Exit))
    return tuple(dict.fromkeys(found))


def buffers_in(stmt: Stmt, without: Stmt | None = None) -> Iterator[Buffer]:
    """Every buffer a statement touches, with repetitions, but for `without` and what is in it."""
    for s in walk((stmt,), without):
        if isinstance(s, Store | Accumulate | Prefetch):
            yield s.buffer
        elif isinstance(s, Call):
            yield from s.buffers
        yield from (e.buffer for e in exprs_of(s) if isinstance(e, Load))


def exprs_of(stmt: Stmt) -> Iterator[Expr]:
    """The expressions of a statement itself, each with all below it."""
    for root in expressions(stmt):
        yield from walk_expr(root)


def loads_of(stmts: tuple[Stmt, ...]) -> Iterator[Load]:
    """Everything that is read from memory."""
    for stmt in walk(stmts):
        yield from (e for e in exprs_of(stmt) if isinstance(e, Load))


def values_of(stmts: tuple[Stmt, ...]) -> set[str]:
    """The names of all bound values that are used."""
    return {e.name for s in walk(stmts) for e in exprs_of(s) if isinstance(e, Var)}


def steps_of(load: Load) -> dict[str, int]:
    """How far a load moves in memory, in elements, with each loop variable: the distance."""
    steps: dict[str, int] = {}
    for index, stride in zip(load.indices, load.buffer.strides, strict=True):
        for var, factor in index.terms if isinstance(index, Affine) else ():
            steps[var] = steps.get(var, 0) + abs(factor * stride)
    return steps


def variables(expr: Expr) -> set[str]:
    """The names of loop variables and bound values the expression reads."""
    names: set[str] = set()
    for e in walk_expr(expr):
        if isinstance(e, Var):
            names.add(e.name)
        elif isinstance(e, Affine):
            names.update(v for v, _ in e.terms)
    return names


def with_body(stmt: For, body: tuple[Stmt, ...]) -> For:
    """The loop with another body."""
    return replace(stmt, body=body)


def map_expr(expr: Expr, change: Callable[[Expr], Expr | None], memo: dict[int, Expr]) -> Expr:
    """The expression with every sub-expression replaced for which `change` gives another.

    memo: shared sub-expressions stay shared; one dict for all expressions rewritten together.
    """
    found = memo.get(id(expr))
    if found is not None:
        return found
    result = change(expr)
    if result is None:
        result = _rebuild(expr, lambda e: map_expr(e, change, memo))
    memo[id(expr)] = result
    return result


def _rebuild(expr: Expr, f: Callable[[Expr], Expr]) -> Expr:
    match expr:
        case Load():
            return _changed(expr, indices=_mapped(f, expr.indices))
        case Apply():
            return _changed(expr, args=_mapped(f, expr.args))
        case Cast():
            return _changed(expr, value=f(expr.value))
        case Select():
            return _changed(expr, condition=f(expr.condition), yes=f(expr.yes), no=f(expr.no))
        case _:
            return expr


def _mapped(f: Callable[[T], T], items: tuple[T, ...]) -> tuple[T, ...]:
    """The items mapped; the same tuple where that changes none."""
    made = tuple(map(f, items))
    return items if all(a is b for a, b in zip(made, items, strict=True)) else made


def _changed(node: T, **parts: Any) -> T:
    """A node with other parts; itself where they are those it has: most of a kernel stays as it is
    when a step changes a loop of it."""
    if all(getattr(node, name) is part for name, part in parts.items()):
        return node
    return replace(node, **parts)  # type: ignore[type-var]


def with_buffers(stmts: tuple[Stmt, ...], buffer: Callable[[Buffer], Buffer]) -> tuple[Stmt, ...]:
    """The statements on other buffers."""
    memo: dict[int, Expr] = {}

    def load(e: Expr) -> Expr | None:
        if not isinstance(e, Load):
            return None
        indices = tuple(map_expr(i, load, memo) for i in e.indices)
        return replace(e, buffer=buffer(e.buffer), indices=indices)

    def inner(s: Stmt) -> Stmt:
        return map_stmt(s, lambda e: map_expr(e, load, memo), buffer, inner)

    return tuple(map(inner, stmts))


def map_stmt(
    stmt: Stmt,
    expr: Callable[[Expr], Expr],
    buffer: Callable[[Buffer], Buffer] = lambda b: b,
    inner: Callable[[Stmt], Stmt] | None = None,
) -> Stmt:
    """The statement with its own expressions and buffers mapped, and its bodies by `inner`."""
    go = inner or (lambda s: map_stmt(s, expr, buffer))

    def body(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return _mapped(go, stmts)

    match stmt:
        case Store() | Accumulate():
            indices = _mapped(expr, stmt.indices)
            return _changed(
                stmt, buffer=buffer(stmt.buffer), indices=indices, value=expr(stmt.value)
            )
        case Let():
            return _changed(stmt, value=expr(stmt.value))
        case Alloc():
            return _changed(stmt, buffer=buffer(stmt.buffer))
        case For():
            return _changed(stmt, extent=expr(stmt.extent), body=body(stmt.body))
        case If():
            return _changed(
                stmt, condition=expr(stmt.condition), yes=body(stmt.yes), no=body(stmt.no)
            )
        case While():
            return _changed(stmt, condition=expr(stmt.condition), body=body(stmt.body))
        case Block():
            return _changed(stmt, body=body(stmt.body))
        case _:
            return _map_simple(stmt, expr, buffer)


def _map_simple(
    stmt: Stmt, expr: Callable[[Expr], Expr], buffer: Callable[[Buffer], Buffer]
) -> Stmt:
    """`map_stmt` of what has no body and binds nothing."""
    match stmt:
        case Call():
            return _changed(
                stmt,
                buffers=_mapped(buffer, stmt.buffers),
                at=tuple(tuple(map(expr, at)) for at in stmt.at),
                box=tuple((expr(start), expr(count)) for start, count in stmt.box),
            )
        case Exit():
            return _changed(stmt, detail=expr(stmt.detail) if stmt.detail else None)
        case Prefetch():
            indices = _mapped(expr, stmt.indices)
            return _changed(stmt, buffer=buffer(stmt.buffer), indices=indices)
        case _:
            return stmt
