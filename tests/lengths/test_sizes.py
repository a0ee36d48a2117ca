"""Formulas of open lengths, and what is assumed when they are looked at."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nbcomp import sizes
from nbcomp.conditions import Conditions
from nbcomp.sizes import Size, symbols_of


@pytest.fixture
def lengths() -> tuple[Conditions, Any, Any]:
    conditions = Conditions()
    return conditions, conditions.symbol("n", 128), conditions.symbol("m", 50)


def test_formulas_are_simplified(lengths: tuple[Conditions, Any, Any]) -> None:
    conditions, n, m = lengths
    with conditions.in_force():
        assert str((n + 1) * (n - 1)) == "n*n - 1"
        assert n - n == 0
        assert type(n - n + 3) is int
        assert n * 784 // 784 is not n
        assert (n * 784 // 784).key == n.key
        assert n * 784 % 784 == 0
        assert (n * m // m).key == n.key
        assert str((n * 6 + 5) // 3) == "2*n + 1"
        assert str((n + 63) // 64 * 64) == "64*((n + 63) // 64)"
        assert (np.int64(3) * n).key == (n * 3).key
        assert -1 % n == n - 1
    assert not conditions.fixed
    assert not conditions.zero


def test_what_is_known_needs_no_condition(lengths: tuple[Conditions, Any, Any]) -> None:
    conditions, n, m = lengths
    box = dict(conditions.box)
    with conditions.in_force():
        assert n != 1
        assert n > 1
        assert bool(n)
        assert n * m > n
        assert n * m - n * 3 // 2 > -n
        assert (n + 63) // 64 * 64 > n - 1
        assert n * 4 + 64 > (n * 4 + 63) // 64 * 64
        assert max(n, 1) is n
    assert conditions.box == box
    assert not conditions.nonzero


def test_a_comparison_narrows_the_lengths(lengths: tuple[Conditions, Any, Any]) -> None:
    conditions, n, m = lengths
    with conditions.in_force():
        assert n * 784 * 4 > 100_000
        (symbol,) = symbols_of(n)
        assert conditions.box[symbol][0] == 32
        assert conditions.range_of(symbol) == "32 or more"
        assert not n * m > 1 << 20
        assert conditions.most(n * m) == 1 << 20
        assert conditions.most(n * m * 3 + 5) == 3 * (1 << 20) + 5
        assert n * m < 1 << 21
        (other,) = symbols_of(m)
        assert conditions.why_not({symbol: 1000, other: 1000}) == ""
        why = conditions.why_not({symbol: 10_000, other: 1000})
        assert why == f"n*m is 10000000, not {1 << 20:,} or less"


def test_equal_lengths_are_one(lengths: tuple[Conditions, Any, Any]) -> None:
    conditions, n, _ = lengths
    k = conditions.symbol("k", 128)
    with conditions.in_force():
        assert n == k
        assert n * 3 - k * 3 == 0
        assert not n < k
    assert [str(s) for s in conditions.zero.values()] == ["n - k"]


def test_a_number_that_is_needed_is_fixed(lengths: tuple[Conditions, Any, Any]) -> None:
    conditions, n, m = lengths
    with conditions.in_force():
        assert list(range(n - 126)) == [0, 1]
        assert np.zeros(n * 2).shape == (256,)
        assert not n > 128
    (fixed,) = conditions.fixed
    assert (fixed.symbol.name, fixed.symbol.hint) == ("n", 128)
    assert conditions.most(m) > 50


def test_nothing_is_assumed_where_nobody_listens(lengths: tuple[Conditions, Any, Any]) -> None:
    conditions, n, _ = lengths
    assert n == 128
    assert int(n) == 128
    assert f"{n:,} {n:.1f}" == "n 128.0"
    assert not conditions.fixed


def test_what_is_known_of_a_formula_is_assumed_by_each_who_asks() -> None:
    n = Conditions().symbol("n", 128)
    (symbol,) = symbols_of(n)
    assert sizes.cut(slice(2, 100), n) == (2, 1, 98)  # nobody listens
    seen = []
    for _ in range(2):
        conditions = Conditions(box={symbol: (2, 1000)})
        with conditions.in_force():
            assert sizes.cut(slice(2, 100), n) == (2, 1, 98)
            assert sizes.cut(slice(2, 100), n) == (2, 1, 98)
            assert n - 2 is n - 2
            assert n - n // 3 is n - n // 3
            assert -n * 4 is -n * 4
        seen.append(conditions.box[symbol])
    assert seen == [(100, 1000)] * 2


@pytest.mark.parametrize("length", [0, 1, 2, 3, 7, 40])
def test_slices_are_those_of_python(length: int) -> None:
    bounds = [None, 0, 1, 2, 5, -1, -2, -5, 100, -100]
    for key in (slice(a, b, c) for a in bounds for b in bounds for c in (None, 1, 2, -1, -3)):
        expected = range(*key.indices(length))
        start, step, count = sizes.cut(key, length)
        assert (step, count) == (expected.step, len(expected))
        assert not count or start == expected.start
        if length < 2:
            continue
        conditions = Conditions()
        n = conditions.symbol("n", length)
        with conditions.in_force():
            found = sizes.cut(key, n)
        for other in range(2, 60):
            values = dict.fromkeys(symbols_of(n), other)
            if not conditions.why_not(values):
                same = range(*key.indices(other))
                at = [sizes.evaluated(v, values) for v in found]
                assert (at[1], at[2]) == (same.step, len(same))
                assert not at[2] or at[0] == same.start


BINARY: tuple[Callable[[Any, Any], Any], ...] = (
    *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, max, min),
)
QUESTIONS: tuple[Callable[[Any, Any], Any], ...] = (
    *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
)


def program(rng: np.random.Generator) -> Callable[[Any, Any], list[Any]]:
    """Arithmetic and questions on two lengths: what it gives is every answer and every value."""
    steps = [
        (
            int(rng.integers(len(BINARY))),
            int(rng.integers(len(QUESTIONS))),
            *(int(k) for k in rng.integers(0, 1 << 30, 3)),
        )
        for _ in range(8)
    ]
    numbers = [int(k) for k in rng.choice([1, 2, 3, 4, 7, 8, 16, 64, 100, 784, 4096], 3)]

    def run(n: Any, m: Any) -> list[Any]:
        known, told = [n, m, *numbers], []
        for fn, question, a, b, c in steps:
            x, y = known[a % len(known)], known[b % len(known)]
            if BINARY[fn] in (operator.floordiv, operator.mod) and not y:
                y = 5
            z = BINARY[fn](x, y)
            told.append(QUESTIONS[question](z, known[c % len(known)]))
            known.append(z)
        return [*told, *known]

    return run


@pytest.mark.parametrize("seed", range(400))
def test_answers_hold_for_all_lengths_that_are_taken(seed: int) -> None:
    rng = np.random.default_rng(seed)
    run = program(rng)
    seen = [int(k) for k in rng.integers(2, 300, 2)]
    conditions = Conditions()
    n, m = (conditions.symbol(name, k) for name, k in zip("nm", seen, strict=True))
    with conditions.in_force():
        found = run(n, m)
    assert [bool(a) if isinstance(a, bool) else sizes.hint(a) for a in found] == run(*seen)
    for _ in range(60):
        spread = 2.0 ** rng.uniform(-4, 4, 2)
        values = [max(2, int(k * f)) for k, f in zip(seen, spread, strict=True)]
        at = {s: k for size, k in zip((n, m), values, strict=True) for s in symbols_of(size)}
        if conditions.why_not(at):
            continue
        assert [sizes.evaluated(a, at) for a in found] == run(*values), (seen, values)


def test_many_programs_take_other_lengths_too() -> None:
    """The conditions are not so strict that nothing is gained."""
    taken = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        run = program(rng)
        conditions = Conditions()
        n, m = conditions.symbol("n", 100), conditions.symbol("m", 90)
        with conditions.in_force():
            run(n, m)
        at = {next(iter(symbols_of(n))): 103, next(iter(symbols_of(m))): 91}
        taken += not conditions.why_not(at)
    assert taken > 30


def test_sizes_are_no_ints(lengths: tuple[Conditions, Any, Any]) -> None:
    _, n, _ = lengths
    assert not isinstance(n, int)
    assert isinstance(n, Size)


def test_long_formulas_are_given_up(lengths: tuple[Conditions, Any, Any]) -> None:
    conditions, n, m = lengths
    with conditions.in_force():
        x = n
        for _ in range(60):
            x = (x * m + n) % (m + 3)
    assert not isinstance(x, Size) or len(str(x)) < 2000
