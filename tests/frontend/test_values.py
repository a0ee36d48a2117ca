"""What functions are given and reach: containers, closures, objects, signatures, results."""

from __future__ import annotations

import datetime
import functools
import math
import os
import re
import time
import types
import uuid
from array import array
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.linalg

from nbcomp.errors import Unsupported
from nbcomp.frontend.result import Out, Own
from nbcomp.frontend.trace import bind, capture
from nbcomp.runtime.plan import LengthGuard, ObjectGuard, ScalarGuard, ValueGuard
from tests.frontend.replay import run, same, valid

Agree = Callable[..., Any]
X = np.linspace(-2, 3, 12).reshape(3, 4)
Y32 = np.linspace(0, 1, 4, dtype=np.float32)
PARAMS: dict[str, Any] = {"w": np.linspace(0, 1, 8).reshape(4, 2), "b": np.ones(2), "scale": 0.5}
LAYERS = [np.eye(4), np.full((4, 4), 0.25)]
FACTOR = 2.0


class Point(NamedTuple):
    x: Any
    y: Any


@dataclass
class State:
    position: Any
    step: float = 0.1
    extra: dict[str, Any] = field(default_factory=dict)


def relu(x: Any) -> Any:
    return np.maximum(x, 0) * FACTOR


def dense(p: Any, x: Any, activation: Callable[..., Any] = np.tanh) -> Any:
    return activation(x @ p["w"] + p["b"]) * p["scale"]


def deep(x: Any) -> Any:
    for layer in LAYERS:
        x = relu(x @ layer)
    return dense(PARAMS, x, activation=relu)


# -------------------------------------------------------------------------------- containers


def test_containers_in_and_out(agree: Agree) -> None:
    def f(params: Any, pair: Any, point: Any, none: Any = None) -> Any:
        a, b = pair
        assert none is None
        assert isinstance(point, Point)
        return {"h": dense(params, a), "p": Point(point.y, b), "l": [a, (b, None, "name", 3)]}

    captured = agree(f, PARAMS, [X, X + 1], Point(1.5, X))
    lengths = [g for g in captured.guards if isinstance(g, LengthGuard)]
    assert {g.type for g in lengths} == {dict, list, Point}
    assert not valid(captured, {**PARAMS, "more": 1}, [X, X], Point(1.5, X))
    assert not valid(captured, PARAMS, (X, X), Point(1.5, X))
    assert not valid(captured, PARAMS, [X, X], Point(1.5, X), 3)


def test_unused_entries_are_not_guarded() -> None:
    captured = capture(lambda p: p["a"] * 2, ({"a": X, "b": X},), {})
    assert valid(captured, {"a": X, "b": np.zeros(9)})
    assert [n.name for n in captured.graph.inputs] == ["a"]


def test_names_of_inputs() -> None:
    captured = capture(lambda p, q: p["w"] @ q[0] + q[1]["b"], (PARAMS, [X[:2], {"b": 1.0}]), {})
    assert [n.name for n in captured.graph.inputs] == ["w", "q_0", "b"]


def test_containers_are_given_back() -> None:
    def f(params: Any) -> Any:
        params["w"] += 1
        return params, params["w"]

    params = {"w": X.copy()}
    result = run(capture(f, (params,), {}), params)
    assert result[0] is params
    assert result[1] is params["w"]
    np.testing.assert_array_equal(params["w"], X + 1)


def test_dataclasses(agree: Agree) -> None:
    def advance(state: State) -> State:
        assert isinstance(state, State)
        moved = state.position + state.step * np.sin(state.position)
        return replace(state, position=moved, extra={"norm": (moved * moved).sum()})

    agree(advance, State(X, 0.3))


def test_a_dataclass_is_guarded_by_what_is_read() -> None:
    captured = capture(lambda s: s.position * 2, (State(X),), {})
    assert valid(captured, State(X, step=77.0))
    assert not valid(captured, State(X[:2]))
    assert not valid(captured, Point(X, X))


# ------------------------------------------------------------------------- globals and helpers


