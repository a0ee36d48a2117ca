"""The graph IR itself: order, users, rewriting, printing, checking, interpreting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from nbcomp.errors import VerifyError
from nbcomp.graph.interpreter import evaluate, interpret
from nbcomp.graph.ir import Graph, Node, apply, at, rewrite, told_apart, topological
from nbcomp.graph.op import REGISTRY, Composite, Constant, Input, Op
from nbcomp.graph.printer import node_names
from nbcomp.graph.verifier import verify
from nbcomp.record import Location
from nbcomp.types import TensorType, f32
from tests.programs import graph_of, inputs, ops, text


def op(name: str, *fields: Any) -> Op:
    return REGISTRY[name](*fields)


def test_nodes_come_after_their_operands_once() -> None:
    (a,) = inputs(f32[4])
    left, right = apply(op("exp"), a), apply(op("negative"), a)
    total = apply(op("add"), left, right)
    graph = Graph("g", (a,), (total, left))
    assert graph.nodes == (a, left, right, total)


def test_unused_inputs_are_nodes_and_dead_code_is_not() -> None:
    a, b = inputs(f32[4], f32[4])
    apply(op("exp"), b)
    graph = Graph("g", (a, b), (apply(op("negative"), a),))
    assert [n.op.name for n in graph.nodes] == ["input", "input", "negative"]


def test_users_are_listed_once_in_order() -> None:
    (a,) = inputs(f32[4])
    square = apply(op("multiply"), a, a)
    last = apply(op("add"), square, a)
    graph = Graph("g", (a,), (last,))
    assert graph.users == {a: (square, last), square: (last,), last: ()}


def test_what_has_the_same_words_is_told_apart() -> None:
    (a,) = inputs(f32[4])
    here, below = Location("cell", 3), Location("cell", 4)

    def node(name: str, location: Location, operator: str = "exp") -> Node:
        return replace(apply(op(operator), a), name=name, location=location)

    assert told_apart(node("h", here), node("g", here)) == ("`h`", "`g`")
    assert told_apart(node("h", here), node("h", below)) == ("`h` of line 3", "`h` of line 4")
    other = node("h", here, "negative")
    assert told_apart(node("h", here), other) == ("`h` (exp)", "`h` (negative)")
    assert told_apart(node("h", here), node("h", here)) == ("`h`", "the next `h`")


def test_long_chains_need_no_recursion() -> None:
    (node,) = first = inputs(f32[4])
    for _ in range(20_000):
        node = apply(op("negative"), node)
    graph = Graph("g", first, (node,))
    assert len(graph.nodes) == 20_001
    assert len(list(topological([node]))) == 20_001
    assert len(rewrite(graph, lambda n, i: None).nodes) == 20_001


def test_rewrite_rebuilds_only_what_changes() -> None:
    (a,) = inputs(f32[4])
    kept, changed = apply(op("exp"), a), apply(op("negative"), a, name="minus")
    user = apply(op("add"), kept, changed, name="total")
    graph = Graph("g", (a,), (user, kept))

    def rule(node: Node, new: tuple[Node, ...]) -> Node | None:
        return apply(op("absolute"), *new) if node is changed else None

    result = rewrite(graph, rule)
    total, exp = result.outputs
    assert exp is kept
    assert total is not user
    assert total.name == "total"
    assert total.inputs[0] is kept
    assert rewrite(graph, lambda n, i: None) is graph


def test_new_nodes_are_where_the_old_ones_were() -> None:
    here = Location("cell", 7)
    (a,) = inputs(f32[4])
    with at(here):
        node = apply(op("exp"), a)
    graph = rewrite(
        Graph("g", (a,), (node,)),
        lambda n, i: apply(op("exp2"), *i) if n is node else None,
    )
    assert graph.outputs[0].op.name == "exp2"
    assert graph.outputs[0].location == here
    assert apply(op("exp"), a).location is None


def test_names_in_print_are_unique() -> None:
    (a,) = inputs(f32[4])
    first = apply(op("exp"), a, name="h")
    second = apply(op("exp"), first, name="h")
    third = apply(op("exp"), second)
    names = node_names(Graph("g", (a,), (third,)))
    assert list(names.values()) == ["a", "h", "h.2", "3"]


def test_a_printed_graph(golden: Callable[..., None]) -> None:
    def model(x: Any, w: Any) -> Any:
        h = np.maximum(x @ w + 1.5, 0)
        total = h.sum(axis=-1, keepdims=True)
        table = np.arange(6.0, dtype=np.float32)
        return h / total, np.where(h > 0, h, -h), table[::2]

    golden(text(graph_of(model, np.ones((4, 3), np.float32), np.ones((3, 6), np.float32))))


def test_a_printed_line_shows_where_it_came_from() -> None:
    (a,) = inputs(f32[4])
    with at(Location("cell", 12)):
        node = apply(op("exp"), a)
    assert "# line 12" in str(Graph("g", (a,), (node,)))


# ---------------------------------------------------------------------------------- the verifier


def test_a_verified_graph_is_itself() -> None:
    graph = graph_of(lambda x: np.exp(x).sum(axis=0), np.ones((3, 4)))
    assert verify(graph) is graph


def test_a_wrong_type_is_found() -> None:
    (a,) = inputs(f32[4])
    wrong = replace(apply(op("exp"), a), type=f32[5])
    with pytest.raises(VerifyError, match=r"exp has type f32\[5\], should be f32\[4\]"):
        verify(Graph("g", (a,), (wrong,)))


def test_an_unknown_input_is_found() -> None:
    a, b = inputs(f32[4], f32[4])
    with pytest.raises(VerifyError, match="reads an input that is not among its inputs"):
        verify(Graph("g", (a,), (apply(op("add"), a, b),)))


# ------------------------------------------------------------------------------- the interpreter


def test_the_interpreter_is_numpy() -> None:
    def f(x: Any, y: Any) -> Any:
        return np.exp(x) @ y, (x + 1).max(axis=1)

    x, y = np.random.default_rng(1).random((3, 4)), np.ones((4, 2))
    got = interpret(graph_of(f, x, y), [x, y])
    for a, b in zip(got, f(x, y), strict=True):
        assert np.array_equal(a, b)


def test_every_node_has_a_value_and_warnings_are_silent() -> None:
    (a,) = inputs(f32[1])
    root = apply(op("log"), a)
    values = evaluate(Graph("g", (a,), (root,)), [np.zeros(1, np.float32)])
    assert values[root] == -np.inf
    assert set(values) == {a, root}


# ------------------------------------------------------------------------------------ operators


def test_a_type_is_inferred_without_memory() -> None:
    (a,) = inputs(f32[1 << 20, 1 << 20])
    assert apply(op("exp"), a).type == f32[1 << 20, 1 << 20]


def test_operators_are_compared_by_their_attributes() -> None:
    assert op("sum", (0,), False) == op("sum", (0,), False)
    assert op("sum", (0,), False) != op("sum", (1,), False)
    value = np.ones(3)
    one = Constant(value)
    assert one == one
    assert one != Constant(value)
    assert len({one, Constant(value)}) == 2


def test_a_composite_has_the_type_of_its_expansion() -> None:
    @dataclass(frozen=True)
    class Twice(Composite):
        def expand(self, *nodes: Node) -> Node:
            return apply(op("add"), nodes[0], nodes[0])

    (a,) = inputs(f32[3, 5])
    assert Twice().infer(a.type) == f32[3, 5]


def test_an_input_and_a_constant_are_what_they_hold() -> None:
    t = TensorType(np.dtype(np.int8), (2, 3))
    assert Input(0, t).infer() == t
    value = np.ones((2, 3), np.int8)
    assert Constant(value).infer() == t
    assert Constant(value).reference() is value


def test_ops_of_a_graph() -> None:
    assert ops(graph_of(lambda x: np.exp(-x), np.ones(3))) == ["negative", "exp"]
