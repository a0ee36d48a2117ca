"""Which schedules of one kernel are tried next: evolution, guided by what was measured.

At first candidates are drawn at random and the estimates of `analytic` choose among them; later the
best so far are changed and mixed, and the learned model chooses; some are always drawn at random.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nbcomp.schedule.decisions import Value
from nbcomp.tuning.analytic import estimate
from nbcomp.tuning.learned import Learned
from nbcomp.tuning.space import Candidate, Space
from nbcomp.tuning.worker import Outcome

PARENTS = 12  # of the best so far that have children
CHILDREN = 192  # that the learned model looks at
DRAWN = 2  # candidates drawn for each that is tried, while there is no model
RANDOM = 0.15  # share that is drawn at random even so
NOISY = 1.03  # times as long at another time: from there on what looks unlucky is timed again
CUT = 4.0  # times the least estimate: what is said to take longer is not tried
TRIES = 40  # at finding a candidate that is new


@dataclass(frozen=True)
class Trial:
    """A candidate and what came of it."""

    candidate: Candidate
    outcome: Outcome


class Search:
    """The search for one kernel.

    trials: all so far, the default schedule first; what was timed again has its least time.  cut:
    candidates that were not tried because of their estimate.
    """

    def __init__(self, space: Space, seed: int = 0) -> None:
        self.space = space
        self.rng = np.random.default_rng(seed)
        self.model = Learned()
        self.trials: list[Trial] = []
        self.cut = 0
        self.known: set[str] = set()  # keys of what was tried, and of what was cut
        self.asked: set[frozenset[tuple[str, Value]]] = set()  # decisions that were looked at
        self.earlier: list[tuple[Mapping[str, Value], float]] = []  # from the record
        self.stale = 0  # trials since the last better one
        self.apart: list[float] = []  # how far apart two timings of one candidate were, as a ratio

    # ------------------------------------------------------------------------------- outcomes

    @property
    def default(self) -> float:
        """Seconds with the default schedule."""
        seconds = self.trials[0].outcome.seconds
        assert seconds is not None
        return seconds

    @property
    def noise(self) -> float:
        """How many times as long the same takes at another time: the median; 1 before that is
        known."""
        return float(np.median(self.apart)) if self.apart else 1.0

    @property
    def timed(self) -> list[Trial]:
        """Those that were timed, the best first."""
        done = [t for t in self.trials if t.outcome.seconds is not None]
        return sorted(done, key=lambda t: t.outcome.seconds or math.inf)

    @property
    def best(self) -> float:
        """Seconds of the best so far."""
        found = [t.outcome.seconds for t in self.trials if t.outcome.seconds is not None]
        return min(found, default=math.inf)

    def learn(self, trial: Trial) -> None:
        """Take note of an outcome."""
        seconds = trial.outcome.seconds
        self.stale = 0 if seconds is not None and seconds < 0.98 * self.best else self.stale + 1
        for place, known in enumerate(self.trials):
            if known.candidate.key == trial.candidate.key:
                self._again(place, trial)
                return
        self.known.add(trial.candidate.key)
        self.trials.append(trial)

    def _again(self, place: int, trial: Trial) -> None:
        """Of a candidate that was timed before, the least time counts: what disturbs only adds."""
        before, now = self.trials[place].outcome.seconds, trial.outcome.seconds
        if before is None or now is None:
            return
        self.apart.append(max(before, now) / min(before, now))
        if now < before:
            self.trials[place] = trial

    def refit(self) -> None:
        """Learn from everything that was measured."""
        decisions, shares = self.measured()
        self.model.fit(decisions, shares)

    def measured(self) -> tuple[list[Mapping[str, Value]], list[float]]:
        """Decisions, and seconds over the default's, of all that was timed."""
        pairs = [*self.earlier]
        default = self.default
        for t in self.trials:
            if t.outcome.seconds is not None:
                pairs.append((t.candidate.decisions, t.outcome.seconds / default))
        return [d for d, _ in pairs], [s for _, s in pairs]

    def correlation(self) -> float:
        """Of the learned model with measurement, in ranks: see `Learned.correlation`."""
        return Learned().correlation(*self.measured())

    # ------------------------------------------------------------------------------ proposing

    def propose(self, count: int) -> list[Candidate]:
        """Up to so many new candidates; fewer, and at last none, where the space has no more."""
        guided = self.model.ready
        at_random = max(1, round(RANDOM * count)) if guided else count
        found: dict[str, Candidate] = {}
        if guided:
            self._take(found, self._children(), count - at_random)
        self._take(found, self._drawn(count if not guided else at_random), count)
        if found and guided and self.noise > NOISY:
            found.popitem()
            return [*found.values(), self._unlucky()]
        return list(found.values())

    def _unlucky(self) -> Candidate:
        """What took longer than the model expects, and is expected to be good: perhaps something
        disturbed it."""
        timed = self.timed
        said = self.model.predict([t.candidate.decisions for t in timed])
        took = np.log([(t.outcome.seconds or math.inf) / self.default for t in timed])
        good = said <= np.quantile(said, 0.2)
        return timed[int(np.argmax(np.where(good, took - said, -math.inf)))].candidate

    def _take(self, found: dict[str, Candidate], some: Iterable[Candidate], count: int) -> None:
        """Add new candidates up to a count."""
        for candidate in some:
            if len(found) >= count:
                return
            if candidate.key not in found and candidate.key not in self.known:
                found[candidate.key] = candidate

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
        estimates = [estimate(c.kernel, self.space.machine) for c in some]
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
        order = np.argsort(self.model.predict(made))
        for k in order:
            if (asked := frozenset(made[k].items())) in self.asked:
                continue
            self.asked.add(asked)
            candidate = self.space.build(made[k])
            if candidate is None or candidate.key in self.known:
                continue
            if estimate(candidate.kernel, self.space.machine).too_large:
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
