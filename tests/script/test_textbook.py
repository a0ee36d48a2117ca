"""Textbook programs: by script and by jit they give what Python gives."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import nbcomp
from tests.script.conftest import assert_close_calls
from tests.script.textbook import TEXTBOOK

# What `script` leaves to Python: shapes that values decide.
LEFT = {"sieve_for", "counting_sort"}


@pytest.mark.parametrize("name", TEXTBOOK)
@pytest.mark.parametrize("by", [nbcomp.script, nbcomp.jit])
def test_like_python(name: str, by: Any) -> None:
    function, calls = TEXTBOOK[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if name in LEFT else "error", nbcomp.NumpyFallback)
        assert_close_calls(by(function), function, calls * 2)
