"""Matrix products: generated, as chosen by default, and by NumPy's BLAS: `make bench-products`.

    python -m benchmarks.products [--threads 1,2] [--rows square,skinny] [--dtypes float32]
    python -m benchmarks.products --model    # what the model of graph/passes/product_cost.py says

Each row compares the results first, then all sides take turns in one process; the table has the
medians with their quartiles, and what share of the multiply-add peak each reaches, the peak being
measured in the same run.  PyTorch (oneDNN) takes part where it is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np

import nbcomp
from benchmarks import machine
from benchmarks.contest import environment
from nbcomp.graph.passes import product_cost
from nbcomp.graph.passes.product_cost import CLOCK, Product
from nbcomp.machine import host
from nbcomp.measure.limits import limits
from nbcomp.measure.timing import Call, Timing, alternate
from nbcomp.runtime.pool import set_threads

SAMPLE = 1e-3  # seconds
SECONDS = 0.4  # of samples for each side of a row
ROUNDS = 9  # turns of each side; the shortest sample of a turn counts
SQUARE = (32, 64, 128, 256, 384, 512, 768, 1024, 1536, 2048)
FEW = (1, 4, 16, 64)  # rows of a skinny product
WIDE = ((1024, 1024), (4096, 1024))  # (inner, columns) of a skinny product
ODD = (33, 65, 127, 129, 257, 500, 1000)  # squares that fill no tiles
THIN = (  # (rows, inner, columns), one or two of them small
    (1, 1000, 1000), (1, 300, 3000), (1, 768, 50257), (1024, 16, 1024), (1024, 1024, 16),
    (4096, 64, 64), (64, 8192, 64), (2000, 3, 2000), (8, 8192, 8), (10000, 32, 10),
)  # fmt: skip
STACKS = (
    (16, 16, 16, 256),
    (64, 64, 64, 64),
    (128, 128, 128, 8),
    (100, 50, 70, 32),
    (5, 5, 5, 1000),
)


@dataclass(frozen=True)
class Row:
    """One product of (…, rows, inner) and (…, inner, columns); turned: of the right one's `.T`."""

    rows: int
    inner: int
    columns: int
    dtype: str = "float32"
    turned: bool = False
    batch: int = 1

    @property
    def title(self) -> str:
        """What is multiplied."""
        times = f"{self.batch} of " if self.batch > 1 else ""
        return f"{times}{self.rows}×{self.inner}×{self.columns}{' (w.T)' if self.turned else ''}"

    @property
    def operations(self) -> int:
        """A multiply-add is two."""
        return 2 * self.batch * self.rows * self.inner * self.columns

    def arrays(self) -> tuple[Any, Any]:
        """The operands, the same in every run."""
        rng = np.random.default_rng(self.rows + self.inner)
        stack = (self.batch,) if self.batch > 1 else ()
        right = (self.columns, self.inner) if self.turned else (self.inner, self.columns)
        shapes = ((*stack, self.rows, self.inner), (*stack, *right))
        a, b = ((rng.random(s) - 0.5).astype(self.dtype) for s in shapes)
        return a, b

    def function(self) -> Callable[[Any, Any], Any]:
        """The product as its user writes it."""
        if self.turned:
            return lambda a, b: a @ b.swapaxes(-1, -2)
        return lambda a, b: a @ b


def rows(kinds: str, dtypes: str) -> Iterator[Row]:
    """The rows of the table: "square", "odd", "skinny", "turned", "thin", "batched"."""
    for dtype in dtypes.split(","):
        if "square" in kinds:
            yield from (Row(n, n, n, dtype) for n in SQUARE)
            yield Row(384, 768, 768, dtype)
            yield Row(500, 700, 300, dtype)
        if "odd" in kinds:
            yield from (Row(n, n, n, dtype) for n in ODD)
        for turned in (False, True):
            if ("turned" if turned else "skinny") in kinds:
                yield from (Row(m, k, n, dtype, turned) for k, n in WIDE for m in FEW)
        if "batched" in kinds:
            yield from (Row(m, k, n, dtype, batch=b) for m, k, n, b in STACKS)
        if "thin" in kinds:
            yield from (Row(*sizes, dtype) for sizes in THIN)


def bound(row: Row) -> float:
    """How far a sum of `inner` rounded products may be off, for operands within ±1/2.

    Any order of adding up is within inner · unit roundoff of Σ|a·b| (Higham, Accuracy and Stability
    of Numerical Algorithms, 2002, section 3.5); two such sums are compared.
    """
    return float(2 * row.inner * np.finfo(row.dtype).eps * row.inner / 4)


def contestants(row: Row) -> dict[str, Callable[[], Any]]:
    """Who computes a row, by name; each gives a new array."""
    a, b = row.arrays()
    function = row.function()

    def ours(*without: str) -> Callable[[], Any]:
        options = nbcomp.Options(without=frozenset(without))
        call = nbcomp.compile_for("llvm", options)(function, a, b).entry
        return lambda: call(a, b)

    sides = {"generated": ours("blas"), "default": ours(), "NumPy": lambda: function(a, b)}
    if torch := sys.modules.get("torch"):
        x, y = torch.from_numpy(a), torch.from_numpy(b)
        sides["torch"] = lambda: function(x, y)
    return sides


