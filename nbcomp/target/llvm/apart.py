"""LLVM in a process of its own, for code of other architectures.

LLVM ends the process where it has no instruction for something, and sometimes does not come to an
end; on the CPU we run on that does not happen to our code, but for the others nobody has tried it
all.  One child process (`serving`) answers all requests; it is started anew when it was lost.
Knows texts and the fields of a `Cpu`.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from typing import IO

from nbcomp.errors import NbcompError

PATIENCE = 30.0  # seconds for one kernel; the slowest we have seen take less than one

_lock = threading.Lock()
_child: _Child | None = None


def made_apart(text: str, cpu: tuple[str, ...], seconds: float | None = None) -> tuple[str, str]:
    """LLVM IR after LLVM's passes, and its assembly.

    Raises NbcompError if LLVM cannot make it, or takes longer than `seconds` (None: `PATIENCE`).
    """
    global _child
    with _lock:
        if _child is None or _child.owner != os.getpid():  # after a fork it is the parent's
            _child = _Child()
        try:
            answer = _child.ask(json.dumps([text, cpu]), seconds or PATIENCE)
        except BaseException:  # also an interrupt: its answer would be taken for the next one's
            end()
            raise
    optimised, assembly = json.loads(answer)
    return optimised, assembly


@atexit.register
def end() -> None:
    """End the child process, if there is one."""
    global _child
    if _child is not None and _child.owner == os.getpid():
        _child.end()
        _child = None


def environment() -> dict[str, str]:
    """What a child process needs to find what this one found."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


class _Child:
    """The process, and what it writes when it dies."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.complaints: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-m", "nbcomp.target.llvm.serving"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.complaints,
            text=True,
            env=environment(),
        )

    def end(self) -> None:
        """End the process and close what belongs to it."""
        self.process.kill()
        with suppress(BrokenPipeError):
            self.process.communicate()
        self.complaints.close()

    def ask(self, request: str, seconds: float) -> str:
        """The answer to a request, each one line."""
        to, out = self.process.stdin, self.process.stdout
        assert to is not None
        assert out is not None
        late = threading.Event()

        def stop() -> None:
            late.set()
            self.process.kill()

        timer = threading.Timer(seconds, stop)
        timer.start()
        try:
            to.write(f"{request}\n")
            to.flush()
            answer = out.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            timer.cancel()
        if answer:
            return answer
        if late.is_set():
            raise NbcompError(f"LLVM did not come to an end within {seconds:.0f} s")
        self.process.wait()
        self.complaints.seek(0)
        said = self.complaints.read().strip().splitlines() or ["it ended without a word"]
        raise NbcompError(f"LLVM cannot make it: {said[-1][-200:]}")
