"""The tuner against TVM's MetaSchedule with the same seconds: `python -m benchmarks.metaschedule`.

    python -m benchmarks.metaschedule --peer /path/to/python [--seconds 30] [--kernels gemm,conv]

The peer is a Python with TVM, which searches in a process of its own (`metaschedule_peer`); both
searches begin when their processes are there.  The table has the best of each after so many seconds
and at the end, as each measures it, and how many candidates were timed; candidates of the peer's
that could not be built or run are counted above it, with the exception.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine
from benchmarks.ten_kernels import SUBJECTS
from nbcomp.display.view.words import seconds as duration
from nbcomp.measure.timing import Neighbours
from nbcomp.tuning.tune import tune

KERNELS = {"gemm": "gemm", "conv": "conv 3x3"}
MOMENTS = (5.0, 10.0, 20.0)  # seconds after which the best so far is shown
SLACK = 120.0  # seconds a peer may take to start, and to end its last round
Points = Sequence[tuple[float, float]]  # seconds since the beginning, seconds of the best so far


def own(name: str, seconds: float) -> tuple[Points, float]:
    """The search of nbcomp: what was found when, and the best at the end."""
    (subject,) = (s for s in SUBJECTS if s.name == KERNELS[name])
    tuned = tune(subject.function, *subject.arguments(), seconds=seconds)
    points, best = [], math.inf
    for found in tuned.kernels:
        for point in found.state.points:
            best = min(best, point.seconds or math.inf)
            points.append((point.at, best))
    return points, sum(k.state.calls * k.state.best for k in tuned.kernels)


def peers(python: str, name: str, seconds: float) -> tuple[Points, float]:
    """The same of the peer; the best is infinite where it did not come to its end."""
    script = Path(__file__).with_name("metaschedule_peer.py")
    command = [python, str(script), name, str(seconds), str(machine.cores())]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=seconds + SLACK
        )
        text, errors = done.stdout, done.stderr
    except subprocess.TimeoutExpired as error:
        text, errors = str(error.stdout or b"", "utf-8"), "it took too long to end"
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    points = [(line["at"], line["best"]) for line in lines if "at" in line]
    final = next((line["final"] for line in lines if "final" in line), math.inf)
    said = [line["failed"] for line in lines if "failed" in line]
    if final == math.inf and errors.strip():
        said.append(errors.strip().splitlines()[-1])
    for words in said:
        print(f"the peer on {name}: {words}")
    return points, min(final, points[-1][1]) if points else final


def after(points: Points, seconds: float) -> float:
    """The best after so many seconds; infinite where there was none."""
    return min((best for at, best in points if at <= seconds), default=math.inf)


def row(name: str, who: str, points: Points, final: float) -> str:
    """A row of the table."""
    cells = [after(points, moment) for moment in MOMENTS] + [final]
    shown = [duration(c) if c < math.inf else "none yet" for c in cells]
    return f"{name:<6} | {who:<13} | {' | '.join(f'{c:>8}' for c in shown)} | {len(points):>6}"


def main() -> None:
    """Search both ways, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peer", required=True, help="a Python with apache-tvm and xgboost")
    parser.add_argument("--seconds", type=float, default=30.0, help="of search for each kernel")
    parser.add_argument("--kernels", default="gemm,conv")
    chosen = parser.parse_args()
    os.environ["NBCOMP_RECORD"] = "off"
    neighbours = Neighbours()
    moments = " | ".join(f"{f'at {m:g} s':>8}" for m in MOMENTS)
    print(f"kernel | search        | {moments} | best     | trials")
    for name in chosen.kernels.split(","):
        print(row(name, "nbcomp", *own(name, chosen.seconds)), flush=True)
        print(row(name, "MetaSchedule", *peers(chosen.peer, name, chosen.seconds)), flush=True)
    print(f"Other programs kept {neighbours.cores():.1f} cores busy meanwhile.")


if __name__ == "__main__":
    main()
