"""`break`, `continue` and `return` in loops over whole arrays that values end."""
# ruff: noqa: B007  (the variable of a loop is read after it)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp

LONG = 100  # rounds: loops of fewer than 64 are written out


def newton(a: Any, tolerance: Any) -> Any:
    x = np.ones_like(a)
    for k in range(LONG):
        new = 0.5 * (x + a / x)
        if np.abs(new - x).max() < tolerance:
            break
        x = new
    return x, new, k


def until(a: Any, tolerance: Any) -> Any:
    x, k = np.ones_like(a), 0
    while True:
        k += 1
        new = 0.5 * (x + a / x)
        if np.abs(new - x).max() < tolerance + 1e-12:
            break
        x = new
    return x, k


def returns(a: Any, tolerance: Any) -> Any:
    x = np.ones_like(a)
    for k in range(20):
        new = 0.5 * (x + a / x)
        if np.abs(new - x).max() < tolerance:
            return new, k
        if new.max() > 1e6:
            return x * 2, -k
        x = new
    return x, -1


def skips(a: Any, tolerance: Any) -> Any:
    total = np.zeros_like(a)
    for k in range(LONG):
        a = a * 1.01
        if a.sum() > 20 + tolerance:
            continue
        total = total + a
    else:
        total = total * 2
    return total, k


def ways(a: Any, tolerance: Any) -> Any:
    s = np.zeros_like(a)
    for k in range(LONG):
        s = s + a
        if s.sum() > 20:
            if s.max() > 5 + tolerance:
                a = a * 2
                break
            elif s.min() < 3:
                continue
        s = s * 1.01
    else:
        s = s * 2
    return s, k, a


def within(a: Any, tolerance: Any) -> Any:
    s = np.zeros_like(a)
    for i in range(LONG):
        for j in range(70):
            s = s + a * j
            if s.sum() > 100 * i + tolerance:
                break
        if s.sum() > 5000:
            break
    return s, i, j


def writes(a: Any, tolerance: Any) -> Any:
    for k in range(LONG):
        a[k % len(a)] += 1.0
        if a.sum() > 30 + tolerance:
            return k
        a *= 1.01
    return -1


def counts(a: Any, tolerance: Any) -> Any:
    rounds = 0
    while a.sum() > 1.0:
        rounds += 1
        if rounds > 50:
            return a, rounds
        a = a * (0.9 if rounds % 7 else 0.5)
        if a.max() < tolerance:
            break
    return a, -rounds


PROGRAMS = (newton, until, returns, skips, ways, within, writes, counts)


@pytest.mark.parametrize("tolerance", [1e-12, 1e-2, 3.0, 1e9])
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_python_does(program: Callable[..., Any], tolerance: float) -> None:
    a = np.linspace(1, 3, 5)
    given, kept = a.copy(), a.copy()
    scripted = nbcomp.script(program)
    ours, theirs = scripted(given, tolerance), program(kept, tolerance)
    assert scripted.compiled is not None
    np.testing.assert_array_equal(given, kept)
    ours, theirs = (r if isinstance(r, tuple) else (r,) for r in (ours, theirs))
    for one, other in zip(ours, theirs, strict=True):
        assert type(one) is type(other)
        np.testing.assert_array_equal(one, other)


def test_one_program_for_all_values() -> None:
    scripted = nbcomp.script(newton)
    for tolerance in (1e-12, 1e-2, 1e9, -1.0):
        a = np.linspace(1, 3, 5) * (1 + abs(tolerance))
        np.testing.assert_array_equal(scripted(a, tolerance)[0], newton(a, tolerance)[0])
    assert len(scripted.variants) == 1


def set_by_else(a: Any) -> Any:
    while a.sum() < 10:
        late = a + 1.0
        a = late * 2
    else:
        late = a
    return late, a


def set_before_a_break(a: Any) -> Any:
    k = 0
    while a.sum() * k < 10:
        k += 1
        late = a * k
        if late.sum() > 7:
            break
    else:
        late = a
    return late


def left_by_return_only(a: Any) -> Any:
    k = 0
    while True:
        k += 1
        late = a * k
        if late.sum() > 50:
            return late
        if k > 30:
            return late - 1


@pytest.mark.parametrize("program", [set_by_else, set_before_a_break, left_by_return_only])
def test_values_first_set_in_a_loop(like_python: Any, program: Callable[..., Any]) -> None:
    for factor in (1.0, 0.01, 10.0):
        like_python(program, np.linspace(1, 3, 5) * factor)


@pytest.mark.filterwarnings("ignore::nbcomp.NumpyFallback")
def test_a_value_that_only_some_ways_set() -> None:
    def f(a: Any) -> Any:
        for _ in range(LONG):
            if a.sum() > 10:
                break
            late = a * 2
            a = a + 1.0
        return late

    scripted = nbcomp.script(f)
    with pytest.warns(nbcomp.NumpyFallback, match="late"), pytest.raises(UnboundLocalError):
        scripted(np.ones(3) * 9)


# ------------------------------------------------------------- loops in loops, and over things


def out_of_two(a: Any, limit: Any) -> Any:
    for i in range(LONG):
        for j in range(LONG):
            a = a + 1.0
            if a.sum() > limit:
                return a, i, j
    return a, 0, 0


def out_of_three(a: Any, limit: Any) -> Any:
    for i in range(80):
        b = a * i
        for j in range(70):
            for k in range(65):
                b = b + 0.5
                if b.sum() > limit:
                    return b, i, j, k
                if b.sum() > limit - 3:
                    break
            else:
                b = b - 0.25
            if b.max() > 1e5:
                return b * 2, -i, j, k
    return b, 0, 0, 0


def out_of_while(a: Any, limit: Any) -> Any:
    k = 0
    while True:
        k += 1
        while a.sum() < limit * k:
            a = a * 1.5 + 1
            if a.max() > 1e6:
                return a, k
        a = a * 0.5
        if k > 70:
            return a, -k


def over_a_list(a: Any, limit: Any) -> Any:
    for other in [a, a * 2, a * 3]:
        a = a + other
        if a.sum() > limit:
            break
    return a


def over_pairs(a: Any, limit: Any) -> Any:
    for k, (p, q) in enumerate([(a, 2.0), (a * 2, -1.0), (a * 3, 1.5)]):
        a = a * q + p
        if a.sum() > limit:
            return a, k
        if a.sum() < 0:
            continue
        a = a - 0.5
    else:
        a = a * 100
    return a, -1


def over_an_iterator(a: Any, limit: Any) -> Any:
    values = iter((1.0, 2.0, 3.0))
    for x in values:
        a = a * x
        if a.sum() > limit:
            break
    return a, list(values)


NESTED = (out_of_two, out_of_three, out_of_while)
LISTS = (over_a_list, over_pairs, over_an_iterator)


@pytest.mark.filterwarnings("ignore::nbcomp.NumpyFallback")
@pytest.mark.parametrize("program", [*NESTED, *LISTS])
def test_jumps_further(like_python: Any, program: Callable[..., Any]) -> None:
    fallback = program is over_an_iterator
    for limit in (2.0, 5.0, 50.0, 500.0):
        for sign in (1.0, -1.0) if program in LISTS else (1.0,):
            like_python(program, sign * np.ones(3), limit, fallback=fallback)
