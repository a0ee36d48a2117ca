"""The interpreted target: a kernel is run by the loop interpreter, statement by statement.

Slow, and the meaning the machine code is compared with: `compile(f, x, target="interpreted")`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

from nbcomp.loop.grammar import Kernel
from nbcomp.loop.interpreter import interpret
from nbcomp.loop.printer import print_kernel
from nbcomp.machine import Machine, host
from nbcomp.origin import Listing
from nbcomp.record import Trace
from nbcomp.target.base import Stage


@dataclass(frozen=True)
class InterpretedCode:
    """A kernel as it is; its one stage runs all of it."""

    kernel: Kernel
    stages: tuple[Stage, ...]
    known: bool = False

    @property
    def bulk(self) -> int:
        """It was made from nothing but the loops."""
        return 0

    def text(self, level: str) -> str:
        """The loops: there is nothing below them."""
        raise ValueError(f"no level {level!r}: the interpreted target ends with the loops")

    def listing(self, level: str) -> Listing:
        """The loops: there is nothing below them."""
        raise ValueError(f"no level {level!r}: the interpreted target ends with the loops")

    def begin(self, worker: Executor) -> None:
        """There are no texts to make."""

    def __str__(self) -> str:
        return print_kernel(self.kernel)


@dataclass(frozen=True)
class InterpretedTarget:
    """Runs kernels in Python."""

    name: str = "interpreted"
    levels: tuple[str, ...] = ()

    @property
    def machine(self) -> Machine:
        """This machine."""
        return host()

    def describe(self) -> str:
        """What runs the program."""
        return "Python, statement by statement"

    def compile(self, kernel: Kernel, trace: Trace) -> InterpretedCode:
        """The kernel as it is."""
        own = tuple(k for k, b in enumerate(kernel.buffers) if not b.alias)

        def run(*arrays: Any) -> tuple[()]:
            named = {kernel.buffers[k].name: a for k, a in zip(own, arrays, strict=True)}
            for buffer in kernel.buffers:
                if buffer.alias:
                    named[buffer.name] = named[buffer.alias].reshape(buffer.shape)
            interpret(kernel, named)
            return ()

        code = InterpretedCode(kernel, ())
        return replace(code, stages=(Stage(kernel.name, run, own),))

    def compile_all(
        self, kernels: Iterable[Kernel], trace: Trace, shown: Collection[str] = ()
    ) -> list[InterpretedCode]:
        """The kernels as they are."""
        return [self.compile(kernel, trace) for kernel in kernels]
