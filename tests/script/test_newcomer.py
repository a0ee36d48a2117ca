"""What newcomers wrote: which array a variable is, lambdas, defaults, messages, kinds of numbers.

Each program is compared with Python, arguments afterwards included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp

Check = Callable[..., Any]
ONE = np.array([1.0, 2.0, 3.0])
SIGNS = pytest.mark.parametrize("sign", [1.0, -1.0])


# -------------------------------------------------------------- arrays that a branch or loop chose


def swap(x: Any, y: Any) -> None:
    a, b = (x, y) if x.sum() > y.sum() else (y, x)
    a += b


def maybe_new(x: Any) -> Any:
    v = x
    if x[0] > 0:
        v = x + 1
    v[0] = 9
    return x


def one_of_two_views(x: Any) -> Any:
    v = x[1:]
    if x[0] > 0:
        v = x[:-1]
    v[0] = 7.0
    return x


def one_of_two_elements(x: Any) -> Any:
    t = x[:1] if x.sum() > 0 else x[1:2]
    t[:] = 0
    return x


def carried(x: Any) -> Any:
    y = x
    while abs(y.sum()) < 1000:
        y = y * 2
    y[...] = 0
    return x


def never_carried(x: Any) -> Any:
    y = x
    while y.sum() > 1000:
        y = y * 2
    y[...] = 0
    return x


def two_names(x: Any) -> Any:
    if x.sum() > 0:
        u = x * 2
        w = u
    else:
        u = x + 1
        w = u
    u[0] = 9
    return w


def base_written(x: Any) -> Any:
    v = x if x.sum() > 0 else x + 1
    x[0] = 7
    return v * 1.0


def base_written_in_a_loop(x: Any) -> Any:
    v = x if x.sum() > 0 else x + 1
    for i in range(len(x)):
        x[i] += v[0]
    return x


def carried_name_of_a_written_array(x: Any) -> Any:
    y, z = x * 1.0, x
    while abs(y.sum()) < 100:
        y *= 2
        z = y
    return z * 1.0


def or_itself(a: Any) -> Any:
    if a.sum() > 0:
        return a
    return a + 1


def through_a_function(x: Any) -> Any:
    v = or_itself(x)
    v[0] = 3
    return x


ALIASES = (swap, maybe_new, one_of_two_views, one_of_two_elements, carried, never_carried)
ALIASES += (two_names, base_written, base_written_in_a_loop, carried_name_of_a_written_array)
ALIASES += (through_a_function,)


@pytest.mark.filterwarnings("ignore::nbcomp.NumpyFallback")
@SIGNS
@pytest.mark.parametrize("function", ALIASES, ids=lambda f: f.__name__)
def test_writes_to_what_was_chosen(like_python: Check, function: Any, sign: float) -> None:
    args = (sign * ONE, ONE + 1) if function is swap else (sign * ONE,)
    like_python(function, *args, fallback=True)


def new_on_both(x: Any) -> Any:
    y = x * 2
    if x.sum() > 0:
        y = y + 1
    y[0] = 5
    return y


def new_in_every_round(x: Any) -> Any:
    y = x * 1.0
    while abs(y.sum()) < 100:
        y = y * 2
    y[0] = 0
    return y


def written_then_chosen(x: Any, y: Any) -> Any:
    if x.sum() > 0:
        x[0] = 5
        v = x
    else:
        v = y
    return v + 1


@SIGNS
def test_what_stays_compiled(like_python: Check, sign: float) -> None:
    like_python(new_on_both, sign * ONE)
    like_python(new_in_every_round, sign * ONE)
    like_python(written_then_chosen, sign * ONE, ONE)
    like_python(or_itself, sign * ONE)


# --------------------------------------------------------------------------------------- functions

# fmt: off
plus, times = (lambda t: t + 1 if t.sum() > 0 else t), (lambda t: t * 2 if t.sum() > 0 else t)
LAMBDAS = [(lambda t: t + 1), (lambda t: t * 2), (lambda t: (lambda t: t * 3)(t) if t > 0 else t)]
# fmt: on


def with_lambdas(x: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        s += LAMBDAS[1](x[i]) + 10 * LAMBDAS[0](x[i])
    return plus(x), times(x), s


def test_lambdas_on_one_line(like_python: Check) -> None:
    like_python(with_lambdas, ONE)
    like_python(plus, ONE)
    like_python(times, ONE)
    like_python(LAMBDAS[2], np.float64(2.0))


def test_defaults_that_change() -> None:
    def scale(x: Any, k: Any = 2, *, offset: Any = 0) -> Any:
        return x * k + offset

    scripted = nbcomp.script(scale)
    np.testing.assert_array_equal(scripted(ONE), scale(ONE))
    scale.__defaults__ = (5,)
    np.testing.assert_array_equal(scripted(ONE), ONE * 5)
    scale.__kwdefaults__ = {"offset": 1}
    np.testing.assert_array_equal(scripted(ONE), ONE * 5 + 1)


# ------------------------------------------------------------------------------ loops without end


def big(a: Any, n: Any) -> Any:
    for i in range(n):
        a[i % 3] += 1
    return a


def nested(a: Any, n: Any) -> Any:
    for i in range(n):
        for j in range(n):
            a[(i + j) % 3] += 1
    return a


@pytest.mark.parametrize(("function", "n"), [(big, 10**11), (nested, 3)])
def test_long_loops_look_for_interrupts(function: Any, n: int) -> None:
    scripted = nbcomp.script(function)
    compiled = scripted.compile(np.zeros(3), n)
    assert "poll every" in str(compiled.captured)


# ---------------------------------------------------------------------------------------- messages


def formatted(x: Any) -> Any:
    for i in range(len(x)):
        x[i] = 0
        if i == 1:
            raise ValueError(f"bad {i}")
    return x


def asserted(x: Any) -> Any:
    for i in range(len(x)):
        x[i] = 0
        assert i != 1, ("bad", i)
    return x


def two_arguments(x: Any) -> Any:
    for i in range(len(x)):
        x[i] = 0
        if i == 1:
            raise ValueError("bad", 3)
    return x


@pytest.mark.filterwarnings("ignore::nbcomp.NumpyFallback")
@pytest.mark.parametrize("function", [formatted, asserted, two_arguments])
def test_messages_made_at_run_time(like_python: Check, function: Any) -> None:
    like_python(function, ONE, fallback=True)


def only_reads(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += x[i]
        if total > 2:
            raise ValueError(f"more than two at {i}")
    return total


def test_messages_of_what_only_reads(like_python: Check) -> None:
    like_python(only_reads, ONE)


# ----------------------------------------------------------------------------------------- numbers


def sometimes_counted(x: Any) -> Any:
    n, f = 0, 1.0
    for i in range(5):
        if x.sum() > 2:
            n += i
            f *= 1.5
    n = n * 3
    return n, f, x.astype(np.float32) * n * f


@SIGNS
def test_python_numbers_stay(like_python: Check, sign: float) -> None:
    like_python(sometimes_counted, sign * ONE)


def one_of_two(x: Any) -> Any:
    n = 2
    if x.sum() > 0:
        n = 3
    return n / 2, n // 2, n % 2, 7 - n, n * 1.5, -n, n**2, abs(n)


def divided_by(x: Any) -> Any:
    n = 2
    if x.sum() > 0:
        n = 0
    return 3 // n


def added_bools(x: Any) -> Any:
    b = True
    if x.sum() > 0:
        b = False
    return b + b, b + 1


@pytest.mark.filterwarnings("ignore::nbcomp.NumpyFallback")
@SIGNS
def test_arithmetic_of_chosen_numbers(like_python: Check, sign: float) -> None:
    like_python(one_of_two, sign * ONE)
    like_python(divided_by, sign * ONE, fallback=True)
    like_python(added_bools, sign * ONE, fallback=True)


def test_a_float_is_no_index(like_python: Check) -> None:
    like_python(lambda a, i: a[i], ONE, 1.0)
