"""Loops without end stop at Ctrl-C, and the process goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

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
