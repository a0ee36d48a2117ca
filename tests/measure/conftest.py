"""Measuring without the rests between turns, which only fairness needs."""

from __future__ import annotations

import pytest

from nbcomp.measure import scaling, timing


@pytest.fixture(autouse=True)
def without_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (timing, scaling):
        monkeypatch.setattr(module, "REST", 0.0)
