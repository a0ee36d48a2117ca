"""The accuracy of the elementary functions: the largest error in ulp, and where.

    python -m benchmarks.ulp                        # every function: float32 at every argument
    python -m benchmarks.ulp exp tanh --every 64    # some, at every 64th float32
    python -m benchmarks.ulp --dtype float64        # random and structured float64 arguments

All 2^32 float32 arguments take minutes per function; functions of two arguments are sampled.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from nbcomp.target.llvm.elementary import FUNCTIONS
from tests.target.accuracy import measure


def main() -> None:
    """Print a line per function."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("functions", nargs="*")
    parser.add_argument("--dtype", choices=["float32", "float64"])
    parser.add_argument("--every", type=int, default=1, help="step between float32 arguments")
    parser.add_argument("--count", type=int, default=300_000, help="random arguments per batch")
    options = parser.parse_args()
    dtypes = [options.dtype] if options.dtype else ["float32", "float64"]
    print(f"{'function':12}{'dtype':9}{'max ulp':>9}  {'arguments':>14}  worst")
    for name in options.functions or sorted(FUNCTIONS):
        for kind in dtypes:
            start = time.perf_counter()
            w = measure(name, np.dtype(kind), options.every, options.count)
            place = ", ".join(repr(v) for v in w.where)
            seconds = time.perf_counter() - start
            print(
                f"{name:12}{kind:9}{w.error:9.4f}  {w.count:14,}  {name}({place}) = {w.got!r}, "
                f"not {w.want!r} ({seconds:.0f} s)",
                flush=True,
            )


if __name__ == "__main__":
    main()
