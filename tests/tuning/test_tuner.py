"""Searches from end to end, with budgets of a second or two: what is kept, recorded and refused."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.errors import NbcompError
from nbcomp.measure.timing import Ratio
from nbcomp.schedule import database
from nbcomp.schedule.database import Database
from nbcomp.schedule.language import parse
from nbcomp.tuning.result import State, Tuned
from nbcomp.tuning.subject import Subject
from nbcomp.tuning.tune import tune
from nbcomp.tuning.tuner import Tuner
from nbcomp.tuning.workers import Workers

X = np.random.default_rng(1).standard_normal((64, 200), dtype=np.float32)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Database]:
    yield database.use_record(tmp_path / "tuned.jsonl")
    database._used.clear()


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was found is taken to be faster: on a busy machine nothing else can be relied on."""

    def judge(self: Subject, trials: Any, samples: Any) -> None:
        self.chosen, self.change = trials[-1], Ratio(0.5, 0.4, 0.6)

    monkeypatch.setattr(Subject, "judge", judge)
    monkeypatch.setattr(Tuner, "better", lambda self, change: True)


@pytest.mark.usefixtures("eager")
def test_a_search_from_end_to_end(record: Database) -> None:
    said: list[State] = []
    function = nbcomp.jit(softmax)
    found = tune(function, X, seconds=2.5, record=record, say=said.append)
    assert isinstance(found, Tuned)
    assert found.trials == len(record) - 1 >= 2
    (kernel,) = found.kernels
    assert kernel.schedule is not None
    assert found.compiled.kernels[0].kernel.notes == tuple(str(kernel.schedule).splitlines())
    assert function.compiled is found.compiled
    np.testing.assert_allclose(function(X), softmax(X), rtol=1e-5)
    assert {"starting", "searching", "comparing the best", "the whole program"} <= {
        s.doing for s in said
    }
    assert str(kernel.schedule) in str(found)
    # A new compilation uses it by itself, and a new search goes on from there.
    again = nbcomp.compile(softmax, X)
    assert again.tuned
    assert again.kernels[0].kernel.notes == found.compiled.kernels[0].kernel.notes
    more = tune(again, X, seconds=1.5, record=record)
    assert more.kernels[0].state.earlier >= found.trials - kernel.state.failed - 2


