"""Statements of scripted functions that are run as a whole, and numbers of whole arrays."""

from __future__ import annotations

import math
from math import sqrt
from typing import Any

import numpy as np
import pytest

X = np.array([4.0, 1.0, 2.5])
NEGATIVE = -X


def returns_in_try(x: Any, i: Any) -> Any:
    y = x * 2
    try:
        return y[i], y.sum()
    except IndexError:
        y = y + 1
    finally:
        x = None
    return y


def returns_pair_in_try(x: Any) -> Any:
    a = b = 0.0
    try:
        a, b = x.sum(), x.max()
        return b, a
    except ValueError:
        a = 1.0
    return a, b


def returns_nothing_in_with(x: Any) -> Any:
    with np.errstate(all="ignore"):
        x = x / 0
        if x.shape[0] == 3:
            return
    return x


def returns_in_match(x: Any) -> Any:
    match x.shape:
        case (3,):
            return x + 1
        case _:
            y = x
    return y


def inner_returns(x: Any) -> Any:
    try:

        def twice(v: Any) -> Any:
            return v * 2

        y = twice(x)
    except ValueError:
        return None
    return y


def halves(x: Any) -> Any:
    """Calls itself by its own name."""
    if len(x) < 2:
        return x * 1.0
    middle = len(x) // 2
    left, right = halves(x[:middle]), halves(x[middle:])
    return np.concatenate([right, left])


@pytest.mark.parametrize("x", [X, X[:2], X[:1]])
@pytest.mark.parametrize(
    "function",
    [returns_pair_in_try, returns_nothing_in_with, returns_in_match, inner_returns, halves],
)
def test_like_python(like_python: Any, function: Any, x: Any) -> None:
    like_python(function, x)


def test_errors_in_try(like_python: Any) -> None:
    like_python(returns_in_try, X, 1)
    like_python(returns_in_try, X, 7)


@pytest.mark.filterwarnings("ignore::nbcomp.NumpyFallback")
def test_jumps_out_of_try_are_left_to_python(like_python: Any) -> None:
    def skips(x: Any) -> Any:
        total = x * 0
        for k in range(3):
            try:
                if k == 1:
                    continue
                total = total + x[k]
            except IndexError:
                break
        return total

    like_python(skips, X, fallback=True)
    like_python(skips, X[:2], fallback=True)


NUMBERS = {
    "float": lambda x: float(x.sum()) / 3,
    "float of an int": lambda x: float(x.argmax()) / 7,
    "int": lambda x: int(x.sum()) // 2,
    "int of an index": lambda x: x[int(np.argmax(x))] * 2,
    "math": lambda x: math.exp(-x.sum()) + math.sqrt(x @ x) + math.floor(x.max()),
    "imported": lambda x: sqrt(abs(float(x[0]))) + math.hypot(x[0], x[1], x[2]),
    "whole": lambda x: math.ceil(x[2]) * int(x @ x) + math.trunc(x[0]),
    "in a condition": lambda x: x / float(x.max()) if math.sqrt(x @ x) > 1 else x,
    "mixed with arrays": lambda x: (x - float(x.mean())) / math.sqrt(float(x.var())),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_functions_of_numbers(like_python: Any, name: str) -> None:
    like_python(NUMBERS[name], X)


def test_their_errors_are_pythons(like_python: Any) -> None:
    like_python(lambda x: math.sqrt(x.sum()), NEGATIVE, fallback=True)
    like_python(lambda x: int(x.sum()), np.array([np.nan, 1.0]), fallback=True)
    like_python(lambda x: int(x.sum()), np.array([1e300]), fallback=True)


def test_loops_that_such_numbers_end(like_python: Any) -> None:
    def descent(x: Any, tolerance: Any) -> Any:
        steps = 0
        while math.sqrt(float(x @ x)) > tolerance:
            x = x - 0.1 * x
            steps += 1
        return x, steps

    like_python(descent, X, 1e-3)


def scaled_or_none(x: Any) -> Any:
    if x.sum() > 0:
        return x * 2, x.max()
    return None


def zero_or_product(x: Any) -> Any:
    if x.min() < 0:
        return 0.0
    return x.prod()


def three_ways(x: Any, level: Any) -> Any:
    if x.sum() > level:
        return x
    if x.max() > 0:
        return "positive", x.max(), 3
    return x.any(), None


@pytest.mark.parametrize("x", [X, NEGATIVE, X - 3])
def test_what_is_returned_may_differ_from_way_to_way(like_python: Any, x: Any) -> None:
    like_python(scaled_or_none, x)
    like_python(zero_or_product, x)
    like_python(three_ways, x, 2.0)


def in_order(w: Any) -> Any:
    total = 0.0
    for k in np.argsort(w):
        total = total * 0.5 + w[k]
    return total


def large_ones(m: Any, level: Any) -> Any:
    out, k = np.zeros(m.size), 0
    for v in m.ravel():
        if v > level:
            out[k] = v
            k += 1
    return out, k


def weighted(m: Any, w: Any) -> Any:
    total = 0.0
    for i, (v, j) in enumerate(zip(m.ravel() * 2, np.argsort(w), strict=True)):
        total += v * j * i
        if total > 1e6:
            break
    return total


def again_and_again(x: Any) -> Any:
    total = 0.0
    for _ in range(3):
        for v in x + total:
            total += v / 100
    return total


def assigned_on_one_way(x: Any, n: Any) -> Any:
    while x.sum() < n:
        for i in range(2):
            if x[i] > 1:
                x = x + 1
            else:
                for j in range(2):
                    x = x + 0.5 * j
    return x


def test_what_loops_go_through_is_computed_before_them(like_python: Any) -> None:
    rng = np.random.default_rng(0)
    for function, args in (
        (in_order, (rng.random(300),)),
        (large_ones, (rng.random((20, 20)), 0.3)),
        (weighted, (rng.random((20, 20)), rng.random(400))),
        (again_and_again, (rng.random(300),)),
    ):
        scripted = like_python(function, *args)
        assert "= loops(" in str(scripted.compiled.captured)


def test_a_variable_that_is_assigned_anew_may_have_been_anything(like_python: Any) -> None:
    like_python(assigned_on_one_way, X, 30.0)
