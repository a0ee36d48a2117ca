"""The schedules a kernel may have: all answers to the decisions of the schedule's rules.

A candidate is named by its decisions and is a `Schedule`, as the rules wrote it.  New candidates
are drawn, or made from good ones by changing an answer or mixing two.  Knows no times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from nbcomp.errors import NbcompError
from nbcomp.loop.grammar import Kernel
from nbcomp.machine import Machine
from nbcomp.options import EVERYTHING
from nbcomp.schedule.decisions import Decide, V, Value
from nbcomp.schedule.default import Step, schedule
from nbcomp.schedule.language import Schedule, parse

KEPT = 2000  # steps on kernels that are remembered
NEAR = 0.7  # share of changes that go to a neighbouring number


@dataclass(frozen=True)
class Candidate:
    """A kernel after its schedule, whose steps it has as notes, and what was decided on the way."""

    kernel: Kernel
    decisions: Mapping[str, Value]

    @cached_property
    def key(self) -> str:
        """Equal for candidates that are the same schedule: it, as it is written."""
        return "\n".join(self.kernel.notes)

    @cached_property
    def schedule(self) -> Schedule:
        """The steps that make the kernel."""
        return parse(self.key)


Answer = Callable[[str, Any, Sequence[Any]], Any]


@dataclass(eq=False)
class _Asked:
    """What a step of the rules asks of a kernel next, and what follows for each answer; at the end
    the kernel that it makes.  Candidates mostly differ in what later steps ask."""

    question: tuple[str, Any, Sequence[Any]] | None = None
    answers: dict[Any, _Asked] = field(default_factory=dict)
    kernel: Kernel | None = None


class Space:
    """All candidates of a kernel on a machine.

    `options` grows as decisions are met: their names, and what there is to choose.
    """

    def __init__(self, kernel: Kernel, machine: Machine) -> None:
        self.kernel, self.machine = replace(kernel, notes=()), machine
        self.options: dict[str, Sequence[Value]] = {}
        self.usual: dict[str, Value] = {}
        self.asked: dict[tuple[Step, Kernel], _Asked] = {}  # of steps that were taken before

    def default(self) -> Candidate:
        """What the kernel gets when nothing is tuned.  Raises NbcompError where that fails."""
        return self._made(lambda name, usual, options: usual)

    def build(self, decisions: Mapping[str, Value]) -> Candidate | None:
        """The candidate with these decisions, the usual ones where there are none; None where the
        rules do not come to an end with them."""

        def answer(name: str, usual: Any, options: Sequence[Any]) -> Any:
            wanted = decisions.get(name, usual)
            return wanted if wanted in options else usual

        return self._tried(answer)

    def draw(self, rng: np.random.Generator) -> Candidate | None:
        """A candidate at random: more or less of its decisions are the usual ones."""
        usually = rng.random()

        def answer(name: str, usual: Any, options: Sequence[Any]) -> Any:
            return usual if rng.random() < usually else options[int(rng.integers(len(options)))]

        return self._tried(answer)

    def _tried(self, answer: Answer) -> Candidate | None:
        try:
            return self._made(answer)
        except (NbcompError, AssertionError, ValueError):  # no rule foresees all answers together
            return None

    def _made(self, answer: Answer) -> Candidate:
        taken: dict[str, Value] = {}

        def decide(name: str, usual: V, options: Sequence[V]) -> V:
            if name not in taken:
                taken[name] = answer(name, usual, options)
                self.options[name], self.usual[name] = options, usual
            return taken[name]  # type: ignore[return-value]

        if len(self.asked) > KEPT:
            self.asked.clear()
        kernel = self.kernel
        for step in schedule(EVERYTHING, kernel):
            kernel = self._stepped(step, kernel, decide)
        return Candidate(kernel, taken)

    def _stepped(self, step: Step, kernel: Kernel, decide: Decide) -> Kernel:
        """The kernel after a step of the rules; as before, where all its questions get answers that
        they got before."""
        first = known = self.asked.setdefault((step, kernel), _Asked())
        while known.question is not None:
            known = known.answers.setdefault(decide(*known.question), _Asked())
        if known.kernel is None:
            known, known.kernel = self._asking(step, kernel, decide, first)
        return known.kernel

    def _asking(
        self, step: Step, kernel: Kernel, decide: Decide, known: _Asked
    ) -> tuple[_Asked, Kernel]:
        """Take a step, and note what it asks: where that ends, and the kernel."""

        def noting(name: str, usual: V, options: Sequence[V]) -> V:
            nonlocal known
            value = decide(name, usual, options)
            known.question = (name, usual, options)
            known = known.answers.setdefault(value, _Asked())
            return value

        made = step(kernel, self.machine, noting)
        return known, made

    # ----------------------------------------------------------------------------- variation

    def changed(self, decisions: Mapping[str, Value], rng: np.random.Generator) -> dict[str, Value]:
        """Decisions with one or two answered otherwise."""
        made = dict(decisions)
        names = [name for name in made if len(self.options.get(name, ())) > 1]
        if not names:
            return made
        for name in rng.choice(names, min(len(names), 1 + int(rng.random() < 0.4)), replace=False):
            made[str(name)] = self._other(made[str(name)], self.options[str(name)], rng)
        return made

    def _other(self, now: Value, options: Sequence[Value], rng: np.random.Generator) -> Value:
        """Another option, mostly one beside it."""
        if now in options and rng.random() < NEAR:
            place = options.index(now)
            beside = [options[k] for k in (place - 1, place + 1) if 0 <= k < len(options)]
            return beside[int(rng.integers(len(beside)))]
        others = [o for o in options if o != now]
        return others[int(rng.integers(len(others)))]

    def mixed(
        self, one: Mapping[str, Value], other: Mapping[str, Value], rng: np.random.Generator
    ) -> dict[str, Value]:
        """Decisions taken from either of two."""
        return {
            name: (one if name not in other or (name in one and rng.random() < 0.5) else other)[
                name
            ]
            for name in {**one, **other}
        }
