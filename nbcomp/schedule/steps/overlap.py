"""Iterations that overlap: loops of several of them, one after the other, run side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from nbcomp.errors import ScheduleError
from nbcomp.loop.dependence import conflict
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

Part = tuple[Stmt, ...]  # of an iteration, up to a loop and with it


def overlap(kernel: Kernel, loop: str, *inner: str) -> Kernel:
    """`for i in 0..n: (A(i); for j: B(i, j); for k: C(i, k))`
    ->  `A(0); for j: B(0, j); for i in 0..n-1: (A(i+1); for j: (C(i, j); B(i+1, j)));
    for k: C(n-1, k)`, for `overlap("i", "j", "k")`

    The last loop of an iteration runs beside an earlier one of the next iteration, and that beside
    a still earlier one of the one after it if three are named: so what one waits for (memory, the
    divider) the others have time for.  Values and memory that a later loop reads are kept until
    then.  Legal where the iterations are independent, the loops have as many of their own, and what
    one writes of the memory it shares with the loop after it has been read by that one.
    (M. Lam, "Software pipelining", PLDI 1988, with loops for instructions.)
    """
    found, loops = find(kernel, loop), [find(kernel, name) for name in inner]
    _placed(found, loops)
    if why := conflict(found):
        raise why
    parts = _parts(found, loops)
    held, parts = _held(found, parts)
    kept = _Kept(kernel, parts)
    parts = kept.parts
    ahead = len(parts) - 1

    def at(numbers: Iterable[int], place: Expr) -> list[Part]:
        """The parts of several iterations, the earlier iteration's first, the last one there."""
        order = sorted(numbers, reverse=True)
        last = order[-1]
        return [substitute(parts[k], {loop: index_add(place, affine(last - k))}) for k in order]

    steady = at(range(len(parts)), index_add(loop_var(loop), affine(ahead)))
    before = [p for k in range(ahead) for p in at(range(k + 1), affine(k))]
    final = index_add(found.extent, affine(-1))
    after = [p for k in range(1, len(parts)) for p in at(range(k, len(parts)), final)]
    main = replace(found, extent=index_add(found.extent, affine(-ahead)), body=_joined(steady))
    memory = tuple(map(Alloc, (*held, *kept.buffers)))
    made: Part = (*memory, main)
    for part in before:
        made = (*made[:-1], *renamed(kernel, part, made), main)
    for part in after:
        made = (*made, *renamed(kernel, part, made))
    return splice(kernel, found, made)


def _placed(found: For, loops: list[For]) -> None:
    """Raise ScheduleError unless the loops stand as they must, with as many iterations."""
    if len(loops) < 2:
        raise ScheduleError(f"two loops inside {found.var} at least are to overlap")
    last = loops[-1]
    if found.body[-1] is not last:
        raise ScheduleError(f"{last.var} is not the last statement of {found.var}")
    _in_order(found, loops)
    theirs = print_expr(last.extent)
    for each in (found, *loops):
        if each.kind != "serial":
            raise ScheduleError(f"{each.var} is {each.kind}: overlapping comes before that")
        ours = theirs if each is found else print_expr(each.extent)
        if ours != theirs:
            raise ScheduleError(f"{each.var} has {ours} iterations and {last.var} {theirs}")
    if mentions(last.extent, found.var):
        raise ScheduleError(f"the extent of {last.var} depends on {found.var}")
    if not _at_least(found.extent, len(loops)):
        raise ScheduleError(
            f"{found.var} may have less than {len(loops)} iterations: {print_expr(found.extent)}",
            hint=f'split("{found.var}", 16) before',
        )


def _in_order(found: For, loops: list[For]) -> None:
    """Raise ScheduleError unless the loops are different statements of a loop, in that order."""
    places = [next((k for k, s in enumerate(found.body) if s is loop), -1) for loop in loops]
    for k, loop in enumerate(loops[:-1]):
        if places[k] < 0 or loop in loops[k + 1 :]:
            raise ScheduleError(f"{loop.var} is no other loop right inside {found.var}")
        if places[k] > places[k + 1] >= 0:
            raise ScheduleError(f"{loops[k + 1].var} does not come after {loop.var}")


