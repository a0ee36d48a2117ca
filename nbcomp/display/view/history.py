"""This run of a function against the one before it: what changed in its source, its graph, its
loops and its machine code, and in its time.

A `Run` is what is remembered of a report: texts only, so that no array of the user's stays alive.
The machine code of a kernel is looked at only where its loops differ, since equal loops are equal
code.  Knows compilations by what is read of them; who keeps the runs is not its business.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from nbcomp.display.view.headline import operators
from nbcomp.display.view.reads import Compiled
from nbcomp.display.view.words import count, ratio_words, seconds
from nbcomp.measure.timing import Timing
from nbcomp.origin import Listing

LONGEST = 200  # lines of one difference
KEPT = 500_000  # characters of loops that are remembered; of larger programs only the graph is


@dataclass(frozen=True)
class KernelText:
    """A kernel's loops as text, and how to get its machine code."""

    name: str
    loops: str
    code: Callable[[str], Listing]

    @property
    def assembly(self) -> str:
        """The machine code as text."""
        return self.code("asm").text


@dataclass(frozen=True)
class Run:
    """What is remembered of a function that was compiled and, perhaps, timed.

    when: seconds since the epoch.  inputs: the types of its inputs; given: the arguments of the
    call, arrays by dtype and shape, numbers by value.  reference: NumPy's time in the same run,
    which says how fast the machine was.
    """

    when: float
    source: str
    inputs: tuple[str, ...]
    operators: int
    graph: str
    kernels: tuple[KernelText, ...]
    timing: Timing | None
    reference: Timing | None = None
    given: tuple[str, ...] = ()

    @staticmethod
    def of(
        compiled: Compiled,
        timing: Timing | None,
        reference: Timing | None = None,
        given: tuple[str, ...] = (),
    ) -> Run:
        """The run that has just been reported."""
        kernels, left = [], KEPT
        for kernel in compiled.kernels:
            loops = kernel.listing("loop").text
            left -= len(loops)
            if left < 0:
                break
            kernels.append(KernelText(kernel.name, loops, kernel.code.listing))
        return Run(
            time.time(),
            compiled.source,
            tuple(f"{n.name}: {n.type}" for n in compiled.captured.inputs),
            operators(compiled.graph.nodes).total(),
            str(compiled.graph),
            tuple(kernels),
            timing,
            reference,
            given,
        )

    @property
    def work(self) -> tuple[list[str], list[str]]:
        """What it was given, without the names the program has for it."""
        sides = (self.inputs, self.given)
        inputs, given = ([text.partition(": ")[2] for text in texts] for texts in sides)
        return inputs, given

    @property
    def unit(self) -> float | None:
        """The seconds of NumPy, where they were measured."""
        return self.reference.median if self.reference else None


@dataclass(frozen=True)
class Difference:
    """What changed at one level, in one kernel ("": the whole function), as a unified diff."""

    level: str
    kernel: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class History:
    """A run against the one before it, in words and in differences.

    previous_seconds: only of a run on the same inputs, as the two are shown as bars.
    """

    when: str
    title: str
    changes: tuple[str, ...]
    diffs: tuple[Difference, ...]
    seconds: float | None
    previous_seconds: float | None


def history(now: Run, before: Run) -> History:
    """What changed since the run before."""
    diffs = tuple(_differences(now, before))
    code = len(now.kernels) != len(before.kernels) or any(d.level == "loop" for d in diffs)
    changes = (*_changes(now, before, diffs), *_times(now, before, code))
    title = "the machine code changed" if code else "the same machine code as before"
    return History(
        ago(now.when - before.when),
        title,
        changes,
        diffs,
        now.timing.median if now.timing else None,
        before.timing.median if before.timing and now.work == before.work else None,
    )


def ago(elapsed: float) -> str:
    """How long ago, in words."""
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if elapsed >= length:
            return f"{count(int(elapsed // length), unit)} ago"
    return f"{count(max(int(elapsed), 1), 'second')} ago"