def measure(row: Row) -> dict[str, Timing]:
    """Timings of all sides, whose results are compared before."""
    sides = contestants(row)
    wanted = sides["NumPy"]()
    for name, call in sides.items():
        np.testing.assert_allclose(np.asarray(call()), wanted, 0, bound(row), err_msg=name)
    calls: list[Call] = [(call, (), {}) for call in sides.values()]
    taken = alternate(calls, SECONDS * len(sides), rounds=ROUNDS, shortest=True)
    return {name: timing for name, (timing, _) in zip(sides, taken, strict=True)}


def line(row: Row, times: dict[str, Timing], threads: int) -> str:
    """One line of the table."""
    peak = limits().peak(threads, row.dtype)
    cells = [row.dtype, row.title]
    for timing in times.values():
        spread = f"{1e6 * timing.low:,.0f}–{1e6 * timing.high:,.0f}"
        share = row.operations / timing.median / peak
        cells.append(f"{1e6 * timing.median:,.1f} ({spread}) {share:.0%}")
    best = min(t.median for name, t in times.items() if name not in ("generated", "default"))
    cells += [f"{best / times[name].median:.2f}" for name in ("generated", "default")]
    return "| " + " | ".join(cells) + " |"


def child(threads: int, kinds: str, dtypes: str) -> None:
    """The table of one number of threads."""
    if "torch" in os.environ.get("NBCOMP_PEERS", ""):
        __import__("torch").set_num_threads(threads)
    set_threads(threads)
    names = list(contestants(Row(8, 8, 8)))
    known = limits()
    peaks = [f"{known.peak(threads, d) / 1e9:.0f} GFLOP/s in {d}" for d in ("float32", "float64")]
    print(f"\n{machine.processor()}, {threads} threads; peak {', '.join(peaks)}; NumPy's BLAS: ")
    print(f"{', '.join(machine.blas())}.  µs per call: median (quartiles), share of the peak.\n")
    print(
        f"| dtype | product | {' | '.join(names)} | best peer / generated | best peer / default |"
    )
    print(f"|---|---|{'--:|' * (len(names) + 2)}", flush=True)
    ratios = []
    for row in rows(kinds, dtypes):
        times = measure(row)
        print(line(row, times, threads), flush=True)
        best = min(t.median for name, t in times.items() if name not in ("generated", "default"))
        ratios.append([best / times[name].median for name in ("generated", "default")])
    means = np.exp(np.log(ratios).mean(axis=0))
    print(f"\nGeometric means: {means[0]:.2f} generated, {means[1]:.2f} default.")


def model(kinds: str, dtypes: str) -> None:
    """The table of what is estimated and what is measured, on one core, in CPU time."""
    set_threads(1)
    print("| dtype | product | loops, µs | estimated | BLAS, µs | estimated | chosen |")
    print("|---|---|--:|--:|--:|--:|---|", flush=True)
    for row in rows(kinds, dtypes):
        a, b = row.arrays()
        told = [estimate(row, own) * 1e6 for own in (True, False)]
        took = []
        for leave in ("blas", "generate"):
            options = nbcomp.Options(without=frozenset({leave}))
            call = nbcomp.compile_for("llvm", options)(row.function(), a, b).entry
            took.append(processor_time(partial(call, a, b)) * 1e6)
        wrong = (told[0] <= told[1]) != (took[0] <= took[1])
        chosen = "loops" if told[0] <= told[1] else "BLAS"
        loss = took[told[0] > told[1]] / min(took) - 1
        cells = [
            row.dtype,
            row.title,
            *(f"{x:,.1f}" for p in zip(took, told, strict=True) for x in p),
        ]
        print("| " + " | ".join([*cells, f"{chosen}, {loss:.0%} lost" if wrong else chosen]) + " |")


def estimate(row: Row, own: bool) -> float:
    """Seconds by the model."""
    size = np.dtype(row.dtype).itemsize
    product = Product(row.batch, row.rows, row.inner, row.columns, size, row.turned)
    return (product_cost.generated if own else product_cost.blas)(product, host()) / CLOCK


def processor_time(call: Callable[[], Any]) -> float:
    """The shortest of some samples, in seconds this thread has run: others do not count."""
    best = float("inf")
    loops = 1
    for _ in range(12):
        start = thread_time()
        for _ in range(loops):
            call()
        taken = thread_time() - start
        best, loops = min(best, taken / loops), max(1, round(SAMPLE * loops / max(taken, 1e-9)))
    return best


def main() -> None:
    """A process of its own for each number of threads, in which BLAS chooses its own kernel."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", default=f"1,{machine.cores()}")
    parser.add_argument("--rows", default="square,odd,skinny,turned,thin,batched")
    parser.add_argument("--dtypes", default="float32,float64")
    parser.add_argument("--model", action="store_true")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        threads, *rest = json.loads(chosen.child)
        model(*rest) if chosen.model else child(threads, *rest)
        return
    for threads in [1] if chosen.model else map(int, chosen.threads.split(",")):
        task = json.dumps([threads, chosen.rows, chosen.dtypes])
        with tempfile.TemporaryDirectory(prefix="nbcomp-bench-") as scratch:
            flags = ["--model"] if chosen.model else []
            command = [sys.executable, "-m", "benchmarks.products", "--child", task, *flags]
            variables = environment(threads, scratch)
            root = Path(__file__).resolve().parent.parent
            variables["PYTHONPATH"] = str(root)
            subprocess.run(command, env=variables, cwd=root, check=True)


if __name__ == "__main__":
    main()
