"""Loops that are written out: long chains compile, and what is too long says so."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import nbcomp

X = np.linspace(0, 1, 8)


def named(x: Any) -> Any:
    for _ in range(400):
        x = np.abs(x * 0.5) + x * 0.5
    return x


def nested(x: Any) -> Any:
    return functools.reduce(lambda y, k: np.abs(y * 0.99 - k), range(400), x)


def reversed_often(x: Any) -> Any:
    return functools.reduce(lambda y, k: y[::-1] * 0.5 + k, range(400), x)


@pytest.mark.parametrize("function", [named, nested, reversed_often])
def test_long_chains_do_not_exhaust_the_stack(function: Any) -> None:
    compiled = nbcomp.compile(function, X)
    np.testing.assert_allclose(compiled(X), function(X), rtol=1e-13)
