"""The cost model against candidates drawn at random, of made-up times, as a runner gives them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from nbcomp.tuning.ranking import ranking_of, unseen
from nbcomp.tuning.runner import Outcome, Outcomes
from nbcomp.tuning.search import Search, Trial
from nbcomp.tuning.space import Candidate
from tests.tuning.test_search import made_up, space_of


class Runner:
    """Gives each kernel the time made up for its decisions, disturbed; every seventh fails."""

    def __init__(self, drawn: list[Candidate], noise: float) -> None:
        self.rng, self.noise, self.drawn = np.random.default_rng(0), noise, drawn
        self.asked = 0

    def run(self, task: Any, kernels: Iterable[Any], best: float) -> Iterator[Outcomes]:
        made = {id(c.kernel): c for c in self.drawn}
        for number, kernel in enumerate(kernels):
            share = made_up(made[id(kernel)].decisions)
            share *= float(np.exp(self.noise * self.rng.standard_normal()))
            yield {number: Outcome(share if number != 6 else None)}
            self.asked += 1


def learned(trials: int) -> Search:
    search = Search(space_of("rows"), 1)
    for c in [search.space.default(), *unseen(search, trials)]:
        search.learn(Trial(c, Outcome(made_up(c.decisions))))
    return search


@pytest.mark.parametrize(("noise", "least", "most"), [(0.0, 0.999, 1.0), (1.0, -1.0, 0.9)])
def test_random_candidates_are_ranked_and_measured_twice(
    monkeypatch: pytest.MonkeyPatch, noise: float, least: float, most: float
) -> None:
    search = learned(120)
    runner: Any = Runner(unseen(search, 40), noise)
    monkeypatch.setattr("nbcomp.tuning.ranking.unseen", lambda *_: runner.drawn)
    before = list(search.trials)
    task: Any = None
    found = ranking_of(runner, task, search, 40)
    assert found is not None
    assert search.trials == before
    assert runner.asked == 80
    assert found.drawn == 35  # one of each eight came to nothing
    assert least <= found.again <= most
    assert noise or min(found.early, found.late) > 0.7


def test_what_was_tried_is_not_drawn_again() -> None:
    search = learned(30)
    drawn = unseen(search, 50)
    assert len({c.key for c in drawn}) == len(drawn) > 10
    assert not {c.key for c in drawn} & {t.candidate.key for t in search.trials}


def test_too_little_is_no_ranking() -> None:
    search = learned(3)
    runner: Any = Runner([], 0.0)
    task: Any = None
    assert ranking_of(runner, task, search, 0) is None
