"""Setting elements from NumPy scalars, 0-d arrays and lists: NumPy converts them one by one."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nbcomp.errors import Unsupported
from nbcomp.frontend.trace import capture
from tests.frontend.replay import run

I8 = np.arange(6, dtype=np.int8)
WIDE = np.array([300, 2**40, -1])
FLOATS = np.array([2.5, np.nan, 1e30])
KEYS: list[Any] = [0, ..., slice(0, 2), [0, 1], np.array([True] + [False] * 5)]
VALUES: list[Any] = [np.int64(300), np.array(300), np.array([300]), np.float64(2.5), np.uint8(200)]
VALUES += [np.float64("nan"), np.array(np.nan), float("nan"), 300, [300], np.int8(3), True, 2.5]


def same_or_refused(function: Any, *args: Any) -> None:
    """NumPy's result, NumPy's exception or Unsupported."""
    mine, theirs = ([a.copy() for a in args] for _ in range(2))
    expected = error = None
    with np.errstate(all="ignore"):
        try:
            expected = function(*theirs)
        except Exception as e:
            error = type(e)
        with contextlib.suppress(Unsupported):
            if error is None:
                got = run(capture(function, tuple(mine), {}), *mine)
                np.testing.assert_array_equal(got, expected)
                assert got.dtype == expected.dtype
            else:
                with pytest.raises((error, Unsupported)):
                    run(capture(function, tuple(mine), {}), *mine)


@pytest.mark.parametrize(("key", "value"), list(itertools.product(KEYS, VALUES)))
def test_constants(key: Any, value: Any) -> None:
    def f(x: Any) -> Any:
        x[key] = value
        return x

    same_or_refused(f, I8)
    same_or_refused(f, I8.astype(np.float32))
    same_or_refused(f, I8.astype(np.uint64))


def from_element(x: Any, y: Any) -> Any:
    x[0] = y[0]
    return x


def from_sum(x: Any, y: Any) -> Any:
    x[...] = y.sum()
    return x


def by_index(x: Any, y: Any) -> Any:
    x[y.argmin()] = y.sum()
    return x


def filled(x: Any, y: Any) -> Any:
    x.fill(y.max())
    return x


def a_list(x: Any, y: Any) -> Any:
    x[:2] = [y[0], 1]
    return x


def an_array(x: Any, y: Any) -> Any:
    return np.array([y[0], y[1]], x.dtype)


def a_vector(x: Any, y: Any) -> Any:
    x[0] = y[:1]
    return x


def zero_d(x: Any, y: Any) -> Any:
    x[1] = y[0, ...]
    return x


SETTERS = [from_element, from_sum, by_index, filled, a_list, an_array, a_vector, zero_d]


@pytest.mark.parametrize("function", SETTERS)
@pytest.mark.parametrize("values", [WIDE, FLOATS, FLOATS[1:], I8 + 1, WIDE > 0])
def test_run_time_values(function: Any, values: Any) -> None:
    for dtype in (np.int8, np.uint8, np.int64, np.float32, np.float16, bool):
        same_or_refused(function, I8.astype(dtype), values)


Agree = Callable[..., Any]


def test_an_int_becomes_a_double_first(agree: Agree) -> None:
    agree(from_element, np.zeros(2, np.float32), np.array([2**60 + 2**36 + 1]))


@pytest.mark.parametrize("function", [from_element, from_sum, by_index, filled])
def test_compiled_where_nothing_can_overflow(agree: Agree, function: Any) -> None:
    agree(function, np.zeros(6), WIDE)
    agree(function, np.zeros(6, np.int64), WIDE)
    agree(function, np.zeros(6, np.int64), I8)
