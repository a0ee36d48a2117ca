"""Operators with several results: control flow, and loops over elements.

A control node's own value is a tuple, which nothing computes with; `Result` nodes pick its parts.
The node and its results are one group of a fused graph.  `Loops` holds loops a user wrote over the
elements of arrays, as a kernel of the loop IR; it changes some of its operands, whose memory its
results take over.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from nbcomp.graph.op import Op
from nbcomp.loop.grammar import Failure, Kernel
from nbcomp.loop.interpreter import Exited, interpret
from nbcomp.sizes import Symbol, evaluated
from nbcomp.types import BOOL, TensorType

TOKEN = TensorType(BOOL, ())  # the type of a control node, of which only the results are used


@dataclass(frozen=True)
class Control(Op):
    """Several results at once."""

    def results(self) -> tuple[TensorType, ...]:
        """Their types, in order."""
        raise NotImplementedError(f"{type(self).__name__}.results")

    def blocks(self) -> Iterator[tuple[str, object]]:
        """What it owns, as it is printed: a title, and a graph or kernel."""
        return iter(())

    def infer(self, *types: TensorType) -> TensorType:
        return TOKEN


@dataclass(frozen=True)
class Result(Op, name="result"):
    """One of the results of a control node."""

    index: int = 0
    type: TensorType = TOKEN

    def infer(self, *types: TensorType) -> TensorType:
        return self.type

    def reference(self, *arrays: Any) -> Any:
        return arrays[0][self.index]


@dataclass(frozen=True, eq=False)
class Loops(Control, name="loops"):
    """Loops over elements, as they were written.

    kernel: its buffers are the operands in order, then new results.  updated: operands that the
    kernel writes to; their new contents are the first results.  in_place: the operands may be the
    caller's own arrays.
    """

    kernel: Kernel
    updated: tuple[int, ...] = ()
    in_place: bool = False

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def operands(self) -> int:
        """How many arrays it reads."""
        return sum(
            b.role == "input" or k in self.updated for k, b in enumerate(self.kernel.buffers)
        )

    def results(self) -> tuple[TensorType, ...]:
        buffers = self.kernel.buffers
        made = [*(buffers[k] for k in self.updated), *buffers[self.operands() :]]
        return tuple(TensorType(b.dtype, b.shape) for b in made)

    def blocks(self) -> Iterator[tuple[str, object]]:
        yield "do", self.kernel

    def reference(self, *arrays: Any) -> Any:
        """Raises what the loops raise."""
        buffers = self.kernel.buffers
        given = [np.array(a) if k in self.updated else a for k, a in enumerate(arrays)]
        given += [np.zeros(b.shape, b.dtype) for b in buffers[len(given) :]]
        try:
            interpret(self.kernel, {b.name: a for b, a in zip(buffers, given, strict=True)})
        except Exited as left:
            raise exception(left.failure, left.detail) from None
        return tuple([given[k] for k in self.updated] + given[len(arrays) :])


def exception(
    failure: Failure, detail: int = 0, lengths: Mapping[Symbol, int] = MappingProxyType({})
) -> Exception:
    """The exception of Python's that ended a kernel, with the user's line as a note; lengths: those
    that are open."""
    message = failure.message.format(detail, size=evaluated(failure.size, lengths))
    error: Exception = getattr(builtins, failure.kind)(message)
    if not failure.message:
        error = getattr(builtins, failure.kind)()
    if failure.location is not None:
        error.add_note(failure.location.excerpt())
    return error
