"""The limits that tuned kernels are held against, from work that is known."""

from __future__ import annotations

import numpy as np
import pytest

import nbcomp
from benchmarks import floors
from benchmarks.ten_kernels import SUBJECTS, Least, Subject
from nbcomp.measure.roofline import Limits, Peak


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """1e9 operations a second on each of two cores; a byte takes a nanosecond."""
    peaks = tuple(Peak(n, "float32", n * 1e9) for n in (1, 2))
    known = Limits("made up", 2, peaks, (), 0.0, (), 0.0)
    monkeypatch.setattr(floors, "limits", lambda again=False: known)
    monkeypatch.setattr(floors, "_seconds", lambda function, x, *_, **__: x.nbytes * 1e-9)


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
    assert (found.by, found.seconds) == ("copy", pytest.approx(x.nbytes * 1e-9, rel=0.01))
    found = floors.floor_of(nbcomp.compile(lambda x: x.sum(axis=0), x), (x,))
    assert (found.by, found.seconds) == ("read", pytest.approx(x.nbytes * 1e-9, rel=0.01))


@pytest.mark.usefixtures("machine")
def test_the_least_that_is_written_down_decides_where_it_takes_longest() -> None:
    x = np.ones((100, 80), np.float32)
    compiled = nbcomp.compile(lambda x: np.exp(x), x)
    for size, by in ((4, "twice"), (0.5, "copy")):
        y = np.ones(int(size * x.size), np.float32)
        least = Least("twice", np.exp, lambda _, y=y: (y,))
        found = floors.floor_of(compiled, (x,), least)
        assert (found.by, found.seconds) == (
            by,
            pytest.approx(max(size, 1) * x.nbytes * 1e-9, rel=0.01),
        )


@pytest.mark.usefixtures("machine")
def test_what_is_done_besides_the_multiply_adds_is_added_to_them() -> None:
    a, b = np.ones((40, 60), np.float32), np.ones((60, 50), np.float32)
    compiled = nbcomp.compile(lambda a, b: np.exp(a @ b), a, b)
    least = Least("arithmetic", np.exp, lambda a, _: (a[:10],), times=4)
    found = floors.floor_of(compiled, (a, b), least)
    beside = 4 * a[:10].nbytes * 1e-9 / 2  # on one of two cores
    assert (found.by, found.seconds) == ("arithmetic", pytest.approx(120e-6 + beside))


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda s: s.name)
def test_the_least_is_of_the_same_kind_and_size(subject: Subject) -> None:
    """It gives as many elements, of the arguments that the kernel has, if it is all there is."""
    args = subject.arguments()
    whole = subject.function(*args)
    if subject.least is not None:
        some = subject.least.function(*subject.least.given(*args))
        first = some[0] if isinstance(some, tuple) else some
        assert subject.least.times or np.size(first) == np.size(whole)
        assert np.asarray(first).dtype == np.asarray(whole).dtype
