"""Every node knows the user's line and column, and the variable it was assigned to."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

from nbcomp.errors import CaptureError
from nbcomp.frontend.trace import capture
from nbcomp.graph.ir import Graph, Node
from nbcomp.graph.op import Constant, Input

X = np.linspace(-2, 3, 12).reshape(3, 4)
W = np.linspace(-1, 1, 20).reshape(4, 5)


def cell(number: int, source: str, namespace: dict[str, Any]) -> None:
    """Run source as a notebook does: a made-up file name, its text in linecache."""
    name = f"<cell {number}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), namespace)


def named(graph: Graph, name: str) -> Node:
    """The last node of this name."""
    return [n for n in graph.nodes if n.name == name][-1]


def predict(x: Any, scale: float = 2.0) -> Any:
    h = np.maximum(x @ W + 1, 0)
    a, b = h * scale, h - 1
    out = np.zeros((3, 5))
    out[1:] = a[1:]
    out += b
    total: Any = out.sum()
    return (norm := out / total) * norm


def test_names_of_variables() -> None:
    graph = capture(predict, (X,), {}).graph
    names = [n.name for n in graph.nodes if n.name]
    assert names[:3] == ["x", "scale", "W"]
    assert {"h", "a", "b", "out", "total", "norm"} <= set(names)
    assert named(graph, "h").op.name == "maximum"
    assert named(graph, "out").op.name == "add"
    assert named(graph, "total").op.name == "sum"


def test_every_node_has_its_place() -> None:
    graph = capture(predict, (X,), {}).graph
    first = predict.__code__.co_firstlineno
    for node in graph.nodes:
        if not isinstance(node.op, Input):
            assert node.location is not None
            assert node.location.file == __file__
            assert first < node.location.line <= first + 7
            assert node.location.function == "predict"
    product = next(n for n in graph.nodes if n.op.name == "matmul")
    assert product.location is not None
    assert product.location.source() == "x @ W"
    assert named(graph, "h").location is not None
    assert named(graph, "h").location.source() == "np.maximum(x @ W + 1, 0)"  # type: ignore[union-attr]


def test_nodes_of_helpers_are_placed_in_the_helper() -> None:
    namespace: dict[str, Any] = {"np": np}
    cell(1, "def gelu(x):\n    t = np.tanh(x)\n    return 0.5 * x * (1 + t)\n", namespace)
    cell(2, "# a model\ndef f(x):\n    return gelu(x @ x.T) + 1\n", namespace)
    graph = capture(namespace["f"], (X,), {}).graph
    places = {n.op.name: n.location for n in graph.nodes if not isinstance(n.op, Input | Constant)}
    assert (places["tanh"].file, places["tanh"].line) == ("<cell 1>", 2)  # type: ignore[union-attr]
    assert (places["matmul"].file, places["matmul"].line) == ("<cell 2>", 3)  # type: ignore[union-attr]
    assert places["add"].source() == "gelu(x @ x.T) + 1"  # type: ignore[union-attr]
    assert named(graph, "t").op.name == "tanh"


def test_columns_count_characters_of_the_line() -> None:
    namespace: dict[str, Any] = {"np": np}
    cell(3, "def f(x):\n    é = 'ü' * 3; y = x + 1 if x.sum() else x\n    return y\n", namespace)
    with pytest.raises(CaptureError) as raised:
        capture(namespace["f"], (X,), {})
    lines = str(raised.value).splitlines()
    assert lines[1][lines[2].index("^") :].startswith("x.sum() else")
    assert lines[2].count("^") == len("x.sum()")


def test_a_redefined_cell_is_read_anew() -> None:
    namespace: dict[str, Any] = {"np": np}
    cell(4, "def f(x):\n    first = x + 1\n    return first\n", namespace)
    assert capture(namespace["f"], (X,), {}).graph.outputs[0].name == "first"
    cell(4, "def f(x):\n    other = x - 1\n    return other\n", namespace)
    assert capture(namespace["f"], (X,), {}).graph.outputs[0].name == "other"


def test_methods_and_lambdas() -> None:
    graph = capture(lambda x: x.T.reshape(2, 6) * 2, (X,), {}).graph
    assert graph.name == "lambda_"
    assert graph.outputs[0].location is not None
    assert graph.outputs[0].location.source() == "x.T.reshape(2, 6) * 2"
