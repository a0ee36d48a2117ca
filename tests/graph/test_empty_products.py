"""Products without elements, or of sums without terms, whichever way products are computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nbcomp.options import EVERYTHING, Options
from nbcomp.pipeline import compile_for


@pytest.mark.parametrize("shape", [(0, 5), (2, 0, 5), (5,), (0,)])
def test_products_of_nothing(shape: Any) -> None:
    x = np.zeros(shape, np.float32)
    inner = np.zeros((shape[-1], 3), np.float32)
    for right in (inner, np.asfortranarray(inner), inner[:, 0], inner[:, :0]):
        for options in (EVERYTHING, Options(without={"blas"}), Options(without={"generate"})):
            made = compile_for("llvm", options)(lambda a, b: np.maximum(a @ b + 1, 0), x, right)
            got, want = made(x, right), np.maximum(x @ right + 1, 0)
            assert (type(got), got.dtype) == (type(want), want.dtype)
            np.testing.assert_array_equal(got, want)
