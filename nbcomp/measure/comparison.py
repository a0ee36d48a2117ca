"""A compiled function against its Python original: the answers first, then the times, in turn.

Knows how to call and compare functions; it must not know how they were compiled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from nbcomp.graph.ir import Graph
from nbcomp.graph.op import Constant, Input, Source, View
from nbcomp.measure.arguments import NOWHERE, Around, rebuild, restore, twin
from nbcomp.measure.differences import Difference, differences, leaves
from nbcomp.measure.timing import Function, Neighbours, Timing, alternate, quietly, ratio

CLOSER = 4  # times the distance of NumPy's own answer from the true one that ours may have


@dataclass(frozen=True)
class Comparison:
    """A compiled function against its Python original; no timings when the answers differ.

    speedup: reference seconds / compiled seconds, with the quartiles of pairs of samples.
    others: the cores that other programs kept busy meanwhile.  against_float64: how far both are
    from the answer in float64, relatively, if that was asked for (`errors`).
    """

    differences: tuple[Difference, ...]
    compiled: Timing | None = None
    reference: Timing | None = None
    speedup: float = math.nan
    speedup_low: float = math.nan
    speedup_high: float = math.nan
    others: float = 0.0
    against_float64: tuple[float, float] | None = None

    @property
    def agrees(self) -> bool:
        """Whether every output is NumPy's answer."""
        return not self.problem

    @property
    def problem(self) -> str:
        """The first output that is not NumPy's answer, and how; empty where there is none."""
        return next((f"{d.name} {d.problem}" for d in self.differences if d.problem), "")

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


class NotAgain(Exception):
    """The Python function raised when it was called again, which says nothing of the compiled one:
    what it did before was to something that nobody has a copy of."""


@dataclass(frozen=True)
class Wanted:
    """NumPy's answer for some arguments: what the function returned, and what it wrote into them.

    With `writes` False the function is known to write nothing, and no copies are made.  eps: of
    the coarsest values on the way to the answer (`coarsest`).  others: what it wrote elsewhere.
    """

    reference: Function
    given: tuple[tuple[Any, ...], dict[str, Any]]
    writes: bool
    value: Any
    written: Any
    eps: float = 0.0
    elsewhere: Around = NOWHERE
    others: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(
        reference: Function,
        args: Sequence[Any],
        kwargs: Mapping[str, Any] | None,
        writes: bool,
        eps: float = 0.0,
        elsewhere: Around = NOWHERE,
    ) -> Wanted:
        """Run the Python function, on copies.  Raises NotAgain when it raises."""
        given = (tuple(args), dict(kwargs or {}))
        copies = twin(given) if writes else given
        with quietly(), elsewhere.fresh():
            try:
                value = reference(*copies[0], **copies[1])
            except Exception as error:
                raise NotAgain(str(error) or type(error).__name__) from error
            value = elsewhere.apart(value)
            others = elsewhere.copies()
        return Wanted(reference, given, writes, value, copies, eps, elsewhere, others)

    def check(self, function: Function) -> Comparison:
        """Compare the answer of another function on copies of the arguments, without timing it.

        An answer out of bounds is wrong only when it is also farther from the true one, where that
        can be told.  Raises what the function raises.
        """
        ours = twin(self.given) if self.writes else self.given
        with quietly(), self.elsewhere.fresh():
            value = self.elsewhere.apart(function(*ours[0], **ours[1]))
            others = self._written_elsewhere()
        found = differences(value, self.value, eps=self.eps)
        if any(d.problem for d in found):
            with quietly(), self.elsewhere.fresh():
                found = _judged(found, value, self.value, self.reference, self.given)
        found += tuple(d for d in others if d.problem or d.ulp > 0)
        if not self.writes:
            return Comparison(found)
        written = differences(ours, self.written, "arguments", self.eps)
        return Comparison((*found, *(d for d in written if d.problem or d.ulp > 0)))

    def _written_elsewhere(self) -> tuple[Difference, ...]:
        """What a call wrote to other arrays than those of its arguments."""
        arrays = self.elsewhere.arrays.items()
        return tuple(d for n, a in arrays for d in differences(a, self.others[n], n, self.eps))


