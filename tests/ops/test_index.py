"""Every kind of key, read and assigned, as NumPy does it; random keys too."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.errors import Unsupported
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.op import REGISTRY, View
from nbcomp.ops import values
from nbcomp.ops.index import assign, basic_index_ops, index, put
from nbcomp.ops.move import BroadcastTo, Diagonal, ExpandDims, Reshape, Slice, Squeeze, Transpose
from tests.ops.calls import Inputs, flat, outcome
from tests.ops.evaluate import input_node, of_nodes, same

N = None
E = Ellipsis
S = slice


def integers(*v: int) -> Any:
    return np.array(v)


BASIC = (
    0,
    -1,
    (1, 2),
    (E, 0),
    (0, E),
    (S(1, 3),),
    (S(None), 2),
    (S(None, None, -1), S(3, 0, -2)),
    (N, 0),
    (0, N, E, N),
    (E,),
    (),
    (S(2, 2),),
    (S(100, 200),),
    (S(-100, 100, 3), -4, S(None, None, 5)),
    np.int8(1),
    np.array(2),
)

ARRAYS = (
    integers(0, 2, 1),
    [0, -1],
    [],
    (integers(0, 1), integers(1, 2)),
    (integers(0, 1), 0),
    (0, integers(0, 1)),
    (integers(0, 1), S(None), integers(2, 3)),
    (0, S(None), integers(2, 3)),
    (S(None), integers(1, 0), integers(2, 3)),
    (S(None), integers(1, 0), E, integers(2, 3)),
    (integers(0, 1), E, 0),
    (S(None, None, -1), integers(0, 1)),
    (N, integers(0, 1)),
    (integers(0, 1), N, integers(1, 1)),
    (E, integers(0, 1)),
    (E, integers(0, 1), S(1, 3)),
    (integers(0, 1)[:, None], integers(1, 2, 3)),
    (integers(0, 1)[:, None], S(0, 2), integers(1, 2, 3)),
    (integers(0, 1), np.array(1), integers(1, 2)),
)

MASKS = (
    np.array([True, False, True]),
    (S(None), np.array([True, False, True, False])),
    (np.array([True, False, True]), integers(0, 1)),
    (np.array([True, False, True]), 0),
    (0, np.array([True, False, True, False])),
    [True, False, True],
    np.arange(12).reshape(3, 4) % 5 == 0,
    (E, np.arange(20).reshape(4, 5) % 3 == 0),
    np.zeros(3, bool),
)

WRONG = (
    3,
    -4,
    (0, 0, 0, 0),
    1.0,
    "x",
    (E, E),
    (S(0, 1, 0),),
    [0, 7],
    (integers(0, 1), integers(0, 1, 2)),
    (integers(0), 0, 0, 0),
    np.ones(2),
    np.zeros((3, 3), bool),
    np.zeros(4, bool),
    (S(None), 9),
    integers(-9),
)


def _compare(right: Any, trace: Any, array: Any, key: Any, extra: tuple[Any, ...] = ()) -> None:
    """Both with the key's arrays known when compiling and computed at run time."""
    for known in (True, False):
        inputs = Inputs()
        node, *more = inputs.of((array, *extra))
        used = key if known else _at_run_time(key, inputs)

        def run(node: Node = node, used: Any = used, more: Any = more, inputs: Any = inputs) -> Any:
            return of_nodes(flat(trace(node, used, *more)), inputs.nodes, inputs.arrays)[0]

        result = outcome(run)
        if isinstance(right, Exception):
            assert isinstance(result, type(right)), f"{result!r} instead of {right!r}"
        elif isinstance(result, Exception):
            raise result
        else:
            same(result, right)


def _at_run_time(key: Any, inputs: Inputs) -> Any:
    """The key with its integer arrays as nodes."""
    parts = key if isinstance(key, tuple) else (key,)
    new = [inputs.of(p) if isinstance(p, np.ndarray) and p.dtype.kind == "i" else p for p in parts]
    return tuple(new) if isinstance(key, tuple) else new[0]


@pytest.fixture
def x(rng: np.random.Generator) -> Any:
    return values.ordinary(rng, np.float32, (3, 4, 5))


@pytest.mark.parametrize("key", BASIC + ARRAYS + MASKS + WRONG, ids=str)
def test_reading(key: Any, x: Any) -> None:
    _compare(outcome(lambda: x[key]), index, x, key)


