"""Honest measuring: equality first, then timings that alternate between the two sides.

A `Timing` is a median with its quartiles, a `Comparison` is a compiled function against its Python
original on the same arguments, a `Scaling` is that comparison at many batch sizes.  All are plain
data. Knows how to call and compare functions; it must not know how they were compiled or how they
are shown.
"""

from __future__ import annotations

import gc
import itertools
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Function = Callable[..., Any]

SIZES = (1, 4, 16, 64, 256, 1024, 4096, 16384)
SAMPLE = (
    1e-3  # seconds one sample should last: far above the clock's resolution and the loop's cost
)
ROUNDS = 3  # turns of each side
REST = 0.03  # seconds between turns: OpenBLAS's threads spin for 2^26 cycles
LARGEST_BATCH = 1 << 27  # bytes of one batch argument; larger sizes are left out
LARGE = 1 << 25  # bytes of all arguments above which no batch larger than the cell's own is tried
CHUNK = 1 << 20  # elements compared at a time: the comparison needs a few arrays of that size
DRIFT = 16  # calls in one sample of a function that changes its arguments, before they are restored
CLOSER = 4  # times the distance of NumPy's own answer from the true one that ours may have

# How far a floating-point result may be from NumPy's before it counts as a different answer: orders
# of summation differ, so a few roundings do; a wrong formula is far beyond.
RELATIVE_EPS = 1024
ABSOLUTE_EPS = 64


# ------------------------------------------------------------------------------------- plain data


@dataclass(frozen=True)
class Timing:
    """Seconds per call: the median of `samples` samples of `loops` calls each, and quartiles."""

    median: float
    low: float
    high: float
    samples: int
    loops: int


@dataclass(frozen=True)
class Difference:
    """One output against NumPy's: the largest distance in ulp and in absolute value.

    `scaled` is the absolute distance in ulp of the output's largest magnitude: what remains of the
    difference where values near zero came from subtracting larger ones.  `problem` says what makes
    it a different answer (dtype, shape, a value); empty when it agrees.
    """

    name: str
    ulp: float = 0.0
    absolute: float = 0.0
    problem: str = ""
    scaled: float = 0.0


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


# ------------------------------------------------------------------------------------- differences


def ulp_distance(a: Array, b: Array) -> Array:
    """For each element how many representable values lie between a and b (same floating dtype).

    NaN against NaN is 0, NaN against a number is inf; -0.0 and 0.0 are the same point.
    """
    if a.dtype.kind == "c":
        worse: Array = np.maximum(ulp_distance(a.real, b.real), ulp_distance(a.imag, b.imag))
        return worse
    bits = np.dtype(f"u{a.dtype.itemsize}")
    sign = bits.type(1 << (8 * bits.itemsize - 1))

    def key(x: Array) -> Array:
        u = np.ascontiguousarray(x).view(bits)
        ordered: Array = np.where(u & sign, sign - (u & ~sign), sign + u)
        return ordered

    ka, kb = key(a), key(b)
    distance = np.where(ka > kb, ka - kb, kb - ka).astype(np.float64)
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    distance[nan_a & nan_b] = 0.0
    distance[nan_a ^ nan_b] = np.inf
    return distance.reshape(a.shape)


def difference(name: str, ours: Any, theirs: Any) -> Difference:
    """Compare one value of ours with NumPy's: kind, dtype and shape first, then every element."""
    kind_a, kind_b = (
        type(v).__name__ if not isinstance(v, np.generic) else "scalar" for v in (ours, theirs)
    )
    a, b = np.asarray(ours), np.asarray(theirs)
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return _problem(
            name, f"is {a.dtype}{list(a.shape)} where NumPy gives {b.dtype}{list(b.shape)}"
        )
    if kind_a != kind_b:
        return _problem(name, f"is a {kind_a} where NumPy gives a {kind_b}")
    if a.dtype.char not in "efdFD":
        equal = bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))
        return Difference(name) if equal else _problem(name, _first(a, b, a != b))
    return _float_difference(name, np.atleast_1d(a), np.atleast_1d(b))


def _float_difference(name: str, a: Array, b: Array) -> Difference:
    """In chunks; a value is judged by its own size and by the largest of the whole output."""
    flat = list(_chunks(a, b))
    if not flat:
        return Difference(name)
    largest = max(float(np.abs(y[np.isfinite(y)]).max(initial=0)) for _, _, y in flat)
    parts = [_chunk_difference(name, x, y, largest, start, a.shape) for start, x, y in flat]
    eps = float(np.finfo(a.dtype).eps)
    gap = max(d.absolute for d in parts)
    return Difference(
        name,
        ulp=max(d.ulp for d in parts),
        absolute=gap,
        problem=next((d.problem for d in parts if d.problem), ""),
        scaled=gap / (eps * largest) if largest else 0.0,
    )