def test_helpers_and_globals(agree: Agree) -> None:
    captured = agree(deep, X)
    described = {g.source.describe() for g in captured.guards}
    assert {"relu", "dense", "FACTOR", "PARAMS['w']", "LAYERS[1]"} <= described


def test_changed_globals_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    captured = capture(deep, (X,), {})
    monkeypatch.setattr(f"{__name__}.FACTOR", -1.0)
    monkeypatch.setitem(PARAMS, "w", np.ones((4, 2)))
    monkeypatch.setattr(f"{__name__}.LAYERS", [X[:2].T @ X[:2], X.T @ X])
    same(run(captured, X), deep(X))


def test_a_redefined_helper_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    captured = capture(deep, (X,), {})
    monkeypatch.setattr(f"{__name__}.relu", lambda x: x)
    assert not valid(captured, X)


def test_unread_globals_are_not_guarded() -> None:
    captured = capture(lambda x: relu(x) if x.ndim == 2 else deep(x), (X,), {})
    read = {g.source.describe() for g in captured.guards[1:]}
    assert {place for place in read if "__code__" not in place} == {"relu", "np", "FACTOR"}


def test_user_modules(agree: Agree) -> None:
    module = types.ModuleType("mine")
    module.__file__ = "/somewhere/mine.py"
    exec(
        "import numpy as np\nW = np.ones(4)\nK = 3.0\ndef f(x):\n    return x * W + K", vars(module)
    )
    namespace = {"mine": module}
    exec("def g(x):\n    return mine.f(x) * mine.W - mine.K", namespace)
    captured = capture(namespace["g"], (X,), {})
    vars(module)["K"] = 5.0
    vars(module)["W"] = np.arange(4.0)
    same(run(captured, X), namespace["g"](X))


def test_the_same_name_in_two_modules() -> None:
    def module(name: str, factor: float) -> Any:
        made = types.ModuleType(name)
        made.__file__ = f"/somewhere/{name}.py"
        vars(made).update(W=np.zeros(3), K=factor, np=np)
        exec("def f(x):\n    W[:] = x * K\n    return W", vars(made))
        return made

    a, b = module("a", 1.0), module("b", 2.0)
    result = run(capture(lambda x: (a.f(x), b.f(x)), (np.ones(3),), {}), np.ones(3))
    assert result[0] is a.W
    assert result[1] is b.W
    np.testing.assert_array_equal(np.array([a.W, b.W]), [[1.0] * 3, [2.0] * 3])


def test_imports_inside(agree: Agree) -> None:
    def f(x: Any) -> Any:
        import numpy
        from numpy import arange, zeros

        out = zeros(4)
        out[:] = x[0] * arange(4)
        return out + numpy.ones(4) * math.pi

    agree(f, X)


def test_closures() -> None:
    scale, weights, count = 2.0, X.copy(), 3

    def f(x: Any) -> Any:
        for _ in range(count):
            x = x * scale + weights
        return x

    captured = capture(f, (X,), {})
    same(run(captured, X), f(X))
    scale, weights = -1.0, X + 1
    same(run(captured, X), f(X))
    assert valid(captured, X)
    count = 2
    assert not valid(captured, X)


def test_nested_functions_and_recursion(agree: Agree) -> None:
    def f(x: Any, n: int) -> Any:
        def power(y: Any, k: int) -> Any:
            return y if k == 0 else power(y * x, k - 1)

        return sum(power(x, k) for k in range(n)), list(map(lambda v: v + 1, x))

    agree(f, X, 3)


