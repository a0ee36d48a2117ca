"""A graph of open lengths as that of some lengths: numbers in place of sizes, node by node.

Knows graphs and sizes.
"""

from __future__ import annotations

from dataclasses import replace

from nbcomp.graph.ir import Graph, Node
from nbcomp.settling import Lengths, numbers
from nbcomp.types import TensorType


def settled(graph: Graph, lengths: Lengths) -> Graph:
    """The graph for these lengths of its symbols."""
    new: dict[Node, Node] = {}
    for node in graph.nodes:
        new[node] = replace(
            node,
            op=numbers(node.op, lengths),
            inputs=tuple(new[i] for i in node.inputs),
            type=TensorType(node.type.dtype, numbers(node.type.shape, lengths)),
        )
    inputs, outputs = (tuple(new[n] for n in nodes) for nodes in (graph.inputs, graph.outputs))
    return Graph(graph.name, inputs, outputs)
