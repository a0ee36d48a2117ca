"""Generator expressions that a function uses up, in loops over elements: as Python has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.frontend.script import generators

X = np.array([3.0, -1.5, 0.25, 7.0, -0.0])
N = np.array([5, 3, -2, 9, 3])
NONE = np.zeros(0)


PROGRAMS = {
    "filtered": lambda x: sum(v * v for v in x if v > 0 if v < 6),
    "start": lambda x: sum((v for v in x), 10),
    "start named": lambda x: sum((v for v in x), start=2.5),
    "two loops": lambda x: sum(a * b for a in x for b in x if a < b),
    "inner range": lambda x: sum(x[i] * x[j] for i in range(len(x)) for j in range(i)),
    "unpacked": lambda x: sum(k * v for k, v in enumerate(x)),
    "zip": lambda x: max(a - b for a, b in zip(x, x[::-1], strict=True)),
    "counts": lambda x: sum(1 for v in x if v > 0),
    "truths": lambda x: sum(v > 0 for v in x),
    "least": lambda x: min(abs(v) for v in x),
    "first of equals": lambda x: max((v * 0.0 for v in x), default=1.0),
    "default": lambda x: max((v for v in x if v > 100), default=-1.0),
    "any": lambda x: any(v > 6 for v in x),
    "all": lambda x: all(v > -1 for v in x),
    "numbers as truths": lambda x: (any(v for v in x), all(v for v in x)),
    "within": lambda x: sum(max(v * w for w in x) for v in x),
    "names of its own": lambda x: sum(total * 2 for total in x) + sum(items for items in x),
    "a variable of the same name": lambda x: (lambda v: sum(v for v in x) + v)(2.0),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("x", [X, N, NONE, X[:1], np.arange(3, dtype=np.float32)])
def test_like_python(like_python: Any, name: str, x: Any) -> None:
    like_python(PROGRAMS[name], x)


def test_an_empty_one_has_no_extreme(like_python: Any) -> None:
    like_python(lambda x: max(v for v in x if v > 100), X)
    like_python(lambda x: min(v for v in x), NONE)


def test_it_sees_the_variables_around_it(like_python: Any) -> None:
    def weighted(x: Any, n: Any) -> Any:
        total = 0.0
        for k in range(n):
            weight = k + 1
            total += sum(weight * v for v in x if v > total)
        return total, weight

    like_python(weighted, X, 4)


def test_variables_around_it_may_be_called_as_those_of_the_loop(like_python: Any) -> None:
    def largest(x: Any) -> Any:
        total_found, items_ = 2.0, 4.0
        return max(total_found * v + items_ for v in x)

    like_python(largest, X)


def test_strict_pairs_are_equally_many(like_python: Any) -> None:
    def dot(a: Any, b: Any) -> Any:
        return sum(p * q for p, q in zip(a, b, strict=True))

    like_python(dot, X, X)
    like_python(dot, X, X[1:], fallback=True)


def test_sums_of_pythons_floats(like_python: Any, monkeypatch: Any) -> None:
    def harmonic(n: Any) -> Any:
        return sum(1 / k for k in range(1, n))

    like_python(harmonic, 50, fallback=generators.CORRECTED)
    monkeypatch.setattr(generators, "CORRECTED", True)  # as Python has it from 3.12 on
    scripted = nbcomp.script(harmonic)
    assert scripted(50) == harmonic(50)
    assert "loops(" not in str(scripted.compiled.captured)


def test_jit_takes_long_ones_as_loops() -> None:
    def count(x: Any) -> Any:
        return sum(1 for v in x if v > 0.5)

    x = np.random.default_rng(0).random(50_000)
    compiled = nbcomp.jit(count)
    assert compiled(x) == count(x)
    assert len(compiled.variants) == 1
    assert not compiled.breaks


def test_jit_takes_those_that_decide_by_elements() -> None:
    def positive(x: Any) -> Any:
        return sum(v * v for v in x if v > 0), max((v for v in x if v < 0), default=0.0)

    compiled = nbcomp.jit(positive)
    assert compiled(X) == positive(X)
    assert len(compiled.variants) == 1
    assert not compiled.breaks
    assert not compiled.fallbacks
