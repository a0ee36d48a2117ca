"""Measuring: equality first, fair timings, sizes; no assertion on how long anything takes."""

from __future__ import annotations

import gc
import math
from typing import Any

import numpy as np
import pytest

from nbcomp import bench


@pytest.fixture(autouse=True)
def without_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "REST", 0.0)


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_ulp_distance(dtype: type) -> None:
    one = dtype(1)
    a = np.array([one, one, -0.0, np.nan, np.inf, -one], dtype)
    b = np.array(
        [one, np.nextafter(one, dtype(2)), 0.0, np.nan, np.inf, np.nextafter(-one, dtype(2))], dtype
    )
    assert bench.ulp_distance(a, b).tolist() == [0, 1, 0, 0, 0, 1]
    tiny = np.nextafter(dtype(0), dtype(1))
    assert bench.ulp_distance(np.array([-tiny]), np.array([tiny])).tolist() == [2]
    assert bench.ulp_distance(np.array([dtype(np.nan)]), np.array([one])).tolist() == [math.inf]


def test_ulp_distance_of_complex_and_scalars() -> None:
    a, b = (
        np.complex64(1 + 1j),
        np.complex64(complex(1, np.nextafter(np.float32(1), np.float32(2)))),
    )
    assert bench.ulp_distance(np.array([a]), np.array([b])).tolist() == [1]


def test_equal_answers_agree() -> None:
    value = {"a": (f32(1, 2), np.arange(3)), "b": [np.float32(2), 3, None, "s"]}
    assert all(not d.problem and d.ulp == 0 for d in bench.differences(value, value))


@pytest.mark.parametrize(
    ("ours", "theirs", "problem"),
    [
        (f32(1), np.array([1.0]), "is float32[1] where NumPy gives float64[1]"),
        (f32(1, 2), f32(1), "is float32[2] where NumPy gives float32[1]"),
        (np.float32(1), np.array(1, np.float32), "is a scalar where NumPy gives a ndarray"),
        (np.arange(3), np.array([0, 1, 3]), "differs at [2]: 2 where NumPy gives 3"),
        (f32(1, np.nan), f32(1, 2), "differs at [1]: nan where NumPy gives 2.0"),
        (f32(np.inf), f32(-np.inf), "differs at [0]: inf where NumPy gives -inf"),
        (f32(1.001), f32(1), "differs at [0]: 1.001 where NumPy gives 1.0"),
        ((f32(1), f32(1)), f32(1), "has 2 values where NumPy gives 1"),
    ],
)
def test_different_answers_are_named(ours: Any, theirs: Any, problem: str) -> None:
    found = bench.differences(ours, theirs)
    assert [d.problem for d in found if d.problem] == [problem]


def test_a_few_roundings_are_the_same_answer() -> None:
    (d,) = bench.differences(f32(1.0000005, 1e-20), f32(1, 0))
    assert not d.problem
    assert d.ulp > 3
    assert d.absolute == pytest.approx(4.8e-7, rel=0.1)


def test_empty_and_zero_dimensional_answers() -> None:
    for value in (np.zeros((0, 3), np.float32), np.array(2.0), np.zeros(0, bool)):
        (d,) = bench.differences(value, value.copy())
        assert not d.problem


def test_what_is_written_into_an_argument_is_part_of_the_answer() -> None:
    def right(x: Any) -> Any:
        x += 1

    def wrong(x: Any) -> Any:
        x += 2

    x = np.arange(3.0)
    assert bench.check(right, right, (x,)).agrees
    found = bench.check(wrong, right, (x,))
    assert [d.name for d in found.differences if d.problem] == ["arguments[0][0]"]
    assert x.tolist() == [0, 1, 2]  # the caller's array is untouched


def test_copies_keep_strides_and_overlaps() -> None:
    base = np.arange(20.0).reshape(4, 5)
    views = (base[:, ::-2], base[1:], base.T, np.broadcast_to(base[0], (3, 5)), np.zeros(0))
    copies = bench.twin(views)
    for view, copy in zip(views, copies, strict=True):
        assert copy.strides == view.strides
        assert np.array_equal(copy, view)
        assert not np.shares_memory(copy, base)
    assert np.shares_memory(copies[0], copies[1])
    assert not copies[3].flags.writeable


def test_timing_calls_in_turn_without_the_garbage_collector() -> None:
    calls: list[str] = []
    states: list[bool] = []

    def note(name: str) -> None:
        calls.append(name)
        states.append(gc.isenabled())

    timings = bench.alternate([(note, ("a",), {}), (note, ("b",), {})], seconds=0.01)
    assert gc.isenabled()
    assert not any(states)
    assert calls.count("a") > 3
    assert calls.count("b") > 3
    for timing, samples in timings:
        assert timing.low <= timing.median <= timing.high
        assert timing.samples == len(samples) >= 3


def test_other_programs_are_noticed() -> None:
    neighbours = bench.Neighbours()
    neighbours._busy -= 100.0
    assert neighbours.cores() > 1.0


def test_measure() -> None:
    assert bench.measure(lambda: None, seconds=0.01).median > 0


def test_a_wrong_answer_is_not_timed() -> None:
    found = bench.compare(lambda x: x + 1, lambda x: x, (f32(1),), seconds=0.01)
    assert not found.agrees
    assert found.compiled is None
    assert math.isnan(found.speedup)


def test_compare_passes_keywords_and_reports_a_ratio() -> None:
    def scale(x: Any, by: float = 1.0) -> Any:
        return x * by

    found = bench.compare(scale, scale, (f32(1, 2),), {"by": 3.0}, seconds=0.02)
    assert found.agrees
    assert found.speedup_low <= found.speedup <= found.speedup_high


