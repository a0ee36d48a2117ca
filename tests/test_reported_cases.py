"""Bugs that users of other array compilers reported: none of them may be one of nbcomp's.

`tests/cases/reported_cases.py` states each case and its right answer.
"""

from __future__ import annotations

from typing import Any

import pytest

import nbcomp
from tests.cases.reported_cases import CASES, check


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_expected_value_is_numpys(case: dict[str, Any]) -> None:
    check(case)


@pytest.mark.parametrize("compile", [nbcomp.jit, nbcomp.script])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_compiled(case: dict[str, Any], compile: Any) -> None:
    check(case, compile=compile)
