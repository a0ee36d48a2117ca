"""Finding loops in a kernel and putting others in their place: what all steps have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import count, pairwise

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Alloc,
    Apply,
    Block,
    Buffer,
    Call,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Stmt,
    Store,
    Var,
    While,
    bodies,
    index_add,
    index_scale,
    loop_var,
    map_expr,
    map_stmt,
    walk,
    walk_expr,
)
from nbcomp.loop.printer import print_expr
from nbcomp.sizes import Size
from nbcomp.types import INT64

NEAR = 256 << 10  # bytes a kernel may keep in one local: its stack


def noted(kernel: Kernel, *notes: str) -> Kernel:
    """The kernel with what was done to it written down."""
    return replace(kernel, notes=(*kernel.notes, *notes))


def loop_names(kernel: Kernel) -> list[str]:
    """The variables of all loops, outside in."""
    return [s.var for s in walk(kernel.stages) if isinstance(s, For)]


def main_loop(stage: Stmt) -> For | None:
    """The loop that is a stage, or all that a stage does once some values are bound."""
    *values, last = stage.body if isinstance(stage, Block) and stage.body else (stage,)
    return last if isinstance(last, For) and all(isinstance(s, Let) for s in values) else None


def stage_of(kernel: Kernel, loop: str) -> Stmt:
    """The stage a loop is in; ScheduleError lists the loops when there is none of that name."""
    return _found(kernel, loop)[0]


def _found(kernel: Kernel, loop: str) -> tuple[Stmt, For]:
    """The stage a loop is in, and the loop; ScheduleError where it is in an instruction."""
    block: For | None = None
    for stage in kernel.stages:
        for stmt in walk((stage,)):
            if not isinstance(stmt, For):
                continue
            if stmt.kind == "instruction":
                block = stmt
            if stmt.var == loop:
                _no_part(block, stmt)
                return stage, stmt
    raise ScheduleError(
        f"no loop {among_names(loop, loop_names(kernel), 'loops')}", hint=_not_written_out(kernel)
    )


def _not_written_out(kernel: Kernel) -> str:
    """What to do first where a product is a call of a library: its loops are there, unseen."""
    for position, stage in enumerate(kernel.stages):
        calls = [s for s in walk((stage,)) if isinstance(s, Call)]
        if len(calls) == 1 and calls[0].fn == "blas.gemm" and not calls[0].box:
            return f"the product is a call of BLAS: generate({position}) writes its loops out"
    return ""


def among_names(wanted: str, names: Sequence[str], what: str) -> str:
    """A name that is none of those there are, what may have been meant, and what there is; what:
    what they are, in the plural."""
    near = [n for n in names if n.lower() == wanted.lower()] or get_close_matches(wanted, names, 1)
    meant = f" (did you mean {near[0]}?)" if near else ""
    there = f"the {what} are {', '.join(names)}" if names else f"there are no {what}"
    return f"{shown(wanted)}{meant}; {there}"


def shown(name: str) -> str:
    """A name in a message: quoted where one would not see it, or not as it is."""
    return name if name.strip() and name.isprintable() else ascii(name)


def _no_part(block: For | None, found: For) -> None:
    """Raise ScheduleError where a loop is in the instruction that began last."""
    if block is not None and any(s is found for s in walk((block,))):
        raise ScheduleError(
            f"{found.var} is in the instruction {block.instruction}: such a step comes before "
            "tensorize"
        )


def find(kernel: Kernel, loop: str) -> For:
    """The loop with this variable."""
    return _found(kernel, loop)[1]


def loops_around(body: tuple[Stmt, ...], found: For) -> Iterator[For]:
    """The loops that a loop somewhere in a body is in, outside in."""
    for stmt in body:
        if stmt is not found and found in walk((stmt,)):
            if isinstance(stmt, For):
                yield stmt
            for inner in bodies(stmt):
                yield from loops_around(inner, found)


def nested(kernel: Kernel, outer: str, inner: str) -> tuple[For, For]:
    """Two loops of which the inner one is all there is in the outer one.

    Raises ScheduleError where they are not, and says how they stand to each other.
    """
    if outer == inner:
        raise ScheduleError(f"{outer} is given twice: two different loops are wanted")
    found, wanted = find(kernel, outer), find(kernel, inner)
    if len(found.body) == 1 and found.body[0] is wanted:
        return found, wanted
    hint = _apart(kernel, found, wanted)
    raise ScheduleError(f"{inner} is not the only statement of {outer}", hint=hint)


def _apart(kernel: Kernel, found: For, wanted: For) -> str:
    """What to do about two loops that are no perfect nest."""
    if any(s is found for s in walk(wanted.body)):
        return f"{wanted.var} is around {found.var}: give the outer loop first"
    beside = [s.var for s in found.body if isinstance(s, For)]
    if wanted.var in beside:
        return f'distribute("{found.var}") gives each statement of {found.var} a loop of its own'
    blocks = [kernel.stages, *(b for s in walk(kernel.stages) for b in bodies(s))]
    if any(a is found and b is wanted for stmts in blocks for a, b in pairwise(stmts)):
        return f'one follows the other: join("{found.var}", "{wanted.var}") walks them as one'
    return f"the loops right inside {found.var} are {', '.join(beside)}" if beside else ""


def constant_extent(found: For) -> int:
    """The number of iterations of a loop; ScheduleError where it is not the same each time."""
    if not isinstance(found.extent, Affine) or found.extent.terms:
        raise ScheduleError(
            f"the extent of {found.var} is not a constant: {print_expr(found.extent)}",
            hint=_rest(found.extent),
        )
    return found.extent.constant


def _rest(extent: Expr) -> str:
    """What to do about an extent that is cut short in the last of the blocks of a loop."""
    if not isinstance(extent, Apply) or extent.fn != "minimum":
        return ""
    whole, left = extent.args
    if not (isinstance(whole, Affine) and isinstance(left, Affine) and len(left.terms) == 1):
        return ""
    ((blocks, step),) = left.terms
    if whole.terms or step != -whole.constant:
        return ""
    if isinstance(left.constant, Size):
        by = whole.constant
        return f"how many there are differs from call to call: peel_rest by {by} before the split"
    rest = left.constant % whole.constant
    return (
        f"the last of the blocks that {blocks} counts has {rest} iterations, not {whole.constant}:"
        f' peel("{blocks}", 1) before, or split by a number that divides {left.constant}'
    )


def on_stack(buffer: Buffer, what: str) -> None:
    """Raise ScheduleError for a local that is too large for the stack; what: what it is kept for.

    Where a length is open the value seen counts.
    """
    if buffer.nbytes > NEAR:
        raise ScheduleError(
            f"{buffer.name} would take {buffer.nbytes:,} bytes {what}, over {NEAR:,}",
            hint="split the loops first, so that less is kept at a time",
        )


def mentions(e: Expr, var: str) -> bool:
    """Whether an expression depends on a loop variable."""
    return any(isinstance(x, Affine) and any(v == var for v, _ in x.terms) for x in walk_expr(e))


def nest(
    kernel: Kernel, base: str, extents: Sequence[Expr], body: Callable[[list[Affine]], Stmt]
) -> Stmt:
    """Loops of these extents, outside in, under new names `base0`, `base1`, … around a statement
    that is made from their variables.
    """
    names: list[str] = []
    scope = kernel
    for k in range(len(extents)):
        names.append(free_name(scope, f"{base}{k}"))
        scope = replace(scope, stages=(*scope.stages, For(names[-1], extents[k], ())))
    stmt = body(list(map(loop_var, names)))
    for name, extent in reversed(list(zip(names, extents, strict=True))):
        stmt = For(name, extent, (stmt,), location=getattr(stmt, "location", None))
    return stmt


def names_in(kernel: Kernel) -> set[str]:
    """The names of all loops, values and buffers."""
    taken = {*loop_names(kernel), *(b.name for b in kernel.buffers)}
    for stmt in walk(kernel.stages):
        if isinstance(stmt, Let):
            taken.add(stmt.name)
        elif isinstance(stmt, Alloc):
            taken.add(stmt.buffer.name)
    return taken


def free_name(kernel: Kernel, base: str) -> str:
    """A name for something new: `base`, or with a number if that is taken."""
    taken = names_in(kernel)
    numbered = (base if k == 1 else f"{base}_{k}" for k in count(1))
    return next(name for name in numbered if name not in taken)


def at(kernel: Kernel, loop: str, change: Callable[[For], Stmt]) -> Kernel:
    """The kernel with one loop changed."""
    stage, found = _found(kernel, loop)
    made = _replaced(stage, found, change(found))
    return replace(kernel, stages=tuple(made if s is stage else s for s in kernel.stages))


def _replaced(stmt: Stmt, old: Stmt, new: Stmt) -> Stmt:
    """A statement with `old` somewhere in it replaced; itself where it is not in it."""
    if stmt is old:
        return new
    if isinstance(stmt, If):
        yes, no = (_replaced_in(body, old, new) for body in (stmt.yes, stmt.no))
        return stmt if yes is stmt.yes and no is stmt.no else replace(stmt, yes=yes, no=no)
    if not isinstance(stmt, For | While | Block):
        return stmt
    body = _replaced_in(stmt.body, old, new)
    return stmt if body is stmt.body else replace(stmt, body=body)


def _replaced_in(body: tuple[Stmt, ...], old: Stmt, new: Stmt) -> tuple[Stmt, ...]:
    for k, stmt in enumerate(body):
        made = _replaced(stmt, old, new)
        if made is not stmt:
            return (*body[:k], made, *body[k + 1 :])
    return body


def replace_in(stmt: Stmt, old: Stmt, new: Stmt, buffer: Callable[[Buffer], Buffer]) -> Stmt:
    """A statement with `old` somewhere in it replaced; `buffer` renames what is allocated."""
    if stmt is old:
        return new
    if isinstance(stmt, Alloc):
        return replace(stmt, buffer=buffer(stmt.buffer))
    if not bodies(stmt):
        return stmt
    return map_stmt(stmt, lambda e: e, lambda b: b, lambda s: replace_in(s, old, new, buffer))


def splice(kernel: Kernel, old: Stmt, new: tuple[Stmt, ...]) -> Kernel:
    """The kernel with several statements in the place of one.

    What was a whole stage becomes several, or one block if it allocates.
    """

    def body(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(x for s in stmts for x in (new if s is old else (inside(s),)))

    def inside(stmt: Stmt) -> Stmt:
        if not bodies(stmt) or not any(s is old for s in walk((stmt,))):
            return stmt
        blocks = [body(b) for b in bodies(stmt)]
        if isinstance(stmt, For):
            return replace(stmt, body=blocks[0])
        if isinstance(stmt, If):
            return replace(stmt, yes=blocks[0], no=blocks[1])
        if isinstance(stmt, Block):
            return replace(stmt, body=blocks[0])
        raise ScheduleError("the loop is in one that runs while a condition holds")

    if any(s is old for s in kernel.stages) and any(isinstance(s, Alloc) for s in new):
        new = (Block(new, getattr(old, "location", None)),)
    return replace(kernel, stages=body(kernel.stages))


def substitute(body: tuple[Stmt, ...], by: Mapping[str, Expr]) -> tuple[Stmt, ...]:
    """Statements with expressions in place of loop variables, all at once."""
    memo: dict[int, Expr] = {}

    def change(e: Expr) -> Expr | None:
        if not isinstance(e, Affine) or all(v not in by for v, _ in e.terms):
            return None
        total: Expr = Affine(INT64, tuple(t for t in e.terms if t[0] not in by), e.constant)
        for var, factor in e.terms:
            if var in by:
                total = index_add(total, index_scale(by[var], factor))
        return total

    def stmt_of(stmt: Stmt) -> Stmt:
        return map_stmt(stmt, lambda e: map_expr(e, change, memo), lambda b: b, stmt_of)

    return tuple(map(stmt_of, body))


def renamed(
    kernel: Kernel, body: tuple[Stmt, ...], beside: tuple[Stmt, ...] = ()
) -> tuple[Stmt, ...]:
    """A copy of statements that are already in the kernel: what they bind gets names of its own.

    beside: what goes into the kernel with them, whose names are taken, too.
    """
    scope = replace(kernel, stages=(*kernel.stages, *beside))
    for stmt in list(walk(body)):
        if isinstance(stmt, For):
            name = free_name(scope, stmt.var)
            body = _loop_renamed(substitute(body, {stmt.var: loop_var(name)}), stmt.var, name)
            scope = replace(scope, stages=(*scope.stages, For(name, stmt.extent, ())))
        elif isinstance(stmt, Let):
            name = free_name(scope, stmt.name)
            body = value_renamed(body, stmt.name, name)
            scope = replace(scope, stages=(*scope.stages, replace(stmt, name=name)))
        elif isinstance(stmt, Alloc):
            fresh = replace(stmt.buffer, name=free_name(scope, stmt.buffer.name))
            body = replace_buffer(body, stmt.buffer, fresh)
            scope = replace(scope, stages=(*scope.stages, Alloc(fresh)))
    return body


def _loop_renamed(body: tuple[Stmt, ...], old: str, new: str) -> tuple[Stmt, ...]:
    def change(stmt: Stmt) -> Stmt:
        made = map_stmt(stmt, lambda e: e, lambda b: b, change) if bodies(stmt) else stmt
        return replace(made, var=new) if isinstance(made, For) and made.var == old else made

    return tuple(map(change, body))


def value_renamed(body: tuple[Stmt, ...], old: str, new: str) -> tuple[Stmt, ...]:
    """Statements with another name for a bound value."""
    memo: dict[int, Expr] = {}

    def value(e: Expr) -> Expr | None:
        return replace(e, name=new) if isinstance(e, Var) and e.name == old else None

    def change(stmt: Stmt) -> Stmt:
        made = map_stmt(stmt, lambda e: map_expr(e, value, memo), lambda b: b, change)
        return replace(made, name=new) if isinstance(made, Let) and made.name == old else made

    return tuple(map(change, body))


def replace_buffer(body: tuple[Stmt, ...], old: Buffer, new: Buffer) -> tuple[Stmt, ...]:
    """Statements with another buffer of the same shape in place of one."""
    return remapped(body, lambda b, indices: (new, indices) if b == old else None)


def reshaped(
    body: tuple[Stmt, ...], grown: Mapping[Buffer, tuple[Buffer, Expr]]
) -> tuple[Stmt, ...]:
    """Statements with buffers that have one more axis in front, at the given index there."""

    def change(b: Buffer, indices: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]] | None:
        if b not in grown:
            return None
        buffer, index = grown[b]
        return buffer, (index, *indices)

    return remapped(body, change)


Place = tuple[Buffer, tuple[Expr, ...]]


def remapped(
    body: tuple[Stmt, ...], change: Callable[[Buffer, tuple[Expr, ...]], Place | None]
) -> tuple[Stmt, ...]:
    """Statements with accesses sent elsewhere: (buffer, indices) → another pair, or None."""
    memo: dict[int, Expr] = {}

    def value(e: Expr) -> Expr:
        return map_expr(e, load, memo)

    def load(e: Expr) -> Expr | None:
        if not isinstance(e, Load):
            return None
        indices = tuple(map(value, e.indices))
        buffer, indices = change(e.buffer, indices) or (e.buffer, indices)
        return replace(e, buffer=buffer, indices=indices)

    def stmt_of(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Store | Accumulate):
            indices = tuple(map(value, stmt.indices))
            buffer, indices = change(stmt.buffer, indices) or (stmt.buffer, indices)
            return replace(stmt, buffer=buffer, indices=indices, value=value(stmt.value))
        if isinstance(stmt, Alloc):
            moved = change(stmt.buffer, ())
            return replace(stmt, buffer=moved[0]) if moved else stmt
        return map_stmt(stmt, value, lambda b: b, stmt_of)

    return tuple(map(stmt_of, body))
