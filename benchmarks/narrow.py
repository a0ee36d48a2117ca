"""Products of bfloat16 and of bytes against our own float32: `python -m benchmarks.narrow`.

    python -m benchmarks.narrow [--sizes 512,1024,2048] [--threads 1,2]

All sides of a size take turns in one process, after their answers are compared: bytes bit for bit,
bfloat16 by its error against float64, which is in the table.  Asked for at 1024³: three times.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import nbcomp
from benchmarks import machine
from nbcomp.machine import host
from nbcomp.measure.comparison import errors
from nbcomp.measure.timing import Call, alternate
from nbcomp.options import EVERYTHING, Options
from nbcomp.runtime.pool import set_threads

SECONDS, ROUNDS = 1.0, 15  # of samples for each side, and its turns


@dataclass(frozen=True)
class Side:
    """A way to multiply: its name, the function, its operands and how it is compiled."""

    name: str
    function: Callable[[Any, Any], Any]
    arrays: tuple[Any, Any]
    options: Options = EVERYTHING

    def compiled(self) -> Callable[[Any, Any], Any]:
        """The native function."""
        made: Any = nbcomp.compile_for("llvm", self.options)(self.function, *self.arrays)
        return made.entry  # type: ignore[no-any-return]


def product(a: Any, b: Any) -> Any:
    """Of floats."""
    return a @ b


def widened(a: Any, b: Any) -> Any:
    """Of bytes, with int32 sums."""
    return a.astype(np.int32) @ b.astype(np.int32)


def of_rows(a: Any, b: Any) -> Any:
    """Of bytes, the right operand's rows lying along the sum, as weights do."""
    return widened(a, b.T)


def sides(n: int) -> Iterator[Side]:
    """All ways, float32 first."""
    rng = np.random.default_rng(n)
    floats = tuple(rng.standard_normal((n, n)).astype(np.float32) for _ in range(2))
    left, right = (rng.integers(-128, 128, (n, n)).astype(np.int8) for _ in range(2))
    unsigned = rng.integers(0, 256, (n, n)).astype(np.uint8)
    yield Side("float32", product, (floats[0], floats[1]))
    yield Side("bfloat16", product, (floats[0], floats[1]), Options(precision="bf16"))
    yield Side("uint8 × int8", widened, (unsigned, right))
    yield Side("int8 × int8", widened, (left, right))
    yield Side("int8 × int8.T", of_rows, (left, right))


def table(n: int) -> Iterator[str]:
    """The rows of one size."""
    every = list(sides(n))
    calls = [side.compiled() for side in every]
    notes = []
    for side, call in zip(every, calls, strict=True):
        found, wanted = call(*side.arrays), side.function(*side.arrays)
        if side.arrays[0].dtype.kind == "f":
            against = errors(found, wanted, side.function, (side.arrays, {}))
            assert against is not None
            notes.append(f"{against[0]:.1e}")
        else:
            np.testing.assert_array_equal(found, wanted)
            notes.append("exact")
    turns: list[Call] = [(c, s.arrays, {}) for c, s in zip(calls, every, strict=True)]
    taken = alternate(turns, SECONDS * len(turns), rounds=ROUNDS, shortest=True)
    first = taken[0][0].median
    for side, note, (timing, _) in zip(every, notes, taken, strict=True):
        spread = f"{1e3 * timing.low:.2f}–{1e3 * timing.high:.2f}"
        rate = 2 * n**3 / timing.median / 1e9
        cells = [f"{n}³", side.name, f"{1e3 * timing.median:.2f} ({spread})", f"{rate:,.0f}"]
        yield "| " + " | ".join([*cells, f"{first / timing.median:.2f}", note]) + " |"


def main() -> None:
    """A table for each number of threads."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default="512,1024,2048")
    parser.add_argument("--threads", default=f"1,{machine.cores()}")
    chosen = parser.parse_args()
    has = ", ".join(sorted(host().features)) or "none of the instructions"
    for threads in map(int, chosen.threads.split(",")):
        set_threads(threads)
        print(f"\n{machine.processor()} ({has}), {threads} threads\n")
        print("| size | operands | ms (quartiles) | GOP/s | × float32 | error against float64 |")
        print("|---|---|--:|--:|--:|--:|", flush=True)
        for n in map(int, chosen.sizes.split(",")):
            for row in table(n):
                print(row, flush=True)


if __name__ == "__main__":
    main()
