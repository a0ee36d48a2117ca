"""A schedule somebody wrote, tried on a kernel: played step by step, checked, timed.

It is timed in turn with the default schedule, with the one in use, and with the best that was tried
before.  Knows compilations and schedules; it must not know how a trial is shown.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nbcomp.compiled import Compiled, CompiledKernel
from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import Kernel
from nbcomp.measure.timing import Ratio, Timing, ratio
from nbcomp.measure.variants import Say, Variant, measure_variants
from nbcomp.options import Options
from nbcomp.schedule.language import Schedule, Step


@dataclass(frozen=True)
class Played:
    """One step, and the kernel before and after it."""

    step: Step
    before: Kernel
    after: Kernel

    def difference(self) -> list[str]:
        """What the step changed of the loops' text, as a unified diff without its head."""
        before, after = (str(k).splitlines() for k in (self.before, self.after))
        return list(difflib.unified_diff(before, after, lineterm="", n=1))[2:]


@dataclass(frozen=True)
class Trial:
    """A schedule on a kernel of a program.

    compiled: the program with it.  default, own: seconds of a call with the default schedule and
    with this one; change: own over default, with its spread.  in_use: the schedule that the program
    had before, if it was not the default one, and since: own over that.  ahead: own over the best
    that was tried before, if it is another one.  same: the answer is NumPy's.  note: why it was not
    timed.  others: cores that other programs kept busy.
    """

    kernel: str
    schedule: Schedule
    steps: tuple[Played, ...]
    compiled: Compiled
    default: Timing | None = None
    own: Timing | None = None
    change: Ratio | None = None
    since: Ratio | None = None
    ahead: Ratio | None = None
    same: bool = True
    note: str = ""
    others: float = 0.0

    @property
    def made(self) -> CompiledKernel:
        """The kernel as it was compiled."""
        return kernel_named(self.compiled, self.kernel)


def try_schedule(
    compiled: Compiled,
    kernel: str,
    schedule: Schedule,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    reference: Callable[..., Any] | None = None,
    seconds: float = 2.0,
    say: Say = lambda _: None,
    rival: Schedule | None = None,
) -> Trial:
    """Play a schedule on a kernel as it was lowered, and time the program with it.

    Raises ScheduleError where there is no such kernel or a step is not legal.  The answer is
    compared with NumPy's first; a wrong one is not timed.  rival: the best that was tried before.
    """
    lowered = kernel_named(compiled, kernel).lowered
    steps = tuple(_played(lowered, schedule))
    made = compiled.with_schedule(kernel, schedule)
    others = tuple(pair for pair in compiled.options.schedules if pair[0] != kernel)
    base = replace(compiled.options, schedules=others).leaving("tuned")
    given = others != compiled.options.schedules or compiled.tuned
    in_use = compiled.options if given else base
    best = base if rival is None else compiled.options.scheduling(kernel, rival)
    choices = list(dict.fromkeys((base, made.options, in_use, best)))
    compiling = max(compiled.compile_seconds, made.compile_seconds)
    variants, neighbours = measure_variants(
        compiled, choices, args, kwargs, reference, seconds + 2 * compiling, say
    )
    found = dict(zip(choices, variants, strict=True))
    own, default = found[made.options], found[base]
    return Trial(
        kernel,
        schedule,
        steps,
        made,
        default.timing,
        own.timing,
        _change(own, default),
        _over(own, found, in_use, base),
        _over(own, found, best, base),
        own.same,
        own.note,
        neighbours,
    )


def _played(kernel: Kernel, schedule: Schedule) -> Iterator[Played]:
    for step, made in schedule.play(kernel):
        yield Played(step, kernel, made)
        kernel = made


def _change(own: Variant, other: Variant) -> Ratio | None:
    return ratio(own.samples, other.samples) if own.samples and other.samples else None


def _over(
    own: Variant, found: Mapping[Options, Variant], other: Options, base: Options
) -> Ratio | None:
    """The time of a schedule over that of another one that is not the default."""
    return None if other == base or found[other] is own else _change(own, found[other])


def kernel_named(compiled: Compiled, name: str) -> CompiledKernel:
    """The kernel of that name; ScheduleError lists those there are."""
    for kernel in compiled.kernels:
        if kernel.name == name:
            return kernel
    names = ", ".join(k.name for k in compiled.kernels) or "none"
    raise ScheduleError(f"no kernel {name}; the kernels are {names}")
