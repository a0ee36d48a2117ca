"""How well the cost model ranks the space: schedules drawn from all of it, which it has not seen.

The trials of a search crowd near the best, where measuring decides the order as much as the
schedule does; so a model is judged as in the literature, on candidates drawn at random over the
whole space (Zheng et al., "TenSet", NeurIPS 2021 datasets track, section 5).  They are measured
twice: a model cannot follow a measurement better than the next measurement does.  Knows searches
and where candidates are measured; not what it is shown for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from nbcomp.tuning.learned import FEWEST, Learned, rank_correlation
from nbcomp.tuning.result import EARLY, Ranking
from nbcomp.tuning.runner import Runner
from nbcomp.tuning.search import Search, Trial
from nbcomp.tuning.space import Candidate
from nbcomp.tuning.tasks import Task

TRIES = 20  # at drawing a candidate that is new
BATCH = 8  # candidates measured at a time


def ranking_of(runner: Runner, task: Task, search: Search, count: int) -> Ranking | None:
    """The model of the first `EARLY` trials, and that of all, against `count` candidates at random;
    None where too little was measured.  The search learns nothing of them."""
    some = unseen(search, count)
    twice = [_measured(runner, task, some, search.least) for _ in range(2)]
    both = [k for k in range(len(some)) if math.inf not in (twice[0][k], twice[1][k])]
    done = [t for t in search.trials if t.outcome.share is not None]
    if len(both) < FEWEST or len(done) < FEWEST:
        return None
    first, second = ([shares[k] for k in both] for shares in twice)
    took = [math.sqrt(a * b) for a, b in zip(first, second, strict=True)]
    known = [search.known_of(some[k]) for k in both]

    def ranked(trials: Sequence[Trial]) -> float:
        model = Learned()
        model.fit([search.known_of(t.candidate) for t in trials], [t.share for t in trials])
        return rank_correlation(model.predict(known), took)

    early = ranked(done[:EARLY])
    late = ranked(done) if len(done) > EARLY else early
    return Ranking(len(both), early, late, rank_correlation(first, second))


def unseen(search: Search, count: int) -> list[Candidate]:
    """Candidates at random that were not tried; each decision answered in any way."""
    found: dict[str, Candidate] = {}
    for _ in range(TRIES * count):
        made = search.space.draw(search.rng)
        if made is None or made.key in search.known or search.estimated(made).too_large:
            continue
        found[made.key] = made
        if len(found) == count:
            break
    return list(found.values())


def _measured(
    runner: Runner, task: Task, some: Sequence[Candidate], best: float
) -> dict[int, float]:
    """Shares of the default's time, by position; infinite where there is none."""
    shares = dict.fromkeys(range(len(some)), math.inf)
    for start in range(0, len(some), BATCH):
        kernels = [c.kernel for c in some[start : start + BATCH]]
        for outcomes in runner.run(task, kernels, best):
            for number, outcome in outcomes.items():
                if outcome.share is not None:
                    shares[start + number] = outcome.share
    return shares