@pytest.mark.parametrize("key", BASIC + ARRAYS + MASKS + WRONG, ids=str)
def test_assigning(key: Any, x: Any, rng: np.random.Generator) -> None:
    place = outcome(lambda: x[key])
    shape = () if isinstance(place, Exception) else np.shape(place)
    candidates = (
        7,
        2.5,
        np.float64(3),
        values.ordinary(rng, np.float32, shape),
        values.ordinary(rng, np.int8, (1, *shape)),
        values.ordinary(rng, np.float64, shape[-1:]),
        values.ordinary(rng, np.float32, (*shape[:-1], 1)) if shape else np.ones(1),
        np.ones((*shape, 2)),
    )
    for value in candidates[: 3 if isinstance(place, Exception) else None]:

        def expected(value: Any = value) -> Any:
            result = x.copy()
            result[key] = value
            return result

        right = outcome(expected)
        if shape and 0 in shape and isinstance(right, Exception):
            continue  # NumPy does not always look at the shape when there is nothing to assign
        _compare(right, assign, x, key, (value,))


def test_random_keys(rng: np.random.Generator) -> None:
    for _ in range(300):
        shape = tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 5)))
        x = values.ordinary(rng, np.float32, shape)
        key = _random_key(rng, shape)
        right = outcome(lambda x=x, key=key: x[key])
        _compare(right, index, x, key)
        if isinstance(right, Exception):
            continue
        value = values.ordinary(rng, np.float32, np.shape(right))
        new = x.copy()
        places = np.arange(x.size).reshape(shape)[key]
        if np.unique(places).size == places.size:  # else it matters who comes last
            new[key] = value
            _compare(new, assign, x, key, (value,))


