"""Decides which products have their weights packed once: those of parameters, with several rows.

A tile of a product reads a few vectors of weights for each term of its sum; packed, these are
neighbours in memory, term by term.  Knows graphs; how it is seen that weights changed is not its
concern.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nbcomp.graph.ir import Graph, Node, rewrite
from nbcomp.graph.op import REGISTRY, Contract, Input, Op
from nbcomp.record import remark
from nbcomp.sizes import is_open
from nbcomp.types import FLOAT32, FLOAT64

FEW = 4  # rows: fewer read each weight hardly more than once
MOST = 1024  # rows: packing at every call costs nothing beside so many
SMALL = 1 << 12  # weights: they are in the first cache anyway


def pack_products(graph: Graph) -> Graph:
    """Give products with the weights of a layer these weights packed, once."""
    known: dict[tuple[Node, Op], Node] = {}  # what is packed, by the weights and how

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node | None:
        weight = _weight(node, inputs)
        if weight is None:
            return None
        kind: Any = REGISTRY["matmul_packed"]
        made: Node = kind.packing(inputs[0], weight)
        x, packed = made.inputs
        packed = known.setdefault((weight, packed.op), packed)
        remark("applied", "layout", f"{weight.title} is packed once", node.location)
        return replace(made, inputs=(x, packed), name=node.name)

    return rewrite(graph, rule)


def _weight(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """The weights of a layer, if a product is one of rows with them that is worth it."""
    op = node.op
    if not isinstance(op, Contract) or op.narrow or node.type.dtype not in (FLOAT32, FLOAT64):
        return None
    if inputs[1].op.name != "transpose" or len(inputs[1].shape) != 2 or is_open(node.shape):
        return None
    (weight,) = inputs[1].inputs
    if (
        not isinstance(weight.op, Input)
        or not weight.op.held
        or weight.type.size < SMALL
        or len(node.shape) < 2
    ):
        return None
    if any(i.type.dtype != node.type.dtype for i in inputs):
        return None
    rows = node.type.size // max(node.shape[-1], 1)
    return weight if FEW <= rows <= MOST else None
