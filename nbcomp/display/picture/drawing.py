"""A graph, with its fused groups, as boxes and wires at fixed places: plain data for every picture.

Each cluster (a fused group; in a graph before fusion, a layer) is laid out by itself, with a port
on its upper edge for everything it reads and one on its lower edge for everything it hands out; the
clusters are then boxes of the outer layout.  So a wire never crosses a box it does not belong to,
and no two boxes overlap.  Above `LARGEST` nodes a cluster becomes one box.  Knows graphs and the
layout; it must not know colours or markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from nbcomp.display.picture.boxes import (
    LINE,
    SMALL,
    TITLE,
    Box,
    Drawing,
    Frame,
    Wire,
    inline,
    node_box,
    node_places,
    result_box,
    short,
)
from nbcomp.display.picture.clusters import Cluster, kernels, layers, lines, numbers
from nbcomp.display.picture.layout import Layout, layout
from nbcomp.display.picture.ranks import Link
from nbcomp.graph.ir import Graph, Node
from nbcomp.graph.op import Constant, Input, View
from nbcomp.graph.passes.groups import Group

LARGEST = 300  # nodes drawn one by one
MARGIN = 14.0
NAME = 6.6  # width of a character of a frame's name, which has a sign before it
HEADER = 24.0  # the strip of a cluster's frame that holds its name


def draw(graph: Graph, groups: Sequence[Group] = ()) -> Drawing:
    """Place the nodes of a graph, inside their groups or else their layers where there are any."""
    shown = [n for n in graph.nodes if not inline(n)]
    clusters = kernels(groups) if groups else layers(graph)
    picture = _collapsed(graph, clusters) if len(shown) > LARGEST else _nested(graph, clusters)
    return replace(picture, summary=_summary(graph, groups, clusters, len(shown)))


def stacked(drawings: Sequence[Drawing], groups: Sequence[int] = ()) -> Drawing | None:
    """Several drawings one below the other, as one; None for none.

    groups: how many groups each has, which are numbered through.
    """
    if len(drawings) < 2:
        return drawings[0] if drawings else None
    boxes, frames, wires = list[Box](), list[Frame](), list[Wire]()
    width, height, before = max(d.width for d in drawings), 0.0, 0
    for number, d in enumerate(drawings):
        dx = (width - d.width) / 2
        for b in d.boxes:
            group = b.group + before if b.group >= 0 else b.group
            boxes.append(replace(b.at(b.x + dx, b.y + height), group=group))
        for f in d.frames:
            frames.append(replace(f, x=f.x + dx, y=f.y + height, group=f.group + before))
        wires += [w.moved(dx, height) for w in d.wires]
        height += d.height
        before += groups[number] if groups else len(d.frames)
    summary = " ".join(d.summary for d in drawings)
    return Drawing(width, height, tuple(boxes), tuple(frames), tuple(wires), summary)


def _summary(graph: Graph, groups: Sequence[Group], clusters: Sequence[Cluster], count: int) -> str:
    operators = Counter(n.op.name for n in graph.nodes if not isinstance(n.op, (Input, Constant)))
    parts = ", ".join(f"{k}× {op}" if k > 1 else op for op, k in operators.most_common(8))
    more = f" and {len(operators) - 8} more" if len(operators) > 8 else ""
    where = f" in {len(clusters)} layers" if clusters else ""
    where = f" in {len(numbers(groups))} kernels" if groups else where
    return f"Graph of {graph.name}: {count} nodes{where}; operators: {parts or 'none'}{more}."


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
    """A cluster laid out by itself: its frame, its boxes and wires, and the x of its ports."""

    frame: Frame
    boxes: list[Box]
    wires: list[Wire]
    reads: dict[Node, float]
    hands: dict[Node, float]


def _inside(cluster: Cluster) -> _Inside:
    members = dict.fromkeys(n for n in cluster.nodes if not inline(n))
    scene = _Scene()
    place = {n: scene.add(node_box(n, cluster.number, cluster.prefix)) for n in members}
    reads: dict[Node, int] = {}
    for node in members:
        for operand in node.inputs:
            if operand in place:
                scene.connect(place[operand], place[node], str(operand.type))
            elif not inline(operand):
                if operand not in reads:
                    reads[operand] = scene.add(None)
                    scene.top.append(reads[operand])
                scene.connect(reads[operand], place[node], "")
    hands = {}
    for node in cluster.outputs:
        hands[node] = scene.add(None)
        scene.bottom.append(hands[node])
        scene.connect(place[node], hands[node], str(node.type))
    placed, wires = scene.place()
    title = cluster.name
    width = max(placed.width, (len(title) + len(cluster.kind) + 5) * NAME) + 2 * MARGIN
    dx = (width - placed.width) / 2
    # The first and the last gap of the layout lie between the ports and the nodes: room for the
    # header.
    height = max(placed.height + HEADER * (not reads), LINE) + HEADER * (not hands)
    dy = 0.0 if reads else HEADER
    frame = Frame(title, cluster.kind, cluster.number, width, height)
    boxes = []
    for box, (x, y) in zip(scene.boxes, placed.centres, strict=True):
        if isinstance(box, Box):
            boxes.append(box.at(x - box.width / 2 + dx, y - box.height / 2 + dy))

    def ports(of: dict[Node, int]) -> dict[Node, float]:
        return {n: placed.centres[i][0] + dx - width / 2 for n, i in of.items()}

    return _Inside(frame, boxes, [w.moved(dx, dy) for w in wires], ports(reads), ports(hands))


def _nested(graph: Graph, clusters: Sequence[Cluster]) -> Drawing:
    insides = [_inside(cluster) for cluster in clusters]
    scene = _Scene()
    frames = [scene.add(inside.frame) for inside in insides]
    places = _Places(scene)
    for frame, inside in zip(frames, insides, strict=True):
        for node, port in inside.hands.items():
            places.of.setdefault(node, (frame, port, ""))
    grouped = {n for cluster in clusters for n in cluster.nodes}
    loose = [n for n in graph.nodes if not inline(n) and n not in grouped]
    for node in loose:
        places.of[node] = (scene.add(node_box(node)), 0.0, str(node.type))
    for node in loose:
        for operand in node.inputs:
            places.wire(operand, places.of[node][0])
    for frame, inside in zip(frames, insides, strict=True):
        for node, port in inside.reads.items():
            places.wire(node, frame, port)
    for i, node in enumerate(graph.outputs):
        places.wire(node, scene.add(result_box(i, len(graph.outputs), node)))
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
    """Place the outer scene and put the clusters' insides into their frames."""
    placed, wires = scene.place()
    boxes, frames = [], []
    for i, (box, (x, y)) in enumerate(zip(scene.boxes, placed.centres, strict=True)):
        if box is None:
            continue
        left, top = x - box.width / 2 + MARGIN, y - box.height / 2 + MARGIN
        at = box.at(left, top) if isinstance(box, Box) else replace(box, x=left, y=top)
        if isinstance(at, Box):
            boxes.append(at)
            continue
        frames.append(at)
        boxes += [b.at(b.x + at.x, b.y + at.y) for b in insides[i].boxes]
        wires += [w.moved(at.x - MARGIN, at.y - MARGIN) for w in insides[i].wires]
    moved = tuple(w.moved(MARGIN, MARGIN) for w in wires)
    size = (placed.width + 2 * MARGIN, placed.height + 2 * MARGIN)
    return Drawing(*size, tuple(boxes), tuple(frames), moved, "")


