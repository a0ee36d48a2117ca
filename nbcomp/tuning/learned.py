"""A cost model learned from what was measured: a Gaussian process and gradient-boosted trees.

They learn ranks, since the order of candidates is what a search asks for: of shares a few that are
many times the default's would be all there is to learn.  The process (`process`) ranks better after
few measurements, the trees after many; what they say together is better than either.

A search measures what is good, and of the rest little.  So they learn by how much a rank differs
from what the estimate of the loops lets expect, where there is one: what is unlike all that was
measured is believed to be as it was estimated.

The trees are LightGBM's (Ke et al., "LightGBM: a highly efficient gradient boosting decision tree",
NIPS 2017): docs/tuning.md says why.  It is imported when it is first needed; where it is not
installed the process answers alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from nbcomp.schedule.decisions import Value
from nbcomp.tuning.process import Array, Process

ROUNDS = 80
FEWEST = 12  # measurements from which a model is worth asking
FOLDS = 5
ESTIMATE = "estimated seconds"  # among what is known: the logarithm (`features`)
BELIEF = 0.1  # of all ranks, for what is estimated to take twice as long
# Of what was tried (benchmarks.tuning's kernels, 120 trials each, five-fold) these ranked best.
PARAMETERS = {
    "objective": "regression",
    "learning_rate": 0.12,
    "num_leaves": 7,
    "min_data_in_leaf": 4,
    "min_data_in_bin": 1,
    "feature_fraction": 0.5,
    "feature_pre_filter": False,
    "num_threads": 1,  # threads that spin would disturb what is measured
    "seed": 0,
    "verbosity": -1,
}

Known = Mapping[str, Value | float]  # of a candidate: decisions, and features or none


@cache
def learner() -> Any:
    """LightGBM; None where it is not installed."""
    try:
        return import_module("lightgbm")
    except ImportError:
        return None


@cache
def _libraries() -> Any:
    """The libraries here that have threads of their own; None where that is not known."""
    try:
        return import_module("threadpoolctl").ThreadpoolController()
    except ImportError:
        return None


def one_thread() -> AbstractContextManager[Any]:
    """Linear algebra on one thread: matrices are small, and threads that wait for each other by
    spinning take the cores from what is compiled and measured meanwhile."""
    found = _libraries()
    return nullcontext() if found is None else found.limit(limits=1, user_api="blas")


class Learned:
    """A model of a candidate's rank among all, from 0 (the fastest) to 1.

    trees: whether they are asked besides the process, which is quicker alone.
    """

    def __init__(self, trees: bool = True) -> None:
        self.names: list[str] = []
        self.words: dict[str, int] = {}  # options that are no numbers
        self.asks = trees
        self.process = Process()
        self.trees: Any = None

    @property
    def ready(self) -> bool:
        """Whether there is a model to ask."""
        return self.process.ready

    def fit(self, known: Sequence[Known], shares: Sequence[float]) -> None:
        """Learn from measurements: what is known of each, and its share of the default's time."""
        if len(shares) < FEWEST:
            return
        self.names = list(dict.fromkeys(name for k in known for name in k))
        with one_thread():
            self._learn(self._rows(known), relative_ranks(shares) - _expected(known))

    def predict(self, known: Sequence[Known]) -> Array:
        """The ranks that are expected."""
        with one_thread():
            return self._said(self._rows(known)) + _expected(known)

    def foretold(self, known: Sequence[Known], shares: Sequence[float]) -> Array | None:
        """What a model says of measurements that it has not seen: of each fifth, a model of the
        other four.  None where too little was measured."""
        if len(shares) < 2 * FEWEST:
            return None
        self.names = list(dict.fromkeys(name for k in known for name in k))
        rows, expected = self._rows(known), _expected(known)
        targets = relative_ranks(shares) - expected
        fold = np.random.default_rng(0).permutation(len(targets)) % FOLDS
        said = np.zeros(len(targets))
        with one_thread():
            for k in range(FOLDS):
                self._learn(rows[fold != k], targets[fold != k])
                said[fold == k] = self._said(rows[fold == k])
        return said + expected

    def _learn(self, rows: Array, targets: Array) -> None:
        self.process.fit(rows, targets)
        module = learner() if self.asks else None
        if module is not None:
            data = module.Dataset(rows, targets, params=PARAMETERS)
            self.trees = module.train(PARAMETERS, data, num_boost_round=ROUNDS)

    def _said(self, rows: Array) -> Array:
        said = self.process.predict(rows)
        return said if self.trees is None else (said + np.asarray(self.trees.predict(rows))) / 2

    def _rows(self, known: Sequence[Known]) -> Array:
        """A column for each name; what was not asked, or is not known, is missing."""
        rows = [[self._number(k.get(name)) for name in self.names] for k in known]
        return np.array(rows, np.float64).reshape(len(known), len(self.names))

    def _number(self, value: Value | float | None) -> float:
        if value is None:
            return math.nan
        if isinstance(value, str):
            return float(self.words.setdefault(value, len(self.words)))
        return float(value)


def _expected(known: Sequence[Known]) -> Array:
    """What the estimates let expect of ranks, but for a constant."""
    return np.array([BELIEF * float(k.get(ESTIMATE, 0.0)) for k in known])


def rank_correlation(one: Any, other: Any) -> float:
    """Spearman's ρ: the correlation of ranks, equal values sharing theirs; NaN without spread."""
    a, b = _ranks(np.asarray(one)), _ranks(np.asarray(other))
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan
    return float(np.corrcoef(a, b)[0, 1])


def order_beyond(said: Any, shares: Any, factor: float) -> float:
    """Goodman and Kruskal's γ of the pairs that differ by more than a factor: the share of them in
    the right order less that in the wrong one; NaN where there are none."""
    took = np.log(np.asarray(shares, np.float64))
    apart = took[:, None] - took[None, :] > math.log(factor)
    signs = np.sign(np.subtract.outer(np.asarray(said), np.asarray(said)))[apart]
    return float(signs.mean()) if signs.size else math.nan


def relative_ranks(values: Any) -> Array:
    """Ranks from 0 to 1."""
    ranks = _ranks(np.asarray(values))
    return (ranks - 1) / max(len(ranks) - 1, 1)


def _ranks(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: np.ndarray[Any, Any] = (ends - (counts - 1) / 2)[inverse]
    return ranks
