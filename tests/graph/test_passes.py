"""Graph passes: what they change, what they must not, and that they change no answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nbcomp.graph.ir import Graph, Node, apply
from nbcomp.graph.op import REGISTRY, Composite, Constant, Op
from nbcomp.graph.passes.expand import expand
from nbcomp.graph.passes.materialise import element_strides, materialise, storage
from nbcomp.graph.passes.products import call_products, choose_products
from nbcomp.graph.passes.simplify import FOLD_LIMIT, algebra, cse, fold
from nbcomp.graph.verifier import verify
from nbcomp.types import TensorType
from tests.programs import Array, Pass, graph_of, inputs, ops, passed, run, same_bits, text

Golden = Callable[..., None]


def after(
    step: Pass, function: Callable[..., Any], *args: Any, golden: Golden | None = None
) -> Graph:
    """The graph after one pass; the answer is the same, and perhaps the golden text."""
    before = graph_of(function, *args)
    result = verify(step(before))
    arrays = [np.asarray(a) for a in args[: len(before.inputs)]]
    for got, wanted in zip(run(result, *arrays), run(before, *arrays), strict=True):
        same_bits(got, wanted)
    if golden is not None:
        golden(f"{text(before)}\n\n{text(result)}")
    return result


# ----------------------------------------------------------------------------------------- expand


def test_expand_softmax(golden: Golden, rng: np.random.Generator) -> None:
    def f(x: Any) -> Any:
        spread = np.std(x, axis=1, keepdims=True)
        return (x - np.mean(x, axis=1, keepdims=True)) / spread

    result = after_close(expand, f, rng.random((5, 6)), golden=golden)
    assert not any(isinstance(n.op, Composite) for n in result.nodes)


def after_close(
    step: Pass, function: Callable[..., Any], *args: Any, golden: Golden | None = None
) -> Graph:
    """As `after`, where the pass may round differently."""
    before = graph_of(function, *args)
    result = verify(step(before))
    arrays = [np.asarray(a) for a in args]
    for got, wanted in zip(run(result, *arrays), run(before, *arrays), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=1e-6)
    if golden is not None:
        golden(f"{text(before)}\n\n{text(result)}")
    return result


def test_expand_leaves_other_graphs_alone() -> None:
    graph = graph_of(lambda x: np.exp(x) + 1, np.ones(3))
    assert expand(graph) is graph


def test_expand_keeps_the_users_names() -> None:
    def f(x: Any) -> Any:
        middle = np.mean(x)
        return middle * 2

    result = expand(graph_of(f, np.ones((3, 4))))
    assert "middle" in {n.name for n in result.nodes}


def test_expand_goes_to_the_bottom() -> None:
    composites = [n for n, o in REGISTRY.items() if issubclass(o, Composite)]
    assert composites
    for name in composites:
        for sample in list(REGISTRY[name].samples(np.random.default_rng(0)))[:3]:
            nodes = inputs(*(TensorType(np.asarray(a).dtype, np.shape(a)) for a in sample.arrays))
            result = expand(Graph(name, nodes, (apply(sample.op, *nodes),)))
            assert not any(isinstance(n.op, Composite) for n in result.nodes), name


# --------------------------------------------------------------------------------------- products


def test_products_of_floats_stay_and_others_become_sums(golden: Golden) -> None:
    def f(a: Any, b: Any, c: Any, d: Any) -> Any:
        return a @ b, c @ d

    ones = [np.ones((3, 4)), np.ones((4, 5)), np.ones((3, 4), np.int32), np.ones((4, 5), np.int8)]
    result = after(call_products, f, *ones, golden=golden)
    assert ops(result).count("matmul") == 1


@pytest.mark.parametrize("char", [*"?bBhHiIqQe"])
@pytest.mark.parametrize(
    "shapes", [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((4,), (4,)), ((0, 4), (4, 2))]
)
def test_sums_for_every_dtype(
    char: str, shapes: tuple[tuple[int, ...], tuple[int, ...]], rng: np.random.Generator
) -> None:
    high = 2 if char == "?" else 9
    a, b = (rng.integers(0, high, s).astype(char) for s in shapes)
    result = after(choose_products, lambda a, b: a @ b, a, b)
    assert "matmul" not in ops(result)


def test_dot_products_become_sums(rng: np.random.Generator) -> None:
    a, b = rng.random(9), rng.random(9)
    result = after_close(choose_products, lambda a, b: a @ b, a, b)
    assert "matmul" not in ops(result)


# ---------------------------------------------------------------------------------------- algebra

EDGES = [0.0, -0.0, 1.0, -1.5, 3.0, np.inf, -np.inf, np.nan, 5e-324, 1.7e308]


def edges(char: str) -> Array:
    """Values where a careless identity shows."""
    if char == "?":
        return np.array([False, True])
    if np.dtype(char).kind == "f":
        with np.errstate(over="ignore"):
            return np.array(EDGES).astype(char)
    info = np.iinfo(char)
    return np.array([info.min, info.min + 1, 0, 1, 3, info.max - 1, info.max], char)


def zero(char: str) -> np.generic:
    return np.dtype(char).type(0)


SIMPLER: dict[str, tuple[str, Callable[[Any], Any], list[str]]] = {
    # name: (dtypes, function, what is left)
    "x + 0": ("bBhHiIqQ", lambda x: x + x.dtype.type(0), []),
    "0 + x": ("bBhHiIqQ", lambda x: x.dtype.type(0) + x, []),
    "x | False": ("?", lambda x: x + False, []),
    "x + -0.0": ("efd", lambda x: x + x.dtype.type(-0.0), []),
    "x - 0": ("bBhHiIqQ", lambda x: x - x.dtype.type(0), []),
    "x - 0.0": ("efd", lambda x: x - x.dtype.type(0.0), []),
    "x * 1": ("bBhHiIqQefd", lambda x: x * x.dtype.type(1), []),
    "1 * x": ("bBhHiIqQefd", lambda x: x.dtype.type(1) * x, []),
    "x / 1": ("efd", lambda x: x / x.dtype.type(1), []),
    "x / 4": ("fd", lambda x: x / x.dtype.type(4), ["multiply"]),
    "x / -0.5": ("fd", lambda x: x / x.dtype.type(-0.5), ["multiply"]),
    "- -x": ("bhiqefd", lambda x: np.negative(-x), []),
    "~~x": ("?bBhHiIqQ", lambda x: ~(~x), []),
    "not not x": ("?", lambda x: np.logical_not(np.logical_not(x)), []),
    "where(c, x, x)": ("bfd", lambda x: np.where(x > 0, x, x), []),
    "f32 and back": ("ef", lambda x: x.astype("d").astype(x.dtype), []),
    "i8 and back": ("bB", lambda x: x.astype("e").astype(x.dtype), []),
    "i32 and back": ("iI", lambda x: x.astype("d").astype(x.dtype), []),
    "bool and back": ("?", lambda x: x.astype("f").astype("?"), []),
    "same dtype": ("bfd", lambda x: x.astype(x.dtype), []),
    "reshape twice": ("f", lambda x: -x.reshape(5, 2).reshape(2, 5), ["reshape", "negative"]),
    "reshape and back": ("f", lambda x: -x.reshape(5, 2).reshape(10), ["negative"]),
    "only ones": ("f", lambda x: -x.reshape(1, 10, 1), ["expand_dims", "negative"]),
    "ones and back": ("f", lambda x: -x.reshape(1, 10).reshape(10), ["negative"]),
    "an axis and back": ("f", lambda x: -np.squeeze(np.expand_dims(x, 1), 1), ["negative"]),
}


@pytest.mark.parametrize(
    ("name", "char"), [(name, c) for name, (chars, _, _) in SIMPLER.items() for c in chars]
)
def test_identities(name: str, char: str) -> None:
    _, function, left = SIMPLER[name]
    result = after(algebra, function, edges(char))
    assert ops(result) == left


NOT_SIMPLER: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "x + 0.0": ("efd", lambda x: x + x.dtype.type(0.0)),  # -0.0 + 0.0 is 0.0
    "0.0 + x": ("efd", lambda x: x.dtype.type(0.0) + x),
    "x - -0.0": ("efd", lambda x: x - x.dtype.type(-0.0)),
    "0 - x": ("bBhHiIqQefd", lambda x: x.dtype.type(0) - x),
    "x * 0": ("bBhHiIqQefd", lambda x: x * x.dtype.type(0)),  # NaN, infinities, -0.0
    "x * -1": ("bhiqefd", lambda x: x * x.dtype.type(-1)),
    "x - x": ("bBhHiIqQefd", lambda x: x - x),
    "x / x": ("efd", lambda x: x / x),
    "x / 3": ("efd", lambda x: x / x.dtype.type(3)),  # 1/3 is rounded
    "x / 4 in half": ("e", lambda x: x / x.dtype.type(4)),
    "x / 2**-120": ("f", lambda x: x / np.float32(2.0**-120)),
    "x / 2**120": ("f", lambda x: x / np.float32(2.0**120)),
    "x / 0": ("efd", lambda x: x / x.dtype.type(0)),
    "x / inf": ("efd", lambda x: x / x.dtype.type(np.inf)),
    "x / nan": ("efd", lambda x: x / x.dtype.type(np.nan)),
    "x == x": ("fd", lambda x: x == x),
    "x <= x": ("fd", lambda x: x <= x),
    "max(x, x)": ("fd", lambda x: np.maximum(x, x)),
    "abs(abs(x))": ("fd", lambda x: np.abs(np.abs(x))),
    "not not x": ("bfd", lambda x: np.logical_not(np.logical_not(x))),  # a bool
    "i8 to i16": ("h", lambda x: x.astype("b").astype("h")),
    "f32 to f16 and back": ("fd", lambda x: x.astype("e").astype(x.dtype)),
    "i64 to f64 and back": ("qQ", lambda x: x.astype("d").astype(x.dtype)),  # 53 bits
    "i32 to f32 and back": ("iI", lambda x: (x & 1023).astype("f").astype(x.dtype)),
    "to bool and back": ("bf", lambda x: x.astype("?").astype(x.dtype)),
    "exp(log(x))": ("fd", lambda x: np.exp(np.log(x))),
    "sqrt(x*x)": ("fd", lambda x: np.sqrt(x * x)),
    "x + y - y": ("fd", lambda x: (x + x) - x),
    "(x + 1) + 1": ("fd", lambda x: (x + x.dtype.type(1)) + x.dtype.type(1)),
    "(x * 2) * 3": ("efd", lambda x: (x * x.dtype.type(2)) * x.dtype.type(3)),
}


@pytest.mark.parametrize(
    ("name", "char"), [(name, c) for name, (chars, _) in NOT_SIMPLER.items() for c in chars]
)
def test_what_is_no_identity(name: str, char: str) -> None:
    _, function = NOT_SIMPLER[name]
    with np.errstate(all="ignore"):
        result = after(algebra, function, edges(char))
        assert ops(result) == ops(graph_of(function, edges(char)))


def test_a_zero_that_broadcasts_is_not_dropped() -> None:
    result = after(algebra, lambda x: x + np.zeros((3, 1), np.int64), np.arange(4))
    assert "add" in ops(result)
    result = after(algebra, lambda x: x * np.float64(1), np.arange(4, dtype=np.float32))
    assert ops(result) == ["cast"]  # to float64


def test_identities_need_the_whole_constant() -> None:
    result = after(algebra, lambda x: x * np.array([1.0, 2.0]), np.ones(2))
    assert "multiply" in ops(result)


@pytest.mark.parametrize(("p", "name"), [(2, "square"), (0.5, "sqrt"), (-1, "reciprocal"), (1, "")])
def test_powers(p: float, name: str, golden: Golden) -> None:
    (x,) = inputs(TensorType(np.dtype("d"), (10,)))
    graph = Graph("g", (x,), (apply(REGISTRY["power"](), x, apply(Constant(np.array(float(p))))),))
    result = verify(algebra(graph))
    assert ops(result) == ([name] if name else [])
    with np.errstate(all="ignore"):
        same_bits(run(result, edges("d"))[0], edges("d") ** p)


def test_writing_back_what_was_read(golden: Golden) -> None:
    def f(x: Any) -> Any:
        y = x * 2
        y[1:3] = y[1:3]
        return y

    assert ops(passed(f, np.ones(5), until=cse)) == ["multiply"]


# ------------------------------------------------------------------------------------------- fold


def test_constants_fold(golden: Golden) -> None:
    def f(x: Any) -> Any:
        scale = np.sqrt(np.float64(2) / np.float64(np.pi))
        steps = np.arange(3.0) * 2 + 1
        return x * scale + steps

    result = after(fold, f, np.ones(3), golden=golden)
    assert set(ops(result)) <= {"multiply", "add", "arange", "cast"}


def test_folding_keeps_dtypes_and_edges() -> None:
    def f(x: Any) -> Any:
        tiny = np.float32(1e-45) / np.float32(2)
        wrapped = np.int8(100) + np.int8(100)
        return x * tiny, x + (np.float32(0) * np.float32(-1)), wrapped

    with np.errstate(all="ignore"):
        after(fold, f, np.array([1, -0.0, np.inf], np.float32))


def test_folded_names_stay() -> None:
    def f(x: Any) -> Any:
        scale = np.exp(np.ones(()) * 2)
        return x * scale

    result = fold(graph_of(f, np.ones(3)))
    assert ops(result) == ["multiply"]
    assert "scale" in {n.name for n in result.nodes if isinstance(n.op, Constant)}


def test_what_a_caller_can_change_is_not_folded() -> None:
    table = np.arange(4.0)
    (x,) = inputs(TensorType(np.dtype("d"), (4,)))
    doubled = apply(REGISTRY["square"](), apply(Constant(table)))
    graph = Graph("g", (x,), (apply(REGISTRY["add"](), x, doubled),))
    assert fold(graph) is graph
    table.flags.writeable = False
    assert ops(fold(graph)) == ["add"]


def test_large_constants_are_computed_when_they_are_needed() -> None:
    def of(n: int) -> Graph:
        table = np.ones(n)
        table.flags.writeable = False
        (x,) = inputs(TensorType(np.dtype("d"), (n,)))
        squared = apply(REGISTRY["square"](), apply(Constant(table)))
        return Graph("g", (x,), (apply(REGISTRY["add"](), x, squared),))

    assert ops(fold(of(FOLD_LIMIT))) == ["add"]
    assert ops(fold(of(FOLD_LIMIT + 1))) == ["square", "add"]


def test_what_raises_is_left_to_raise_when_it_is_run() -> None:
    singular = np.zeros((2, 2))
    singular.flags.writeable = False
    inverse = apply(REGISTRY["inv"](), apply(Constant(singular)))
    graph = Graph("g", (), (inverse,))
    assert fold(graph) is graph
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        run(graph)


# -------------------------------------------------------------------------------------------- cse


def test_equal_expressions_become_one(golden: Golden) -> None:
    def f(x: Any, y: Any) -> Any:
        a = np.exp(x + y)
        b = np.exp(x + y)
        return a * b, (x + y).sum(axis=0), (x + y).sum(axis=1)

    result = after(cse, f, np.ones((2, 3)), np.ones((2, 3)), golden=golden)
    assert ops(result).count("exp") == 1
    assert ops(result).count("sum") == 2


def test_attributes_keep_expressions_apart() -> None:
    def f(x: Any) -> Any:
        return (
            x.sum(axis=0),
            x.sum(axis=0, keepdims=True),
            -x[1:],
            -x[:1],
            x.astype("f"),
            x.astype("e"),
        )

    result = after(cse, f, np.ones((2, 3)))
    assert len(ops(result)) == 8


def test_minus_zero_is_not_zero() -> None:
    def f(x: Any) -> Any:
        return x / np.float64(0.0), x / np.float64(-0.0)

    result = after(cse, f, np.array([1.0, -1.0]))
    assert ops(result) == ["divide", "divide"]


def test_one_is_not_true_and_not_one_point_zero() -> None:
    def f(x: Any) -> Any:
        return x + np.int8(1), x + np.float32(1), x + np.True_

    result = after(cse, f, np.arange(3, dtype=np.int8))
    assert ops(result).count("add") == 3


def test_nan_is_nan_when_the_bits_are() -> None:
    def f(x: Any) -> Any:
        return x + np.float64(np.nan), x + np.float64(np.nan)

    assert ops(after(cse, f, np.ones(2))) == ["add"]


def test_equal_arrays_are_not_one_array() -> None:
    first, second = np.ones(3), np.ones(3)
    (x,) = inputs(TensorType(np.dtype("d"), (3,)))

    def plus(table: Array) -> Node:
        return apply(REGISTRY["add"](), x, apply(Constant(table)))

    assert len(ops(cse(Graph("g", (x,), (plus(first), plus(second)))))) == 2
    assert len(ops(cse(Graph("g", (x,), (plus(first), plus(first)))))) == 1


def test_equal_arguments_are_two_inputs() -> None:
    result = after(cse, lambda x, y: (np.exp(x), np.exp(y)), np.ones(2), np.ones(2))
    assert ops(result) == ["exp", "exp"]


# ------------------------------------------------------------------------------------ materialise


def copies(graph: Graph) -> int:
    return ops(graph).count("copy")


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda x: x + 1, 0),
        (lambda x: np.transpose(x + 1).copy(), 1),
        (lambda x: (x + 1).reshape(3, 4), 0),
        (lambda x: (x.T + 1).reshape(3, 4), 0),
        (lambda x: x.T.reshape(12) + 1, 1),
        (lambda x: x.reshape(3, 4) + 1, 0),
        (lambda x: x[::2].reshape(6) + 1, 1),
        (lambda x: x @ x.T, 0),
        (lambda x: x[:, ::2] @ x[:2], 1),
        (lambda x: x[::-1] @ x.T, 1),
        (lambda x: np.sort(x.T), 1),
        (lambda x: np.sort(x + 1), 0),
        (lambda x: np.arange(4.0).reshape(2, 2) + x[:2, :2], 0),
    ],
)
def test_copies_where_memory_is_needed(function: Callable[[Any], Any], count: int) -> None:
    x = np.arange(12.0).reshape(4, 3)
    graph = passed(function, x, until=materialise)
    assert copies(graph) == count, text(graph)
    wanted = function(x)
    np.testing.assert_allclose(run(graph, x)[0], wanted)


def test_materialise_text(golden: Golden) -> None:
    def f(x: Any) -> Any:
        flat = x.T.reshape(12)
        return flat * 2, np.sort(x.T), x[::-1] @ x.T

    golden(text(passed(f, np.arange(12.0).reshape(4, 3), until=materialise)))


def test_two_results_are_two_memories() -> None:
    (x,) = inputs(TensorType(np.dtype("d"), (3,)))
    node = apply(REGISTRY["exp"](), x)
    result = materialise(Graph("g", (x,), (node, node, x)))
    first, second, third = result.outputs
    assert first is node
    assert len({storage(o) for o in result.outputs}) == 3
    assert second.op.name == third.op.name == "copy"


def test_reshapes_share_memory() -> None:
    (x,) = inputs(TensorType(np.dtype("d"), (6,)))
    node = apply(REGISTRY["exp"](), x)
    shaped: Op = REGISTRY["reshape"]((2, 3))
    view = apply(shaped, node)
    assert storage(view) is node
    result = materialise(Graph("g", (x,), (node, view)))
    assert copies(result) == 1


@pytest.mark.parametrize(
    ("view", "strides"),
    [
        (lambda x: x.T, (1, 4, 20)),
        (lambda x: x[:, ::2], (20, 8, 1)),
        (lambda x: x[..., None], (20, 4, 1, 0)),
        (lambda x: x[:, :, ::-1], None),
        (lambda x: x[1:], None),
        (lambda x: np.broadcast_to(x, (2, 3, 5, 4)), (0, 20, 4, 1)),
    ],
)
def test_strides_of_views(view: Callable[[Any], Any], strides: tuple[int, ...] | None) -> None:
    x = np.zeros((3, 5, 4))
    graph = graph_of(lambda x: view(x) + 1, x)
    seen = next(n for n in graph.nodes if n.op.name == "add").inputs[0]
    assert element_strides(seen) == strides
