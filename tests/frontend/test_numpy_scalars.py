"""NumPy scalars that a function finds (globals, closures, attributes) are read at run time.

One program serves all values; what needs the value assumes it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nbcomp

rate: Any = None
module = ModuleType("settings")
holder = SimpleNamespace(rate=None)
table: dict[str, Any] = {}
X = np.linspace(0, 1, 5, dtype=np.float32)


def of_global(x: Any) -> Any:
    return x * rate + 1


def of_attribute(x: Any) -> Any:
    return x * holder.rate + 1


def of_module(x: Any) -> Any:
    return x * module.rate + 1


def of_entry(x: Any) -> Any:
    return x * table["rate"] + 1


def arithmetic(x: Any) -> Any:
    return x * (rate * rate + 2 * rate), rate / 2, -rate, rate


def in_place(x: Any) -> Any:
    y = x.copy()
    y *= rate
    return y


def elements(x: Any) -> Any:
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = x[i] * rate + 1
    return y


def by_type(x: Any) -> Any:
    return x * rate if isinstance(rate, np.floating) else x - rate


def decides(x: Any) -> Any:
    return x * rate if rate > 2 else x


def shapes(x: Any) -> Any:
    n = np.int64(rate)
    return np.zeros((2, n)) + x[0], np.arange(rate), np.linspace(0, rate, 3), np.repeat(x, n)


def put(value: Any) -> None:
    global rate
    rate = holder.rate = table["rate"] = value
    module.__dict__["rate"] = value


@pytest.fixture(autouse=True)
def no_fallback() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def check(compiled: Callable[..., Any], plain: Callable[..., Any], dtype: Any) -> None:
    for value in (1, 3, 0, 5, 2):
        put(dtype(value))
        for got, wanted in zip(_all(compiled(X)), _all(plain(X)), strict=True):
            assert type(got) is type(wanted)
            assert got.dtype == wanted.dtype
            np.testing.assert_array_equal(got, wanted)


def _all(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


FOUND = [of_global, of_attribute, of_module, of_entry, arithmetic, in_place, elements, by_type]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int8, np.float16])
@pytest.mark.parametrize("plain", FOUND, ids=lambda f: f.__name__)
def test_one_program_serves_all_values(plain: Callable[..., Any], dtype: Any) -> None:
    if plain is in_place and dtype is np.float16:
        dtype = np.float32
    for make in (nbcomp.jit, nbcomp.script):
        put(dtype(1))
        if plain is in_place and dtype is np.int64:
            continue  # NumPy refuses it
        compiled: Any = make(plain)
        check(compiled, plain, dtype)
        assert len(compiled.variants) == 1
    put(dtype(1))
    if not (plain is in_place and dtype is np.int64):
        check(nbcomp.compile(plain, X), plain, dtype)


def test_another_type_is_another_program() -> None:
    compiled: Any = nbcomp.jit(of_global)
    for dtype in (np.float32, np.float64, np.int64, float):
        put(dtype(2))
        assert compiled(X).dtype == of_global(X).dtype
    assert len(compiled.variants) == 4


def test_closures() -> None:
    def make() -> tuple[Any, Any]:
        rate: Any = np.float64(1)

        def plain(x: Any) -> Any:
            return x * rate

        def put(value: Any) -> None:
            nonlocal rate
            rate = value

        return plain, put

    plain, put = make()
    compiled: Any = nbcomp.jit(plain)
    for value in range(5):
        put(np.float64(value))
        np.testing.assert_array_equal(compiled(X), plain(X))
    assert len(compiled.variants) == 1


@pytest.mark.parametrize("plain", [decides, shapes], ids=lambda f: f.__name__)
def test_what_needs_the_value_assumes_it(plain: Callable[..., Any]) -> None:
    put(np.int64(1))
    compiled: Any = nbcomp.jit(plain)
    check(compiled, plain, np.int64)
    assert len(compiled.variants) == 5
