"""One search for one program: its kernels, the budget, the record, and what is used in the end.

The kernels take turns: the next trials go to the kernel that costs a call most and where something
was found last.  At the end the best of each are timed in turn with the default schedule, and what
is not clearly better is not used.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from nbcomp.compiled import Compiled
from nbcomp.errors import NbcompError
from nbcomp.loop.grammar import Kernel
from nbcomp.machine import host
from nbcomp.measure.comparison import Comparison, check, coarsest, compare
from nbcomp.measure.timing import Neighbours, Ratio, ratio, timing_of
from nbcomp.options import Options
from nbcomp.schedule.canonical import canonical
from nbcomp.schedule.database import Database, Entry, target_of
from nbcomp.tuning.findings import differences_of, findings_of
from nbcomp.tuning.learned import learner
from nbcomp.tuning.ranking import ranking_of
from nbcomp.tuning.result import Found, Point, Say, State, Tuned
from nbcomp.tuning.runner import Outcome, Runner
from nbcomp.tuning.search import Search, Trial
from nbcomp.tuning.space import Candidate, Space
from nbcomp.tuning.subject import Subject
from nbcomp.tuning.tasks import Task, tasks_of
from nbcomp.tuning.whole import Whole, in_turn
from nbcomp.tuning.workers import Workers

# Shares of the seconds: the search ends after the first, then the best are timed in turn, then the
# whole program against its default and NumPy; the rest is for what each step is worth.
SEARCHING, RACING, WHOLE = 0.72, 0.1, 0.1
LEAST_SEARCHING = 0.3  # of the seconds, however long the processes took to start
BATCH = 8  # candidates at a time
TURN = 1.0  # seconds a batch should not exceed
FINALISTS = 3
SLOWEST = 0.99  # of the program's time by default: what a program must be below
REMEMBERED = 2000  # trials of a kernel in the record that are learned from
ATTEMPTS = 3  # workers that may be lost before the default schedule has a time
NO_FASTER = "what was found for the kernels makes the program no faster"


class NothingToTune(NbcompError):
    """A program has no kernel that a schedule could be found for."""


def without_schedules(options: Options) -> Options:
    """These options with the default schedules only."""
    return replace(options, schedules=()).leaving("tuned")


class Tuner:
    """One search for one program."""

    def __init__(
        self,
        compiled: Compiled,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        seconds: float,
        record: Database | None,
        say: Say,
        seed: int = 0,
        reference: Callable[..., Any] | None = None,
        runner: Runner | None = None,
        drawn: int = 0,
    ) -> None:
        self.compiled, self.args, self.kwargs = compiled, args, kwargs
        self.reference = reference or compiled.function
        self.seconds, self.record, self.say, self.seed = seconds, record, say, seed
        self.drawn = drawn  # candidates at random by which the model is judged
        self.start = time.perf_counter()
        options = without_schedules(compiled.options)
        self.base = compiled if compiled.options == options else self.made(options)
        # What a search competes with: schedules that were adopted, found or recorded before.
        self.in_use = compiled if _notes(compiled) != _notes(self.base) else self.base
        self.kernels: list[Subject] = []
        self.before: Comparison | None = None  # by the default schedules
        self.held: Comparison | None = None  # by those in use
        self.phases: dict[str, float] = {}  # seconds, by what was done
        self.doing, self.since = "starting", self.start
        self.interrupted = False
        self.ended = threading.Event()  # set from outside: the search is to come to its end
        self.searching = 0.0
        self.runner = runner or Workers()
        self.local = target_of(self.runner.machine) == target_of(host())

    def made(self, options: Options) -> Compiled:
        """The program with other options."""
        return self.compiled.recompile(self.compiled, options, "host")

    @property
    def spent(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self.start

    # ---------------------------------------------------------------------------- the whole

    def run(self) -> Tuned:
        """Search, choose, and look at what was chosen."""
        threading.Thread(target=learner, daemon=True).start()  # brings it while workers start
        with self.runner as workers:
            wrong = self.against_numpy(self.base).problem
            if wrong:
                why = f"{self.base.name} does not give NumPy's answer: {wrong}"
                raise NbcompError(f"{why}; what is wrong is not tuned")
            tasks = tasks_of(self.base, self.args, self.kwargs)
            if not tasks:
                why = "has no kernel that a schedule could be found for"
                raise NothingToTune(f"{self.base.name} {why}")
            try:
                self.begin(workers, tasks)
                self.search(workers)
            except KeyboardInterrupt:
                if len(self.kernels) < len(tasks):
                    raise
                self.interrupted = True
                workers.restart()
            self.judge_model(workers)
            self.choose(workers)
            whole = self.whole()
            found = tuple(self.found(k, workers, whole.compiled) for k in self.kernels)
            lost = workers.lost
        return self.result(whole, found, lost)

    def tell(self, doing: str) -> None:
        """Say how it goes."""
        self.turn_to(doing)
        numpy = self.before.reference if self.before else None
        program = self.before.compiled if self.before else None
        kernels = tuple(k.state() for k in self.kernels if k.search.trials)
        self.say(
            State(
                self.base.name,
                doing,
                self.spent,
                self.seconds,
                kernels,
                numpy.median if numpy else None,
                program.median if program else None,
            )
        )

    def turn_to(self, doing: str) -> None:
        """Note that the seconds from here on are spent on this."""
        now = time.perf_counter()
        if self.doing:
            self.phases[self.doing] = self.phases.get(self.doing, 0.0) + now - self.since
        self.doing, self.since = doing, now

    def against_numpy(self, compiled: Compiled, seconds: float = 0.0) -> Comparison:
        """Check a compiled program and, if there is time, time it in turn with the Python
        function."""
        writes, eps = (
            bool(compiled.capture.writes),
            coarsest(compiled.captured, compiled.options.precision),
        )
        what = (compiled.entry, self.reference, self.args, self.kwargs)
        return compare(*what, seconds, writes, eps) if seconds else check(*what, writes, eps)

    # ---------------------------------------------------------------------------- searching

    def begin(self, workers: Runner, tasks: Sequence[Task]) -> None:
        """Time every kernel with its default schedule, and see what the record knows."""
        self.tell("starting")
        workers.use(tasks[0])
        timing = min(0.5, 0.02 * self.seconds)
        self.held = self.before = self.against_numpy(self.base, timing)
        if self.in_use is not self.base:
            self.held = self.against_numpy(self.in_use, timing)
        for task in tasks:
            space = Space(task.kernel, workers.machine)
            search = Search(space, self.seed)
            kernel = Subject(task, search, canonical(task.kernel), self.used(task))
            earlier = self.record.entries(kernel.known.digest) if self.record else []
            self.try_default(workers, kernel)
            self.kernels.append(kernel)
            self.remember(workers, kernel, earlier)

    def used(self, task: Task) -> Trial | None:
        """The schedule a kernel has had so far, if that is not the default one; not timed yet."""
        before, usual = _notes(self.in_use).get(task.kernel.name), _notes(self.base)
        if before is None or before == usual.get(task.kernel.name):
            return None
        made = next(k.kernel for k in self.in_use.kernels if k.name == task.kernel.name)
        return Trial(Candidate(made, {}), Outcome(None, "not timed yet"))

    def try_default(self, workers: Runner, kernel: Subject) -> None:
        """Time the default schedule, again where its worker was lost, which may not be its fault.
        Raises NbcompError where it cannot be timed."""
        trials, lost = kernel.search.trials, -1
        while not trials or (trials[0].outcome.share is None and lost < workers.lost < ATTEMPTS):
            trials.clear()
            lost = workers.lost
            self.try_all(workers, kernel, [kernel.search.space.default()])
        if trials[0].outcome.share is None:
            raise NbcompError(f"{kernel.name} by its default schedule: {trials[0].outcome.note}")

    def remember(self, workers: Runner, kernel: Subject, earlier: Sequence[Entry]) -> None:
        """Take note of trials that were in the record, and try the best of them again."""
        target, search = target_of(workers.machine), kernel.search
        best: Entry | None = None
        for entry in earlier[-REMEMBERED:]:
            if entry.target != target or not entry.decisions:
                continue
            search.known.add(kernel.key_of(entry))
            if entry.share < math.inf:
                search.earlier.append((entry.decisions, entry.share))
                best = entry if best is None or entry.share < best.share else best
        again = search.space.build(best.decisions) if best else None
        if again is not None and again.key != search.trials[0].candidate.key:
            self.try_all(workers, kernel, [again])

    def search(self, workers: Runner) -> None:
        """Give the kernels their turns until the time is over, and one turn in any case."""
        begin = self.spent
        end = max(SEARCHING * self.seconds, begin + LEAST_SEARCHING * self.seconds)
        self.turn_to("searching")
        told, turns = 0.0, 0
        try:
            while (self.spent < end or not turns) and not self.ended.is_set():
                turns += 1
                open_ = [k for k in self.kernels if not k.over and workers.width]
                if not open_:
                    return
                kernel = max(open_, key=lambda k: k.claim)
                proposed = kernel.search.propose(self.batch(kernel))
                kernel.over = not self.try_all(workers, kernel, proposed)
                if self.spent - told > 0.25:
                    told = self.spent
                    self.tell("searching")
        finally:
            self.searching = self.spent - begin

    def batch(self, kernel: Subject) -> int:
        """How many candidates are tried at a time: fewer of slow kernels."""
        each = max(2, min(BATCH, int(TURN / (4 * kernel.search.default + 1e-9))))
        return each * self.runner.width

    def try_all(self, workers: Runner, kernel: Subject, candidates: Iterable[Candidate]) -> int:
        """Try candidates; what came of some is in the record before more is waited for.

        Returns how many there were.
        """
        tried: list[Candidate] = []

        def made() -> Iterator[Kernel]:
            for candidate in candidates:
                tried.append(candidate)
                yield candidate.kernel

        for outcomes in workers.run(kernel.task, made(), kernel.search.least):
            trials = [Trial(tried[number], outcome) for number, outcome in outcomes.items()]
            for trial in trials:
                kernel.search.learn(trial)
                kernel.points.append(Point(self.spent, trial.outcome.seconds))
            self.note(workers, kernel, trials)
        return len(tried)

    def note(
        self, workers: Runner, kernel: Subject, trials: Sequence[Trial], verdict: bool = False
    ) -> None:
        """Lines more in the record."""
        if self.record is not None:
            target = target_of(workers.machine)
            self.record.append(*(kernel.entry(target, t, verdict) for t in trials))

    def judge_model(self, workers: Runner) -> None:
        """Say of the kernel with the most trials how well the model ranks its space, if asked; an
        interrupt ends that and keeps what was found."""
        if not self.drawn or self.interrupted:
            return
        self.tell("judging the cost model")
        kernel = max(self.kernels, key=lambda k: len(k.search.trials))
        try:
            kernel.ranking = ranking_of(workers, kernel.task, kernel.search, self.drawn)
        except KeyboardInterrupt:
            self.interrupted = True
            workers.restart()

    # ----------------------------------------------------------------------------- choosing

    def choose(self, workers: Runner) -> None:
        """Time the best of each kernel in turn with its default schedule."""
        self.tell("comparing the best")
        left = RACING * self.seconds if not self.interrupted else min(1.0, RACING * self.seconds)
        total = sum(k.task.calls * k.search.default for k in self.kernels)
        for kernel in self.kernels:
            default, held = kernel.search.trials[0], kernel.held
            known = {default.candidate.key, held.candidate.key}
            best = [t for t in kernel.search.timed if t.candidate.key not in known][:FINALISTS]
            best = [*best, held] if held is not default else best
            kernel.chosen = held
            if not best:
                continue
            share = kernel.task.calls * kernel.search.default / total
            seconds = max(left * share, 0.05)
            samples = workers.race(kernel.task, [t.candidate.kernel for t in best], seconds)
            kernel.judge([default, *best], samples)

    def whole(self) -> Whole:
        """The program with what was chosen, checked and timed in turn with its default: here."""
        if not self.local:
            return Whole(self.in_use, note="found for another CPU than this one: recorded for it")
        self.tell("the whole program")
        if all(k.chosen is k.held for k in self.kernels):
            return Whole(self.in_use)
        names = {k.name for k in self.kernels}
        given = tuple(pair for pair in self.compiled.options.schedules if pair[0] not in names)
        options = replace(self.compiled.options, schedules=given).leaving("tuned")
        for kernel in self.kernels:
            if kernel.change and kernel.chosen:
                options = options.scheduling(kernel.name, kernel.chosen.candidate.schedule)
        made, neighbours = self.made(options), Neighbours()
        note = self.against_numpy(made).problem
        seconds = max(WHOLE * self.seconds, 0.2)
        what = (self.in_use, made, self.args, self.kwargs, self.reference, seconds)
        samples = [] if note else in_turn(*what)
        default, own = (timing_of(s, 1) for s in samples) if samples else (None, None)
        change = ratio(samples[1], samples[0]) if samples else None
        others = neighbours.cores()
        if change and self.better(change):
            return Whole(made, default, own, change, others)
        for kernel in self.kernels:
            kernel.hold()
        slow = f"{NO_FASTER}: {change.faster}" if change else NO_FASTER
        declined = f"WRONG ANSWER: {note}" if note else slow
        return Whole(self.in_use, default, default, None, others, declined=declined)

    def better(self, change: Ratio) -> bool:
        """Whether the program with what was found is faster than that by more than the noise."""
        return change.median < SLOWEST and change.clear

    def found(self, kernel: Subject, workers: Runner, chosen: Compiled) -> Found:
        """What became of a kernel; noted in the record as the end of its search."""
        state = kernel.state(correlation=True)
        assert kernel.chosen is not None
        if kernel.change or kernel.chosen.outcome.share is not None:
            self.note(workers, kernel, [kernel.chosen], verdict=True)
        stays = kernel.chosen is kernel.held
        if kernel.chosen is kernel.search.trials[0] or (self.local and chosen is self.base):
            return Found(state, final=kernel.final, stays=stays)
        schedule = kernel.chosen.candidate.schedule.of(kernel.task.kernel)
        found = Found(state, schedule, kernel.change, final=kernel.final, stays=stays)
        if stays:
            return found
        with suppress(KeyboardInterrupt):
            found = found if self.interrupted else self.explained(kernel, workers, found)
        return found

    def explained(self, kernel: Subject, workers: Runner, found: Found) -> Found:
        """With what its differences and steps are worth."""
        self.tell("what each step is worth")
        share = (1 - SEARCHING - RACING - WHOLE) * self.seconds / len(self.kernels) / 2
        assert kernel.chosen is not None
        assert found.schedule is not None
        candidate = kernel.chosen.candidate
        differences = differences_of(workers, kernel.task, kernel.search.space, candidate, share)
        findings = findings_of(workers, kernel.task, candidate.schedule, share)
        return replace(found, differences=differences, findings=findings)

    def result(self, whole: Whole, found: tuple[Found, ...], lost: int) -> Tuned:
        """All of it."""
        assert self.held is not None
        self.turn_to("")
        note = whole.note
        if not note and any(k.open for k in self.kernels):
            note = "found for the lengths given here, and used for others; recorded for their order"
        return Tuned(
            self.base.name,
            whole.compiled,
            found,
            self.spent,
            self.searching,
            whole.default or self.held.compiled,
            whole.own or self.held.compiled,
            whole.change,
            self.held.reference,
            str(self.record.path) if self.record else "",
            lost,
            self.interrupted,
            note,
            whole.others,
            self.record.problems if self.record else (),
            target_of(self.runner.machine),
            declined=whole.declined,
            scheduled=self.in_use is not self.base,
            phases=tuple(self.phases.items()),
        )


def _notes(compiled: Compiled) -> dict[str, tuple[str, ...]]:
    """The steps of each kernel, by name."""
    return {k.name: k.kernel.notes for k in compiled.kernels}
