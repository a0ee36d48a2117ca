"""Floating-point errors that a program asks to be told of: Python runs what it asks for."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.frontend import reporting

ZEROS, ONES = np.zeros(3), np.ones(3)


def raising(x: Any) -> Any:
    try:
        with np.errstate(all="raise"):
            return np.log(x).sum()
    except FloatingPointError:
        return -1.0


def filtered(x: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return 1 / x


def recorded(x: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = 1 / x
    return y, len(caught)


def in_a_loop(x: Any) -> Any:
    total = 0.0
    for k in range(3):
        with np.errstate(divide="raise"):
            try:
                total += (1 / x).sum()
            except FloatingPointError:
                total += 1
            if k == 1:
                continue
            total += np.sqrt(x + k)[0]
        total = total * 2 + x.sum()
    return total


def of_all_that_follows(x: Any) -> Any:
    old = np.seterr(all="raise")
    try:
        return np.log(x)
    except FloatingPointError:
        return x - 1
    finally:
        np.seterr(**old)


def _log(x: Any) -> Any:
    return np.log(x) + 1


def in_a_helper(x: Any) -> Any:
    y = x * 2
    try:
        with np.errstate(invalid="ignore", divide="raise"):
            z = _log(x)
    except FloatingPointError:
        z = x
    return y + z


@np.errstate(all="raise")
def decorated(x: Any) -> Any:
    return np.log(x)


@contextlib.contextmanager
def strict() -> Iterator[None]:
    with np.errstate(all="raise"):
        yield


def in_a_manager(x: Any) -> Any:
    try:
        with strict():
            return np.log(x)
    except FloatingPointError:
        return x - 3


def outcome(function: Callable[..., Any], *args: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return repr(function(*args))
        except Exception as error:
            return repr(error)


PROGRAMS = [raising, filtered, recorded, in_a_loop, of_all_that_follows, in_a_helper]
PROGRAMS += [decorated, in_a_manager]


@pytest.mark.parametrize("compile", [nbcomp.jit, nbcomp.script])
@pytest.mark.parametrize("program", PROGRAMS)
def test_reported_errors_are_pythons(program: Any, compile: Any) -> None:
    compiled = compile(program)
    for _ in range(3):
        for x in (ZEROS, ONES):
            assert outcome(compiled, x) == outcome(program, x)


def test_a_manager_made_elsewhere_may_be_another_in_the_next_call() -> None:
    def program(x: Any, state: Any) -> Any:
        with state:
            try:
                return 1 / x
            except FloatingPointError:
                return x + 1

    compiled = nbcomp.jit(program)
    for kind in ("ignore", "raise", "ignore", "raise"):
        got, wanted = (outcome(f, ZEROS, np.errstate(all=kind)) for f in (compiled, program))
        assert got == wanted


def test_what_is_around_such_a_with_is_compiled() -> None:
    compiled = nbcomp.jit(in_a_helper)
    outcome(compiled, ONES)
    assert len(compiled.breaks) == 1
    assert len(compiled.parts.compiled) == 2


def test_errors_that_are_ignored_break_nothing() -> None:
    def program(x: Any) -> Any:
        with np.errstate(all="ignore"):
            return np.log(x).sum()

    compiled = nbcomp.jit(program)
    assert compiled(ZEROS) == -np.inf
    assert compiled.compiled is not None
    assert not compiled.breaks


def test_nothing_is_compiled_while_numpy_raises() -> None:
    compiled = nbcomp.jit(_log)
    with np.errstate(all="raise"):
        for _ in range(2):
            assert "divide by zero" in outcome(compiled, ZEROS)
        with pytest.warns(nbcomp.jitted.NumpyFallback, match="np.geterr"):
            nbcomp.jit(_log)(ONES)
    assert compiled.compiled is None
    assert compiled(ONES).tolist() == [1.0, 1.0, 1.0]
    assert compiled.compiled is not None


def test_settings_are_found_in_the_code() -> None:
    def quiet() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")

    assert not reporting.settings(quiet.__code__)
    assert set(reporting.settings(filtered.__code__).values()) == {"simplefilter"}
    assert reporting.of_whole(of_all_that_follows.__code__) == "seterr"
    assert not reporting.of_whole(filtered.__code__)
