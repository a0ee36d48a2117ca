"""Workers: processes in which candidates are compiled, checked and timed, and which may be lost.

A worker stays alive from trial to trial; one that crashes, or does not answer in time, is replaced,
and that was one trial.  Candidates are compiled by all workers at once and timed by one at a time.
Run as a module it is the worker itself: messages come by its standard input, answers leave by its
standard output.
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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Protocol, Self

from nbcomp.errors import PACKAGE, NbcompError
from nbcomp.machine import Machine, host
from nbcomp.runtime import pool
from nbcomp.tuning.bench import Bench, Prepared, Timed, Wanted
from nbcomp.tuning.tasks import Task

PATIENCE = 10.0  # seconds a candidate may take to be compiled and checked, or to be timed
START = 60.0  # seconds a worker may take to start, on a busy machine


@dataclass(frozen=True)
class Outcome:
    """What came of a candidate: how many times as long as the default schedule it takes, timed in
    turn with that, or why this is not known.

    default: seconds of a run by the default schedule, undisturbed.
    """

    share: float | None
    note: str = ""
    default: float = 1.0

    @property
    def seconds(self) -> float | None:
        """Of a run."""
        return None if self.share is None else self.share * self.default


Outcomes = Mapping[int, Outcome]  # by position


class Runner(Protocol):
    """Where candidates are measured: processes on this machine, or the hosts of a cluster."""

    lost: int  # workers that crashed or hung

    @property
    def machine(self) -> Machine:
        """What candidates run on."""

    @property
    def width(self) -> int:
        """How many machines measure at once."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(self, *error: object) -> None:
        """End."""

    def restart(self) -> None:
        """Begin anew: after an interrupt nobody knows what is under way."""

    def use(self, task: Task) -> None:
        """Work on this kernel from now on."""

    def run(
        self, task: Task, candidates: Iterable[Wanted], best: float = math.inf
    ) -> Iterator[Outcomes]:
        """What came of candidates, by position, as it comes."""

    def race(self, task: Task, candidates: Sequence[Wanted], seconds: float) -> list[list[float]]:
        """Samples of the default schedule, then of others, taken in turn; none where one does not
        work."""


class Lost(Exception):
    """A worker is not there any more, or does not answer."""


# --------------------------------------------------------------------------- the worker's side


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


# ----------------------------------------------------------------------------- the other side


