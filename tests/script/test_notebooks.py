"""Programs of people's notebooks: by jit and script they give what Python gives, call after call,
also where it turns out while they are called that Python is the faster way."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import nbcomp
from tests.script.conftest import assert_close_calls
from tests.script.notebooks import NOTEBOOKS


@pytest.fixture(autouse=True)
def no_contests() -> None:
    """Here there are some: whichever way a call goes, its answer is Python's."""


@pytest.mark.parametrize("name", NOTEBOOKS)
@pytest.mark.parametrize("by", [nbcomp.script, nbcomp.jit])
def test_like_python(name: str, by: Any) -> None:
    function, calls = NOTEBOOKS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nbcomp.NumpyFallback)
        warnings.simplefilter("ignore", nbcomp.RecompileLimit)
        assert_close_calls(by(function), function, calls * 3)
