"""Composite operators become the simpler ones they stand for."""

from __future__ import annotations

from dataclasses import replace

from nbcomp.graph.ir import Graph, Node, at, topological
from nbcomp.graph.op import Composite


def expand(graph: Graph) -> Graph:
    """Write composite operators (softmax, mean, var, …) out in simpler ones."""
    new: dict[Node, Node] = {}
    known: set[Node] = set()  # the nodes that are there already: expansions end at them
    for node in graph.nodes:
        inputs = tuple(new[i] for i in node.inputs)
        made = replace(node, inputs=inputs) if inputs != node.inputs else node
        new[node] = _expanded(made, known) if isinstance(made.op, Composite) else made
        known.add(new[node])
    if all(a is b for a, b in new.items()):
        return graph
    return Graph(
        graph.name, tuple(new[n] for n in graph.inputs), tuple(new[n] for n in graph.outputs)
    )


def _expanded(node: Node, known: set[Node]) -> Node:
    """The node's expansion, down to operators that are not composite, under the node's name."""
    assert isinstance(node.op, Composite)
    with at(node.location, node.layers):
        result = node.op.expand(*node.inputs)
    done: dict[Node, Node] = {}
    for n in topological([result], known):
        inputs = tuple(done.get(i, i) for i in n.inputs)
        m = n if inputs == n.inputs else replace(n, inputs=inputs)
        done[n] = _expanded(m, known) if isinstance(m.op, Composite) else m
        known.add(done[n])
    if result not in done or not node.name:
        return done.get(result, result)
    return replace(done[result], name=node.name)
