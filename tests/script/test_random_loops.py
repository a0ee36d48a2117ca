"""Random loop programs against Python itself: results, arrays afterwards, and what is raised."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import nbcomp
from tests.script.conftest import outcome
from tests.script.random_loops import arguments, program


def equal(got: Any, want: Any) -> bool:
    """Equal values; a whole number may stand for a float that was never added to."""
    if isinstance(want, tuple):
        return isinstance(got, tuple) and all(map(equal, got, want))
    if isinstance(want, np.ndarray):
        return bool(np.array_equal(got, want, equal_nan=True))
    return bool(got == want or (got != got and want != want))


def compare(seed: int) -> None:
    function, text = program(seed)
    args = arguments(seed)
    want, after = outcome(function, args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nbcomp.NumpyFallback)
        got, given = outcome(nbcomp.script(function), args)
    if isinstance(got, tuple) and got[:1] == (nbcomp.CaptureError,):
        return  # kinds of numbers that cannot be one
    assert equal(got, want), f"{got} is not {want}:\n{text}"
    assert equal(given, after), text


@pytest.mark.parametrize("seed", range(40))
def test_random_loops(seed: int) -> None:
    compare(seed)


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(1, 10))
def test_many_random_loops(hundred: int) -> None:
    for seed in range(100 * hundred, 100 * (hundred + 1)):
        compare(seed)
