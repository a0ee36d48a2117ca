"""dtypes at the edges of what NumPy calls one: other names, casting rules it crashes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbcomp


def test_long_long_is_int64_whoever_asks_first() -> None:
    def total(x: Any) -> Any:
        return x.sum() + x[0]

    def shifted(x: Any) -> Any:
        return np.left_shift(x, 2) % 5

    for function in (total, shifted):
        for kind in ("q", "l", "Q", "L"):
            x = np.arange(5).astype(kind)
            got: Any = nbcomp.jit(function)(x)
            assert got.dtype.char == np.dtype(x.dtype.str).char
            assert np.array_equal(got, function(x))


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
@pytest.mark.parametrize("number", [1, 1.5])
def test_python_numbers_under_every_casting_rule(casting: Any, number: Any) -> None:
    """`resolve_dtypes` of NumPy 2.4 ends the process where a number meets such a rule."""

    def added(x: Any) -> Any:
        return np.add(number, x, casting=casting)

    x = np.arange(3, dtype=np.uint16)
    try:
        expected = added(x)
    except TypeError as error:
        with pytest.raises(TypeError, match=str(error).split("(")[0]):
            nbcomp.compile(added, x)
    else:
        assert np.array_equal(nbcomp.compile(added, x)(x), expected)
