"""A cost model learned from what was measured: gradient-boosted trees over what is known of each.

It learns ranks, since the order of candidates is what a search asks for: of shares a few that are
many times the default's would be all there is to learn.

The learner is LightGBM (Ke et al., "LightGBM: a highly efficient gradient boosting decision tree",
NIPS 2017): docs/tuning.md says why.  It is imported when it is first needed; where it is not
installed there is no learned model, and the search goes by the estimates of `analytic`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from nbcomp.schedule.decisions import Value

ROUNDS = 80
FEWEST = 12  # measurements from which a model is worth asking
FOLDS = 5
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


class Learned:
    """A model of a candidate's rank among all, from 0 (the fastest) to 1.

    Raises nothing where there is no learner: `ready` is then always False.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.words: dict[str, int] = {}  # options that are no numbers
        self.model: Any = None

    @property
    def ready(self) -> bool:
        """Whether there is a model to ask."""
        return self.model is not None

    def fit(self, known: Sequence[Known], shares: Sequence[float]) -> None:
        """Learn from measurements: what is known of each, and its share of the default's time."""
        if len(shares) < FEWEST or learner() is None:
            return
        self.names = list(dict.fromkeys(name for k in known for name in k))
        self.model = self._trained(self._rows(known), relative_ranks(shares))

    def predict(self, known: Sequence[Known]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The ranks that are expected."""
        assert self.model is not None
        return np.asarray(self.model.predict(self._rows(known)), np.float64)

    def foretold(
        self, known: Sequence[Known], shares: Sequence[float]
    ) -> np.ndarray[Any, np.dtype[np.float64]] | None:
        """What a model says of measurements that it has not seen: of each fifth, a model of the
        other four.  None where too little was measured."""
        if len(shares) < 2 * FEWEST or learner() is None:
            return None
        self.names = list(dict.fromkeys(name for k in known for name in k))
        rows, targets = self._rows(known), relative_ranks(shares)
        fold = np.random.default_rng(0).permutation(len(targets)) % FOLDS
        said = np.zeros(len(targets))
        for k in range(FOLDS):
            model = self._trained(rows[fold != k], targets[fold != k])
            said[fold == k] = model.predict(rows[fold == k])
        return said

    def _trained(self, rows: Any, targets: Any) -> Any:
        module = learner()
        data = module.Dataset(rows, targets, params=PARAMETERS)
        return module.train(PARAMETERS, data, num_boost_round=ROUNDS)

    def _rows(self, known: Sequence[Known]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """A column for each name; what was not asked, or is not known, is missing."""
        rows = [[self._number(k.get(name)) for name in self.names] for k in known]
        return np.array(rows, np.float64).reshape(len(known), len(self.names))

    def _number(self, value: Value | float | None) -> float:
        if value is None:
            return math.nan
        if isinstance(value, str):
            return float(self.words.setdefault(value, len(self.words)))
        return float(value)


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


def relative_ranks(values: Any) -> np.ndarray[Any, Any]:
    """Ranks from 0 to 1."""
    ranks = _ranks(np.asarray(values))
    return (ranks - 1) / max(len(ranks) - 1, 1)


def _ranks(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: np.ndarray[Any, Any] = (ends - (counts - 1) / 2)[inverse]
    return ranks
