"""Python ints that loops over whole arrays change: exact, as Python's are, whatever their size."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp

LONG = 200  # rounds: loops of fewer than 64 are written out


def times(x: Any, n: Any) -> Any:
    k = 1
    for _ in range(LONG):
        x, k = x * 1.5, k * n
    return x, k


def plus(x: Any, n: Any) -> Any:
    k = 0
    for i in range(LONG):
        x, k = x + 1.0, k + n * i
    return x, k


def minus(x: Any, n: Any) -> Any:
    k = 5
    for _ in range(LONG):
        x, k = x + 1.0, n - k
    return x, k


def until(x: Any, n: Any) -> Any:
    k = 1
    while k < n:
        x, k = x * 1.1, k * 3
    return x + k, k


def signs(x: Any, n: Any) -> Any:
    k = -n
    for _ in range(LONG + 1):
        x, k = x * 1.0, -k
    return x, k, abs(k), +k, ~k, k // 3, k % 7


def bits(x: Any, n: Any) -> Any:
    k, m = n, 3
    for _ in range(LONG):
        x, k, m = x * 1.0, (k ^ 12345) & (n | 1), m << 1
    return x, k, m


def shifts(x: Any, n: Any) -> Any:
    k = n
    for i in range(LONG):
        x, k = x * 1.0, (n >> 1) + (k >> i % 3)
    return x, k


def powers(x: Any, n: Any) -> Any:
    k = n
    for _ in range(LONG):
        x, k = x + k**2 % 5, k + 1
    return x, k


def branches(x: Any, n: Any) -> Any:
    k = n
    for _ in range(LONG):
        if x.sum() > 0:
            x, k = x - 1.0, k * 2
        else:
            x, k = x + 3.0, k * 3 - 1
    return x, k


PROGRAMS = (times, plus, minus, until, signs, bits, shifts, powers, branches)


@pytest.mark.parametrize("n", [0, 1, 2, -3, 2**31 - 1, 2**40, 2**62, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("program", PROGRAMS)
def test_exact(program: Callable[..., Any], n: int) -> None:
    x = np.linspace(-1, 1, 5)
    scripted = nbcomp.script(program)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nbcomp.NumpyFallback)
        ours, theirs = scripted(x, n), program(x, n)
    np.testing.assert_array_equal(ours[0], theirs[0])
    assert ours[1:] == theirs[1:]
    assert all(type(k) is int for k in ours[1:])


def test_most_are_compiled() -> None:
    x = np.linspace(-1, 1, 5)
    for program in (times, plus, minus, until, signs, bits, powers, branches):
        scripted = nbcomp.script(program)
        scripted(x, 2)
        assert scripted.compiled is not None, program


def test_what_wraps_in_numpy_is_named() -> None:
    with pytest.warns(nbcomp.NumpyFallback, match="shifts and powers of Python ints"):
        nbcomp.script(shifts)(np.ones(3), 5)


def test_the_callers_array_is_written_once() -> None:
    def f(x: Any, n: Any) -> Any:
        k = 1
        for _ in range(LONG):
            x += 1.0
            k = k * n
        return k

    ours, theirs = np.zeros(4), np.zeros(4)
    assert nbcomp.script(f)(ours, 3) == f(theirs, 3)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.filterwarnings("ignore::nbcomp.NumpyFallback")  # n·n is a Python int beyond 64 bits
@pytest.mark.parametrize("n", [3, 2**31, 2**32])
def test_loops_within_loops(n: int) -> None:
    def f(x: Any, n: Any) -> Any:
        k = 1
        for _ in range(LONG):
            for _ in range(LONG):
                x, k = x * 0.999, k + n * n
        return x, k

    ours, theirs = nbcomp.script(f)(np.ones(3), n), f(np.ones(3), n)
    np.testing.assert_array_equal(ours[0], theirs[0])
    assert ours[1] == theirs[1]


def raised(base: Any, exponent: Any) -> Any:
    result = 0
    for _ in range(1):
        result = base**exponent
    return result


@pytest.mark.parametrize("base", [0, 1, -1, 2, -2, 3, 10, True, 7919])
@pytest.mark.parametrize("exponent", [0, 1, 5, 18, 39, 40, 62, 63, 64, -1, -2, 10**9 + 7])
def test_powers_known_at_run_time(
    like_python: Callable[..., Any], base: int, exponent: int
) -> None:
    if abs(base) > 1 and exponent > 100:
        pytest.skip("more digits than anybody wants")
    like_python(raised, base, exponent)
