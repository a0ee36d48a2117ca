"""What showing a compilation costs: seconds added to the cell, and bytes added to the notebook.

    python -m benchmarks.display

A small program (the digits network), a large one (a transformer of twelve layers), and one of many
library calls.  Each is compiled anew to be shown, and shown, and in turn with that compiled anew
for being called only: what the first takes longer is what showing adds.  Seconds are the best of
several rounds each, beside them what of it is spent after the compilation; bytes are of the outputs
as they are stored, both forms together.  The limits are 100 ms and 1 MB.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import nbcomp
from nbcomp.display.bundle import Report
from nbcomp.display.view.view import DETAILED
from nbcomp.record import looked_at
from nbcomp.target.llvm.compile import forget

ROUNDS = 5
LIMIT_MILLISECONDS, LIMIT_BYTES = 100, 1_000_000

Array = Any  # of NumPy
RNG = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    """Small float32 weights."""
    return (RNG.standard_normal(shape) * 0.1).astype(np.float32)


W1, b1, W2, b2 = normal(64, 128), normal(128), normal(128, 10), normal(10)


def digits(x: Array) -> Array:
    """A network with one hidden layer, and a softmax."""
    h = np.maximum(x @ W1 + b1, 0)
    z = h @ W2 + b2
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


WIDTH = 64
PROJECTIONS = ("q", "k", "v", "o")
LAYERS = [
    {name: normal(WIDTH, WIDTH) for name in PROJECTIONS}
    | {"up": normal(WIDTH, 4 * WIDTH), "down": normal(4 * WIDTH, WIDTH)}
    for _ in range(12)
]


def norm(x: Array) -> Array:
    """Layer normalisation."""
    gap = x - x.mean(axis=-1, keepdims=True)
    return gap / np.sqrt((gap * gap).mean(axis=-1, keepdims=True) + 1e-5)


def layer(x: Array, p: dict[str, Array]) -> Array:
    """Attention, then a network of its own for each row."""
    y = norm(x)
    scores = (y @ p["q"]) @ (y @ p["k"]).T / 8
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    x = x + (e / e.sum(axis=-1, keepdims=True)) @ (y @ p["v"]) @ p["o"]
    y = norm(x) @ p["up"]
    return x + (0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y**3)))) @ p["down"]


def transformer(x: Array) -> Array:
    """Twelve layers."""
    for p in LAYERS:
        x = layer(x, p)
    return x


def sorts(x: Array) -> Array:
    """A hundred routines of NumPy, a kernel between each two."""
    for k in range(100):
        x = np.sort(x, axis=k % 2) + np.float32(k)
    return x


def compiling(function: Callable[[Array], Array], x: Array) -> float:
    """Seconds to compile, for being called only."""
    forget()
    start = time.perf_counter()
    nbcomp.compile(function, x)
    return time.perf_counter() - start


def showing(function: Callable[[Array], Array], x: Array) -> tuple[float, float, int]:
    """Seconds to compile and show as a cell of `%%compile` does, those of showing alone, and the
    bytes it stores."""
    forget()
    start = time.perf_counter()
    with looked_at(DETAILED):
        report = Report(nbcomp.compile(function, x))
    compiled = time.perf_counter()
    data = report._repr_mimebundle_()
    done = time.perf_counter()
    return done - start, done - compiled, len(json.dumps(data).encode())


def main() -> None:
    """Measure them, and say whether the limits are kept."""
    programs = (digits, normal(1797, 64)), (transformer, normal(32, WIDTH)), (sorts, normal(30, 20))
    for function, x in programs:
        compiling(function, x), showing(function, x)  # what is made once in a process
        rounds = [(compiling(function, x), *showing(function, x)) for _ in range(ROUNDS)]
        alone, shown, last = (1e3 * min(r[k] for r in rounds) for k in range(3))
        size = rounds[0][3]
        kept = shown - alone <= LIMIT_MILLISECONDS and size <= LIMIT_BYTES
        print(
            f"{function.__name__:12} compiled in {alone:.0f} ms, shown in {shown - alone:.0f} ms "
            f"more ({last:.0f} ms after compiling), {size / 1e3:,.0f} kB: "
            f"{'within' if kept else 'BEYOND'} the limits"
        )


if __name__ == "__main__":
    main()
