"""One program compiled in several ways, each checked against NumPy and then timed in turn.

Ways that give the same machine code are timed once.  Knows compilations and options; it must not
know what the differences are looked at for (`passes`, `ablation`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from nbcomp.compiled import Compiled
from nbcomp.errors import NbcompError
from nbcomp.loop.grammar import Call, walk
from nbcomp.machine import host
from nbcomp.measure.arguments import Elsewhere, kept, restore, twin
from nbcomp.measure.comparison import Wanted, coarsest
from nbcomp.measure.memory_plan import memory_plan
from nbcomp.measure.timing import Call as TimedCall
from nbcomp.measure.timing import Neighbours, Timing, alternate, quietly
from nbcomp.options import Options
from nbcomp.pipeline import recompile
from nbcomp.record import Snapshot

OUT_OF_TIME = "out of time"  # the note of a variant that was neither checked nor timed
PREPARING = 0.6  # of the time goes at most to compiling and checking, the rest to timing
TURNS = 40  # of each variant, if there is time: what disturbs comes and goes
TURN = 4e-3  # seconds one turn takes at least
ARENA = 1 << 30  # bytes a variant may need for values between its steps, where it needs more
# What does an optimisation's work under another name.
OTHERWISE = {"spread": "parallelize", "choose_products": "generate"}
SMALL = 4096  # elements of a constant that is compared by value

Say = Callable[[str], None]


@dataclass(frozen=True)
class Variant:
    """The program with `options`: its timing, and its samples in the order they were taken, the
    shortest of each turn.

    same: it gives NumPy's answer.  note: why it was not timed, empty when it was.  first: the
    position of the variant that stands for all with this machine code.
    """

    options: Options
    first: int
    same: bool = True
    note: str = ""
    timing: Timing | None = None
    samples: tuple[float, ...] = ()


def measure_variants(
    compiled: Compiled,
    choices: Sequence[Options],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    reference: Callable[..., Any] | None = None,
    seconds: float = 5.0,
    say: Say = lambda _: None,
    before: Sequence[int] = (),
) -> tuple[tuple[Variant, ...], float]:
    """Each choice of options, measured on these arguments within about `seconds`.

    before: positions of the choices that matter most, in case there is not time for all.

    Returns the variants, and how many cores other programs kept busy meanwhile.  reference: the
    Python function, by default that which was compiled.  A variant that gives another answer than
    it, or would take too long, is not timed.  The caller's arrays are left as they are.  Raises
    what the reference raises, and KeyboardInterrupt.
    """
    captured = compiled.capture
    with kept(captured.signature, captured.writes, args, kwargs or {}) as elsewhere:
        python = reference or compiled.function
        race = _Race(compiled, python, args, kwargs or {}, seconds, elsewhere)
        for number, position in enumerate(dict.fromkeys([*before, *range(len(choices))])):
            say(f"compiling variant {number + 1} of {len(choices)} …")
            race.enter(position, choices[position])
        say("timing the variants in turn …")
        return race.run(), race.neighbours.cores()


@dataclass
class _Entry:
    """A variant on its way: what to call, and how long the first call took."""

    options: Options
    first: int
    call: Callable[..., Any] | None = None
    seconds: float = 0.0
    same: bool = True
    note: str = ""


@dataclass
class _Race:
    compiled: Compiled
    reference: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    seconds: float
    elsewhere: Elsewhere
    entries: dict[int, _Entry] = field(default_factory=dict)  # by position
    known: dict[Any, int] = field(default_factory=dict)  # machine code -> position

    def __post_init__(self) -> None:
        self.neighbours = Neighbours()
        self.end = time.perf_counter() + self.seconds
        self.writes = bool(self.compiled.capture.writes)
        self.compiling = self.compiled.compile_seconds  # of the variant that took longest
        begin = time.perf_counter()
        eps = coarsest(self.compiled.captured, self.compiled.options.precision)
        what = self.reference, self.args, self.kwargs, self.writes, eps
        self.wanted = Wanted.of(*what, self.elsewhere)
        self.numpy_seconds = time.perf_counter() - begin

    def left(self) -> float:
        return self.end - time.perf_counter()

    def enter(self, position: int, options: Options) -> None:
        """Compile a variant and check its answer, if there is time."""
        known = (e.first for e in self.entries.values() if e.options == options)
        entry = self.entries[position] = _Entry(options, next(known, position))
        if entry.first != position:
            return
        spare = self.left() - (1 - PREPARING) * self.seconds
        made = self.compiled
        if options != made.options:
            if spare < self.compiling and len(self.entries) > 1:
                entry.note = OUT_OF_TIME
                return
            try:
                made = recompile(made, options)
            except NbcompError as error:
                entry.note = f"cannot be compiled: {str(error).splitlines()[-1]}"
                return
            self.compiling = max(self.compiling, made.compile_seconds)
        first = self.known.setdefault(code_of(made), entry.first)
        if first != entry.first:
            entry.first = first
            return
        entry.note = self.too_much(made, spare)
        if not entry.note:
            self.check(entry, made.entry)

    def too_much(self, made: Compiled, spare: float) -> str:
        """Why a variant is not run at all; empty when it may be."""
        if made.program.arena > max(ARENA, 4 * self.compiled.program.arena):
            return f"a call would take {made.program.arena / 2**30:.1f} GB for values between steps"
        expected = _expected(made, self.compiled, self.known_seconds())
        if expected > spare and len(self.entries) > 1:
            return f"one call would take about {expected:.2g} s"
        return ""

    def known_seconds(self) -> float:
        """Of one call of a variant that was called already, else of NumPy."""
        return next((e.seconds for e in self.entries.values() if e.seconds), self.numpy_seconds)

    def check(self, entry: _Entry, call: Callable[..., Any]) -> None:
        """Compare with NumPy's answer; then see how long a call takes."""
        found = self.wanted.check(call)
        if not found.agrees:
            entry.same, entry.note = False, f"WRONG ANSWER: {found.problem}"
            return
        given = twin(self.wanted.given) if self.writes else self.wanted.given
        with quietly():
            begin = time.perf_counter()
            call(*given[0], **given[1])
        entry.call, entry.seconds = call, time.perf_counter() - begin

    def run(self) -> tuple[Variant, ...]:
        """Time those that may be, in turn, until the time is over."""
        runners = [e for e in self.entries.values() if e.call]
        if not runners:
            return self.variants({})
        copies = twin(self.wanted.given) if self.writes else self.wanted.given
        again = [partial(restore, copies, self.wanted.given)] * len(runners)
        calls: list[TimedCall] = [(e.call, *copies) for e in runners if e.call]
        turn = sum(max(2 * e.seconds, TURN) for e in runners)
        left = min(max(self.left(), 0.2 * self.seconds), TURNS * turn)
        rounds = min(max(int(left / max(turn, 1e-9)) - 1, 1), TURNS)
        with quietly():
            taken = alternate(calls, left, again if self.writes else (), rounds, 0.0, True)
        times = dict(zip([e.first for e in runners], taken, strict=True))
        return self.variants(times)

    def variants(self, times: Mapping[int, tuple[Timing, list[float]]]) -> tuple[Variant, ...]:
        """The results, in the order of the choices."""
        return tuple(self.variant(self.entries[k], times) for k in sorted(self.entries))

    def variant(self, entry: _Entry, times: Mapping[int, tuple[Timing, list[float]]]) -> Variant:
        first = self.entries[entry.first]
        timing, samples = times.get(entry.first, (None, []))
        note = entry.note or first.note
        return Variant(entry.options, entry.first, first.same, note, timing, tuple(samples))


