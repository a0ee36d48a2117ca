"""Which schedules of one kernel are tried next: evolution, guided by what was measured.

At first candidates are drawn at random and the estimates of `analytic` choose among them; later the
best so far are changed and mixed, and learned models choose: one that knows decisions only among
many, then one that knows the loops too among those few whose loops were made; some are always
drawn at random.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from nbcomp.schedule.decisions import Value
from nbcomp.tuning.analytic import Estimate, estimate
from nbcomp.tuning.features import features_of
from nbcomp.tuning.learned import (
    Known,
    Learned,
    order_beyond,
    rank_correlation,
    relative_ranks,
)
from nbcomp.tuning.runner import Outcome
from nbcomp.tuning.space import Candidate, Space

PARENTS = 12  # of the best so far that have children
CHILDREN = 192  # that the model of decisions looks at
AT_HAND = 9  # of these, that the model of loops chooses from
AT_ONCE = 3  # that it chooses of them at a time: to ask it takes about as long for one as for all
FIRST = 2  # of those at hand, that go by what was known before
DRAWN = 2  # candidates drawn for each that is tried, while there is no model
RANDOM = 0.15  # share that is drawn at random even so
CUT = 4.0  # times the least estimate: what is said to take longer is not tried
LEAST_NOISE = 1.01  # times as long the same takes at another time, on the quietest machine
TRIES = 40  # at finding a candidate that is new


@dataclass(frozen=True)
class Trial:
    """A candidate and what came of it."""

    candidate: Candidate
    outcome: Outcome

    @property
    def share(self) -> float:
        """Of the default schedule's time; infinite where it was not timed."""
        return math.inf if self.outcome.share is None else self.outcome.share