def test_decorated_functions(agree: Agree) -> None:
    def twice(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return 2 * function(*args, **kwargs)

        return wrapper

    @twice
    def f(x: Any, shift: float = 1.0) -> Any:
        return x - shift

    def scaled(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(x: Any, *args: Any, scale: float = 1.0, **kwargs: Any) -> Any:
            return function(x * scale, *args, **kwargs)

        return wrapper

    @scaled
    def g(x: Any, shift: float = 1.0) -> Any:
        return x - shift

    agree(g, X, shift=2.0, scale=0.5)
    agree(g, X, 2.0)

    @functools.lru_cache
    def table(n: int) -> Any:
        return np.arange(n) * FACTOR

    agree(f, X, shift=0.25)
    agree(lambda x: x * table(4), X)


# ------------------------------------------------------------------------------------ objects


class Linear:
    kind = "linear"

    def __init__(self, w: Any, b: float) -> None:
        self.w, self.b, self.calls = w, b, 0

    def __call__(self, x: Any) -> Any:
        return self.activate(x @ self.w + self.b)

    def activate(self, x: Any) -> Any:
        return x * FACTOR

    @property
    def size(self) -> int:
        return int(self.w.size)

    @staticmethod
    def half(x: Any) -> Any:
        return x / 2

    @classmethod
    def of(cls, w: Any) -> Any:
        return cls(w, 0.0)

    def __len__(self) -> int:
        return len(self.w)


class Relu(Linear):
    def activate(self, x: Any) -> Any:
        return super().activate(np.maximum(x, 0)) + self.size


class Counter(Linear):
    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return super().__call__(x)


class Network:
    def __init__(self) -> None:
        self.layers = [Linear(np.eye(4), 0.5), Relu(X.T @ X, -1.0)]
        self.scale = 2.0
        self.training = False

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x * self.scale if not self.training else x


def test_objects_in_globals_and_arguments(agree: Agree) -> None:
    def f(x: Any, layer: Any) -> Any:
        assert isinstance(layer, Linear)
        assert type(layer) is Relu
        assert layer.kind == "linear"
        assert hasattr(layer, "w")
        assert not hasattr(layer, "v")
        assert len(layer) == 4
        return layer(x) + layer.half(layer.b) * layer.size

    agree(f, X, Relu(np.eye(4), 1.0))


def test_changes_of_objects_are_seen() -> None:
    network = Network()
    captured = capture(network.forward, (X,), {})
    same(run(captured, X), network.forward(X))
    network.scale = 5.0
    network.layers[0].w = np.ones((4, 4))
    network.layers[1].b += 1
    same(run(captured, X), network.forward(X))
    network.training = True
    assert not valid(captured, X)
    network.training = False
    network.layers.append(Linear(np.eye(4), 0.0))
    assert not valid(captured, X)


def test_a_replaced_method_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network()
    captured = capture(network.forward, (X,), {})
    monkeypatch.setattr(Relu, "activate", lambda self, x: x)
    assert not valid(captured, X)


def test_writes_reach_attributes() -> None:
    layer = Linear(X.copy(), 0.0)

    def f(x: Any) -> Any:
        layer.w[0] = x
        layer.w += 1
        return layer.w

    result = run(capture(f, (X[1],), {}), X[1])
    assert result is layer.w
    np.testing.assert_array_equal(layer.w[0], X[1] + 1)


def test_setting_attributes_is_refused() -> None:
    with pytest.raises(Unsupported, match=r"the function sets layer\.calls"):
        capture(lambda layer, x: layer(x), (Counter(np.eye(4), 1.0), X), {})


def test_in_place_on_globals() -> None:
    namespace = {"W": X.copy()}
    exec("def f(x):\n    global W\n    W += x\n    return W", namespace)
    captured = capture(namespace["f"], (X,), {})
    assert run(captured, X) is namespace["W"]
    np.testing.assert_array_equal(namespace["W"], 2 * X)


def test_instances_made_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        layer = Relu(x.T, 1.0)
        layer.b = 2.0
        out = layer(x) + Linear.of(x.T)(x)
        assert isinstance(layer, Linear)
        assert isinstance(layer, Relu)
        return out

    captured = capture(f, (X,), {})
    same(run(captured, X), f(X))
    monkeypatch.setattr(f"{__name__}.FACTOR", 3.5)
    same(run(captured, X), f(X))


def test_callables() -> None:
    layer = Relu(np.eye(4), 1.0)
    for function in (layer, layer.activate, functools.partial(dense, PARAMS, activation=relu)):
        captured = capture(function, (X,), {})
        same(run(captured, X), function(X))


def test_namespaces(agree: Agree) -> None:
    agree(lambda x, c: x * c.rate + c.w, X, types.SimpleNamespace(rate=0.5, w=np.ones(4)))


def test_numpy_functions_as_values(agree: Agree) -> None:
    table = {"relu": relu, "tanh": np.tanh, "zeros": np.zeros}

    def f(x: Any, name: str) -> Any:
        out = table["zeros"](4)
        out += table[name](x)[0]
        return out

    captured = agree(f, X, "tanh")
    assert not valid(captured, X, "relu")


class Config:
    rate = 0.5
    table = np.ones(4)
    names = ("a", "b")

    @classmethod
    def scaled(cls, x: Any) -> Any:
        return x * cls.rate


class Sized:
    unit = 2.0

    def __init__(self, x: Any) -> None:
        self.x = x

    def value(self) -> Any:
        return self.x * self.unit


def test_class_attributes_are_read_at_call_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        return Config.scaled(x * Config.rate + Config.table * len(Config.names)) + Sized(x).value()

    captured = capture(f, (X,), {})
    same(run(captured, X), f(X))
    monkeypatch.setattr(Config, "rate", -3.0)
    monkeypatch.setattr(Config, "table", np.arange(4.0))
    monkeypatch.setattr(Sized, "unit", 0.25)
    same(run(captured, X), f(X))
    monkeypatch.setattr(Config, "names", ("a", "c"))
    assert not valid(captured, X)


def test_function_attributes_are_read_at_call_time() -> None:
    def g(x: Any) -> Any:
        return x * g.scale  # type: ignore[attr-defined]

    g.scale = 2.0  # type: ignore[attr-defined]
    captured = capture(g, (X,), {})
    g.scale = 3.0  # type: ignore[attr-defined]
    same(run(captured, X), g(X))


def test_classes_defined_inside(agree: Agree) -> None:
    def f(x: Any) -> Any:
        class Pair(NamedTuple):
            a: Any
            b: Any = FACTOR

        class Scale:
            factor = FACTOR

            def of(self, y: Any) -> Any:
                return y * self.factor + np.ones(4)

        pair = Pair(x)
        return Scale().of(pair.a) * pair.b

    agree(f, X)


def test_returned_closures_do_not_leak() -> None:
    with pytest.raises(Unsupported, match="made while compiling"):
        capture(lambda x: lambda: x + 1, (X,), {})


class Frame:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.ones(3)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Frame(), "a Frame, is not compiled"),
        (iter([1.0]), "a list_iterator, is not followed"),
        (array("d", [1.0]), "an? array, is not followed"),
        (defaultdict(float), "a defaultdict, is not followed"),
        (np.vectorize(abs), "a vectorize, is not followed"),
    ],
)
def test_objects_that_cannot_be_followed(value: Any, message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        capture(lambda x, v: x, (X, value), {})


@pytest.mark.parametrize("call", [time.time, datetime.datetime.now, os.getcwd, uuid.uuid4])
def test_what_changes_from_call_to_call_is_refused(call: Any) -> None:
    with pytest.raises(Unsupported, match="answers differently in every call"):
        capture(lambda x: (x, call()), (X,), {})
    namespace = {"time": time, "datetime": datetime, "os": os, "uuid": uuid}
    owner = (
        call.__module__ if call.__module__ in namespace else {"posix": "os"}.get(call.__module__)
    )
    if owner:
        exec(f"def f(x):\n    return x, {owner}.{call.__qualname__}()", namespace)
        with pytest.raises(Unsupported, match="answers differently in every call"):
            capture(namespace["f"], (X,), {})


# --------------------------------------------------------------------------------- signatures


def all_kinds(
    a: Any, /, b: Any, c: float = 2.0, *rest: Any, d: Any, e: float = 0.5, **more: Any
) -> Any:
    return a + b * c + sum(rest) + d * e + more.get("f", 0.0)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((X, 1.0), {"d": X}),
        ((X, X, 3.0, X, 4.0), {"d": 1.0, "e": X}),
        ((X,), {"b": X, "d": 2.0, "f": X}),
        ((X,), {"d": 2.0, "c": 1.5, "b": 3.0}),
    ],
)
def test_signatures(args: Any, kwargs: Any, agree: Agree) -> None:
    captured = agree(all_kinds, *args, **kwargs)
    assert captured.positional == 7


