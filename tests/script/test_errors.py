"""What bad input gets: the user's line, the name, and what to write."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pytest

import nbcomp
from tests.cases.reported_cases import CASES, check


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_reported_cases(case: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        if "loops" in case["needs"]:
            warnings.simplefilter("error", nbcomp.NumpyFallback)
        check(case, compile=nbcomp.script)


def test_an_undefined_name() -> None:
    def f(a: Any) -> Any:
        for i in range(len(a)):
            a[i] = missing  # noqa: F821
        return a

    with pytest.raises(NameError, match="name 'missing' is not defined"):
        nbcomp.script(f)(np.zeros(3))


def countdown(n: Any) -> Any:
    return countdown(n + 1)


def test_recursion_without_end() -> None:
    def f(a: Any) -> Any:
        s = 0
        for i in range(len(a)):
            s += countdown(i)
        return s

    message = "countdown calls itself 48 times"
    with pytest.warns(nbcomp.NumpyFallback, match=message) as told, pytest.raises(RecursionError):
        nbcomp.script(f)(np.zeros(3))
    assert "countdown(n + 1)" in str(told[0].message)
    assert "write it as a loop" in str(told[0].message)


@functools.cache
def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@pytest.mark.parametrize("compile", [nbcomp.jit, nbcomp.script])
def test_a_cache_that_keeps_nothing_is_named(compile: Any) -> None:
    def f(x: Any) -> Any:
        return x * fibonacci(30)

    with pytest.warns(nbcomp.NumpyFallback, match="the cache of fibonacci") as told:
        assert compile(f)(np.ones(2)).tolist() == [832040.0, 832040.0]
    assert "keeps nothing while compiling" in str(told[0].message)


def test_many_choices_in_a_loop_over_a_list_are_not_written_out() -> None:
    def rising(a: Any) -> Any:
        n = len(a)
        best = [1] * n
        for i in range(n):
            for j in range(i):
                if a[j] < a[i] and best[j] + 1 > best[i]:
                    best[i] = best[j] + 1
        return np.max(best)

    a = np.random.default_rng(0).integers(0, 99, 40)
    with pytest.warns(nbcomp.NumpyFallback, match="chooses by values too often") as told:
        assert nbcomp.script(rising)(a) == rising(a)
    assert "keep numbers in arrays" in str(told[0].message)


def test_a_long_comprehension_of_arrays_is_not_written_out() -> None:
    def medians(x: Any, k: int) -> Any:
        return np.array([np.median(x[i : i + k]) for i in range(len(x) - k + 1)])

    x = np.random.default_rng(1).random(600)
    with pytest.warns(nbcomp.NumpyFallback, match="a comprehension of more than"):
        found = nbcomp.script(medians)(x, 9)
    np.testing.assert_array_equal(found, medians(x, 9))
    few = nbcomp.script(medians)
    with warnings.catch_warnings():
        warnings.simplefilter("error", nbcomp.NumpyFallback)
        np.testing.assert_array_equal(few(x[:20], 9), medians(x[:20], 9))


def test_what_is_not_compiled_runs_in_python_and_is_named() -> None:
    def f(a: Any) -> Any:
        text = ""
        for i in range(len(a)):
            text += f"{a[i]}"
        return text

    with pytest.warns(nbcomp.NumpyFallback, match="runs in NumPy"):
        assert nbcomp.script(f)(np.zeros(2)) == "0.00.0"


def test_why_a_loop_runs_on_one_core() -> None:
    def f(a: Any) -> Any:
        s = 0.0
        for i in range(len(a)):
            s += a[i]
        return s

    scripted = nbcomp.script(f)
    scripted(np.ones(100))
    reasons = [str(r) for r in scripted.compiled.explain()]
    assert any("each round uses `s` of the one before" in r for r in reasons)
