"""The record of a compilation, plain data: where code came from, what was decided and done.

`Location` points at the user's source, `Remark` is one recorded decision, `Snapshot` one pass, and
`Trace` the whole record.  Diffs, timing bars and the explorer are functions of a `Trace`.
"""

from __future__ import annotations

import difflib
import linecache
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

Kind = Literal["applied", "missed", "analysis"]
Level = Literal["graph", "loop", "llvm", "asm"]


@dataclass(frozen=True)
class Location:
    """A span of the user's source: a file (or cell) name, 1-based lines and 0-based columns.

    also: other places whose value is the same one, computed once.
    """

    file: str
    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    function: str = ""
    also: tuple[Location, ...] = ()

    def every(self) -> tuple[Location, ...]:
        """All places it stands for, one by one."""
        return self._every if self.also else (self,)

    @cached_property
    def _every(self) -> tuple[Location, ...]:
        return (replace(self, also=()), *self.also)

    def source_line(self) -> str:
        """The text of the first line, without its break; empty when the source is not at hand."""
        return linecache.getline(self.file, self.line).rstrip("\n")

    def source(self) -> str:
        """The text of the span itself, on its first line."""
        text = self.source_line()
        end = self.end_column if self.end_line in (0, self.line) and self.end_column else len(text)
        # Columns of code objects count UTF-8 bytes.
        raw = text.encode()
        return raw[self.column : end].decode(errors="replace") if raw else ""

    def excerpt(self) -> str:
        """The line with a caret under the span, as Python's tracebacks show it."""
        text = self.source_line()
        if not text.strip():
            return f"line {self.line}" + (f", in {self.function}" if self.function else "")
        indent = len(text) - len(text.lstrip())
        start = len(text.encode()[: self.column].decode(errors="replace"))
        width = max(1, len(self.source().rstrip()))
        where = f"line {self.line}" + (f", in {self.function}" if self.function else "")
        return f"{where}\n    {text[indent:]}\n    {' ' * max(0, start - indent)}{'^' * width}"

    @cached_property
    def _lines(self) -> str:
        lines = sorted({place.line for place in self.every()})
        return f"line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}"

    def __str__(self) -> str:
        return self._lines


def joined(places: Iterable[Location | None]) -> Location | None:
    """One location that stands for all of these; None for none."""
    every = dict.fromkeys(p for place in places if place for p in place.every())
    if not every:
        return None
    first, *others = every
    return replace(first, also=tuple(others))


@dataclass(frozen=True)
class Remark:
    """One decision: what was done or not done, where, why, and the change that would help."""

    kind: Kind
    topic: str  # "fusion", "vectorize", "parallel", "library", "store", "copy", "numpy", ...
    reason: str
    location: Location | None = None
    hint: str = ""

    def __str__(self) -> str:
        where = f" ({self.location})" if self.location else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.topic}: {self.reason}{where}{hint}"


class Remarks(list[Remark]):
    """Remarks in order, printed a line each."""

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "nothing to remark"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


_heard: ContextVar[list[Remark] | None] = ContextVar("heard", default=None)


def remark(
    kind: Kind, topic: str, reason: str, location: Location | None = None, hint: str = ""
) -> None:
    """Say what was decided, where it is decided; the trace of the running compilation keeps it."""
    heard = _heard.get()
    if heard is not None:
        heard.append(Remark(kind, topic, reason, location, hint))


def overtaken(topics: Collection[str], location: Location | None) -> None:
    """Take back what was said about a place: a later decision made it untrue."""
    heard = _heard.get()
    if heard is not None:
        heard[:] = [r for r in heard if r.topic not in topics or r.location != location]


class Snapshot:
    """One pass: its name, what it says it does, the IR after it, its seconds and its remarks.

    `value` is the (immutable) IR itself, so that a snapshot can be run; its text is printed when
    somebody looks, so that compiling stays fast.
    """

    def __init__(
        self,
        name: str,
        level: Level,
        description: str,
        value: object,
        seconds: float,
        remarks: tuple[Remark, ...] = (),
        kernel: str = "",
    ) -> None:
        self.name, self.level, self.description = name, level, description
        self.value, self.seconds, self.remarks = value, seconds, remarks
        self.kernel = kernel  # the kernel's name, for levels below the graph

    @cached_property
    def text(self) -> str:
        """The IR as it is printed."""
        return str(self.value)


@dataclass(frozen=True)
class Shown:
    """Of how many kernels, the costliest, the texts below the loops will be shown, and how many
    characters of LLVM IR a kernel may have to be one of them."""

    kernels: int = 0
    characters: int = 0


NOTHING = Shown()
_looked_at: ContextVar[Shown] = ContextVar("looked_at", default=NOTHING)


@contextmanager
def looked_at(shown: Shown) -> Iterator[None]:
    """What is compiled inside will be shown: its texts are kept, not made when somebody asks."""
    token = _looked_at.set(shown)
    try:
        yield
    finally:
        _looked_at.reset(token)


@dataclass
class Trace:
    """Everything that happened in one compilation, in order."""

    snapshots: list[Snapshot] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)  # stage name -> seconds
    heard: list[Remark] = field(default_factory=list)  # what `remark` was called with
    shown: Shown = field(default_factory=_looked_at.get)

    @property
    def remarks(self) -> list[Remark]:
        """All remarks of all passes, in order, each once."""
        passes = [r for s in self.snapshots for r in s.remarks]
        return list(dict.fromkeys([*passes, *self.heard]))

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Keep every `remark` made inside."""
        token = _heard.set(self.heard)
        try:
            yield
        finally:
            _heard.reset(token)

    @contextmanager
    def reworded(self, words: Callable[[Remark], Remark]) -> Iterator[None]:
        """Put every `remark` made inside in other words."""
        before = set(map(id, self.heard))
        yield
        self.heard[:] = [r if id(r) in before else words(r) for r in self.heard]

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the seconds spent inside to `stage`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start

    def record(self, snapshot: Snapshot) -> None:
        """Append one pass."""
        self.snapshots.append(snapshot)

    def changed(self, kernels: Collection[str] | None = None) -> list[tuple[Snapshot, list[str]]]:
        """Each snapshot with its unified diff against the one before it on the same level.

        kernels: the names of those that are looked at; the diffs of others are left out, unless
        it is None.
        """
        last: dict[str, Snapshot] = {}
        result: list[tuple[Snapshot, list[str]]] = []
        for snapshot in self.snapshots:
            key = f"{snapshot.level} {snapshot.kernel}"
            before = last.get(key)
            # A pass that changes nothing returns what it was given, which need not be printed.
            skipped = kernels is not None and snapshot.kernel and snapshot.kernel not in kernels
            if skipped or before is None or before.value is snapshot.value:
                result.append((snapshot, []))
            else:
                result.append((snapshot, list(_difference(before.text, snapshot.text))))
            last[key] = snapshot
        return result


@lru_cache(maxsize=256)  # the layers of a network often have the same kernels
def _difference(before: str, after: str) -> tuple[str, ...]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
    return tuple(lines)[2:]
