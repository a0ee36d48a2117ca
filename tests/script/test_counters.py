"""Counters need no checks, and are Python's ints all the same: where steps are large, many or start
far out, and where a variable is changed in another way as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp

EDGE = 2**63


def starts_far_out(x: Any, n: Any) -> Any:
    c = n
    for v in x:
        if v > 0:
            c += 1
    return c


def goes_down(x: Any, n: Any) -> Any:
    c = -n
    for v in x:
        c -= 3 if v > 0 else 1
    return c


def large_steps(x: Any, n: Any) -> Any:
    c, d = 0, 0
    for _ in x:
        for step in (2**60, 2**61, 1):
            c += step
        d = d - n
    return c, d


def two_at_a_time(x: Any, n: Any) -> Any:
    c = 0
    for v in x:
        c += 1
        if v > 2:
            c = n
    return c


def trading(x: Any, n: Any) -> Any:
    a, b = 0, n
    for _ in x:
        a, b = b, a + 1
    return a, b


def of_counters(x: Any, n: Any) -> Any:
    total = squares = k = 0
    while k < len(x):
        total += k
        squares += total * n
        k += 1
    return total, squares, k


def _digits(n: Any) -> Any:
    c = 0
    while n > 0:
        c += n % 10
        n //= 10
    return c


def in_helpers(x: Any, n: Any) -> Any:
    c = n - 4
    for v in x:
        c += 1 + _digits(n) * 0
        if v > 4:
            c += _digits(n) + _digits(c)
    return c


def until_it_leaves(x: Any, n: Any) -> Any:
    rounds = 0
    k = n
    while k != 1 and rounds < 100:
        k = k // 2 if k % 2 == 0 else 3 * k + 1
        rounds += 1
    return k, rounds


def of_a_way_not_taken(x: Any, n: Any) -> Any:
    found = 0
    for i in range(len(x)):
        far = n + i
        found = 3 * far - 1 if far < 100 else far - 1
    return found


def next_to_multiples(x: Any, n: Any) -> Any:
    up = down = 0
    for i in range(len(x)):
        k = (n - i) // 3
        up, down = 3 * k + 1, k * -3 - 2
    return up, down, 3 * n + 1, n * -3 - 2, 2 * n + 1, 7 * (n // 7) + 1


def counted(x: Any, n: Any) -> Any:
    return sum(1 for v in x if v > 1), sum(n for v in x if v > 1)


FUNCTIONS = [
    starts_far_out,
    goes_down,
    large_steps,
    two_at_a_time,
    trading,
    of_counters,
    in_helpers,
    until_it_leaves,
    of_a_way_not_taken,
    next_to_multiples,
    counted,
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [7, 2**31, 2**62, EDGE - 1, EDGE - 4, -EDGE])
def test_counters(like_python: Any, function: Callable[..., Any], n: int) -> None:
    like_python(function, np.arange(6), n, fallback=True)


def cleared(x: Any) -> Any:
    total = 0
    for v in x:
        while v:
            v = v & (v - 1)
            total += 1
    return total


def shifted(x: Any) -> Any:
    total = 0
    for v in x:
        while v > 0:
            total += 1
            v >>= 3
    return total


@pytest.mark.parametrize("dtype", ["i8", "u8", "i1", "u2"])
@pytest.mark.parametrize("function", [cleared, shifted], ids=lambda f: f.__name__)
def test_bits(like_python: Any, function: Callable[..., Any], dtype: str) -> None:
    limits = np.iinfo(dtype)
    like_python(function, np.array([0, 1, 6, limits.min, limits.max, limits.max - 1], dtype))


def rounds(n: int) -> int:
    c = 0
    for i in range(n):
        for j in range(n):
            if i * j % 3 == 1:
                c += 1
    return c


def many_rounds(n: int) -> int:
    c = 0
    for i in range(n):
        for j in range(n):
            if i * j % 3 == 1:
                c += 5
    return c


def of_three(n: int) -> int:
    c = 0
    for _ in range(n):
        for _ in range(n):
            for _ in range(n):
                c += 1
    return c


def never_ends(x: Any) -> Any:
    v = x[0]
    while v:  # if it is negative
        v >>= 1
    return v


def ends(x: Any) -> Any:
    v = x[0]
    while v > 0:
        v >>= 1
    return v


@pytest.mark.parametrize(
    ("function", "given", "word", "there"),
    [
        (rounds, 9, "overflows", False),
        (many_rounds, 9, "overflows", True),  # 5 * 2**31 * 2**31 is too far
        (of_three, 9, "overflows", True),
        (ends, np.array([9]), "poll", False),
        (never_ends, np.array([9]), "poll", True),
        (never_ends, np.array([9], np.uint8), "poll", False),
    ],
)
def test_what_is_looked_at_in_each_round(
    function: Callable[[Any], Any], given: Any, word: str, there: bool
) -> None:
    scripted = nbcomp.script(function)
    assert scripted(given) == function(given)
    (made,) = scripted.variants
    assert (word in made.text("loop")) is there
