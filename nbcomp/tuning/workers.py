"""The workers on this machine, seen from the process that searches.

A worker stays alive from trial to trial.  One that crashes, is killed, is stopped or does not
answer in time is replaced, and that was one trial: the search goes on.  Candidates are compiled by
all workers at once and timed by one at a time.  Knows what is sent and answered (`worker`), not
what is searched.
"""

from __future__ import annotations

import math
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Self

from nbcomp.errors import PACKAGE, NbcompError
from nbcomp.machine import Machine, host
from nbcomp.runtime import pool
from nbcomp.tuning.bench import Wanted
from nbcomp.tuning.runner import Outcome, Outcomes
from nbcomp.tuning.tasks import Task

PATIENCE = 10.0  # seconds a candidate may take to be compiled and checked, or to be timed
START = 60.0  # seconds a worker may take to start, on a busy machine
GLANCE = 0.25  # seconds between looks whether those that are awaited still run
ATTEMPTS = 3  # processes that may be lost, one after the other, before there are none


class Lost(Exception):
    """A worker is not there any more, or does not answer."""


@dataclass(eq=False)
class Worker:
    """A running worker, and where its answers go: None is its end.

    What is sent is written by a thread of its own, since a process that has been stopped reads
    nothing and would stop who writes to it.
    """

    inbox: queue.SimpleQueue[tuple[Worker, Any]]
    outbox: queue.SimpleQueue[bytes | None] = field(default_factory=queue.SimpleQueue)
    process: subprocess.Popen[bytes] = field(init=False)
    said: IO[bytes] = field(default_factory=TemporaryFile)  # its standard error

    def __post_init__(self) -> None:
        known = os.environ.get("PYTHONPATH")
        paths = os.pathsep.join([str(Path(PACKAGE).parent), *([known] if known else [])])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "nbcomp.tuning.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": paths},  # the nbcomp that runs here
        )
        for talk in (self._listen, self._speak):
            threading.Thread(target=talk, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        while True:
            try:
                answer = pickle.load(self.process.stdout)
            except Exception:  # it ended, perhaps in the middle of an answer
                self.inbox.put((self, None))
                return
            self.inbox.put((self, answer))

    def _speak(self) -> None:
        assert self.process.stdin is not None
        while (message := self.outbox.get()) is not None:
            try:
                self.process.stdin.write(message)
                self.process.stdin.flush()
            except (OSError, ValueError):  # it ended, which `_listen` hears, or was closed
                return

    def send(self, *message: Any) -> None:
        """Ask for something."""
        self.outbox.put(pickle.dumps(message, protocol=5))

    @property
    def ended(self) -> bool:
        """Whether the process is over."""
        return self.process.poll() is not None

    @property
    def stopped(self) -> bool:
        """Whether somebody has stopped the process, where the system can tell."""
        if not hasattr(os, "waitid"):
            return False
        look = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
        try:
            return os.waitid(os.P_PID, self.process.pid, look) is not None
        except ChildProcessError:
            return False

    def how_it_ended(self) -> str:
        """In words, once it has ended or been stopped."""
        if self.stopped:
            return "its process was stopped"
        code = self.process.wait()
        if code < 0:
            return f"crashed ({signal.Signals(-code).name})"
        self.said.seek(0)
        lines = self.said.read().decode(errors="replace").strip().splitlines()
        return f"ended with status {code}" + (f": {lines[-1]}" if lines else "")

    def close(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.wait()
        self.outbox.put(None)
        for pipe in (self.process.stdin, self.process.stdout, self.said):
            assert pipe is not None
            try:
                pipe.close()
            except OSError:  # what was not sent yet is not sent
                continue


class Workers:
    """The workers on this machine: `run` gives outcomes as they come.

    count: how many compile at once.  patience: seconds a candidate may take.
    """

    def __init__(self, count: int = 0, patience: float = PATIENCE) -> None:
        self.count = count or max(pool.available(), 1)
        self.patience = patience
        self.inbox: queue.SimpleQueue[tuple[Worker, Any]] = queue.SimpleQueue()
        self.unread: list[tuple[Worker, Any]] = []  # answers that came while another was awaited
        self.workers: list[Worker] = []
        self.task: Task | None = None
        self.started: set[Worker] = set()
        self.lost = 0  # workers that crashed, hung, were killed or stopped

    @property
    def machine(self) -> Machine:
        """What candidates run on."""
        return host()

    @property
    def width(self) -> int:
        """This is one machine."""
        return 1

    def __enter__(self) -> Self:
        self.workers = [Worker(self.inbox) for _ in range(self.count)]
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self.workers:
            worker.close()
        self.workers.clear()

    def restart(self) -> None:
        """Begin with new ones: after an interrupt nobody knows what the old ones are at."""
        self.__exit__()
        self.started.clear()
        self.unread.clear()
        self.task = None
        self.__enter__()

    # ------------------------------------------------------------------------------- talking

    def use(self, task: Task) -> None:
        """Work on this kernel from now on.  Raises NbcompError where no process can be had."""
        if task is not self.task:
            self.task = task
            for worker in list(self.workers):
                self._begin(worker)

    def _begin(self, worker: Worker) -> Worker:
        """Tell a worker what it works on, or another one in its place if it is lost."""
        why = ""
        for _ in range(ATTEMPTS):
            wait = self.patience if worker in self.started else START
            try:
                if worker not in self.started:
                    self.ask(worker, wait, "threads", pool.threads())
                    self.started.add(worker)
                self.ask(worker, wait + self.patience, "task", self.task)
            except Lost as error:
                why = str(error) or f"it did not answer in {wait:g} s"
                worker = self._another(worker)
            else:
                return worker
        raise NbcompError(f"no process to measure in: {why}")

    def ask(self, worker: Worker, seconds: float, *message: Any) -> Any:
        """Send a message to a worker that is idle, and wait for its answer."""
        worker.send(*message)
        return self.answer(*self.next(time.monotonic() + seconds, (worker,)))

    def next(self, until: float, awaited: Collection[Worker]) -> tuple[Worker, Any]:
        """The next answer of some workers, None for the end of one; Lost when there is none in
        time."""
        for found in self.unread:
            if found[0] in awaited:
                self.unread.remove(found)
                return found
        while True:
            left = until - time.monotonic()
            try:
                found = self.inbox.get(timeout=max(min(left, GLANCE), 0.001))
            except queue.Empty:
                if stopped := next((w for w in awaited if w.stopped), None):
                    return stopped, None
                if left <= 0:
                    raise Lost("") from None
                continue
            if found[0] in awaited:
                return found
            if found[0] in self.workers:  # else the last words of one that was replaced
                self.unread.append(found)

    def answer(self, worker: Worker, answer: Any) -> Any:
        """What an answer says; Lost if it is the end of the worker."""
        if answer is None:
            raise Lost(worker.how_it_ended())
        fine, value = answer
        if not fine:
            raise ValueError(value)
        return value

    def replace(self, worker: Worker) -> Worker:
        """Another one for a worker that is lost, which knows what it works on."""
        return self._begin(self._another(worker))

    def _another(self, worker: Worker) -> Worker:
        """A new process in the place of one that is lost."""
        self.lost += 1
        worker.close()
        self.started.discard(worker)
        self.unread = [pair for pair in self.unread if pair[0] is not worker]
        new = Worker(self.inbox)
        self.workers[self.workers.index(worker)] = new
        return new

    # ------------------------------------------------------------------------------- working

    def run(
        self, task: Task, candidates: Iterable[Wanted], best: float = math.inf
    ) -> Iterator[Outcomes]:
        """What came of candidates, by position, as it comes: first of those that cannot be timed.

        candidates: taken one after another while workers are busy, so making them costs no time.
        best: the least share of the default's time so far; what is far beyond is timed less well.
        """
        self.use(task)
        taken: list[Wanted] = []
        alone: deque[int] = deque()  # those whose worker was lost with others at hand
        waiting: Iterator[int] | None = _numbered(candidates, taken)
        while waiting is not None:
            ready: dict[int, Worker] = {}
            yield from self._prepare(taken, waiting, ready)
            for worker in dict.fromkeys(ready.values()):
                numbers = [k for k, w in ready.items() if w is worker]
                # It may have been lost with what it had ready.
                outcomes = self._time(worker, numbers, best) if worker in self.workers else None
                if outcomes is None:
                    alone.extend(numbers)
                else:
                    yield dict(zip(numbers, outcomes, strict=True))
            waiting = iter([alone.popleft()]) if alone else None

    def _time(self, worker: Worker, numbers: list[int], best: float) -> list[Outcome] | None:
        """Outcomes of what a worker has ready; None where one of several was its end."""
        try:
            patience = self.patience * len(numbers)
            timed = self.ask(worker, patience, "time", numbers, best)
            return [Outcome(share, "", default) for share, default in timed]
        except ValueError as error:
            why = str(error)
        except Lost as error:
            why = str(error) or self._late()
            self.replace(worker)
        return [Outcome(None, why)] if len(numbers) == 1 else None

    def _late(self) -> str:
        return f"took longer than {self.patience:g} s"

    def _prepare(
        self, taken: Sequence[Wanted], waiting: Iterator[int], ready: dict[int, Worker]
    ) -> Iterator[Outcomes]:
        """Let all workers compile and check; `ready` gets those that may be timed, by whom."""
        busy: dict[Worker, tuple[int, float]] = {}
        following = next(waiting, None)
        while busy or following is not None:
            for worker in list(self.workers):
                if following is not None and worker not in busy:
                    worker = self.replace(worker) if worker.ended else worker
                    worker.send("prepare", following, taken[following])
                    busy[worker] = following, time.monotonic() + self.patience
                    following = next(waiting, None)
            worker, why = self._prepared(busy)
            number, _ = busy.pop(worker)
            if why:
                yield {number: Outcome(None, why)}
            else:
                ready[number] = worker

    def _prepared(self, busy: Mapping[Worker, tuple[int, float]]) -> tuple[Worker, str]:
        """The next worker that is done, and why its candidate cannot be timed, if so."""
        try:
            worker, answer = self.next(min(end for _, end in busy.values()), busy)
        except Lost:
            worker = min(busy, key=lambda w: busy[w][1])
            self.replace(worker)
            return worker, self._late()
        try:
            return worker, str(self.answer(worker, answer))
        except ValueError as error:
            return worker, str(error)
        except Lost as error:
            self.replace(worker)
            return worker, str(error)

    def race(self, task: Task, candidates: Sequence[Wanted], seconds: float) -> list[list[float]]:
        """Samples of the default schedule, then of those given, taken in turn; none of one that
        does not work.  A worker that is lost meanwhile costs another attempt."""
        self.use(task)
        for _ in range(ATTEMPTS):
            try:
                return self._raced(self.workers[0], candidates, seconds)
            except (Lost, ValueError):
                self.replace(self.workers[0])
        return [[], *([] for _ in candidates)]

    def _raced(
        self, worker: Worker, candidates: Sequence[Wanted], seconds: float
    ) -> list[list[float]]:
        numbers = []
        for number, wanted in enumerate(candidates):
            with suppress(ValueError):  # a fault of ours in one candidate
                if not self.ask(worker, self.patience, "prepare", number, wanted):
                    numbers.append(number)
        taken = self.ask(worker, self.patience + 2 * seconds, "race", numbers, seconds)
        found = dict(zip([-1, *numbers], taken, strict=True))
        return [found.get(k, []) for k in range(-1, len(candidates))]


def _numbered(candidates: Iterable[Wanted], taken: list[Wanted]) -> Iterator[int]:
    """The position of each candidate, once it has been taken."""
    for number, wanted in enumerate(candidates):
        taken.append(wanted)
        yield number
