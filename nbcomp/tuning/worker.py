"""A worker: a process in which candidates are compiled, checked and timed, and which may be lost.

Run as a module it is the worker itself: messages come by its standard input, answers leave by its
standard output.  It works on one kernel at a time; it must not know who asks, or why.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Sequence

from nbcomp.runtime import pool
from nbcomp.tuning.bench import Bench, Prepared, Timed, Wanted
from nbcomp.tuning.tasks import Task


class _Served:
    """The state of a worker: a task and the candidates that are ready."""

    bench: Bench
    ready: dict[int, Prepared]

    def task(self, task: Task) -> None:
        """Begin with another kernel."""
        self.bench, self.ready = Bench(task), {}

    def threads(self, count: int) -> None:
        """Run kernels on so many threads."""
        pool.set_threads(count)

    def prepare(self, number: int, wanted: Wanted) -> str:
        """Compile and check a candidate: why it cannot be timed."""
        made = self.bench.prepare(wanted)
        if isinstance(made, str):
            return made
        self.ready[number] = made
        return ""

    def time(self, numbers: Sequence[int], best: float) -> list[Timed]:
        """Time candidates that are ready, and forget them."""
        return self.bench.time([self.ready.pop(k) for k in numbers], best)

    def race(self, numbers: Sequence[int], seconds: float) -> list[list[float]]:
        """Time the default schedule and candidates in turn, and forget these."""
        return self.bench.race([self.ready.pop(k) for k in numbers], seconds)


def serve() -> None:
    """Answer messages until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who interrupts means the one who asks
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what code prints is no answer
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()
    served = _Served()
    while True:
        try:
            name, *arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = (True, getattr(served, name)(*arguments))
        except Exception as error:  # a fault of ours in one candidate must not end the search
            answer = (False, f"{type(error).__name__}: {error}")
        pickle.dump(answer, answers)
        answers.flush()


def _watch(parent: int) -> None:
    """End with the process that asks, even in a candidate that runs for ever."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


if __name__ == "__main__":
    serve()
