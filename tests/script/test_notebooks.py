"""Programs of people's notebooks: by jit and script they give what Python gives, call after call,
also where it turns out while they are called that Python is the faster way."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import nbcomp
from tests.script.conftest import outcome
from tests.script.notebooks import NOTEBOOKS
from tests.script.test_textbook import close


@pytest.mark.parametrize("name", NOTEBOOKS)
@pytest.mark.parametrize("by", [nbcomp.script, nbcomp.jit])
def test_like_python(name: str, by: Any) -> None:
    function, calls = NOTEBOOKS[name]
    compiled = by(function)
    for args in calls * 3:
        want, after = outcome(function, args)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", nbcomp.NumpyFallback)
            warnings.simplefilter("ignore", nbcomp.RecompileLimit)
            got, given = outcome(compiled, args)
        assert close(got, want), (got, want)
        assert close(given, after)
