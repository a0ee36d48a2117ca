"""Elements of graph nodes as loop expressions: fusion is composition of these functions.

`Elements.at(node, index)` is the value of a node at an index: loaded where the node is in memory,
otherwise computed from its operands' elements, each once per scope.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import replace

import numpy as np

from nbcomp.graph.ir import Node
from nbcomp.graph.op import Constant, Elementwise, Reduce, Source, View
from nbcomp.graph.passes.operands import base_of
from nbcomp.loop.grammar import (
    Affine,
    Apply,
    Buffer,
    Cast,
    Const,
    Expr,
    Load,
    Select,
    Var,
    affine,
    children,
    const,
)
from nbcomp.lowering.writer import Writer
from nbcomp.sizes import hint

Index = tuple[Expr, ...]
# Asks for elements of other nodes, is sent their values, and returns its own.
Steps = Generator[tuple[Node, Index], Expr, Expr]

DEEPEST = 24  # operands within operands; a deeper value gets a name, whatever walks it may recurse


class Elements:
    """Reads nodes of one fused group.

    memory: nodes that are in a buffer.  finished: nodes whose value here is given by a function of
    the index (finished reductions, rows kept in the kernel).
    """

    def __init__(self, writer: Writer, nodes: tuple[Node, ...], names: dict[Node, str]) -> None:
        self.writer, self.names = writer, names
        self.memory: dict[Node, Buffer] = {}
        self.finished: dict[Node, Callable[[Index], Expr]] = {}
        self.uses: Counter[Node] = Counter()
        for node in nodes:
            for operand in node.inputs:  # what is spread over more elements is used more than once
                spread = hint(operand.type.size) < hint(node.type.size)
                self.uses[base_of(operand)] += 2 if spread else 1
        self._depths: dict[int, tuple[Expr, int]] = {}

    def at(self, node: Node, index: Index) -> Expr:
        """The element of `node` at an index of its own shape.

        Chains of operations may be thousands long, so what waits for an operand is on a list here
        instead of on Python's stack.
        """
        waiting = [self.steps(node, index)]
        value: Expr | None = None
        while True:
            try:
                asked = waiting[-1].send(value)  # type: ignore[arg-type]
            except StopIteration as done:
                waiting.pop()
                value = done.value
                if not waiting:
                    assert value is not None
                    return value
            else:
                waiting.append(self.steps(*asked))
                value = None

    def steps(self, node: Node, index: Index) -> Steps:
        """The element of a node, computed once per scope."""
        index = tuple(affine(0) if n == 1 else i for i, n in zip(index, node.shape, strict=True))
        if node in self.finished:
            return self.finished[node](index)
        if isinstance(node.op, Constant) and node.op.value.ndim == 0:
            return Const(node.type.dtype, node.op.value[()])
        if isinstance(node.op, View):
            operand = node.inputs[0]
            return (yield operand, node.op.source(index, operand.type))
        key = (node, tuple(map(_key, index)))
        known = self.writer.recall(key)
        if known is not None:
            return known
        value = yield from self.compute(node, index)
        return self.writer.remember(key, self.named(node, value))

    def compute(self, node: Node, index: Index) -> Steps:
        """The element of a node from memory, or from its operands' elements."""
        if node in self.memory:
            buffer = self.memory[node]
            return Load(buffer.dtype, buffer, index, node.location)
        if isinstance(node.op, Source):
            return node.op.element(index, node.type)
        if isinstance(node.op, Reduce):
            return (yield from self.written_out(node, index))
        assert isinstance(node.op, Elementwise), node.op
        args = []
        for operand in node.inputs:
            args.append((yield operand, broadcast_index(index, operand.shape)))
        value = node.op.scalar(*args)
        if isinstance(value, Apply | Cast | Select) and value.location is None:
            value = replace(value, location=node.location)
        return value

    def named(self, node: Node, value: Expr) -> Expr:
        """Bind what is used several times, has the user's name, or belongs to an outer loop."""
        if isinstance(value, Var | Const | Affine):
            return value
        outer = self.writer.level(value) < len(self.writer.frames) - 1
        many = self.uses[node] > 1
        if isinstance(value, Load):
            if not (many or outer):
                return value
            return self.writer.bind(f"{value.buffer.name}_", value, node.location)
        if not (many or outer or node.name or self.depth(value) > DEEPEST):
            return value
        return self.writer.bind(node.name or node.op.name, value, node.location)

    def depth(self, value: Expr) -> int:
        """How deep its operands are nested."""
        if id(value) not in self._depths:
            deep = 1 + max(map(self.depth, children(value)), default=0)
            self._depths[id(value)] = value, deep  # kept, so that no other one gets its id
        return self._depths[id(value)][1]

    def written_out(self, node: Node, index: Index) -> Steps:
        """A short reduction as an expression, left to right as NumPy adds up to eight terms."""
        assert isinstance(node.op, Reduce)
        operand = node.inputs[0]
        axes = node.op.axes
        total: Expr | None = None
        if node.op.fn == "add" and node.type.dtype.kind == "f":
            total = const(node.op.identity(node.type.dtype), node.type.dtype)
        for position in np.ndindex(*(operand.shape[k] for k in axes)):
            full = full_index(index, operand.shape, axes, node.op.keepdims, position)
            term = yield operand, full
            pair = (total, term) if total is not None else None
            total = (
                term if pair is None else Apply(node.type.dtype, node.op.fn, pair, node.location)
            )
        assert total is not None
        return total


def full_index(
    index: Index,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    keepdims: bool,
    reduced: tuple[Expr | int, ...],
) -> Index:
    """The operand's index, from that of a reduction's result and a place in the reduced axes."""
    rest = iter(index)
    inner = iter(reduced)
    full: list[Expr] = []
    for axis in range(len(shape)):
        if axis in axes:
            position = next(inner)
            full.append(affine(int(position)) if not isinstance(position, Expr) else position)
            if keepdims:
                next(rest)
        else:
            full.append(next(rest))
    return tuple(full)


def broadcast_index(index: Index, shape: tuple[int, ...]) -> Index:
    """The operand's index under NumPy broadcasting."""
    own = index[len(index) - len(shape) :] if shape else ()
    return tuple(affine(0) if n == 1 else i for i, n in zip(own, shape, strict=True))


def _key(expr: Expr) -> object:
    return (expr.terms, expr.constant) if isinstance(expr, Affine) else id(expr)
