"""Iterations that overlap: the end of one runs beside a part of the next."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import (
    Affine,
    Alloc,
    Apply,
    Buffer,
    Expr,
    For,
    Kernel,
    Let,
    Load,
    Stmt,
    Store,
    Var,
    affine,
    buffers_in,
    index_add,
    loop_var,
    values_of,
)
from nbcomp.loop.printer import print_expr
from nbcomp.schedule.dependence import conflict
from nbcomp.schedule.rewriting import (
    find,
    free_name,
    mentions,
    renamed,
    splice,
    substitute,
    value_renamed,
)
from nbcomp.schedule.steps.merge import crossing
from nbcomp.sizes import Size


def overlap(kernel: Kernel, loop: str, early: str, late: str) -> Kernel:
    """`for i in 0..n: (A(i); for j: B(i, j); for k: C(i, k))`
    ->  `A(0); for j: B(0, j); for i in 0..n-1: (A(i+1); for j: (C(i, j); B(i+1, j)));
    for k: C(n-1, k)`

    The last loop of an iteration runs beside an earlier one of the next iteration, so that what one
    waits for (memory, the divider) the other has time for.  Values and memory of an iteration that
    its last loop reads are kept until then.  Legal where the iterations are independent, both loops
    have as many of their own, and what the early loop writes of the memory they share has been read
    by the late one.  (M. Lam, "Software pipelining", PLDI 1988, with loops for instructions.)
    """
    found, beside, last = find(kernel, loop), find(kernel, early), find(kernel, late)
    _placed(found, beside, last)
    if why := conflict(found):
        raise why
    held = [s.buffer for s in found.body if isinstance(s, Alloc)]
    held = [b for b in held if b in buffers_in(last)]
    _own(found, beside, last, held)
    keep = _Kept(kernel, found, last)
    rest = tuple(s for s in found.body[:-1] if not (isinstance(s, Alloc) and s.buffer in held))
    begin = substitute((*rest, *keep.saves()), {loop: affine(0)})
    final = index_add(found.extent, affine(-1))
    end = substitute((*keep.loads(), *keep.reading((last,))), {loop: final})
    ending = keep.reading(substitute(last.body, {late: loop_var(early)}))
    following = substitute(rest, {loop: index_add(loop_var(loop), affine(1))})
    at = next(k for k, s in enumerate(rest) if s is beside)
    joined = following[at]
    assert isinstance(joined, For)
    joined = replace(joined, body=(*ending, *joined.body))
    body = (*keep.loads(), *following[:at], joined, *following[at + 1 :], *keep.saves())
    steady = replace(found, extent=final, body=body)
    memory = tuple(map(Alloc, (*held, *keep.values.values())))
    outside = renamed(kernel, (*begin, *end), (*memory, steady))
    made = (*memory, *outside[: len(begin)], steady, *outside[len(begin) :])
    return splice(kernel, found, made)


def _placed(found: For, beside: For, last: For) -> None:
    """Raise ScheduleError unless the loops stand as they must, with as many iterations."""
    if found.body[-1] is not last:
        raise ScheduleError(f"{last.var} is not the last statement of {found.var}")
    if beside is last or not any(s is beside for s in found.body):
        raise ScheduleError(f"{beside.var} is no other loop right inside {found.var}")
    for each in (found, beside, last):
        if each.kind != "serial":
            raise ScheduleError(f"{each.var} is {each.kind}: overlapping comes before that")
    ours, theirs = print_expr(beside.extent), print_expr(last.extent)
    if ours != theirs:
        raise ScheduleError(f"{beside.var} has {ours} iterations and {last.var} {theirs}")
    if mentions(last.extent, found.var):
        raise ScheduleError(f"the extent of {last.var} depends on {found.var}")
    if not _at_least_two(found.extent):
        raise ScheduleError(
            f"{found.var} may have less than two iterations: {print_expr(found.extent)}",
            hint=f'split("{found.var}", 16) before',
        )


def _at_least_two(extent: Expr) -> bool:
    """Whether there is an iteration to begin with; a block that is cut short has one at least."""
    if isinstance(extent, Affine) and not extent.terms:
        return not isinstance(extent.constant, Size) and extent.constant >= 2
    return isinstance(extent, Apply) and extent.fn == "minimum"


def _own(found: For, beside: For, last: For, held: list[Buffer]) -> None:
    """Raise ScheduleError where memory that is kept would be overwritten before it is read."""
    for buffer in held:
        for stmt in takewhile(lambda s: s is not beside, found.body):
            if not isinstance(stmt, Alloc) and buffer in buffers_in(stmt):
                raise ScheduleError(f"{buffer.name} is used before {beside.var} begins")
    body = substitute(beside.body, {beside.var: loop_var(last.var)})
    if why := crossing(last, body, {b.memory for b in held}):
        raise ScheduleError(f"{beside.var} and {last.var} cannot overlap: {why}")


class _Kept:
    """The values of an iteration that its last loop reads, each in memory until then."""

    def __init__(self, kernel: Kernel, found: For, last: For) -> None:
        read = values_of((last,))
        self.values: dict[Let, Buffer] = {}
        self.names: dict[Let, str] = {}
        for stmt in found.body:
            if isinstance(stmt, Let) and stmt.name in read:
                name = free_name(kernel, f"{stmt.name}_kept")
                self.values[stmt] = Buffer(name, stmt.value.dtype, (), (), "local")
                self.names[stmt] = free_name(kernel, f"{stmt.name}_before")

    def saves(self) -> tuple[Stmt, ...]:
        """Stores of this iteration's values."""
        return tuple(
            Store(buffer, (), Var(let.value.dtype, let.name), let.location)
            for let, buffer in self.values.items()
        )

    def loads(self) -> tuple[Stmt, ...]:
        """The values of the iteration before, as they were kept."""
        return tuple(
            Let(self.names[let], Load(buffer.dtype, buffer, ()), let.location)
            for let, buffer in self.values.items()
        )

    def reading(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Statements with these in place of the iteration's own."""
        for let, name in self.names.items():
            body = value_renamed(body, let.name, name)
        return body
