"""np.einsum, written in diagonals, sums, elementwise products and matrix products.

Operands are contracted in pairs, in the order `np.einsum_path` finds when there are more than two.
A label is a character; the axes an ellipsis stands for get labels of their own.
"""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import traces
from nbcomp.ops.contract import MatMul, summed
from nbcomp.ops.move import Diagonal, expanded, reshaped, squeezed, transposed
from nbcomp.ops.operand import as_node, broadcast_to, operand, result_type, supported, traced

ELLIPSIS = "".join(map(chr, range(0x100, 0x140)))  # labels nobody can write


@dataclass(frozen=True)
class Term:
    """An operand and the label of each of its axes."""

    node: Node
    labels: str

    def size(self, label: str) -> int:
        """Length of the axis with this label."""
        return self.node.shape[self.labels.index(label)]


@traces(np.einsum)
def _einsum(
    *operands: Any, dtype: Any = None, optimize: Any = False, casting: str = "safe"
) -> Node:
    spelling, values = _spelling(operands)
    nodes = list(map(as_node, values))
    _check(spelling, nodes)
    asked = result_type(*nodes) if dtype is None else supported(dtype)
    nodes = [operand(n, asked) for n in nodes]
    inputs, output = _labels(spelling, nodes)
    _check_sizes(spelling, inputs, nodes)
    terms = [_diagonals(Term(n, labels)) for n, labels in zip(nodes, inputs, strict=True)]
    for pair in _path(terms, output):
        chosen = [terms.pop(k) for k in sorted(pair, reverse=True)][::-1]
        kept = set(output).union(*(t.labels for t in terms))
        terms.append(_contract(chosen, kept))
    return _ordered(terms[0], output)


def _spelling(operands: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """The subscripts as a string, also from the form with lists of numbers, and the arrays."""
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), list(operands[1:])
    arrays, lists = list(operands[0:-1:2]), list(operands[1::2])
    spelt = [_spell(entry) for entry in lists]
    if len(operands) % 2:
        return ",".join(spelt) + "->" + _spell(operands[-1]), arrays
    return ",".join(spelt), arrays


def _spell(entries: Sequence[Any]) -> str:
    return "".join("..." if e is Ellipsis else string.ascii_letters[e] for e in entries)


def _check(spelling: str, nodes: list[Node]) -> None:
    """Let NumPy complain about the subscripts, on arrays of one element."""
    small: list[Any] = [np.ones((1,) * len(n.shape), n.type.dtype) for n in nodes]
    np.einsum(spelling, *small)


def _labels(spelling: str, nodes: list[Node]) -> tuple[list[str], str]:
    """The labels of every axis of every operand and of the result."""
    left, arrow, right = spelling.partition("->")
    parts = left.split(",")
    spans = [
        len(n.shape) - len(p.replace("...", "")) if "..." in p else 0
        for p, n in zip(parts, nodes, strict=True)
    ]
    longest = max(spans, default=0)
    inputs = [
        p.replace("...", ELLIPSIS[longest - span : longest])
        for p, span in zip(parts, spans, strict=True)
    ]
    if arrow:
        return inputs, right.replace("...", ELLIPSIS[:longest])
    written = "".join(p.replace("...", "") for p in parts)
    once = sorted(c for c in set(written) if written.count(c) == 1)
    return inputs, ELLIPSIS[:longest] + "".join(once)


def _check_sizes(spelling: str, inputs: list[str], nodes: list[Node]) -> None:
    sizes: dict[str, int] = {}
    for labels, node in zip(inputs, nodes, strict=True):
        for label, n in zip(labels, node.shape, strict=True):
            if sizes.get(label, 1) != 1 and n not in (1, sizes[label]):
                np.einsum(spelling, *(np.broadcast_to(0.0, m.shape) for m in nodes))  # raises
            sizes[label] = max(n, sizes.get(label, n)) if n and sizes.get(label, 1) else 0


def _diagonals(term: Term) -> Term:
    """A label that stands twice takes the diagonal."""
    for label in term.labels:
        while term.labels.count(label) > 1:
            first = term.labels.index(label)
            second = term.labels.index(label, first + 1)
            node = apply(Diagonal(0, first, second), term.node)
            rest = "".join(c for k, c in enumerate(term.labels) if k not in (first, second))
            term = Term(node, rest + label)
    return term


