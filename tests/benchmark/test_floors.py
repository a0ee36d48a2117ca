"""The limits that tuned kernels are held against, from work that is known."""

from __future__ import annotations

import numpy as np
import pytest

import nbcomp
from benchmarks import floors
from nbcomp.measure.roofline import Limits, Peak


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """1e9 operations a second on each of two cores; a byte takes a nanosecond."""
    peaks = tuple(Peak(n, "float32", n * 1e9) for n in (1, 2))
    known = Limits("made up", 2, peaks, (), 0.0, (), 0.0)
    monkeypatch.setattr(floors, "limits", lambda again=False: known)
    monkeypatch.setattr(floors, "_seconds", lambda function, size: size * 1e-9)


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("without", [(), ("blas",)])
def test_products_by_their_multiply_adds(without: tuple[str, ...]) -> None:
    a, b = np.ones((40, 60), np.float32), np.ones((60, 50), np.float32)
    options = nbcomp.Options(without=set(without))
    compiled = nbcomp.compile_for("llvm", options)(lambda a, b: a @ b, a, b)
    found = floors.floor_of(compiled, (a, b))
    assert found.by == "multiply-adds"
    assert found.seconds == pytest.approx(2 * 40 * 60 * 50 / 2e9)


@pytest.mark.usefixtures("machine")
def test_what_only_moves_by_its_bytes() -> None:
    x = np.ones((100, 80), np.float32)
    found = floors.floor_of(nbcomp.compile(lambda x: x.T.copy(), x), (x,))
    assert (found.by, found.seconds) == ("copy", pytest.approx(x.nbytes * 1e-9))
    found = floors.floor_of(nbcomp.compile(lambda x: x.sum(axis=0), x), (x,))
    assert (found.by, found.seconds) == ("read", pytest.approx(x.nbytes * 1e-9))


@pytest.mark.usefixtures("machine")
def test_arithmetic_at_the_rate_of_multiply_adds() -> None:
    x = np.ones((100, 80), np.float32)
    found = floors.floor_of(nbcomp.compile(lambda x: np.exp(np.exp(x)), x), (x,))
    assert found.by == "arithmetic"
    assert found.seconds > 2 * 10 * x.size / 1e9
