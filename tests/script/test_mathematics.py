"""Functions of `math` in loops: what Python gives or raises, to the word, for all kinds of numbers.

Values may differ in the last bits, as the algorithms do.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.frontend.script.mathematics import MATH, ROUNDING, TESTS
from tests.script.conftest import outcome

INF, NAN = math.inf, math.nan
VALUES = [-INF, INF, NAN, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 710.0, -5e-324, 1e19, -1e19, 1e308]
OF_TWO = (math.atan2, math.copysign, math.fmod, math.pow, math.hypot)
ONE = [f for f in (*MATH, *ROUNDING, *TESTS) if f not in OF_TWO]
Loop = Callable[..., Any]


def in_place(function: Loop) -> Loop:
    def loop(x, *rest):
        for i in range(len(x)):
            x[i] = function(x[i], *rest)
        return x

    return loop


def total(function: Loop) -> Loop:
    def loop(x, *rest):
        s = 0.0
        for i in range(len(x)):
            s += function(x[i], *rest)
        return s

    return loop


def new_array(function: Loop) -> Loop:
    def loop(x, *rest):
        out = np.empty_like(x)
        for i in range(len(x)):
            out[i] = function(x[i], *rest)
        return out

    return loop


def rounds(function: Loop) -> Loop:
    def loop(x, *rest):
        i, s = 0, 0.0
        while i < len(x):
            s = max(s, function(x[i], *rest))
            i += 1
        return s

    return loop


FORMS = [in_place, total, new_array, rounds]


def same(got: Any, want: Any, where: object) -> None:
    """Equal but for the last bits; errors to the word."""
    if isinstance(want, tuple) or isinstance(got, tuple):
        assert type(got) is type(want), where
        assert got == want, where
        return
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    np.testing.assert_allclose(got, want, rtol=1e-14, atol=0, err_msg=str(where))
    numbers = ~np.isnan(want)
    signs = (np.signbit(v)[numbers] for v in (np.asarray(got), np.asarray(want)))
    np.testing.assert_array_equal(*signs, err_msg=str(where))


def agrees(function: Loop, form: Loop, compile: Loop, arguments: Any) -> None:
    """Compare a loop with Python's for these arguments, each after an element that is harmless."""
    python = form(function)
    compiled = compile(form(function))
    for first, *rest in arguments:
        x = np.array([1.0, first])
        with warnings.catch_warnings():
            warnings.simplefilter("error", nbcomp.NumpyFallback)
            (got, (after, *_)), (want, (left, *_)) = (
                outcome(f, (x, *rest)) for f in (compiled, python)
            )
        where = getattr(function, "__name__", ""), form.__name__, first, rest
        same(got, want, where)
        same(after, left, where)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("function", ONE)
def test_one_argument(function: Loop, form: Loop) -> None:
    agrees(function, form, nbcomp.script, [(v,) for v in VALUES])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("function", [*OF_TWO, math.log])
def test_two_arguments(function: Loop, form: Loop) -> None:
    pairs = list(itertools.product(VALUES, VALUES))
    agrees(function, form, nbcomp.script, pairs)


@pytest.mark.parametrize("function", [math.log, math.sin, math.asin, math.exp, math.floor])
def test_jit(function: Loop) -> None:
    agrees(function, in_place, nbcomp.jit, [(v,) for v in VALUES])


def power(x, y):
    return float(x) ** y


def root(x):
    return float(x) ** -1.5


def root_of(x):
    return float(x) ** 0.5


def square(x):
    return float(x) ** 2


def cube(x):
    return float(x) ** -3


def to_base(x):
    return 2.0 ** float(x)


def complex_size(x):
    return abs(float(x) ** 0.5)


def divided(x, y):
    return float(x) / y


def floored(x, y):
    return float(x) // y


def rest_of(x, y):
    return float(x) % y


def both(x, y):
    quotient, rest = divmod(float(x), y)
    return quotient + rest


def size_of_three(x):
    return math.hypot(x, 1.0, 2.0)


@pytest.mark.parametrize("form", [in_place, new_array])
@pytest.mark.parametrize("function", [power, divided, floored, rest_of, both])
def test_operators(function: Loop, form: Loop) -> None:
    agrees(function, form, nbcomp.script, itertools.product(VALUES, VALUES))


@pytest.mark.parametrize("form", [in_place, new_array])
@pytest.mark.parametrize(
    "function",
    [root, root_of, square, cube, to_base, complex_size, size_of_three, int, round, float, abs],
)
def test_operators_of_one(function: Loop, form: Loop) -> None:
    agrees(function, form, nbcomp.script, [(v,) for v in VALUES])


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("value", [NAN, INF, -INF, 1e19, -1e19, 1e300, 7.9, -0.5])
def test_floats_into_ints(like_python: Loop, dtype: Any, value: float) -> None:
    def fill(a, x):
        for i in range(len(a)):
            a[i] = float(x[i])
        return a

    like_python(fill, np.zeros(2, dtype), np.array([1.0, value]))


def test_a_rounded_number_that_is_used_twice(like_python: Loop) -> None:
    def both_uses(a, b):
        for i in range(len(a)):
            pair = (int(a[i]), 1)
            b[i] = pair[0] % 7
            a[i] = pair[0]
        return a

    like_python(both_uses, np.array([1.5, 9.9e17]), np.zeros(2, np.int64))


def test_too_many_arguments(like_python: Loop) -> None:
    def root(x):
        s = 0.0
        for i in range(len(x)):
            s += math.sqrt(x[i], 2.0)  # type: ignore[call-arg]
        return s

    like_python(root, np.ones(2), fallback=True)


def test_a_call_that_fails_has_its_arguments_again(like_python: Loop) -> None:
    """Those that `*` gathers, and those by keyword only, of which the machine code sees values."""

    def logarithms(x, *bases, factor=2.0):
        out = np.empty_like(x)
        for i in range(len(x)):
            out[i] = factor * math.log(x[i], *bases)
        return out

    scripted = like_python(logarithms, np.array([1.0, 4.0]), 2.0)
    for base in ((2.0,), ()):
        scripted(np.array([1.0, 4.0]), *base)
        with pytest.raises(ValueError, match="math domain error"):
            scripted(np.array([1.0, -4.0]), *base, factor=3.0)
