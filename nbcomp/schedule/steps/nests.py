"""The shape of a nest: which loops there are, and in which order."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from nbcomp.errors import ScheduleError
from nbcomp.loop.dependence import conflict
from nbcomp.loop.grammar import (
    Alloc,
    Apply,
    Buffer,
    Expr,
    For,
    Kernel,
    Let,
    Stmt,
    affine,
    index_add,
    index_scale,
    loop_var,
    walk,
)
from nbcomp.schedule.region import settled, upper
from nbcomp.schedule.rewriting import (
    at,
    constant_extent,
    find,
    free_name,
    loop_names,
    mentions,
    nested,
    on_stack,
    renamed,
    reshaped,
    splice,
    substitute,
)
from nbcomp.sizes import Size, leaves_rest
from nbcomp.types import INT64, contiguous_strides


def split(kernel: Kernel, loop: str, by: int) -> Kernel:
    """`for i in 0..n: S(i)`  ->  `for i_o in 0..⌈n/b⌉: for i in 0..min(b, n-b*i_o): S(b*i_o+i)`

    Of a loop that is spread over the cores the blocks are; else the inner loop runs as it did.
    """
    if by < 1:
        raise ScheduleError(f"{loop} cannot be split into blocks of {by}: they are of 1 or more")
    outer = free_name(kernel, f"{loop}_o")

    def change(found: For) -> Stmt:
        n = constant_extent(found)
        place = index_add(index_scale(loop_var(outer), by), loop_var(loop))
        body = substitute(found.body, {loop: place})
        inner: Expr = affine(by if isinstance(n, Size) else min(by, n))
        if leaves_rest(n, by) and (isinstance(n, Size) or by < n):
            left = index_scale(loop_var(outer), -by, n)
            inner = Apply(INT64, "minimum", (affine(by), left))
        blocks = For(outer, affine(-(-n // by)), (), location=found.location)
        if found.kind == "parallel":
            found, blocks = replace(found, kind="serial"), replace(blocks, kind="parallel")
        return replace(blocks, body=(replace(found, extent=inner, body=body),))

    return at(kernel, loop, change)


def interchange(kernel: Kernel, outer: str, inner: str) -> Kernel:
    """`for i: for j: S`  ->  `for j: for i: S`, for a perfect nest with independent iterations"""

    found, below = nested(kernel, outer, inner)
    if mentions(below.extent, outer):
        raise ScheduleError(f"the extent of {inner} depends on {outer}")
    if why := conflict(found) or conflict(below):
        raise why
    return at(kernel, outer, lambda _: replace(below, body=(replace(found, body=below.body),)))


def reorder(kernel: Kernel, *order: str) -> Kernel:
    """`for i: for j: for k: S`  ->  `for k: for i: for j: S`, for `reorder("k", "i", "j")`

    The loops must be a perfect nest (each the only statement of the one around it), in any order.
    """
    if len(set(order)) != len(order) or len(order) < 2:
        raise ScheduleError("give two or more different loops, outermost first")
    present = _nest(kernel, order)
    for position, wanted in enumerate(order):
        for k in range(present.index(wanted), position, -1):
            kernel = interchange(kernel, present[k - 1], present[k])
            present[k - 1], present[k] = present[k], present[k - 1]
    return kernel


def _nest(kernel: Kernel, loops: tuple[str, ...]) -> list[str]:
    """These loops as they are nested, outside in."""
    for var in loops:
        find(kernel, var)  # which says what there is, if not this
    present = [var for var in loop_names(kernel) if var in loops]
    for outer, inner in pairwise(present):
        nested(kernel, outer, inner)
    return present


def tile(kernel: Kernel, outer: str, inner: str, rows: int, columns: int) -> Kernel:
    """`for i: for j: S`  ->  `for i_o: for j_o: for i in 0..rows: for j in 0..columns: S`"""
    nested(kernel, outer, inner)
    names = free_name(kernel, f"{outer}_o")
    kernel = split(kernel, outer, rows)
    blocks = free_name(kernel, f"{inner}_o")
    kernel = split(kernel, inner, columns)
    return reorder(kernel, names, blocks, outer, inner)


def peel(kernel: Kernel, loop: str, count: int = 1) -> Kernel:
    """`for i in 0..n: S(i)`  ->  `for i in 0..n-c: S(i); for i_p in 0..c: S(n-c+i_p)`

    Inner loops that are cut only in the last iterations have constant extents after it.
    """
    n = constant_extent(find(kernel, loop))
    if not 0 < count < n:
        raise ScheduleError(f"{loop} has {n} iterations: peel between 1 and {n - 1} of them")
    return _peeled(kernel, loop, n - count, count)


def peel_rest(kernel: Kernel, loop: str, by: int) -> Kernel:
    """`for i in 0..n: S(i)`
    ->  `for i in 0..b*⌊n/b⌋: S(i); for i_p in 0..n-b*⌊n/b⌋: S(b*⌊n/b⌋+i_p)`

    What is left when blocks of b are filled gets a loop of its own, however many iterations there
    are: the number may differ from call to call.
    """
    n = constant_extent(find(kernel, loop))
    if by < 2:
        raise ScheduleError(f"blocks of {loop} are of 2 iterations or more, not {by}")
    whole = n // by * by
    if not isinstance(n, Size) and whole in (0, n):
        raise ScheduleError(f"{loop} has {n} iterations: blocks of {by} leave none or all of them")
    return _peeled(kernel, loop, whole, n - whole)


def _peeled(kernel: Kernel, loop: str, first: int, count: int) -> Kernel:
    """The first iterations of a loop, and the others under another name."""
    found = find(kernel, loop)
    name = free_name(kernel, f"{loop}_p")
    place = index_add(loop_var(name), affine(first))
    beyond = replace(found, var=name, extent=affine(count), body=())
    last = renamed(kernel, substitute(found.body, {loop: place}), (beyond,))
    body = found.body
    if not isinstance(first, Size):
        last, body = settled(last, name, 0, count - 1), settled(body, loop, 0, first - 1)
    parts = (
        replace(found, extent=affine(first), body=body),
        replace(beyond, body=last),
    )
    return splice(kernel, found, parts)


def distribute(kernel: Kernel, loop: str) -> Kernel:
    """`for i: (alloc s[]; A; B)`  ->  `alloc s[n]; for i: A; for i_2: B`

    Each statement of the loop gets a loop of its own, but for a value that is bound, which stays
    with what follows it; what was kept for one iteration is kept for all.  Legal where the
    iterations do not depend on each other.
    """
    found = find(kernel, loop)
    parts = _parts(found.body)
    if len(parts) < 2:
        several = [
            s.var for s in walk(kernel.stages) if isinstance(s, For) and len(_parts(s.body)) > 1
        ]
        raise ScheduleError(
            f"{loop} has a single statement: there is nothing to distribute",
            hint=f"loops with several are {', '.join(several)}" if several else "",
        )
    if why := conflict(found):
        raise why
    n = _upper(found)
    grown = {s.buffer: _grown(s.buffer, n) for s in found.body if isinstance(s, Alloc)}
    for buffer in grown.values():
        on_stack(buffer, f"for all iterations of {loop}")
    pieces: list[Stmt] = [Alloc(b) for b in grown.values()]
    taken = kernel
    for part in parts:
        name = loop if len(pieces) == len(grown) else free_name(taken, loop)
        moved = substitute(part, {loop: loop_var(name)}) if name != loop else part
        moved = reshaped(moved, {b: (g, loop_var(name)) for b, g in grown.items()})
        pieces.append(replace(found, var=name, body=moved))
        taken = replace(taken, stages=(*taken.stages, pieces[-1]))
    return splice(kernel, found, tuple(pieces))


def _parts(body: tuple[Stmt, ...]) -> list[tuple[Stmt, ...]]:
    """The statements that can be in loops of their own; from a bound value on, all together."""
    stmts = [s for s in body if not isinstance(s, Alloc)]
    first = next((k for k, s in enumerate(stmts) if isinstance(s, Let)), len(stmts))
    parts: list[tuple[Stmt, ...]] = [(s,) for s in stmts[:first]]
    if stmts[first:]:
        parts.append(tuple(stmts[first:]))
    return parts


def _upper(found: For) -> int:
    """The most iterations a loop can have; an error where that is not known."""
    if (most := upper(found.extent)) is None:
        raise ScheduleError(f"the extent of {found.var} is not a constant")
    return most


def _grown(buffer: Buffer, n: int) -> Buffer:
    """A buffer with one element (or row) per iteration of a loop."""
    shape = (n, *buffer.shape)
    return replace(buffer, shape=shape, strides=contiguous_strides(shape))
