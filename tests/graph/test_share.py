"""Groups that compute the same from different values are one kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.display.view.headline import title
from nbcomp.graph.passes.legality import LONGEST
from nbcomp.graph.passes.share import corresponding
from nbcomp.levels import levels


def calls(compiled: Any) -> list[int]:
    """How often each kernel is called, the most called first."""
    return sorted((len(k.groups) for k in compiled.kernels), reverse=True)


def layers(x: Any, weights: Any) -> Any:
    for w in weights:
        x = np.tanh(x @ w + 1.0)
    return x


def jacobi(a: Any, rounds: int = 6) -> Any:
    for _ in range(rounds):
        c = 0.25 * (a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a = np.copy(a)
        a[1:-1, 1:-1] = c
    return a


def chain(x: Any, rounds: int) -> Any:
    for _ in range(rounds):
        x = np.tanh(x) * 0.9 + 0.1
    return x


def test_a_long_loop_is_one_kernel_called_again_and_again(rng: np.random.Generator) -> None:
    """Written into one kernel, hundreds of rounds would take seconds to compile."""
    x = rng.random(30)
    compiled = nbcomp.compile(chain, x, 200)
    assert len(compiled.kernels) <= 3
    assert max(sum(n.op.cost for n in g.nodes) for g in compiled.groups) <= LONGEST
    np.testing.assert_allclose(compiled(x, 200), chain(x, 200), rtol=1e-12)


def softmaxes(x: Any) -> Any:
    for _ in range(4):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        x = np.sort(e / e.sum(axis=-1, keepdims=True), axis=0)
    return x


def test_equal_steps_are_one_kernel(rng: np.random.Generator) -> None:
    a = rng.random((21, 34))
    compiled = nbcomp.compile(jacobi, a)
    assert calls(compiled) == [6]  # the one that writes the result included
    np.testing.assert_array_equal(compiled(a), jacobi(a))


def test_every_level_calls_it_on_its_own_values(rng: np.random.Generator) -> None:
    a = rng.random((9, 12))
    compiled = nbcomp.compile(jacobi, a)
    for what, run in levels(compiled):
        np.testing.assert_array_equal(run(a), jacobi(a), err_msg=what)


def test_layers_with_weights_of_their_own(rng: np.random.Generator) -> None:
    x = rng.random((5, 16))
    weights = [rng.random((16, 16)) - 0.5 for _ in range(7)]
    compiled = nbcomp.compile(layers, x, weights)
    assert calls(compiled) == [7]
    np.testing.assert_allclose(compiled(x, weights), layers(x, weights), rtol=1e-12)


def attend(x: Any, weights: Any) -> Any:
    for w in weights:
        scores = (x @ w) @ x.T / 4
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        x = np.tanh((e / e.sum(axis=-1, keepdims=True)) @ x) + x
    return x


def test_attention_in_every_layer(rng: np.random.Generator) -> None:
    x, weights = rng.random((32, 16)) - 0.5, [rng.random((16, 16)) - 0.5 for _ in range(5)]
    compiled = nbcomp.compile(attend, x, weights)
    assert len(compiled.kernels) <= len(compiled.groups) / 2
    np.testing.assert_allclose(compiled(x, weights), attend(x, weights), rtol=1e-10)


def test_between_library_calls(rng: np.random.Generator) -> None:
    x = rng.random((6, 10))
    compiled = nbcomp.compile(softmaxes, x)
    assert calls(compiled) == [4]
    np.testing.assert_allclose(compiled(x), softmaxes(x), rtol=1e-12)
    assert "in 1 kernel called 4 times, with 4 library calls" in title(compiled)


def by_constant(x: Any, y: Any) -> Any:
    for k in (2.0, 3.0, -0.0, 0.0):
        x = np.sort(np.copysign(x, k) * k)
    return np.sort(1 / (x * y)) + 0.0


def by_operand(x: Any, y: Any) -> Any:
    def one(a: Any, b: Any, p: Any, q: Any) -> Any:
        return np.sort(a * 2.0 + b + (p - q))

    x = one(x, y, x, y)
    return one(x, y, y, x) + 1.0


def by_layout(x: Any, y: Any) -> Any:
    return sum(np.sort(np.cumsum(v + 1.0, axis=0), axis=0) for v in (x, x.T, y, y.T, y[::-1]))


def by_dtype(x: Any, y: Any) -> Any:
    return sum(np.sort(v * 2) + 0 for v in (x, y.astype(np.float32), y.astype(np.int8)))


@pytest.mark.parametrize("program", [by_constant, by_operand, by_layout, by_dtype])
def test_what_differs_stays_apart(program: Callable[..., Any], rng: np.random.Generator) -> None:
    x, y = rng.random((6, 6)) - 0.5, (rng.random((6, 6)) - 0.5).T
    with np.errstate(divide="ignore", invalid="ignore"):
        np.testing.assert_array_equal(nbcomp.compile(program, x, y)(x, y), program(x, y))


def test_places_of_the_source_stay_apart(rng: np.random.Generator) -> None:
    def f(x: Any) -> Any:
        x = np.sort(x * 2.0)
        x = np.sort(x * 2.0)
        return x + 1.0

    compiled = nbcomp.compile(f, rng.random(7))
    assert calls(compiled) == [1, 1, 1]


def test_one_value_read_twice_is_not_two(rng: np.random.Generator) -> None:
    def f(x: Any, y: Any) -> Any:
        for k in range(3):
            x, y = np.sort(x * y), np.sort(x * (x if k == 1 else y) + 1.0)
        return x, y

    x, y = rng.random(9), rng.random(9)
    compiled = nbcomp.compile(f, x, y)
    for ours, theirs in zip(compiled(x, y), f(x, y), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_results_have_memory_of_their_own(rng: np.random.Generator) -> None:
    def f(x: Any) -> Any:
        return [np.exp(np.sort(x)) for x in (x, x + 1.0, x + 2.0)]

    x = rng.random(20)
    compiled = nbcomp.compile(f, x)
    for ours, theirs in zip(compiled(x), f(x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-15)


def test_nodes_correspond(rng: np.random.Generator) -> None:
    compiled = nbcomp.compile(jacobi, rng.random((9, 12)))
    shared = next(k for k in compiled.kernels if len(k.groups) > 1)
    first, second = shared.groups[:2]
    table = corresponding(second, first)
    assert [table[n] for n in first.nodes] == list(second.nodes)
    assert [table[n] for n in first.outputs] == list(second.outputs)


def collected(x: Any, w: Any) -> Any:
    found = []
    for k in range(6):
        x = np.tanh(x + w[k] @ x)
        found.append(x)
    return found, np.sort(x, axis=0)


def turned(x: Any) -> Any:
    found = []
    for _ in range(3):
        x = np.sort(np.tanh(x), axis=0)
        found += [np.tanh(x), np.tanh(x).T, np.exp(x.T)]
    return found


@pytest.mark.parametrize("function", [collected, turned])
def test_results_are_made_by_the_kernels_of_values_within(
    rng: np.random.Generator, function: Any
) -> None:
    args = (rng.random((4, 4)), rng.random((6, 4, 4)))[: function.__code__.co_argcount]
    compiled = nbcomp.compile(function, *args)
    assert calls(compiled)[0] > 1
    got, want = compiled(*args), function(*args)
    flat = (lambda r: [*r[0], r[1]]) if function is collected else list
    for a, b in zip(flat(got), flat(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)
        assert a.strides == b.strides


def test_it_is_said_on_the_users_line(rng: np.random.Generator) -> None:
    compiled = nbcomp.compile(jacobi, rng.random((9, 12)))
    said = [r for r in compiled.explain() if r.topic == "share"]
    assert len(said) == 1
    assert "is called 6 times" in said[0].reason
    assert said[0].location is not None
    assert "a[1:-1, 1:-1]" in said[0].location.source()


def test_measured_together(rng: np.random.Generator) -> None:
    a = rng.random((40, 50))
    compiled = nbcomp.compile(jacobi, a)
    once = nbcomp.compile(lambda a: jacobi(a, 1), a)
    (several,), (one,) = (
        nbcomp.measure_numbers(c, (a,), seconds=0.01).kernels for c in (compiled, once)
    )
    assert (several.calls, one.calls) == (6, 1)
    assert several.operations == 6 * one.operations
    assert several.bytes == 6 * one.bytes
