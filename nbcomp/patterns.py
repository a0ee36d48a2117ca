"""Rewriting by patterns that are functions: find what one computes in a graph, and put what another
computes in its place.  Knows graph modules; how a function is found is `function_pattern`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nbcomp.errors import NbcompError
from nbcomp.function_pattern import FunctionPattern, Types, graph_of, parameters
from nbcomp.graph.ir import Graph, Node
from nbcomp.graph.match import Match, substitute
from nbcomp.graph_module import GraphModule
from nbcomp.types import TensorType


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
    if len(parameters(pattern)) != len(parameters(replacement)):
        raise NbcompError("pattern and replacement take the same arguments")
    graph = module.graph.to_graph()
    wanted = FunctionPattern(pattern, None if types is None else tuple(types))
    wanted.prepare(graph)
    made: dict[Types, Graph] = {}

    def find(node: Node) -> tuple[Match, Graph] | None:
        found = wanted.find(node)
        if found is None:
            return None
        if found[1] not in made:
            made[found[1]] = graph_of(replacement, found[1])
        return found[0], made[found[1]]

    changed, matches = substitute(graph, find)
    if matches:
        module.rewritten(changed)
    return matches
