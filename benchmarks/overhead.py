"""What is not arithmetic: a call, a new shape, an import: `python -m benchmarks.overhead`.

Each row states nbcomp's figure, what it is held against in the same process, and whether the target
is met.  Calls alternate with what they are compared to, in rounds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from statistics import median
from time import perf_counter
from timeit import Timer
from typing import Any

import numpy as np

from benchmarks.workloads import WORKLOADS, Array, Workload

Line = dict[str, Any]
ROUNDS, NUMBER = 15, 10_000
SHAPES = 3


def line(title: str, value: str, against: str, target: str, met: bool) -> Line:
    """One row of the table."""
    return {"title": title, "value": value, "against": against, "target": target, "met": met}


def alternating(names: dict[str, Any], *statements: str) -> list[float]:
    """Median seconds of each statement, taken in turns; as source, so that nothing wraps a call."""
    timers = [Timer(statement, globals=names) for statement in statements]
    rounds = [[timer.timeit(NUMBER) / NUMBER for timer in timers] for _ in range(ROUNDS)]
    return [median(values) for values in zip(*rounds, strict=True)]


def one_call(jit: Callable[..., Any]) -> Line:
    """A compiled x + x on 16 elements, against np.add on the same array."""
    x = np.linspace(0.0, 1.0, 16)
    compiled = jit(lambda x: x + x)
    compiled(x)
    names = {"compiled": compiled, "add": np.add, "x": x}
    own, numpy = alternating(names, "compiled(x)", "add(x, x)")
    return line(
        "call, x + x on 16 float64",
        f"{own * 1e6:.2f} µs",
        f"np.add {numpy * 1e6:.2f} µs",
        "half of np.add",
        own <= numpy / 2,
    )


def short_chain(jit: Callable[..., Any]) -> Line:
    """Three operations on 8 elements, against NumPy."""

    def chain(x: Any) -> Any:
        return np.maximum(x * 2.0 + 1.0, 0.0)

    x = np.linspace(-1.0, 1.0, 8)
    compiled = jit(chain)
    compiled(x)
    names = {"compiled": compiled, "chain": chain, "x": x}
    own, numpy = alternating(names, "compiled(x)", "chain(x)")
    return line(
        "call, three operations on 8 float64",
        f"{own * 1e6:.2f} µs",
        f"NumPy {numpy * 1e6:.2f} µs",
        "faster",
        own < numpy,
    )


def four_signatures(jit: Callable[..., Any]) -> Line:
    """Four signatures in turn, against the same function with one; the added cost of a call."""
    compiled = jit(lambda x: x + x)
    arrays = [np.ones(16), np.ones(16, np.float32), np.ones((4, 4)), np.ones(16, np.int64)]
    for array in arrays:
        compiled(array)
    names = {"f": compiled, **dict(zip("abcd", arrays, strict=True))}
    four, same = alternating(names, "f(a); f(b); f(c); f(d)", "f(a); f(a); f(a); f(a)")
    mixed, single = four / 4, same / 4
    return line(
        "call, four signatures in turn",
        f"{(mixed - single) * 1e6:+.2f} µs",
        f"one signature {single * 1e6:.2f} µs",
        "+0.2 µs",
        mixed - single <= 0.2e-6,
    )


def grown(workload: Workload, arrays: dict[str, Array]) -> dict[str, Array]:
    """The inputs with one more entry on the axis they are a batch of."""
    first = next(iter(arrays.values()))
    names = workload.batched or tuple(n for n, a in arrays.items() if a.shape == first.shape)
    return {n: np.concatenate([a, a[:1]]) if n in names else a for n, a in arrays.items()}


def new_shape(jit: Callable[..., Any], workload: Workload) -> float:
    """Seconds a known function needs for a shape it has not seen, its run time taken off.

    The median over several new shapes.
    """
    compiled = jit(workload.function)
    arrays = workload.arrays()
    compiled(*arrays.values())
    taken = []
    for _ in range(SHAPES):
        arrays = grown(workload, arrays)
        times = []
        for _ in range(4):
            start = perf_counter()
            compiled(*arrays.values())
            times.append(perf_counter() - start)
        taken.append(times[0] - min(times[1:]))
    return median(taken)


def new_shapes(jit: Callable[..., Any]) -> Line:
    """The slowest of all workloads to take a new shape."""
    seconds = {w.title: new_shape(jit, w) for w in WORKLOADS.values()}
    worst = max(seconds, key=lambda title: seconds[title])
    return line(
        "new shape of a known function, all workloads",
        f"{median(seconds.values()) * 1e3:.1f} ms, at most {seconds[worst] * 1e3:.1f} ms",
        worst,
        "20 ms",
        seconds[worst] <= 0.02,
    )


def _child(source: str) -> list[str]:
    command = [sys.executable, "-c", source]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def importing() -> Line:
    """`import nbcomp` in a fresh process that has NumPy."""
    source = (
        "import numpy, time; t = time.perf_counter(); import nbcomp; print(time.perf_counter() - t)"
    )
    seconds = median(float(_child(source)[0]) for _ in range(5))
    return line("import nbcomp", f"{seconds:.3f} s", "beyond NumPy", "0.3 s", seconds <= 0.3)


def loading() -> Line:
    """`%load_ext nbcomp` in a fresh IPython, and whether a plotting library came along."""
    source = (
        "import sys, time; from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance(); t = time.perf_counter()\n"
        "shell.run_line_magic('load_ext', 'nbcomp')\n"
        "print(time.perf_counter() - t, 'matplotlib' in sys.modules)"
    )
    answers = [_child(source) for _ in range(5)]
    seconds = median(float(answer[0]) for answer in answers)
    plotting = any(answer[1] == "True" for answer in answers)
    found = "matplotlib was imported" if plotting else "no matplotlib"
    return line("%load_ext nbcomp", f"{seconds:.3f} s", found, "no plotting library", not plotting)


def main() -> None:
    """Print all rows as JSON."""
    jit: Callable[..., Any] = import_module("nbcomp").jit
    rows = [one_call(jit), short_chain(jit), four_signatures(jit), new_shapes(jit)]
    print(json.dumps([*rows, importing(), loading()]))


if __name__ == "__main__":
    main()
