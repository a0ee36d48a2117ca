"""Numbers that are Python's on one way and NumPy's on another: value and type are Python's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.loop.grammar import Alloc, walk
from tests.script.conftest import assert_same, outcome
from tests.script.random_kinds import arguments, program

Check = Callable[..., Any]


def compare(seed: int) -> int:
    """Compare a random program with Python; how many calls were not compiled."""
    function, text = program(seed)
    args = arguments(seed)
    want, after = outcome(function, args)
    scripted = nbcomp.script(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nbcomp.NumpyFallback)
        got, given = outcome(scripted, args)
    try:
        if _raised(want):
            assert _raised(got) is _raised(want)
        else:
            assert_same(got, want)
        assert_same(given, after)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {got} is not {want} for {args}\n{text}") from error
    return not scripted.variants


def _raised(result: Any) -> type | None:
    first = result[0] if isinstance(result, tuple) else None
    return first if isinstance(first, type) else None


@pytest.mark.parametrize("ten", range(15))
def test_random_kinds(ten: int) -> None:
    for seed in range(10 * ten, 10 * (ten + 1)):
        compare(seed)


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(2, 20))
def test_many_random_kinds(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * (hundred + 1)):
        compare(seed)


# ------------------------------------------------------------------------ programs people wrote


def largest_above_fifty(a: Any) -> Any:
    m = 100
    for i in range(len(a)):
        if a[i] > 50:
            m = a[i]
    return m * 100


def last_above_a_hundred(a: Any) -> Any:
    last = 0
    for v in a:
        if v > 100:
            last = v
    return last - 1


def negated_sum(a: Any) -> Any:
    s = 5
    for i in range(len(a)):
        s += a[i]
    return -s, s


def least(a: Any) -> Any:
    lowest = float("inf")
    for v in a:
        if v < lowest:
            lowest = v
    return lowest


def all_above(a: Any) -> Any:
    ok = True
    for v in a:
        ok = ok and v > 1
    return ok


def halves(a: Any) -> Any:
    s = 0
    for v in a:
        if v > 1:
            s += 0.5
    return s, -s


def element_or_number(a: Any) -> Any:
    s = 0
    for i in range(3):
        s = a[0] if i > len(a) else 200
    return s * 2 - 1


def kept_in_an_array(a: Any) -> Any:
    m = 0
    for i in range(len(a)):
        if a[i] > 1:
            m = a[i]
    for i in range(len(a)):
        a[i] = m
    return m, a


def first_above(a: Any) -> Any:
    for i, v in enumerate(a):
        if v > 100:
            return i
    return None


def best_so_far(a: Any) -> Any:
    best, at = None, None
    for i in range(len(a)):
        if a[i] < 2:
            continue
        if best is None or a[i] > best:
            best, at = a[i], i
    return best, at


def falls(a: Any) -> Any:
    before, count = None, 0
    for v in a:
        if before is not None and v < before:
            count += 1
        before = v
    return count, before


def double_of_what_may_be(a: Any) -> Any:
    i = first_above(a)
    if i is None:
        return -1.0
    return a[i] * 2


PROGRAMS = (first_above, best_so_far, falls, double_of_what_may_be)
PROGRAMS += (largest_above_fifty, last_above_a_hundred, negated_sum, least, all_above, halves)
PROGRAMS += (element_or_number, kept_in_an_array)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8"])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(like_python: Check, function: Any, dtype: str) -> None:
    for values in ([], [1, 1], [1, 77, 3], [1, 120, 101]):
        like_python(function, np.array(values, dtype))


def up_to(a: Any, n: Any) -> Any:
    s = 0
    for i in range(n):
        s += a[i]
    return -s, s


def up_to_and_on(a: Any, n: Any) -> Any:
    s = 0
    for i in range(n):
        s += a[i]
    return s, a * s


@pytest.mark.parametrize("dtype", ["i1", "u1", "i8", "f4", "f8"])
@pytest.mark.parametrize("function", [up_to, up_to_and_on])
def test_rounds_counted_at_run_time(like_python: Check, function: Any, dtype: str) -> None:
    """One variant: whether there is a round is known at run time."""
    a = np.array([3, 5], dtype)
    scripted = like_python(function, a, 2)
    assert not scripted.fallbacks
    for n in (0, 1, 0):
        assert_same(outcome(scripted, (a, n)), outcome(function, (a, n)))
    assert len(scripted.variants) == 1


def test_a_helper_gives_what_it_found(like_python: Check) -> None:
    def first_above(a: Any, least: Any) -> Any:
        found = -1
        for v in a:
            if v > least:
                found = v
                break
        return found

    def both(a: Any) -> Any:
        return first_above(a, 2) * a, first_above(a, 1)

    for last in (5, 2):
        a = np.array([1, 2, last], "i1")
        like_python(first_above, a, 2)
        like_python(both, a)


def test_sums_stay_loops_of_their_own_dtype() -> None:
    def total(a: Any) -> Any:
        s = 0
        for v in a:
            s += v
        return s

    for dtype in ("i1", "u8", "f4", "f8"):
        scripted = nbcomp.script(total)
        assert_same(scripted(np.ones(5, dtype)), total(np.ones(5, dtype)))
        text = str(scripted.compiled.captured)
        assert "_kind" not in text
        assert "where" not in text


@pytest.mark.filterwarnings("ignore::nbcomp.NumpyFallback")
def test_errors_of_a_side_that_is_not_taken(like_python: Check) -> None:
    def f(a: Any, n: Any) -> Any:
        m = 1
        for i in range(n):
            m = -a[i] if a[i] == 0 else 0.5
        return m

    like_python(f, np.ones(3, bool), 2, fallback=True)


@pytest.mark.filterwarnings("ignore::nbcomp.NumpyFallback")
def test_numbers_beyond_64_bits_found_while_compiling(like_python: Check) -> None:
    def f(x: Any) -> Any:
        s, k, c, v = 0.0, 1, 0, x * 1.0
        for _ in range(5):
            s = -s
            k = k * 7919 + 13
        w = 0
        while w < 9 and s < 5:
            w += 1
            v = v * c
            s += v[0]
        else:
            v = v * 1.5
        return v, s

    like_python(f, np.ones(3), fallback=True)


def test_variables_of_helpers_in_conditions_have_memory_of_their_own(like_python: Any) -> None:
    def split(v: Any) -> Any:
        if v > 2:
            return v * 2, 1
        return v, 2

    def program(x: Any, c: Any, k: Any) -> Any:
        s = 0.0
        for i in range(len(x)):
            if int(x[i]) > split(x[i])[0]:
                s = s * 2
            else:
                t, r = split(min(i, k))
                s = s + t * r
            t, r = split(c[i % 4] * 2 + int(x[i]))
            s = s + t * r
        return s

    x = np.array([0, 1, 3, 4, 6])
    scripted = like_python(program, x, np.arange(4, dtype=np.int8), 1)
    (kernel,) = (k.kernel for k in scripted.compiled.kernels)
    names = [s.buffer.name for s in walk(kernel.stages) if isinstance(s, Alloc)]
    assert len(names) == len(set(names))
