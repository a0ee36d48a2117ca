"""Editable graphs: reading, inserting, replacing, erasing, printing, and the way back."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.errors import VerifyError
from nbcomp.graph.editable import EditableGraph
from nbcomp.graph.editable_node import EditError
from nbcomp.graph.interpreter import Interpreter, Transformer, interpret
from nbcomp.graph.ir import Graph
from nbcomp.nn import functional as F
from nbcomp.ops.nn import Gelu, Relu


def program(x: Any, w: Any) -> Any:
    h = np.maximum(x @ w, 0)
    return (h * 2.0).sum(axis=1), h


@pytest.fixture
def inputs(rng: np.random.Generator) -> list[Any]:
    return [rng.standard_normal(s).astype(np.float32) for s in ((4, 6), (6, 5))]


@pytest.fixture
def graph(inputs: list[Any]) -> Graph:
    return nbcomp.compile(program, *inputs).captured


def test_there_and_back(graph: Graph, inputs: list[Any]) -> None:
    edited = EditableGraph(graph)
    edited.lint()
    same = edited.to_graph()
    assert str(same) == str(graph)
    assert [n.op for n in edited] == [
        *("placeholder", "placeholder"),
        *("call_function", "call_function", "call_function", "call_function", "output"),
    ]
    h = edited.find_nodes("call_function", np.maximum)[0]
    assert (h.name, h.args[1], len(h.users)) == ("h", 0.0, 2)
    assert h.next.target is np.multiply
    assert h.next.prev is h
    assert str(h.type) == "f32[4, 5]"
    assert [n.name for n in h.all_input_nodes] == ["matmul"]
    for ours, theirs in zip(interpret(same, inputs), program(*inputs), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_a_printed_table(graph: Graph, capsys: pytest.CaptureFixture[str], golden: Any) -> None:
    graph.print_tabular()
    text = re.sub(r"# line \d+", "# line N", str(EditableGraph(graph)))
    golden(f"{capsys.readouterr().out}\n{text}\n")


def test_insert_replace_erase(graph: Graph, inputs: list[Any]) -> None:
    edited = EditableGraph(graph)
    h = edited.find_nodes("call_function", np.maximum)[0]
    with edited.inserting_after(h):
        new = edited.call_function(np.tanh, (h,))
        newer = edited.call_function(np.add, (new, 1.0))
    assert h.next is new
    assert new.next is newer
    changed = h.replace_all_uses_with(newer)
    assert [n.name for n in changed] == ["multiply", "output"]
    assert new.args == (h,)
    edited.lint()
    x, w = inputs
    expected = np.tanh(np.maximum(x @ w, 0)) + 1
    total, kept = interpret(edited.to_graph(), inputs)
    np.testing.assert_allclose(kept, expected, rtol=1e-6)
    np.testing.assert_allclose(total, (expected * 2).sum(1), rtol=1e-5)
    with pytest.raises(EditError, match="multiply is read by sum"):
        edited.erase_node(edited.find_nodes("call_function", np.multiply)[0])
    edited.output(kept_node := edited.find_nodes("call_function", np.add)[0])
    assert edited.eliminate_dead_code()
    assert not edited.find_nodes("call_function", np.sum)
    assert edited.output_node.args == (kept_node,)
    assert not edited.eliminate_dead_code()


def test_calls_may_be_several_nodes(graph: Graph) -> None:
    edited = EditableGraph(graph)
    x, w = edited.find_nodes("placeholder")
    y = edited.placeholder("y", nbcomp.i64[4, 6])
    mixed = edited.call_function(np.add, (x, y))
    assert mixed.type == nbcomp.f64[4, 6]
    assert edited.find_nodes("call_function", np.astype) or len(edited.nodes) > 9
    assert edited.call_function(F.gelu, (x,), {"approximate": "tanh"}).kwargs == {"tanh": True}
    assert edited.call_function(Relu(), (w,)).target is Relu
    assert edited.call_function(Gelu, (w,), {"tanh": False}).type == w.type
    table = edited.constant(np.arange(6, dtype=np.float32), "table")
    edited.output((edited.call_function(np.multiply, (x, table)), mixed))
    edited.eliminate_dead_code()
    edited.lint()
    a, b = (np.full((4, 6), 2, d) for d in (np.float32, np.int64))
    found = interpret(edited.to_graph(), [a, np.zeros((6, 5), np.float32), b])
    np.testing.assert_array_equal(found[0], a * np.arange(6))
    np.testing.assert_array_equal(found[1], a + b)


def test_attributes_can_be_changed(graph: Graph, inputs: list[Any]) -> None:
    edited = EditableGraph(graph)
    total = edited.find_nodes("call_function", np.sum)[0]
    assert total.kwargs == {"axes": (1,), "keepdims": False}
    total.kwargs = {"axes": (0,), "keepdims": True}
    assert str(total.type) == "f32[1, 5]"
    assert interpret(edited.to_graph(), inputs)[0].shape == (1, 5)


def test_what_has_no_meaning_is_refused(graph: Graph) -> None:
    edited = EditableGraph(graph)
    x, w = edited.find_nodes("placeholder")
    h = edited.find_nodes("call_function", np.maximum)[0]
    product = h.args[0]
    product.args = (w, x)
    with pytest.raises(VerifyError, match=r"matmul: matmul: Input operand 1 has a mismatch"):
        edited.lint()
    assert "%matmul: ? = matmul(%w, %x)" in str(edited)
    product.args = (h, w)
    with pytest.raises(VerifyError, match="reads h, which is computed after it"):
        edited.lint()
    product.args = (x, w)
    edited.lint()
    other = EditableGraph(graph)
    product.args = (other.nodes[0], w)
    with pytest.raises(VerifyError, match="not in this graph"):
        edited.lint()
    with pytest.raises(EditError, match="not in this graph"):
        other.erase_node(h)
    product.args = (x, w)
    with pytest.raises(EditError, match="is not an operator"):
        edited.call_function(print, (x,))
    with pytest.raises(EditError, match="an output"):
        edited.erase_node(edited.output_node)
    with (
        pytest.raises(EditError, match="nothing comes after"),
        edited.inserting_after(edited.output_node),
    ):
        pass


def test_networkx(graph: Graph) -> None:
    drawn = graph.to_networkx()
    assert drawn.nodes["h"]["target"] == "np.maximum"
    assert drawn.nodes["h"]["type"] == "f32[4, 5]"
    assert drawn.edges["w", "matmul"]["position"] == 1
    assert set(drawn.successors("h")) == {"multiply", "output"}


# ------------------------------------------------------------------------------- interpreters


def test_an_interpreter_can_be_overridden(graph: Graph, inputs: list[Any]) -> None:
    class Counting(Interpreter):
        """Notes the order, and takes the absolute value instead of the maximum."""

        def __init__(self, graph: Graph) -> None:
            super().__init__(graph)
            self.seen: list[str] = []
            self.names: list[str] = []

        def run_node(self, node: Any) -> Any:
            self.seen.append(node.op.name)
            self.names.append(node.name)
            return super().run_node(node)

        def call_maximum(self, op: Any, x: Any, zero: Any) -> Any:
            return np.abs(x)

    plain = Interpreter(graph).run(*inputs)
    for ours, theirs in zip(plain, program(*inputs), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    counting = Counting(graph)
    np.testing.assert_allclose(counting.run(*inputs)[1], np.abs(inputs[0] @ inputs[1]), rtol=1e-6)
    assert [n for n in counting.seen if n != "constant"] == ["matmul", "maximum", "multiply", "sum"]
    names = [n for n in counting.names if not n.startswith("constant")]
    assert names == ["matmul", "h", "multiply", "sum"]
    assert [counting.values[n].shape for n in counting.graph.outputs] == [(4,), (4, 5)]
    with pytest.raises(TypeError, match="takes 2 inputs"):
        Interpreter(graph).run(inputs[0])


def test_an_error_says_at_which_node(graph: Graph) -> None:
    class Broken(Interpreter):
        def call_sum(self, op: Any, x: Any) -> Any:
            raise ArithmeticError("no")

    with pytest.raises(ArithmeticError) as error:
        Broken(graph).run(np.ones((4, 6)), np.ones((6, 5)))
    note = "".join(error.value.__notes__)
    assert "while running the node sum: f32[4]" in note
    assert "(h * 2.0).sum(axis=1)" in note


def test_a_transformer_makes_another_graph(graph: Graph, inputs: list[Any]) -> None:
    class Gelus(Transformer):
        def call_maximum(self, op: Any, x: Any, zero: Any) -> Any:
            return self.call(Gelu(), x)

        def call_multiply(self, op: Any, a: Any, b: Any) -> Any:
            return self.numpy(np.add, a, a)

    made = Gelus(EditableGraph(graph)).transform()
    assert "gelu" in str(made)
    assert "maximum" not in str(made)
    assert "%h: f32[4, 5] = gelu" in str(made)
    h = F.gelu(inputs[0] @ inputs[1])
    total, kept = interpret(made, inputs)
    np.testing.assert_allclose(kept, h, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(total, (h + h).sum(1), rtol=1e-5, atol=1e-6)
    assert Transformer(graph).transform().outputs[1].type == graph.outputs[1].type


@pytest.mark.parametrize("name", ["call_function", "call_method", "call_module", "placeholder"])
def test_methods_of_torch_that_nothing_calls_are_refused(name: str) -> None:
    for base in (Interpreter, Transformer):
        with pytest.raises(TypeError, match=f"Mine.{name} would not be called: .* override"):
            type("Mine", (base,), {name: lambda self, *args: None})
