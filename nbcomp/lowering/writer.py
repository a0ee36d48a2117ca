"""Writes loop nests: statements into the innermost loop, shared values as far out as they can go.

A value is bound (`Let`) in the deepest loop whose variable it depends on, so loop-invariant code is
outside its loops from the start and everyone can see that in the printed kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from nbcomp.loop.grammar import (
    Affine,
    Alloc,
    Buffer,
    Expr,
    For,
    If,
    Let,
    Load,
    Stmt,
    Var,
    affine,
    loop_var,
    variables,
    walk_expr,
)
from nbcomp.record import Location, joined
from nbcomp.sizes import is_one


@dataclass
class _Frame:
    """A body being written, the names it binds, and the values already computed in it."""

    stmts: list[Stmt] = field(default_factory=list)
    memo: dict[object, Expr] = field(default_factory=dict)


class Writer:
    """One kernel's statements."""

    def __init__(self) -> None:
        self.frames = [_Frame()]
        self.depth: dict[str, int] = {}  # name -> index of the frame that binds it
        self.names: dict[str, int] = {}
        self.floor = 0  # of the frames: no value goes further out
        self.complete: set[str] = set()  # memory that earlier stages wrote and no later one does

    def fresh(self, base: str) -> str:
        """A name nobody has used in this kernel."""
        self.names[base] = self.names.get(base, 0) + 1
        return base if self.names[base] == 1 else f"{base}_{self.names[base]}"

    def add(self, stmt: Stmt) -> None:
        """Append a statement to the innermost body."""
        self.frames[-1].stmts.append(stmt)

    def alloc(self, buffer: Buffer) -> Buffer:
        """A local buffer in the innermost body."""
        self.add(Alloc(buffer))
        return buffer

    def bind(self, name: str, value: Expr, location: Location | None) -> Var:
        """Name a value, as far out as it can be computed."""
        level = self.level(value)
        unique = self.fresh(name)
        self.frames[level].stmts.append(Let(unique, value, location))
        self.depth[unique] = level
        return Var(value.dtype, unique)

    def level(self, value: Expr) -> int:
        """The frame a value belongs to: the deepest one that binds something it reads.

        What is read from memory that is still being written stays where it is.
        """
        for e in walk_expr(value):
            if isinstance(e, Load) and not self.settled(e.buffer):
                return len(self.frames) - 1
        return max((self.floor, *(self.depth[v] for v in variables(value))))

    def settled(self, buffer: Buffer) -> bool:
        """Whether what is read from a buffer is the same everywhere."""
        return buffer.role == "input" or buffer.memory in self.complete

    def remember(self, key: object, value: Expr) -> Expr:
        """Keep a value for the rest of the body it belongs to."""
        self.frames[self.level(value)].memo[key] = value
        return value

    def recall(self, key: object) -> Expr | None:
        """A value computed before that is still in scope."""
        for frame in reversed(self.frames):
            if key in frame.memo:
                return frame.memo[key]
        return None

    @contextmanager
    def loop(
        self, base: str, extent: int | Expr, location: Location | None = None
    ) -> Iterator[Affine]:
        """A serial loop; yields its index.  A loop of one iteration is not written at all.

        It belongs to what is computed in it, or else to `location`.
        """
        if not isinstance(extent, Expr) and is_one(extent):
            yield affine(0)
            return
        var = self.fresh(base)
        self.depth[var] = len(self.frames)
        self.frames.append(_Frame())
        yield loop_var(var)
        frame = self.frames.pop()
        size = extent if isinstance(extent, Expr) else affine(extent)
        inside = joined(dict.fromkeys(getattr(s, "location", None) for s in frame.stmts))
        self.add(For(var, size, tuple(frame.stmts), location=inside or location))

    @contextmanager
    def loops(
        self, bases: Sequence[str], extents: Sequence[int | Expr], location: Location | None = None
    ) -> Iterator[tuple[Affine, ...]]:
        """A nest of serial loops; yields all indices."""
        if not extents:
            yield ()
            return
        with (
            self.loop(bases[0], extents[0], location) as first,
            self.loops(bases[1:], extents[1:], location) as rest,
        ):
            yield (first, *rest)

    @contextmanager
    def when(self, condition: Expr) -> Iterator[None]:
        """What is written where a condition holds."""
        self.frames.append(_Frame())
        yield
        stmts = self.frames.pop().stmts
        location = joined(dict.fromkeys(getattr(s, "location", None) for s in stmts))
        self.add(If(condition, tuple(stmts), (), location))

    def stage(self) -> tuple[Stmt, ...]:
        """Take what was written so far; values are not shared with the next stage."""
        assert len(self.frames) == 1
        frame, self.frames = self.frames[0], [_Frame()]
        return tuple(frame.stmts)
