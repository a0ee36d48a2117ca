"""A graph, with its fused groups, as boxes and wires at fixed places: plain data for every picture.

Each bundle (a fused group; in a graph before fusion, a layer) is laid out by itself, with a port on
its upper edge for everything it reads and one on its lower edge for everything it hands out; the
bundles are then boxes of the outer layout.  So a wire never crosses a box it does not belong to,
and no two boxes overlap.  Above `LARGEST` nodes a bundle becomes one box.  Knows graphs and the
layout; it must not know colours or markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from nbcomp.display.bundles import Bundle, kernels, layers, lines, numbers
from nbcomp.display.layout import Layout, Link, Point, layout
from nbcomp.graph.ir import Graph, Node
from nbcomp.graph.op import Constant, Contract, Input, Library
from nbcomp.graph.passes.groups import Group
from nbcomp.record import Location

LARGEST = 300  # nodes drawn one by one

TITLE = 7.3  # width of a character of a title and of the smaller texts, in pixels
SMALL = 6.1
LINE = 15.0
MARGIN = 14.0
HEADER = 24.0  # the strip of a group's box that holds its name

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


@dataclass(frozen=True)
class Drawing:
    """A whole picture; `summary` says in words what it shows."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    frames: tuple[Frame, ...]
    wires: tuple[Wire, ...]
    summary: str


def draw(graph: Graph, groups: Sequence[Group] = ()) -> Drawing:
    """Place the nodes of a graph, inside their groups or else their layers where there are any."""
    shown = [n for n in graph.nodes if not _inline(n)]
    bundles = kernels(groups) if groups else layers(graph)
    picture = _collapsed(graph, bundles) if len(shown) > LARGEST else _nested(graph, bundles)
    return replace(picture, summary=_summary(graph, groups, bundles, len(shown)))


def _summary(graph: Graph, groups: Sequence[Group], bundles: Sequence[Bundle], count: int) -> str:
    operators = Counter(n.op.name for n in graph.nodes if not isinstance(n.op, (Input, Constant)))
    parts = ", ".join(f"{k}× {op}" if k > 1 else op for op, k in operators.most_common(8))
    more = f" and {len(operators) - 8} more" if len(operators) > 8 else ""
    where = f" in {len(bundles)} layers" if bundles else ""
    where = f" in {len(numbers(groups))} kernels" if groups else where
    return f"Graph of {graph.name}: {count} nodes{where}; operators: {parts or 'none'}{more}."


# ------------------------------------------------------------------------------------- the texts


def _inline(node: Node) -> bool:
    """Scalars known when compiling are written inside the operator that uses them."""
    return isinstance(node.op, Constant) and node.op.value.ndim == 0


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _literal(node: Node) -> str:
    assert isinstance(node.op, Constant)
    value = node.op.value[()]
    return f"{value:.4g}" if isinstance(value, (np.floating, float)) else str(value)


def op_title(node: Node) -> str:
    """The operator as it is written on its box: attributes and literal operands in place, `·` for
    others.
    """
    literals = [_literal(n) if _inline(n) else "·" for n in node.inputs]
    words = literals if any(w != "·" for w in literals) else []
    for key, value in node.op.attributes().items():
        if value is not False and value != ():
            text = f"<array {value.shape}>" if isinstance(value, np.ndarray) else str(value)
            text = text[1:-2] if text.endswith(",)") else text
            words.append(key if value is True else f"{key}={text}")
    return _short(f"{node.op.name}({', '.join(words)})" if words else node.op.name, 34)


def _box(node: Node, group: int = -1, prefix: str = "") -> Box:
    """A node's box; inside a layer its parameters go without the layer's name."""
    line = node.location.line if node.location else 0
    places = (node.location,) if node.location else ()
    where = f"line {line}: {node.location.source().strip()}" if node.location else ""
    if isinstance(node.op, (Input, Constant)):
        kind: Kind = "input" if isinstance(node.op, Input) else "constant"
        title, detail = _short(node.name.removeprefix(prefix) or kind, 24), ""
    else:
        kind = "library" if _is_called(node) else "op"
        title, detail = op_title(node), _short(node.name, 28)
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
        places=places,
    )


