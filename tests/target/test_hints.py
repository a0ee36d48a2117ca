"""What LLVM is told of loops that were written: what would only make its work longer."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.target.llvm.hints import AS_IT_IS, ONE_BY_ONE


def told(function: Any, *args: Any) -> list[set[str]]:
    """The properties of each loop that has some, in the order of its end."""
    compiled = nbcomp.script(function)
    compiled(*args)
    text = compiled.compiled.text("llvm-before")
    lines = dict(re.findall(r"^(!\d+) = (.*)$", text, re.MULTILINE))
    ends = re.findall(r"!llvm.loop (!\d+)", text)
    return [{lines[p] for p in re.findall(r"!\d+", lines[end])[1:]} for end in ends]


def shortest_paths(d: Any) -> Any:
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


def beyond_the_diagonal(d: Any) -> Any:
    n = d.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                d[i, j] = d[i, j] - d[i, k] * d[k, j]
    return d


def row_sums(x: Any, out: Any) -> Any:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i] = out[i] + x[i, j]
    return out


def running(x: Any) -> Any:
    for i in range(1, x.shape[0]):
        x[i] = x[i - 1] * 0.5 + x[i]
    return x


def steps(x: Any) -> Any:
    n = 0
    while x[0] > 1.0:
        x[0] = x[0] / 3
        n += 1
    return n


def windows(x: Any, out: Any) -> Any:
    for i in range(x.shape[0] - 3):
        s = 0.0
        for k in range(3):
            s += x[i + k]
        out[i] = s
    return out


SQUARE = np.random.default_rng(0).random((40, 40))


def test_a_loop_that_surely_meets_what_it_wrote_is_not_made_vectors_of() -> None:
    inner, *outer = told(shortest_paths, SQUARE.copy())
    assert inner == {ONE_BY_ONE}
    assert outer == [{AS_IT_IS}] * 2
    inner, *_ = told(row_sums, SQUARE, np.zeros(40))
    assert inner == {ONE_BY_ONE}


def test_one_that_does_not_is() -> None:
    assert told(beyond_the_diagonal, SQUARE.copy()) == [{AS_IT_IS}] * 2
    counts = np.zeros(40, np.int64)  # whose sums have no order
    assert told(row_sums, (SQUARE * 9).astype(np.int64), counts) == [{AS_IT_IS}]


def test_a_loop_that_is_gone_through_once_is_not_written_out() -> None:
    assert told(running, SQUARE[0].copy()) == [{AS_IT_IS}]
    assert told(steps, np.array([1e9])) == [{AS_IT_IS}]


def test_short_loops_are_left_to_llvm() -> None:
    assert told(windows, SQUARE[0], np.zeros(40)) == []


@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_answers_are_the_same(n: int) -> None:
    for function in (shortest_paths, beyond_the_diagonal):
        ours, theirs = (SQUARE[:n, :n] / 9).copy(), (SQUARE[:n, :n] / 9).copy()
        np.testing.assert_array_equal(nbcomp.script(function)(ours), function(theirs))


def add_rows(p: Any, v: Any, dt: Any) -> Any:
    for i in range(p.shape[0]):
        for k in range(3):
            p[i, k] += dt * v[i, k]
    return p


def test_loops_over_axes_that_are_one_in_memory_are_one() -> None:
    p, v = SQUARE[:, :3].copy(), SQUARE[:, 3:6].copy()
    compiled = nbcomp.script(add_rows)
    np.testing.assert_array_equal(compiled(p.copy(), v, 0.5), add_rows(p.copy(), v, 0.5))
    assert 'fuse("i' in str(compiled.compiled.kernels[0].kernel)
    apart = SQUARE[:, ::2]
    wanted = add_rows(apart.copy(), SQUARE, 0.5)
    np.testing.assert_array_equal(compiled(SQUARE.copy()[:, ::2], SQUARE, 0.5), wanted)
