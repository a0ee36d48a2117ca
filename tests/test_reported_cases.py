"""Bugs that users of other array compilers reported: none of them may be one of nbcomp's.

`tests/cases/reported_cases.py` states each case and its right answer.  What the captured language
cannot say yet (`NOT_YET`) is run all the same: Python loops over the elements of an array.
"""

from __future__ import annotations

from typing import Any

import pytest

import nbcomp
from tests.cases.reported_cases import CASES, check

NOT_YET = {"loops"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_expected_value_is_numpys(case: dict[str, Any]) -> None:
    check(case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_compiled(case: dict[str, Any], request: pytest.FixtureRequest) -> None:
    if missing := case["needs"] & NOT_YET:
        reason = f"not captured yet: {', '.join(sorted(missing))}"
        request.applymarker(pytest.mark.xfail(reason=reason, strict=False))
    check(case, compile=nbcomp.jit)
