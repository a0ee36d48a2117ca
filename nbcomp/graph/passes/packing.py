"""Decides which products have their weights packed once: those of parameters, with several rows.

A tile of a product reads a few vectors of weights for each term of its sum; packed, these are
neighbours in memory, term by term.  Weights of products of narrow numbers are packed in the groups
of terms that an instruction adds up, and rounded before if that was asked for.  Knows graphs; how
it is seen that weights changed is not its concern.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nbcomp.graph.ir import Graph, Node, apply, rewrite
from nbcomp.graph.op import REGISTRY, Contract, Input, Op
from nbcomp.machine import host
from nbcomp.record import remark
from nbcomp.sizes import is_open
from nbcomp.types import FLOAT32, FLOAT64

FEW = 4  # rows: fewer read each weight hardly more than once
MOST = 1024  # rows: packing at every call costs nothing beside so many
SMALL = 1 << 12  # weights: they are in the first cache anyway
INSTRUCTIONS = {  # for weights of these
    np.dtype(np.uint16): "avx512bf16",
    np.dtype(np.int8): "avx512vnni",
    np.dtype(np.uint8): "avx512vnni",
}


def pack_products(graph: Graph) -> Graph:
    """Give products with the weights of a layer these weights packed, once."""
    known: dict[tuple[Node, Op], Node] = {}  # what is packed, by the weights and how

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node | None:
        made = _packed(node, inputs)
        if made is None:
            return _sums(node)
        x, packed = made.inputs
        (weight,) = packed.inputs
        packed = known.setdefault((weight, packed.op), packed)
        reason = f"the weights of {node.title} are packed once"
        remark("applied", "layout", reason, node.location)
        return replace(made, inputs=(x, packed), name=node.name)

    return rewrite(graph, rule)


def _packed(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """A product with its weights packed; None where it stays as it is."""
    if not isinstance(node.op, Contract) or len(node.shape) < 2:
        return None
    if node.op.narrow:
        return None if is_open(node.shape) else _narrow(node, inputs)
    weight = _weight(node, inputs)
    kind: Any = REGISTRY["matmul_packed"]
    return None if weight is None else kind.packing(inputs[0], weight)


def _weight(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """The weights of a layer, if a product is one of rows with them that is worth it."""
    if node.type.dtype not in (FLOAT32, FLOAT64):
        return None
    if any(i.type.dtype != node.type.dtype for i in inputs):
        return None
    weight = _turned(inputs[1])
    held = weight is not None and _held(weight)
    return weight if held and FEW <= _rows(node) <= MOST else None


def _rows(node: Node) -> int:
    return node.type.size // max(node.shape[-1], 1)


def _turned(node: Node) -> Node | None:
    """The matrix that a node is the transpose of."""
    matrix = node.op.name == "transpose" and len(node.shape) == 2
    return node.inputs[0] if matrix else None


def _held(node: Node) -> bool:
    """Whether a node is a parameter that says when it changes, and large enough."""
    return isinstance(node.op, Input) and node.op.held and node.type.size >= SMALL


# ------------------------------------------------------------------------------- narrow numbers


def _narrow(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """A product of narrow numbers with weights that are packed in groups of terms."""
    x, right = inputs
    needed = INSTRUCTIONS.get(right.type.dtype, "")
    if needed not in host().features or _rows(node) < FEW:
        return None
    if right.op.name == "pad_constant":  # the packed form fills groups up by itself
        right = right.inputs[0]
    turned = _turned(right)
    found = None if turned is None else _form(turned)
    if found is None:
        return None
    kind: Any = REGISTRY["narrow_matmul_packed"]
    made: Node = kind.packing(x, *found)
    return made


def _form(node: Node) -> tuple[Node, str] | None:
    """The weights that narrow ones are made from, and how."""
    form, weight = "", node
    if node.op.name == "to_bfloat16":
        form, (weight,) = "round", node.inputs
    elif node.op.name == "cast" and node.inputs[0].op.name == "bitwise_xor":
        form, weight = "flip", node.inputs[0].inputs[0]
    return (weight, form) if _held(weight) else None


def _sums(node: Node) -> Node | None:
    """The sums of weights that go with a product of bytes (`narrow`), computed once."""
    if node.op.name != "sum" or node.inputs[0].op.name != "cast" or len(node.inputs[0].shape) != 2:
        return None
    weight = _turned(node.inputs[0].inputs[0])
    if weight is None or weight.type.dtype != np.int8 or not _held(weight):
        return None
    if node.shape != (1, weight.shape[0]) or node.type.dtype != np.int32:
        return None
    kind: Any = REGISTRY["expand_dims"]
    return apply(kind((0,)), apply(REGISTRY["row_sums"](), weight), name=node.name)
