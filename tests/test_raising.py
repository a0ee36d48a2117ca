"""What NumPy raises by the values of its operands: the same error, caught by the same `except`,
after the same writes, whoever uses the result."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp

SINGULAR, GOOD = np.zeros((3, 3)), np.eye(3) + 1
X, BAD, FINE = np.arange(1.0, 6.0), np.array([0, 9]), np.array([0, 1])
N, STEPS = np.arange(1, 6), np.array([2, 2, 2, -1, 1])

# A call on (x, k), an x and k that it raises for, and some that it does not raise for.
Case = tuple[Callable[[Any, Any], Any], tuple[Any, Any], tuple[Any, Any]]
OPERATIONS: dict[str, Case] = {
    "inv": (lambda x, k: np.linalg.inv(k), (X, SINGULAR), (X, GOOD)),
    "solve": (lambda x, k: np.linalg.solve(k, x[:3]), (X, SINGULAR), (X, GOOD)),
    "cholesky": (lambda x, k: np.linalg.cholesky(k), (X, -GOOD), (X, GOOD)),
    "svd": (lambda x, k: np.linalg.svd(k)[1], (X, GOOD * np.nan), (X, GOOD)),
    "power": (lambda x, k: x[:2] ** k, (N, -FINE), (N, FINE)),
    "power.reduce": (lambda x, k: np.power.reduce(k), (X, FINE - 1), (X, FINE)),
    "power.accumulate": (lambda x, k: np.power.accumulate(k, out=k), (X, STEPS), (X, abs(STEPS))),
    "getitem": (lambda x, k: x[k], (X, BAD), (X, FINE)),
    "shape": (lambda x, k: x[k].shape[0] + x, (X, BAD), (X, FINE)),
    "setitem": (lambda x, k: _with(assign, x, k, 5), (X, BAD), (X, FINE)),
    "put": (lambda x, k: _with(np.put, x, k, 5), (X, BAD), (X, FINE)),
    "add.at": (lambda x, k: _with(np.add.at, x, k, 5), (X, BAD), (X, FINE)),
    "take": (np.take, (X, BAD), (X, FINE)),
    "take_along_axis": (lambda x, k: np.take_along_axis(x, k, 0), (X, BAD), (X, FINE)),
    "put_along_axis": (lambda x, k: _with(np.put_along_axis, x, k, 5, 0), (X, BAD), (X, FINE)),
    "choose": (lambda x, k: np.choose(k, [x[:2], x[2:4]]), (X, BAD), (X, FINE)),
    "unravel_index": (lambda x, k: np.unravel_index(k, (2, 2))[1], (X, BAD), (X, FINE)),
    "ravel_multi_index": (lambda x, k: np.ravel_multi_index((k, k), (3, 3)), (X, BAD), (X, FINE)),
    "bincount": (lambda x, k: np.bincount(k, minlength=5), (X, -FINE), (X, FINE)),
    "digitize": (lambda x, k: np.digitize(x, k), (X, np.array([1, 3, 2])), (X, np.arange(3))),
    "average": (lambda x, k: np.average(x[:2], weights=k), (X, FINE - 0.5), (X, FINE + 0.5)),
    "nanargmax": (lambda x, k: np.nanargmax(k), (X, np.array([np.nan])), (X, np.array([1.0]))),
}


def assign(x: Any, k: Any, value: Any) -> None:
    x[k] = value


def _with(function: Any, x: Any, *args: Any) -> Any:
    y = x.copy()
    function(y, *args)
    return y


def used(f: Any, x: Any, k: Any) -> Any:
    return f(x, k) * 2


def unused(f: Any, x: Any, k: Any) -> Any:
    f(x, k)
    return x * 2


def overwritten(f: Any, x: Any, k: Any) -> Any:
    y = f(x, k)
    y = x + 1
    y.fill(3)
    return y


def tried(f: Any, x: Any, k: Any) -> Any:
    try:
        return f(x, k)
    except (ValueError, IndexError, ZeroDivisionError):  # LinAlgError is a ValueError
        return x - 7


def known_to_be_fine(f: Any, x: Any, k: Any) -> Any:
    try:
        f(x, k)
        return True
    except (ValueError, IndexError, ZeroDivisionError):
        return False


def suppressed(f: Any, x: Any, k: Any) -> Any:
    y = x
    with contextlib.suppress(ValueError, IndexError, ZeroDivisionError):
        y = f(x, k)
    return y.sum()


def in_the_end(f: Any, x: Any, k: Any) -> Any:
    y = x * 2
    try:
        y = f(x, k)
    finally:
        x += 1
    return y


def after_a_write(f: Any, x: Any, k: Any) -> Any:
    x += 1
    y = f(x, k)
    x *= 2
    return y


def in_a_branch(f: Any, x: Any, k: Any) -> Any:
    x += 1
    if x.sum() > 3:
        f(x, k)
        x *= 2
    return x


def outcome(function: Any, values: tuple[Any, Any]) -> tuple[Any, ...]:
    """What a call gives or raises, and what it leaves in its arguments."""
    given = [np.array(v) for v in values]
    try:
        result = function(*given)
    except Exception as error:
        result = type(error), str(error)
    return result, *given


@pytest.mark.parametrize(
    "way",
    [
        used,
        unused,
        overwritten,
        tried,
        known_to_be_fine,
        suppressed,
        in_the_end,
        after_a_write,
        in_a_branch,
    ],
)
@pytest.mark.parametrize("made", ["jit", "script", "compile"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_errors_of_values_are_pythons(name: str, made: str, way: Any) -> None:
    f, bad, fine = OPERATIONS[name]

    def program(x: Any, k: Any) -> Any:
        return way(f, x, k)

    if made == "compile":
        if way is in_a_branch:
            pytest.skip("decides by values")
        compiled: Any = nbcomp.compile(program, *map(np.array, fine))
    else:
        compiled = getattr(nbcomp, made)(program)
    for values in (fine, bad, fine, bad):
        wanted, got = outcome(program, values), outcome(compiled, values)
        for one, other in zip(wanted, got, strict=True):
            assert type(one) is type(other)
            np.testing.assert_equal(other, one)


def padded(x: Any) -> Any:
    return np.pad(x, 1, constant_values=-1), np.pad(x, 1, constant_values=(300, 1.5))


def any_int(x: Any) -> Any:
    x[0], x[1:2] = 2**63, -(2**70)
    return x


def empty_mask(x: Any) -> Any:
    x[x[2:1] > 1] = 2
    return x


@pytest.mark.parametrize(
    ("program", "dtype"), [(padded, "u1"), (padded, "?"), (any_int, "?"), (empty_mask, "f8")]
)
def test_what_numpy_takes_is_compiled(program: Any, dtype: str) -> None:
    x = np.arange(3).astype(dtype)
    got = nbcomp.compile(program, x.copy())(x.copy())
    np.testing.assert_equal(got, program(x))
