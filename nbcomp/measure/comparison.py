"""A compiled function against its Python original: the answers first, then the times, in turn.

Knows how to call and compare functions; it must not know how they were compiled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from nbcomp.measure.arguments import rebuild, restore, twin
from nbcomp.measure.differences import Difference, differences, leaves
from nbcomp.measure.timing import Function, Neighbours, Timing, alternate, quietly

CLOSER = 4  # times the distance of NumPy's own answer from the true one that ours may have


@dataclass(frozen=True)
class Comparison:
    """A compiled function against its Python original; no timings when the answers differ.

    speedup: median over paired samples of reference seconds / compiled seconds, with its quartiles.
    others: the cores that other programs kept busy meanwhile.
    """

    differences: tuple[Difference, ...]
    compiled: Timing | None = None
    reference: Timing | None = None
    speedup: float = math.nan
    speedup_low: float = math.nan
    speedup_high: float = math.nan
    others: float = 0.0

    @property
    def agrees(self) -> bool:
        """Whether every output is NumPy's answer."""
        return not any(d.problem for d in self.differences)

    @property
    def ulp(self) -> float:
        """The largest distance of any output, in units in the last place."""
        return max((d.ulp for d in self.differences), default=0.0)

    @property
    def scaled(self) -> float:
        """The largest distance of any output in ulp of that output's largest magnitude."""
        return max((d.scaled for d in self.differences), default=0.0)

    @property
    def absolute(self) -> float:
        """The largest absolute difference of any output."""
        return max((d.absolute for d in self.differences), default=0.0)

    @property
    def slower(self) -> bool:
        """Whether the compiled function took longer than NumPy."""
        return self.speedup < 1.0


def check(
    compiled: Function,
    reference: Function,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    writes: bool = True,
) -> Comparison:
    """Compare the answers of both on copies of the arguments, without timing them.

    What a function writes into its arguments is part of its answer; with `writes` False it is
    known to write nothing, and no copies are made.  An answer out of bounds is wrong only when it
    is also farther from the true one, where that can be told.  Raises what they raise.
    """
    given = (tuple(args), dict(kwargs or {}))
    ours, theirs = (twin(given), twin(given)) if writes else (given, given)
    with quietly():
        one, other = compiled(*ours[0], **ours[1]), reference(*theirs[0], **theirs[1])
        found = differences(one, other)
        if any(d.problem for d in found):
            found = _judged(found, one, other, reference, given)
    if not writes:
        return Comparison(found)
    written = differences(ours, theirs, "arguments")
    return Comparison((*found, *(d for d in written if d.problem or d.ulp > 0)))


def _judged(
    found: tuple[Difference, ...], ours: Any, theirs: Any, reference: Function, given: Any
) -> tuple[Difference, ...]:
    """The differences, without problems where ours is as near to a wider evaluation as NumPy is.

    Subtracting nearly equal numbers leaves mostly rounding errors, NumPy's as much as ours; the
    same function on wider numbers tells them from a wrong formula.
    """
    a, b = (list(leaves(v, "")) for v in (ours, theirs))
    try:
        args, kwargs = _widened(twin(given))
        true = list(leaves(reference(*args, **kwargs), ""))
    except Exception:  # a function that does not take wider numbers: the bounds decide
        return found
    if not len(found) == len(a) == len(b) == len(true):
        return found
    rows = zip(found, a, b, true, strict=True)
    return tuple(
        replace(d, problem="") if d.problem and _as_near(x[1], y[1], z[1]) else d
        for d, x, y, z in rows
    )


def _widened(value: Any) -> Any:
    """Nested arguments with float arrays as long doubles."""
    arrays: dict[int, Any] = {
        id(v): v.astype(np.clongdouble if v.dtype.kind == "c" else np.longdouble)
        for _, v in leaves(value, "")
        if isinstance(v, (np.ndarray, np.generic)) and v.dtype.kind in "fc"
    }
    return rebuild(value, arrays)


def _as_near(ours: Any, theirs: Any, true: Any) -> bool:
    """Whether the largest error of ours is not clearly larger than that of NumPy's answer."""
    a, b, c = np.asarray(ours), np.asarray(theirs), np.asarray(true)
    if a.dtype != b.dtype or a.dtype.kind not in "fc" or not a.shape == b.shape == c.shape:
        return False
    # Only more precision can judge, and only where all three are numbers.
    if c.dtype.kind not in "fc" or np.finfo(c.dtype).eps >= np.finfo(b.dtype).eps:
        return False
    if not (np.isfinite(a) == np.isfinite(b)).all() or not np.isfinite(a).all():
        return False
    return bool(np.abs(a - c).max() <= CLOSER * np.abs(b - c).max())


def compare(
    compiled: Function,
    reference: Function,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    seconds: float = 0.5,
    writes: bool = True,
) -> Comparison:
    """Check that both give the same answer, then time them in turn.

    A wrong answer is not timed.  Arrays of the caller are never written to: a function that may
    write to its arguments (`writes`) gets copies, which are restored before each sample.
    """
    found = check(compiled, reference, args, kwargs, writes)
    if not found.agrees:
        return found
    neighbours = Neighbours()
    given = (tuple(args), dict(kwargs or {}))
    ours, theirs = (twin(given), twin(given)) if writes else (given, given)
    again = (partial(restore, ours, given), partial(restore, theirs, given))
    with quietly():
        pair = alternate(
            [(compiled, *ours), (reference, *theirs)], seconds, again if writes else ()
        )
    (fast, fast_samples), (slow, slow_samples) = pair
    ratios = [b / a for a, b in _pairs(fast_samples, slow_samples)]
    low, ratio, high = (float(q) for q in np.percentile(ratios, [25, 50, 75]))
    others = neighbours.cores()
    return Comparison(found.differences, fast, slow, ratio, low, high, others)


def _pairs(a: Sequence[float], b: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Pairs samples taken at about the same time; the shorter list repeats its entries."""
    count = max(len(a), len(b))
    for i in range(count):
        yield a[i * len(a) // count], b[i * len(b) // count]
