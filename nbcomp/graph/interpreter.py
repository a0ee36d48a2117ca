"""Runs a graph by each operator's NumPy reference: the meaning of the graph IR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nbcomp.graph.ir import Graph, Node
from nbcomp.graph.op import Input


def interpret(graph: Graph, arrays: Sequence[Any]) -> list[Any]:
    """The outputs, in order, for one array per input.  Floating-point warnings are silenced."""
    values = evaluate(graph, arrays)
    return [values[n] for n in graph.outputs]


def evaluate(graph: Graph, arrays: Sequence[Any]) -> dict[Node, Any]:
    """The value of every node."""
    values: dict[Node, Any] = {}
    position = {node: i for i, node in enumerate(graph.inputs)}
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            if isinstance(node.op, Input):
                values[node] = np.asarray(arrays[position[node]])
            else:
                result = node.op.reference(*(values[i] for i in node.inputs))
                values[node] = np.asarray(result)
    return values