@pytest.mark.usefixtures("eager")
def test_lengths_that_are_left_open(record: Database) -> None:
    function = nbcomp.jit(softmax)
    for rows in (20, 30, 40):
        function(X[:rows])
    found = tune(function, X[:40].copy(), seconds=1.5, record=record)
    assert found.kernels[0].schedule is not None
    assert "for their order" in found.note
    assert record.entries()[-1].verdict
    for rows in (40, 33, 64):
        np.testing.assert_allclose(function(X[:rows]), softmax(X[:rows]), rtol=1e-5)
    # Another function with such lengths uses it by itself; one with far longer ones does not.
    long = np.random.default_rng(2).standard_normal((3000, 200), dtype=np.float32)
    for x, known in ((X, True), (long, False)):
        again = nbcomp.jit(softmax)
        for rows in (20, 30, 40):
            part = x[: rows * len(x) // 64]
            np.testing.assert_allclose(again(part), softmax(part), rtol=1e-5)
        assert again.variants[-1].tuned is known


def test_the_default_stays_where_nothing_is_clearly_faster(
    record: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nbcomp.tuning.subject.WORTH", 0.0)
    found = tune(nbcomp.compile(softmax, X), X, seconds=1.0, record=record)
    assert found.kernels[0].schedule is None
    assert record.entries()[-1].verdict
    assert not nbcomp.compile(softmax, X).tuned
    assert (
        found.compiled.kernels[0].kernel.notes == nbcomp.compile(softmax, X).kernels[0].kernel.notes
    )


@pytest.mark.parametrize("worth", [0.0, math.inf])
def test_what_was_adopted_stays_until_something_is_clearly_faster(
    worth: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nbcomp.tuning.subject.WORTH", worth)
    monkeypatch.setattr(Ratio, "clear", True)
    monkeypatch.setattr(Tuner, "better", lambda self, change: True)
    function = nbcomp.jit(lambda x: np.exp(x) + x)
    function(X)
    own = parse('split("j", 8)')
    function.adopt(function.compiled, function.compiled.with_schedule("exp", own))
    found = tune(function, X, seconds=1.0)
    assert found.scheduled
    assert found.better == (worth > 0)
    assert (function.compiled.kernels[0].kernel.notes == (str(own),)) == (worth == 0)
    assert ("the schedules in use before kept" in str(found)) == (worth == 0)
    np.testing.assert_allclose(function(X), np.exp(X) + X, rtol=1e-6, atol=1e-6)


def test_kernels_of_a_program_share_the_time(record: Database) -> None:
    def program(a: Any, b: Any) -> Any:
        return softmax(a @ b), b.sum()

    a, b = X.copy(), np.random.default_rng(2).standard_normal((200, 300), dtype=np.float32)
    found = tune(program, a, b, seconds=2.0, record=record)
    assert len(found.kernels) == len(found.compiled.kernels)
    spent = {k.state.name: k.state.calls * k.state.default for k in found.kernels}
    trials = {k.state.name: len(k.state.points) for k in found.kernels}
    assert trials[max(spent, key=lambda n: spent[n])] >= trials[min(spent, key=lambda n: spent[n])]


def test_an_interrupt_keeps_the_best(record: Database) -> None:
    def say(state: State) -> None:
        if state.doing == "searching":
            raise KeyboardInterrupt

    found = tune(nbcomp.compile(softmax, X), X, seconds=30.0, record=record, say=say)
    assert found.interrupted
    assert found.spent < 30
    assert len(record) > 2


def test_a_kill_loses_at_most_the_running_trial(tmp_path: Path) -> None:
    path = tmp_path / "tuned.jsonl"
    code = (
        "import numpy as np, nbcomp, os, signal\n"
        "def say(s):\n"
        "    if s.trials > 4: os.kill(os.getpid(), signal.SIGKILL)\n"
        "def f(x): return np.exp(x) / (1 + x * x)\n"
        "x = np.ones((300, 400), np.float32)\n"
        f"nbcomp.tune(f, x, seconds=30, record={str(path)!r}, say=say)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=100)
    assert done.returncode == -9
    kept = Database(path)
    assert len(kept.entries()) > 4
    assert kept.problems == ()


@pytest.mark.skipif(os.name != "posix", reason="processes are stopped by signals")
@pytest.mark.parametrize("sent", ["SIGKILL", "SIGSTOP"])
def test_a_worker_that_is_killed_or_stopped_costs_a_trial(sent: str, record: Database) -> None:
    workers, hit = Workers(2), []

    def say(state: State) -> None:
        if state.trials > 4 and len(hit) < 2:  # both, one after the other
            hit.append(workers.workers[len(hit)])
            os.kill(hit[-1].process.pid, getattr(signal, sent))

    compiled = nbcomp.compile(softmax, X)
    found = Tuner(compiled, (X,), {}, 3.0, record, say, runner=workers).run()
    assert len(hit) == 2
    assert 1 <= found.lost <= 2  # what is idle at the end is not missed
    (kernel,) = found.kernels
    assert kernel.state.failed <= 2
    assert found.trials > 5  # the search went on


def test_the_model_is_judged_if_asked_and_an_interrupt_of_that_keeps_the_best(
    record: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tune(softmax, X, seconds=2.5, record=record, drawn=16)
    ranking = found.kernels[0].state.ranking
    assert ranking is None or 12 <= ranking.drawn <= 16  # None: hardly a trial was made
    assert not found.interrupted

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nbcomp.tuning.tuner.ranking_of", interrupted)
    found = tune(softmax, X, seconds=1.5, record=record, drawn=16)
    assert found.interrupted
    assert found.kernels[0].state.points


def test_a_worker_that_is_lost_before_another_kernel(record: Database) -> None:
    def program(a: Any, b: Any) -> Any:
        return softmax(a @ b), np.tanh(b).sum()

    class Struck(Workers):
        """Workers of which one is killed whenever they begin with a kernel."""

        def use(self, task: Any) -> None:
            if task is not self.task:
                self.workers[0].process.kill()
                self.workers[0].process.wait()
            super().use(task)

    a, b = X.copy(), np.ones((200, 300), np.float32)
    runner = Struck(2)
    found = Tuner(
        nbcomp.compile(program, a, b), (a, b), {}, 2.0, record, lambda _: None, runner=runner
    ).run()
    assert len(found.kernels) >= 2
    assert found.lost >= 2
    assert not found.interrupted


# ------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("seconds", [0, -3, float("nan"), float("inf"), "30"])
def test_seconds_that_are_none(seconds: Any) -> None:
    with pytest.raises(ValueError, match="seconds: how long to search, a number above 0, not"):
        nbcomp.tune(softmax, X, seconds=seconds)


def test_what_cannot_be_tuned() -> None:
    with pytest.raises(NbcompError, match="only functions are tuned, not an int"):
        nbcomp.tune(3, seconds=1)
    with pytest.raises(NbcompError, match="was compiled for other arguments: x had shape"):
        nbcomp.tune(nbcomp.compile(softmax, X), X[:3], seconds=1)
    with pytest.raises(NbcompError, match="has no kernel that a schedule could be found for"):
        nbcomp.tune(lambda x: np.sort(x), X[0], seconds=1)
    with pytest.raises(NbcompError, match="is not one compiled program"):
        nbcomp.tune(lambda x: print(x) or x, X, seconds=1)


def test_a_wrong_program_is_not_tuned() -> None:
    compiled = nbcomp.compile(softmax, X)
    with pytest.raises(NbcompError, match="does not give NumPy's answer"):
        Tuner(compiled, (X,), {}, 1.0, None, lambda _: None, reference=lambda x: x).run()


def test_a_record_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    before = list(database.databases())
    with pytest.raises(NbcompError, match="the record of tuning cannot be written to"):
        nbcomp.tune(softmax, X, seconds=1, record=tmp_path / "file" / "below")
    if os.name == "posix" and os.getuid():
        tmp_path.chmod(0o500)
        with pytest.raises(NbcompError, match="Permission denied"):
            nbcomp.tune(softmax, X, seconds=1, record=tmp_path / "new")
    assert list(database.databases()) == before
