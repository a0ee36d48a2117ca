"""Prints graphs: one node a line, with the user's names, and the user's line as a comment."""

from __future__ import annotations

from collections.abc import Iterator

from nbcomp.graph.control import Control, Result
from nbcomp.graph.ir import Graph, Node
from nbcomp.graph.op import Constant, Input
from nbcomp.record import Location


def node_names(graph: Graph) -> dict[Node, str]:
    """A unique name per node: the user's own, else a number."""
    names: dict[Node, str] = {}
    taken: set[str] = set()
    for number, node in enumerate(graph.nodes):
        base = node.name or f"{number}"
        name, k = base, 1
        while name in taken:
            k += 1
            name = f"{base}.{k}"
        taken.add(name)
        names[node] = name
    return names


def print_graph(graph: Graph) -> str:
    """The whole graph."""
    return "\n".join(line for line, _ in graph_lines(graph))


def graph_lines(graph: Graph) -> Iterator[tuple[str, tuple[Location, ...]]]:
    """Each line of the graph, and the user's places of the node on it."""
    names: dict[Node, str] = {}
    body = []
    for node, name in node_names(graph).items():
        if isinstance(node.op, Constant) and node.op.value.ndim == 0:
            names[node] = str(node.op.value[()])  # a number stands where it is used
            continue
        names[node] = f"%{name}"
        if not isinstance(node.op, (Input, Result)):
            body.append(node)
    inputs = ", ".join(f"{names[n]}: {n.type}" for n in graph.inputs)
    yield f"graph {graph.name}({inputs}) {{", ()
    texts = [_statement(n, graph, names) for n in body]
    width = min(72, max(map(len, texts), default=0))
    for node, text in zip(body, texts, strict=True):
        where = node.location
        if where is None:
            yield f"  {text}", ()
        else:
            yield f"  {text:<{width}}  # {where}", where.every()
        if isinstance(node.op, Control):
            yield from _blocks(node.op)
    yield f"  return {', '.join(names[n] for n in graph.outputs)}", ()
    yield "}", ()


def _statement(node: Node, graph: Graph, names: dict[Node, str]) -> str:
    """What a line defines, a node or the results of a control node, and as what."""
    op, args = node.op, [names[n] for n in node.inputs]
    if isinstance(op, Control):
        made = {u.op.index: u for u in graph.users[node] if isinstance(u.op, Result)}
        results = ", ".join(f"{names[n]}: {n.type}" for _, n in sorted(made.items()))
        return f"{results or '_'} = {op.name}({', '.join(args)})"
    left = f"{names[node]}: {node.type} ="
    if isinstance(op, Constant):
        return f"{left} constant(<array>)"
    return f"{left} {op.name}({', '.join([*args, *op.printed_attributes])})"


def _blocks(op: Control) -> Iterator[tuple[str, tuple[Location, ...]]]:
    """The graphs or the loops that a control node owns, indented."""
    for title, block in op.blocks():
        yield f"    {title}:", ()
        if isinstance(block, Graph):
            for line, places in graph_lines(block):
                yield f"      {line}", places
        else:
            for line in str(block).splitlines():
                yield f"      {line}", ()
