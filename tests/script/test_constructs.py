"""Each row of docs/capture.md: scripted, it is compiled and does what Python does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.script.constructs import CONSTRUCTS

PAGE = Path(__file__).parents[2] / "docs" / "capture.md"


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_construct(like_python: Any, name: str) -> None:
    function, args = CONSTRUCTS[name]
    scripted = like_python(function, *args)
    becomes = next(r for r in PAGE.read_text().splitlines() if r.startswith(f"| {name} |"))
    if "one kernel" in becomes:
        assert str(scripted.compiled.captured).count("= loops(") == 1


def test_the_page_has_every_construct() -> None:
    page = PAGE.read_text()
    for name in CONSTRUCTS:
        assert f"| {name} |" in page, name
