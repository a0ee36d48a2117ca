"""Checks a graph: every node's type is what its operator infers, and nothing unknown is reached."""

from __future__ import annotations

from nbcomp.errors import VerifyError
from nbcomp.graph.control import Control
from nbcomp.graph.ir import Graph
from nbcomp.graph.op import Input


def verify(graph: Graph) -> Graph:
    """The graph itself, if it is well formed.  Raises VerifyError with the line marked."""
    inputs = set(graph.inputs)
    for node in graph.nodes:
        if isinstance(node.op, Input):
            if node not in inputs:
                raise VerifyError(f"graph {graph.name} reads an input that is not among its inputs")
            continue
        for _, block in node.op.blocks() if isinstance(node.op, Control) else ():
            if isinstance(block, Graph):
                verify(block)
        inferred = node.op.infer(*(n.type for n in node.inputs))
        if inferred != node.type:
            raise VerifyError(
                f"graph {graph.name}: {node.op.name} has type {node.type}, should be {inferred}"
                f"\n{graph}",
                node.location,
            )
    return graph
