"""The space of a kernel, the estimates, the learned model and the search, on made-up times."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.loop.verifier import verify
from nbcomp.machine import Machine
from nbcomp.schedule.default import default_schedule
from nbcomp.schedule.language import parse
from nbcomp.tuning import learned
from nbcomp.tuning.analytic import estimate
from nbcomp.tuning.findings import differences_of, findings_of, without
from nbcomp.tuning.learned import ESTIMATE, Learned, order_beyond, rank_correlation
from nbcomp.tuning.process import Process
from nbcomp.tuning.runner import Outcome
from nbcomp.tuning.search import Search, Trial
from nbcomp.tuning.space import Space

MACHINE = Machine("test", 64, 2, 32 << 10, 1 << 20, 32 << 20)


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


PROGRAMS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "map": (lambda x: np.tanh(x) * 2, [zeros(512, 512)]),
    "transpose": (lambda x, y: x.T + y, [zeros(256, 128), zeros(128, 256)]),
    "rows": (softmax, [zeros(64, 300)]),
    "columns": (lambda x: (x * x).sum(axis=0), [zeros(512, 64)]),
    "library": (lambda a, b: np.tanh(a @ b), [zeros(128, 64), zeros(64, 200)]),
    "product": (lambda a, b: a @ b + 1, [zeros(70, 64), zeros(64, 90)]),
}


def lowered(name: str) -> Any:
    function, args = PROGRAMS[name]
    options = nbcomp.Options(without={"blas"} if name == "product" else ())
    return nbcomp.compile_for("interpreted", options)(function, *args).kernels[0].lowered


def space_of(name: str) -> Space:
    return Space(lowered(name), MACHINE)


# ------------------------------------------------------------------------------------- the space


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_default_schedule_is_in_the_space(name: str) -> None:
    space = space_of(name)
    default = space.default()
    assert str(default.kernel) == str(default_schedule(space.kernel, MACHINE))
    again = space.build(default.decisions)
    assert again is not None
    assert again.key == default.key == space.build({}).key  # type: ignore[union-attr]


@pytest.mark.parametrize("name", PROGRAMS)
def test_candidates_are_schedules_that_play(name: str) -> None:
    space, rng = space_of(name), np.random.default_rng(1)
    drawn = [c for _ in range(12) if (c := space.draw(rng)) is not None]
    assert len({c.key for c in drawn}) > 4
    for c in drawn:
        played = verify(c.schedule(space.kernel))
        assert str(played) == str(replace(c.kernel, notes=()))
        assert str(c.schedule) == c.key
        rebuilt = space.build(c.decisions)
        assert rebuilt is not None
        assert rebuilt.key == c.key
        assert estimate(c.kernel, MACHINE).seconds > 0


def test_a_change_is_another_answer() -> None:
    space, rng = space_of("rows"), np.random.default_rng(2)
    before = space.default().decisions
    for _ in range(20):
        after = space.changed(before, rng)
        changed = [n for n in after if after[n] != before[n]]
        assert 1 <= len(changed) <= 2
        assert all(after[n] in space.options[n] for n in changed)
    mixed = space.mixed({"a": 1, "b": 1}, {"b": 2, "c": 2}, rng)
    assert set(mixed) == {"a", "b", "c"}


# ------------------------------------------------------------------------------------ estimates


def test_estimates_know_vectors_and_cores() -> None:
    kernel = lowered("map")
    default = Space(kernel, MACHINE).default().kernel
    alone = Machine("test", 64, 1, 32 << 10, 1 << 20, 32 << 20)
    assert estimate(default, MACHINE).seconds < estimate(default, alone).seconds
    assert estimate(default, alone).seconds < estimate(kernel, alone).seconds / 4


def test_what_is_too_large_is_told() -> None:
    space = space_of("product")
    wide = {n: options[-1] for n, options in space.options.items()}
    space.default()
    wide = {
        n: max(o) if n.startswith(("rows of a tile", "vectors of a tile")) else space.usual[n]
        for n, o in space.options.items()
    }
    made = space.build(wide)
    assert made is not None
    assert estimate(made.kernel, MACHINE).size > estimate(space.default().kernel, MACHINE).size


# --------------------------------------------------------------------------------- the model


def made_up(decisions: Any) -> float:
    """Seconds that depend on the decisions in a way a model can learn."""
    total = 1e-4
    for name, value in decisions.items():
        total *= 1 + 0.25 * abs(math.log2(1 + float(value)) - 2 - len(name) % 3)
    return total


def test_the_model_learns_the_order() -> None:
    space, rng = space_of("rows"), np.random.default_rng(3)
    drawn = [c.decisions for _ in range(120) if (c := space.draw(rng)) is not None]
    shares = [made_up(d) for d in drawn]
    assert rank_correlation(Learned().foretold(drawn, shares), shares) > 0.7
    model = Learned()
    model.fit(drawn[:5], shares[:5])
    assert not model.ready
    model.fit(drawn[:100], shares[:100])
    assert rank_correlation(model.predict(drawn[100:]), shares[100:]) > 0.7


def test_what_is_unlike_all_that_was_measured_is_believed_as_estimated() -> None:
    rng = np.random.default_rng(5)
    near = [{ESTIMATE: 10.0, "rows": int(r)} for r in rng.integers(1, 9, 60)]
    model = Learned()
    model.fit(near, [1 + 0.01 * k["rows"] for k in near])
    far = [{ESTIMATE: 10.0 + e, "rows": 4} for e in (0, 1, 3, 6)]
    assert rank_correlation(model.predict(far), range(4)) == 1.0
    alike = [{ESTIMATE: 10.0, "rows": r} for r in (2, 4, 8)]
    assert rank_correlation(model.predict(alike), range(3)) == 1.0


def test_rank_correlation_is_spearmans() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(4)
    for _ in range(5):
        a, b = rng.integers(0, 9, 40), rng.integers(0, 9, 40)
        assert rank_correlation(a, b) == pytest.approx(stats.spearmanr(a, b)[0])
    assert math.isnan(rank_correlation([1, 1], [1, 2]))


# --------------------------------------------------------------------------------- the search


def searched(name: str, trials: int, seed: int = 0) -> Search:
    """A search whose times are made up."""
    search = Search(space_of(name), seed)
    todo = [search.space.default()]
    while len(search.trials) < trials and todo:
        for c in todo:
            search.learn(Trial(c, Outcome(made_up(c.decisions))))
        search.refit()
        todo = list(search.propose(8))
    return search


def test_the_search_beats_drawing() -> None:
    found, drawn = [], []
    for seed in range(3):
        found.append(searched("rows", 90, seed).best)
        space, rng = space_of("rows"), np.random.default_rng(seed)
        some = [c for _ in range(90) if (c := space.draw(rng)) is not None]
        drawn.append(min(made_up(c.decisions) for c in some))
    assert np.median(found) < np.median(drawn)


def test_nothing_is_tried_twice_but_what_is_doubtful() -> None:
    search = searched("transpose", 80)
    keys = [t.candidate.key for t in search.trials]
    assert len(set(keys)) == len(keys)
    assert sum(search.again.values()) == len(search.apart) < 12


def test_what_was_unlucky_is_timed_again() -> None:
    search = searched("rows", 60)
    search.refit()
    best = search.timed[0]
    trials = list(search.trials)
    spoiled = Trial(best.candidate, Outcome(3 * search.best))
    search.trials[search.trials.index(best)] = spoiled
    search.again.clear()
    search.apart = [1.5]
    *_, again = search.propose(8)
    assert again.key == best.candidate.key
    search.learn(best)
    assert search.trials == trials
    assert search.noise == 2.25


def test_a_small_space_comes_to_an_end() -> None:
    tiny = nbcomp.compile_for("interpreted")(lambda x: x + 1, zeros(3)).kernels[0].lowered
    search = Search(Space(tiny, MACHINE))
    search.learn(Trial(search.space.default(), Outcome(1e-6)))
    for _ in range(20):
        some = list(search.propose(8))
        for c in some:
            search.learn(Trial(c, Outcome(1e-6)))
        if not some:
            break
    assert not list(search.propose(8))


def test_without_trees_the_process_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned, "learner", lambda: None)
    search = searched("rows", 60)
    assert search.model.ready
    assert search.model.trees is None
    assert search.correlation()[0] > 0.5
    assert len(search.trials) >= 60


def test_a_process_learns_what_is_alike() -> None:
    rng = np.random.default_rng(5)
    rows = 2.0 ** rng.integers(0, 7, (80, 4))
    rows[::9, 2] = np.nan  # not asked of all
    wanted = np.log2(rows[:, 0]) + np.abs(np.log2(rows[:, 1]) - 3) + 0.5 * np.isnan(rows[:, 2])
    model = Process()
    assert not model.ready
    model.fit(rows[:60], wanted[:60])
    assert rank_correlation(model.predict(rows[60:]), wanted[60:]) > 0.9
    noisy = Process()
    noisy.fit(rows, rng.standard_normal(80))
    assert np.std(noisy.predict(rows)) < 0.7  # noise is not learned by heart
    flat = Process()
    flat.fit(np.ones((3, 2)), np.array([1.0, 2.0, 3.0]))
    assert flat.predict(np.ones((1, 2))) == pytest.approx([2.0])


def test_the_correlation_after_the_first_trials() -> None:
    search = searched("rows", 80)
    assert search.correlation(30) != search.correlation()
    assert math.isnan(search.correlation(10)[0])


def test_failures_are_no_measurements() -> None:
    search = searched("rows", 20)
    best = search.best
    worse = next(search.propose(1))
    search.learn(Trial(worse, Outcome(None, "crashed")))
    assert search.best == best
    assert len(search.timed) == len(search.trials) - 1
    assert next(search.propose(1)).key != worse.key


def test_a_step_left_out_takes_along_what_builds_on_it() -> None:
    space = space_of("product")
    schedule = space.default().schedule
    first = next(k for k, s in enumerate(schedule.steps) if s.name == "split")
    rest, gone = without(space.kernel, schedule, first)
    assert gone > 0
    assert len(rest.steps) == len(schedule.steps) - gone - 1
    verify(rest(space.kernel))


class _Raced:
    """A place to measure in where a kernel takes as long as its schedule has letters."""

    machine = MACHINE

    def race(self, task: Any, schedules: Any, seconds: float) -> Any:
        return [[1.0], *([float(len(str(s)))] for s in schedules)]


def test_differences_are_those_that_make_one() -> None:
    space = space_of("transpose")
    usual = space.build({})
    assert usual is not None
    blocks = next(n for n in space.options if n.startswith("columns of a block"))
    other = next(o for o in space.options[blocks] if o not in (0, usual.decisions[blocks]))
    found = space.build({blocks: other, "merge loops of stage 0": 0})
    assert found is not None
    task: Any = type("Task", (), {"kernel": space.kernel})
    (one,) = differences_of(_Raced(), task, space, found, 5.0)  # type: ignore[arg-type]
    assert (one.decision, one.found, one.usual) == (
        blocks,
        str(other),
        str(usual.decisions[blocks]),
    )
    assert one.factor == len(usual.key) / len(found.key)


def test_a_step_without_which_the_code_would_be_huge() -> None:
    x = zeros(1024, 1024)
    kernel = nbcomp.compile_for("interpreted")(lambda x: x.T.copy(), x).kernels[0].lowered
    schedule = parse('split("j", 4)\nunroll("j")\nvectorize("i")')
    task: Any = type("Task", (), {"kernel": kernel})
    found = findings_of(_Raced(), task, schedule, 5.0)  # type: ignore[arg-type]
    assert [f.factor is None for f in found] == [True, False, False]


def test_the_order_of_pairs_beyond_the_noise() -> None:
    shares = [1.0, 1.005, 1.5, 2.0]
    assert order_beyond([1, 0, 2, 3], shares, 1.02) == 1.0
    assert order_beyond([0, 1, 2, 3], shares, 1.0) == 1.0
    assert order_beyond([3, 3, 2, 1], shares, 1.02) == -1.0
    assert order_beyond([0, 0, 3, 2], shares, 1.02) == pytest.approx(3 / 5)
    assert math.isnan(order_beyond([1, 2], [1.0, 1.01], 1.02))


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_remembered_of_the_rules_is_what_they_make(name: str) -> None:
    space, rng = space_of(name), np.random.default_rng(8)
    parents = [space.default().decisions]
    for _ in range(12):
        made = space.build(space.changed(parents[-1], rng))
        if made is None:
            continue
        parents.append(made.decisions)

        def again(name: str, usual: Any, options: Any, known: Any = made.decisions) -> Any:
            return known[name]

        assert str(default_schedule(space.kernel, MACHINE, decide=again)) == str(made.kernel)
