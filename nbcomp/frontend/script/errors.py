"""Exceptions of Python's where an operation on numbers has no value: their class and words, which
differ between versions of Python, are those of the one that runs.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

Words = tuple[str, str]  # an exception's class, and what it says


def words(function: Callable[..., Any], *args: Any) -> Words:
    """What Python raises for these arguments, as the name of a class and a message."""
    try:
        function(*args)
    except Exception as error:
        return type(error).__name__, str(error).replace("{", "{{").replace("}", "}}")
    raise AssertionError(f"{function} of {args} has a value")


TOO_LARGE = words(math.exp, 1e4)
TOO_LARGE_POWER = words(operator.pow, 1e300, 2.0)
ZERO_TO_NEGATIVE = words(operator.pow, 0.0, -1.0)
NO_NUMBER = words(int, math.nan)
INFINITE = words(int, math.inf)
TOO_LARGE_INT = words(np.int64, 1e300)
# Seen only where loops change the caller's arrays; elsewhere Python runs the call, exactly.
BEYOND = (
    "OverflowError",
    "a Python int leaves 64 bits, as wide as ints are in compiled loops that change the caller's"
    " arrays",
)
_DIVISIONS = {
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "divmod": divmod,
}
FLOAT_BY_ZERO = {fn: words(python, 1.0, 0.0) for fn, python in _DIVISIONS.items()}
INT_BY_ZERO = {fn: words(python, 1, 0) for fn, python in _DIVISIONS.items()}
