"""A pattern that is written as a function, to be found in graphs.

A function becomes a graph only for types, which a pattern leaves open: it is first looked for as it
is for square arrays, by what its operators are, and where that fits, captured again for the types
found there and compared exactly.  Knows capture and graphs; not what becomes of what is found.
"""

from __future__ import annotations

import contextlib
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nbcomp.errors import NbcompError
from nbcomp.frontend.result import resolve
from nbcomp.frontend.trace import capture
from nbcomp.graph.ir import Graph, Node, rewrite
from nbcomp.graph.match import Match, kinds, match
from nbcomp.graph.op import Constant, Input
from nbcomp.returning import returned
from nbcomp.runtime.plan import Source
from nbcomp.types import TensorType

Types = tuple[TensorType, ...]
Pass = Callable[[Graph], Graph]

SIDE = 3  # of the square arrays a pattern is first looked for with


class FunctionPattern:
    """What a function of arrays computes, as graphs for the types that are met.

    types: those of the arguments, to look for these only.  passes: what has been done to the graph
    that is searched, and is done to the pattern as well.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        types: Types | None = None,
        passes: Sequence[Pass] = (),
    ) -> None:
        self.function, self.types, self.passes = function, types, passes
        self.rough: list[Graph] = []
        self._graphs: dict[Types, Graph | None] = {}

    def prepare(self, graph: Graph) -> None:
        """Capture the pattern for what may occur in a graph; raises what is wrong if it works for
        none."""
        names = parameters(self.function)
        guesses = [self.types] if self.types else _guesses(graph, len(names))
        found = [self._graph_for(types) for types in guesses]
        self.rough = [g for g in found if g is not None]
        if not self.rough:
            self.rough = [graph_of(self.function, guesses[0], self.passes)]
        for name, node in zip(names, self.rough[0].inputs, strict=True):
            if not self.rough[0].users[node]:
                raise NbcompError(f"the pattern computes nothing from its argument {name}")

    def find(self, node: Node) -> tuple[Match, Types] | None:
        """The match that ends at a node, and the types of what the arguments stand for."""
        for guess in self.rough:
            found = match(guess, node, exact=False)
            if found is None:
                continue
            types = tuple(found.bound[n].type for n in guess.inputs)
            exact = self._graph_for(types)
            again = match(exact, node) if exact is not None else None
            if again is not None and self.types in (None, types):
                return again, types
        return None

    def _graph_for(self, types: Types) -> Graph | None:
        """None where the pattern makes no sense of such arrays."""
        if types not in self._graphs:
            self._graphs[types] = None
            with contextlib.suppress(Exception):
                self._graphs[types] = graph_of(self.function, types, self.passes)
        return self._graphs[types]


def parameters(function: Callable[..., Any]) -> list[str]:
    """The names of a function's arguments."""
    return list(inspect.signature(function).parameters)


def _guesses(graph: Graph, count: int) -> list[Types]:
    """Square arrays of every rank and dtype that occur."""
    return [(TensorType(dtype, (SIDE,) * rank),) * count for rank, dtype in kinds(graph)]


def graph_of(function: Callable[..., Any], types: Types, passes: Sequence[Pass] = ()) -> Graph:
    """A function as a graph with one input per parameter and one output.

    Lengths that are open count as what they are now.
    """
    shapes = [tuple(map(operator.index, t.shape)) for t in types]
    examples = [np.zeros(s, t.dtype) for s, t in zip(shapes, types, strict=True)]
    captured = capture(function, examples, {})
    if captured.writes:
        raise NbcompError("a pattern writes to no argument")
    inputs = [
        Node(Input(k, TensorType(e.dtype, e.shape)), (), TensorType(e.dtype, e.shape))
        for k, e in enumerate(examples)
    ]
    stand_for: dict[Node, Node] = {}
    for node, guard in zip(captured.graph.inputs, captured.guards, strict=False):
        if guard.source.kind == "argument":
            stand_for[node] = inputs[int(guard.source.key)]
        else:
            value = np.asarray(resolve(guard.source, ()))
            stand_for[node] = Node(Constant(value), (), node.type)
    outputs = rewrite(captured.graph, lambda node, _: stand_for.get(node)).outputs
    places = {Source("argument", k): node for k, node in enumerate(inputs)}
    result = returned(captured.result, outputs, places)
    if result is None:
        raise NbcompError("pattern and replacement return one array")
    graph = Graph(captured.graph.name, tuple(inputs), (result,))
    for step in passes:
        graph = step(graph)
    return graph
