"""Patterns written as functions: find what one computes in a graph, and put what another computes
in its place.

A function becomes a graph only for types, which a pattern leaves open: it is first looked for as it
is for square arrays, by what its operators are, and where that fits, captured again for the types
found there and compared exactly.  Knows capture and graph modules.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nbcomp.errors import NbcompError
from nbcomp.frontend.result import resolve
from nbcomp.frontend.trace import capture
from nbcomp.graph.ir import Graph, Node, rewrite
from nbcomp.graph.match import Match, kinds, match, substitute
from nbcomp.graph.op import Constant, Input
from nbcomp.graph_module import GraphModule, returned
from nbcomp.runtime.plan import Source
from nbcomp.types import TensorType

Types = tuple[TensorType, ...]

SIDE = 3  # of the square arrays a pattern is first looked for with


def replace_pattern(
    module: GraphModule,
    pattern: Callable[..., Any],
    replacement: Callable[..., Any],
    types: Sequence[TensorType] | None = None,
) -> list[Match]:
    """Replace what one function computes by what another computes, wherever it occurs.

    Both take the same arguments, all of them arrays, and return one array.  A place counts when
    nothing outside reads what is computed within.  types: those of the arguments, to look for these
    only (and for patterns that make no sense of square arrays).  Gives the places; the module is
    recompiled.  Raises NbcompError where the replacement is of another type.
    """
    names = _parameters(pattern)
    if len(names) != len(_parameters(replacement)):
        raise NbcompError("pattern and replacement take the same arguments")
    graph = module.graph.to_graph()
    rule = _Rule(pattern, replacement, None if types is None else tuple(types))
    rule.prepare([rule.types] if rule.types else _guesses(graph, len(names)))
    changed, matches = substitute(graph, rule.find)
    if matches:
        module.rewritten(changed)
    return matches


class _Rule:
    """A pattern and its replacement, as graphs for the types that are met."""

    def __init__(
        self, pattern: Callable[..., Any], replacement: Callable[..., Any], types: Types | None
    ) -> None:
        self.pattern, self.replacement, self.types = pattern, replacement, types
        self.rough: list[Graph] = []
        self._patterns: dict[Types, Graph | None] = {}
        self._replacements: dict[Types, Graph] = {}

    def prepare(self, guesses: Sequence[Types]) -> None:
        """Capture the pattern for guessed types; raises what is wrong if it works for none."""
        found = [self._pattern_for(types) for types in guesses]
        self.rough = [graph for graph in found if graph is not None]
        if not self.rough:
            self.rough = [_graph(self.pattern, guesses[0])]
        for name, node in zip(_parameters(self.pattern), self.rough[0].inputs, strict=True):
            if not self.rough[0].users[node]:
                raise NbcompError(f"the pattern computes nothing from its argument {name}")

    def find(self, node: Node) -> tuple[Match, Graph] | None:
        """The match that ends at a node, with its replacement."""
        for guess in self.rough:
            found = match(guess, node, exact=False)
            if found is None:
                continue
            types = tuple(found.bound[n].type for n in guess.inputs)
            exact = self._pattern_for(types)
            again = match(exact, node) if exact is not None else None
            if again is not None and self.types in (None, types):
                return again, self._replacement_for(types)
        return None

    def _pattern_for(self, types: Types) -> Graph | None:
        """None where the pattern makes no sense of such arrays."""
        if types not in self._patterns:
            self._patterns[types] = None
            with contextlib.suppress(Exception):
                self._patterns[types] = _graph(self.pattern, types)
        return self._patterns[types]

    def _replacement_for(self, types: Types) -> Graph:
        if types not in self._replacements:
            self._replacements[types] = _graph(self.replacement, types)
        return self._replacements[types]


def _parameters(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


def _guesses(graph: Graph, count: int) -> list[Types]:
    """Square arrays of every rank and dtype that occur."""
    return [(TensorType(dtype, (SIDE,) * rank),) * count for rank, dtype in kinds(graph)]


def _graph(function: Callable[..., Any], types: Types) -> Graph:
    """A function as a graph with one input per parameter and one output."""
    captured = capture(function, [np.zeros(t.shape, t.dtype) for t in types], {})
    if captured.writes:
        raise NbcompError("a pattern writes to no argument")
    inputs = [Node(Input(k, t), (), t) for k, t in enumerate(types)]
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
    return Graph(captured.graph.name, tuple(inputs), (result,))
