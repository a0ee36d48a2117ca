"""Programs of many kinds: by script and by jit they give what Python gives."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import nbcomp
from tests.script.conftest import outcome
from tests.script.everyday import EVERYDAY
from tests.script.test_textbook import close


@pytest.mark.parametrize("name", EVERYDAY)
@pytest.mark.parametrize("by", [nbcomp.script, nbcomp.jit])
def test_like_python(name: str, by: Any) -> None:
    function, calls = EVERYDAY[name]
    compiled = by(function)
    for args in (*calls, *calls):
        want, after = outcome(function, args)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", nbcomp.NumpyFallback)
            warnings.simplefilter("ignore", nbcomp.RecompileLimit)
            got, given = outcome(compiled, args)
        assert close(got, want), (got, want)
        assert close(given, after)
