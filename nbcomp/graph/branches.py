"""Control flow between whole arrays: `If` and `While` own graphs, one of which is run.

The graphs of a node have its operands (but for the condition) as their inputs, in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbcomp.graph.control import Control
from nbcomp.graph.interpreter import interpret
from nbcomp.graph.ir import Graph
from nbcomp.types import TensorType


@dataclass(frozen=True, eq=False)
class If(Control, name="if"):
    """One of two graphs, by a bool: the operands are the condition, then what the graphs read."""

    then: Graph
    orelse: Graph

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def results(self) -> tuple[TensorType, ...]:
        return tuple(n.type for n in self.then.outputs)

    def blocks(self) -> Iterator[tuple[str, object]]:
        yield "then", self.then
        yield "else", self.orelse

    def reference(self, *arrays: Any) -> Any:
        condition, *operands = arrays
        return tuple(interpret(self.then if condition else self.orelse, operands))


@dataclass(frozen=True, eq=False)
class While(Control, name="while"):
    """A graph again and again while another gives True.

    The first operands are carried: `body` gives their next values, the results are their last.
    """

    test: Graph
    body: Graph

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def results(self) -> tuple[TensorType, ...]:
        return tuple(n.type for n in self.body.outputs)

    def blocks(self) -> Iterator[tuple[str, object]]:
        yield "while", self.test
        yield "do", self.body

    def reference(self, *arrays: Any) -> Any:
        def step(graph: Graph) -> Any:
            return lambda *given: tuple(interpret(graph, given))

        return repeat(step(self.test), step(self.body), len(self.body.outputs), arrays)


def repeat(test: Any, body: Any, carried: int, arrays: Any) -> Any:
    """The last values of what a loop carries.  test, body: functions of all operands."""
    state, rest = tuple(arrays[:carried]), tuple(arrays[carried:])
    while bool(np.asarray(_first(test(*state, *rest)))):
        result = body(*state, *rest)
        state = result if isinstance(result, tuple) else (result,)
    return state


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, tuple) else value
