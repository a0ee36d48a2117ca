"""How the iterations of a loop run: in lanes, on cores, written out, one after another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nbcomp.errors import ScheduleError
from nbcomp.loop.dependence import conflict, parting
from nbcomp.loop.grammar import Affine, Call, For, Kernel, Stmt, bodies, walk
from nbcomp.schedule.rewriting import at, constant_extent, find, loops_around
from nbcomp.sizes import Size

HOW = {"vector": "is a vector loop", "parallel": "is spread over the cores"}
HOW |= {"unroll": "is written out", "instruction": "is an instruction"}
NOTE = 80  # characters of a note on a loop
FLIGHT = 64  # vectors at a time: more than there are registers
COPIES = 4096  # of statements that are written out: more take LLVM minutes


def vectorize(kernel: Kernel, loop: str, unroll: int = 1, lanes: int = 0) -> Kernel:
    """`for i in 0..n: S(i)`  ->  `for i in 0..n vector unroll u: S(i)`

    lanes: how many iterations a vector has at most, a power of two; 0: what the machine's can hold.
    """

    def change(found: For) -> Stmt:
        inner = [s.var for s in walk(found.body) if isinstance(s, For) and s.kind == "vector"]
        if inner:
            raise ScheduleError(f"loop {inner[0]} inside {loop} is a vector loop already")
        for around in loops_around(kernel.stages, found):
            if around.kind == "vector":
                raise ScheduleError(f"loop {around.var} around {loop} is a vector loop already")
        _undecided(found, "vector")
        if found.kind == "vector" and (found.unroll, found.lanes) == (unroll, lanes):
            raise ScheduleError(f"{loop} {HOW['vector']} already")
        if any(isinstance(s, Call) for s in walk(found.body)):
            raise ScheduleError(f"a library routine is called inside {loop}")
        _in_flight(loop, unroll)
        if lanes and (lanes < 2 or lanes & (lanes - 1)):
            raise ScheduleError(f"{loop} cannot have {lanes} lanes: they are 2, 4, 8 and so on")
        if why := conflict(found):
            raise why
        if what := parting(found):
            raise ScheduleError(f"{what} inside {loop} is not the same for all lanes")
        return replace(found, kind="vector", unroll=unroll, lanes=lanes)

    return at(kernel, loop, change)


def interleave(kernel: Kernel, loop: str, count: int) -> Kernel:
    """`for i in 0..n vector: S(i)`  ->  `for i in 0..n vector unroll u: S(i)`, u at a time"""

    def change(found: For) -> Stmt:
        if found.kind != "vector":
            raise ScheduleError(f"{loop} is not a vector loop", hint=f'vectorize("{loop}") before')
        _in_flight(loop, count)
        return replace(found, unroll=count)

    return at(kernel, loop, change)


def _undecided(found: For, kind: str) -> None:
    """Raise ScheduleError for a loop of which another step has said how it runs."""
    if found.kind not in ("serial", kind):
        raise ScheduleError(
            f"{found.var} {HOW[found.kind]} already",
            hint=f"split {found.var} before, and let one of the two loops be so",
        )


def _in_flight(loop: str, count: int) -> None:
    """Raise ScheduleError for a number of vectors that a loop cannot have at a time."""
    if not 1 <= count <= FLIGHT:
        raise ScheduleError(f"{loop} cannot run {count} vectors at a time: 1 to {FLIGHT}")


def parallelize(kernel: Kernel, loop: str) -> Kernel:
    """`for i in 0..n: S(i)`  ->  `for i in 0..n parallel: S(i)`, for an outermost loop

    Also for one that is all an outermost loop does, if it has as many iterations in every call:
    then each of its rounds is spread over the cores, when the one before is over.
    """
    outermost = {f[-1].var: f for s in kernel.stages for f in _outermost(s)}
    if loop not in outermost:
        find(kernel, loop)  # which says what there is, if not this
        raise ScheduleError(
            f"{loop} is not an outermost loop: only those are spread over the cores",
            hint=f"the outermost loops are {', '.join(outermost) or 'none'}",
        )
    found = outermost[loop]
    _undecided(found[-1], "parallel")
    if not all(map(_known, found)) or (len(found) > 1 and _open(found[-1])):
        raise ScheduleError(f"the extent of {loop} is not known before it starts")
    if why := conflict(found[-1], sums=False):
        raise why
    return at(kernel, loop, lambda found: replace(found, kind="parallel"))


def _known(loop: For) -> bool:
    """Whether the extent of a loop is known before it starts."""
    return isinstance(loop.extent, Affine) and not loop.extent.terms


def _open(loop: For) -> bool:
    """Whether the extent of a loop differs from call to call."""
    return isinstance(loop.extent, Affine) and isinstance(loop.extent.constant, Size)


def _outermost(stage: Stmt) -> Iterator[tuple[For, ...]]:
    """The loop that is a stage, and it with the loop that is all it does."""
    if isinstance(stage, For):
        yield (stage,)
        if len(stage.body) == 1 and isinstance(stage.body[0], For) and stage.kind == "serial":
            yield (stage, stage.body[0])


def annotate(kernel: Kernel, loop: str, note: str) -> Kernel:
    """`for i in 0..n: S(i)`  ->  `for i in 0..n:  // note`, `S(i)`

    Writes a line on a loop, for those who read it; the loop runs as it did.
    """
    if not note.strip() or not note.isprintable() or len(note) > NOTE:
        raise ScheduleError(f"a note on {loop} is one line of 1 to {NOTE} printable characters")
    return at(kernel, loop, lambda found: replace(found, note=note))


def unroll(kernel: Kernel, loop: str) -> Kernel:
    """`for i in 0..2: S(i)`  ->  `S(0); S(1)`, when code is generated"""

    def change(found: For) -> Stmt:
        _undecided(found, "unroll")
        extent = constant_extent(found)
        if isinstance(extent, Size):
            raise ScheduleError(
                f"the extent of {loop} differs from call to call: it cannot be written out",
                hint=f'peel_rest("{loop}", 4), split("{loop}", 4), and unroll the inner loop',
            )
        copies = extent * _copies(found.body)
        for around in loops_around(kernel.stages, found):
            copies *= constant_extent(around) if around.kind == "unroll" else 1
        if copies > COPIES:
            raise ScheduleError(
                f"{loop} and the loops written out with it make {copies:,} copies, more than"
                f" {COPIES:,}",
                hint=f"split {loop}, and unroll the inner loop",
            )
        return replace(found, kind="unroll")

    return at(kernel, loop, change)


def _copies(body: tuple[Stmt, ...]) -> int:
    """How often the statement of a body is written that is written most often."""
    most = 1
    for stmt in body:
        copies = max(map(_copies, bodies(stmt)), default=1)
        if isinstance(stmt, For) and stmt.kind == "unroll":
            copies *= constant_extent(stmt)
        most = max(most, copies)
    return most
