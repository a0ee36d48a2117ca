"""NumPy's own errors of arrays that are taken for one number say what to write instead."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import nbcomp

X, Y = np.arange(3.0) + 1, np.arange(3.0) + 2


def by_or(x: Any, y: Any) -> Any:
    x = x or 1
    return x * y


def smaller(x: Any, y: Any) -> Any:
    return min(x, y)


def decided(x: Any, y: Any) -> Any:
    if x > y:
        return x
    return y


def as_int(x: Any, y: Any) -> Any:
    return int(x) + y


def between(x: Any, y: Any) -> Any:
    return 0 < x < y


@pytest.mark.parametrize("compiler", [nbcomp.jit, nbcomp.script, nbcomp.trace])
@pytest.mark.parametrize(
    ("function", "note"),
    [
        (by_or, "    x = x or 1\n.*`or` .* `x` is true .x: f64.3..\nhint: np.where.x, x, 1."),
        (smaller, r"`min\(x, y\)`.*\nhint: np.minimum\(x, y\)"),
        (decided, r"`x > y` .* \(x: f64\[3\], y: f64\[3\]\)\nhint: return np.where"),
        (as_int, r"`int\(x\)`.*\nhint: x.astype"),
        (between, r"chain `0 < x < y`.*\nhint: \(0 < x\) & \(x < y\)"),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_the_form_to_write_is_noted(compiler: Any, function: Callable[..., Any], note: str) -> None:
    call = partial(compiler, function) if compiler is nbcomp.trace else compiler(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((ValueError, TypeError)) as caught:
            call(X, Y)
    notes = "\n".join(getattr(caught.value, "__notes__", [str(caught.value)]))
    assert re.search(note, notes, re.DOTALL), notes
