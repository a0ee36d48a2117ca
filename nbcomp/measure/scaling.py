"""The comparison with NumPy across batch sizes: what varies with the batch, and what is left out.

Knows comparisons and arguments; it must not know how functions were compiled.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nbcomp.measure.arguments import NOWHERE, Elsewhere, batch_arguments, resized, twin
from nbcomp.measure.comparison import Comparison, compare
from nbcomp.measure.timing import REST, ROUNDS, Function, Neighbours, quietly

SIZES = (1, 4, 16, 64, 256, 1024, 4096, 16384)
LARGEST_BATCH = 1 << 27  # bytes of one batch argument; larger sizes are left out
LARGE = 1 << 25  # bytes of all arguments above which no batch larger than the cell's own is tried
SHARE = 0.4  # of the time there is for a size: rests between turns and first calls take more


@dataclass(frozen=True)
class Point:
    """One batch size: the comparison, and the seconds of the first compiled call of that shape."""

    size: int
    first_call: float
    comparison: Comparison


@dataclass(frozen=True)
class Scaling:
    """The comparison across batch sizes; `skipped` names the sizes left out and why.

    others: the cores that other programs kept busy meanwhile.
    """

    points: tuple[Point, ...]
    skipped: tuple[tuple[int, str], ...] = ()
    reason: str = ""  # why there are no points at all
    others: float = 0.0

    @property
    def slower(self) -> tuple[int, ...]:
        """The sizes at which the compiled function was slower than NumPy."""
        return tuple(p.size for p in self.points if p.comparison.slower)

    @property
    def wrong(self) -> tuple[int, ...]:
        """The sizes at which an answer differed from NumPy's; they are not timed."""
        return tuple(p.size for p in self.points if not p.comparison.agrees)


def scaling(
    compiled: Function,
    reference: Function,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    sizes: Sequence[int] = SIZES,
    seconds: float = 3.0,
    progress: Callable[[int], None] | None = None,
    writes: bool = True,
    operators: Callable[..., int] | None = None,
    eps: float = 0.0,
    elsewhere: Elsewhere = NOWHERE,
) -> Scaling:
    """Compare across batch sizes, within about `seconds`: those of compiling for new sizes count,
    and sizes that would take longer, from what the size before took, are left out.  The smallest
    size is measured in any case.

    The batch axis is the leading axis of the first array argument and of those as long as it.  A
    size at which either side raises is left out, and named with its error.  operators: how many
    operators the program has for such arguments; when they grow with the batch, each size is
    another program, and none is measured.
    """
    end = time.perf_counter() + seconds
    with quietly():
        positions = _varying(reference, args, kwargs or {})
        if not positions:
            return Scaling((), reason="no argument has a leading axis whose length can be varied")
        if operators and (grown := _growth(operators, args, kwargs or {}, positions)):
            return Scaling((), reason=grown)
        sweep = _Sweep(compiled, reference, tuple(args), kwargs, positions, writes, eps, elsewhere)
        return sweep.run(sorted(sizes), seconds, end, progress)


@dataclass
class _Sweep:
    """A comparison at one batch size after the other."""

    compiled: Function
    reference: Function
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] | None
    positions: tuple[int, ...]
    writes: bool
    eps: float
    elsewhere: Elsewhere = NOWHERE
    points: list[Point] = field(default_factory=list)

    def run(
        self,
        sizes: Sequence[int],
        seconds: float,
        end: float,
        progress: Callable[[int], None] | None,
    ) -> Scaling:
        """All sizes, in order, until `end`."""
        neighbours = Neighbours()
        skipped: list[tuple[int, str]] = []
        for left, size in zip(range(len(sizes), 0, -1), sizes, strict=True):
            rest = end - time.perf_counter()
            why = self._too_large(size)
            if not why and left < len(sizes):
                why = self._too_slow(size, rest, seconds)
            if not why:
                if progress:
                    progress(size)
                why = self._try(size, SHARE * max(rest, 0.2 * seconds) / left)
            if why:
                skipped.append((size, why))
        return Scaling(tuple(self.points), tuple(skipped), others=neighbours.cores())

    def _try(self, size: int, seconds: float) -> str:
        """Measure one size; why it cannot be measured, empty when it was."""
        batch = resized(self.args, self.positions, size)
        known = len(getattr(self.compiled, "fallbacks", ()))
        try:
            point = self._point(batch, size, seconds)
        except Exception as error:  # whatever the user's function raises for such a batch
            said = str(error).strip().splitlines()
            return f"cannot be run: {said[0] if said else type(error).__name__}"
        if refused := getattr(self.compiled, "fallbacks", ())[known:]:
            return f"cannot be compiled: {str(refused[-1]).splitlines()[-1]}"
        self.points.append(point)
        return ""

    def _point(self, args: tuple[Any, ...], size: int, seconds: float) -> Point:
        given = (args, dict(self.kwargs or {}))
        ours = twin(given) if self.writes else given
        with self.elsewhere.fresh():
            start = time.perf_counter()
            self.compiled(*ours[0], **ours[1])
            first = time.perf_counter() - start
        both = self.compiled, self.reference, args, self.kwargs
        how = self.writes, self.eps, self.elsewhere
        return Point(size, first, compare(*both, max(seconds, 0.02), *how))

    def _too_large(self, size: int) -> str:
        arrays = [self.args[i] for i in self.positions]
        rows = arrays[0].shape[0]
        batch = size * max(a.nbytes // rows for a in arrays)
        if batch > LARGEST_BATCH:
            return f"the batch would take {batch / 2**20:.0f} MiB"
        if size > rows and sum(a.nbytes for a in arrays) > LARGE:
            return "larger than the arguments, which are large already"
        return ""

    def _too_slow(self, size: int, rest: float, seconds: float) -> str:
        """Whether a size would end too late; `rest` is what is left of `seconds`."""
        if not self.points:
            return "" if rest > 0 else f"out of time: preparing took all of {seconds:.1f} s"
        last = self.points[-1]
        if rest > 0 and last.first_call + _estimate(last, size) <= rest:
            return ""
        compiling = sum(p.first_call for p in self.points)
        most = f"; compiling for new sizes took {compiling:.1f} s" if compiling > 0.1 else ""
        return f"out of time: all sizes were to take {seconds:.1f} s{most}"


def _growth(
    operators: Callable[..., int],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    positions: Sequence[int],
) -> str:
    """Why the program is another one for each batch size; empty when it is not, or who knows."""
    small, large = 3, 5
    try:
        few, many = (operators(*resized(args, positions, n), **kwargs) for n in (small, large))
    except Exception:  # a size that cannot be run: each size says so by itself
        return ""
    if many <= few:
        return ""
    return (
        f"not measured across batch sizes: the program grows with the batch ({few} operators for "
        f"{small} rows, {many} for {large}), as a Python loop over rows makes it"
    )


def _varying(
    reference: Function, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[int, ...]:
    """The batch arguments, or only the first of them when the others do not vary with it."""
    positions = batch_arguments(args)
    for candidate in (positions, positions[:1]):
        if not candidate:
            continue
        try:
            copy = twin((resized(args, candidate, 2), dict(kwargs)))
            reference(*copy[0], **copy[1])
        except Exception:  # any error means that these arguments cannot vary together
            continue
        return candidate
    return ()


def _estimate(point: Point, size: int) -> float:
    """Seconds a comparison at `size` would take at least, were the time linear in it."""
    c = point.comparison
    both = sum(t.low for t in (c.compiled, c.reference) if t)
    return (2 + 2 * ROUNDS) * both * size / point.size + ROUNDS * REST
