"""Equality first, then fair timings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.measure import comparison, differences


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


def test_what_is_written_into_an_argument_is_part_of_the_answer() -> None:
    def right(x: Any) -> Any:
        x += 1

    def wrong(x: Any) -> Any:
        x += 2

    x = np.arange(3.0)
    assert comparison.check(right, right, (x,)).agrees
    found = comparison.check(wrong, right, (x,))
    assert [d.name for d in found.differences if d.problem] == ["arguments[0][0]"]
    assert x.tolist() == [0, 1, 2]  # the caller's array is untouched


def test_a_wrong_answer_is_not_timed() -> None:
    found = comparison.compare(lambda x: x + 1, lambda x: x, (f32(1),), seconds=0.01)
    assert not found.agrees
    assert found.compiled is None
    assert math.isnan(found.speedup)


def test_compare_passes_keywords_and_reports_a_ratio() -> None:
    def scale(x: Any, by: float = 1.0) -> Any:
        return x * by

    found = comparison.compare(scale, scale, (f32(1, 2),), {"by": 3.0}, seconds=0.02)
    assert found.agrees
    assert found.speedup_low <= found.speedup <= found.speedup_high


def test_an_answer_as_near_to_the_true_one_as_numpys_is_not_wrong() -> None:
    rng = np.random.default_rng(0)
    x = (1e4 + rng.random((1000, 50))).astype(np.float32)

    def numpys(x: Any) -> Any:
        return (x - x.mean(0)) / x.std(0)

    def better(x: Any) -> Any:
        return numpys(x.astype(np.float64)).astype(np.float32)

    def wrong(x: Any) -> Any:
        return better(x) * np.float32(2)

    (out_of_bounds,) = differences.differences(better(x), numpys(x))
    assert out_of_bounds.problem
    found = comparison.check(better, numpys, (x,))
    assert found.agrees
    assert 0 < found.scaled < found.ulp
    assert not comparison.check(wrong, numpys, (x,)).agrees


def test_functions_that_write_are_timed_on_the_same_data_again() -> None:
    seen: list[float] = []

    def double(x: Any) -> Any:
        seen.append(float(x[0]))
        x *= 2.0
        return x

    x = np.full(4, 1e300)
    with np.errstate(all="raise"):
        found = comparison.compare(double, double, (x,), seconds=0.05)
    assert found.agrees
    assert x[0] == 1e300
    assert seen.count(1e300) > 3


def test_functions_that_write_nothing_get_the_arguments_themselves() -> None:
    seen: set[int] = set()

    def note(x: Any) -> Any:
        seen.add(id(x))
        return x + 1

    x = np.ones(4)
    assert comparison.compare(note, note, (x,), seconds=0.02, writes=False).agrees
    assert seen == {id(x)}


def test_a_result_is_no_better_than_what_was_rounded_on_the_way() -> None:
    def numpys(x: Any) -> Any:
        return np.exp(x.astype(np.float32)).astype(np.float64)

    def ours(x: Any) -> Any:
        return np.nextafter(np.exp(x.astype(np.float32)), np.float32(0)).astype(np.float64)

    x = np.linspace(0, 1, 50)
    eps = comparison.coarsest(nbcomp.compile(numpys, x).captured)
    assert eps == np.finfo(np.float32).eps
    assert not comparison.check(ours, numpys, (x,)).agrees
    assert comparison.check(ours, numpys, (x,), eps=eps).agrees
    assert comparison.compare(ours, numpys, (x,), seconds=0.02, eps=eps).agrees
    assert not comparison.check(lambda x: ours(x) * 1.001, numpys, (x,), eps=eps).agrees


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (lambda x: x * 2.0, np.float64),
        (lambda x: x.astype(np.float16).astype(np.float64), np.float16),
        (lambda x: (x > 0).sum(), None),
    ],
)
def test_the_coarsest_of_what_is_computed(function: Any, dtype: Any) -> None:
    found = comparison.coarsest(nbcomp.compile(function, np.ones(5)).captured)
    assert found == (0.0 if dtype is None else np.finfo(dtype).eps)


def test_inputs_that_are_only_read_round_nothing() -> None:
    graph = nbcomp.compile(lambda x: x[1:].astype(np.float64) * 2, f32(1, 2, 3)).captured
    assert comparison.coarsest(graph) == np.finfo(np.float64).eps