def _expected(variant: Compiled, full: Compiled, seconds: float) -> float:
    """Seconds a call may take, from those of the full program and the estimates of both."""
    slower = variant.plan.seconds / max(full.plan.seconds, 1e-9)
    machine = host()
    if not variant.options.does("vectorize"):
        slower *= machine.vector_bytes / 4
    if not variant.options.does("parallelize"):
        slower *= machine.cores
    return seconds * max(slower, 1.0)


def idle(compiled: Compiled) -> frozenset[str]:
    """The optimisations that changed nothing: without one of them the program is the same.

    For a pass this is so from where it stands in the pipeline, all before it being done.
    """
    last: dict[tuple[str, str], Snapshot] = {}
    found, busy = set(), set()
    for s in compiled.trace.snapshots:
        before = last.get((s.level, s.kernel))
        if before is not None and before.value is not s.value and before.text != s.text:
            busy.add(OTHERWISE.get(s.name, s.name))
        found.add(OTHERWISE.get(s.name, s.name))
        last[s.level, s.kernel] = s
    if not any(isinstance(s, Call) for k in compiled.kernels for s in walk(k.lowered.stages)):
        found.add("blas")
    if not compiled.tuned:
        found.add("tuned")
    memory = memory_plan(compiled)
    if memory.arena == memory.apart:
        found.add("reuse")
    return frozenset(found - busy)


def code_of(compiled: Compiled) -> Any:
    """What a compiled program runs, for telling whether two run the same.

    Equal kernels have equal addresses, since machine code is cached by its text.
    """
    plan = compiled.plan
    steps = tuple((s.function, getattr(s, "params", ()), _shape_of(s)) for s in plan.steps)
    constants = tuple(
        (slot, a.dtype, a.shape, a.tobytes() if a.size <= SMALL else id(a))
        for slot, a in sorted(plan.constants.items())
    )
    return steps, constants, tuple(sorted(plan.temps.items())), plan.arena


def _shape_of(step: Any) -> Any:
    """Where a step works, and how it is cut for the cores."""
    if hasattr(step, "grain"):
        return step.slots, step.extent, step.grain, step.round
    return step.inputs, step.outputs
