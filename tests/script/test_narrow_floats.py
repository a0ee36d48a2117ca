"""A sum that starts from a Python float and takes the dtype of what is added to it."""

from __future__ import annotations

import numpy as np
import pytest

import nbcomp


def total(x):
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s += x[i, j]
    return s


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_a_sum_over_two_loops(dtype):
    x = np.arange(12, dtype=dtype).reshape(3, 4)
    compiled = nbcomp.script(total)
    result = compiled(x)
    assert result == total(x)
    assert result.dtype == dtype
    assert not compiled.fallbacks


@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (2, 0)])
def test_a_start_that_the_dtype_does_not_hold(like_python, shape):
    def far(x):
        s = 0.1
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                s += x[i, j]
        return s

    like_python(far, np.ones(shape, np.float32))