def _is_called(node: Node) -> bool:
    """Whether a library computes it; a product may come to be loops, and then says so."""
    if isinstance(node.op, Contract):
        return not node.op.generated
    return isinstance(node.op, Library)


def _result(number: int, count: int, node: Node) -> Box:
    title = "result" if count == 1 else f"result {number}"
    return Box("output", title, "", f"{title}\n{node.type}", len(title) * TITLE + 18, LINE + 9)


# ------------------------------------------------------------------------------- scenes and ports


@dataclass
class _Scene:
    """Boxes to be placed (or, for ports, points), and the wires between them, before the layout."""

    boxes: list[Box | Frame | None] = field(default_factory=list)
    links: dict[Link, str] = field(default_factory=dict)  # with their labels
    top: list[int] = field(default_factory=list)
    bottom: list[int] = field(default_factory=list)

    def add(self, box: Box | Frame | None) -> int:
        self.boxes.append(box)
        return len(self.boxes) - 1

    def connect(
        self, source: int, target: int, label: str, out: float = 0.0, into: float = 0.0
    ) -> None:
        self.links.setdefault(Link(source, target, out, into), label)

    def place(self) -> tuple[Layout, list[Wire]]:
        """Run the layout; a label stands at the foot of its source, once per port."""
        label_width = {}
        for link, label in self.links.items():
            label_width[link.source] = len(label) * SMALL + 8
        sizes = [
            (max(b.width if b else 4.0, label_width.get(i, 0.0)), b.height if b else 0.0)
            for i, b in enumerate(self.boxes)
        ]
        placed = layout(sizes, list(self.links), self.top, self.bottom)
        wires, labelled = [], set()
        for (link, label), route in zip(self.links.items(), placed.routes, strict=True):
            first = (link.source, link.out) not in labelled
            labelled.add((link.source, link.out))
            x, y = route[0]
            arrow = isinstance(self.boxes[link.target], Box)
            wires.append(Wire(route, label if first else "", (x, y + 11), arrow))
        return placed, wires


@dataclass
class _Inside:
    """A bundle laid out by itself: its frame, its boxes and wires, and the x of its ports."""

    frame: Frame
    boxes: list[Box]
    wires: list[Wire]
    reads: dict[Node, float]
    hands: dict[Node, float]


def _inside(bundle: Bundle) -> _Inside:
    members = dict.fromkeys(n for n in bundle.nodes if not _inline(n))
    scene = _Scene()
    place = {n: scene.add(_box(n, bundle.number, bundle.prefix)) for n in members}
    reads: dict[Node, int] = {}
    for node in members:
        for operand in node.inputs:
            if operand in place:
                scene.connect(place[operand], place[node], str(operand.type))
            elif not _inline(operand):
                if operand not in reads:
                    reads[operand] = scene.add(None)
                    scene.top.append(reads[operand])
                scene.connect(reads[operand], place[node], "")
    hands = {}
    for node in bundle.outputs:
        hands[node] = scene.add(None)
        scene.bottom.append(hands[node])
        scene.connect(place[node], hands[node], str(node.type))
    placed, wires = scene.place()
    title = bundle.name
    width = max(placed.width, (len(title) + len(bundle.kind) + 3) * SMALL) + 2 * MARGIN
    dx = (width - placed.width) / 2
    # The first and the last gap of the layout lie between the ports and the nodes: room for the
    # header.
    height = max(placed.height + HEADER * (not reads), LINE) + HEADER * (not hands)
    dy = 0.0 if reads else HEADER
    frame = Frame(title, bundle.kind, bundle.number, width, height)
    boxes = []
    for box, (x, y) in zip(scene.boxes, placed.centres, strict=True):
        if isinstance(box, Box):
            boxes.append(replace(box, x=x - box.width / 2 + dx, y=y - box.height / 2 + dy))

    def ports(of: dict[Node, int]) -> dict[Node, float]:
        return {n: placed.centres[i][0] + dx - width / 2 for n, i in of.items()}

    return _Inside(frame, boxes, [_moved(w, dx, dy) for w in wires], ports(reads), ports(hands))


def _moved(wire: Wire, dx: float, dy: float) -> Wire:
    points = tuple((x + dx, y + dy) for x, y in wire.points)
    return replace(wire, points=points, label_at=(wire.label_at[0] + dx, wire.label_at[1] + dy))


