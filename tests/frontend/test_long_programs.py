"""Loops that are written out: long chains compile, and what is too long says so."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.errors import Unsupported
from nbcomp.frontend.trace import capture

X = np.linspace(0, 1, 8)


def named(x: Any) -> Any:
    for _ in range(400):
        x = np.abs(x * 0.5) + x * 0.5
    return x


def nested(x: Any) -> Any:
    return functools.reduce(lambda y, k: np.abs(y * 0.99 - k), range(400), x)


def reversed_often(x: Any) -> Any:
    return functools.reduce(lambda y, k: y[::-1] * 0.5 + k, range(400), x)


@pytest.mark.parametrize("function", [named, nested, reversed_often])
def test_long_chains_do_not_exhaust_the_stack(function: Any) -> None:
    compiled = nbcomp.compile(function, X)
    np.testing.assert_allclose(compiled(X), function(X), rtol=1e-13)


def rounds(x: Any, n: Any) -> Any:
    for k in range(n):
        x = x + k
    return x


def step(x: Any) -> Any:
    return x * 0.5


def through_a_helper(x: Any, n: Any) -> Any:
    k = 0
    while k < n:
        x = step(x)
        k += 1
    return x


def listed(x: Any, n: Any) -> Any:
    return np.stack([x[0] * k for k in range(n)])


def assigned(x: Any, n: Any) -> Any:
    out = np.zeros(n)
    for i in range(n):
        out[i] = x[0] * i
    return out


@pytest.mark.parametrize(
    ("function", "head", "line"),
    [
        (rounds, "for k in range(n)", 2),
        (through_a_helper, "while k < n", 1),
        (listed, "[x[0] * k for k in range(n)", 1),
        (assigned, "for i in range(n)", 3),
    ],
)
def test_a_long_loop_is_remarked(function: Any, head: str, line: int) -> None:
    (remark,) = (r for r in capture(function, (X, 60), {}).remarks if r.topic == "loop")
    assert remark.kind == "missed"
    assert remark.location is not None
    assert remark.location.source() == head
    inside = step if function is through_a_helper else function
    at = inside.__code__.co_firstlineno + line
    assert remark.reason == f"the loop is written out: 60 copies of line {at}"
    assert "whole arrays" in remark.hint
    assert "nbcomp.script" in remark.hint
    assert not capture(function, (X, 50), {}).remarks


def test_calls_that_are_in_no_loop_are_not_remarked() -> None:
    for _ in range(60):
        captured = capture(lambda x: x + 1, (X,), {})
    assert not captured.remarks
    assert not capture(nested, (X,), {}).remarks  # the loop is functools.reduce's


def test_many_assignments_are_not_written_out() -> None:
    with pytest.raises(Unsupported, match="more than 500 assignments") as error:
        capture(assigned, (X, 501), {})
    assert error.value.location is not None
    assert error.value.location.source() == "out[i]"
    jitted = nbcomp.jit(assigned)  # which takes the loop as it is
    np.testing.assert_array_equal(jitted(X, 501), assigned(X, 501))
    assert "loops" in [n.op.name for n in jitted.variants[0].captured.nodes]


def test_what_the_hint_on_long_loops_says_works() -> None:
    scripted = nbcomp.script(assigned)
    assert np.array_equal(scripted(X, 60), assigned(X, 60))
    assert scripted.compiled is not None
    assert not [r for r in scripted.compiled.explain() if r.topic == "loop"]