def _chunks(a: Array, b: Array) -> Iterator[tuple[int, Array, Array]]:
    """Pieces of two arrays of one shape, in C order, with the index of their first element."""
    x, y = a.reshape(-1), b.reshape(-1)
    for start in range(0, x.size, CHUNK):
        yield start, x[start : start + CHUNK], y[start : start + CHUNK]


def _chunk_difference(
    name: str, a: Array, b: Array, largest: float, start: int, shape: tuple[int, ...]
) -> Difference:
    ulp = ulp_distance(a, b)
    finite = np.isfinite(a) & np.isfinite(b)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    gap = np.abs(np.subtract(a, b, where=finite, out=np.zeros(a.shape, wide), dtype=wide))
    size = np.where(finite, np.abs(b), 0).astype(np.float64)
    eps = float(np.finfo(a.dtype).eps)
    allowed = RELATIVE_EPS * eps * size + ABSOLUTE_EPS * eps * largest
    wrong = np.where(finite, gap > allowed, ulp > 0)
    problem = ""
    if wrong.any():
        first = int(np.argmax(wrong))
        where = [int(i) for i in np.unravel_index(start + first, shape)]
        problem = f"differs at {where}: {a[first]!s} where NumPy gives {b[first]!s}"
    return Difference(name, float(ulp.max()), float(gap.max()), problem)


def _problem(name: str, problem: str) -> Difference:
    return Difference(name, math.inf, math.inf, problem)


def _first(a: Array, b: Array, wrong: Array) -> str:
    where = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
    ours, theirs = np.atleast_1d(a)[where], np.atleast_1d(b)[where]
    return f"differs at {list(where)}: {ours!s} where NumPy gives {theirs!s}"


def leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The arrays and numbers in nested tuples, lists and dicts, with a name for each."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{name}[{key!r}]")
    elif isinstance(value, (tuple, list)):
        for i, item in enumerate(value):
            yield from leaves(item, f"{name}[{i}]")
    else:
        yield name, value


def differences(ours: Any, theirs: Any, name: str = "result") -> tuple[Difference, ...]:
    """Compare two nested results; a different structure is one problem."""
    a, b = list(leaves(ours, name)), list(leaves(theirs, name))
    if [n for n, _ in a] != [n for n, _ in b]:
        return (_problem(name, f"has {len(a)} values where NumPy gives {len(b)}"),)
    return tuple(difference(n, x, y) for (n, x), (_, y) in zip(a, b, strict=True))


# --------------------------------------------------------------------------------------- arguments


def twin(value: Any) -> Any:
    """A copy of nested arguments whose arrays keep their strides and their overlaps with each
    other.
    """
    arrays = {id(v): v for _, v in leaves(value, "") if isinstance(v, np.ndarray)}
    return _rebuild(value, _copies(list(arrays.values())))


def _copies(arrays: list[Array]) -> dict[int, Array]:
    """For each array (by id) an equal one, over copies of the memory spans the arrays lie in."""
    spans: list[tuple[int, int, list[Array]]] = []
    bounded = [(*np.lib.array_utils.byte_bounds(a), a) for a in arrays]
    for low, high, array in sorted(bounded, key=lambda span: span[:2]):
        if spans and low < spans[-1][1]:
            begin, end, members = spans.pop()
            spans.append((begin, max(end, high), [*members, array]))
        else:
            spans.append((low, high, [array]))
    result = {}
    for begin, end, members in spans:
        buffer = np.empty(end - begin, np.uint8)
        for a in members:
            start = np.lib.array_utils.byte_bounds(a)[0] - begin
            first = a.__array_interface__["data"][0] - begin if a.size else start
            copy: Array = np.ndarray(a.shape, a.dtype, buffer, first, a.strides)
            copy[...] = a
            copy.flags.writeable = a.flags.writeable
            result[id(a)] = copy
    return result


