"""Not a compiler but the memory itself: moving a row's arrays once, in the same rounds.

What memory gives on a shared machine changes from minute to minute, so a row's time is held against
the time of the bare traffic, taken in turn with it.
"""

from __future__ import annotations

from benchmarks import machine, timing
from benchmarks.peers import Prepared
from benchmarks.workloads import Array, Workload
from nbcomp.measure.limits import READS, prepared_probe
from nbcomp.runtime import memory
from nbcomp.runtime.pool import set_threads
from nbcomp.types import FLOAT32

BUDGET = 0.02  # seconds to find the fastest way in, for each
PROBES = {"read": READS, "copy": ("copy", "stream")}


def prepare(workload: Workload, arrays: dict[str, Array]) -> Prepared:
    """Reading as many bytes as the row's inputs have, or copying the first input.

    Of the ways to do it, that counts which is fastest at this size.
    """
    threads = machine.cores()
    set_threads(threads)
    size = next(iter(arrays.values())).nbytes
    if workload.traffic == "read":
        size = sum(a.nbytes for a in arrays.values())
    source, target = (memory.empty(FLOAT32, (size // 4,)) for _ in range(2))
    for array in (source, target):
        array.fill(0.5)
    ways = [prepared_probe(n, source, target, size, threads) for n in PROBES[workload.traffic]]
    best = min(ways, key=lambda way: min(timing.samples(way, BUDGET)))
    return Prepared(best, lambda _: ())
