"""Python numbers that NumPy makes arrays first: their dtypes do not give way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Agree = Callable[..., Any]


def products(x: Any, n: Any) -> Any:
    return np.dot(x, n), np.inner(n, x), np.outer(x, n), np.kron(x, n), x.dot(n), np.dot(n, x)


def more_products(x: Any, n: Any) -> Any:
    return np.tensordot(x, n, 0), np.multiply.outer(x, n), np.convolve(x, n)


@pytest.mark.parametrize("function", [products, more_products])
@pytest.mark.parametrize("number", [2, 2.5, -1, True, 300])
def test_products(agree: Agree, function: Any, number: Any) -> None:
    for dtype in (np.float16, np.float32, np.int8, np.uint8):
        x = np.arange(1, 4).astype(dtype)
        agree(function, x, number)


def constants(x: Any) -> Any:
    return np.dot(x, 2), np.inner(-1, x), np.outer(x, 2.5), np.kron(x, 3), np.vdot(x[:1], [2])


def test_products_with_constants(agree: Agree) -> None:
    for dtype in (np.float16, np.float32, np.int8, np.uint8):
        agree(constants, np.arange(1, 4).astype(dtype))


def joined(x: Any) -> Any:
    return np.r_[0, x], np.r_[x, 0.5], np.r_[[0], x], np.r_[0:3, x], np.r_[x, np.float64(1), 2]


def test_joined(agree: Agree) -> None:
    for dtype in (np.float16, np.float32, np.int8, np.uint8, np.float64):
        agree(joined, np.arange(1, 4).astype(dtype))
    agree(lambda x, n: np.r_[n, x], np.ones(3, np.float32), 2)
