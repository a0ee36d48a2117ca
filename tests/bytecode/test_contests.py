"""Functions in parts that are slower so than Python run in Python, and it is said."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.contests import (
    CHANCE,
    KINDS,
    LONGEST,
    PRICE,
    ROUNDS,
    SURE,
    Contest,
    Contests,
    Way,
)

LOG: list[Any] = []


@pytest.fixture(autouse=True)
def no_contests() -> None:
    """Here there are some."""


def broken(x: Any) -> Any:
    y = np.sin(x) + 1
    LOG.append(y.shape)
    return y * 2 + x


def logged_sums(x: Any) -> Any:
    LOG.append(x.shape)
    return prefix_sums(x)


def prefix_sums(x: Any) -> Any:
    y, s = np.zeros_like(x), 0.0
    for i in range(len(x)):
        s += x[i]
        y[i] = s
    return y


class Clock:
    """Time goes by as a contest of a function's newest kind of calls says."""

    def __init__(self, function: Any, seconds: dict[Way, float]) -> None:
        self.function, self.seconds, self.now = function, seconds, 0.0
        function.contests = Contests(self)

    def __call__(self) -> float:
        way = [*self.function.contests.kinds.values()][-1].turn
        self.now += self.seconds[way]
        return self.now


def timed(compiled: float, python: float, function: Callable[..., Any] = broken) -> Any:
    fast = nbcomp.jit(function)
    Clock(fast, {Way.COMPILED: compiled, Way.PYTHON: python})
    return fast


def calls(fast: Any, x: Any, count: int = 12) -> list[str]:
    """The warnings of so many calls, each of which runs once."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(count):
            LOG.clear()
            np.testing.assert_allclose(fast(x), np.sin(x) * 2 + 2 + x)
            assert [x.shape] == LOG
    return [str(w.message) for w in said]


def test_python_is_kept_where_it_is_faster(rng: np.random.Generator) -> None:
    fast = timed(2e-5, 1e-5)
    said = calls(fast, rng.random(5))
    (contest,) = fast.contests.kinds.values()
    assert contest.winner is Way.PYTHON
    assert len(said) == 1
    assert "broken runs in Python for now: a call takes 20 µs compiled and 10 µs in" in said[0]
    assert "LOG" in said[0]  # the first break
    assert "a call takes 20 µs compiled and 10 µs in Python" in str(fast.explain())


def test_what_is_compiled_is_kept_where_it_is_faster(rng: np.random.Generator) -> None:
    fast = timed(1e-5, 1.1e-5)
    assert not calls(fast, rng.random(5))
    (contest,) = fast.contests.kinds.values()
    assert contest.winner is Way.COMPILED
    assert "in Python" not in str(fast.explain())


def test_a_little_faster_is_not_enough(rng: np.random.Generator) -> None:
    fast = timed(1.05e-5, 1e-5)
    assert not calls(fast, rng.random(5))
    assert not fast.contests.lost


def test_the_ways_take_turns() -> None:
    contest, ways = Contest(), []
    while contest.winner is None:
        ways.append(contest.turn)
        contest.took(contest.turn, 1.0e-3)
    assert ways == [Way.COMPILED, Way.PYTHON] * ROUNDS
    assert contest.turn is Way.COMPILED


def test_what_lost_has_other_chances_that_cost_little() -> None:
    contest, seconds = Contest(), {Way.COMPILED: 5.0e-3, Way.PYTHON: 1.0e-3}
    ways = []
    for _ in range(3000):
        ways.append(way := contest.turn)
        if contest.winner is Way.PYTHON:
            contest.passed()
        else:
            contest.took(way, seconds[way])
    assert ways[: 2 * SURE] == [Way.COMPILED, Way.PYTHON] * SURE
    assert contest.chances >= 3
    assert ways[2 * SURE :].count(Way.COMPILED) == CHANCE * contest.chances
    spent = sum(seconds[way] for way in ways)
    assert spent < 3000 * seconds[Way.PYTHON] * (1 + PRICE)


@pytest.mark.parametrize("function", [broken, lambda x: np.sort(x) * 2 + x])
def test_what_lost_on_a_busy_machine_is_used_later(
    function: Callable[..., Any], rng: np.random.Generator
) -> None:
    fast, x = timed(2e-5, 1e-5, function), rng.random(5)

    def call(count: int) -> list[str]:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for _ in range(count):
                np.testing.assert_allclose(fast(x), function(x))
        return [str(w.message) for w in said]

    said = call(12)
    (contest,) = fast.contests.kinds.values()
    assert contest.winner is Way.PYTHON
    assert contest.again >= contest.calls - 3
    said += call(contest.again + 2 * CHANCE)  # still busy: one more warning would be one too many
    assert (contest.winner, contest.chances) == (Way.PYTHON, 1)
    assert len(said) == 1
    fast.contests.clock.seconds[Way.COMPILED] = 5e-6
    assert not call(contest.again + 2 * ROUNDS)
    assert contest.winner is Way.COMPILED
    assert not fast.contests.lost
    assert not fast._handed


def test_python_is_not_tried_where_it_may_take_minutes(rng: np.random.Generator) -> None:
    fast = timed(LONGEST * 2, 1e-5)
    assert not calls(fast, rng.random(5))
    assert not fast.contests.lost


def test_loops_over_elements_are_not_tried_in_python(rng: np.random.Generator) -> None:
    fast, x = timed(2e-5, 1e-5, logged_sums), rng.random(3000)
    for _ in range(9):
        np.testing.assert_allclose(fast(x), np.cumsum(x))
    assert fast.has_loops
    assert not fast.contests.lost


def test_each_kind_of_call_by_itself(rng: np.random.Generator) -> None:
    fast = timed(2e-5, 1e-5)
    calls(fast, rng.random(5))
    calls(fast, rng.random(6).astype(np.float32).astype(np.float64), 2)
    one, two = fast.contests.kinds.values()
    assert (one.winner, two.winner) == (Way.PYTHON, None)


def test_there_is_a_limit_of_kinds(rng: np.random.Generator) -> None:
    contests = Contests()
    assert all(contests.of(k) for k in range(KINDS))
    assert contests.of(KINDS) is None
    assert contests.of(0) is not None


def test_a_call_that_raises_runs_once_and_does_not_count() -> None:
    def raising(x: Any) -> Any:
        y = np.sin(x) + 1
        LOG.append(1)
        if y.sum() > 1:
            raise ValueError("too much")
        return y

    fast, x = timed(2e-5, 1e-5, raising), np.ones(4)
    for _ in range(8):
        LOG.clear()
        with pytest.raises(ValueError, match="too much"):
            fast(x)
        assert LOG == [1]
    (contest,) = fast.contests.kinds.values()
    assert not any(contest.seconds.values())


def test_new_code_of_a_function_begins_anew(rng: np.random.Generator) -> None:
    def f(x: Any) -> Any:
        return broken(x)

    fast = timed(2e-5, 1e-5, f)
    fast.__wrapped__.__code__ = broken.__code__
    calls(fast, rng.random(5))
    assert fast.contests.lost
    fast.__wrapped__.__code__ = (lambda x: np.cos(x)).__code__
    x = rng.random(5)
    np.testing.assert_allclose(fast(x), np.cos(x))
    assert not fast.contests.lost


def sorted_sum(x: Any, k: int = 2) -> Any:
    return np.sort(x) * k + x


@pytest.mark.parametrize("compile", [nbcomp.jit, nbcomp.script])
def test_whole_calls_that_leave_work_to_numpy(compile: Any, rng: np.random.Generator) -> None:
    for python, winner in ((1e-5, Way.PYTHON), (3e-5, Way.COMPILED)):
        fast = compile(sorted_sum)
        Clock(fast, {Way.COMPILED: 2e-5, Way.PYTHON: python})
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for _ in range(12):
                x = rng.random(7)
                np.testing.assert_array_equal(fast(x, k=3), sorted_sum(x, 3))
                np.testing.assert_array_equal(fast(x), sorted_sum(x))
                np.testing.assert_array_equal(fast(-x, 2), sorted_sum(-x))
        assert {c.winner for c in fast.contests.kinds.values()} == {winner}
        assert len(said) == (winner is Way.PYTHON)
        assert ("such calls run in Python" in str(fast.explain())) == (winner is Way.PYTHON)
        slow_path_calls = watched(fast)
        for _ in range(3):
            np.testing.assert_array_equal(fast(x, 2), sorted_sum(x))
        assert not slow_path_calls  # the native entry takes them, or hands them on


def watched(fast: Any) -> list[Any]:
    """The calls from now on that the native entry does not take."""
    seen: list[Any] = []
    fast._find = lambda *args: seen.append(args)
    return seen


def test_what_is_all_native_is_not_tried_in_python(rng: np.random.Generator) -> None:
    fast = nbcomp.jit(lambda x: np.sin(x) + x.sum())
    fast(rng.random(5))
    assert not fast.contests.kinds


def test_refused_calls_are_handed_on() -> None:
    def transformed(x: Any) -> Any:
        return np.fft.rfft(x)

    fast, x = nbcomp.jit(transformed), np.arange(8.0)
    with pytest.warns(nbcomp.NumpyFallback):
        fast(x)
    seen = watched(fast)
    np.testing.assert_array_equal(fast(x), transformed(x))
    assert not seen
    del fast._find
    transformed.__code__ = (lambda x: np.sin(x)).__code__
    np.testing.assert_allclose(fast(x), np.sin(x))
    assert fast.variants


GLOBAL = """
def p(x):
    return np.exp(x * scale)

