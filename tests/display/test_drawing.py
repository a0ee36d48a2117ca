"""Drawings of graphs: what is in them, and that the SVG is safe anywhere."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from nbcomp.display.picture.boxes import Box, Drawing, Frame, op_title
from nbcomp.display.picture.drawing import LARGEST, draw
from nbcomp.display.picture.svg import PALETTE, svg
from nbcomp.graph.ir import Graph, Node
from nbcomp.graph.op import Constant
from nbcomp.options import Options
from nbcomp.pipeline import compile_for
from nbcomp.types import FLOAT32, TensorType

MakeNode = Callable[..., Node]


def apart(a: Box | Frame, b: Box | Frame) -> bool:
    return (
        a.x + a.width <= b.x + 1e-6
        or b.x + b.width <= a.x + 1e-6
        or a.y + a.height <= b.y + 1e-6
        or b.y + b.height <= a.y + 1e-6
    )


def inside(box: Box, frame: Frame) -> bool:
    return (
        frame.x <= box.x
        and frame.y <= box.y
        and box.x + box.width <= frame.x + frame.width
        and box.y + box.height <= frame.y + frame.height
    )


def check_geometry(drawing: Drawing) -> None:
    assert all(apart(a, b) for a, b in combinations(drawing.frames, 2))
    assert all(apart(a, b) for a, b in combinations(drawing.boxes, 2))
    for box in drawing.boxes:
        for frame in drawing.frames:
            assert inside(box, frame) == (box.group == frame.group) or apart(box, frame)


def test_the_graph_as_written(compiled: SimpleNamespace) -> None:
    drawing = draw(compiled.captured)
    titles = [b.title for b in drawing.boxes]
    assert titles.count("matmul") == 2
    assert "maximum(·, 0)" in titles  # a literal stands inside its operator
    assert "sum(axes=1, keepdims)" in titles
    assert {b.detail for b in drawing.boxes} >= {"h", "z", "e"}  # the user's names
    assert {w.label for w in drawing.wires} >= {"f32[1797, 64]", "f32[1797, 128]", "f32[10]"}
    assert not drawing.frames
    check_geometry(drawing)


def test_the_graph_in_its_kernels(compiled: SimpleNamespace) -> None:
    drawing = draw(compiled.graph, compiled.groups)
    assert [f.title for f in drawing.frames] == [g.name for g in compiled.groups]
    check_geometry(drawing)
    assert "4 kernels" in drawing.summary


def test_a_node_that_two_groups_compute_is_drawn_in_both(
    make_node: MakeNode, make_input: MakeNode
) -> None:
    x = make_input("x", (4,), 0)
    twice = make_node("negative", (4,), x)
    a, b = make_node("exp", (4,), twice), make_node("log", (4,), twice)
    groups = [
        SimpleNamespace(name=n.op.name, kind="map", nodes=(twice, n), outputs=(n,)) for n in (a, b)
    ]
    drawing = draw(Graph("f", (x,), (a, b)), groups)
    assert [b.title for b in drawing.boxes].count("negative") == 2
    check_geometry(drawing)


def test_a_group_without_inputs(make_node: MakeNode) -> None:
    a = make_node("arange", (4,))
    group = SimpleNamespace(name="arange", kind="map", nodes=(a,), outputs=(a,))
    drawing = draw(Graph("f", (), (a,)), [group])
    check_geometry(drawing)
    assert sorted(b.title for b in drawing.boxes) == ["arange", "result"]


def test_dashes_are_for_libraries() -> None:
    x, w = np.ones((64, 64), np.float32), np.ones((64, 32), np.float32)
    for without, kind in (("generate", "library"), ("blas", "op")):
        made = compile_for("llvm", Options(without={without}))(lambda x, w: x @ w, x, w)
        (box,) = [b for b in draw(made.graph, made.groups).boxes if "matmul" in b.title]
        assert box.kind == kind


@pytest.mark.parametrize("seed", range(12))
def test_random_groups(seed: int, make_node: MakeNode, make_input: MakeNode) -> None:
    rng = np.random.default_rng(seed)
    nodes = [make_input(f"x{i}", (8,), i) for i in range(3)]
    groups = []
    for g in range(rng.integers(1, 6)):
        members = []
        for _ in range(rng.integers(1, 6)):
            operands = rng.choice(len(nodes), size=rng.integers(1, 4))
            members.append(make_node("add", (8,), *(nodes[i] for i in operands)))
            nodes.append(members[-1])
        groups.append(
            SimpleNamespace(name=f"k{g}", kind="map", nodes=tuple(members), outputs=tuple(members))
        )
    graph = Graph("f", tuple(nodes[:3]), (nodes[-1],))
    drawing = draw(graph, groups)
    check_geometry(drawing)
    assert drawing == draw(graph, groups)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_large_graph_is_collapsed(
    grouped: bool, make_node: MakeNode, make_input: MakeNode
) -> None:
    x = make_input("x", (8,), 0)
    chain = [x]
    for i in range(2 * LARGEST):
        chain.append(make_node("exp", (8,), chain[-1], line=i // 20))
    parts = [tuple(chain[1 + i : 1 + i + 50]) for i in range(0, 2 * LARGEST, 50)]
    groups = [
        SimpleNamespace(name=f"k{i}", kind="map", nodes=p, outputs=p[-1:])
        for i, p in enumerate(parts)
    ]
    drawing = draw(Graph("f", (x,), (chain[-1],)), groups if grouped else ())
    assert len(drawing.boxes) <= LARGEST
    assert any(b.kind == "group" for b in drawing.boxes)
    check_geometry(drawing)


def test_literals_are_written_short(make_node: MakeNode) -> None:
    third = Node(Constant(np.asarray(1 / 3, np.float32)), (), TensorType(FLOAT32, ()))
    assert (
        op_title(make_node("multiply", (4,), third, make_node("x", (4,)))) == "multiply(0.3333, ·)"
    )


# --------------------------------------------------------------------------------------------- svg


def elements(text: str) -> list[Any]:
    return list(ElementTree.fromstring(text).iter())


def test_svg_is_plain(compiled: SimpleNamespace) -> None:
    found = elements(svg(draw(compiled.graph, compiled.groups)))
    names = {e.tag.removeprefix("{http://www.w3.org/2000/svg}") for e in found}
    assert names == {"svg", "title", "g", "rect", "path", "text", "tspan"}
    attributes = {a for e in found for a in e.attrib}
    assert not attributes & {"id", "class", "style"}
    assert not any(a.startswith("on") or "href" in a for a in attributes)


def test_svg_says_what_it_shows(compiled: SimpleNamespace) -> None:
    drawing = draw(compiled.graph, compiled.groups)
    first, title = elements(svg(drawing))[:2]
    assert first.get("role") == "img"
    assert title.text == drawing.summary


def test_names_cannot_break_out(make_node: MakeNode, make_input: MakeNode) -> None:
    evil = '</text><script>alert("x")</script>'
    x = make_input(evil, (4,), 0)
    y = make_node("exp", (4,), x, user=evil)
    text = svg(
        draw(
            Graph(evil, (x,), (y,)),
            [SimpleNamespace(name=evil, kind=evil, nodes=(y,), outputs=(y,))],
        )
    )
    assert "<script" not in text
    assert not any("script" in e.tag for e in elements(text))


def test_neighbouring_groups_differ_in_colour() -> None:
    assert len({border for border, _ in PALETTE}) == len(PALETTE)
    for border, fill in PALETTE:
        assert contrast("#1f2328", fill) > 7  # black text on every tint
        assert contrast(border, "#ffffff") > 3  # a border is seen on white
        assert contrast(border, "#111111") > 3  # and on black


def contrast(a: str, b: str) -> float:
    """The contrast ratio of WCAG 2."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)