class Search:
    """The search for one kernel.

    trials: all so far, the default schedule first; what was timed again has what was measured then.
    cut: candidates that were not tried because of their estimate.
    """

    def __init__(self, space: Space, seed: int = 0) -> None:
        self.space = space
        self.rng = np.random.default_rng(seed)
        self.model, self.quick = Learned(), Learned(trees=False)  # of loops; of decisions only
        self.trials: list[Trial] = []
        self.cut = 0
        self.known: set[str] = set()  # keys of what was tried, and of what was cut
        self.asked: set[frozenset[tuple[str, Value]]] = set()  # decisions that were looked at
        self.at_hand: dict[str, Candidate] = {}  # whose loops were made, not tried yet; by key
        self.estimates: dict[str, Estimate] = {}  # of candidates, by key
        self.loops: dict[str, Mapping[str, float]] = {}  # features of candidates, by key
        self.earlier: list[tuple[Mapping[str, Value], float]] = []  # from the record
        self.stale = 0  # trials since the last better one
        self.fresh = False  # whether there are measurements that the models do not know
        self.again: Counter[str] = Counter()  # keys of what was timed more than once
        self.apart: list[float] = []  # how far apart two timings of one candidate were, as a ratio

    # ------------------------------------------------------------------------------- outcomes

    @property
    def default(self) -> float:
        """Seconds with the default schedule."""
        return min(t.outcome.default for t in self.trials if t.outcome.share is not None)

    @property
    def noise(self) -> float:
        """How many times as long the same takes at another time: the median; 1 before that is
        known."""
        return float(np.median(self.apart)) if self.apart else 1.0

    @property
    def timed(self) -> list[Trial]:
        """Those that were timed, the best first."""
        done = [t for t in self.trials if t.outcome.share is not None]
        return sorted(done, key=lambda t: t.share)

    @property
    def least(self) -> float:
        """The share of the default's time that the best so far takes."""
        return min((t.share for t in self.trials), default=math.inf)

    @property
    def best(self) -> float:
        """Seconds of the best so far."""
        return self.least * self.default

    def learn(self, trial: Trial) -> None:
        """Take note of an outcome."""
        self.fresh = True
        self.stale = 0 if trial.share < 0.98 * self.least else self.stale + 1
        for place, known in enumerate(self.trials):
            if known.candidate.key == trial.candidate.key:
                self._again(place, trial)
                return
        self.known.add(trial.candidate.key)
        self.trials.append(trial)

    def _again(self, place: int, trial: Trial) -> None:
        """Of a candidate that was timed before, the later time counts: it was asked for because
        the first one seemed wrong."""
        before, now = self.trials[place].share, trial.share
        if math.inf in (before, now):
            return
        self.again[trial.candidate.key] += 1
        self.apart.append(max(before, now) / min(before, now))
        self.trials[place] = trial

    def refit(self) -> None:
        """Learn from everything that was measured."""
        if not self.fresh:
            return
        self.fresh = False
        done = [t for t in self.trials if t.outcome.share is not None]
        shares = [share for _, share in self.earlier] + [t.share for t in done]
        decisions = [d for d, _ in self.earlier]
        self.quick.fit(decisions + [t.candidate.decisions for t in done], shares)
        self.model.fit([*decisions, *(self.known_of(t.candidate) for t in done)], shares)

    def known_of(self, candidate: Candidate) -> Known:
        """What a model may know of a candidate: its decisions, and what its loops look like."""
        if candidate.key not in self.loops:
            what = candidate.kernel, self.space.machine, self.estimated(candidate)
            self.loops[candidate.key] = features_of(*what)
        return {**candidate.decisions, **self.loops[candidate.key]}

    def estimated(self, candidate: Candidate) -> Estimate:
        """What the loops of a candidate will take, roughly."""
        if candidate.key not in self.estimates:
            known = estimate(candidate.kernel, self.space.machine)
            self.estimates[candidate.key] = known
        return self.estimates[candidate.key]

    def correlation(self, first: int | None = None) -> tuple[float, float]:
        """Of what is foretold (`Learned.foretold`) with what was measured here: in ranks, and of
        the pairs that differ by more than measuring twice does.

        first: of so many trials only, the first ones that were timed.
        """
        done = [t for t in self.trials if t.outcome.share is not None][:first]
        shares = [t.share for t in done]
        said = Learned().foretold([self.known_of(t.candidate) for t in done], shares)
        if said is None:
            return math.nan, math.nan
        factor = max(self.noise, LEAST_NOISE) ** 2
        return rank_correlation(said, shares), order_beyond(said, shares, factor)

    # ------------------------------------------------------------------------------ proposing

    def propose(self, count: int) -> Iterator[Candidate]:
        """Up to so many new candidates, each made when it is asked for; fewer, and at last none,
        where the space has no more.  What was measured is learned while the first are compiled."""
        found: set[str] = set()
        if self.model.ready and self.at_hand:
            yield from self._new(found, self._likeliest(FIRST), FIRST)
        self.refit()
        guided = self.model.ready
        if guided:
            at_random = max(1, round(RANDOM * count))
            yield from self._new(found, self._children(), count - at_random)
        yield from self._new(found, self._drawn(count - len(found)), count)
        if found and guided:
            yield self._doubtful()

    def _doubtful(self) -> Candidate:
        """What is to be timed again: the measurement that is furthest from what the model says,
        among those that are good or said to be.  Perhaps something disturbed it."""
        timed = self.timed
        said = self.model.predict([self.known_of(t.candidate) for t in timed])
        took = relative_ranks([t.share for t in timed])
        good = np.minimum(said, took) <= 0.2
        often = np.array([1 + self.again[t.candidate.key] for t in timed])
        return timed[int(np.argmax(np.where(good, np.abs(took - said) / often, -1.0)))].candidate

    def _new(self, found: set[str], some: Iterable[Candidate], count: int) -> Iterator[Candidate]:
        """New candidates until so many are found."""
        if len(found) >= count:
            return
        for candidate in some:
            if candidate.key not in found and candidate.key not in self.known:
                found.add(candidate.key)
                yield candidate
                if len(found) >= count:
                    return

    def _drawn(self, count: int) -> list[Candidate]:
        """Candidates at random, those first of which the estimate is best; the worst are cut."""
        some: dict[str, Candidate] = {}
        for _ in range(TRIES * count):
            made = self.space.draw(self.rng)
            if made is not None and made.key not in self.known:
                some[made.key] = made
            if len(some) >= DRAWN * count:
                break
        return self._ranked(list(some.values()))

    def _ranked(self, some: Sequence[Candidate]) -> list[Candidate]:
        estimates = list(map(self.estimated, some))
        least = min((e.seconds for e in estimates), default=0.0)
        kept = []
        for e, c in zip(estimates, some, strict=True):
            if e.too_large or e.seconds > CUT * least:
                self.known.add(c.key)
                self.cut += 1
            else:
                # Estimates are rough: what is about as good is tried in any order.
                kept.append((e.seconds * math.exp(0.3 * self.rng.standard_normal()), c))
        return [c for _, c in sorted(kept, key=lambda pair: pair[0])]

    def _children(self) -> Iterable[Candidate]:
        """Children of the best so far, those first that the model likes most."""
        parents = [t.candidate.decisions for t in self.timed[:PARENTS]]
        made = [self._child(parents) for _ in range(CHILDREN)]
        built = self._built(made[k] for k in np.argsort(self.quick.predict(made)))
        while True:
            for candidate in islice(built, AT_HAND - len(self.at_hand)):
                self.at_hand[candidate.key] = candidate
            if not self.at_hand:
                return
            yield from self._likeliest(AT_ONCE)

    def _likeliest(self, count: int) -> Iterator[Candidate]:
        """Of those at hand, the ones that the model likes most; they are taken away."""
        keys = list(self.at_hand)
        said = self.model.predict([self.known_of(self.at_hand[k]) for k in keys])
        for place in np.argsort(said)[:count]:
            yield self.at_hand.pop(keys[place])

    def _built(self, some: Iterable[Mapping[str, Value]]) -> Iterator[Candidate]:
        """The candidates with these decisions that are new and not too large to be tried."""
        for decisions in some:
            if (asked := frozenset(decisions.items())) in self.asked:
                continue
            self.asked.add(asked)
            candidate = self.space.build(decisions)
            if candidate is None or candidate.key in self.known:
                continue
            if self.estimated(candidate).too_large:
                self.known.add(candidate.key)
                self.cut += 1
                continue
            yield candidate

    def _child(self, parents: Sequence[Mapping[str, Value]]) -> dict[str, Value]:
        """Of one or two parents, better ones more often."""
        ranks = np.minimum(self.rng.exponential(len(parents) / 3, 2).astype(int), len(parents) - 1)
        one, other = (parents[k] for k in ranks)
        mixed = self.space.mixed(one, other, self.rng) if self.rng.random() < 0.3 else dict(one)
        return self.space.changed(mixed, self.rng)
