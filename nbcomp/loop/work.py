"""What a kernel must do, counted in its loops: operations, and bytes that move at least once.

To be asked of a kernel as it was lowered, before a schedule cut its loops.  `cost` estimates what
the machine code will take; this counts what the program needs however it is run, the numbers of the
roofline model.  Knows loops; it must not know any machine.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from nbcomp.loop.bfloat16 import bits_in
from nbcomp.loop.cost import ELEMENTARY, INSTRUCTIONS, extent_of
from nbcomp.loop.grammar import (
    Accumulate,
    Affine,
    Apply,
    Buffer,
    Call,
    Const,
    Expr,
    For,
    Kernel,
    Let,
    Load,
    Select,
    Stmt,
    Store,
    Var,
    bodies,
    children,
    expressions,
    walk_expr,
)
from nbcomp.record import Location

Access = tuple[object, ...]  # what tells one place of reading from another


@dataclass
class Work:
    """What a kernel does: all in all, not per iteration.

    operations: by the bytes of an element, because that decides how many a vector holds.  Counted
    are +, −, ×, ÷, √, minimum, maximum, comparisons, logic and the like as 1, a multiply-add of a
    matrix product as 2, an elementary function as the instructions of its vector code.  Converting,
    selecting and computing indices is no operation.  read, written: bytes of each memory, every
    element once.  places: (instructions, bytes) that each span of the user's source asks for.
    """

    operations: Counter[int] = field(default_factory=Counter)
    read: Counter[str] = field(default_factory=Counter)
    written: Counter[str] = field(default_factory=Counter)
    places: dict[Location | None, tuple[float, float]] = field(default_factory=dict)


def work_of(kernel: Kernel) -> Work:
    """All that a kernel does."""
    return _Counter(kernel).run()


class _Counter:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.work = kernel, Work()
        self.extents: dict[str, int] = {}  # of the loops around, by variable
        self.bound: dict[str, set[str]] = {}  # the loop variables a bound value depends on
        self.accesses: dict[bool, dict[str, dict[Access, float]]] = {False: {}, True: {}}
        self.whole: dict[str, float] = {}  # bytes of each memory
        self.place: Location | None = kernel.location

    def run(self) -> Work:
        for stage in self.kernel.stages:
            self.statement(stage, 1.0)
        for writing, total in ((False, self.work.read), (True, self.work.written)):
            for memory, places in self.accesses[writing].items():
                total[memory] = round(min(sum(places.values()), self.whole[memory]))
        return self.work

    def statement(self, stmt: Stmt, times: float) -> None:
        """Count a statement that runs so many times."""
        self.place = getattr(stmt, "location", None) or self.kernel.location
        if isinstance(stmt, For):
            self.extents[stmt.var] = extent_of(stmt)
            times *= self.extents[stmt.var]
        elif isinstance(stmt, Call):
            self.product(stmt, times)
        else:
            self.values(stmt, times)
        if isinstance(stmt, Let):
            self.bound[stmt.name] = self.variables((stmt.value,))
        for body in bodies(stmt):
            for inner in body:
                self.statement(inner, times)
        if isinstance(stmt, For):
            del self.extents[stmt.var]

    def values(self, stmt: Stmt, times: float) -> None:
        """What a statement computes, reads and stores itself."""
        roots = expressions(stmt)
        if isinstance(stmt, Store | Accumulate):
            roots = (stmt.value, *(i for i in stmt.indices if not isinstance(i, Affine)))
            self.access(stmt.buffer, stmt.indices, writing=True)
            moved = 0 if stmt.buffer.role == "local" else stmt.buffer.dtype.itemsize
            self.charge(self.place, times, times * moved)
        if isinstance(stmt, Accumulate):
            self.work.operations[stmt.buffer.dtype.itemsize] += round(times)
            if stmt.buffer.role != "local":
                self.access(stmt.buffer, stmt.indices, writing=False)
        for e in _shared_once(roots):
            self.expression(e, times)

    def expression(self, e: Expr, times: float) -> None:
        """One node of an expression."""
        place = getattr(e, "location", None) or self.place
        if isinstance(e, Apply):
            each = INSTRUCTIONS[e.fn] if e.fn in ELEMENTARY else 1
            self.work.operations[e.args[0].dtype.itemsize] += round(each * times)
            self.charge(place, INSTRUCTIONS.get(e.fn, 1) * times, 0.0)
        elif isinstance(e, Load):
            self.access(e.buffer, e.indices, writing=False)
            moved = 0 if e.buffer.role == "local" else e.dtype.itemsize
            self.charge(place, times, times * moved)
        elif isinstance(e, Select):
            self.charge(place, times, 0.0)

    def product(self, call: Call, times: float) -> None:
        """A matrix product: m·n·k multiply-adds."""
        out, left, _ = call.buffers
        terms = times * math.prod(out.shape[-2:]) * left.shape[-1]
        self.work.operations[out.dtype.itemsize] += round(2 * terms)
        # Two multiply-adds a cycle, as `cost` has it.
        self.charge(self.place, 0.25 * terms, times * sum(b.nbytes for b in call.buffers))
        for position, (buffer, at) in enumerate(zip(call.buffers, call.at, strict=True)):
            variables = self.variables(at)
            part = math.prod(buffer.shape[len(at) :]) * buffer.dtype.itemsize
            self.note(buffer, at, variables, part, writing=position == 0)

    def access(self, buffer: Buffer, indices: tuple[Expr, ...], writing: bool) -> None:
        """One element, at every iteration of the loops around."""
        self.note(buffer, indices, self.variables(indices), buffer.dtype.itemsize, writing)

    def note(
        self,
        buffer: Buffer,
        indices: tuple[Expr, ...],
        variables: set[str],
        part: float,
        writing: bool,
    ) -> None:
        """Memory that is touched: as many different parts as the index takes values."""
        if buffer.role == "local":
            return
        known = self.whole.get(buffer.memory, 0.0)
        self.whole[buffer.memory] = max(known, unique_bytes(buffer))
        touched = part * math.prod(self.extents[v] for v in variables)
        places = self.accesses[writing].setdefault(buffer.memory, {})
        key = (buffer.shape, *map(_key, indices))
        places[key] = max(places.get(key, 0.0), touched)

    def variables(self, roots: tuple[Expr, ...]) -> set[str]:
        """The loop variables around that expressions depend on."""
        found: set[str] = set()
        for e in _shared_once(roots, indices=True):
            if isinstance(e, Affine):
                found.update(v for v, _ in e.terms)
            elif isinstance(e, Var):
                found |= self.bound.get(e.name, set())
        return {v for v in found if v in self.extents}

    def charge(self, place: Location | None, instructions: float, moved: float) -> None:
        """Put work on a span of the source."""
        before = self.work.places.get(place, (0.0, 0.0))
        self.work.places[place] = before[0] + instructions, before[1] + moved


def unique_bytes(buffer: Buffer) -> int:
    """Bytes of a buffer's different elements: an axis of stride 0 shows the same ones again."""
    shape = (n for n, stride in zip(buffer.shape, buffer.strides, strict=True) if stride)
    return math.prod(shape) * buffer.dtype.itemsize


def _key(index: Expr) -> object:
    return (index.terms, index.constant) if isinstance(index, Affine) else id(index)


def _shared_once(roots: tuple[Expr, ...], indices: bool = False) -> Iterator[Expr]:
    """Every node of some expressions once; what computes an index only with `indices`."""
    if indices:
        for root in roots:
            yield from walk_expr(root)
        return
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        e = stack.pop()
        e = bits_in(e) or e  # bfloat16 is converted
        if id(e) in seen or isinstance(e, Affine | Const):
            continue
        seen.add(id(e))
        yield e
        if isinstance(e, Load):  # a gathered index is read; arithmetic on it is no operation
            stack += (x for i in e.indices for x in walk_expr(i) if isinstance(x, Load))
        else:
            stack.extend(children(e))