# ------------------------------------------------------------------------------------ large graphs


def _collapsed(graph: Graph, clusters: Sequence[Cluster]) -> Drawing:
    """One box per cluster, or per run of consecutive lines where that would still be too many."""
    loose = len(graph.nodes) - sum(len(b.nodes) - 1 for b in clusters)
    if not clusters or (clusters[0].kind == "layer" and loose > LARGEST):
        clusters = list(lines(graph, LARGEST))
    scene = _Scene()
    maker: dict[Node, int] = {}
    for cluster in clusters:
        title, kind, nodes, group = cluster.name, cluster.kind, cluster.nodes, cluster.number
        ops = Counter(n.op.name for n in nodes if not inline(n))
        detail = short(" ".join(f"{op}×{k}" if k > 1 else op for op, k in ops.items()), 44)
        width = max(len(title) * TITLE, len(detail) * SMALL) + 18
        tip = f"{title} ({kind})\n{detail}"
        places = tuple(dict.fromkeys(place for n in nodes for place in node_places(n)))
        size = (width, 2 * LINE + 9)
        place = scene.add(Box("group", title, detail, tip, *size, group=group, places=places))
        maker.update(dict.fromkeys(nodes, place))
    _absorb(graph, maker)
    for node in graph.nodes:
        if node not in maker and not inline(node):
            maker[node] = scene.add(node_box(node))
    for node in graph.nodes:
        for operand in node.inputs:
            if operand in maker and node in maker and maker[operand] != maker[node]:
                scene.connect(maker[operand], maker[node], "")
    for i, node in enumerate(graph.outputs):
        if node in maker:
            scene.connect(
                maker[node], scene.add(result_box(i, len(graph.outputs), node)), str(node.type)
            )
    return _assemble(scene, {})


def _absorb(graph: Graph, maker: dict[Node, int]) -> None:
    """Parameters and views that only one box needs are in it: what comes before the first layer of
    a large network would be wider than the network."""
    known = {*maker, *graph.outputs}
    for node in reversed(graph.nodes):
        own = isinstance(node.op, (View, Constant)) or (isinstance(node.op, Input) and node.layers)
        users = {maker.get(user, -1) for user in graph.users[node]}
        if own and node not in known and len(users) == 1 and -1 not in users:
            maker[node] = users.pop()
