"""What a drawing of a graph is made of, and the box of each node, with its words.

Plain data: texts, sizes and places, the same for every form of the picture.  Knows graphs; it must
not know how boxes are placed, nor colours or markup.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from nbcomp.display.picture.ranks import Point
from nbcomp.graph.control import Control
from nbcomp.graph.ir import Graph, Node
from nbcomp.graph.op import Constant, Contract, Input, Library, is_indexed
from nbcomp.loop.grammar import Kernel
from nbcomp.loop.printer import kernel_lines
from nbcomp.record import Location
from nbcomp.types import TensorType

TITLE = 7.3  # width of a character of a title and of the smaller texts, in pixels
SMALL = 6.1
LINE = 15.0

Kind = Literal["op", "library", "input", "constant", "output", "group"]


@dataclass(frozen=True)
class Box:
    """A node: its texts, its upper left corner and size, and the number of its group (-1: none)."""

    kind: Kind
    title: str
    detail: str
    tip: str
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    group: int = -1
    line: int = 0  # of the user's source
    places: tuple[Location, ...] = ()  # all of it

    def at(self, x: float, y: float) -> Box:
        """The same elsewhere."""
        texts = (self.kind, self.title, self.detail, self.tip)  # `replace` takes five times as long
        return Box(*texts, self.width, self.height, x, y, self.group, self.line, self.places)


@dataclass(frozen=True)
class Frame:
    """The box around a group."""

    title: str
    kind: str
    group: int
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0


@dataclass(frozen=True)
class Wire:
    """A value on its way: a polyline, vertical at its ends; `label` is its type, at `label_at`.

    arrow: whether it ends at a box, rather than at the edge of a frame, where another wire goes on.
    """

    points: tuple[Point, ...]
    label: str = ""
    label_at: Point = (0.0, 0.0)
    arrow: bool = True

    def moved(self, dx: float, dy: float) -> Wire:
        """The same elsewhere."""
        (x, y), points = self.label_at, tuple([(x + dx, y + dy) for x, y in self.points])
        return Wire(points, self.label, (x + dx, y + dy), self.arrow)


@dataclass(frozen=True)
class Drawing:
    """A whole picture; `summary` says in words what it shows."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    frames: tuple[Frame, ...]
    wires: tuple[Wire, ...]
    summary: str


def inline(node: Node) -> bool:
    """Scalars known when compiling are written inside the operator that uses them."""
    return isinstance(node.op, Constant) and node.op.value.ndim == 0


def short(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _literal(node: Node) -> str:
    assert isinstance(node.op, Constant)
    value = node.op.value[()]
    return f"{value:.4g}" if isinstance(value, (np.floating, float)) else str(value)


def op_title(node: Node) -> str:
    """The operator as it is written on its box: attributes and literal operands in place, `·` for
    others.
    """
    literals = [_literal(n) if inline(n) else "·" for n in node.inputs]
    words = literals if any(w != "·" for w in literals) else []
    for key, value in node.op.attributes().items():
        if value is not None and value is not False and value != () and not _is_program(value):
            text = f"<array {value.shape}>" if isinstance(value, np.ndarray) else str(value)
            text = text[1:-2] if text.endswith(",)") else text
            words.append(key if value is True else f"{key}={text}")
    return short(f"{node.op.name}({', '.join(words)})" if words else node.op.name, 34)


def _is_program(value: object) -> bool:
    """Whether an attribute is a type, a graph or loops: these are shown elsewhere."""
    return isinstance(value, (TensorType, Graph, Kernel)) or (
        isinstance(value, tuple) and any(map(_is_program, value))
    )


def node_box(node: Node, group: int = -1, prefix: str = "") -> Box:
    """A node's box; inside a layer its parameters go without the layer's name."""
    line = node.location.line if node.location else 0
    where = f"line {line}: {node.location.source().strip()}" if node.location else ""
    if isinstance(node.op, (Input, Constant)):
        kind: Kind = "input" if isinstance(node.op, Input) else "constant"
        title, detail = short(node.name.removeprefix(prefix) or kind, 24), ""
    else:
        kind = "library" if _is_called(node) else "op"
        title, detail = op_title(node), short(node.name, 28)
    tip = "\n".join(
        t
        for t in (f"{node.name} = {title}" if detail else node.name or title, str(node.type), where)
        if t
    )
    width = max(len(title) * TITLE, len(detail) * SMALL) + 2 * 9
    return Box(
        kind,
        title,
        detail,
        tip,
        width,
        LINE * (2 if detail else 1) + 9,
        group=group,
        line=line,
        places=node_places(node),
    )


def node_places(node: Node) -> tuple[Location, ...]:
    """The user's places a node stands for: of a control node also those of what is in it."""
    found = [node.location] if node.location else []
    for _, block in node.op.blocks() if isinstance(node.op, Control) else ():
        if isinstance(block, Graph):
            found += [place for inner in block.nodes for place in node_places(inner)]
        elif isinstance(block, Kernel):
            found += [place for _, places, _ in kernel_lines(block) for place in places]
    return tuple(dict.fromkeys(found))


def _is_called(node: Node) -> bool:
    """Whether a library computes it; a product may come to be loops, and then says so."""
    if isinstance(node.op, Contract):
        return not node.op.generated
    return isinstance(node.op, Library) and not is_indexed(node)


def result_box(number: int, count: int, node: Node) -> Box:
    title = "result" if count == 1 else f"result {number}"
    return Box("output", title, "", f"{title}\n{node.type}", len(title) * TITLE + 18, LINE + 9)
