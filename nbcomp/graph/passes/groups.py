"""What fusion gives back: groups of nodes, each computed by one kernel, in an order to run in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nbcomp.graph.control import Result
from nbcomp.graph.ir import Graph, Node
from nbcomp.graph.op import Contract, Library, Piecewise, Recurrence, Reduce, Windowed
from nbcomp.record import Remark

Kind = Literal[
    "map",
    "reduce",
    "attention",
    "pieces",
    "contract",
    "bands",
    "recurrence",
    "indexed",
    "library",
    "control",
]


@dataclass(frozen=True, eq=False)
class Group:
    """Nodes computed by one kernel: `nodes` in order, `outputs` are written to memory.

    space: the shape the loops cover; axes: those reduced; components: short axes written out.
    """

    name: str
    kind: Kind
    nodes: tuple[Node, ...]
    outputs: tuple[Node, ...]
    space: tuple[int, ...]
    axes: tuple[int, ...]
    components: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class FusedGraph:
    """A graph and its groups in an order in which they can run."""

    graph: Graph
    groups: tuple[Group, ...]
    remarks: tuple[Remark, ...]

    def __str__(self) -> str:
        from nbcomp.graph.printer import node_names

        names = node_names(self.graph)
        lines = [str(self.graph), ""]
        for group in self.groups:
            members = ", ".join(f"%{names[n]}" for n in group.nodes)
            outputs = ", ".join(f"%{names[n]}" for n in group.outputs)
            lines.append(f"kernel {group.name} ({group.kind}): {members} -> {outputs}")
        return "\n".join(lines)


def kernel_name(nodes: list[Node], outputs: list[Node]) -> str:
    """A name for a kernel: what it computes, by the operators that matter most."""
    nodes = [n for n in nodes if not isinstance(n.op, Result)]
    telling = sorted({n.op.name for n in nodes}, key=lambda o: [n.op.name for n in nodes].index(o))
    heavy = [
        n.op.name
        for n in nodes
        if isinstance(n.op, Reduce | Contract | Windowed | Piecewise | Recurrence | Library)
        or n.op.cost > 4
    ]
    parts = list(dict.fromkeys(heavy)) or telling
    return "_".join(parts[:4])
