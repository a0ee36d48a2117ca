"""Loops that were written element by element: their kernel, on memory as its operands lie there."""

from __future__ import annotations

from dataclasses import replace

from nbcomp.graph.control import Loops, Result
from nbcomp.graph.ir import Node
from nbcomp.graph.passes.groups import Group
from nbcomp.graph.passes.materialise import element_strides, storage
from nbcomp.loop.grammar import Buffer, Kernel, with_buffers
from nbcomp.types import contiguous_strides


def written_loops(group: Group) -> tuple[Kernel, dict[str, Node]]:
    """The kernel of a group of loops and their results, and the node of each of its buffers."""
    node, *results = group.nodes
    assert isinstance(node.op, Loops)
    kernel, count = node.op.kernel, len(node.inputs)
    nodes = {b.name: storage(i) for b, i in zip(kernel.buffers, node.inputs, strict=False)}
    made = {r.op.index: r for r in results if isinstance(r.op, Result)}
    for k, buffer in enumerate(kernel.buffers[count:], len(node.op.updated)):
        if k in made:
            nodes[buffer.name] = made[k]
    laid = {
        b.name: replace(b, strides=element_strides(i) or contiguous_strides(i.shape))
        for b, i in zip(kernel.buffers, node.inputs, strict=False)
    }

    def buffer_of(b: Buffer) -> Buffer:
        return laid.get(b.name, b)

    kernel = replace(
        kernel,
        name=group.name,
        ordered=node.op.in_place,
        buffers=tuple(map(buffer_of, kernel.buffers)),
        stages=with_buffers(kernel.stages, buffer_of),
    )
    return kernel, nodes


def taken_over(node: Node) -> Node | None:
    """The operand whose memory a result of loops is in; None for any other node."""
    if not isinstance(node.op, Result):
        return None
    loops = node.inputs[0]
    if not isinstance(loops.op, Loops) or node.op.index >= len(loops.op.updated):
        return None
    return loops.inputs[loops.op.updated[node.op.index]]
