"""Loops over elements against Python itself: results, arguments afterwards, and what is raised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.levels import levels
from tests.script import programs as p

RNG = np.random.default_rng(3)
X = RNG.standard_normal(50)
X[0] = 0.5
CALLS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (p.mandel, (np.zeros((20, 30), np.int64), 30, 20, 50)),
    (p.thomas, tuple(RNG.random(20) + k for k in (0, 3, 0, 1))),
    (p.floyd, (RNG.random((12, 12)),)),
    (p.smith_waterman, (RNG.integers(0, 4, 20), RNG.integers(0, 4, 25), 3, -3, -2)),
    (p.hist, (RNG.integers(0, 10, 100), 10)),
    (p.hist, (RNG.integers(0, 12, 100), 10)),
    (p.prefix, (X,)),
    (
        p.csr,
        (RNG.random(20), RNG.integers(0, 10, 20), np.array([0, 3, 3, 10, 20]), RNG.random(10)),
    ),
    (p.crc, (RNG.integers(0, 256, 30, dtype=np.uint8), 0xEDB88320)),
    (p.crc2, (RNG.integers(0, 256, 30, dtype=np.uint8), 0xEDB88320)),
    (p.nbody, (RNG.random((5, 3)), RNG.random((5, 3)), RNG.random(5), 0.01, 3)),
    (p.collatz, (27,)),
    (p.find, (np.arange(10), 4)),
    (p.find, (np.arange(10), 44)),
    (p.gcd, (48, 36)),
    (p.sieve, (100,)),
    (p.oob, (X,)),
    (p.oob2, (X,)),
    (p.neg, (X,)),
    (p.uses, (X,)),
    (p.bubble, (RNG.random(15),)),
    (p.forelse, (X,)),
    (p.unbound, (X,)),
    (p.ovf, (30,)),
    (p.ovf, (60,)),
    (p.asrt, (X,)),
    (p.asrt, (X * 100,)),
    (p.nested, (X,)),
    (p.bis, (np.arange(100.0), 33.3)),
    (p.zdiv, (1.0, 5.0)),
    (p.zdiv, (1.0, 2.0)),
    (p.zdiv, (1, 2)),
    (p.cont, (X,)),
    (p.f32s, (X.astype(np.float32),)),
    (p.f32s, (np.arange(5),)),
    (p.minmax, (X,)),
    (p.triple, (X,)),
]


@pytest.mark.parametrize(("function", "args"), CALLS, ids=lambda v: getattr(v, "__name__", "-"))
def test_like_python(like_python: Any, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    like_python(function, *args)


@pytest.mark.parametrize("function", [p.thomas, p.csr, p.nbody, p.cont, p.smith_waterman])
def test_every_level(function: Callable[..., Any]) -> None:
    args = next(a for f, a in CALLS if f is function)
    scripted = nbcomp.script(function)
    scripted(*(np.copy(a) if isinstance(a, np.ndarray) else a for a in args))
    given = [np.copy(a) if isinstance(a, np.ndarray) else a for a in args]
    want = function(*given)
    for name, run in levels(scripted.compiled):
        mine = [np.copy(a) if isinstance(a, np.ndarray) else a for a in args]
        got = run(*mine)
        np.testing.assert_equal(got, want, name)
        np.testing.assert_equal(mine, given, name)


def test_an_array_is_changed_in_place() -> None:
    def shift(a: Any) -> None:
        for i in range(1, len(a)):
            a[i] = a[i - 1] + 1

    scripted = nbcomp.script(shift)
    x = np.zeros(8)
    scripted(x)
    assert x.tolist() == list(range(8))
    (step,) = scripted.compiled.plan.steps
    assert step.slots == (0,)  # no copy


ROWS: Any = nbcomp.f32["n", 4]


def test_the_graph_is_there_after_the_first_call() -> None:
    scripted = nbcomp.script(p.cont)
    with pytest.raises(nbcomp.NbcompError, match=r"types come from arguments\nhint: call it"):
        _ = scripted.graph
    assert scripted.code.startswith("def cont(a):")
    scripted(X)
    assert "loops" in str(scripted.graph)


def test_annotated_types_are_enough_for_the_graph() -> None:
    @nbcomp.script
    def cell(x: ROWS, h: ROWS, scale: float = 2.0) -> Any:
        h = np.tanh(x + h) * scale
        return h, h, x

    assert str(cell.graph).count("f32[n, 4]") >= 4
    assert "return %h.2, %h.2, %x\n" in str(cell.graph)
    assert "return (h_1, h_1, x)" in cell.code
    a = np.ones((3, 4), np.float32)
    assert len(cell.variants) == 1
    cell(a, a)
    assert len(cell.variants) == 1


def test_neighbours_at_the_end_of_an_array_are_told_apart() -> None:
    """x[n - 1] and x[n - 2] are one run-time number and a literal, so LLVM sees they differ."""

    def backwards(x: Any, c: Any) -> Any:
        n = len(x)
        for i in range(n - 2, -1, -1):
            x[i] = c[i] - x[i] * x[i + 1]
        return x

    scripted = nbcomp.script(backwards)
    x, c = np.random.default_rng(3).random((2, 1000))
    np.testing.assert_array_equal(scripted(x.copy(), c), backwards(x.copy(), c))
    (kernel,) = scripted.compiled.kernels
    loads = kernel.text("llvm-before").count("load i64, ptr %pa")
    assert loads == 1, kernel.text("llvm-before")
