"""Lengths that differ from call to call, against one length: `python -m benchmarks.dynamic`.

Every workload of the table is compiled for its own lengths alone, and by a jitted function that has
seen other lengths before, so that the length is open; both are called in turns on the same arrays.
Asked for: at most 1.1 times the specialised time, and no first call for a length within the range.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import nbcomp
from benchmarks.workloads import WORKLOADS, Array
from nbcomp.sizes import is_open

ROUNDS = 15
SECONDS = 0.02  # of calls in one round
BEFORE = (0.6, 0.75)  # of the workload's lengths: what is seen before

# The axes whose length differs, by argument.  A batch of 1 is a length of its own, and is left out.
FIRST = (
    *("gelu_1k", "gelu_1m", "gelu_16m", "softmax", "layernorm", "colsum_sq", "mlp_b128"),
    *("matmul512_bias_relu", "matmul64_gelu", "logits_nll"),
)
OPEN: dict[str, dict[str, tuple[int, ...]]] = {
    **{name: {"x": (0,)} for name in FIRST},
    "dist2": {"x": (0,), "y": (0,)},
    "black_scholes": {"s": (0,), "k": (0,), "t": (0,)},
    "rnn_cell": {"x": (0,), "h": (0,)},
    "attention": {"q": (0,), "k": (0,), "v": (0,)},
    "jacobi": {"a": (0, 1)},
    "pairwise": {"p": (0,)},
}


@dataclass(frozen=True)
class Line:
    """One workload: medians in seconds, and what the open code is for."""

    title: str
    specialised: float
    open: float
    ranges: str
    compiled: int  # times, for all lengths tried
    new: float  # the first call for a new length in the range, less a later one; compiled if < 0

    def __str__(self) -> str:
        ratio = self.open / self.specialised
        new = "compiled" if self.new < 0 else f"{self.new * 1e6:+.0f} µs"
        times = f"{self.specialised * 1e6:12,.1f} {self.open * 1e6:12,.1f} {ratio:6.2f}"
        return f"{self.title:34} {times}  {new:>10}  {self.compiled}  {self.ranges}"


def resized(
    arrays: dict[str, Array], axes: dict[str, tuple[int, ...]], share: float
) -> list[Array]:
    """The arrays with other lengths."""
    made = []
    for name, array in arrays.items():
        shape = list(array.shape)
        for axis in axes.get(name, ()):
            shape[axis] = max(2, int(shape[axis] * share))
        made.append(np.resize(array, shape))
    return made


def alternating(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[float, float]:
    """Median seconds of two calls, in turns."""
    first(), second()
    start = perf_counter()
    first()
    count = max(1, int(SECONDS / max(perf_counter() - start, 1e-7)))
    samples: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for call, own in zip((first, second), samples, strict=True):
            start = perf_counter()
            for _ in range(count):
                call()
            own.append((perf_counter() - start) / count)
    return median(samples[0]), median(samples[1])


def measured(name: str) -> Line:
    """One workload."""
    workload, axes = WORKLOADS[name], OPEN[name]
    arrays = workload.arrays()
    values = list(arrays.values())
    jitted = nbcomp.jit(workload.function)
    for share in BEFORE:
        jitted(*resized(arrays, axes, share))
    jitted(*values)
    taken = [v for v in jitted.variants if v.mismatch(values) is None]
    opened = [v for v in taken if any(is_open(i.shape) for i in v.captured.inputs)]
    plan = opened[0].plan.open if opened else None
    alone = nbcomp.compile(workload.function, *values).entry
    times = alternating(lambda: alone(*values), lambda: jitted(*values))
    ranges = ", ".join(plan.described()) if plan else "not open"
    before = len(jitted.variants)
    new = resized(arrays, axes, 0.97)
    start = perf_counter()
    jitted(*new)
    first = perf_counter() - start
    later = []
    for _ in range(ROUNDS):
        start = perf_counter()
        jitted(*new)
        later.append(perf_counter() - start)
    again = len(jitted.variants) > before
    cost = -1.0 if again else max(first - median(later), 0.0)
    return Line(workload.title, *times, ranges, len(jitted.variants), cost)


def call_overhead() -> str:
    """A call on 16 elements, by code for one length and by code for an open one."""
    x = np.linspace(0.0, 1.0, 16)
    jitted = nbcomp.jit(lambda x: x + x)
    for n in (8, 12):
        jitted(x[:n].copy())
    alone = nbcomp.compile(lambda x: x + x, x).entry
    own, open_ = alternating(lambda: alone(x), lambda: jitted(x))
    return f"call on 16 float64: {own * 1e9:.0f} ns specialised, {open_ * 1e9:.0f} ns open"


def main() -> None:
    """The table; names of workloads as arguments choose rows."""
    print(f"{'':34} {'one length':>12} {'open':>12} {'ratio':>6}  {'new length':>10}  compiled")
    for name in sys.argv[1:] or OPEN:
        print(measured(name), flush=True)
    print(call_overhead())


if __name__ == "__main__":
    main()
