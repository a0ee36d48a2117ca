"""Random programs with graph breaks against Python itself: results, effects, writes, errors."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import nbcomp
from tests.bytecode.random_programs import arguments, program, source

SEEN: list[Any] = []


def note(*values: Any) -> None:
    """An effect: the values as they are now."""
    SEEN.append([np.array(v) if isinstance(v, np.ndarray) else v for v in values])


@contextlib.contextmanager
def noted() -> Iterator[None]:
    """Notes when it is entered and left."""
    note("enter")
    try:
        yield
    finally:
        note("leave")


def outcome(function: Any, args: tuple[Any, ...]) -> list[Any]:
    """What a call does: its result or error, its effects, its arguments afterwards."""
    SEEN.clear()
    given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result = function(*given)
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
    return [result, list(SEEN), given]


def differs(got: Any, wanted: Any) -> str:
    """Where two outcomes differ; "" if they do not, up to rounding."""
    if type(got) is not type(wanted):
        return f"{type(got)} is not {type(wanted)}: {got!r}, {wanted!r}"
    if isinstance(wanted, list | tuple):
        if len(got) != len(wanted):
            return f"{len(got)} entries, not {len(wanted)}: {got!r}, {wanted!r}"
        return next(filter(None, map(differs, got, wanted)), "")
    if isinstance(wanted, dict):
        return differs(list(got.items()), list(wanted.items()))
    if isinstance(wanted, np.ndarray | np.generic | float):
        a, b = np.asarray(got), np.asarray(wanted)
        tolerance = 1e-9 if isinstance(wanted, np.ndarray) and a.dtype == np.float64 else 1e-4
        alike = (a.dtype, a.shape) == (b.dtype, b.shape)
        near = alike and np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
        return "" if near else f"{got!r} is not {wanted!r}"
    if isinstance(wanted, str) and wanted.replace(".", "").lstrip("-").isdigit():
        return "" if abs(float(got) - float(wanted)) < 2e-3 else f"{got!r} is not {wanted!r}"
    return "" if got == wanted else f"{got!r} is not {wanted!r}"


def check(seed: int) -> None:
    """A program does the same compiled as in Python, in each of several calls."""
    function = program(seed, {"note": note, "noted": noted})
    jitted = nbcomp.jit(function)
    for args in (*arguments(seed), *arguments(seed + 1)):
        got, wanted = outcome(jitted, args), outcome(function, args)
        wrong = differs(got, wanted)
        assert not wrong, f"seed {seed}: {wrong}\n{source(seed)}"


FIRST = int(os.environ.get("NBCOMP_SEED", "0"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + 12))
def test_random_programs(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_more_random_programs(seed: int) -> None:
    check(seed)
