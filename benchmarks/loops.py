"""Explicit loops: `nbcomp.script` against Numba's `njit`, each in a process of its own.

    python -m benchmarks.loops [--rows mandelbrot,crc32] [--peers-venv DIR] [--rounds 5]

For each program both results are first compared with Python's own; then the two take turns, and
the table has the medians of all samples, their spread, and the first call, compilation included.
Both may use every core they choose to; Numba's `njit` chooses one, as its users get it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import IO, Any

import numpy as np

from benchmarks import timing
from benchmarks.loop_programs import ROWS, Row

ROOT = Path(__file__).resolve().parent.parent
BUDGET = 0.3  # seconds of samples, per round and contestant


def compiled(who: str, row: Row) -> Callable[..., Any]:
    """The program as a contestant compiles it."""
    if who == "numba":
        import numba

        return numba.njit(row.function)  # type: ignore[no-any-return]
    import nbcomp

    return nbcomp.script(row.function)  # type: ignore[no-any-return]


def serve(who: str) -> None:
    """Answer commands, a JSON line each: ["first", row], ["time"]."""
    function: Callable[..., Any] = print
    arguments: tuple[Any, ...] = ()
    warm: tuple[Any, ...] = (np.arange(3.0),)
    _warm_up(who, warm)
    for line in sys.stdin:
        command, *rest = json.loads(line)
        if command == "first":
            row = next(r for r in ROWS if r.name == rest[0])
            arguments = row.arguments()
            function = compiled(who, row)
            start = perf_counter()
            result = function(*arguments)
            seconds = perf_counter() - start
            arguments = row.arguments()
            answer: Any = {"seconds": seconds, "result": np.asarray(result).tolist()}
        else:
            answer = timing.samples(partial(function, *arguments), BUDGET)
        print(json.dumps(answer), flush=True)


def _warm_up(who: str, arguments: tuple[Any, ...]) -> None:
    """What a library does once in a process is not the first call of a function."""

    def total(x: Any) -> Any:
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i]
        return s

    compiled(who, Row(total, lambda rng: arguments))(*arguments)


class Contestant:
    """The process of one contestant."""

    def __init__(self, who: str, python: str) -> None:
        self.who = who
        command = [python, "-m", "benchmarks.loops", "--serve", who]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, *command: Any) -> Any:
        """The answer to a command."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        write: IO[str] = self.process.stdin
        write.write(json.dumps(command) + "\n")
        write.flush()
        return json.loads(self.process.stdout.readline())


def run(row: Row, contestants: list[Contestant], rounds: int) -> str:
    """One line of the table.  Raises ValueError where the results differ."""
    first = [c.ask("first", row.name) for c in contestants]
    wanted = np.asarray(row.function(*row.arguments())).tolist() if _quick(row) else None
    for answer in first:
        np.testing.assert_allclose(answer["result"], wanted or first[0]["result"], rtol=1e-12)
    samples: list[list[float]] = [[] for _ in contestants]
    for turn in range(rounds):
        order = list(enumerate(contestants))
        for k, contestant in order if turn % 2 == 0 else order[::-1]:
            samples[k] += contestant.ask("time")
    ours, theirs = (median(s) for s in samples)
    cells = [row.name, *(_time(s) for s in samples), f"{theirs / ours:.2f}"]
    starts = [1e3 * a["seconds"] for a in first]
    cells += [f"{starts[0]:.0f} ms", f"{starts[1]:.0f} ms", f"{starts[1] / starts[0]:.1f}"]
    return "| " + " | ".join(cells) + " |"


def _quick(row: Row) -> bool:
    """Whether Python itself is done in a few seconds."""
    return row.name in ("histogram", "prefix_sums", "csr_matvec", "crc32", "tridiagonal", "nbody")


def _time(samples: list[float]) -> str:
    low, _, high = quantiles(samples, n=4)
    return f"{1e6 * median(samples):,.0f} µs ({1e6 * low:,.0f}-{1e6 * high:,.0f})"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--serve", default="")
    parser.add_argument("--rows", default="")
    parser.add_argument("--peers-venv", default="benchmarks/.venv-peers")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    peer = str(Path(options.peers_venv) / "bin" / "python")
    contestants = [Contestant("nbcomp", sys.executable), Contestant("numba", peer)]
    print("| loops | nbcomp | Numba | times as fast | first call | Numba's | times as soon |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    wanted = [r for r in options.rows.split(",") if r]
    for row in ROWS:
        if not wanted or row.name in wanted:
            print(run(row, contestants, options.rounds), flush=True)
    for contestant in contestants:
        contestant.process.terminate()


if __name__ == "__main__":
    main()
