"""Counters of loops that Python runs round by round: one code for all their values."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import nbcomp

N = 160


def viterbi(obs: Any, trans: Any, emit: Any) -> Any:
    v = np.zeros((len(obs), len(trans)))
    back = np.zeros((len(obs), len(trans)), np.int64)
    v[0] = emit[:, obs[0]]
    for t in range(1, len(obs)):
        scores = v[t - 1][:, None] + trans
        back[t] = scores.argmax(axis=0)
        v[t] = scores.max(axis=0) + emit[:, obs[t]]
    path = [int(v[-1].argmax())]
    for t in range(len(obs) - 1, 0, -1):
        path.append(int(back[t, path[-1]]))
    return path[::-1]


def both_ends(x: Any, said: Any) -> Any:
    total = np.zeros(x.shape[1])
    for i in range(len(x)):
        total = total + x[i] * x[-1 - i] + x[i - 1]
        said.append(i)
    return total


def two_counters(x: Any, said: Any) -> Any:
    j = 0
    y = np.zeros_like(x)
    for i in range(0, 3 * len(x), 3):
        j = j + 2
        y[i // 3] = np.sin(x[i // 3] + i * 0.5) * j
        said.append(j)
    return y, j


def needed(x: Any, said: Any) -> Any:
    for i in range(60):
        x = np.cos(x) + float(f"{i}.5") + np.exp(x * -0.1)
        said.append(i)
    return x


def bounds(x: Any, said: Any) -> Any:
    sums = np.zeros(len(x))
    for k in range(1, len(x)):
        sums[k] = (x[:k, 0] * 2 + 1).sum() + np.tanh(x[k:, 1]).sum()
        said.append(k)
    return sums


def decided(x: Any, said: Any) -> Any:
    for i in range(80):
        x = np.tanh(x) + 1 if i % 10 == 0 else np.tanh(x) * 0.5 + i
        said.append(i)
    return x


def graphs(function: Any) -> int:
    return len(function.explain().graphs)


def test_one_part_for_all_rounds(rng: np.random.Generator) -> None:
    obs = rng.integers(0, 5, N)
    args = obs, rng.random((6, 6)), rng.random((6, 5))
    fast = nbcomp.jit(viterbi)
    for _ in range(3):
        assert fast(*args) == viterbi(*args)
    assert graphs(fast) <= 8
    assert not [b for b in fast.breaks if "differs from call to call" in b.reason]
    assert any(" is a Python int" in guard for g in fast.explain().graphs for guard in g.guards)


@pytest.mark.parametrize("program", [both_ends, two_counters, needed, bounds, decided])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_counters(program: Any, dtype: Any, rng: np.random.Generator) -> None:
    x = rng.random((N, 3)).astype(dtype)
    fast = nbcomp.jit(program)
    for _ in range(3):
        wanted: list[Any] = []
        got: list[Any] = []
        one, two = program(x.copy(), wanted), fast(x.copy(), got)
        assert got == wanted
        assert set(map(type, got)) == {int}
        one, two = (r if isinstance(r, tuple) else (r, 0) for r in (one, two))
        assert one[1] == two[1]
        np.testing.assert_allclose(two[0], one[0], rtol=3e-6 if dtype == np.float32 else 1e-13)
        assert two[0].dtype == one[0].dtype


def test_few_graphs(rng: np.random.Generator) -> None:
    for program in (both_ends, two_counters, decided):
        fast = nbcomp.jit(program)
        fast(rng.random((N, 3)), [])
        assert graphs(fast) <= 8, fast.explain()


def test_a_number_that_is_needed_is_pythons(rng: np.random.Generator) -> None:
    fast = nbcomp.jit(needed)
    fast(rng.random((N, 3)), [])
    assert any("differs from call to call" in b.reason for b in fast.breaks)


def test_an_index_beyond_the_end_raises(rng: np.random.Generator) -> None:
    def beyond(x: Any, said: Any) -> Any:
        total = x[0] * 0
        for i in range(N + 9):
            total = np.sin(total + x[i])
            said.append(i)
        return total

    x, got = rng.random((N, 3)), []
    with pytest.raises(IndexError, match="index 160 is out of bounds"):
        nbcomp.jit(beyond)(x, got)
    assert got == [*range(N)]


@pytest.mark.parametrize("compile", [nbcomp.jit, nbcomp.script])
@pytest.mark.parametrize("first", [(2, 3), (2.5, 2)])
@pytest.mark.parametrize(
    "last",
    [(2**63, 2), (2**40, 2**63), (-(2**63), -1), (-(2**63), 2**62), (2**62, -1), (2**70, 3)],
)
def test_whole_numbers_beyond_64_bits_are_pythons(compile: Any, first: Any, last: Any) -> None:
    def program(a: Any, b: Any) -> Any:
        return a // b, a % b, a - b

    def quotient(a: Any, b: Any) -> Any:
        return a // b

    for function in (program, quotient):
        compiled = compile(function)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for args in (first, (5, 2), last, (7, 2), last):
                assert compiled(*args) == function(*args)
