"""Loops without end stop at Ctrl-C, and the process goes on."""

from __future__ import annotations

import _thread
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbcomp

PROGRAM = """
import nbcomp, numpy as np

def forever(x):
    n = 0
    while True:
        n = (n + 1) % 1000
        x[0] = n
    return x

def long(x):
    total = 0
    for i in range(1 << 40):
        for j in range(1000):
            total = (total + i * j) % 1000003
    return total

def arrays(x):
    while x.sum() < 1:
        x = x * 1.0
    return x

for function in (forever, long, arrays):
    scripted = nbcomp.script(function)
    print("ready", flush=True)
    try:
        scripted(np.zeros(4))
    except KeyboardInterrupt:
        print("stopped", function.__name__, flush=True)
print("goes on", flush=True)
"""


def test_ctrl_c(tmp_path) -> None:  # type: ignore[no-untyped-def]
    script = tmp_path / "loops.py"
    script.write_text(PROGRAM)
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        for name in ("forever", "long", "arrays"):
            assert process.stdout.readline() == "ready\n"
            time.sleep(2.0)  # it compiles, then runs
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == f"stopped {name}\n"
        assert process.stdout.readline() == "goes on\n"
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.stdout.close()


@pytest.mark.parametrize("way", [nbcomp.script, nbcomp.jit])
def test_other_threads_run_while_a_loop_does(way: Any) -> None:
    compiled, x = way(is_not_read), np.zeros(4)
    compiled(x, 0)

    def stop(number: int, _: object) -> None:
        raise InterruptedError if number == signal.SIGUSR1 else TimeoutError

    before = [(s, signal.signal(s, stop)) for s in (signal.SIGUSR1, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_REAL, 20.0)
    threading.Timer(0.3, _thread.interrupt_main, (signal.SIGUSR1,)).start()
    try:
        with pytest.raises(InterruptedError):
            compiled(x, 3)
        np.testing.assert_equal(compiled(x, 0), x * 2)  # it goes on, with the GIL
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before:
            signal.signal(number, handler)


def returns_nothing(x, n):  # type: ignore[no-untyped-def]
    if n:
        while True:
            n = (n * 5 + 3) % 7


def is_not_read(x, n):  # type: ignore[no-untyped-def]
    k = 0
    while n > 0:
        k = (k + 1) % 5
    return x * 2


def is_empty(x, n):  # type: ignore[no-untyped-def]
    while n:
        pass
    return x * 2


def changes_no_array(x, n):  # type: ignore[no-untyped-def]
    while n > x.sum():
        pass
    return x * 2


def works_on_arrays(x, n):  # type: ignore[no-untyped-def]
    y = x
    while n > x.sum():
        y = np.sin(y)
    return x * 2


def is_in_a_helper(x, n):  # type: ignore[no-untyped-def]
    is_not_read(x, n)
    return x * 2


@pytest.mark.parametrize(
    "function",
    [
        returns_nothing,
        is_not_read,
        is_empty,
        changes_no_array,
        works_on_arrays,
        is_in_a_helper,
    ],
)
def test_a_loop_without_end_runs_whoever_reads_its_results(function: Callable[..., Any]) -> None:
    scripted, x = nbcomp.script(function), np.zeros(4)
    np.testing.assert_equal(scripted(x, 0), function(x, 0))

    def ring(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(TimeoutError):
            scripted(x, 3)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
