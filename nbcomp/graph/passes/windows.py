"""Decides what convolutions and pools become: loops over their windows, or formulas of views."""

from __future__ import annotations

import math
from dataclasses import replace

from nbcomp.graph.ir import Graph, Node, rewrite
from nbcomp.graph.op import Composite
from nbcomp.record import remark
from nbcomp.types import FLOAT32, FLOAT64

FEW = 4  # windows: a product of a matrix and a vector, or a reduction, is as good


def choose_windows(graph: Graph) -> Graph:
    """Write convolutions and pools of floats as loops over their windows."""

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node | None:
        if not isinstance(node.op, Composite) or type(node.op).windowed is Composite.windowed:
            return None
        why = _why_formula(node, inputs)
        made = None if why else node.op.windowed(*inputs)
        if made is None:
            reason = f"{node.title} stays a formula of views: {why}"
            remark("missed", "windows", reason, node.location)
            return None
        reason = f"{node.title}: loops over its windows are generated"
        remark("applied", "windows", reason, node.location)
        return replace(made, name=node.name)

    return rewrite(graph, rule)


def _why_formula(node: Node, inputs: tuple[Node, ...]) -> str:
    """Why an operator gets no loops of its own; empty if it does."""
    if len({i.type.dtype for i in inputs}) > 1 or inputs[0].type.dtype not in (FLOAT32, FLOAT64):
        return "loops are for float32 and float64, the same in all operands"
    if min(n.type.size for n in (node, *inputs)) == 0:
        return "it is empty"
    rank = len(getattr(node.op, "stride"))  # noqa: B009
    places = math.prod(node.shape[len(node.shape) - rank :])
    return f"it has {places} windows only" if places < FEW else ""
