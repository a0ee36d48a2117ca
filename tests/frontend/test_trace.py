"""Capture of plain functions: operators, functions, methods, properties, globals and numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nbcomp.frontend.trace import capture
from nbcomp.runtime.plan import ArrayGuard, ScalarGuard, ValueGuard
from tests.frontend.replay import run, same, valid

Agree = Callable[..., Any]
X = np.linspace(-2, 3, 12).reshape(3, 4)
Y = np.linspace(1, 2, 4)
WHOLE = np.arange(-4, 8).reshape(3, 4)
W1, b1 = np.linspace(-1, 1, 20).reshape(4, 5), np.linspace(0, 1, 5)
SCALE = 3.0

OPERATORS = {
    "add": lambda x, y: x + y,
    "radd": lambda x, y: 1 + x,
    "sub": lambda x, y: x - y - 2.5,
    "rsub": lambda x, y: 2 - x,
    "mul": lambda x, y: 3 * x * y,
    "div": lambda x, y: x / y + 1 / y,
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "divmod": lambda x, y: divmod(x, y),
    "rdivmod": lambda x, y: divmod(7.0, y),
    "pow": lambda x, y: x**2 + y**0.5 + y**-1 + abs(x) ** y + 2.0**x,
    "neg": lambda x, y: -x,
    "pos": lambda x, y: +x,
    "abs": lambda x, y: abs(x),
    "matmul": lambda x, y: x @ y,
    "compare": lambda x, y: (x < y, x <= y, x > y, x >= y, x == y, x != y, 1 < x),  # noqa: SIM300
    "logic": lambda x, y: (x > 0) & (y > 1.5) | ~(x < 1) ^ (y == 1),
    "none": lambda x, y: (x == None, x != None),  # noqa: E711
}

METHODS = {
    "sums": lambda x: (x.sum(), x.sum(0), x.sum(axis=-1, keepdims=True), x.prod(axis=1)),
    "extremes": lambda x: (x.max(), x.min(axis=1), x.argmax(), x.argmin(axis=0)),
    "moments": lambda x: (x.mean(), x.std(axis=0), x.var(axis=1, ddof=1)),
    "tests": lambda x: ((x > 0).any(), (x > -9).all(axis=0)),
    "cumulative": lambda x: (x.cumsum(), x.cumsum(axis=1), x.cumprod(axis=0)),
    "shape": lambda x: (x.reshape(4, 3), x.reshape((2, -1)), x.ravel(), x.flatten()),
    "axes": lambda x: (x.T, x.mT, x.transpose(1, 0), x.transpose(), x.swapaxes(0, 1)),
    "cast": lambda x: (x.astype(np.float32), x.astype(int), x.astype("f8", copy=False)),
    "values": lambda x: (x.clip(-1, 1), x.round(1), x.copy(), x.conj(), x.real, x.imag + 1),
    "moves": lambda x: (x.repeat(2, axis=1), x.take([2, 0], axis=0), x[None].squeeze()),
    "sorting": lambda x: (x.argsort(axis=1), np.sort(-x, axis=0)),
    "linear": lambda x: (x.dot(x.T), x.trace(), x.diagonal()),
    "facts": lambda x: (x.shape, x.ndim, x.size, x.itemsize, x.nbytes, len(x), str(x.dtype)),
    "iterate": lambda x: [row * 2 for row in x],
    "unpack": lambda x: (lambda a, b, c: a + b * c)(*x),
    "layout": lambda x: (x.strides, x.T.strides, x.flags.c_contiguous, x.T.flags.f_contiguous),
}

FUNCTIONS = {
    "elementary": lambda x: np.exp(x) + np.tanh(x) - np.sqrt(abs(x)) * np.log1p(abs(x)),
    "where": lambda x: np.where(x > 0, x, 0.1 * x),
    "clip": lambda x: np.clip(x, 0, None),
    "maximum": lambda x: np.maximum(x, 0),
    "softmax": lambda x: (
        np.exp(x - x.max(1, keepdims=True))
        / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)
    ),
    "joins": lambda x: (np.concatenate([x, x], axis=1), np.stack([x, -x]), np.vstack((x, x))),
    "splits": lambda x: (np.split(x, 2, axis=1), np.array_split(x, 2)),
    "flips": lambda x: (np.flip(x), np.fliplr(x), np.rot90(x), np.roll(x, 1)),
    "pads": lambda x: (np.pad(x, 1), np.tile(x, 2), np.diff(x)),
    "triangles": lambda x: (np.tril(x), np.triu(x, 1)),
    "products": lambda x: (np.outer(x[0], x[1]), np.einsum("ij,kj->ik", x, x)),
    "tensordot": lambda x: np.tensordot(x, x, axes=([1], [1])),
    "creation": lambda x: (np.zeros(3), np.ones((2, 2)), np.full(2, 7.0), np.eye(3), np.arange(4)),
    "likes": lambda x: (np.zeros_like(x), np.ones_like(x), np.full_like(x, 2)),
    "linspace": lambda x: np.linspace(0, 1, 5) * x[0, 0],
    "norm": lambda x: np.linalg.norm(x),
    "array": lambda x: (np.array([x[0], x[1]]), np.array(x), np.asarray(x), np.array([1.0, 2.0])),
    "broadcast": lambda x: np.broadcast_to(x, (2, 3, 4)) + 0,
    "expand": lambda x: np.expand_dims(x, 1) * x,
    "round": lambda x: np.round(x, 2),
    "python bools": lambda x: (np.allclose(x, x), np.array_equal(x, x + 1)),
    "parts": lambda x: (np.real(x), np.imag(x) + 1),
    "static": lambda x: (np.shape(x), np.ndim(x), np.size(x), np.result_type(x, np.float32)),
    "isinstance": lambda x: isinstance(x, np.ndarray) and not isinstance(x.sum(), np.ndarray),
}

INDICES = [
    0,
    -1,
    (1, 2),
    (0, ...),
    (..., -1),
    (1, 2, ...),
    slice(1, None),
    (slice(None), slice(None, None, -1)),
    (slice(None, None, 2), 1),
    (slice(5, 1), slice(None)),
    None,
    (slice(None), None, 1),
    (...,),
    (),
    [2, 0, 0],
    ([0, 1], [1, 2]),
    (slice(None), [3, 1]),
    np.array([[0, 1], [2, 2]]),
    np.array(1),
]


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str, agree: Agree) -> None:
    agree(OPERATORS[name], X, Y)


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "div", "floordiv", "mod", "matmul", "compare"]
)
def test_operators_on_integers(name: str, agree: Agree) -> None:
    agree(OPERATORS[name], WHOLE, np.array([1, -2, 3, 5]))


def test_shifts_and_bits(agree: Agree) -> None:
    agree(lambda i: (i << 2, i >> 1, i & 3, i | 8, i ^ 5, ~i, 1 << abs(i)), WHOLE)


@pytest.mark.parametrize("name", METHODS)
def test_methods(name: str, agree: Agree) -> None:
    agree(METHODS[name], X)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, agree: Agree) -> None:
    agree(FUNCTIONS[name], X)


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_indexing(index: Any, agree: Agree) -> None:
    agree(lambda x: x[index], X)


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_assignment(index: Any, agree: Agree) -> None:
    def assign(x: Any) -> Any:
        y = x + 1
        y[index] = -5
        return y

    agree(assign, X)


def test_ndarray_on_the_left(agree: Agree) -> None:
    agree(lambda x: (Y + x, Y @ x.T, np.float32(2) * x, np.float64(1) < x), X)


def predict(x: Any) -> Any:
    h = np.maximum(x @ W1 + b1, 0) * SCALE
    e = np.exp(h - h.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def test_globals_are_inputs_by_name(agree: Agree) -> None:
    captured = agree(predict, X)
    assert [n.name for n in captured.graph.inputs] == ["x", "W1", "b1", "SCALE"]
    kinds = [type(g) for g in captured.guards[:4]]
    assert kinds == [ArrayGuard, ArrayGuard, ArrayGuard, ScalarGuard]


def test_changed_global_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    captured = capture(predict, (X,), {})
    monkeypatch.setitem(predict.__globals__, "SCALE", -0.5)
    monkeypatch.setitem(predict.__globals__, "b1", b1[::-1].copy())
    np.testing.assert_array_equal(run(captured, X), predict(X))
    monkeypatch.setitem(predict.__globals__, "b1", np.zeros(6))
    assert not valid(captured, X)


def test_numbers_stay_symbolic() -> None:
    def step(x: Any, rate: float, n: int) -> Any:
        return x * (1.0 - 0.5 * rate) + n - -rate

    captured = capture(step, (X, 0.1, 3), {})
    assert not any(isinstance(g, ValueGuard) for g in captured.guards)
    for rate, n in ((0.1, 3), (-2.5, 7), (float("inf"), -1)):
        with np.errstate(all="ignore"):
            same(run(captured, X, rate, n), step(X, rate, n))


def test_numbers_that_decide_are_assumed() -> None:
    def power(x: Any, n: int, flag: bool = True, scale: float = 1.0) -> Any:
        y = np.zeros(n) + x[:n]
        for _ in range(n):
            y = y * x[0]
        return y if flag else y * scale

    captured = capture(power, (Y, 3), {})
    assert valid(captured, Y, 3)
    assert not valid(captured, Y, 2)
    assert not valid(captured, Y, 3, False)
    assert valid(captured, Y, 3, True, 8.0)  # never used
    np.testing.assert_array_equal(run(captured, Y, 3), power(Y, 3))


NEP50 = [np.bool_, np.int8, np.uint8, np.int32, np.int64, np.uint64, np.float16, np.float32]


@pytest.mark.parametrize("dtype", NEP50)
def test_python_numbers_give_way(dtype: type, agree: Agree) -> None:
    x = np.array([0, 1, 1, 0, 1]).astype(dtype)
    agree(lambda x, n: (x + n, x * 1.5, x + True, x > n), x, 3)
    agree(lambda x, f: (x + f, f * x, np.where(x > 0, x, f), np.maximum(x, f)), x, 0.1)


def test_a_narrow_integer_bounds_the_number() -> None:
    captured = capture(lambda x, n: x + n, (np.zeros(3, np.uint8), 5), {})
    guard = captured.guards[1]
    assert isinstance(guard, ScalarGuard)
    assert (guard.low, guard.high) == (0, 255)


def test_number_out_of_range_raises_as_numpy_does() -> None:
    with pytest.raises(OverflowError, match="300 out of bounds for uint8"):
        capture(lambda x, n: x + n, (np.zeros(3, np.uint8), 300), {})


def test_numpy_scalars(agree: Agree) -> None:
    agree(lambda x, s: x * s + s, Y.astype(np.float32), np.float32(3))
    agree(lambda s: (s + 1, s * s, np.exp(s)), np.float64(2))


def test_zero_d(agree: Agree) -> None:
    x = np.array(2.0)
    agree(lambda x: (x + 1, x[()], x[...] + 0, np.where(x > 0, x, 1), x.reshape(1)), x)
    agree(lambda x: (x.copy(), x.astype(int), x.sum(), x.sum().astype(int), np.squeeze(x[None])), x)
    agree(lambda x: (x.sum()[...], x.sum()[None], x.sum().reshape(()), x.sum().copy()), X)


def test_unused_arguments_are_not_guarded() -> None:
    captured = capture(lambda x, y: x + 1, (X, Y), {})
    assert len(captured.graph.inputs) == 1
    assert valid(captured, X, np.zeros(77))


def test_constants_fold_in_python(agree: Agree) -> None:
    def f(x: Any) -> Any:
        order = np.array([2, 0, 1])
        total = 0
        for i in order:
            total = total + x[i] * int(i)
        if order.sum() > 2:
            total = total + x[order].sum()
        return total

    agree(f, X)
