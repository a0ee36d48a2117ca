"""LLVM in a thread of its own, beside the Python that has more for it to do.

LLVM runs without Python's lock, in many calls, and between two of them its thread must get the lock
back.  A thread that computes gives it up when it was asked for it five milliseconds before, unless
it is told otherwise: that is as long as LLVM takes for a small kernel.  Knows threads only.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

SECONDS = 5e-5  # after which a thread that computes makes way for LLVM's
_lock = threading.Lock()
_before: list[float] = []  # what was set before, as many times as there are workers


@contextmanager
def beside(name: str) -> Iterator[Executor]:
    """A worker in a thread of this name; what it has not begun at the end is not done."""
    worker = ThreadPoolExecutor(1, name)
    with _lock:
        _before.append(_before[0] if _before else sys.getswitchinterval())
        sys.setswitchinterval(min(SECONDS, _before[0]))
    try:
        yield worker
    finally:
        worker.shutdown(cancel_futures=True)
        with _lock:
            before = _before.pop()
            if not _before:
                sys.setswitchinterval(before)
