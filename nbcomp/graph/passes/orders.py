"""Outputs that NumPy lays out in another order than C, where what computes or reads them needs C.

Others are computed where they go, in their order (`lowering.maps`).  Knows the graph and the order
of axes that was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping

from nbcomp.graph.ir import Graph, Node, apply, at
from nbcomp.graph.op import Contract, Windowed
from nbcomp.graph.passes.materialise import Copy

ALONE = (Contract, Windowed)  # write their results in C order


def copied_in_order(graph: Graph, orders: Mapping[int, tuple[int, ...]]) -> Graph:
    """Give outputs in another order than C a node of their own, if others read them.

    orders: the axes of an output (by position), outermost in memory first.
    """
    outputs = tuple(
        _own(node) if _turned(orders.get(k)) and _tied(graph, node) else node
        for k, node in enumerate(graph.outputs)
    )
    if all(new is old for new, old in zip(outputs, graph.outputs, strict=True)):
        return graph
    return Graph(graph.name, graph.inputs, outputs)


def _turned(order: tuple[int, ...] | None) -> bool:
    return order is not None and order != tuple(sorted(order))


def _tied(graph: Graph, node: Node) -> bool:
    """Whether the node's memory is in C order for somebody else's sake."""
    return bool(graph.users[node]) or isinstance(node.op, ALONE)


def _own(node: Node) -> Node:
    with at(node.location):
        return apply(Copy(), node, name=node.name)
