"""Programs of many kinds: by script and by jit they give what Python gives."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import nbcomp
from tests.script.conftest import assert_close_calls
from tests.script.everyday import EVERYDAY


@pytest.mark.parametrize("name", EVERYDAY)
@pytest.mark.parametrize("by", [nbcomp.script, nbcomp.jit])
def test_like_python(name: str, by: Any) -> None:
    function, calls = EVERYDAY[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nbcomp.NumpyFallback)
        warnings.simplefilter("ignore", nbcomp.RecompileLimit)
        assert_close_calls(by(function), function, calls * 2)
