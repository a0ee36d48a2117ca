"""One row: every contestant in its own process, checked, then timed in alternating rounds.

While one runs the others are stopped (SIGSTOP), so that no spinning thread of theirs takes a core.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from benchmarks import timing
from benchmarks.peers import LIMIT, OWN
from benchmarks.worker import Answer
from benchmarks.workloads import Workload

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Settings:
    """How long and how often; `seconds` are of samples, per round and contestant."""

    rounds: int = 5
    seconds: float = 0.25
    patience: float = 180.0  # for any one command
    threads: int = 1
    own_python: str = "python3"
    peers_python: str = "python3"
    log: Path = Path("build/benchmark.log")


@dataclass
class Outcome:
    """What one contestant did on one row; `failed` says why there are no samples."""

    peer: str
    version: str = ""
    blas: list[str] = field(default_factory=list)
    first: float | None = None
    error: float | None = None
    failed: str = ""
    samples: list[float] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For the JSON file: times in seconds."""
        times = timing.summary(self.samples) if self.samples else None
        return {
            "peer": self.peer,
            "version": self.version,
            "first_call": self.first,
            "difference": self.error,
            "failed": self.failed,
            "time": times,
        }


class Process:
    """A worker process that is stopped except while it answers."""

    def __init__(self, peer: str, row: str, settings: Settings, scratch: str) -> None:
        self.settings = settings
        self.log: IO[bytes] = settings.log.open("ab")
        python = settings.own_python if peer in OWN else settings.peers_python
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", peer, row],
            cwd=ROOT,
            env=environment(settings.threads, scratch),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            start_new_session=True,
        )

    def ask(self, *command: Any) -> Answer:
        """Send a command and wait for its answer; a failure when there is none in time."""
        assert self.process.stdin is not None
        try:
            self._signal(signal.SIGCONT)
            self.process.stdin.write(json.dumps(command).encode() + b"\n")
            self.process.stdin.flush()
            line = self._line()
            self._signal(signal.SIGSTOP)
        except (BrokenPipeError, ProcessLookupError):
            line = b""
        if line is None:
            return {"failed": f"no answer in {self.settings.patience:.0f} s"}
        return dict(json.loads(line)) if line else {"failed": "the process died"}

    def _line(self) -> bytes | None:
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(self.settings.patience):
                return None
        return self.process.stdout.readline()

    def _signal(self, number: signal.Signals) -> None:
        os.killpg(self.process.pid, number)

    def close(self) -> None:
        """End it and all it started."""
        with contextlib.suppress(ProcessLookupError):
            self._signal(signal.SIGKILL)
        self.process.communicate()
        self.log.close()


def environment(threads: int, scratch: str) -> dict[str, str]:
    """The workers' environment: fresh caches, so that a first call is one, and the thread count.

    OpenBLAS chooses its own kernel: a setting that picks an older one is left out here.
    """
    inherited = {
        k: v
        for k, v in os.environ.items()
        if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "PYTHONPATH")
    }
    names = ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR", "NUMEXPR_MAX", "TVM")
    return {
        **inherited,
        **{f"{name}_NUM_THREADS": str(threads) for name in names},
        "NUMEXPR_MAX_THREADS": str(threads),
        "XDG_CACHE_HOME": scratch,
        "TORCHINDUCTOR_CACHE_DIR": f"{scratch}/inductor",
        "CACHEDB": f"{scratch}/tinygrad.db",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }


def contest(workload: Workload, peers: Sequence[str], settings: Settings) -> list[Outcome]:
    """Time all peers on one row, and the bare traffic of a row that is about memory.

    NumPy runs first: its answer is what the others are held to.
    """
    names = ["numpy", *(p for p in peers if p != "numpy")]
    names += [LIMIT.name] if workload.traffic else []
    settings.log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="nbcomp-bench-") as scratch:
        answer = f"{scratch}/numpy.npz"
        outcomes = {name: Outcome(name) for name in names}
        running: dict[str, Process] = {}
        try:
            for name in names:
                process = Process(name, workload.name, settings, f"{scratch}/{name}")
                running[name] = process
                _enter(process, outcomes[name], answer)
            for turn in range(settings.rounds):
                ready = [n for n in names if not outcomes[n].failed]
                for name in ready[turn % len(ready) :] + ready[: turn % len(ready)]:
                    _round(running[name], outcomes[name], settings.seconds)
        finally:
            for process in running.values():
                process.close()
    return [outcomes[name] for name in (*peers, LIMIT.name) if name in outcomes]


def _enter(process: Process, outcome: Outcome, answer: str) -> None:
    """Prepare a contestant, take its first call and check its result."""
    reply = process.ask("prepare")
    outcome.version, outcome.blas = reply.get("version", ""), reply.get("blas", [])
    if "failed" not in reply and outcome.peer == "numpy":
        reply = process.ask("save", answer)
    if "failed" not in reply and outcome.peer != LIMIT.name:
        reply = process.ask("first", answer)
        outcome.first, outcome.error = reply.get("seconds"), reply.get("error")
    outcome.failed = reply.get("failed", "")
    if outcome.failed:
        process.close()


def _round(process: Process, outcome: Outcome, seconds: float) -> None:
    """One turn of one contestant."""
    reply = process.ask("time", seconds)
    outcome.samples += reply.get("samples", [])
    outcome.failed = reply.get("failed", "")