def test_binding() -> None:
    captured = capture(all_kinds, (X, 1.0), {"d": X})
    assert bind(captured.signature, (1, 2, 3, 4), {"d": 5, "g": 6}) == (
        1,
        2,
        3,
        (4,),
        5,
        0.5,
        {"g": 6},
    )
    with pytest.raises(TypeError, match="missing a required"):
        bind(captured.signature, (1,), {})


# ------------------------------------------------------------------------------------ results


def test_numbers_in_results(agree: Agree) -> None:
    captured = agree(
        lambda x, a, n: (a, a * 2.0, n, n + 1, x.shape[0], a / 4, -a, x * a), X, 1.5, 3
    )
    assert captured.result[0] == Own(captured.guards[1].source)
    assert captured.result[1] == Out(0, float)
    assert any(isinstance(g, ValueGuard) and g.value == 3 for g in captured.guards)


def test_scalar_outputs(agree: Agree) -> None:
    captured = agree(lambda x: (x.sum(), np.where(x.sum() > 0, 1.0, 2.0), x[0, 0]), X)
    assert captured.scalar_outputs == {0, 2}
    assert not captured.single
    assert agree(lambda x: x + 1, X).single


def test_nothing_returned(agree: Agree) -> None:
    agree(lambda x: None, X)


