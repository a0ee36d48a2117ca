"""Aliasing that depends on the memory layout of a result; arrays that cannot be written to."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nbcomp.errors import Unsupported
from nbcomp.frontend.trace import capture
from tests.frontend.replay import run

Agree = Callable[..., Any]
A = np.linspace(-2, 3, 24).reshape(4, 6)
MAKERS: list[Any] = [
    lambda a: np.take(a, [1, 0], axis=-1),
    lambda a: np.nan_to_num(a),
    lambda a: np.cumsum(a, 0),
    lambda a: np.roll(a, 1),
    lambda a: np.concatenate([a, a]),
    lambda a: np.repeat(a, 2, 0),
    lambda a: a[[1, 0]],
    lambda a: a[:, [1, 0]],
    lambda a: np.sort(a, 0),
    lambda a: np.cross(a.T[:3, :3], a.T[:3, :3], axis=0),
    lambda a: np.reshape(a, (-1, 4), order="F"),
    lambda a: np.reshape(a.copy(), (3, -1), order="F", copy=True),
    lambda a: np.copy(a),
]
LAYOUTS = [A, np.asfortranarray(A), A.T, A[:, ::2], A[::-1]]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("a", LAYOUTS)
def test_new_arrays(make: Any, a: Any) -> None:
    """NumPy's aliasing, or Unsupported."""

    def contiguous(a: Any) -> Any:
        v = make(a)
        c = np.ascontiguousarray(v)
        v[:] = 0
        return c

    def fortran(a: Any) -> Any:
        v = make(a)
        c = np.asfortranarray(v)
        c[:] = 0
        return v

    def reshaped(a: Any) -> Any:
        v = make(a)
        r = v.reshape(-1)
        r[:] = 0
        return v

    def raveled(a: Any) -> Any:
        v = make(a)
        r = v.ravel("F")
        v[:] = 0
        return r

    for function in (contiguous, fortran, reshaped, raveled):
        mine, theirs = (np.copy(a, order="K") if a is not LAYOUTS[3] else a[:] for _ in range(2))
        with contextlib.suppress(Unsupported):
            got = run(capture(function, (mine,), {}), mine)
            np.testing.assert_array_equal(got, function(theirs))


def test_reading_is_compiled(agree: Agree) -> None:
    def f(a: Any) -> Any:
        return np.ascontiguousarray(np.take(a, [1, 0], axis=-1)) + 1

    agree(f, np.asfortranarray(A))


def nan_to_num(a: Any) -> Any:
    v = np.nan_to_num(a)
    r = v.reshape(-1)
    r[:] = 0
    return v, np.nan_to_num(a[0, 0])


def test_nan_to_num_keeps_the_order(agree: Agree) -> None:
    for a in LAYOUTS:
        agree(nan_to_num, a)


def imaginary(x: Any) -> Any:
    np.imag(x)[:] = 7


def windows(x: Any) -> Any:
    np.lib.stride_tricks.sliding_window_view(x, 2, 0)[0] = 1


@pytest.mark.parametrize("function", [imaginary, windows])
def test_read_only(function: Any) -> None:
    with pytest.raises(ValueError, match="read-only"):
        capture(function, (A,), {})


def returned(x: Any) -> Any:
    return np.broadcast_to(x * 2, (2, *x.shape))


def both(x: Any) -> Any:
    return np.broadcast_arrays(x, x[0])[1]


def written(x: Any) -> Any:
    y = np.broadcast_arrays(x, x[0])[1]
    y[0] = 1
    return x


def diagonal(x: Any) -> Any:
    return np.diagonal(x * 2)


@pytest.mark.parametrize("function", [returned, diagonal])
def test_returned_read_only(agree: Agree, function: Any) -> None:
    agree(function, A)
    result = run(capture(function, (A,), {}), A)
    assert result.flags.writeable == function(A).flags.writeable


@pytest.mark.parametrize("function", [np.imag, both, written])
def test_refused(function: Any) -> None:
    with pytest.raises(Unsupported):
        capture(function, (A,), {})


def used(x: Any) -> Any:
    a, b = np.broadcast_arrays(x, x[0])
    w = np.lib.stride_tricks.sliding_window_view(x, 2, 1).sum(-1)
    y = x + 1
    y[0] = w[0, 0]
    return a + b, np.imag(x) + 1, np.broadcast_to(x[0], x.shape) * 2, w, y


def test_used(agree: Agree) -> None:
    agree(used, A)


def zero_d(x: Any) -> Any:
    return x.max().cumsum(0), np.repeat(x.max(), 2, -1), np.pad(x.mean(), 1)


def test_zero_d(agree: Agree) -> None:
    agree(zero_d, A)


@pytest.mark.parametrize("a", LAYOUTS)
def test_new_matrices_are_row_major(a: Any, agree: Agree) -> None:
    """A product's layout is known however the operands lie; a view of it is a result of its own."""
    agree(lambda a: (a @ a.T).reshape(-1), a)
    agree(lambda a: np.dot(a.T[:, ::-1], a[::-1]).reshape(-1, 1), a)


@pytest.mark.parametrize("a", LAYOUTS)
def test_a_doubtful_view_alone(a: Any, agree: Agree) -> None:
    """View or copy of an array that nobody else sees: no matter which."""
    agree(lambda a: np.take(a, [1, 0], axis=-1).reshape(-1), a)
