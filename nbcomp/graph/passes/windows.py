"""Decides which convolutions get loops of their own, instead of views and a product of matrices."""

from __future__ import annotations

from nbcomp.graph.ir import Graph, Node, apply, rewrite
from nbcomp.graph.op import REGISTRY
from nbcomp.record import remark
from nbcomp.types import FLOAT32, FLOAT64

FEW = 4  # places of a window: a product of a matrix and a vector is as good


def choose_windows(graph: Graph) -> Graph:
    """Write convolutions of floats as loops over their windows; the others stay formulas."""

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node | None:
        if node.op.name != "conv":
            return None
        if why := _why_formula(node, inputs):
            reason = f"{node.title} stays views and a product: {why}"
            remark("missed", "convolution", reason, node.location)
            return None
        return _convolution(node, *inputs)

    return rewrite(graph, rule)


def _why_formula(node: Node, inputs: tuple[Node, ...]) -> str:
    """Why a convolution gets no loops of its own; empty if it does."""
    x, weight = inputs[:2]
    if len({i.type.dtype for i in inputs}) > 1 or x.type.dtype not in (FLOAT32, FLOAT64):
        return "loops are for float32 and float64, the same in all operands"
    places = node.type.size // max(1, node.shape[0] * node.shape[1])
    if places < FEW:
        return f"its window has {places} places only"
    if min(x.type.size, weight.type.size, node.type.size) == 0:
        return "it is empty"
    return ""


def _convolution(node: Node, x: Node, weight: Node, *bias: Node) -> Node:
    """The sums over windows, then the bias."""
    op = node.op
    kernel = weight.shape[2:]
    made = REGISTRY["convolution"](kernel, op.stride, op.padding, op.dilation, op.groups)  # type: ignore[attr-defined,call-arg]
    result = apply(made, x, weight, name="" if bias else node.name)
    reason = f"{node.title}: loops over its windows are generated"
    remark("applied", "convolution", reason, node.location)
    for b in bias:
        axes = tuple(range(1, len(kernel) + 1))
        column = apply(REGISTRY["expand_dims"](axes), b)  # type: ignore[call-arg]
        result = apply(REGISTRY["add"](), result, column, name=node.name)
    return result