def _nested(graph: Graph, bundles: Sequence[Bundle]) -> Drawing:
    insides = [_inside(bundle) for bundle in bundles]
    scene = _Scene()
    frames = [scene.add(inside.frame) for inside in insides]
    places = _Places(scene)
    for frame, inside in zip(frames, insides, strict=True):
        for node, port in inside.hands.items():
            places.of.setdefault(node, (frame, port, ""))
    grouped = {n for bundle in bundles for n in bundle.nodes}
    loose = [n for n in graph.nodes if not _inline(n) and n not in grouped]
    for node in loose:
        places.of[node] = (scene.add(_box(node)), 0.0, str(node.type))
    for node in loose:
        for operand in node.inputs:
            places.wire(operand, places.of[node][0])
    for frame, inside in zip(frames, insides, strict=True):
        for node, port in inside.reads.items():
            places.wire(node, frame, port)
    for i, node in enumerate(graph.outputs):
        places.wire(node, scene.add(_result(i, len(graph.outputs), node)))
    return _assemble(scene, dict(zip(frames, insides, strict=True)))


@dataclass
class _Places:
    """Where in a scene the value of each node comes from: box, port, and the label of its wires."""

    scene: _Scene
    of: dict[Node, tuple[int, float, str]] = field(default_factory=dict)

    def wire(self, operand: Node, target: int, into: float = 0.0) -> None:
        """Connect an operand, unless it is written inside the box that uses it."""
        if operand in self.of:
            source, out, label = self.of[operand]
            self.scene.connect(source, target, label, out, into)


def _assemble(scene: _Scene, insides: dict[int, _Inside]) -> Drawing:
    """Place the outer scene and put the bundles' insides into their frames."""
    placed, wires = scene.place()
    boxes, frames = [], []
    for i, (box, (x, y)) in enumerate(zip(scene.boxes, placed.centres, strict=True)):
        if box is None:
            continue
        at = replace(box, x=x - box.width / 2 + MARGIN, y=y - box.height / 2 + MARGIN)
        if isinstance(at, Box):
            boxes.append(at)
            continue
        frames.append(at)
        boxes += [replace(b, x=b.x + at.x, y=b.y + at.y) for b in insides[i].boxes]
        wires += [_moved(w, at.x - MARGIN, at.y - MARGIN) for w in insides[i].wires]
    moved = tuple(_moved(w, MARGIN, MARGIN) for w in wires)
    size = (placed.width + 2 * MARGIN, placed.height + 2 * MARGIN)
    return Drawing(*size, tuple(boxes), tuple(frames), moved, "")


# ------------------------------------------------------------------------------------ large graphs


def _collapsed(graph: Graph, bundles: Sequence[Bundle]) -> Drawing:
    """One box per bundle, or per run of consecutive lines where that would still be too many."""
    loose = len(graph.nodes) - sum(len(b.nodes) - 1 for b in bundles)
    if not bundles or (bundles[0].kind == "layer" and loose > LARGEST):
        bundles = list(lines(graph, LARGEST))
    scene = _Scene()
    maker: dict[Node, int] = {}
    for bundle in bundles:
        title, kind, nodes, group = bundle.name, bundle.kind, bundle.nodes, bundle.number
        ops = Counter(n.op.name for n in nodes if not _inline(n))
        detail = _short(" ".join(f"{op}×{k}" if k > 1 else op for op, k in ops.items()), 44)
        width = max(len(title) * TITLE, len(detail) * SMALL) + 18
        tip = f"{title} ({kind})\n{detail}"
        places = tuple(dict.fromkeys(n.location for n in nodes if n.location))
        size = (width, 2 * LINE + 9)
        place = scene.add(Box("group", title, detail, tip, *size, group=group, places=places))
        maker.update(dict.fromkeys(nodes, place))
    for node in graph.nodes:
        if node not in maker and not _inline(node):
            maker[node] = scene.add(_box(node))
    for node in graph.nodes:
        for operand in node.inputs:
            if operand in maker and node in maker and maker[operand] != maker[node]:
                scene.connect(maker[operand], maker[node], "")
    for i, node in enumerate(graph.outputs):
        if node in maker:
            scene.connect(
                maker[node], scene.add(_result(i, len(graph.outputs), node)), str(node.type)
            )
    return _assemble(scene, {})
