"""Samples in turn; no assertion on how long anything takes."""

from __future__ import annotations

import gc

import pytest

from nbcomp.measure import timing


def test_timing_calls_in_turn_without_the_garbage_collector() -> None:
    calls: list[str] = []
    states: list[bool] = []

    def note(name: str) -> None:
        calls.append(name)
        states.append(gc.isenabled())

    timings = timing.alternate([(note, ("a",), {}), (note, ("b",), {})], seconds=0.01)
    assert gc.isenabled()
    assert not any(states)
    assert calls.count("a") > 3
    assert calls.count("b") > 3
    for taken, samples in timings:
        assert taken.low <= taken.median <= taken.high
        assert taken.samples == len(samples) >= 3


def test_what_refuses_what_it_has_written_is_given_its_arguments_anew() -> None:
    state = [0]

    def once() -> None:
        assert state[0] == 0
        state[0] += 1

    fresh = [lambda: state.__setitem__(0, 0)]
    [(taken, _)] = timing.alternate([(once, (), {})], 0.01, fresh)
    assert taken.loops == 1
    with pytest.raises(AssertionError):
        timing.alternate([(once, (), {})], 0.01)


def test_other_programs_are_noticed() -> None:
    neighbours = timing.Neighbours()
    neighbours._busy -= 100.0
    assert neighbours.cores() > 1.0


def test_a_call_without_arguments_is_timed() -> None:
    assert timing.time_call(lambda: None, seconds=0.01).median > 0


def test_of_a_turn_the_shortest_sample_may_count() -> None:
    def work() -> int:
        return sum(range(100))

    found = timing.alternate(
        [(work, (), {}), (work, (), {})], seconds=0.2, rounds=5, rest=0.0, shortest=True
    )
    assert [len(samples) for _, samples in found] == [5, 5]


def test_a_turn_waits_for_threads_that_still_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    used = iter([0.0, 1.0, 1.0, 2.0, 2.0, 2.0])  # seconds, before and after each nap
    monkeypatch.setattr(timing, "COARSE", False)
    monkeypatch.setattr(timing.time, "process_time", lambda: next(used))
    timing.settle(60.0)
    assert next(used, None) is None
    timing.settle(0.0)  # and not at all
