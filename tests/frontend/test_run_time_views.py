"""Views at places known only at run time: read, or refused where writing would tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nbcomp.errors import Unsupported
from nbcomp.frontend.trace import capture

Agree = Callable[..., Any]
X = np.linspace(-2, 3, 12).reshape(3, 4)


def largest(x: Any) -> Any:
    return x[:, 0].argmax()


def writes_view(x: Any) -> Any:
    r = x[largest(x)]
    r += 100
    return x


def writes_part(x: Any) -> Any:
    r = x[largest(x), 1:3]
    r[:] = 0
    return x


def writes_base(x: Any) -> Any:
    r = x[largest(x), :]
    x += 100
    return r * 2


def writes_element(x: Any) -> Any:
    r = x[0, largest(x), ...]
    r[...] = 7
    return x


def writes_deeper(x: Any) -> Any:
    r = x[largest(x)][None][:, 1:]
    x[0] = 1
    return r.sum()


def returns_view(x: Any) -> Any:
    return x[largest(x)]


def returns_both(x: Any) -> Any:
    y = x + 1
    return y, y[largest(x)].reshape(2, 2)


@pytest.mark.parametrize(
    "function",
    [
        *(writes_view, writes_part, writes_base, writes_element, writes_deeper),
        *(returns_view, returns_both),
    ],
)
def test_refused(function: Any) -> None:
    with pytest.raises(Unsupported):
        capture(function, (X.copy(),), {})


def reads(x: Any) -> Any:
    r = x[largest(x)]
    return r * 2, x[largest(x), 1:3].sum(), x[::-1, largest(x)] + 1


def of_a_new_array(x: Any) -> Any:
    y = x + 1
    return y[largest(x)], x[largest(x), 0]


def copies(x: Any) -> Any:
    r = x[largest(x)].copy()
    s = x[np.array(1), 1:]
    r += 100
    x[0] = 5
    return x, r, s + 1


def writes_before(x: Any) -> Any:
    x += 1
    r = x[largest(x)] * 2
    x[largest(x)] = r
    x[0] -= x[largest(x)]
    return x


def copied_by_an_array(x: Any) -> Any:
    r = x[np.where(x[0, 0] < 0, 1, 0)]  # a 0-d array as index makes a copy
    r += 100
    return x, r


@pytest.mark.parametrize(
    "function", [reads, of_a_new_array, copies, writes_before, copied_by_an_array]
)
def test_read(agree: Agree, function: Any) -> None:
    agree(function, X)
    agree(function, np.asfortranarray(X))


def by_number(x: Any, i: Any) -> Any:
    r = x[i]
    r[:] = 0
    x[i, :] += 1
    s = x[i, 1:3]
    x += 100
    return x, r, s


def test_numpy_number_as_index(agree: Agree) -> None:
    agree(by_number, X, np.int64(1))