def test_number_rules() -> None:
    def f(x: Any, a: float, b: float) -> Any:
        return x * (a + b * 2 - 1.0) / (a * 3)

    captured = capture(f, (X, 0.5, 1.0), {})
    assert sum(isinstance(g, ScalarGuard) for g in captured.guards) == 2
    for a, b in ((0.5, 1.0), (-3.25, 7.5)):
        same(run(captured, X, a, b), f(X, a, b))


NUMBER_USES = {
    "compare": lambda x, a: x if a > 0.25 else -x,
    "truth": lambda x, a: x if a else -x,
    "math": lambda x, a: x * math.exp(a),
    "power": lambda x, a: x * a**2,
    "reciprocal": lambda x, a: x * (1 / a),
    "array power": lambda x, a: abs(x) ** a,
    "whole": lambda x, a: x[: int(a * 4)],
    "round": lambda x, a: x * round(a),
    "format": lambda x, a: (x, f"{a:.2f}"),
    "hash": lambda x, a: x * {0.5: 3.0}[a],
    "method": lambda x, a: x if a.is_integer() else -x,
    "scalar type": lambda x, a: x * np.float32(a),
    "linspace": lambda x, a: x[0] * np.linspace(0, a, 4),
}


@pytest.mark.parametrize("name", NUMBER_USES)
def test_numbers_whose_value_counts(name: str, agree: Agree) -> None:
    captured = agree(NUMBER_USES[name], X, 0.5)
    assert not valid(captured, X, 0.75)


def test_numpy_functions_of_numbers(agree: Agree) -> None:
    captured = agree(
        lambda x, a: (x * np.sqrt(a), np.exp(a), np.maximum(a, 2), np.array(a)), X, 0.5
    )
    assert valid(captured, X, 0.75)


def test_numbers_in_lists_are_arrays(agree: Agree) -> None:
    x = Y32

    def f(x: Any, a: float, n: int) -> Any:
        return (
            np.array([x[0], a]),
            np.array([[n, 1], [2, 3]]),
            np.stack([x[0], a]),
            x[:2] + [a, 1.0],  # noqa: RUF005
            np.concatenate([x, [a]]),
            np.where(x > 0, x, a),
        )

    agree(f, x, 0.1, 3)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3)])
