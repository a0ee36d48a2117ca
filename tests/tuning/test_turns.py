"""Taking turns, on a machine whose clock is made up: others take a core away for a while."""

from __future__ import annotations

import types
from collections.abc import Callable

import numpy as np
import pytest

from nbcomp.tuning import turns
from nbcomp.tuning.turns import Sample, Turns

DEFAULT = 2e-4  # seconds
ALONE = 2.2e-4  # of one that runs on one core


class Machine:
    """Runs take the seconds they have as an attribute, twice that while somebody disturbs."""

    def __init__(self, disturbed: float, seed: int) -> None:
        self.now, self.rng, self.disturbed = 0.0, np.random.default_rng(seed), disturbed
        self.until, self.busy, self.runs = 0.0, False, 0

    def sample(self, run: Callable[[], None], loops: int) -> Sample:
        if self.now >= self.until:
            self.busy = self.rng.random() < self.disturbed
            self.until = self.now + self.rng.exponential(3e-3)
        seconds = run.seconds * (2 if self.busy else 1)  # type: ignore[attr-defined]
        self.now += seconds * loops
        self.runs += 1
        return Sample(seconds * (1 + 0.01 * self.rng.random()), self.cores(run))

    def cores(self, run: Callable[[], None]) -> float:
        """Two for a run on both cores of which none is taken."""
        return 1.0 if self.busy else 2.0 if run.seconds != ALONE else 1.0  # type: ignore[attr-defined]


def run(seconds: float) -> Callable[[], None]:
    def nothing() -> None:
        """As long as it is said to take."""

    nothing.seconds = seconds  # type: ignore[attr-defined]
    return nothing


@pytest.fixture(params=range(4))
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(0.6, request.param)
    monkeypatch.setattr(turns, "sample", made.sample)
    clock = types.SimpleNamespace(perf_counter=lambda: made.now)
    monkeypatch.setattr(turns, "time", clock)
    return made


def test_shares_are_right_on_a_busy_machine(machine: Machine) -> None:
    found = Turns(run(DEFAULT))
    found.shares([run(DEFAULT)] * 8)  # gets to know the default
    wanted = [0.8, 0.9, 1.0, 1.02, 1.1, 1.5]
    got = found.shares([run(DEFAULT * w if w != 1.1 else ALONE) for w in wanted], 0.8)
    assert got == pytest.approx(wanted, rel=0.03)
    assert found.level == pytest.approx(DEFAULT, rel=0.02)


def test_what_is_no_good_is_not_timed_for_long(machine: Machine) -> None:
    found = Turns(run(DEFAULT))
    found.shares([run(DEFAULT)] * 8)
    machine.runs = 0
    found.shares([run(3 * DEFAULT)] * 8, 0.7)
    bad, machine.runs = machine.runs, 0
    found.shares([run(0.7 * DEFAULT)] * 8, 0.7)
    assert bad < machine.runs


def test_slow_runs_are_timed_a_few_times(machine: Machine) -> None:
    found = Turns(run(0.1))
    assert found.shares([run(0.05), run(0.2)]) == pytest.approx([0.5, 2.0], rel=0.6)
    assert machine.now < 4.0


def test_rounds_of_a_race_are_undisturbed(machine: Machine) -> None:
    default, one, other = Turns(run(DEFAULT)).race([run(DEFAULT), run(0.9 * DEFAULT)], 0.2)
    assert len(default) == len(one) == len(other) >= turns.ENOUGH
    assert max(default) < 1.1 * DEFAULT
    assert np.median(other) / np.median(one) == pytest.approx(0.9, rel=0.02)
    assert np.median(one) == pytest.approx(DEFAULT, rel=0.02)


def test_where_everything_is_disturbed_ratios_count(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Machine(1.0, 0)
    monkeypatch.setattr(turns, "sample", made.sample)
    found = Turns(run(DEFAULT))
    found.known.extend([Sample(DEFAULT, 2.0)] * 100)  # it was quiet once
    (share,) = found.shares([run(0.75 * DEFAULT)])
    assert share == pytest.approx(0.75, rel=0.02)


class Caches:
    """Runs of which each takes longer right after another one: it left the caches otherwise."""

    def __init__(self) -> None:
        self.now, self.last, self.since = 0.0, "", 0

    def run(self, name: str, seconds: float) -> Callable[[], None]:
        def go() -> None:
            self.since = self.since + 1 if self.last == name else 0
            self.last = name
            self.now += seconds * (1.0 + 0.4 * 0.5**self.since * (self.since < 2))

        return go


def test_what_another_schedule_left_in_the_caches_is_not_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caches = Caches()
    clock = types.SimpleNamespace(perf_counter=lambda: caches.now)
    monkeypatch.setattr(turns, "time", clock)
    monkeypatch.setattr(turns, "processor_seconds", lambda: caches.now)
    found = Turns(caches.run("default", DEFAULT))
    shares = found.shares([caches.run(f"{k}", DEFAULT * k) for k in (0.9, 1.0, 1.1)], 0.9)
    assert shares == pytest.approx([0.9, 1.0, 1.1], rel=1e-6)
    default, other = found.race([caches.run("other", DEFAULT)], 0.05)
    assert other == pytest.approx([DEFAULT] * len(default), rel=1e-6)
