"""The limits of the machine, measured in the benchmark's own run: `python -m benchmarks.limits`.

The probes are those of `nbcomp.measure.limits`, run more often and on more memory: copy with
ordinary and with streaming stores, reading, and the multiply-add peak, on one core and on all.
"""

from __future__ import annotations

import json

from benchmarks import machine
from nbcomp.measure.limits import measure_limits
from nbcomp.measure.roofline import Limits
from nbcomp.runtime.pool import set_threads

ARRAY = 1 << 28  # bytes; half of it is copied to the other half, beyond every cache
REPEAT = 20


def rates(limits: Limits, threads: int) -> dict[str, float]:
    """GB/s for copy, stream and read, GFLOP/s for fma (float32), on so many threads.

    Copies count the bytes read and those written.
    """
    names = {"memory": "read", "copy": "copy", "stream": "stream"}
    found = {
        names[b.level]: b.value / 1e9
        for b in limits.bandwidths
        if b.threads == threads and b.level in names
    }
    return found | {"fma": limits.peak(threads, "float32") / 1e9}


def main() -> None:
    """Print the rates on one core and on all as JSON."""
    set_threads(machine.cores())
    counts = tuple(sorted({1, machine.cores()}))
    limits = measure_limits(counts, REPEAT, ARRAY)
    print(json.dumps({str(n): rates(limits, n) for n in counts}))


if __name__ == "__main__":
    main()
