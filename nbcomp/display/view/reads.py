"""What the display reads of a compilation: protocols of `Compiled` and its kernels, and `Fallback`.

Knows the IRs by their types; it must not know how a compilation comes about.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Protocol

from nbcomp.graph.ir import Graph
from nbcomp.graph.passes.groups import Group
from nbcomp.loop.grammar import Kernel
from nbcomp.options import Options
from nbcomp.origin import Listing
from nbcomp.record import Location, Remark, Trace


class Code(Protocol):
    """A kernel's machine code; bulk: characters of what it was made from."""

    @property
    def bulk(self) -> int: ...
    def listing(self, level: str) -> Listing: ...
    def begin(self, worker: Executor) -> None: ...


class CompiledKernel(Protocol):
    """One kernel of a compiled function, with its text at each level."""

    @property
    def name(self) -> str: ...
    @property
    def groups(self) -> Sequence[Group]: ...
    @property
    def kernel(self) -> Kernel: ...
    @property
    def code(self) -> Code: ...
    def listing(self, level: str) -> Listing: ...


class Compiled(Protocol):
    """What the display reads of a compiled function."""

    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def location(self) -> Location | None: ...
    @property
    def captured(self) -> Graph: ...
    @property
    def graph(self) -> Graph: ...
    @property
    def groups(self) -> Sequence[Group]: ...
    @property
    def kernels(self) -> Sequence[CompiledKernel]: ...
    @property
    def trace(self) -> Trace: ...
    @property
    def stale(self) -> tuple[str, ...]: ...
    @property
    def constant(self) -> bool: ...
    @property
    def lengths(self) -> tuple[str, ...]: ...
    @property
    def compile_seconds(self) -> float: ...
    @property
    def cold(self) -> bool: ...
    @property
    def threads(self) -> int: ...
    @property
    def target(self) -> object: ...
    @property
    def options(self) -> Options: ...
    def text(self, level: Any) -> str: ...
    def explain(self) -> list[Remark]: ...


@dataclass(frozen=True)
class Fallback:
    """A function that is not compiled as a whole: NumPy runs it, or parts of it are compiled, and
    Python goes on between them.

    reason, location, hint: why it is not.  source, defined: its text, and where it is.  breaks:
    where Python goes on.  parts: what is compiled between them, in the order of the program.
    """

    name: str
    reason: str
    location: Location | None = None
    hint: str = ""
    source: str = ""
    defined: Location | None = None
    breaks: tuple[Remark, ...] = ()
    parts: tuple[Compiled, ...] = ()
