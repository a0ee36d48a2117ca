"""Every level gives what NumPy gives: values, types, and scalars as scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.levels import levels
from nbcomp.measure.differences import difference


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(),
        lambda x: (x[0, 1], x.max(axis=1), x.mean() > 0.5),
        lambda x: {"loss": (x * x).mean(), "row": x[0]},
        lambda x: np.array(x.sum()),
    ],
)
def test_scalars_are_scalars(function: Callable[[Any], Any]) -> None:
    x = np.linspace(0, 1, 12).reshape(3, 4)
    for level, run in levels(nbcomp.compile(function, x)):
        got, wanted = run(x), function(x)
        pairs = zip(_leaves(got), _leaves(wanted), strict=True)
        problems = [difference(level, a, b, 1e-12).problem for a, b in pairs]
        assert not any(problems), problems


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, tuple) else [value]
