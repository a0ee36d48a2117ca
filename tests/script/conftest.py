"""Comparing a compiled function with Python itself: result, arguments afterwards, and errors."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import nbcomp


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """What a call gives or raises, and its arguments afterwards."""
    given = copy.deepcopy(args)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            return function(*given), given
        except Exception as error:
            return (type(error), str(error)), given


def assert_same(got: Any, want: Any) -> None:
    """Equal to the bit, in type too."""
    assert type(got) is type(want), (got, want)
    if isinstance(want, dict):
        assert list(got) == list(want)
        got, want = list(got.values()), list(want.values())
    if isinstance(want, tuple | list):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            assert_same(g, w)
    elif isinstance(want, np.ndarray):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    else:
        assert repr(got) == repr(want)


def close(got: Any, want: Any) -> bool:
    """Of the same types; numbers of which the order of a sum is open, nearly."""
    if type(got) is not type(want):
        return False
    if isinstance(want, dict):
        return list(got) == list(want) and close(list(got.values()), list(want.values()))
    if isinstance(want, tuple | list):
        return len(got) == len(want) and all(map(close, got, want))
    if isinstance(want, np.ndarray | np.generic | float):
        same = np.asarray(got).dtype == np.asarray(want).dtype
        return bool(same and np.allclose(got, want, rtol=1e-12, atol=1e-12, equal_nan=True))
    return bool(got == want)


def assert_close_calls(
    compiled: Callable[..., Any], function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]
) -> None:
    """Each call gives, raises and leaves in its arguments what Python's does."""
    for args in calls:
        want, after = outcome(function, args)
        got, given = outcome(compiled, args)
        assert close(got, want), (got, want)
        assert close(given, after)


@pytest.fixture
def like_python() -> Callable[..., Any]:
    """Script a function and compare two calls with Python's; gives the scripted function."""

    def check(function: Callable[..., Any], *args: Any, fallback: bool = False) -> Any:
        want, after = outcome(function, args)
        scripted = nbcomp.script(function)
        for _ in range(2):
            with warnings.catch_warnings():
                if not fallback:
                    warnings.simplefilter("error", nbcomp.NumpyFallback)
                got, given = outcome(scripted, args)
            assert_same(got, want)
            assert_same(given, after)
        return scripted

    return check
