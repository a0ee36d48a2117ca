"""What a target is: it takes a scheduled kernel, level by level, to something that runs.

Two targets keep the protocol honest: `llvm` makes machine code, `interpreted` runs the loops in
Python. Knows kernels and traces; nothing of graphs, and nothing of how a program is run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Protocol

from nbcomp.loop.grammar import Kernel
from nbcomp.machine import Machine
from nbcomp.origin import Listing
from nbcomp.record import Trace


@dataclass(frozen=True)
class Stage:
    """One callable piece of a compiled kernel.

    run: the address of `int64 f(void **buffers, const int64 *params, int64 begin, int64 end)`, or
    a Python function of one array per buffer, which it works on in place, returning (). buffers:
    positions in the kernel's buffers, in the order `run` takes them. A parallel stage may be called
    for any parts of 0..extent, at the same time; of one in rounds, for parts of a round, which is
    `round` iterations, one round after another.
    """

    name: str
    run: int | Callable[..., tuple[()]]
    buffers: tuple[int, ...]
    params: tuple[int, ...] = ()
    extent: int = 1
    parallel: bool = False
    round: int = 0


class Code(Protocol):
    """A compiled kernel: its stages in order, and its text at every level below the loops."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What to call, in order."""

    @property
    def known(self) -> bool:
        """Whether nothing had to be compiled."""

    @property
    def bulk(self) -> int:
        """Characters of the text it was generated as: what its other texts cost goes with that."""

    def text(self, level: str) -> str:
        """One of the target's levels as text; raises ValueError for another."""

    def listing(self, level: str) -> Listing:
        """The same for readers, each line with where it comes from."""

    def begin(self, worker: Executor) -> None:
        """Begin to make its texts in a thread of a worker's, since they will be asked for."""


class Target(Protocol):
    """A way to run kernels."""

    @property
    def name(self) -> str:
        """What users call it."""

    @property
    def levels(self) -> tuple[str, ...]:
        """The texts it has, in the order they are made."""

    @property
    def machine(self) -> Machine:
        """What kernels are scheduled for."""

    def describe(self) -> str:
        """The machine in a few words."""

    def compile(self, kernel: Kernel, trace: Trace) -> Code:
        """Code for a scheduled kernel; the seconds of each of its stages go to the trace."""

    def compile_all(
        self, kernels: Iterable[Kernel], trace: Trace, shown: Collection[str] = ()
    ) -> Sequence[Code]:
        """The same for several, in order; they may be asked for one by one.

        shown: the names of those whose texts will be asked for.
        """
