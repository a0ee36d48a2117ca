"""Composite operators become the simpler ones they stand for."""

from __future__ import annotations

from dataclasses import replace

from nbcomp.graph.ir import Graph, Node, at
from nbcomp.graph.op import Composite


def expand(graph: Graph) -> Graph:
    """Write composite operators (softmax, mean, var, …) out in simpler ones."""
    new: dict[Node, Node] = {}
    for node in graph.nodes:
        inputs = tuple(new[i] for i in node.inputs)
        if inputs != node.inputs:
            new[node] = replace(node, inputs=inputs)
        else:
            new[node] = node
        if isinstance(node.op, Composite):
            new[node] = _expanded(new[node])
    if all(a is b for a, b in new.items()):
        return graph
    return Graph(
        graph.name, tuple(new[n] for n in graph.inputs), tuple(new[n] for n in graph.outputs)
    )


def _expanded(node: Node) -> Node:
    """The node's expansion, down to operators that are not composite, under the node's name."""
    assert isinstance(node.op, Composite)
    with at(node.location):
        result = node.op.expand(*node.inputs)
    inner = Graph("expansion", node.inputs, (result,))
    stop = set(node.inputs)
    done: dict[Node, Node] = {n: n for n in stop}
    for n in inner.nodes:
        if n in done:
            continue
        m = replace(n, inputs=tuple(done[i] for i in n.inputs))
        # An expansion may reach through its inputs to what was there before: that is left alone.
        done[n] = (
            _expanded(m) if isinstance(m.op, Composite) else (n if m.inputs == n.inputs else m)
        )
    result = done[result]
    if result in stop or not node.name:
        return result
    return replace(result, name=node.name)