def _random_key(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    ranks = [int(n) for n in rng.integers(1, 4, 2)]
    common = tuple(int(n) for n in rng.integers(1, 4, ranks[0]))
    key: list[Any] = []
    for n in shape[: rng.integers(0, len(shape) + 1)]:
        match rng.integers(0, 5):
            case 0:
                key.append(int(rng.integers(-n, n)))
            case 1:
                cut = common[rng.integers(0, len(common)) :]
                key.append(rng.integers(-n, n, cut))
            case 2:
                key.append(rng.random(n) < 0.6 if rng.random() < 0.3 else slice(None))
            case _:
                a, b = (int(i) for i in rng.integers(-n - 1, n + 2, 2))
                key.append(slice(a, b, int(rng.choice([-2, -1, 1, 3]))))
    for extra in (None, Ellipsis):
        if rng.random() < 0.3:
            key.insert(int(rng.integers(0, len(key) + 1)), extra)
    return tuple(key)


@pytest.mark.parametrize("key", BASIC, ids=str)
def test_basic_keys_are_views(key: Any, x: Any) -> None:
    node = input_node(x)
    views = basic_index_ops(key, node.type)
    assert views is not None
    assert all(isinstance(v, View) for v in views)
    expected = x[key]
    result = x
    for v in views:
        result = v.reference(result)
    assert np.array_equal(result, expected)
    if np.ndim(expected) and expected.size:
        assert np.shares_memory(result, x)


def test_keys_with_arrays_are_no_views(x: Any) -> None:
    assert basic_index_ops([0, 1], input_node(x).type) is None
    assert basic_index_ops((0, input_node(np.arange(2))), input_node(x).type) is None
    with pytest.raises(IndexError):
        basic_index_ops(3, input_node(x).type)


def test_masks_computed_at_run_time(x: Any) -> None:
    """Reading is refused with what to write instead; assigning selects."""
    node, mask, row = input_node(x), input_node(x > 0, 1), input_node(x[:, 0, 0] > 0, 1)
    with pytest.raises(Unsupported, match=r"np\.where\(mask, x, 0\)"):
        index(node, mask)
    for m, array in ((mask, x > 0), (row, x[:, 0, 0] > 0)):
        for value in (0, 1.5, np.float32(2), *([np.ones((4, 5))] if m is row else [])):
            expected = x.copy()
            expected[array] = value
            for key in (m, (m,), (m, Ellipsis)):
                (result,) = of_nodes([assign(node, key, value)], [node, m], [x, array])
                same(result, expected)
    with pytest.raises(Unsupported, match="one value for each true place"):
        assign(node, mask, np.ones(7))
    with pytest.raises(IndexError, match="boolean index did not match"):
        assign(node, input_node(np.ones(4, bool)), 0)


def test_assigned_numbers_fit_the_dtype() -> None:
    node = input_node(np.zeros(3, np.int8))
    with pytest.raises(OverflowError, match="out of bounds for int8"):
        assign(node, 0, 300)


@pytest.mark.parametrize(
    ("view", "shape"),
    [
        (Slice((1, 4), (1, -2), (2, 2)), (3, 5)),
        (Transpose((2, 0, 1)), (2, 3, 4)),
        (ExpandDims((0, 2)), (2, 3)),
        (Squeeze((0,)), (1, 3)),
        (Reshape((6,)), (2, 3)),
    ],
)
def test_writing_through_views(view: Any, shape: Any, rng: np.random.Generator) -> None:
    x = values.ordinary(rng, np.float32, shape)
    base = input_node(x)
    value = values.ordinary(rng, np.float32, apply(view, base).shape)
    expected = x.copy()
    view.reference(expected)[...] = value
    new = input_node(value, 1)
    (result,) = of_nodes([put(view, base, new)], [base, new], [x, value])
    same(result, expected)


@pytest.mark.parametrize("view", [BroadcastTo((2, 3, 3)), Diagonal(0, 0, 1)])
def test_views_that_are_read_only(view: Any) -> None:
    base = input_node(np.ones((3, 3)))
    with pytest.raises(ValueError, match="read-only"):
        put(view, base, apply(view, base))


def test_nothing_warns() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index(input_node(np.ones(3)), integers(0, 1))


@pytest.mark.parametrize("op", [op for op in REGISTRY.values() if getattr(op, "takes_out", False)])
def test_results_that_are_written_where_they_go(op: Any) -> None:
    """As the result that is made anew, also where that is one of the operands."""
    for sample in op.samples(np.random.default_rng(5)):
        if sample.op.name == "external":
            continue
        arrays = [np.asarray(a) for a in sample.arrays]
        wanted = sample.op.reference(*arrays)
        out = np.empty_like(wanted)
        sample.op.reference(*arrays, out=out)
        np.testing.assert_array_equal(out, wanted)
        for k, a in enumerate(arrays):
            if (a.dtype, a.shape) == (wanted.dtype, wanted.shape):
                shared = [x.copy() for x in arrays]
                sample.op.reference(*shared, out=shared[k])
                np.testing.assert_array_equal(shared[k], wanted)


def test_indices_out_of_range_are_numpys_errors() -> None:
    take = nbcomp.jit(lambda x, i: x[i])
    compiled = nbcomp.compile(lambda x, i: x[i], np.ones((5, 3)), np.array([0, 1]))
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 5"):
        compiled(np.ones((5, 3)), np.array([0, 7]))
    for places in ([5], [0, -6], [2**40]):
        with pytest.raises(IndexError, match="out of bounds"):
            take(np.ones((5, 3)), np.array(places))
    np.testing.assert_array_equal(take(np.eye(5), np.array([-5, 4])), np.eye(5)[[0, 4]])


def assigned(x: Any, i: Any, v: Any) -> Any:
    y = x.copy()
    y[i] = v
    return y


def assigned_across(x: Any, i: Any, v: Any) -> Any:
    y = x[:, ::2].copy()
    y[..., i] = v
    return y


def from_itself(x: Any, i: Any, v: Any) -> None:
    x[i] = x[0] + v


def of_views(x: Any, i: Any, v: Any) -> Any:
    return x[::-1][i[::2]], x.T[i], x[i, i[0]], x[1:][:, i]


@pytest.mark.parametrize("function", [assigned, assigned_across, from_itself, of_views])
@pytest.mark.parametrize(
    "places",
    [
        np.array([3, -1, 3, 0, -2], np.int8),
        np.array([[1, 2], [2, 1]])[:, ::-1],
        np.asfortranarray([[1, 2], [3, 1]]),  # goes in an order that NumPy knows
        np.array([[2], [2]]),
        np.zeros((0,), np.int64),
    ],
    ids=["vector", "view", "Fortran", "column", "none"],
)
def test_loops_over_places(function: Any, places: Any) -> None:
    """Of values for one place the last stays; indices count from either end."""
    if places.size == 0 and function is of_views:
        return
    compiled = nbcomp.jit(function)
    for dtype in (np.float32, np.int8):
        got, wanted = (np.arange(64).reshape(8, 8).astype(dtype) for _ in range(2))
        v = np.arange(places.size).reshape(places.shape).astype(dtype)
        v = v[..., None] if function in (assigned, from_itself) else v
        result, expected = compiled(got, places, v), function(wanted, places, v)
        np.testing.assert_equal(result, expected)
        np.testing.assert_array_equal(got, wanted)
