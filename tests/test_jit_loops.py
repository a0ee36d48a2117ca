"""Loops over elements in functions given to `jit`: compiled as the loops they are."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.frontend import session
from nbcomp.frontend.bytecode.capture import EARLY_VALUES
from nbcomp.graph.control import Loops
from nbcomp.graph.interpreter import evaluate
from nbcomp.graph.ir import Graph
from tests.script.textbook import sieve

RNG = np.random.default_rng(0)
SCALE = 3.0


def mandelbrot(w: int, h: int, most: int) -> Any:
    out = np.zeros((h, w), np.int32)
    for y in range(h):
        for x in range(w):
            cr, ci = -2 + 3 * x / w, -1 + 2 * y / h
            zr = zi = 0.0
            n = 0
            while zr * zr + zi * zi <= 4 and n < most:
                zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
                n += 1
            out[y, x] = n
    return out


def smoothed(x: Any, a: float) -> Any:
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = a * x[i] + (1 - a) * y[i - 1]
    return y


def histogram(x: Any, n: int) -> Any:
    h = np.zeros(n, np.int64)
    for v in x:
        k = int(v * n)
        if 0 <= k < n:
            h[k] += 1
    return h


def weight(v: Any) -> Any:
    return math.exp(-v * v) * SCALE


def helped(x: Any) -> Any:
    total = 0.0
    for v in x:
        total += weight(v)
    return total


def first_below(x: Any, limit: float) -> int:
    for i in range(len(x)):
        if x[i] < limit:
            return i
    return -1


CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (mandelbrot, (40, 30, 50)),
    (smoothed, (RNG.random(2000), 0.1)),
    (histogram, (RNG.random(3000), 20)),
    (helped, (RNG.random(500),)),
    (first_below, (np.r_[RNG.random(500), -1.0], 0.0)),
]


@pytest.mark.parametrize(("function", "args"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_compiled_as_loops(function: Any, args: Any) -> None:
    f = nbcomp.jit(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            got, want = f(*args), function(*args)
            assert type(got) is type(want)
            np.testing.assert_array_equal(got, want)
    assert len(f.variants) == 1
    assert f.parts is None
    assert any(n.op.name == "loops" for n in f.variants[0].captured.nodes)


def test_arguments_are_written_to_and_errors_are_pythons() -> None:
    def spread(x: Any, places: Any) -> None:
        for i in range(len(places)):
            x[places[i]] += i

    f = nbcomp.jit(spread)
    good, bad = np.arange(99) % 7, np.r_[np.arange(60) % 7, 7, np.zeros(60, int)]
    mine, theirs = np.zeros(7), np.zeros(7)
    f(mine, good)
    spread(theirs, good)
    np.testing.assert_array_equal(mine, theirs)
    assert f.variants
    for call, x in ((f, mine), (spread, theirs)):
        with pytest.raises(IndexError, match="out of bounds"):
            call(x, bad)
    np.testing.assert_array_equal(mine, theirs)


def test_lengths_are_left_open_from_the_second_on() -> None:
    f = nbcomp.jit(smoothed)
    for n in (500, 900, 700, 1234, 40):
        x = RNG.random(n)
        np.testing.assert_array_equal(f(x, 0.25), smoothed(x, 0.25))
    assert len(f.variants) <= 3


def test_a_global_that_changes_is_seen() -> None:
    f = nbcomp.jit(helped)
    x = RNG.random(300)
    before = f(x)
    globals()["SCALE"] = 5.0
    try:
        np.testing.assert_allclose(f(x), helped(x), rtol=1e-13)
        assert f(x) != before
    finally:
        globals()["SCALE"] = 3.0


def test_effects_happen_once() -> None:
    seen: list[int] = []
    notes: dict[str, int] = {}

    def noted(x: Any) -> Any:
        total = 0.0
        for i in range(len(x)):
            if x[i] > 0.5:
                seen.append(i)
                notes["last"] = i
            total += x[i]
        return total

    x = RNG.random(30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert nbcomp.jit(noted)(x) == pytest.approx(x.sum())
    assert seen == list(np.flatnonzero(x > 0.5))
    assert notes == {"last": seen[-1]}


def test_what_neither_way_compiles_is_pythons() -> None:
    def complex_numbers(n: int) -> Any:
        out = np.zeros(n)
        for k in range(n):
            z = complex(0, k)
            while abs(z) < 1000:
                z = z * z + 1
            out[k] = abs(z)
        return out

    f = nbcomp.jit(complex_numbers)
    with pytest.warns(nbcomp.NumpyFallback, match="loop"):
        np.testing.assert_array_equal(f(2000), complex_numbers(2000))


def isqrt(n: int) -> int:
    x, y = n, (n + 1) // 2
    while y < x:
        x, y = y, (y + n // y) // 2
    return x


def gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


def congruential(s: int, n: int) -> int:
    for _ in range(n):
        s = (s * 1103515245 + 12345) % 2147483648
    return s


def power(b: int, e: int, m: int) -> int:
    r = 1
    while e:
        if e & 1:
            r = r * b % m
        b = b * b % m
        e >>= 1
    return r


def horner(n: int, m: int) -> int:
    s = 0
    for i in range(n):
        s = s * m + i
    return s


INTS: list[tuple[Callable[..., int], list[tuple[int, ...]]]] = [
    (isqrt, [(7,), (1007,), (123456,), (99,)]),
    (gcd, [(0, 18), (12, 19), (24, 20), (276, 41), (1071, 462)]),
    (congruential, [(1, 5), (2, 6), (3, 7), (9, 50)]),
    (power, [(3, 1, 1000003), (3, 978, 1000004), (5, 117, 97), (2, 10, 1000)]),
    (horner, [(n, n % 7) for n in range(40)]),
]


@pytest.mark.parametrize(("function", "calls"), INTS, ids=[f.__name__ for f, _ in INTS])
def test_numbers_that_vary_are_the_loops_own(function: Any, calls: Any) -> None:
    """Followed as formulas of what a call gives they would become long."""
    f = nbcomp.jit(function)
    for args in calls:
        got = f(*args)
        assert (type(got), got) == (int, function(*args))
    assert len(f.variants) <= 3


def test_a_sieve_is_a_loop_however_much_of_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = []  # elements, while compiling

    def counted(graph: Graph, values: Any, *known: Any) -> Any:
        computed.append(sum(n.type.size for n in graph.nodes))
        return evaluate(graph, values, *known)

    monkeypatch.setattr(session, "evaluate", counted)
    f = nbcomp.jit(sieve)
    for n in (100_000, 200_000):
        np.testing.assert_array_equal(f(n), sieve(n))
    assert [type(n.op) for n in f.compiled.captured.nodes].count(Loops) == 1
    assert f.parts is None
    assert 0 < sum(computed) <= EARLY_VALUES