def test_scaling_varies_what_belongs_to_the_batch() -> None:
    seen: set[tuple[int, ...]] = set()

    def layer(x: Any, y: Any, weights: Any) -> Any:
        seen.add((len(x), len(y), len(weights)))
        return x @ weights + y

    args = (np.ones((6, 4)), np.ones((6, 1)), np.ones((4, 2)))
    said: list[int] = []
    found = bench.scaling(layer, layer, args, sizes=(8, 1, 3), seconds=0.6, progress=said.append)
    assert [p.size for p in found.points] == said == [1, 3, 8]
    assert {(1, 1, 4), (3, 3, 4), (8, 8, 4)} <= seen
    assert all(p.comparison.agrees for p in found.points)


def test_an_argument_that_is_as_long_as_the_batch_by_chance_is_left_alone() -> None:
    x, weights = np.ones((4, 4)), np.ones((4, 4))
    found = bench.scaling(np.matmul, np.matmul, (x, weights), sizes=(1, 9), seconds=0.4)
    assert [p.size for p in found.points] == [1, 9]


def test_rows_are_repeated_or_cut() -> None:
    x = np.arange(6).reshape(3, 2)
    (longer,) = bench.resized((x,), (0,), 5)
    assert longer.tolist() == [[0, 1], [2, 3], [4, 5], [0, 1], [2, 3]]
    (shorter,) = bench.resized((x,), (0,), 2)
    assert shorter.tolist() == [[0, 1], [2, 3]]


def test_scaling_without_a_batch_says_so() -> None:
    found = bench.scaling(np.sin, np.sin, (2.0,), seconds=0.01)
    assert not found.points
    assert "leading axis" in found.reason


def test_sizes_that_do_not_fit_are_named() -> None:
    x = np.ones((2, 1 << 20), np.float32)
    found = bench.scaling(np.abs, np.abs, (x,), sizes=(1, 1 << 20), seconds=0.4)
    assert found.skipped == ((1 << 20, "the batch would take 4194304 MiB"),)


def test_wrong_and_slower_sizes_are_listed() -> None:
    def broken(x: Any) -> Any:
        return x + (len(x) == 4)

    found = bench.scaling(broken, lambda x: x + 0, (np.zeros(3),), sizes=(2, 4), seconds=0.4)
    assert found.wrong == (4,)
    slow = bench.Timing(1.0, 1.0, 1.0, 3, 1)
    point = bench.Point(7, 0.0, bench.Comparison((), slow, slow, 0.5, 0.5, 0.5))
    assert bench.Scaling((point,)).slower == (7,)


def test_a_size_that_cannot_be_run_is_named_and_the_others_are_measured() -> None:
    def step(x: Any) -> Any:
        return np.diff(x).max()

    found = bench.scaling(step, step, (np.arange(6.0),), sizes=(1, 2, 4), seconds=0.4)
    assert [p.size for p in found.points] == [2, 4]
    ((size, why),) = found.skipped
    assert size == 1
    assert why.startswith("cannot be run: zero-size array to reduction operation")


def test_a_program_that_grows_with_the_batch_is_not_swept() -> None:
    x = np.ones((6, 2))
    found = bench.scaling(np.abs, np.abs, (x,), seconds=0.4, operators=len)
    assert not found.points
    assert "grows with the batch (3 operators for 3 rows, 5 for 5)" in found.reason


def test_large_arguments_are_not_made_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "LARGE", 100)
    x = np.ones((8, 4))
    found = bench.scaling(np.abs, np.abs, (x,), sizes=(2, 8, 16), seconds=0.4, writes=False)
    assert [p.size for p in found.points] == [2, 8]
    assert [size for size, _ in found.skipped] == [16]


def test_an_answer_as_near_to_the_true_one_as_numpys_is_not_wrong() -> None:
    rng = np.random.default_rng(0)
    x = (1e4 + rng.random((1000, 50))).astype(np.float32)

    def numpys(x: Any) -> Any:
        return (x - x.mean(0)) / x.std(0)

    def better(x: Any) -> Any:
        return numpys(x.astype(np.float64)).astype(np.float32)

    def wrong(x: Any) -> Any:
        return better(x) * np.float32(2)

    (out_of_bounds,) = bench.differences(better(x), numpys(x))
    assert out_of_bounds.problem
    found = bench.check(better, numpys, (x,))
    assert found.agrees
    assert 0 < found.scaled < found.ulp
    assert not bench.check(wrong, numpys, (x,)).agrees


def test_large_answers_are_compared_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "CHUNK", 4)
    a = np.arange(15.0).reshape(3, 5)
    b = a.copy()
    b[2, 1] += 1
    (found,) = bench.differences(b, a)
    assert found.problem == "differs at [2, 1]: 12.0 where NumPy gives 11.0"
    assert found.absolute == 1.0


def test_functions_that_write_are_timed_on_the_same_data_again() -> None:
    seen: list[float] = []

    def double(x: Any) -> Any:
        seen.append(float(x[0]))
        x *= 2.0
        return x

    x = np.full(4, 1e300)
    with np.errstate(all="raise"):
        found = bench.compare(double, double, (x,), seconds=0.05)
    assert found.agrees
    assert x[0] == 1e300
    assert seen.count(1e300) > 3


def test_functions_that_write_nothing_get_the_arguments_themselves() -> None:
    seen: set[int] = set()

    def note(x: Any) -> Any:
        seen.add(id(x))
        return x + 1

    x = np.ones(4)
    assert bench.compare(note, note, (x,), seconds=0.02, writes=False).agrees
    assert seen == {id(x)}