def _rebuild(value: Any, arrays: dict[int, Array]) -> Any:
    if isinstance(value, dict):
        return {k: _rebuild(v, arrays) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        items = [_rebuild(v, arrays) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return arrays.get(id(value), value)


def batch_arguments(args: Sequence[Any]) -> tuple[int, ...]:
    """The positions of the arrays that share the leading dimension of the first array argument."""
    arrays = [(i, a) for i, a in enumerate(args) if isinstance(a, np.ndarray) and a.ndim > 0]
    rows = next((a.shape[0] for _, a in arrays), 0)
    return tuple(i for i, a in arrays if a.shape[0] == rows and rows > 0)


def resized(args: Sequence[Any], positions: Sequence[int], size: int) -> tuple[Any, ...]:
    """The arguments with the rows of those at `positions` repeated or cut to `size`."""
    new = list(args)
    for i in positions:
        rows = np.arange(size) % args[i].shape[0]
        new[i] = args[i][:size] if size <= args[i].shape[0] else args[i][rows]
    return tuple(new)


# ----------------------------------------------------------------------------------------- timing


class Neighbours:
    """How many of our cores other programs have kept busy since this was made; 0 when not known.

    From the sums of /proc/stat (proc(5)), in clock ticks; iowait and idle time are not work.  Cores
    this process may not use are taken to be the ones the others use first.
    """

    def __init__(self) -> None:
        self._start, self._busy = time.perf_counter(), self._seconds()

    def cores(self) -> float:
        """The mean number so far."""
        elapsed = max(time.perf_counter() - self._start, 1e-9)
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        elsewhere = (os.cpu_count() or usable) - usable
        return max((self._seconds() - self._busy) / elapsed - elsewhere, 0.0)

    @staticmethod
    def _seconds() -> float:
        try:
            with open("/proc/stat", encoding="ascii") as file:
                user, nice, system, _, _, irq, soft = map(int, file.readline().split()[1:8])
        except (OSError, ValueError):
            return 0.0
        own = os.times()
        ticks = user + nice + system + irq + soft
        return ticks / os.sysconf("SC_CLK_TCK") - own.user - own.system


@contextmanager
def _no_collection() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _sample(call: Function, args: Sequence[Any], kwargs: Mapping[str, Any], loops: int) -> float:
    """Seconds per call over `loops` calls."""
    turns = itertools.repeat(None, loops)
    start = time.perf_counter()
    if kwargs:
        for _ in turns:
            call(*args, **kwargs)
    else:
        for _ in turns:
            call(*args)
    return (time.perf_counter() - start) / loops


def _loops(call: Function, args: Sequence[Any], kwargs: Mapping[str, Any], sample: float) -> int:
    """How many calls one sample of about `sample` seconds takes; warms up on the way."""
    loops = 1
    while True:
        seconds = _sample(call, args, kwargs, loops) * loops
        if seconds >= sample or loops >= 1 << 20:
            return loops
        guess = int(loops * 1.2 * sample / max(seconds, 1e-9)) + 1
        loops = min(max(guess, 2 * loops), 10 * loops)


def _timing(samples: Sequence[float], loops: int) -> Timing:
    low, median, high = np.percentile(samples, [25, 50, 75])
    return Timing(float(median), float(low), float(high), len(samples), loops)


def measure(call: Callable[[], Any], seconds: float = 0.5) -> Timing:
    """Time a call without arguments for about `seconds`; warm-up excluded."""
    return alternate([(call, (), {})], seconds)[0][0]


def alternate(
    calls: Sequence[tuple[Function, Sequence[Any], Mapping[str, Any]]],
    seconds: float,
    restore: Sequence[Callable[[], None]] = (),
) -> list[tuple[Timing, list[float]]]:
    """Time several calls in turn, so that a busy machine slows all of them alike.

    Each side rests before its turn, until the threads of the other side's libraries have gone to
    sleep: those of OpenBLAS spin for that long after a product, and would take a core away.
    `restore`, one for each call, is run before each of its samples, which then are short.
    Returns for each call its timing and its samples, in the order they were taken.
    """
    samples: list[list[float]] = [[] for _ in calls]
    rest = REST if len(calls) > 1 else 0.0
    block = max(seconds / (ROUNDS * len(calls)) - rest, 2 * SAMPLE)
    with _no_collection():
        loops = [_loops(*call, min(SAMPLE, seconds / 10)) for call in calls]
        if restore:
            loops = [min(count, DRIFT) for count in loops]
        before = restore or [_nothing] * len(calls)
        for _ in range(ROUNDS):
            for call, count, taken, ready in zip(calls, loops, samples, before, strict=True):
                time.sleep(rest)
                _sample(*call, 1)  # wakes this side's own threads
                taken.extend(_block(call, count, block, ready))
    return [(_timing(taken, count), taken) for taken, count in zip(samples, loops, strict=True)]


def _nothing() -> None:
    """What is to be restored for a function that changes nothing."""


def _block(
    call: tuple[Function, Sequence[Any], Mapping[str, Any]],
    loops: int,
    seconds: float,
    ready: Callable[[], None],
) -> Iterator[float]:
    """Samples of one call for about `seconds`, at least one."""
    end = time.perf_counter() + seconds
    while True:
        ready()
        yield _sample(*call, loops)
        if time.perf_counter() >= end:
            return


@contextmanager
def quietly() -> Iterator[None]:
    """Warnings of calls that only measure are not the user's."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


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
    return _rebuild(value, arrays)


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
    restore = (partial(_restore, ours, given), partial(_restore, theirs, given))
    with quietly():
        pair = alternate(
            [(compiled, *ours), (reference, *theirs)], seconds, restore if writes else ()
        )
    (fast, fast_samples), (slow, slow_samples) = pair
    ratios = [b / a for a, b in _pairs(fast_samples, slow_samples)]
    low, ratio, high = (float(q) for q in np.percentile(ratios, [25, 50, 75]))
    others = neighbours.cores()
    return Comparison(found.differences, fast, slow, ratio, low, high, others)


def _restore(copies: Any, originals: Any) -> None:
    """Give the arrays of copied arguments the values they were copied with."""
    for (_, copy), (_, original) in zip(leaves(copies, ""), leaves(originals, ""), strict=False):
        if isinstance(copy, np.ndarray) and copy.flags.writeable:
            copy[...] = original


def _pairs(a: Sequence[float], b: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Pairs samples taken at about the same time; the shorter list repeats its entries."""
    count = max(len(a), len(b))
    for i in range(count):
        yield a[i * len(a) // count], b[i * len(b) // count]


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
) -> Scaling:
    """Compare across batch sizes, about `seconds` in total; on slow machines at most twice that.

    The batch axis is the leading axis of the first array argument and of those as long as it.  A
    size at which either side raises is left out, and named with its error.  operators: how many
    operators the program has for such arguments; when they grow with the batch, each size is
    another program, and none is measured.
    """
    with quietly():
        positions = _varying(reference, args, kwargs or {})
        if not positions:
            return Scaling((), reason="no argument has a leading axis whose length can be varied")
        if operators and (grown := _growth(operators, args, kwargs or {}, positions)):
            return Scaling((), reason=grown)
        sweep = _Sweep(compiled, reference, tuple(args), kwargs, positions, writes)
        return sweep.run(sorted(sizes), seconds, progress)


@dataclass
class _Sweep:
    """A comparison at one batch size after the other."""

    compiled: Function
    reference: Function
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] | None
    positions: tuple[int, ...]
    writes: bool
    points: list[Point] = field(default_factory=list)

    def run(
        self, sizes: Sequence[int], seconds: float, progress: Callable[[int], None] | None
    ) -> Scaling:
        """All sizes, in order."""
        neighbours = Neighbours()
        skipped: list[tuple[int, str]] = []
        end = time.perf_counter() + seconds
        for left, size in zip(range(len(sizes), 0, -1), sizes, strict=True):
            rest = end - time.perf_counter()
            why = self._too_large(size) or self._too_slow(size, rest + seconds)
            if not why:
                if progress:
                    progress(size)
                why = self._try(size, 0.7 * max(rest, 0.2 * seconds) / left)
            if why:
                skipped.append((size, why))
        return Scaling(tuple(self.points), tuple(skipped), others=neighbours.cores())

    def _try(self, size: int, seconds: float) -> str:
        """Measure one size; why it cannot be measured, empty when it was."""
        batch = resized(self.args, self.positions, size)
        known = len(getattr(self.compiled, "fallbacks", ()))
        try:
            point = _point(
                self.compiled, self.reference, batch, self.kwargs, size, seconds, self.writes
            )
        except Exception as error:  # whatever the user's function raises for such a batch
            said = str(error).strip().splitlines()
            return f"cannot be run: {said[0] if said else type(error).__name__}"
        if refused := getattr(self.compiled, "fallbacks", ())[known:]:
            return f"cannot be compiled: {str(refused[-1]).splitlines()[-1]}"
        self.points.append(point)
        return ""

    def _too_large(self, size: int) -> str:
        arrays = [self.args[i] for i in self.positions]
        rows = arrays[0].shape[0]
        batch = size * max(a.nbytes // rows for a in arrays)
        if batch > LARGEST_BATCH:
            return f"the batch would take {batch / 2**20:.0f} MiB"
        if size > rows and sum(a.nbytes for a in arrays) > LARGE:
            return "larger than the arguments, which are large already"
        return ""

    def _too_slow(self, size: int, rest: float) -> str:
        late = rest < 0 or (self.points and _estimate(self.points[-1], size) > rest)
        return "out of time" if late else ""


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


def _point(
    compiled: Function,
    reference: Function,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None,
    size: int,
    seconds: float,
    writes: bool,
) -> Point:
    given = (tuple(args), dict(kwargs or {}))
    ours = twin(given) if writes else given
    start = time.perf_counter()
    compiled(*ours[0], **ours[1])
    first = time.perf_counter() - start
    found = compare(compiled, reference, args, kwargs, max(seconds, 0.02), writes)
    return Point(size, first, found)


def _estimate(point: Point, size: int) -> float:
    """Seconds a comparison at `size` would take at least, were the time linear in it."""
    c = point.comparison
    both = sum(t.low for t in (c.compiled, c.reference) if t)
    return (2 + 2 * ROUNDS) * both * size / point.size + 2 * ROUNDS * REST
