"""Loops over elements of arrays whose lengths differ from call to call: one code for a range of
them, with Python's results, errors and effects for each."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from tests.script import random_kinds, random_loops
from tests.script.conftest import assert_same, outcome

LENGTHS = (10, 13, 14, 40, 41, 7, 100, 3, 2, 1, 0, 55)


def total(a: Any) -> Any:
    s = 0
    for v in a:
        s += v
    return s, len(a), len(a) // 2, len(a) * 0.5, a.shape


def smoothed(a: Any) -> Any:
    out = np.empty(len(a))
    for i in range(len(a)):
        out[i] = a[max(i - 1, 0)] + a[min(i + 1, len(a) - 1)]
    return out


def reverse(a: Any) -> Any:
    n = len(a)
    for i in range(n // 2):
        a[i], a[n - 1 - i] = a[n - 1 - i], a[i]
    return a


def outside(a: Any) -> Any:
    for i in range(len(a)):
        a[i] = i
    a[len(a)] = 7
    return a


def third(a: Any) -> Any:
    for i in range(len(a)):
        a[i] = i
    a[2] = 7
    return a


def sliced(a: Any) -> Any:
    s = 0.0
    for v in a[1:-1]:
        s += v
    for v in a[::2]:
        s = s * 0.5 + v
    return s


def bits(a: Any) -> Any:
    n, s = len(a), 0
    for i in range(n):
        s = (s ^ (i << 2)) & ~n | (n >> 1)
    return s, n**2


def search(a: Any) -> Any:
    low, high = 0, len(a)
    while low < high:
        middle = (low + high) // 2
        if a[middle] < 0.5:
            low = middle + 1
        else:
            high = middle
    return low


def statistics(a: Any) -> Any:
    s = 0.0
    for i in range(len(a)):
        s += a[i]
    return s / len(a), min(len(a), 5), max(1, len(a)), np.sqrt(len(a)), float(len(a))


def pairs(a: Any) -> Any:
    out = np.zeros((len(a), len(a) + 1))
    for i in range(len(a)):
        for j in range(i, len(a)):
            out[i, j] += a[i] * a[j]
    return out


PROGRAMS = (total, smoothed, reverse, outside, third, sliced, bits, search, statistics, pairs)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_one_code_for_many_lengths(function: Callable[..., Any]) -> None:
    scripted = nbcomp.script(function)
    for n in LENGTHS:
        args = (np.random.default_rng(n).random(n),)
        want, after = outcome(function, args)
        got, given = outcome(scripted, args)
        assert_same(got, want)
        assert_same(given, after)
    assert not scripted.fallbacks
    assert len(scripted.variants) <= 6  # the first, some that are open, and the lengths 0, 1


def test_what_needs_a_length_is_compiled_for_it() -> None:
    def unrolled(a: Any) -> Any:
        x = a
        for _ in range(len(a)):
            x = x + a
        return x

    scripted = nbcomp.script(unrolled)
    for n in (20, 21, 22, 23, 24):
        a = np.arange(float(n))
        assert_same(scripted(a), unrolled(a))
    assert not scripted.lengths


def compare(made: Any, seed: int, lengths: tuple[int, ...]) -> None:
    function, text = made.program(seed)
    scripted = nbcomp.script(function)
    for n in lengths:
        args = made.arguments(seed, n)
        want, after = outcome(function, args)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", nbcomp.NumpyFallback)
            got, given = outcome(scripted, args)
        if isinstance(got, tuple) and got[:1] == (nbcomp.CaptureError,):
            return  # a value where only one known when compiling will do
        try:
            if isinstance(want, tuple) and want and isinstance(want[0], type):
                assert isinstance(got, tuple)
                assert got[0] is want[0]
            else:
                assert_same(got, want)
                assert_same(given, after)
        except AssertionError as error:
            message = f"seed {seed}, length {n}: {got} is not {want}\n{text}"
            raise AssertionError(message) from error


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("made", [random_loops, random_kinds], ids=["loops", "kinds"])
def test_random_programs(made: Any, seed: int) -> None:
    compare(made, seed, (6, 9, 7, 30, 3))


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(1, 4))
@pytest.mark.parametrize("made", [random_loops, random_kinds], ids=["loops", "kinds"])
def test_many_random_programs(made: Any, hundred: int) -> None:
    for seed in range(100 * hundred, 100 * (hundred + 1)):
        compare(made, seed, (6, 9, 7, 30, 3))
