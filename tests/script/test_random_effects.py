"""Random programs that change objects where values decide, against Python itself: results, types,
and what the caller holds afterwards."""

from __future__ import annotations

import warnings

import pytest

import nbcomp
from tests.script.conftest import assert_same, outcome
from tests.script.random_effects import arguments, program


def compare(seed: int) -> bool:
    """Three calls of a program; whether it stayed compiled."""
    function, text = program(seed)
    kind = function.__globals__["Box"]
    scripted = nbcomp.script(function)
    for k in range(3):
        args = arguments(seed + 7 * k)
        found = []
        for each in (function, scripted):
            kind.total = 0
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", nbcomp.NumpyFallback)
                found.append((*outcome(each, args), kind.total))
        try:
            assert_same(found[1], found[0])
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, call {k}: {error}\n{text}") from None
    return not scripted.fallbacks


@pytest.mark.parametrize("ten", range(8))
def test_random_effects(ten: int) -> None:
    compiled = sum(compare(seed) for seed in range(10 * ten, 10 * (ten + 1)))
    assert compiled  # programs that only Python runs test nothing


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(1, 21))
def test_many_random_effects(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * (hundred + 1)):
        compare(seed)
