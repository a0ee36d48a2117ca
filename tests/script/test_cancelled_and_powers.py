"""Ints in loops over elements: powers of those that are 1 or more, and those that are known because
the variables in them cancel out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Check = Callable[..., Any]
EXPONENTS = (0, 1, 2, 3, 4, 7)


def from_one(x: Any, first: int) -> Any:
    t = 0
    for i in range(first, len(x)):
        if x[i] >= 0:
            t += i**2 + i**5 + (i**3) ** 2
    return t


def counted(x: Any, first: int) -> Any:
    n = first
    for v in x:
        n += 1 if v >= 0 else v
    return n, n**0, n**1, n**2, n**3, n**4


def on_ways(x: Any, first: int) -> Any:
    s = first
    for v in x:
        if v > 100:
            s += v
        else:
            s += 1
    return s**2, (s**2) ** 2, (s**3) ** 2, s**2 * 3


def from_none(x: Any, first: int) -> Any:
    n, best = first, None
    for _ in x:
        n += 1
        best = n
    return best**2


def in_the_loop(x: Any, first: int) -> Any:
    s, t, u = first, 0, 0
    for i in range(len(x)):
        t, u = s**2, s**4
        s += 1 if i >= 0 else x[i]
    return t, u


@pytest.mark.parametrize("first", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", [np.float64, np.int16])
@pytest.mark.parametrize("function", [from_one, counted, on_ways, from_none, in_the_loop])
def test_powers(like_python: Check, function: Any, dtype: Any, first: int) -> None:
    like_python(function, np.arange(5).astype(dtype), first)


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("first", [0, 1, 2, -1])
def test_powers_of_a_variable_of_the_loop(like_python: Check, first: int, exponent: int) -> None:
    def f(x: Any) -> Any:
        t = 0
        for i in range(first, len(x) + first):
            if x[i - first] >= 0:
                t += i**exponent
        return t

    like_python(f, np.ones(6))


def windows(x: Any) -> Any:
    t = 0.0
    for i in range(200):
        for j in range(2):
            if x[i] > 0:
                t += x[j : j + 3].sum() + x[:: (j + 3) - j].sum()
    return t


def exponents(x: Any) -> Any:
    t = 0
    for i in range(3):
        if x[i] >= 0:
            t += (int(x[i]) + 1) ** ((i + 5) - i) + (i + 4 - i) * 3
    return t


def products(x: Any) -> Any:
    t = 0
    for i in range(len(x)):
        for j in range(2):
            if x[i] > 0:
                t += (j * 2 + 7 - j - j) ** 2
    return t


@pytest.mark.parametrize("function", [windows, exponents, products])
def test_variables_that_cancel_out(like_python: Check, function: Any) -> None:
    like_python(function, np.arange(1.0, 201.0))
