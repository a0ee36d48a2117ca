"""Level 1, the graph: SSA nodes over typed tensors.

A `Node` applies an `Op` to other nodes and has one result; a `Graph` names its inputs and outputs,
and the nodes in between are whatever the outputs reach.  Everything is immutable: passes build new
nodes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from nbcomp.graph.op import Op
from nbcomp.record import Location
from nbcomp.sizes import is_open
from nbcomp.types import TensorType

LONG = 60  # characters of an expression, of which remarks show the beginning

_location: ContextVar[Location | None] = ContextVar("location", default=None)
_layers: ContextVar[tuple[str, ...]] = ContextVar("layers", default=())
_raising: ContextVar[list[Node] | None] = ContextVar("raising", default=None)


@contextmanager
def at(location: Location | None, layers: tuple[str, ...] = ()) -> Iterator[None]:
    """Give every node made inside this location, and these layers."""
    token, outer = _location.set(location), _layers.set(layers)
    try:
        yield
    finally:
        _location.reset(token)
        _layers.reset(outer)


@contextmanager
def noting(raising: list[Node]) -> Iterator[None]:
    """Put the nodes made inside that may raise into this list, in the order of the program."""
    token = _raising.set(raising)
    try:
        yield
    finally:
        _raising.reset(token)


@dataclass(frozen=True, eq=False, repr=False)
class Node:
    """One application of an operator, equal only to itself; `name` is the user's, if any.

    `weak` marks a Python number read at run time: a 0-d int64, float64 or bool whose dtype gives
    way to that of the arrays it meets (NEP 50).  `layers`: the user's modules that were at work
    when it was captured, the outermost first, as "blocks.0: Block"; behind them a layer of
    nbcomp's own, as "blocks.1: nn.Linear", where the user's line stands for several.
    """

    op: Op
    inputs: tuple[Node, ...]
    type: TensorType
    location: Location | None = None
    name: str = ""
    weak: bool = False
    layers: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return self.type.shape

    @property
    def layer(self) -> str:
        """The layer of nbcomp's own that it is a part of, where the user's line stands for several:
        "nn.Linear `blocks.1`"."""
        path, _, kind = self.layers[-1].rpartition(": ") if self.layers else ("", "", "")
        if not kind.startswith("nn.") or not self.inputs:
            return ""
        return f"{kind} `{path}`" if path else f"`{kind}`"

    def __repr__(self) -> str:
        return f"<{self.name or self.op.name}: {self.type}>"

    @property
    def title(self) -> str:
        """How a remark names it: the layer where the user's line stands for several, else the
        user's variable, else their expression, else the operator."""
        if self.layer:
            return self.layer
        if self.name:
            return f"`{self.name}`"
        source = self.location.source().strip() if self.location else ""
        if not source or "`" in source:
            return f"`{self.op.name}`"
        return f"`{source}`" if len(source) < LONG else f"`{source[: LONG - 2].rstrip()} …`"


def told_apart(first: Node, second: Node) -> tuple[str, str]:
    """The titles of two nodes, the second being computed later, with what tells them apart where
    the user's words for both are the same."""
    one, other = first.title, second.title
    if one != other:
        return one, other
    lines = [n.location.line if n.location else 0 for n in (first, second)]
    if all(lines) and lines[0] != lines[1]:
        return f"{one} of line {lines[0]}", f"{other} of line {lines[1]}"
    if first.layers and second.layers and first.layers != second.layers:
        return f"{one} in `{_layer(first)}`", f"{other} in `{_layer(second)}`"
    if first.op.name != second.op.name:
        return f"{one} ({first.op.name})", f"{other} ({second.op.name})"
    return one, f"the next {other}"


def _layer(node: Node) -> str:
    """The innermost of the user's modules a node is computed by: "blocks.0"."""
    return node.layers[-1].partition(":")[0]


def apply(op: Op, *inputs: Node, name: str = "") -> Node:
    """A new node; its type is inferred, its location is that of the enclosing `at`.

    Raises what `op.infer` raises: `ValueError` or `TypeError`, worded as NumPy does.
    """
    type = op.infer(*(n.type for n in inputs))
    if not is_open(type.shape) and type.nbytes > sys.maxsize:
        raise ValueError(f"array is too big: {type} takes {type.nbytes:,} bytes")
    node = Node(op, inputs, type, _location.get(), name, layers=_layers.get())
    raising = _raising.get()
    if raising is not None and op.may_raise(*inputs):
        raising.append(node)
    return node


@dataclass(frozen=True, eq=False)
class Graph:
    """A program: its inputs (nodes whose op is `Input`), its outputs, and all that lies between."""

    name: str
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes in a topological order that follows the order of the program: inputs first."""
        return tuple(topological((*self.inputs, *self.outputs)))

    @cached_property
    def users(self) -> dict[Node, tuple[Node, ...]]:
        """For each node the nodes that read it, each once, in order."""
        table: dict[Node, list[Node]] = {n: [] for n in self.nodes}
        for node in self.nodes:
            for operand in dict.fromkeys(node.inputs):
                table[operand].append(node)
        return {n: tuple(us) for n, us in table.items()}

    def print_tabular(self) -> None:
        """Print the nodes as a table: opcode, name, target, args, kwargs."""
        from nbcomp.graph.editable import EditableGraph  # which imports the IR

        EditableGraph(self).print_tabular()

    def to_networkx(self) -> Any:
        """The graph as a `networkx.DiGraph`, an edge from each operand to its readers."""
        from nbcomp.graph.editable import EditableGraph

        return EditableGraph(self).to_networkx()

    def __str__(self) -> str:
        from nbcomp.graph.printer import print_graph  # the printer imports the IR

        return print_graph(self)


def topological(roots: Iterable[Node], known: Container[Node] = ()) -> Iterator[Node]:
    """The nodes the roots reach, operands before users, without recursion.

    known: nodes that are left out, with what is reached through them only.
    """
    done: set[Node] = set()
    for root in roots:
        stack = [(root, False)]
        while stack:
            node, expanded = stack.pop()
            if node in done or node in known:
                continue
            if expanded:
                done.add(node)
                yield node
            else:
                stack.append((node, True))
                stack.extend((operand, False) for operand in reversed(node.inputs))


def rewrite(graph: Graph, rule: Callable[[Node, tuple[Node, ...]], Node | None]) -> Graph:
    """Rebuild the graph bottom up: `rule(node, new_inputs)` gives another node, or None to keep it.

    A replacement has the type of the node it stands for.
    """
    new: dict[Node, Node] = {}
    changed = False
    outer, around = _location.set(None), _layers.set(())
    try:
        for node in graph.nodes:
            inputs = tuple([new[i] for i in node.inputs])
            _location.set(node.location)
            _layers.set(node.layers)
            result = rule(node, inputs)
            if result is None:
                result = node if inputs == node.inputs else replace(node, inputs=inputs)
            changed |= result is not node
            new[node] = result
    finally:
        _location.reset(outer)
        _layers.reset(around)
    if not changed:
        return graph
    return Graph(
        graph.name, tuple(new[n] for n in graph.inputs), tuple(new[n] for n in graph.outputs)
    )
