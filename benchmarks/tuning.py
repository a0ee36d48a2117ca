"""What the tuner makes of ten kernels in so many seconds each: `python -m benchmarks.tuning`.

    python -m benchmarks.tuning [--seconds 30] [--kernels gemm,softmax] [--seed 0] [--drawn 60]

Each starts without a record. The default schedule and the one that was found take turns at the end,
in this process, as in a call; the table has their medians and the ratio; how near the limit
(measured by `benchmarks.floors`; `benchmarks.ten_kernels` says what it is of which) the default
schedule comes where nothing disturbs it, and the best that was found; the trials per second of
search; and of the kernel with the most trials the rank correlation of the learned cost model with
measurements it has not seen. As is usual for cost models (TenSet), these are of schedules drawn at
random from the whole space after the search (--drawn): of the model of the first 100 trials, of
that of all, and of measuring them once more, which no model can be above. The last two columns are
of the search's own trials, five-fold: they crowd near the best, where noise decides the order; of
all pairs, and of those that differ by more than measuring the same twice (beyond).
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Sequence

from benchmarks import machine
from benchmarks.floors import Floor, floor_of
from benchmarks.ten_kernels import SUBJECTS
from nbcomp.display.view.words import seconds as duration
from nbcomp.jitted import jit
from nbcomp.measure.timing import Neighbours
from nbcomp.tuning.result import Ranking, Tuned
from nbcomp.tuning.tune import tune

SAME = 0.97  # of the default's time and more: no gain


HEAD = (
    "kernel        | NumPy    | default  | tuned    | gain (quartiles)  | limit by      | default "
    "| best  | trials | per s | ρ 100 | ρ    | again | own  | beyond"
)
NEAR = 0.95  # of the limit
WANTED = 1.15  # a gain


def of_limit(tuned: Tuned, floor: Floor, found: bool = False) -> float:
    """The share of the limit that the default schedules reach where nothing disturbs them; found:
    those that are used in the end."""
    seconds = 0.0
    for kernel in tuned.kernels:
        change = kernel.change.median if found and kernel.change else 1.0
        seconds += kernel.state.calls * kernel.state.default * change
    return floor.seconds / seconds


def line(name: str, tuned: Tuned, floor: Floor) -> str:
    """A row of the table."""
    assert tuned.default
    own = tuned.own or tuned.default
    change = tuned.change
    gain = (
        f"{1 / change.median:.2f} ({1 / change.high:.2f}–{1 / change.low:.2f})" if change else "1"
    )
    state = max(tuned.kernels, key=lambda k: len(k.state.points)).state
    drawn = state.ranking or Ranking(0, math.nan, math.nan, math.nan)
    ranks = (drawn.early, drawn.late, drawn.again, state.correlation, state.beyond)
    shown = ["" if math.isnan(r) else f"{r:.2f}" for r in ranks]
    numpy = duration(tuned.numpy.median) if tuned.numpy else ""
    return (
        f"{name:<13} | {numpy:>8} | {duration(tuned.default.median):>8} | "
        f"{duration(own.median):>8} | {gain:<17} | "
        f"{floor.by:<13} | {100 * of_limit(tuned, floor):>5.0f} % | "
        f"{100 * of_limit(tuned, floor, found=True):>3.0f} % | "
        f"{tuned.trials:>6} | {tuned.rate:>5.1f} | {shown[0]:>5} | {shown[1]:>4} | {shown[2]:>5} | "
        f"{shown[3]:>4} | {shown[4]:>4}"
    )


def summary(found: Sequence[Tuned], floors: Sequence[Floor]) -> str:
    """The geometric mean of the gains, how many there were, how many were at the limit, and how
    many end as is asked: there, or clearly faster."""
    changes = [t.change.median if t.change else 1.0 for t in found]
    at_limit = sum(of_limit(t, f) >= NEAR for t, f in zip(found, floors, strict=True))
    mean = math.exp(-sum(map(math.log, changes)) / len(changes))
    gained = sum(c < SAME for c in changes)
    slower = sum(c > 1.0 for c in changes)
    pairs = list(zip(found, floors, changes, strict=True))
    done = sum(c <= 1 / WANTED or of_limit(t, f, found=True) >= NEAR for t, f, c in pairs)
    return (
        f"Geometric mean of the gains: {mean:.2f}; {gained} of {len(changes)} kernels gained, "
        f"{slower} ended slower than by default; {at_limit} were within 5 % of their limit by "
        f"default; {done} end there or gained {WANTED}."
    )


def main() -> None:
    """Tune, and print the table row by row."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=30.0, help="of search for each kernel")
    parser.add_argument("--kernels", default="", help="names, separated by commas; all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--drawn", type=int, default=60, help="at random, to judge the model by")
    chosen = parser.parse_args()
    names = chosen.kernels.split(",") if chosen.kernels else [s.name for s in SUBJECTS]
    if unknown := set(names) - {s.name for s in SUBJECTS}:
        parser.error(f"no kernel {min(unknown)}; there are {', '.join(s.name for s in SUBJECTS)}")
    os.environ["NBCOMP_RECORD"] = "off"
    where = f"{machine.processor()}, {machine.cores()} cores"
    print(f"{where}; {chosen.seconds:g} s each\n\n{HEAD}", flush=True)
    found, floors, neighbours = [], [], Neighbours()
    for subject in SUBJECTS:
        if subject.name in names:
            arguments = subject.arguments()
            how = {"seconds": chosen.seconds, "seed": chosen.seed, "drawn": chosen.drawn}
            tuned = tune(subject.function, *arguments, **how)
            compiled = jit(subject.function).compile(*arguments)
            floors.append(floor_of(compiled, arguments, subject.least))
            print(line(subject.name, tuned, floors[-1]), flush=True)
            found.append(tuned)
    print(f"\n{summary(found, floors)}")
    print(f"Other programs kept {neighbours.cores():.1f} cores busy meanwhile.")


if __name__ == "__main__":
    main()
