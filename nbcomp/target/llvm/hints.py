"""What LLVM is told of loops that come as they were written: what not to try, since it cannot help.

LLVM writes out a few rounds of a loop and makes vectors of them behind checks at run time, which
doubles the code it then has to work on.  The first pays in innermost loops that are gone through
again and again, the second where the check does not fail each time.  A hint changes no answer.
Knows the loop IR; nothing of how a loop becomes code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nbcomp.loop.grammar import (
    Affine,
    Expr,
    For,
    Let,
    Load,
    Stmt,
    Store,
    While,
    exprs_of,
    variables,
    walk,
)
from nbcomp.sizes import Size

AS_IT_IS = '!{!"llvm.loop.unroll.runtime.disable"}'  # not some rounds of it at a time
ONE_BY_ONE = '!{!"llvm.loop.vectorize.enable", i1 false}'
FIRST = 1_000_000  # of the numbers of metadata; a stage has as many as STAGE
STAGE = 10_000
FEW = 16  # rounds of a loop that is written out


def hints(loop: For | While, around: Sequence[For]) -> tuple[str, ...]:
    """The properties of a loop within others, outermost first; as LLVM spells them."""
    inside = [s for s in walk(loop.body) if isinstance(s, For | While)]
    if isinstance(loop, While) or not all(map(_short, inside)):
        return (AS_IT_IS,)
    if inside:  # which is written out, and is then the body of the innermost loop
        return ()
    found = [] if around else [AS_IT_IS]
    return (*found, ONE_BY_ONE) if _waits(loop, around) else tuple(found)


def metadata(number: int, properties: Sequence[str]) -> dict[str, str]:
    """The definitions of a loop's metadata node of this number, by their names."""
    names = {AS_IT_IS: f"!{FIRST}", ONE_BY_ONE: f"!{FIRST + 1}"}
    lines = {names[p]: f"{names[p]} = {p}" for p in properties}
    parts = ", ".join([f"!{number}", *lines])
    return {**lines, f"!{number}": f"!{number} = distinct !{{{parts}}}"}


def _short(loop: For | While) -> bool:
    """Whether a loop has a few rounds, as many each time, which LLVM writes out."""
    if not isinstance(loop, For) or not isinstance(loop.extent, Affine) or loop.extent.terms:
        return False
    rounds = loop.extent.constant
    return not isinstance(rounds, Size) and rounds <= FEW


def _waits(loop: For, around: Sequence[For]) -> bool:
    """Whether a round surely reads what an earlier one wrote to an array."""
    own = {loop.var, *(s.name for s in walk(loop.body) if isinstance(s, Let))}
    read: list[Load] = []
    for stmt in walk(loop.body):
        read += _array_loads(stmt)
        if isinstance(stmt, Store) and stmt.indices:
            for load in read:
                if load.buffer.memory == stmt.buffer.memory and (
                    _one_place(load, stmt, own) or _in_its_way(load, stmt, loop, around, own)
                ):
                    return True
    return False


def _array_loads(stmt: Stmt) -> Iterator[Load]:
    return (e for e in exprs_of(stmt) if isinstance(e, Load) and e.indices)


def _one_place(load: Load, store: Store, own: set[str]) -> bool:
    """Whether each round reads and then writes the same float (sums of whole numbers have no
    order, and LLVM keeps them in vectors)."""
    still = all(not variables(i) & own for i in load.indices)
    return still and load.dtype.kind == "f" and all(map(_same, load.indices, store.indices))


def _in_its_way(load: Load, store: Store, loop: For, around: Sequence[For], own: set[str]) -> bool:
    """Whether one of the elements that the loop writes is one that all rounds read: at the place of
    a loop around it that goes as far."""
    far = [f.var for f in around if _same_extent(f, loop)]
    met = 0
    for read, written in zip(load.indices, store.indices, strict=True):
        if variables(read) & own:
            return False
        if _same(read, written):
            continue
        if not (_moves(written, [loop.var]) and _moves(read, far) and _start(read, written)):
            return False
        met += 1
    return met == 1


def _moves(index: Expr, names: Sequence[str]) -> bool:
    """Whether an index is one of these variables and a number."""
    if not isinstance(index, Affine) or len(index.terms) != 1:
        return False
    ((name, factor),) = index.terms
    return name in names and factor == 1


def _start(a: Expr, b: Expr) -> bool:
    return isinstance(a, Affine) and isinstance(b, Affine) and _equal(a.constant, b.constant)


def _same_extent(a: For, b: For) -> bool:
    return _same(a.extent, b.extent)


def _same(a: Expr, b: Expr) -> bool:
    """Whether two indices are written alike."""
    if not isinstance(a, Affine) or not isinstance(b, Affine):
        return False
    return a.terms == b.terms and _equal(a.constant, b.constant)


def _equal(a: int | Size, b: int | Size) -> bool:
    """Whether two numbers are one, without assuming anything of a length that is open."""
    if isinstance(a, Size) or isinstance(b, Size):
        return isinstance(a, Size) and isinstance(b, Size) and a.key == b.key
    return a == b