@pytest.mark.parametrize("value", [[1], [[2]], [[1, 2, 3]]])
@pytest.mark.parametrize("key", [..., slice(None)], ids=str)
def test_lists_are_no_deeper_than_what_they_are_assigned_to(
    key: Any, value: Any, shape: Any
) -> None:
    def f(x: Any) -> None:
        x[key] = value

    wanted, got = np.zeros(shape), np.zeros(shape)
    try:
        f(wanted)
    except (ValueError, IndexError) as error:
        message = re.escape(str(error)) if "sequence" in str(error) else None
        with pytest.raises(type(error), match=message):
            capture(f, (got,), {})
        return
    run(capture(f, (got,), {}), got)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.uint64, np.float32, np.bool_])
def test_whole_numbers_keep_their_value(dtype: Any) -> None:
    def f(x: Any, n: int) -> Any:
        return x < n, x == n, n >= x, np.clip(x, n, None), x + n, x * n, np.where(x > 1, n, x)

    x = np.array([0, 1, 1, 0, 1]).astype(dtype)
    for first in (3, -1, 300):
        try:
            expected = f(x, first)
        except OverflowError:
            with pytest.raises((OverflowError, Unsupported)):
                capture(f, (x, first), {})
            continue
        captured = capture(f, (x, first), {})
        same(run(captured, x, first), expected)
        for n in (5, -1, 300, 70_000, -(2**40), 2**62):
            if valid(captured, x, n):
                same(run(captured, x, n), f(x, n))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint64, np.float32])
def test_comparisons_with_whole_numbers(dtype: Any) -> None:
    x = np.array([0, 1, 200, 7]).astype(dtype)
    for first in (3, -1, 300):
        captured = capture(lambda x, n: (x < n, x == n, n >= x), (x, first), {})
        for n in (5, -1, 300, 70_000, -(2**40), 2**62):
            if valid(captured, x, n):
                same(run(captured, x, n), (x < n, x == n, n >= x))
        assert valid(captured, x, first)


def test_numpy_scalars_that_decide(agree: Agree) -> None:
    def f(x: Any, n: Any, a: Any) -> Any:
        return [x[i] * a for i in range(n)]

    captured = agree(f, X, np.int64(2), np.float64(0.5))
    assert not valid(captured, X, np.int64(3), np.float64(0.5))


def test_arrays_made_by_any_function_can_be_written_to(agree: Agree) -> None:
    def f(x: Any) -> Any:
        t = np.linspace(0, 1, 4)
        t[0] = x[0, 0]
        t *= 2
        order = np.argsort([3, 1, 2, 0])
        return (
            t[order],
            np.hanning(4) + x,
            np.linalg.inv([[2.0, 0.0], [0.0, 1.0]]) @ x[:2],
            np.fft.fftfreq(4),
        )

    agree(f, X)


def test_arrays_from_elsewhere_are_taken_as_they_are(agree: Agree) -> None:
    def f(x: Any) -> Any:
        table = scipy.linalg.hadamard(4) * 1.0
        y = x * table[0]
        table[0, 0] = 5.0
        return y + x * table[0]

    agree(f, X)
    with pytest.raises(Unsupported, match="neither gets nor makes"):
        capture(write_elsewhere, (X,), {})


def write_elsewhere(x: Any) -> Any:
    table = scipy.linalg.hadamard(4)
    table += x.astype(table.dtype)[:1]
    return table


def test_number_kinds(agree: Agree) -> None:
    def f(x: Any, a: Any, n: Any) -> Any:
        assert isinstance(a, float)
        assert isinstance(n, int)
        assert type(n) is int
        return x * a if isinstance(n, int | np.integer) else x

    agree(f, X, 0.5, 2)


def test_guards_name_objects() -> None:
    captured = capture(deep, (X,), {})
    objects = [g.source.describe() for g in captured.guards if isinstance(g, ObjectGuard)]
    assert {"np", "relu", "dense"} <= set(objects)
