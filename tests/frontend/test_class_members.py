"""Members of a class are assumed: replacing one is seen by the next call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nbcomp.frontend.trace import capture
from nbcomp.runtime.plan import ObjectGuard


def make() -> Any:
    class Model:
        @property
        def scale(self) -> float:
            return 2.0

        @functools.cached_property
        def cached(self) -> float:
            return 3.0

        @classmethod
        def made(cls) -> float:
            return 4.0

    return Model


READERS: dict[str, Callable[..., Any]] = {
    "scale": lambda x, m: x * m.scale,
    "cached": lambda x, m: x * m.cached,
    "made": lambda x, m: x * m.made(),
}


@pytest.mark.parametrize("name", list(READERS))
def test_a_member_is_guarded(name: str) -> None:
    cls = make()
    captured = capture(READERS[name], (np.ones(3), cls()), {})
    found = vars(cls)[name]
    guards = [g for g in captured.guards if isinstance(g, ObjectGuard)]
    assert any(g.object is found and g.source.root is cls for g in guards)
