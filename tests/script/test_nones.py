"""Variables that may be None at an operator: what Python raises, where it does, and only there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Check = Callable[..., Any]


def compared(x: Any, y: Any, n: int) -> Any:
    t = 0
    for i in range(len(x)):
        if i > n and n > 10:
            return t
        y[i] = 9
        if t < (t if n > 2 else 2) and x[0] > 10:
            t = None
    return t


def compared_with_itself(x: Any, y: Any, n: int) -> Any:
    t = None
    for i in range(len(x)):
        if n > 2:
            t = i
        y[i] = 1
        y[i] = t < t
    return t


def in_inner_loops(x: Any, y: Any, n: int) -> Any:
    t = 4
    for i in range(len(x)):
        y[i] = 2
        t = 4
        for _ in range(n):
            if x[0] > 10:
                t = None
        y[i] = abs(t) + -t + t**2 + (t & 3)
    return t


def in_place(x: Any, y: Any, n: int) -> Any:
    t = 4
    for i in range(len(x)):
        y[i] = 1
        if i > n:
            t = None
        t *= 2
    return t


def always_in_place(x: Any, y: Any, n: int) -> Any:
    t = None
    for i in range(len(x)):
        y[i] = 1
        if i >= n:
            t -= 1
    return t


def unary(x: Any, y: Any, n: int) -> Any:
    t = 4
    for i in range(len(x)):
        y[i] = 1
        if i > n:
            t = None
        y[i] = -t + abs(t)
    return t


@pytest.mark.parametrize("first", [1.0, 11.0])
@pytest.mark.parametrize("n", [0, 1, 3, 20])
@pytest.mark.parametrize(
    "function", [compared, compared_with_itself, in_inner_loops, in_place, always_in_place, unary]
)
def test_none(like_python: Check, function: Any, n: int, first: float) -> None:
    like_python(function, np.full(5, first), np.zeros(5), n, fallback=True)


def test_where_none_is_not_met_loops_are_compiled(like_python: Check) -> None:
    for function in (compared, in_inner_loops, in_place, unary):
        like_python(function, np.ones(5), np.zeros(5), 10)


@pytest.mark.parametrize("numerator", [1, 7, True, 1.0])
@pytest.mark.parametrize("start", [3, 2.0])
def test_division_by_zero_says_of_what(like_python: Check, numerator: Any, start: Any) -> None:
    def f(x: Any, y: Any) -> Any:
        t = start
        for i in range(len(x)):
            y[i] = numerator / t
            t -= 1

    like_python(f, np.ones(5), np.zeros(5))
