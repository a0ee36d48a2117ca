"""The user's modules as frames in the drawing of the graph as it was captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import nn
from nbcomp.display.picture.clusters import layers
from nbcomp.display.picture.drawing import LARGEST, draw
from nbcomp.display.picture.svg import svg
from nbcomp.graph.ir import Graph
from tests.display.test_drawing import check_geometry

X = np.ones((4, 16), np.float32)


class Inner(nn.Module):
    def __init__(self, width: int) -> None:
        self.linear = nn.Linear(width, width)

    def scaled(self, x: Any) -> Any:
        return self.linear(x) * 0.5

    def forward(self, x: Any) -> Any:
        return np.tanh(self.scaled(x)) + 1


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        self.norm = nn.LayerNorm(width)
        self.inner = Inner(width)

    def forward(self, x: Any) -> Any:
        return x + self.inner(self.norm(x)).relu()


class Net(nn.Module):
    def __init__(self, width: int, depth: int) -> None:
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return x * 2


class Twice(nn.Module):
    def __init__(self, width: int) -> None:
        self.inner = Inner(width)

    def forward(self, x: Any) -> Any:
        return self.inner(self.inner(x) - 1)


def jitted(model: Any) -> Graph:
    f = nbcomp.jit(model)
    f(X)
    assert f.compiled is not None
    return f.compiled.captured


CAPTURES: list[Callable[[Any], Graph]] = [lambda model: nbcomp.compile(model, X).captured, jitted]


@pytest.mark.parametrize("captured", CAPTURES)
def test_modules_frame_what_they_compute(captured: Callable[[Any], Graph]) -> None:
    graph = captured(Net(16, 2))
    drawing = draw(graph)
    assert [(f.title, f.kind) for f in drawing.frames] == [
        ("blocks.0: Block", "layer"),
        ("blocks.1: Block", "layer"),
    ]
    inside = [b.title for b in drawing.boxes if b.group == 1]
    assert inside == [
        *("norm_weight", "norm_bias", "inner_linear_weight", "inner_linear_bias"),
        *("layer_norm(rank=1, eps=1e-05)", "linear", "multiply(·, 0.5)", "tanh"),
        *("add(·, 1)", "relu", "add"),
    ]
    assert "in 2 layers" in drawing.summary
    check_geometry(drawing)
    assert "blocks.0: Block" in svg(drawing)


@pytest.mark.parametrize("captured", CAPTURES)
def test_a_module_inside_another_is_noted(captured: Callable[[Any], Graph]) -> None:
    (tanh, *_) = [n for n in captured(Net(16, 2)).nodes if n.op.name == "tanh"]
    assert tanh.layers == ("Net", "blocks.0: Block", "blocks.0.inner: Inner")


@pytest.mark.parametrize("captured", CAPTURES)
def test_a_call_is_a_layer(captured: Callable[[Any], Graph]) -> None:
    """A module that is called twice is two frames: one around both would be on a cycle."""
    graph = captured(Twice(16))
    found = layers(graph)
    assert [b.name for b in found] == ["inner: Inner", "inner: Inner"]
    assert not set(found[0].nodes) & set(found[1].nodes)
    check_geometry(draw(graph))


def test_large_networks_show_a_box_for_each_layer() -> None:
    graph = nbcomp.compile(Net(16, 40), X).captured
    assert len(graph.nodes) > LARGEST
    drawing = draw(graph)
    titles = [b.title for b in drawing.boxes if b.kind == "group"]
    assert titles == [f"blocks.{k}: Block" for k in range(40)]


def test_a_large_layer_gives_way_to_its_own() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            self.net = Net(16, 8)

        def forward(self, x: Any) -> Any:
            return np.exp(self.net(x + 1))

    names = [b.name for b in layers(nbcomp.compile(Outer(), X).captured)]
    assert names == [f"net.blocks.{k}: Block" for k in range(8)]


def test_functions_have_no_layers() -> None:
    graph = nbcomp.compile(lambda x: np.tanh(x) + 1, X).captured
    assert not layers(graph)


def test_parameters_of_large_networks_are_in_the_boxes_that_need_them() -> None:
    compiled = nbcomp.compile(Net(16, LARGEST // 8), np.ones((4, 16), np.float32))
    for drawing in (draw(compiled.captured), draw(compiled.graph, compiled.groups)):
        inputs = [box.title for box in drawing.boxes if box.kind == "input"]
        assert inputs in (["x"], [])
