"""Whose number it is decides dtypes and errors: Python's and NumPy's on the ways of a program."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest

import nbcomp
from tests.script.conftest import assert_same, outcome

A = np.arange(4)


def times(x: Any) -> Any:
    k = 2
    if x.sum() > 100:
        k = 300
    return x.astype(np.int8) * k


def full(x: Any) -> Any:
    k = 2
    if x.sum() > 100:
        k = 300
    return np.full(3, k, np.int8)


def filled_like(x: Any) -> Any:
    k = 2
    if x.sum() > 100:
        k = -1
    return np.full_like(x, k, dtype=np.uint8)


def assigned(x: Any) -> Any:
    k = 2
    if x.sum() > 100:
        k = 300
    y = x.astype(np.int16)
    y += k
    y[1:] = k
    return y, np.maximum(y, k), y < k, np.where(y > 1, y, k)


def after_a_loop(x: Any) -> Any:
    k = 2
    for i in range(len(x)):
        if x[i] > 100:
            k = 300
    return x.astype(np.int8) * k


def joined(x: Any) -> Any:
    t = True
    if x.sum() > 100:
        t = x.max() > 5
    return t


def arithmetic(x: Any) -> Any:
    t = True
    if x.sum() > 100:
        t = x.max() > 5
    return t + t, t * x, -x if t else x


def decided(x: Any) -> Any:
    done, n = False, 0
    while not done:
        x = x - 1
        n += 1
        done = x.sum() < 1
    return x * n, n > 3, n == 2


def last_state(x: Any) -> Any:
    done = False
    while not done:
        x = x - 1
        done = x.sum() < 1
    return done


def returned(x: Any) -> Any:
    if x.sum() > 1000:
        return True
    if x.sum() > 100:
        return x.max() > 3
    return False


def round_bool(x: Any) -> Any:
    b, s = x > 1, 0
    for i in range(len(x)):
        s += round(b[i])
    return s


def round_numbers(x: Any) -> Any:
    s = 0
    for i in range(len(x)):
        s += round(x[i])
    return s


def bools_in_loops(x: Any) -> Any:
    s, t = 0, False
    for i in range(len(x)):
        t = True
        if x[i] > 2:
            t = x[i] < 7
        s += t + t
    return s, t


def ints_in_loops(x: Any) -> Any:
    k, s = 2, 0
    for i in range(len(x)):
        k = 2
        if x[i] > 2:
            k = np.int64(3)
        s = s + np.int8(3) * k
    return s, k


def counts_of_bools(x: Any) -> Any:
    seen, n = False, 0
    for v in x:
        if seen + 0 > 0:
            n += 1
        if v > 1:
            seen = True
    return n, seen + 1


PROGRAMS = (times, full, filled_like, assigned, after_a_loop, joined, arithmetic, decided)
PROGRAMS += (
    last_state,
    returned,
    round_bool,
    round_numbers,
    bools_in_loops,
    ints_in_loops,
    counts_of_bools,
)


@pytest.mark.parametrize("by", [nbcomp.script, nbcomp.jit])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_like_python(function: Any, by: Any) -> None:
    compiled = by(function)
    for x in (A, A * 100, A * 1000, A[:1], A * 1.5, A, A * 100):
        want, _ = outcome(function, (x,))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", nbcomp.NumpyFallback)
            got, _ = outcome(compiled, (x,))
        assert_same(got, want)


NUMBERS = {
    "reshape": lambda x, i: x.reshape(i, -1),
    "reshape to a tuple": lambda x, i: x.reshape((i, 4)),
    "zeros": lambda x, i: np.zeros(i) + x[0],
    "ones": lambda x, i: np.ones((i, 2)) + x[0],
    "eye": lambda x, i: np.eye(i) + x[0],
    "full": lambda x, i: np.full(i, 2.0) + x[0],
    "sum": lambda x, i: x.reshape(2, 2).sum(axis=i),
    "transpose": lambda x, i: x.reshape(2, 2).transpose(i, 0),
    "broadcast": lambda x, i: np.broadcast_to(x, (i, 4)).copy(),
    "slice": lambda x, i: x[:i],
    "roll": lambda x, i: np.roll(x, i),
    "range": lambda x, i: [x * k for k in range(i)],
    "members": lambda x, i: np.array([i, 2], dtype=np.uint8) * x[1],
    "fill value": lambda x, i: np.full(3, i, np.int8) + x[0],
    "factor": lambda x, i: x.astype(np.int8) * i,
}


@pytest.mark.parametrize("by", [nbcomp.script, nbcomp.jit])
@pytest.mark.parametrize("name", NUMBERS)
def test_ints_and_bools_as_arguments(name: str, by: Any) -> None:
    function = NUMBERS[name]
    compiled = by(function)
    for i in (1, True, 2, 300, -1, np.int64(1), False):
        want, _ = outcome(function, (copy.copy(A), i))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", nbcomp.NumpyFallback)
            got, _ = outcome(compiled, (copy.copy(A), i))
        assert_same(got, want)