def _at_least(extent: Expr, count: int) -> bool:
    """Whether there are enough iterations; a block that is cut short has one at least, with which
    two loops begin."""
    if isinstance(extent, Affine) and not extent.terms:
        return not isinstance(extent.constant, Size) and extent.constant >= count
    return count == 2 and isinstance(extent, Apply) and extent.fn == "minimum"


def _parts(found: For, loops: list[For]) -> list[Part]:
    """The body of a loop, cut after each of some loops in it."""
    ends = [1 + next(k for k, s in enumerate(found.body) if s is loop) for loop in loops]
    return [found.body[a:b] for a, b in pairwise((0, *ends))]


def _held(found: For, parts: list[Part]) -> tuple[list[Buffer], list[Part]]:
    """The memory of an iteration that several parts use, to be kept from one to the next, and the
    parts, each with the memory that it alone uses."""
    held: list[Buffer] = []
    made: list[Part] = [tuple(s for s in p if not isinstance(s, Alloc)) for p in parts]
    for alloc in (s for s in found.body if isinstance(s, Alloc)):
        users = [k for k, part in enumerate(parts) if _uses(part, alloc.buffer)]
        if len(users) > 1:
            _in_time(alloc.buffer, parts, users[0], users[-1])
            held.append(alloc.buffer)
        elif users:
            made[users[0]] = (alloc, *made[users[0]])
    return held, made


def _uses(body: Part, buffer: Buffer) -> bool:
    return any(buffer in buffers_in(s) for s in body if not isinstance(s, Alloc))


def _in_time(buffer: Buffer, parts: list[Part], first: int, last: int) -> None:
    """Raise ScheduleError where memory that is kept would be overwritten before it is read."""
    (*before, early), (*_, late) = parts[first], parts[last]
    assert isinstance(early, For)
    assert isinstance(late, For)
    if last - first > 1:
        raise ScheduleError(
            f"{buffer.name} is used up to {late.var}, while {early.var} has begun it anew twice"
        )
    if _uses((late,), buffer) and _uses(tuple(before), buffer):
        raise ScheduleError(f"{buffer.name} is used before {early.var} begins")
    body = substitute(early.body, {early.var: loop_var(late.var)})
    if why := crossing(late, body, {buffer.memory}):
        raise ScheduleError(f"{early.var} and {late.var} cannot overlap: {why}")


def _joined(parts: list[Part]) -> Part:
    """Parts whose loops are one, with the name of the last."""
    main = parts[-1][-1]
    assert isinstance(main, For)
    bodies: Part = ()
    for *_, loop in parts:
        assert isinstance(loop, For)
        bodies += substitute(loop.body, {loop.var: loop_var(main.var)})
    return (*(s for part in parts for s in part[:-1]), replace(main, body=bodies))


class _Kept:
    """The values of an iteration that later parts read, each in memory from part to part.

    parts: with what reads and writes it.
    """

    def __init__(self, kernel: Kernel, parts: list[Part]) -> None:
        self.kernel, self.buffers = kernel, list[Buffer]()
        self.parts: list[Part] = []
        passed: dict[Let, Buffer] = {}  # what the part before has left
        for k, (*begin, loop) in enumerate(parts):
            body: Part = (*begin, loop)
            loads: list[Stmt] = []
            names = {s: s.name for s in begin if isinstance(s, Let)}
            for let, buffer in passed.items():
                names[let] = self.free(f"{let.name}_before", k)
                loads.append(Let(names[let], Load(buffer.dtype, buffer, ()), let.location))
                body = value_renamed(body, let.name, names[let])
            later = values_of(tuple(s for part in parts[k + 1 :] for s in part))
            passed = {let: self.buffer(let, k) for let in names if let.name in later}
            saves = (
                Store(b, (), Var(b.dtype, names[let]), let.location) for let, b in passed.items()
            )
            self.parts.append((*loads, *body[:-1], *saves, body[-1]))

    def free(self, name: str, part: int) -> str:
        return free_name(self.kernel, name if part < 2 else f"{name}_{part}")

    def buffer(self, let: Let, part: int) -> Buffer:
        """Memory for a value after a part."""
        name = self.free(f"{let.name}_kept", part + 1)
        self.buffers.append(Buffer(name, let.value.dtype, (), (), "local"))
        return self.buffers[-1]
