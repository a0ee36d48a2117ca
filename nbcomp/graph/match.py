"""Finds a small graph, the pattern, in a large one, and puts another in its place.

A pattern is a graph with one output; its inputs stand for any node.  Knows graphs only; that
patterns are written as functions is the caller's affair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from nbcomp.errors import NbcompError
from nbcomp.graph.ir import Graph, Node
from nbcomp.graph.op import Constant, Input
from nbcomp.sizes import Size
from nbcomp.types import TensorType

# Operators whose operands may change places.
_LOGIC = [f"{kind}_{fn}" for kind in ("logical", "bitwise") for fn in ("and", "or", "xor")]
COMMUTE = {"add", "multiply", "maximum", "minimum", "fmax", "fmin", "equal", "not_equal", *_LOGIC}


@dataclass(frozen=True, eq=False)
class Match:
    """Where a pattern was found.

    anchor: the node that is the pattern's output.  bound: what each of its inputs stands for.
    inside: the nodes that the pattern is, the anchor included.
    """

    anchor: Node
    bound: dict[Node, Node]
    inside: tuple[Node, ...]


def match(pattern: Graph, anchor: Node, exact: bool = True) -> Match | None:
    """The pattern with its output at this node; operands that may change places are found in
    either order.

    exact: operators agree in their attributes, constants in their values; otherwise, in what they
    are only.
    """
    (root,) = pattern.outputs
    bound = _bound([(root, anchor)], {}, exact)
    if bound is None:
        return None
    inner = [n for n in pattern.nodes if not isinstance(n.op, Input | Constant) and n in bound]
    return Match(
        anchor,
        {n: bound[n] for n in pattern.inputs if n in bound},
        tuple(bound[n] for n in inner),
    )


def _bound(
    stack: list[tuple[Node, Node]], bound: dict[Node, Node], exact: bool
) -> dict[Node, Node] | None:
    """What each node of the pattern stands for, given what is found so far and pairs to compare."""
    while stack:
        wanted, found = stack.pop()
        if wanted in bound:
            if bound[wanted] is not found:
                return None
            continue
        bound[wanted] = found
        if isinstance(wanted.op, Input):
            if exact and not _same_type(wanted.type, found.type):
                return None
            continue
        if not _alike(wanted, found, exact) or len(wanted.inputs) != len(found.inputs):
            return None
        pairs = list(zip(wanted.inputs, found.inputs, strict=True))
        if wanted.op.name in COMMUTE:
            crossed = list(zip(wanted.inputs, reversed(found.inputs), strict=True))
            return _bound([*stack, *pairs], dict(bound), exact) or _bound(
                [*stack, *crossed], bound, exact
            )
        stack.extend(pairs)
    return bound


def _same_type(wanted: TensorType, found: TensorType) -> bool:
    """Whether types agree, as far as lengths are known."""
    if wanted.dtype != found.dtype or wanted.ndim != found.ndim:
        return False
    pairs = zip(wanted.shape, found.shape, strict=True)
    return all(isinstance(n, Size) or n == m for m, n in pairs)


def _alike(wanted: Node, found: Node, exact: bool) -> bool:
    if type(wanted.op) is not type(found.op):
        return False
    if isinstance(wanted.op, Constant) and isinstance(found.op, Constant):
        if not exact:
            return wanted.type.ndim == found.type.ndim
        same = wanted.type == found.type
        return bool(same and wanted.op.value.tobytes() == found.op.value.tobytes())
    return not exact or wanted.op == found.op


def closed(graph: Graph, found: Match) -> bool:
    """Whether nothing outside reads what is inside, but for the anchor."""
    inside = set(found.inside)
    inner = inside - {found.anchor}
    if inner & set(graph.outputs):
        return False
    return all(user in inside for node in inner for user in graph.users[node])


def substitute(
    graph: Graph, find: Callable[[Node], tuple[Match, Graph] | None]
) -> tuple[Graph, list[Match]]:
    """The graph with every match replaced, where matches do not overlap.

    find: for a node the match that ends there and its replacement, a graph with the pattern's
    inputs in order.  Raises NbcompError for a replacement of another type.
    """
    chosen: dict[Node, tuple[Match, Graph]] = {}
    used: set[Node] = set()
    for node in reversed(graph.nodes):  # the largest pattern that ends last comes first
        found = None if node in used else find(node)
        if found is not None and closed(graph, found[0]) and not used & set(found[0].inside):
            chosen[node] = found
            used.update(found[0].inside)
    new: dict[Node, Node] = {}
    for node in graph.nodes:
        if node in chosen:
            new[node] = _replaced(*chosen[node], new)
        else:
            inputs = tuple(new[i] for i in node.inputs)
            same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
            new[node] = node if same else replace(node, inputs=inputs)
    outputs = tuple(new[n] for n in graph.outputs)
    matches = [m for m, _ in chosen.values()][::-1]
    return Graph(graph.name, tuple(new[n] for n in graph.inputs), outputs), matches


def _replaced(found: Match, replacement: Graph, new: dict[Node, Node]) -> Node:
    """The replacement on what the pattern stood on, at the anchor's line and under its name."""
    (root,) = replacement.outputs
    anchor = found.anchor
    if root.type != anchor.type:
        raise NbcompError(
            f"the replacement is {root.type}, but what it stands for is {anchor.type}",
            anchor.location,
        )
    operands = [new[n] for n in found.bound.values()]
    made: dict[Node, Node] = dict(zip(replacement.inputs, operands, strict=True))
    for node in replacement.nodes:
        if node not in made:
            inputs = tuple(made[i] for i in node.inputs)
            made[node] = replace(node, inputs=inputs, location=anchor.location, name="")
    result = made[root]
    return result if root in replacement.inputs else replace(result, name=anchor.name)


def kinds(graph: Graph) -> Iterator[tuple[int, np.dtype[np.generic]]]:
    """The ranks and dtypes that occur, each once."""
    yield from dict.fromkeys((len(n.shape), n.type.dtype) for n in graph.nodes)
