"""Textbook programs: by script and by jit they give what Python gives."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import nbcomp
from tests.script.conftest import outcome
from tests.script.textbook import TEXTBOOK

# What `script` leaves to Python: shapes that values decide.
LEFT = {"sieve_for", "counting_sort"}


def close(got: Any, want: Any) -> bool:
    """Of the same types; numbers of which the order of a sum is open, nearly."""
    if type(got) is not type(want):
        return False
    if isinstance(want, dict):
        return list(got) == list(want) and close(list(got.values()), list(want.values()))
    if isinstance(want, tuple | list):
        return len(got) == len(want) and all(map(close, got, want))
    if isinstance(want, np.ndarray | np.generic | float):
        same = np.asarray(got).dtype == np.asarray(want).dtype
        return bool(same and np.allclose(got, want, rtol=1e-12, atol=1e-12, equal_nan=True))
    return bool(got == want)


@pytest.mark.parametrize("name", TEXTBOOK)
@pytest.mark.parametrize("by", [nbcomp.script, nbcomp.jit])
def test_like_python(name: str, by: Any) -> None:
    function, calls = TEXTBOOK[name]
    compiled = by(function)
    for args in (*calls, *calls):
        want, after = outcome(function, args)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if name in LEFT else "error", nbcomp.NumpyFallback)
            got, given = outcome(compiled, args)
        assert close(got, want), (got, want)
        assert close(given, after)
