"""Programs in many styles: compiled in whatever parts, they do what Python does, in its order."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest

import nbcomp
from tests.bytecode import styles
from tests.bytecode.test_random_programs import differs

CALLS = [
    np.linspace(-1, 2, 12).reshape(3, 4),
    np.linspace(-1, 2, 12).reshape(3, 4),
    np.linspace(0, 3, 20).reshape(5, 4),
    np.arange(12, dtype=np.float32).reshape(3, 4),
]


def reset() -> None:
    """What programs change, as it is at first."""
    styles.COUNT, styles.Counter.calls = 0, 0
    styles.SCALED.factor = 3.0
    styles.CFG["eps"], styles.Base.bias = 1e-5, 1.0
    vars(styles.LAZY).pop("table", None)


def outcomes(run: Any) -> list[Any]:
    """What calls give, what they did to their arguments, and what they recorded; between two of
    them the world changes."""
    reset()
    found = []
    for k, x in enumerate(CALLS):
        log: list[Any] = []
        given = copy.deepcopy(x)
        try:
            result = run(given, log)
        except Exception as error:
            result = (type(error).__name__, str(error))
        found.append((result, given, log, styles.COUNT, styles.Counter.calls))
        if k == 1:
            styles.CFG["eps"], styles.Base.bias, styles.SCALED.factor = 1e-3, 2.0, 5.0
    return found


@pytest.mark.parametrize("by", [nbcomp.jit, nbcomp.script])
@pytest.mark.parametrize("program", styles.STYLES, ids=[f.__name__ for f in styles.STYLES])
def test_like_python(program: Any, by: Any) -> None:
    want = outcomes(program)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nbcomp.NumpyFallback)
        got = outcomes(by(program))
    for g, w in zip(got, want, strict=True):
        assert not differs(g, w), (g, w)