@dataclass(eq=False)
class _Worker:
    """A running worker, and where its answers go."""

    inbox: queue.SimpleQueue[tuple[_Worker, Any]]
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
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        while True:
            try:
                answer = pickle.load(self.process.stdout)
            except Exception:  # it ended, perhaps in the middle of an answer
                self.inbox.put((self, None))
                return
            self.inbox.put((self, answer))

    def send(self, *message: Any) -> None:
        """Ask for something; Lost if nobody is there."""
        assert self.process.stdin is not None
        try:
            pickle.dump(message, self.process.stdin, protocol=5)
            self.process.stdin.flush()
        except OSError:
            raise Lost(self.how_it_ended()) from None

    def how_it_ended(self) -> str:
        """In words, once it has ended."""
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
        self.inbox: queue.SimpleQueue[tuple[_Worker, Any]] = queue.SimpleQueue()
        self.unread: list[tuple[_Worker, Any]] = []  # answers that came while another was awaited
        self.workers: list[_Worker] = []
        self.task: Task | None = None
        self.started: set[_Worker] = set()
        self.lost = 0  # workers that crashed or hung

    @property
    def machine(self) -> Machine:
        """What candidates run on."""
        return host()

    @property
    def width(self) -> int:
        """This is one machine."""
        return 1

    def __enter__(self) -> Self:
        self.workers = [_Worker(self.inbox) for _ in range(self.count)]
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
        """Work on this kernel from now on."""
        if task is not self.task:
            self.task = task
            for worker in list(self.workers):
                self._begin(worker)

    def _begin(self, worker: _Worker) -> None:
        """Tell a worker what it works on."""
        wait = self.patience if worker in self.started else START
        try:
            if worker not in self.started:
                self.ask(worker, wait, "threads", pool.threads())
                self.started.add(worker)
            self.ask(worker, wait + self.patience, "task", self.task)
        except Lost as error:
            why = str(error) or f"it did not answer in {wait:g} s"
            raise NbcompError(f"no process to measure in: {why}") from None

    def ask(self, worker: _Worker, seconds: float, *message: Any) -> Any:
        """Send a message to a worker that is idle, and wait for its answer."""
        worker.send(*message)
        return self.answer(worker, *self.next(time.monotonic() + seconds, worker))

    def next(self, until: float, only: _Worker | None = None) -> tuple[_Worker, Any]:
        """The next answer, of one worker or of any; Lost when there is none in time."""
        for found in self.unread:
            if only in (None, found[0]):
                self.unread.remove(found)
                return found
        while True:
            try:
                found = self.inbox.get(timeout=max(until - time.monotonic(), 0.001))
            except queue.Empty:
                raise Lost("") from None
            if found[0] not in self.workers:
                continue  # the last words of one that was replaced
            if only in (None, found[0]):
                return found
            self.unread.append(found)

    def answer(self, worker: _Worker, sender: _Worker, answer: Any) -> Any:
        """What an answer says; Lost if it is the end of a worker."""
        if answer is None:
            raise Lost(sender.how_it_ended())
        fine, value = answer
        if not fine:
            raise ValueError(value)
        return value

    def replace(self, worker: _Worker) -> _Worker:
        """Another one for a worker that is lost."""
        self.lost += 1
        worker.close()
        self.unread = [pair for pair in self.unread if pair[0] is not worker]
        new = _Worker(self.inbox)
        self.workers[self.workers.index(worker)] = new
        self._begin(new)
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
            ready: dict[int, _Worker] = {}
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

    def _time(self, worker: _Worker, numbers: list[int], best: float) -> list[Outcome] | None:
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
        self, taken: Sequence[Wanted], waiting: Iterator[int], ready: dict[int, _Worker]
    ) -> Iterator[Outcomes]:
        """Let all workers compile and check; `ready` gets those that may be timed, by whom."""
        busy: dict[_Worker, tuple[int, float]] = {}
        following = next(waiting, None)
        while busy or following is not None:
            for worker in list(self.workers):
                if following is not None and worker not in busy:
                    worker = self._ask_to_prepare(worker, following, taken[following])
                    busy[worker] = following, time.monotonic() + self.patience
                    following = next(waiting, None)
            worker, why = self._prepared(busy)
            number, _ = busy.pop(worker)
            if why:
                yield {number: Outcome(None, why)}
            else:
                ready[number] = worker

    def _ask_to_prepare(self, worker: _Worker, number: int, wanted: Wanted) -> _Worker:
        """Send a candidate to a worker, or to its successor if it is not there any more."""
        try:
            worker.send("prepare", number, wanted)
        except Lost:
            worker = self.replace(worker)
            worker.send("prepare", number, wanted)
        return worker

    def _prepared(self, busy: Mapping[_Worker, tuple[int, float]]) -> tuple[_Worker, str]:
        """The next worker that is done, and why its candidate cannot be timed, if so."""
        try:
            worker, answer = self.next(min(end for _, end in busy.values()))
        except Lost:
            worker = min(busy, key=lambda w: busy[w][1])
            self.replace(worker)
            return worker, self._late()
        try:
            return worker, str(self.answer(worker, worker, answer))
        except ValueError as error:
            return worker, str(error)
        except Lost as error:
            self.replace(worker)
            return worker, str(error)

    def race(self, task: Task, candidates: Sequence[Wanted], seconds: float) -> list[list[float]]:
        """Samples of the default schedule, then of those given, taken in turn; none of one that
        does not work."""
        self.use(task)
        worker, numbers = self.workers[0], []
        try:
            for number, wanted in enumerate(candidates):
                if not self.ask(worker, self.patience, "prepare", number, wanted):
                    numbers.append(number)
            taken = self.ask(worker, self.patience + 2 * seconds, "race", numbers, seconds)
        except (Lost, ValueError):
            self.replace(worker)
            return [[], *([] for _ in candidates)]
        found = dict(zip([-1, *numbers], taken, strict=True))
        return [found.get(k, []) for k in range(-1, len(candidates))]


def _numbered(candidates: Iterable[Wanted], taken: list[Wanted]) -> Iterator[int]:
    """The position of each candidate, once it has been taken."""
    for number, wanted in enumerate(candidates):
        taken.append(wanted)
        yield number


if __name__ == "__main__":
    serve()
