"""One contestant on one row, in a process of its own: `python -m benchmarks.worker PEER ROW`.

Reads commands, one JSON list a line, and answers each with one JSON object:

    ["prepare"]           import the library, make the inputs     {"version", "seconds", "blas"}
    ["first", path]       the first call, and compare its result with NumPy's at `path`
                                                                  {"seconds", "error", "dtypes"}
    ["save", path]        write the result there, for the others to compare with
    ["time", seconds]     samples of later calls                  {"samples"}

A failure is answered {"failed": why}.  What libraries print goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import machine, timing
from benchmarks.peers import LIMIT, PEERS, Peer, Prepared
from benchmarks.workloads import WORKLOADS, Array, Workload

Answer = dict[str, Any]


def difference(got: Sequence[Array], wanted: Sequence[Array]) -> float:
    """The largest difference, relative to the largest magnitude of the output it is in.

    Raises ValueError when the number of outputs, a shape or a dtype differs, or a value is not
    finite.
    """
    if len(got) != len(wanted):
        raise ValueError(f"{len(got)} outputs, NumPy has {len(wanted)}")
    worst = 0.0
    for a, b in zip(got, wanted, strict=True):
        if a.dtype != b.dtype or a.shape != b.shape:
            raise ValueError(f"{a.dtype}{list(a.shape)}, NumPy has {b.dtype}{list(b.shape)}")
        gap = float(np.max(np.abs(a - b), initial=0.0))
        if not np.isfinite(gap):
            raise ValueError("not finite where NumPy is")
        worst = max(worst, gap / float(np.max(np.abs(b), initial=0.0) or 1.0))
    return worst


class Worker:
    """The state between commands."""

    def __init__(self, peer: Peer, workload: Workload) -> None:
        self.peer, self.workload = peer, workload
        self.prepared: Prepared | None = None

    def prepare(self) -> Answer:
        """Everything up to, not including, the first call."""
        start = perf_counter()
        self.prepared = self.peer.prepare(self.workload, self.workload.arrays())
        return {
            "version": machine.installed(self.peer.distribution),
            "seconds": perf_counter() - start,
            "blas": machine.blas() if self.peer.name == "numpy" else [],
        }

    def first(self, path: str) -> Answer:
        """The first call, timed; then its result against NumPy's."""
        assert self.prepared is not None
        start = perf_counter()
        result = self.prepared.call()
        seconds = perf_counter() - start
        with np.load(path) as file:
            wanted = [file[key] for key in file.files]
        error = difference(self.prepared.arrays(result), wanted)
        if error > self.workload.rtol:
            raise ValueError(
                f"differs from NumPy by {error:.1e} (allowed {self.workload.rtol:.0e})"
            )
        return {"seconds": seconds, "error": error}

    def save(self, path: str) -> Answer:
        """The result, as the others are to compute it."""
        assert self.prepared is not None
        np.savez(path, *self.prepared.arrays(self.prepared.call()))
        return {}

    def time(self, seconds: float) -> Answer:
        """Samples of calls that need no compiling."""
        assert self.prepared is not None
        return {"samples": timing.samples(self.prepared.call, seconds)}

    def answer(self, command: list[Any]) -> Answer:
        """Run one command; any failure becomes an answer."""
        commands: dict[str, Callable[..., Answer]] = {
            "prepare": self.prepare,
            "first": self.first,
            "save": self.save,
            "time": self.time,
        }
        try:
            return commands[command[0]](*command[1:])
        except Exception as error:
            lines = str(error).strip().splitlines() or [""]
            return {"failed": f"{type(error).__name__}: {lines[0]}"[:200]}


def main(peer: str, row: str) -> None:
    """Answer commands until standard input ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not look like an answer
    worker = Worker(PEERS.get(peer, LIMIT), WORKLOADS[row])
    for line in sys.stdin:
        json.dump(worker.answer(json.loads(line)), replies)
        replies.write("\n")
        replies.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
