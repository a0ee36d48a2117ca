"""Parts of a graph that control flow owns: what they read of what was there before, and results.

Knows graphs and what a session has read; not how values meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nbcomp.frontend.number import Number
from nbcomp.frontend.script.contents import Contents
from nbcomp.frontend.tracer import Tracer
from nbcomp.graph.ir import Graph, Node, topological
from nbcomp.graph.op import Constant, Input


def boundary(outputs: Sequence[Node], outer: set[Node]) -> list[Node]:
    """What some nodes read of what was there before, and of what the function is given."""
    found: dict[Node, None] = {}
    seen: set[Node] = set()
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node.op, Constant) and not node.shape:
            continue
        if node in outer or isinstance(node.op, Input):
            found[node] = None
        else:
            stack.extend(node.inputs)
    return list(found)


def subgraph(name: str, operands: Sequence[Node], outputs: Sequence[Node]) -> Graph:
    """The nodes between operands and outputs as a graph of its own."""
    new: dict[Node, Node] = {}
    for k, node in enumerate(operands):
        new[node] = Node(Input(k, node.type), (), node.type, node.location, node.name, node.weak)
    inputs = tuple(new.values())
    for node in topological(outputs, set(operands)):
        new[node] = replace(node, inputs=tuple(new[i] for i in node.inputs))
    return Graph(name, inputs, tuple(new[n] for n in outputs))


def outer_nodes(contents: Contents) -> set[Node]:
    """All that was computed before."""
    roots = [r.node for r in contents.session.reads.values()]
    for leaf in contents.heap.leaves:
        if type(leaf) is Tracer:
            roots += [leaf._place.storage.node, leaf._place.read()]
        elif type(leaf) is Number:
            roots.append(leaf._node)
    return set(topological(roots))
