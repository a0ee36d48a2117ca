"""The comparison across batch sizes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from nbcomp.measure import comparison, scaling, timing


def test_scaling_varies_what_belongs_to_the_batch() -> None:
    seen: set[tuple[int, ...]] = set()

    def layer(x: Any, y: Any, weights: Any) -> Any:
        seen.add((len(x), len(y), len(weights)))
        return x @ weights + y

    args = (np.ones((6, 4)), np.ones((6, 1)), np.ones((4, 2)))
    said: list[int] = []
    found = scaling.scaling(layer, layer, args, sizes=(8, 1, 3), seconds=0.6, progress=said.append)
    assert [p.size for p in found.points] == said == [1, 3, 8]
    assert {(1, 1, 4), (3, 3, 4), (8, 8, 4)} <= seen
    assert all(p.comparison.agrees for p in found.points)


def test_an_argument_that_is_as_long_as_the_batch_by_chance_is_left_alone() -> None:
    x, weights = np.ones((4, 4)), np.ones((4, 4))
    found = scaling.scaling(np.matmul, np.matmul, (x, weights), sizes=(1, 9), seconds=0.4)
    assert [p.size for p in found.points] == [1, 9]


def test_scaling_without_a_batch_says_so() -> None:
    found = scaling.scaling(np.sin, np.sin, (2.0,), seconds=0.01)
    assert not found.points
    assert "leading axis" in found.reason


def test_sizes_that_do_not_fit_are_named() -> None:
    x = np.ones((2, 1 << 20), np.float32)
    found = scaling.scaling(np.abs, np.abs, (x,), sizes=(1, 1 << 20), seconds=0.4)
    assert found.skipped == ((1 << 20, "the batch would take 4194304 MiB"),)


def test_wrong_and_slower_sizes_are_listed() -> None:
    def broken(x: Any) -> Any:
        return x + (len(x) == 4)

    found = scaling.scaling(broken, lambda x: x + 0, (np.zeros(3),), sizes=(2, 4), seconds=0.4)
    assert found.wrong == (4,)
    slow = timing.Timing(1.0, 1.0, 1.0, 3, 1)
    point = scaling.Point(7, 0.0, comparison.Comparison((), slow, slow, 0.5, 0.5, 0.5))
    assert scaling.Scaling((point,)).slower == (7,)


def test_a_size_that_cannot_be_run_is_named_and_the_others_are_measured() -> None:
    def step(x: Any) -> Any:
        return np.diff(x).max()

    found = scaling.scaling(step, step, (np.arange(6.0),), sizes=(1, 2, 4), seconds=0.4)
    assert [p.size for p in found.points] == [2, 4]
    ((size, why),) = found.skipped
    assert size == 1
    assert why.startswith("cannot be run: zero-size array to reduction operation")


def test_a_program_that_grows_with_the_batch_is_not_swept() -> None:
    x = np.ones((6, 2))
    found = scaling.scaling(np.abs, np.abs, (x,), seconds=0.4, operators=len)
    assert not found.points
    assert "grows with the batch (3 operators for 3 rows, 5 for 5)" in found.reason


def test_large_arguments_are_not_made_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "LARGE", 100)
    x = np.ones((8, 4))
    found = scaling.scaling(np.abs, np.abs, (x,), sizes=(2, 8, 16), seconds=0.4, writes=False)
    assert [p.size for p in found.points] == [2, 8]
    assert [size for size, _ in found.skipped] == [16]


def test_compiling_for_new_sizes_counts_and_no_size_is_begun_that_would_end_late() -> None:
    known: set[int] = set()

    def compiling(x: Any) -> Any:
        if len(x) not in known:
            known.add(len(x))
            time.sleep(0.3)
        return x + 0

    x = np.ones((2, 2))
    found = scaling.scaling(compiling, lambda x: x + 0, (x,), sizes=(1, 2, 4, 8), seconds=0.2)
    assert [p.size for p in found.points] == [1]
    assert [size for size, _ in found.skipped] == [2, 4, 8]
    words = "out of time: all sizes were to take 0.2 s; compiling for new sizes took 0.3 s"
    assert all(w == words for _, w in found.skipped)
    assert 1 in known
    assert 8 not in known
