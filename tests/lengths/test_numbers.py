"""Python ints that differ from call to call are left open: one code for many, each answer Python's
and NumPy's, in value and type."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp

# Once: in order, so that the second value opens the number; then edges, other types and sizes.
VALUES: list[Any] = [
    *(3, 4, 5, 7, 9, 11, 2, 1, 0, -1, -2, 6, 12, 13, -12, -13, 100, 2**33),
    *(2**41, -(2**41), 2**63, -(2**63), 2.0, np.int64(3), 5, 0, -1),
]


def position(x: Any, i: Any) -> Any:
    x[i] = 7
    return x.sum()


def row(x: Any, i: Any) -> Any:
    y = x.reshape(4, -1)
    y[i] = y[i] * 2
    return y


def places(x: Any, i: Any) -> Any:
    x[i : i + 2] += 1
    return x[:i], x[i:], x[-i:], x[i // 2 : i]


def branches(x: Any, i: Any) -> Any:
    if i > 3:
        return x * i
    if i < 0:
        return x - i
    return x * 2 if i % 2 == 0 else x + 1


def rounds(x: Any, i: Any) -> Any:
    for k in range(3):
        x = x * i + k
    return x


def numbers(x: Any, i: Any) -> Any:
    return i, i + 1, i / 3, -i, i // 2, i % 3, i * i, float(i), abs(i), max(i, 2), x


def comparisons(x: Any, i: Any) -> Any:
    return x > i, x == i, i < 5, bool(i), not i, i == 2


def arithmetic(x: Any, i: Any) -> Any:
    return x + i, x * i, x - i, x / (i or 1), x // (i or 1), x**2 * i


def schedules(x: Any, i: Any) -> Any:
    rate = 0.1 if i < 50 else 0.01
    return x * (0.1 / (1 + abs(i))), x * (i / 7), x * (1.5 * i), x + (i - 0.5), x * rate


def narrow(x: Any, i: Any) -> Any:
    small = x.astype("i1")
    return small * (i % 3), small + i


def narrow_place(x: Any, i: Any) -> Any:
    small = x.astype("u1")
    small[0] = i
    return small


def scalars(x: Any, i: Any) -> Any:
    return np.int64(i) + x, np.float32(i), np.float64(i) * x, x.astype("f4") * np.float32(i)


def choices(x: Any, i: Any) -> Any:
    return np.where(x > i, i, x), np.clip(x, -abs(i), abs(i)), np.maximum(x, i), np.full(3, i)


def tables(x: Any, i: Any) -> Any:
    return {1: 2, 5: 3}.get(i, 4) * x, [x, x * 2, x * 3][i % 3]


def bits(x: Any, i: Any) -> Any:
    return x * (i & 3), x * (i | 1)


def texts(x: Any, i: Any) -> Any:
    return x * len(str(i)), f"{i}"


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return type(error)


def same(got: Any, wanted: Any) -> bool:
    if type(got) is not type(wanted):
        return False
    if isinstance(wanted, tuple):
        return len(got) == len(wanted) and all(map(same, got, wanted))
    if isinstance(wanted, np.ndarray | np.generic):
        kind = got.dtype == wanted.dtype and got.shape == wanted.shape
        return bool(kind and np.allclose(got, wanted, rtol=1e-6, atol=0, equal_nan=True))
    return bool(got == wanted)


@pytest.mark.parametrize(
    "function",
    [
        *(position, row, places, branches, rounds, numbers, comparisons, arithmetic, schedules),
        *(narrow, narrow_place, scalars, choices, tables, bits, texts),
    ],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("lengths", [(12,), (12, 24)], ids=["", "lengths"])
def test_every_value_is_right(function: Callable[..., Any], lengths: tuple[int, ...]) -> None:
    compiled = nbcomp.jit(function)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for k, i in enumerate(VALUES):
            theirs = np.arange(1.0, lengths[k % len(lengths)] + 1)
            ours = theirs.copy()
            wanted = outcome(lambda i=i, x=theirs: function(x, i))
            got = outcome(lambda i=i, x=ours: compiled(x, i))
            assert same(got, wanted), (i, got, wanted)
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("function", "most"),
    [
        (lambda x, i: x * (0.1 / (1 + i)), 3),
        (lambda x, i: x + i / 7, 3),
        (lambda x, i: x + float(i), 3),
        (lambda x, i: x * np.float64(i), 3),
        (lambda x, i: x[:i].sum(), 6),
        (lambda x, i: x[i] * 2, 4),
        (lambda x, i: np.clip(x, -i, i), 4),
        (lambda x, i: x * 2 if i % 10 == 0 else x, 5),
        (lambda x, i: x * (0.1 if i < 50 else 0.01), 4),
    ],
)
def test_few_codes_for_many_values(function: Callable[..., Any], most: int) -> None:
    f = nbcomp.jit(function)
    x = np.arange(200.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(150):
            np.testing.assert_allclose(f(x, i), function(x, i))
    assert len(f.variants) <= most


def test_an_index_in_a_loop_compiles_a_few_times() -> None:
    def step(cache: Any, x: Any, pos: int) -> Any:
        cache[pos] = x
        return cache.sum(0)

    f = nbcomp.jit(step)
    ours, theirs, x = np.zeros((100, 4)), np.zeros((100, 4)), np.ones(4)
    for pos in range(100):
        np.testing.assert_array_equal(f(ours, x * pos, pos), step(theirs, x * pos, pos))
    np.testing.assert_array_equal(ours, theirs)
    assert len(f.variants) <= 4


def test_the_account_names_the_number() -> None:
    f = nbcomp.jit(lambda x, i: x[i] * 2)
    for i in range(4):
        f(np.arange(20.0), i)
    assert "i is open: one code for" in str(f.explain())


def test_a_number_that_is_needed_is_left_alone_after_a_few() -> None:
    f = nbcomp.jit(lambda x, i: x * len("ab" * i))
    x = np.ones(3)
    for i in range(8):
        np.testing.assert_array_equal(f(x, i), x * 2 * i)
    assert not f.lengths


def known_element(n: Any) -> Any:
    b = np.zeros(2 * n, bool)
    b[n - 1] = True
    if b[n + 1]:
        return 7
    return 5 if b[n - 1] else 6


@pytest.mark.parametrize("way", [nbcomp.jit, nbcomp.script])
def test_elements_that_are_known_while_compiling(way: Any) -> None:
    """At places and in arrays whose lengths are open from the second call on."""
    compiled = way(known_element)
    assert [compiled(n) for n in (4, 6, 8, 3)] == [known_element(n) for n in (4, 6, 8, 3)]