def _path(terms: list[Term], output: str) -> list[tuple[int, ...]]:
    """Which operands to contract, in turn; a contracted pair goes to the end of the list."""
    if len(terms) == 1:
        return [(0,)]
    if len(terms) == 2:
        return [(0, 1)]
    labels = dict.fromkeys("".join(t.labels for t in terms))
    table = str.maketrans("".join(labels), string.ascii_letters[: len(labels)])
    spelt = ",".join(t.labels.translate(table) for t in terms)
    spelling = f"{spelt}->{output.translate(table)}"
    arrays = [np.broadcast_to(0.0, t.node.shape) for t in terms]
    found: Any = np.einsum_path(spelling, *arrays, optimize="greedy")
    return [pair for step in found[0][1:] for pair in _pairs(step)]


def _pairs(step: tuple[int, ...]) -> list[tuple[int, ...]]:
    """A step on more than two operands as steps on two: the last result (-1) with the next one."""
    first, *rest = sorted(step, reverse=True)
    if not rest:
        return [(first,)]
    return [(rest[0], first), *((k, -1) for k in rest[1:])]


def _contract(chosen: list[Term], kept: set[str]) -> Term:
    if len(chosen) == 1:
        return _sum_alone(chosen[0], kept)
    a, b = _unbroadcast(*chosen)
    a = _sum_alone(a, kept | set(b.labels))
    b = _sum_alone(b, kept | set(a.labels))
    both = [c for c in a.labels if c in b.labels]
    inner = "".join(c for c in both if c not in kept)
    batch = "".join(c for c in both if c in kept)
    rows = "".join(c for c in a.labels if c not in both)
    columns = "".join(c for c in b.labels if c not in both)
    if not inner or not (rows or columns):
        return _sum_alone(_times(a, b), kept)
    left = _grouped(a, batch, rows, inner)
    right = _grouped(b, batch, inner, columns)
    lengths = [a.size(c) for c in batch + rows] + [b.size(c) for c in columns]
    return Term(reshaped(apply(MatMul(), left, right), lengths), batch + rows + columns)


def _unbroadcast(a: Term, b: Term) -> tuple[Term, Term]:
    """Without axes of length 1 that the other operand has longer."""

    def without(t: Term, other: Term) -> Term:
        drop = [c for c in t.labels if t.size(c) == 1 and c in other.labels and other.size(c) != 1]
        node = squeezed(t.node, *(t.labels.index(c) for c in drop))
        return Term(node, "".join(c for c in t.labels if c not in drop))

    return without(a, b), without(b, a)


def _sum_alone(term: Term, kept: set[str]) -> Term:
    """Summed over the labels nobody else needs."""
    axes = [k for k, c in enumerate(term.labels) if c not in kept]
    return Term(summed(term.node, *axes), "".join(c for c in term.labels if c in kept))


def _times(a: Term, b: Term) -> Term:
    """The elementwise product."""
    labels = a.labels + "".join(c for c in b.labels if c not in a.labels)
    return Term(traced(np.multiply, _spread(a, labels), _spread(b, labels)), labels)


def _spread(term: Term, labels: str) -> Node:
    """The operand with its axes in this order, and axes of length 1 for labels it has not."""
    present = [c for c in labels if c in term.labels]
    node = transposed(term.node, [term.labels.index(c) for c in present])
    return expanded(node, *(k for k, c in enumerate(labels) if c not in term.labels))


def _grouped(term: Term, batch: str, first: str, second: str) -> Node:
    """The operand as a matrix first × second for each element of the batch axes."""
    order = batch + first + second
    node = transposed(term.node, [term.labels.index(c) for c in order])
    outer = [term.size(c) for c in batch]
    sides = [math.prod(term.size(c) for c in group) for group in (first, second)]
    return reshaped(node, [*outer, *sides])


def _ordered(term: Term, output: str) -> Node:
    node = transposed(term.node, [term.labels.index(c) for c in output])
    return broadcast_to(node, node.shape)
