"""Results in the memory of what they are made from: where they may be, and that nothing is read
after it is overwritten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.levels import levels
from nbcomp.tuning.bench import Bench
from nbcomp.tuning.tasks import tasks_of

Array = np.ndarray[Any, Any]


def scaled(x: Any, y: Any) -> None:
    x *= 2


def from_others(x: Any, y: Any) -> Any:
    return np.add(y, 1, out=x)


def a_part(x: Any, y: Any) -> None:
    x[1:-1] += y[1:-1]


def row_by_row(x: Any, y: Any) -> None:
    x[0] = np.negative(x[0])
    x[:, 1] = 3
    x[2, ::2] += y[2, ::2]


def of_rows(x: Any, y: Any) -> Any:
    x -= x.max(axis=-1, keepdims=True)
    return x + y


def sorted_rows(x: Any, y: Any) -> None:
    x.sort(axis=-1)


def a_few_places(x: Any, y: Any) -> None:
    x[[3, 0], [1, 2]] = x[[0, 3], [2, 1]]


def after_a_call(x: Any, y: Any) -> None:
    x += np.sort(y, axis=0)


def again_and_again(x: Any, y: Any) -> Any:
    z = y * 2
    for _ in range(3):
        x[:, 1:-1] += y[:, 1:-1]
        z[1:] += x[1:]
    return z


def both(x: Any, y: Any) -> None:
    t = x + y
    y[...] = x - y
    x[...] = t


# What must be read before, or where the call may still fail.


def turned(x: Any, y: Any) -> None:
    x[...] = x[::-1] + y


def shifted(x: Any, y: Any) -> None:
    x[1:] = x[:-1] + y[1:]


def of_columns(x: Any, y: Any) -> None:
    x[...] = x[..., ::-1] * x.sum(axis=-1, keepdims=True)


def read_later(x: Any, y: Any) -> Any:
    before = x[::-1, ::-1].copy()
    x *= 2
    return before + y


def before_a_call(x: Any, y: Any) -> Any:
    x *= 2
    return np.sort(x, axis=0)


def exchanged(x: Any, y: Any) -> None:
    t = x.copy()
    x[...] = y[::-1]
    y[...] = t[::-1]


IN_PLACE = (
    *(scaled, from_others, a_part, row_by_row),
    *(of_rows, sorted_rows, a_few_places, after_a_call, again_and_again),
)
EITHER = (read_later, both)
ASIDE = (turned, shifted, of_columns, before_a_call, exchanged)


def arguments(order: str) -> tuple[Array, Array]:
    """Two arrays of whole numbers, in C or Fortran order or within larger ones."""
    made = np.random.default_rng(0).permutation(120).astype(np.float64).reshape(2, 6, 10)
    x, y = made[:, :, :5] if order == "within" else made[:, :, :5].copy()
    return (np.asfortranarray(x), y) if order == "F" else (x, y)


@pytest.mark.parametrize("order", ["C", "F", "within"])
@pytest.mark.parametrize("function", [*IN_PLACE, *ASIDE, *EITHER])
def test_arguments_are_what_numpy_makes_them(function: Callable[..., Any], order: str) -> None:
    wanted, got = arguments(order), arguments(order)
    result = function(*wanted)
    compiled = nbcomp.compile(function, *got)
    one_by_one = order != "C" and function in (row_by_row, again_and_again)  # read in C order
    if function not in EITHER:
        copies = any(s.kernel.name.startswith("write_") for s in kernels(compiled))
        assert copies == (function in ASIDE or one_by_one), str(compiled.program)
    for level, run in levels(compiled):
        again = arguments(order)
        np.testing.assert_array_equal(run(*again), result, level)
        np.testing.assert_array_equal(again, wanted, level)
    np.testing.assert_array_equal(compiled(*got), result)
    np.testing.assert_array_equal(got, wanted)
    if got[0].base is not None:
        np.testing.assert_array_equal(got[0].base, wanted[0].base)


def kernels(compiled: Any) -> list[Any]:
    """The calls of kernels in a program."""
    return [s for s in compiled.program.steps if hasattr(s, "kernel")]


def test_what_is_made_is_changed_where_it_is() -> None:
    def f(x: Any, i: Any) -> Any:
        y = np.zeros(50)
        for _ in range(3):
            y[i] += x[i]
        return y

    args = np.arange(50.0), np.array([3, 1, 3])
    compiled = nbcomp.compile(f, *args)
    np.testing.assert_array_equal(compiled(*args), f(*args))
    changes = [bool(s.changed) for s in kernels(compiled) if s.kernel.name.startswith("scatter")]
    assert changes == [False, True, True]  # the first copies zeros


def test_a_failure_comes_before_anything_is_written() -> None:
    def f(x: Any, i: Any) -> None:
        x[i] = 7

    jitted = nbcomp.jit(f)
    jitted(np.ones(4), np.array([0, 1]))
    got, wanted = np.ones(4), np.ones(4)
    for function, x in ((jitted, got), (f, wanted)):
        with pytest.raises(IndexError, match="out of bounds"):
            function(x, np.array([0, 7]))
    np.testing.assert_array_equal(got, wanted)


def test_candidates_find_what_was_there() -> None:
    for function in (scaled, from_others, a_part):
        for task in tasks_of(nbcomp.compile(function, *arguments("C")), arguments("C")):
            bench = Bench(task)
            assert bench.turns  # the default schedule gives the answer
            assert not isinstance(bench.checked(task.kernel), str)  # and is run again