def put(value):
    global scale
    scale = value
"""
CLOSURE = """
def outer(scale):
    def put(value):
        nonlocal scale
        scale = value

    def p(x):
        return np.exp(x * scale)

    return p, put

p, put = outer(scale)
"""


@pytest.mark.filterwarnings("ignore::nbcomp.NumpyFallback")
@pytest.mark.parametrize("source", [GLOBAL, CLOSURE])
def test_what_was_refused_is_so_while_what_is_read_has_the_same_types(
    source: str, rng: np.random.Generator
) -> None:
    names: dict[str, Any] = {"np": np, "scale": "a"}
    exec(source, names)
    fast, put, x = nbcomp.jit(names["p"]), names["put"], rng.random(8)
    for _ in range(2):
        with pytest.raises(TypeError):
            fast(x)
    assert fast.fallbacks
    for value in (np.arange(8.0), np.arange(8.0) * 3):
        put(value)
        np.testing.assert_allclose(fast(x), np.exp(x * value))
    assert len(fast.variants) == 1
    assert not fast.fallbacks  # the account is of how such calls run now
    put("b")
    with pytest.raises(TypeError):
        fast(x)


def test_the_native_entry_hands_on_what_python_won(rng: np.random.Generator) -> None:
    fast, x = timed(2e-5, 1e-5), rng.random(5)
    calls(fast, x)
    seen = watched(fast)
    calls(fast, x, 3)
    assert not seen
    calls(fast, rng.random(6), 12)  # others go through the parts, as before
    assert {c.winner for c in fast.contests.kinds.values()} == {Way.PYTHON}
    assert not calls(fast, rng.random(6), 3)
