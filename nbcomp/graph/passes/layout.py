"""Layout: images between convolutions have their channels last, where weights may be kept packed.

With its channels last a place of an image is one vector, or a few, whatever the size of the image:
no vector is part empty, windows need no copy of the image in another order, and a product of one
element with a vector of weights is one instruction.  The program's own arrays keep NumPy's order:
images are turned where they leave.  Margins are part of the memory that an image is written to.

Knows graphs.  It must not know how loops are made, nor how it is seen that weights changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nbcomp.graph.ir import Graph, Node, apply, at
from nbcomp.graph.op import (
    REGISTRY,
    ChannelsLast,
    Constant,
    Elementwise,
    Input,
    Margins,
    Reduce,
    Windowed,
)
from nbcomp.record import remark
from nbcomp.sizes import hint, is_open

TURNED = 5e-11  # seconds for each byte of an image that is turned
OPERATION = 8.7e-12  # seconds for each operation of a convolution
SAVED = 0.05  # of them, where no vector is part empty the other way either
NARROW = 48  # places of a line, below which convolutions walk all lines as one
LANES = 64  # bytes of a vector
WHOLE = 32  # channels, and elements of a line, that fill blocks which are turned in registers


def choose_layout(graph: Graph) -> Graph:
    """Keep images between convolutions with their channels last, their weights packed once."""
    layout = _Layout(graph)
    if not any(map(layout.suits, graph.nodes)):
        return graph
    made = layout.run()
    if not layout.convolutions:
        return graph
    turned = sum(hint(n.type.nbytes) for n in made.nodes if n in layout.turned)
    gain, price = layout.gain, TURNED * turned
    first, count = layout.convolutions[0], len(layout.convolutions)
    if gain < price:
        reason = (
            f"turning {turned:,} bytes of images would take longer than convolutions with their"
            " channels last save"
        )
        remark("missed", "layout", reason, first.location)
        return graph
    each = "the convolution has" if count == 1 else f"{count} convolutions have"
    reason = f"{each} images whose channels come last and weights that are packed once"
    remark("applied", "layout", reason, first.location)
    return made


@dataclass(frozen=True)
class _Framed:
    """An image with margins in memory."""

    node: Node
    margins: Margins
    fill: float

    def serves(self, margins: Margins, fill: float) -> bool:
        """Whether windows with these margins can be taken of it."""
        pairs = zip(margins, self.margins, strict=True)
        inside = all(a <= b and c <= d for (a, c), (b, d) in pairs)
        return inside and (fill == self.fill or not any(map(any, margins)))

    def less(self, margins: Margins) -> Margins:
        """What windows with these margins leave out of it."""
        pairs = zip(margins, self.margins, strict=True)
        return tuple((a - b, c - d) for (a, c), (b, d) in pairs)


class _Layout:
    """Rebuilds a graph; an image may then be there in two orders.

    new: each node's replacement.  last: the same with its channels last, where there is one.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.new: dict[Node, Node] = {}
        self.last: dict[Node, Node] = {}
        self.framed: dict[Node, _Framed] = {}
        self.turned: set[Node] = set()
        self.convolutions: list[Node] = []
        self.gain = 0.0  # seconds

    def run(self) -> Graph:
        for node in self.graph.nodes:
            with at(node.location, node.layers):
                made = self.with_channels_last(node)
                if made is not None:
                    made = replace(made, name=node.name)
                    self.last[node] = self.with_margins(node, made)
                else:
                    inputs = tuple(map(self.first, node.inputs))
                    same = inputs == node.inputs
                    reduced = self.reduced(node)
                    self.new[node] = reduced or (node if same else replace(node, inputs=inputs))
        outputs = tuple(map(self.first, self.graph.outputs))
        return Graph(self.graph.name, tuple(map(self.first, self.graph.inputs)), outputs)

    def first(self, node: Node) -> Node:
        """A node in NumPy's order."""
        if node not in self.new:
            image = self.last[node]
            rank = len(image.shape)
            space = tuple(range(1, rank - 1))
            with at(node.location, node.layers):
                if all(image.shape[k] == 1 for k in space):
                    flat = _view("squeeze", image, space)
                    self.new[node] = _view("expand_dims", flat, tuple(range(2, rank)))
                else:
                    self.new[node] = _view("transpose", image, (0, rank - 1, *space))
                    self.turned.add(self.new[node])
        return self.new[node]

    # ------------------------------------------------------------------------------- operators

    def suits(self, node: Node) -> bool:
        """Whether a node is a convolution that is done with its channels last."""
        op = node.op
        if not isinstance(op, Windowed) or len(node.inputs) != 2 or is_open(node.shape[1:]):
            return False
        x, weight = node.inputs
        if not isinstance(weight.op, Input) or not weight.op.held:
            return False
        each = op.groups == 1 or op.groups == weight.shape[0] == x.shape[1]
        return each and not is_open(x.shape[1:]) and f"{op.name}_last" in REGISTRY

    def with_channels_last(self, node: Node) -> Node | None:
        """The node on images with their channels last; None where it stays as it is."""
        op = node.op
        if isinstance(op, Windowed):
            return self.windows(node, op)
        if isinstance(op, Elementwise) and any(i in self.last for i in node.inputs):
            return self.elementwise(node)
        if op.name == "concatenate" and all(i in self.last for i in node.inputs):
            rank = len(node.shape)
            axis = {0: 0, 1: rank - 1}.get(op.axis, op.axis - 1)  # type: ignore[attr-defined]
            kind: Any = type(op)
            return apply(kind(axis), *(self.last[i] for i in node.inputs))
        return None

    def windows(self, node: Node, op: Windowed) -> Node | None:
        """A convolution or a pool."""
        x, *weights = node.inputs
        one_each = len(node.inputs) == 1 or op.groups > 1
        if weights and not self.suits(node):
            return None
        if (one_each and x not in self.last) or len(node.shape) != len(op.kernel) + 2:
            return None
        kind = REGISTRY.get(f"{op.name}_last")
        if kind is None:
            return None
        assert issubclass(kind, ChannelsLast)
        image, margins = self.image(x, op)
        if weights:
            self.convolutions.append(node)
            self.gain += _saved(node, math.prod(weights[0].shape[1:]))
        return kind.of(op, margins, image, *(self.new[w] for w in weights))

    def image(self, x: Node, op: Windowed) -> tuple[Node, Margins]:
        """What an operator takes windows of, and which part of it: without margins of its own."""
        fill, none = op.fill(x.type.dtype), ((0, 0),) * len(op.kernel)
        if (framed := self.framed.get(x)) and framed.serves(op.margins, fill):
            return framed.node, framed.less(op.margins)
        if x in self.last:
            source = self.last[x] if x not in self.framed else self.framed[x].node
            if x in self.framed:
                source = self.inside(self.framed[x])
            return _padded(source, op.margins, fill, 1), none
        rank = len(x.shape)
        last = (0, *range(2, rank), 1)
        if min(x.shape[1], x.shape[-1]) >= WHOLE:  # lines in their places are then a core's own
            return _padded(_view("transpose", self.first(x), last), op.margins, fill, 1), none
        return _view("transpose", _padded(self.first(x), op.margins, fill, 2), last), none

    def with_margins(self, node: Node, image: Node) -> Node:
        """An image, in memory that has the margins its windows want."""
        wanted = list(self.windows_of(node))
        if not wanted or node in self.graph.outputs:
            return image
        fill = wanted[0].fill(node.type.dtype)
        like = [op.margins for op in wanted if op.fill(node.type.dtype) == fill]
        pairs = [zip(*sides, strict=True) for sides in zip(*like, strict=True)]
        margins = tuple((max(before), max(after)) for before, after in pairs)
        framed = _Framed(_padded(image, margins, fill, 1), margins, fill)
        self.framed[node] = framed
        return self.inside(framed)

    def inside(self, framed: _Framed) -> Node:
        """A framed image without its margins."""
        sizes = framed.node.shape[1:-1]
        space = (slice(b, n - a) for (b, a), n in zip(framed.margins, sizes, strict=True))
        kind: Any = REGISTRY["slice"]
        key = (slice(None), *space, slice(None))
        return apply(kind.of(key, framed.node.shape), framed.node)

    def windows_of(self, node: Node) -> Iterator[Windowed]:
        """The operators that want margins around an image."""
        for user in self.graph.users[node]:
            op = user.op
            if not isinstance(op, Windowed) or user.inputs[0] is not node:
                continue
            if any(map(any, op.margins)) and (len(user.inputs) == 1 or self.suits(user)):
                yield op

    def elementwise(self, node: Node) -> Node | None:
        """An operator on images and on values per channel."""
        rank = len(node.shape)
        operands = [self.operand(i, rank) for i in node.inputs]
        if rank < 3 or None in operands:
            return None
        return apply(node.op, *(i for i in operands if i is not None))

    def operand(self, node: Node, rank: int) -> Node | None:
        """An operand of a result of this rank with its channels last, if it need not be turned."""
        if node in self.last:
            return self.last[node] if len(node.shape) == rank else None
        if node.type.size == 1 and not node.shape:
            return self.first(node)
        missing = rank - len(node.shape)
        shape = (*(1,) * missing, *node.shape)
        if any(n != 1 for n in shape[2:]):
            return None
        full = self.first(node)
        if missing:
            full = _view("expand_dims", full, tuple(range(missing)))
        space = tuple(range(2, rank))
        bare = _view("squeeze", full, space)
        return _view("expand_dims", bare, tuple(range(1, rank - 1)))

    def reduced(self, node: Node) -> Node | None:
        """A reduction of an image over its whole space, in NumPy's order."""
        op = node.op
        if not isinstance(op, Reduce) or node.inputs[0] not in self.last:
            return None
        image = self.last[node.inputs[0]]
        rank = len(image.shape)
        if not set(range(2, rank)) <= set(op.axes):
            return None
        place = {0: 0, 1: rank - 1, **{k: k - 1 for k in range(2, rank)}}
        axes = tuple(sorted(place[k] for k in op.axes))
        made = apply(replace(op, axes=axes, keepdims=False), image)
        if op.keepdims:
            made = _view("expand_dims", made, op.axes)
        return replace(made, name=node.name)


def _saved(node: Node, terms: int) -> float:
    """Seconds that a convolution of so many terms each takes less with its channels last."""
    *rows, line = node.shape[2:]
    places = line if line >= NARROW else math.prod((*rows, line))
    lanes = LANES // node.type.dtype.itemsize
    empty = -(-places // lanes) * lanes / places - 1
    size: int = hint(node.type.size)
    return (SAVED + empty) * OPERATION * 2 * size * terms


def _view(name: str, node: Node, axes: tuple[int, ...]) -> Node:
    """A view of a node that an operator gives for some axes."""
    kind: Any = REGISTRY[name]
    return apply(kind(axes), node)


def _padded(node: Node, margins: Margins, fill: float, axis: int) -> Node:
    """A node with margins around its space, which begins at an axis."""
    if not any(map(any, margins)):
        return node
    rest = len(node.shape) - axis - len(margins)
    none = ((0, 0),)
    before, after = zip(*(*none * axis, *margins, *none * rest), strict=True)
    value = apply(Constant(np.array(fill, node.type.dtype)))
    kind: Any = REGISTRY["pad_constant"]
    return apply(kind(before, after), node, value)
