"""Control flow between whole arrays: both branches are kept, long loops stay loops."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.graph.verifier import verify
from nbcomp.levels import levels
from tests.script.conftest import assert_same


def gate(x: Any) -> Any:
    return x if x.sum() > 0 else -x


def gate_of_statements(x: Any) -> Any:
    if x.sum() > 0:
        y = x * 2
        k = 1
    else:
        y = -x
        k = 2
    return y + k


def early(x: Any) -> Any:
    if x.max() > 3:
        return x
    x = x + 1
    if (x.min() < 0 and x.max() < 2) or not x[0] > 1:
        return x * 2
    return x / 2


def writes(x: Any) -> Any:
    if 0 < x.sum() < 100:
        x[0] = 5
    return x


def cell(x: Any, h: Any, w: Any, u: Any) -> Any:
    for _ in range(4):
        h = np.tanh(x @ w + h @ u)
        if h.sum() > 0:
            h = h * 0.5
    return h


def halve(x: Any) -> Any:
    n = 0
    while np.abs(x).max() > 1:
        x = x * 0.5
        n += 1
    return x, n


def newton(a: Any) -> Any:
    x = np.ones_like(a)
    error = 1.0
    while error > 1e-10:
        y = 0.5 * (x + a / x)
        error = np.abs(y - x).max()
        x = y
    return x


def power_iteration(a: Any, v: Any) -> Any:
    for _ in range(100):
        v = a @ v
        v = v / np.sqrt((v * v).sum())
    return v


def grow(x: Any) -> Any:
    while x.sum() < 100:
        x[1:] += 1
        x *= 1.5
    return x


def rows(x: Any) -> Any:
    total = np.zeros(3)
    for i in range(100):
        total = total + x[i] * i
    return total, i


def branch_in_loop(x: Any) -> Any:
    for _ in range(100):
        if x.sum() > 3:
            x = x - 1
        elif x.sum() > 1:
            x = x + 2
        else:
            x = x + 3
    return x


RNG = np.random.default_rng(5)
CALLS: list[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = [
    (gate, [(np.arange(3.0),), (-np.arange(3.0),)]),
    (gate_of_statements, [(np.arange(3.0),), (-np.arange(3.0),)]),
    (early, [(np.arange(3.0) + k,) for k in (-9, 0, 1, 4)]),
    (writes, [(np.arange(3.0),), (np.full(3, 99.0),)]),
    (cell, [(RNG.random((2, 3)), RNG.random((2, 3)), RNG.random((3, 3)), -RNG.random((3, 3)))]),
    (halve, [(np.arange(5.0) * 100,), (np.arange(5.0) * 0.1,)]),
    (newton, [(np.arange(1.0, 5),)]),
    (power_iteration, [(RNG.random((4, 4)), np.ones(4))]),
    (grow, [(np.arange(4.0),)]),
    (rows, [(RNG.random((100, 3)),)]),
    (branch_in_loop, [(np.arange(3.0),)]),
]


@pytest.mark.parametrize(("function", "calls"), CALLS, ids=lambda v: getattr(v, "__name__", ""))
def test_like_numpy(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> None:
    scripted = nbcomp.script(function)
    for args in calls:
        mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
        got, want = scripted(*mine), function(*theirs)
        np.testing.assert_allclose(np.hstack(got), np.hstack(want), rtol=1e-12)
        assert type(got) is type(want)
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    assert len(scripted.variants) == 1  # one program, whatever the values
    verify(scripted.graph)


@pytest.mark.parametrize(("function", "calls"), CALLS, ids=lambda v: getattr(v, "__name__", ""))
def test_every_level(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> None:
    scripted = nbcomp.script(function)
    args = calls[0]
    scripted(*copy.deepcopy(args))
    want = function(*copy.deepcopy(args))
    for name, run in levels(scripted.compiled):
        got = run(*copy.deepcopy(args))
        np.testing.assert_allclose(np.hstack(got), np.hstack(want), rtol=1e-12, err_msg=name)


def test_both_branches_are_printed() -> None:
    scripted = nbcomp.script(gate_of_statements)
    scripted(np.arange(3.0))
    text = str(scripted.graph)
    assert "= if(" in text
    assert "graph then(" in text
    assert "graph else(" in text
    assert "multiply(%x, 2.0)" in text
    assert "negative(%x)" in text


def test_types_that_differ_between_branches() -> None:
    def f(x: Any) -> Any:
        y = x[:2] if x.sum() > 0 else x
        return y * 2

    with pytest.warns(nbcomp.NumpyFallback, match=r"f64\[2\] on one way and f64\[3\]"):
        assert_same(nbcomp.script(f)(np.arange(3.0)), f(np.arange(3.0)))


def test_a_variable_of_one_branch() -> None:
    def f(x: Any) -> Any:
        if x.sum() > 0:
            y = x
        return y

    with pytest.warns(nbcomp.NumpyFallback, match="`y` is assigned on one way only"):
        assert_same(nbcomp.script(f)(np.arange(3.0)), np.arange(3.0))


def test_types_that_change_in_a_loop() -> None:
    def f(x: Any) -> Any:
        while x.sum() < 10:
            x = np.concatenate([x, x])
        return x

    with pytest.warns(nbcomp.NumpyFallback, match=r"`x` is f64\[3\] before .* f64\[6\] after"):
        assert_same(nbcomp.script(f)(np.arange(3.0)), f(np.arange(3.0)))


def _table(n: Any, step: Any) -> Any:
    flat, deep = np.empty(n), np.empty(shape=(n, 2), dtype=np.int64)
    for i in range(n):
        flat[i] = i / step
        deep[i, 0] = deep[i, 1] = i * step
    return flat, deep


def test_arrays_of_a_given_length_are_not_filled_first(like_python: Any) -> None:
    scripted = like_python(_table, 5, 3)
    for n in (0, 7, 5, 1):
        assert_same(scripted(n, 4), _table(n, 4))
    for made in scripted.variants:
        assert len(made.kernels) <= 1
    like_python(_table, -1, 3, fallback=True)
    like_python(_table, 4, 0, fallback=True)
