"""Decides what recurrent layers become: one loop over their steps, or the steps written out."""

from __future__ import annotations

import math
from dataclasses import replace

from nbcomp.graph.ir import Graph, Node, rewrite
from nbcomp.graph.op import Composite, Input
from nbcomp.record import remark
from nbcomp.sizes import is_open
from nbcomp.types import FLOAT32, FLOAT64

FEW = 3  # steps: writing them out is as good
LARGE = 6e6  # operations of a step, from which on all cores should work on it


def choose_recurrences(graph: Graph) -> Graph:
    """Write recurrent layers of floats, their weights packed once, as one loop over their steps."""

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node | None:
        op = node.op
        if not isinstance(op, Composite) or type(op).looped is Composite.looped:
            return None
        why = _why_written_out(node, inputs)
        made = None if why else op.looped(*inputs)
        if made is None:
            reason = f"the steps of {node.title} are written out: {why}"
            remark("analysis", "recurrence", reason, node.location)
            return None
        reason = f"{node.title} is one loop over its steps, with weights that are packed once"
        remark("applied", "recurrence", reason, node.location)
        return replace(made, name=node.name)

    return rewrite(graph, rule)


def _why_written_out(node: Node, inputs: tuple[Node, ...]) -> str:
    """Why a layer gets no loop of its own; empty if it does."""
    if is_open(node.shape[3:]):
        return "the loop is for states of a known size"
    if len({i.type.dtype for i in inputs}) > 1 or inputs[0].type.dtype not in (FLOAT32, FLOAT64):
        return "the loop is for float32 and float64, the same in all operands"
    if node.type.size == 0 or node.shape[1] < FEW:
        return "there are few of them"
    weight = inputs[1 + node.shape[0]]
    if not isinstance(weight.op, Input) or not weight.op.held:
        return "the weights are no parameter that says when it changes"
    if 2.0 * math.prod(weight.shape) * node.shape[2] > LARGE:
        return "each is large enough for all cores"
    return ""