def check(
    compiled: Function,
    reference: Function,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    writes: bool = True,
    eps: float = 0.0,
    elsewhere: Around = NOWHERE,
) -> Comparison:
    """Compare the answers of both on copies of the arguments, as `Wanted` says."""
    return Wanted.of(reference, args, kwargs, writes, eps, elsewhere).check(compiled)


BF16_EPS = 2.0**-12  # what is allowed then is a few of bfloat16's own 2**-8 of the largest value


def coarsest(graph: Graph, precision: str = "") -> float:
    """What one rounding may change, relatively, of the coarsest float a program computes.

    A float64 that was rounded to float32 on the way is no better than that.  precision: what the
    user allows (`Options.precision`).
    """
    if precision == "bf16":
        return BF16_EPS
    kinds = {
        n.type.dtype for n in graph.nodes if not isinstance(n.op, Input | Constant | View | Source)
    }
    return max((float(np.finfo(t.char).eps) for t in kinds if t.kind in "fc"), default=0.0)


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


def _widened(value: Any, to: type[Any] = np.longdouble) -> Any:
    """Nested arguments with float arrays as long doubles, or as another type."""
    arrays: dict[int, Any] = {
        id(v): v.astype(np.clongdouble if v.dtype.kind == "c" else to)
        for _, v in leaves(value, "")
        if isinstance(v, (np.ndarray, np.generic)) and v.dtype.kind in "fc"
    }
    return rebuild(value, arrays)


def errors(
    ours: Any, theirs: Any, reference: Function, given: tuple[Any, Any]
) -> tuple[float, float] | None:
    """How far two answers are from that in float64: the root of the mean square, relatively.

    None where the function does not take float64, or gives no floats.
    """
    try:
        args, kwargs = _widened(twin(given), np.float64)
        with quietly():
            true = list(leaves(reference(*args, **kwargs), ""))
    except Exception:  # it says nothing then
        return None
    found = [
        tuple(np.asarray(v, np.float64).ravel() for v in row)
        for row in zip(*([x for _, x in leaves(v, "")] for v in (ours, theirs)), strict=False)
        if getattr(row[0], "dtype", np.dtype(int)).kind == "f"
    ]
    wanted = [np.asarray(v).ravel() for _, v in true if getattr(v, "dtype", None) == np.float64]
    if not found or len(found) != len(wanted):
        return None
    a, b = (np.concatenate(side) for side in zip(*found, strict=True))
    c = np.concatenate(wanted)
    size = float(np.sqrt(np.mean(c**2)))
    if not size or not np.isfinite(size):
        return None
    return tuple(float(np.sqrt(np.mean((x - c) ** 2))) / size for x in (a, b))  # type: ignore[return-value]


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
    eps: float = 0.0,
    elsewhere: Around = NOWHERE,
) -> Comparison:
    """Check that both give the same answer, then time them in turn.

    A wrong answer is not timed.  Arrays of the caller are never written to: a function that may
    write to its arguments (`writes`) gets copies, which are restored before each sample.
    """
    found = check(compiled, reference, args, kwargs, writes, eps, elsewhere)
    if not found.agrees:
        return found
    neighbours = Neighbours()
    given = (tuple(args), dict(kwargs or {}))
    ours, theirs = (twin(given), twin(given)) if writes else (given, given)
    again = (partial(restore, ours, given), partial(restore, theirs, given))
    with quietly(), elsewhere.fresh():
        pair = alternate(
            [(compiled, *ours), (reference, *theirs)], seconds, again if writes else ()
        )
    (fast, fast_samples), (slow, slow_samples) = pair
    speedup = ratio(slow_samples, fast_samples)
    return Comparison(
        found.differences,
        fast,
        slow,
        speedup.median,
        speedup.low,
        speedup.high,
        neighbours.cores(),
    )
