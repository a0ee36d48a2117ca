"""`assert` and `raise` that depend on whole arrays: compiled, and Python's own error where they are
not met."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.levels import levels

ARGUMENTS = [
    np.array(values)
    for values in ([0.5, 0.25], [2.0, 7.0], [200.0, 7.0], [1e9, 1e9], [-9.0, 1.0], [np.inf, 1.0])
]


class OutOfRange(Exception):
    """Of the program's own."""


def with_message(x: Any) -> Any:
    assert x.sum() < 3, "too large {}"
    return x * 2


def message_of_values(x: Any) -> Any:
    assert x.sum() < 3, f"the sum is {x.sum()}"
    return x * 2


def array_as_condition(x: Any) -> Any:
    assert x[:1] > 0
    return x


def in_loops(x: Any) -> Any:
    n = 0
    while x.sum() > 1:
        x = x / 2
        n += 1
        assert n < 10, "diverged"
    for _ in range(100):
        x = np.roll(x, 1)
        if x.max() > 1e6:
            raise OverflowError("large")
        assert x[0] < 150
    return x


def in_a_branch(x: Any) -> Any:
    if x.sum() > 1000:
        text = f"from {x[0]}"
        raise KeyError(text)
    elif x.sum() > 100:
        x = x - 100
        if x[1] < 0:
            raise OutOfRange("no", x)
    elif x.sum() < 0:
        raise OutOfRange
    else:
        assert x[0] != 2.0
    return x.sum(), x


def _root(x: Any) -> Any:
    if x.sum() < 0:
        raise ValueError("negative")
    return np.sqrt(x)


def in_helpers(x: Any) -> Any:
    try:
        y = _root(x)
    except ValueError:
        y = x * 0
    return y, _root(x + 1)


def in_an_expression(x: Any) -> Any:
    def bad() -> Any:
        raise ValueError("of an expression")

    return x + 1 if x.sum() < 100 else bad()


def at_the_end(x: Any) -> Any:
    for k in range(5):
        if x[0] > 100:
            return x
        if x[1] > 100:
            raise ValueError(k)
        x = x * 3
    raise RuntimeError("no convergence")


def both_ways(x: Any) -> Any:
    if x.sum() > 0:
        raise ValueError("a")
    else:
        raise KeyError("b")


def between_writes(x: Any) -> Any:
    for i in range(x.shape[0]):
        x[i] += 1
    assert x.sum() < 10
    x *= 2
    if x.sum() > 8:
        raise ValueError("after a write")
    x -= 1


@pytest.mark.parametrize(
    "function",
    [
        with_message,
        message_of_values,
        array_as_condition,
        in_loops,
        in_a_branch,
        in_helpers,
        in_an_expression,
        at_the_end,
        between_writes,
    ],
    ids=lambda f: f.__name__,
)
def test_checks_of_arrays(like_python: Any, function: Callable[..., Any]) -> None:
    scripted = like_python(function, ARGUMENTS[0])
    assert len(scripted.variants) == 1
    for x in ARGUMENTS[1:]:
        want, after = _outcome(function, x)
        got, given = _outcome(scripted, x)
        assert got == want
        np.testing.assert_array_equal(given, after)
    assert len(scripted.variants) == 1


def test_errors_on_both_ways(like_python: Any) -> None:
    like_python(both_ways, ARGUMENTS[0], fallback=True)


def _outcome(function: Callable[..., Any], x: Any) -> tuple[str, Any]:
    """What a call gives or raises, as text, and its argument afterwards."""
    given = x.copy()
    with np.errstate(all="ignore"):
        try:
            return repr(function(given)), given
        except Exception as error:
            text = re.sub(r"0x\w+", "", repr(error))  # pytest's account of an assertion
            return f"{type(error)}: {text}", given


def test_checks_on_small_arrays_are_part_of_the_native_call() -> None:
    def scaled(x: Any) -> Any:
        assert (x >= 0).all(), "negative"
        x -= x.max()
        return x * 2

    scripted = nbcomp.script(scaled)
    for given in (np.arange(5.0), np.arange(5.0) + 2, np.arange(5.0) - 1, np.arange(5.0)):
        mine, wanted = given.copy(), given.copy()
        if (given < 0).any():
            with pytest.raises(AssertionError, match="negative"):
                scripted(mine)
            np.testing.assert_array_equal(mine, given)
        else:
            np.testing.assert_array_equal(scripted(mine), scaled(wanted))
            np.testing.assert_array_equal(mine, wanted)
    (variant,) = scripted.variants
    assert variant.plain  # checks have results, which nobody gets
    for name, run in levels(variant):
        np.testing.assert_array_equal(run(np.arange(5.0)), scaled(np.arange(5.0)), name)
