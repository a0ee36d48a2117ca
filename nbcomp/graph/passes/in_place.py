"""Loops that change the caller's own arrays do it in place, where nobody could tell the difference.

A failure in the middle then leaves the arrays as Python would have left them; so nothing that may
fail may come after, and nothing else may be written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nbcomp.graph.control import Control, Loops, Result
from nbcomp.graph.ir import Graph, Node, rewrite
from nbcomp.graph.op import Library
from nbcomp.loop.grammar import failures


def in_place(graph: Graph, writes: Mapping[int, int]) -> Graph:
    """Mark the loops that may work on the caller's arrays.

    writes: outputs (by position) that are the new content of an input (by position).
    """
    found = [n for n in graph.nodes if isinstance(n.op, Control)]
    if not writes or not found or any(isinstance(n.op, Library) for n in graph.nodes):
        return graph
    last = found[-1]
    if not isinstance(last.op, Loops) or not all(f.certain for f in failures(last.op.kernel)):
        return graph
    for output, position in writes.items():
        if not _takes_over(graph, last, graph.outputs[output], graph.inputs[position]):
            return graph
    op = replace(last.op, in_place=True)

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node | None:
        return replace(node, op=op, inputs=inputs) if node is last else None

    return rewrite(graph, rule)


def _takes_over(graph: Graph, loops: Node, output: Node, array: Node) -> bool:
    """Whether an output is what these loops make of an array that nobody else reads."""
    assert isinstance(loops.op, Loops)
    if not isinstance(output.op, Result) or output.inputs[0] is not loops:
        return False
    if output.op.index >= len(loops.op.updated) or array in graph.outputs:
        return False
    operand = loops.inputs[loops.op.updated[output.op.index]]
    return operand is array and graph.users[array] == (loops,)
