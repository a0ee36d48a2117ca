"""From a call of a compiled function to its report: compared with NumPy, timed, scaled."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from nbcomp.display.bundle import Report
from nbcomp.display.view.checks import LevelCheck
from nbcomp.display.view.reads import Fallback
from nbcomp.display.view.view import SECTIONS
from nbcomp.magics.checking import check_levels, check_parts, coarsest_part
from nbcomp.magics.plain import plain
from nbcomp.magics.recording import Call, breaks_of, parts_of
from nbcomp.magics.repeatable import effect_of
from nbcomp.measure.arguments import Elsewhere, kept, twin
from nbcomp.measure.comparison import Comparison, NotAgain, check, coarsest, compare, errors
from nbcomp.measure.figures import Measured
from nbcomp.measure.scaling import SIZES, Scaling, scaling
from nbcomp.measure.timing import Timing
from nbcomp.record import Location

INTERRUPTED = "interrupted: what had not been measured by then is missing"


@dataclass(frozen=True)
class Options:
    """What a report is to hold.

    timed: timings, at these batch `sizes`, within about `seconds`.  check: the answer of each
    level. measure: the run time after each pass, and each kernel against the machine's limits;
    ablate: each optimisation left out: both within about `seconds` more.  max_lines: of each text.
    show: the sections.  cpus: the program for other CPUs, too.  full: cut no text.
    """

    timed: bool = True
    check: bool = False
    measure: bool = False
    ablate: bool = False
    cpus: bool = False
    full: bool = False
    sizes: tuple[int, ...] = SIZES
    seconds: float = 5.0
    max_lines: int = 200
    show: tuple[str, ...] = SECTIONS


def report_on(call: Call, options: Options, say: Callable[[str], None] = lambda _: None) -> Report:
    """Compare a call with NumPy and, unless told otherwise, time it, also across batch sizes.

    The arrays of the notebook are afterwards as they were.  Raises Interrupted, which has a report
    on what was measured until then.
    """
    call.find_compiled()
    if call.refused is not None:
        return _report_on_parts(call, options, say)
    captured = call.compiled.capture
    with kept(captured.signature, captured.writes, call.args, call.kwargs) as elsewhere:
        return _Measuring(call, options, say, elsewhere).report()


def keep_figures(call: Call, report: Report) -> None:
    """Let the page that a compiled function writes of itself have what was measured of it."""
    if call.refused is None:
        known = call.compiled.shown or Report(call.compiled)
        sizes = report.scaling or known.scaling
        call.compiled.shown = replace(known, comparison=report.comparison, scaling=sizes)


def keep_tuned(call: Call, own: Timing | None, theirs: Timing | None) -> None:
    """The same for what a search has timed, and NumPy: the answer is compared once more."""
    report = report_on(call, Options(timed=False))
    found = report.comparison
    if own and theirs and found and found.agrees:
        found = replace(
            found,
            compiled=own,
            reference=theirs,
            speedup=theirs.median / own.median,
            speedup_low=theirs.low / own.high,
            speedup_high=theirs.high / own.low,
        )
    keep_figures(call, replace(report, comparison=found))


def _report_on_parts(call: Call, options: Options, say: Callable[[str], None]) -> Report:
    """The report on a call that Python makes, or that runs in parts, which are timed as a whole."""
    broken = bool(call.function.breaks)
    named = partial(_of, call.function.__name__, say)
    checks = tuple(check_parts(call, named)) if broken and options.check else ()
    report = Report(
        _fallback(call), call.value, checks=checks, show=options.show, full=options.full
    )
    if not broken or not options.timed:
        return report
    reference = plain(call.function)
    if effect := effect_of(reference, call.args, call.kwargs):
        note = f"not timed, because calls would repeat what it does: {effect}"
        return replace(report, notes=(note,))
    named("timing against Python …")
    both = (call.function, reference, call.args, call.kwargs)
    eps = coarsest_part(call)
    try:
        return replace(report, comparison=compare(*both, seconds=options.seconds / 2, eps=eps))
    except NotAgain as error:
        return replace(report, notes=(_not_again(error),))
    except KeyboardInterrupt:
        raise Interrupted(replace(report, notes=(INTERRUPTED,))) from None


def _not_again(error: NotAgain) -> str:
    """Why a call was not compared."""
    raised = error.__cause__
    name = type(raised).__name__
    said = f"{name}: {raised}" if str(raised) else name
    return f"not compared with NumPy: called again, the function raises {said}"


def _fallback(call: Call) -> Fallback:
    """What there is to say of a call that was not compiled as a whole."""
    function, refused = call.function, call.refused
    assert refused is not None
    code = getattr(inspect.unwrap(function), "__code__", None)
    text = ""
    with suppress(OSError, TypeError):
        text = inspect.getsource(code) if code is not None else ""
    return Fallback(
        function.__name__,
        refused.message,
        refused.location,
        refused.hint,
        source=text,
        defined=Location(code.co_filename, code.co_firstlineno) if code is not None else None,
        breaks=breaks_of(function),
        parts=parts_of(function),
    )


class Interrupted(KeyboardInterrupt):
    """A measurement was interrupted; `report` holds what there was by then."""

    def __init__(self, report: Report) -> None:
        super().__init__()
        self.report = report


class _Measuring:
    """The measurements of one call as they come in."""

    comparison: Comparison | None = None
    sizes: Scaling | None = None
    checks: tuple[LevelCheck, ...] = ()
    measured = Measured()
    cpus: tuple[Any, ...] = ()

    def __init__(
        self, call: Call, options: Options, say: Callable[[str], None], elsewhere: Elsewhere
    ) -> None:
        self.call, self.elsewhere = call, elsewhere
        # Of an answer that is known there is nothing to time.
        self.options = replace(options, timed=False) if call.compiled.constant else options
        self.compiled, self.reference = call.compiled, plain(call.function)
        self.say = partial(_of, call.compiled.name, say)
        self.writes = bool(self.compiled.capture.writes)
        self.precision = self.compiled.options.precision
        self.eps = coarsest(self.compiled.captured, self.precision)

    def report(self) -> Report:
        """All that is wanted, measured; Interrupted has what was measured before it came."""
        start = time.perf_counter()
        try:
            self.run()
        except NotAgain as error:
            return self.so_far(_not_again(error))
        except KeyboardInterrupt:
            raise Interrupted(self.so_far(INTERRUPTED)) from None
        return self.so_far(*_again(self.call), *self.spent(time.perf_counter() - start))

    def spent(self, seconds: float) -> list[str]:
        """What all of it took, where that was longer than the user may expect."""
        late = self.options.timed and seconds > self.options.seconds
        return [f"comparing and timing it took {seconds:.1f} s"] if late else []

    def run(self) -> None:
        """Equality first, then times."""
        self.say("comparing with NumPy …")
        self.comparison = self.with_errors(self.compare())
        agrees, options = self.comparison.agrees, self.options
        if options.timed and agrees:
            self.sizes = self.scaling()
        if options.check or not agrees:
            for found in check_levels(self.call, self.reference, self.elsewhere, self.say):
                self.checks += (found,)
        if agrees and (options.measure or options.ablate):
            self.measure()
        if agrees and options.cpus:
            self.cpus = self.on_cpus()

    def so_far(self, *notes: str) -> Report:
        """The report on what has been measured."""
        return Report(
            self.compiled,
            self.call.value,
            self.comparison,
            self.sizes,
            self.checks,
            self.options.max_lines,
            self.options.show,
            self.options.full,
            measured=self.measured,
            notes=notes,
            cpus=self.cpus,
        )

    def compare(self) -> Comparison:
        """The answer against NumPy's, and if times are wanted, the time."""
        both = (self.call.function, self.reference, self.call.args, self.call.kwargs)
        if not self.options.timed:
            return check(*both, self.writes, self.eps, self.elsewhere)
        return compare(*both, self.options.seconds / 4, self.writes, self.eps, self.elsewhere)

    def with_errors(self, found: Comparison) -> Comparison:
        """The comparison with both errors against float64, where less precision was asked for."""
        if not self.precision:
            return found
        given = (tuple(self.call.args), dict(self.call.kwargs))
        ours, theirs = (self.answer(f) for f in (self.call.function, self.reference))
        with self.elsewhere.fresh():
            against = errors(ours, theirs, self.reference, given)
        return replace(found, against_float64=against)

    def answer(self, function: Callable[..., Any]) -> Any:
        """What a function gives for copies of the arguments."""
        args, kwargs = twin((self.call.args, self.call.kwargs))
        with self.elsewhere.fresh():
            return self.elsewhere.apart(function(*args, **kwargs))

    def scaling(self) -> Scaling:
        """The same across batch sizes."""
        python = self.call.function.__wrapped__
        return scaling(
            self.call.function.anew(),  # so that the function keeps no variant for every size
            self.reference,
            self.call.args,
            self.call.kwargs,
            sizes=self.options.sizes,
            seconds=self.options.seconds * 3 / 4,
            writes=self.writes,
            eps=self.eps,
            elsewhere=self.elsewhere,
            operators=partial(_operators, python),
            progress=lambda size: self.say(f"compiling for batch size {size:,} and timing …"),
        )

    def measure(self) -> None:
        """What `--measure` and `--ablate` ask for."""
        # They bring the whole compiler: not when the commands are loaded.
        from nbcomp.measure.ablation import ablate
        from nbcomp.measure.kernels import measure_numbers
        from nbcomp.measure.passes import measure_passes

        what, seconds = (self.compiled, self.call.args, self.call.kwargs), self.options.seconds
        if self.options.measure:
            self.say("timing each kernel …")
            numbers = measure_numbers(*what, seconds=seconds / 5)
            self.measured = Measured(numbers=numbers)
            passes = measure_passes(*what, self.reference, seconds * 4 / 5, self.say)
            self.measured = replace(self.measured, passes=passes)
        if self.options.ablate:
            ablation = ablate(*what, self.reference, seconds, self.say)
            self.measured = replace(self.measured, ablation=ablation)

    def on_cpus(self) -> tuple[Any, ...]:
        """The program for every CPU there is a name for, timed where this machine can."""
        from nbcomp.measure.cpus import compare_cpus  # brings the compiler: not when loaded

        what = (self.compiled, self.call.args, self.call.kwargs, self.reference)
        return tuple(compare_cpus(*what, seconds=self.options.seconds, say=self.say))


def _of(name: str, say: Callable[[str], None], text: str) -> None:
    """Say something of a function."""
    say(f"{name}: {text}")


def _again(call: Call) -> tuple[str, ...]:
    """Why a function that was compiled before had to be compiled again for this call."""
    variants = list(call.function.variants)
    position = variants.index(call.compiled) if call.compiled in variants else 0
    why = call.function.why_compiled(variants[:position], call.args, call.kwargs)
    return (f"compiled again, because {why}",) if why else ()


def _operators(function: Callable[..., Any], *args: Any, **kwargs: Any) -> int:
    """How many operators a function has for these arguments, as it was written."""
    from nbcomp.frontend.trace import capture  # with the compiler

    return len(capture(function, list(args), dict(kwargs)).graph.nodes)