def _differences(now: Run, before: Run) -> Iterator[Difference]:
    yield from _difference("source", "", before.source, now.source)
    yield from _difference("graph", "", before.graph, now.graph)
    for kernel, known in _pairs(now.kernels, before.kernels):
        if known.loops == kernel.loops:
            continue
        yield from _difference("loop", kernel.name, known.loops, kernel.loops)
        yield from _difference("asm", kernel.name, known.assembly, kernel.assembly)


def _pairs(
    now: Sequence[KernelText], before: Sequence[KernelText]
) -> Iterator[tuple[KernelText, KernelText]]:
    """Kernels of the same name, and the others in their order: what replaced what."""
    old = {k.name: k for k in before}
    names = {k.name for k in now}
    rest = iter([k for k in before if k.name not in names])
    for kernel in now:
        known = old.get(kernel.name) or next(rest, None)
        if known is not None:
            yield kernel, known


def _difference(level: str, kernel: str, before: str, now: str) -> Iterator[Difference]:
    if before != now:
        one, other = before.splitlines(), now.splitlines()
        lines = tuple(difflib.unified_diff(one, other, lineterm="", n=1))[2:]
        more = (f"@@ {len(lines) - LONGEST} more lines @@",) if len(lines) > LONGEST else ()
        yield Difference(level, kernel, lines[:LONGEST] + more)


def _changes(now: Run, before: Run, diffs: tuple[Difference, ...]) -> Iterator[str]:
    for new, old in ((now.inputs, before.inputs), (now.given, before.given)):
        if new != old:
            came = ", ".join(i for i in new if i not in old) or "fewer"
            gone = ", ".join(i for i in old if i not in new) or "fewer"
            yield f"inputs: {came} instead of {gone}"
            break
    if now.operators != before.operators:
        yield f"{count(now.operators, 'operator')} after the passes instead of {before.operators}"
    names, known = [k.name for k in now.kernels], [k.name for k in before.kernels]
    yield from (f"kernel {name} is new" for name in names if name not in known)
    yield from (f"kernel {name} is gone" for name in known if name not in names)
    for d in diffs:
        what = {"source": "the source", "asm": f"the machine code of {d.kernel}"}.get(d.level)
        if what:
            added = sum(line.startswith("+") for line in d.lines)
            removed = sum(line.startswith("-") for line in d.lines)
            yield f"{what}: +{count(added, 'line')} −{count(removed, 'line')}"


def _times(now: Run, before: Run, code: bool) -> Iterator[str]:
    """The times in words: the ratio of the compiled times as they were measured.

    There is none of runs on other inputs, and no difference is made of what the machine did between
    the runs: of times whose quartiles overlap, of equal code on equal inputs, and of what NumPy's
    own time for the same source changed by, too.
    """
    if now.timing is None or before.timing is None:
        return
    both = f"{seconds(now.timing.median)}, before {seconds(before.timing.median)}"
    if now.work != before.work:
        yield f"{both}, on other inputs: the times do not compare"
        return
    same = now.source == before.source
    drift = now.unit / before.unit if same and now.unit and before.unit else 1.0
    if _overlap(now.timing, before.timing):
        yield f"the same time within the spread ({both})"
    elif same and not code:
        yield f"no change of the program's time: it is the same code ({both})"
    elif _overlap(now.timing, before.timing, drift):
        yield f"no clear change of the time: NumPy's is {drift:.2f}× what it was, too ({both})"
    else:
        ratio = before.timing.median / now.timing.median
        low, high = before.timing.low / now.timing.high, before.timing.high / now.timing.low
        _, words = ratio_words(ratio, low, high)
        yield f"{words.replace('than NumPy', 'than before')}: {both}"


def _overlap(now: Timing, before: Timing, drift: float = 1.0) -> bool:
    """Whether the quartiles do, with those of before on a machine `drift` times as slow."""
    return now.low <= drift * before.high and drift * before.low <= now.high
