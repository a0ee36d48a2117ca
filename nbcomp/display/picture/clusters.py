"""Which nodes of a graph a picture shows together: kernels, the user's layers, lines of source.

Layers and lines are runs of consecutive nodes in the order of the program, so that a picture with
one box for each is still a graph without cycles.  Knows graphs, not places or pictures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from nbcomp.graph.ir import Graph, Node
from nbcomp.graph.op import Constant, Input, is_kept
from nbcomp.graph.passes.groups import Group

LARGE_LAYER = 40  # nodes from which on a layer's own layers are shown in its place


@dataclass(frozen=True)
class Cluster:
    """Nodes to be shown together; number: what a picture knows it by (-1: nothing).

    outputs: those of its nodes that are used elsewhere.
    """

    name: str
    kind: str
    nodes: tuple[Node, ...]
    outputs: tuple[Node, ...] = ()
    number: int = -1

    @property
    def prefix(self) -> str:
        """What the names of a layer's parameters begin with: "blocks_0_"."""
        path = self.name.split(":")[0].replace(".", "_")
        return f"{path}_" if self.kind == "layer" else ""


def numbers(groups: Sequence[Group]) -> dict[str, int]:
    """The number of each kernel, by name: that of the first of the groups it computes.

    Calls of one library routine whose results are kept are as one.
    """
    first = {_shown_as(group): k for k, group in reversed(list(enumerate(groups)))}
    return {group.name: first[_shown_as(group)] for group in groups}


def _shown_as(group: Group) -> str:
    return group.nodes[0].op.name if is_once(group) else group.name


def is_once(group: Group) -> bool:
    """Whether a group is computed once and kept, as packed weights are, not at every call."""
    return all(is_kept(n.op, n.inputs) for n in group.nodes)


def kernels(groups: Sequence[Group]) -> list[Cluster]:
    """One cluster for each group."""
    number = numbers(groups)
    return [Cluster(g.name, g.kind, g.nodes, g.outputs, number[g.name]) for g in groups]


def layers(graph: Graph) -> list[Cluster]:
    """The calls of the user's modules, each with the parameters that nothing else uses.

    The outermost ones, except that a module which is the whole program, or has `LARGE_LAYER` nodes
    and more, gives way to the modules it calls, if there are any.
    """
    nodes = _operators(graph)
    runs = [run for run in _layers(nodes, 0, len(nodes)) if len(run[1]) > 1]
    users: dict[Node, set[Node]] = {n: set() for n in graph.nodes}
    for node in graph.nodes:
        for operand in node.inputs:
            users[operand].add(node)
    results = set(graph.outputs)
    spare = [n for n in graph.nodes if _is_own(n) and users[n]]
    found = []
    for k, (name, run) in enumerate(runs):
        inside = set(run)
        own = [n for n in spare if users[n] <= inside]
        outputs = tuple(n for n in run if n in results or not users[n] <= inside)
        found.append(Cluster(name, "layer", (*own, *run), outputs, k))
    return found


def _is_own(node: Node) -> bool:
    """Whether this is a parameter, or a constant: something that a layer may have for itself."""
    return isinstance(node.op, Constant) or (isinstance(node.op, Input) and bool(node.layers))


def _layers(nodes: list[Node], depth: int, whole: int) -> Iterator[tuple[str, list[Node]]]:
    for name, members in groupby(nodes, lambda n: n.layers[depth] if depth < len(n.layers) else ""):
        run = list(members)
        if not name:
            continue
        inner = list(_layers(run, depth + 1, whole))
        if len(run) == whole or (len(run) >= LARGE_LAYER and inner):
            yield from inner
        else:
            yield name, run


def lines(graph: Graph, most: int) -> Iterator[Cluster]:
    """Consecutive operators of one source line, and where that gives more than `most` clusters, of
    several lines."""
    nodes = _operators(graph)
    runs = [list(run) for _, run in groupby(nodes, _line)]
    step = -(-len(runs) // most) if runs else 1
    if len(runs) == 1:  # no locations to go by
        runs, step = [[n] for n in nodes], -(-len(nodes) // most)
    for start in range(0, len(runs), step):
        part = [n for run in runs[start : start + step] for n in run]
        first, last = _line(part[0]), _line(part[-1])
        title = f"line {first}" if first == last else f"lines {min(first, last)}–{max(first, last)}"
        yield Cluster(title if first or last else f"{len(part)} operators", "run", tuple(part))


def _operators(graph: Graph) -> list[Node]:
    return [n for n in graph.nodes if not isinstance(n.op, (Input, Constant))]


def _line(node: Node) -> int:
    return node.location.line if node.location else 0
