"""How a search for schedules is shown: as it goes, and what it has found.

Both are complete without script and style sheets, so a saved notebook reads well even if the search
was cut off.  Knows searches by their states and results; it must not know how they are made.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from nbcomp.display.bundle import Bundle, bundle, width
from nbcomp.display.html.blocks import faint, fold, image, paragraph, root, section, table
from nbcomp.display.html.code import pre
from nbcomp.display.html.style import STATUS
from nbcomp.display.plots.convergence import convergence_plot
from nbcomp.display.text.tables import fill
from nbcomp.display.text.tables import table as columns
from nbcomp.display.view.headline import others_words
from nbcomp.display.view.words import called, count, seconds
from nbcomp.display.visible import escape, visible
from nbcomp.measure.timing import FEW
from nbcomp.tuning.result import EARLY, Difference, Found, KernelState, State, Tuned

HEAD = ("kernel", "trials", "default", "best", "speed-up")
# Times of a search are of few samples, the best of many: no speed-up until they are compared again.
END = ("kernel", "trials", "default", "best in the search", "compared at the end")
NOISY = 1.1  # times as long at another time: worth saying
LATE = 1.2  # times the seconds that were asked for: worth saying where they went
MATTERS = 1.03  # times as long without it: a step that mattered


def factor(value: float) -> str:
    """A ratio with three significant digits."""
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}×"


def kernel_cells(state: KernelState) -> tuple[str, ...]:
    """A row of the table of kernels."""
    failed = f" ({state.failed} failed)" if state.failed else ""
    return (
        called(visible(state.name), state.calls),
        f"{len(state.points)}{failed}",
        seconds(state.default),
        seconds(state.best),
        factor(state.speedup),
    )


def found_cells(kernel: Found) -> tuple[str, ...]:
    """A row of the table of kernels at the end: the speed-up is that of the final comparison."""
    name, trials, default, best, _ = kernel_cells(kernel.state)
    end = kernel.final or kernel.change
    compared = end.faster if end and math.isfinite(end.median) else "nothing to compare"
    if kernel.schedule:
        used = ": the one in use stays" if kernel.stays else ""
    else:
        used = ": default stays" if kernel.stays else ": default from now on"
    return (name, trials, default, best, compared + used)


def ranked_words(state: KernelState) -> str:
    """How well the cost model ranked trials of a kernel that it had not seen; "" if not known."""
    if math.isnan(state.correlation):
        return ""
    words = f"the cost model ranked unseen trials of {visible(state.name)} with a correlation of"
    words += f" {state.correlation:.2f}"
    if len(state.points) > EARLY and not math.isnan(state.early):
        words += f" ({state.early:.2f} after the first {EARLY})"
    if not math.isnan(state.beyond):
        words += f", {state.beyond:.2f} where they differ by more than the noise"
    if found := state.ranking:
        words += f"; {found.drawn} schedules drawn at random, {found.early:.2f} after {EARLY}"
        words += f" trials and {found.late:.2f} at the end, where measuring again gives"
        words += f" {found.again:.2f}"
    return words


class _Shown:
    """Text and HTML of the same lines, table and plot."""

    def text(self) -> str:
        raise NotImplementedError

    def html(self) -> str:
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> Bundle:
        makers = {"text/plain": self.text, "text/html": self.html}
        return bundle(makers, include, exclude)


# ------------------------------------------------------------------------------------ on the way


@dataclass(frozen=True, repr=False)
class TuneProgress(_Shown):
    """A search under way."""

    state: State

    @property
    def title(self) -> str:
        """What is searched, and how long still."""
        state = self.state
        left = max(state.seconds - state.spent, 0.0)
        return (
            f"tuning {visible(state.name)}: {state.doing}, {state.spent:.0f} of "
            f"{state.seconds:g} s, {left:.0f} s left"
        )

    @property
    def facts(self) -> list[str]:
        """Trials, and the best so far against the default schedule and NumPy."""
        state = self.state
        if not state.kernels:
            return ["the workers start"]
        rate = state.trials / state.spent if state.spent > 0 else 0.0
        facts = [f"{count(state.trials, 'trial')}, {rate:.0f} a second"]
        facts.append(f"so far {factor(state.speedup)} the speed of the default schedules")
        if state.numpy and state.program:
            facts[-1] += f", {factor(state.numpy / state.program * state.speedup)} that of NumPy"
        return facts

    def text(self) -> str:
        rows = [HEAD, *map(kernel_cells, self.state.kernels)]
        table_ = columns(rows, width(), right=(1, 2, 3, 4), head=True) if len(rows) > 1 else []
        return "\n".join([self.title, *(f"  {f}" for f in self.facts), *table_])

    def html(self) -> str:
        facts = "".join(f"<br>\n{escape(f)}" for f in self.facts)
        return root(
            f"<p><b>{escape(self.title)}</b>{facts}</p>"
            + _plot(self.state.kernels, self.state.seconds)
            + _kernels(HEAD, list(map(kernel_cells, self.state.kernels)))
        )


def _plot(kernels: Sequence[KernelState], length: float) -> str:
    plot = convergence_plot(kernels, length)
    best = "; ".join(f"{visible(k.name)} {factor(k.speedup)}" for k in kernels)
    return image(plot, f"Speed-up over the default schedule as the search went: {best}") * bool(
        plot
    )


def _kernels(head: Sequence[str], rows: Sequence[tuple[str, ...]]) -> str:
    """The table, if there are rows."""
    return table(head, rows, left=(0,)) if rows else ""


# ------------------------------------------------------------------------------- what was found


@dataclass(frozen=True, repr=False)
class TuneReport(_Shown):
    """A search and its result; `length` is how many seconds it was to take."""

    tuned: Tuned
    length: float = 0.0

    @property
    def better(self) -> bool:
        """Whether another schedule is used now."""
        return self.tuned.better

    @property
    def title(self) -> str:
        """What it came to, in a line."""
        name, tuned = visible(self.tuned.name), self.tuned
        if self.better:
            return f"{name}, tuned: {factor(tuned.speedup)} the speed of {tuned.before}"
        why = tuned.declined or self._unconfirmed
        return f"{name}, tuned: {tuned.before.removesuffix(' before')} stay, {why}"

    @property
    def _unconfirmed(self) -> str:
        """Why they do: what the search took for faster was not, when it was compared again."""
        compared = [k for k in self.tuned.kernels if k.final and math.isfinite(k.final.median)]
        promised = [k for k in compared if k.state.speedup > MATTERS]
        if not promised:
            return "nothing was clearly faster"
        most = max(promised, key=lambda k: k.state.speedup)
        assert most.final is not None
        return (
            f"the final comparison did not confirm what the search took for "
            f"{factor(most.state.speedup)} as fast: {most.final.faster}"
        )

    @property
    def facts(self) -> list[str]:
        """The sentences below the title."""
        return list(self._facts())

    def _facts(self) -> Iterator[str]:
        tuned = self.tuned
        yield from self._speed()
        rate = f"{tuned.searching:.1f} s: {tuned.rate:.0f} a second"
        trials = f"{count(tuned.trials, 'trial')} in {rate}"
        lost = f", {count(tuned.lost, 'worker')} lost to crashes or time-outs" if tuned.lost else ""
        yield trials + lost
        if ranked := ranked_words(max(self.states, key=lambda state: len(state.points))):
            yield ranked
        if tuned.interrupted:
            kept = "the best until then was kept" if self.better else "nothing better was sure yet"
            yield f"interrupted: {kept}"
        if tuned.declined and self.better:
            yield tuned.declined
        if tuned.note:
            yield tuned.note
        if self.length and tuned.spent > LATE * self.length:
            where = ", ".join(f"{doing} {spent:.1f} s" for doing, spent in tuned.phases)
            yield f"took {tuned.spent:.0f} s where {self.length:g} s were asked for: {where}"
        if tuned.record:
            path = visible(tuned.record)
            so = f"recorded in {path}: compiled so from now on"
            yield so if self.better else f"the trials are recorded in {path}"
        for other in tuned.elsewhere:
            yield f"on {visible(other.target)}: {TuneReport(other).found_words}"
        for problem in tuned.problems[:3]:
            yield f"skipped in the record: {visible(problem)}"

    def _speed(self) -> Iterator[str]:
        """How fast the program is, and how sure that is."""
        tuned = self.tuned
        if tuned.own and tuned.default and self.better:
            words = f"{seconds(tuned.own.median)} against {seconds(tuned.default.median)} by " + (
                "what was in use before" if tuned.scheduled else "default"
            )
            if tuned.change:
                words += f" (quartiles {1 / tuned.change.high:.2f}–{1 / tuned.change.low:.2f}×)"
            yield f"{words}, same result"
        if tuned.numpy and tuned.own:
            theirs, times = tuned.numpy.median, tuned.numpy.median / tuned.own.median
            few = tuned.numpy.samples < FEW
            sure = f", by {count(tuned.numpy.samples, 'measurement')} only" if few else ""
            yield f"NumPy takes {seconds(theirs)}: {factor(times)} its speed{sure}"
        if disturbed := others_words(tuned.others):
            yield disturbed
        noise = max((k.state.noise for k in tuned.kernels), default=1.0)
        if noise >= NOISY:
            often = f"one schedule took up to {factor(noise)} as long at another time"
            yield f"{often}: the times are rough"

    @property
    def found_words(self) -> str:
        """What was found for the kernels, in a few words."""
        gained = [k for k in self.tuned.kernels if k.schedule and k.change and not k.stays]
        if not gained:
            stay = f"{self.tuned.before.removesuffix(' before')} stay"
            return f"{count(self.tuned.trials, 'trial')}, {stay}"
        words = ", ".join(
            f"{visible(k.state.name)} {factor(1 / k.change.median)}" for k in gained if k.change
        )
        return f"{count(self.tuned.trials, 'trial')}; {words} the default schedule"

    @property
    def states(self) -> tuple[KernelState, ...]:
        """The kernels as the search left them."""
        return tuple(k.state for k in self.tuned.kernels)

    def text(self) -> str:
        lines = [self.title, *(fill(f, width(), "  ") for f in self.facts)]
        rows = [END, *map(found_cells, self.tuned.kernels)]
        lines += columns(rows, width(), right=(1, 2, 3, 4), head=True)
        for kernel in self.tuned.kernels:
            if kernel.schedule and not kernel.stays:
                lines += ["", f"{visible(kernel.state.name)}: {verdict(kernel)}"]
                lines += [f"  {visible(words)}" for words in map(difference, kernel.differences)]
                lines += [visible(line) for line in annotated(kernel)]
        return "\n".join(lines)

    def html(self) -> str:
        colour = STATUS["faster" if self.better else "same"]
        style = f"margin:2px 0 8px;padding:2px 0 2px 10px;border-left:4px solid {colour}"
        facts = "".join(f"<br>\n{escape(f)}" for f in self.facts)
        parts = [
            f'<p style="{style}"><b style="font-size:14px">{escape(self.title)}</b>{facts}</p>',
            section("How the search went", self._search(), opened=True),
            section("What the tuner found", self._findings(), opened=True) if self.better else "",
        ]
        return root("".join(parts))

    def _search(self) -> str:
        cut = sum(k.cut for k in self.states)
        notes = [faint(f"{count(cut, 'candidate')} ruled out by estimate")] if cut else []
        plot = _plot(self.states, self.length or self.tuned.spent)
        rows = list(map(found_cells, self.tuned.kernels))
        return plot + _kernels(END, rows) + " ".join(notes)

    def _findings(self) -> str:
        parts = []
        for kernel in self.tuned.kernels:
            if kernel.schedule is None or kernel.stays:
                continue
            code = pre("\n".join(annotated(kernel)), "python")
            json = fold("as JSON", pre(kernel.schedule.to_json(), "python"))
            name = f"<b>{escape(kernel.state.name)}</b>: {escape(verdict(kernel))}"
            facts = [
                f'<li style="margin:0">{escape(difference(d))}</li>' for d in kernel.differences
            ]
            list_ = f'<ul style="margin:2px 0">{"".join(facts)}</ul>' if facts else ""
            parts.append(f'<p style="margin:4px 0">{name}</p>{list_}{code}{json}')
        return "".join(parts) + paragraph(
            "`%%schedule` takes these steps; a comment says how many times as long the kernel "
            "takes without the step. There was no time to measure those that have none."
        )


def verdict(kernel: Found) -> str:
    """What a kernel gained, and which steps mattered most."""
    gained = factor(1 / kernel.change.median) if kernel.change else ""
    known = [f for f in kernel.findings if f.factor is not None and f.factor >= MATTERS]
    most = sorted(known, key=lambda f: -(f.factor or 0.0))[:3]
    names = ", ".join(f.step for f in most)
    return f"{gained} the default schedule" + (f"; what mattered most: {names}" if names else "")


def difference(found: Difference) -> str:
    """A decision in words."""
    worth = f": {found.factor:.2f}× as long so" if found.factor is not None else ""
    return f"{found.decision}: {found.found} (by default {found.usual}{worth})"


def annotated(kernel: Found) -> list[str]:
    """The schedule as code, with what each step is worth as a comment."""
    assert kernel.schedule is not None
    steps = list(map(str, kernel.schedule.steps))
    notes = [""] * len(steps)
    for place, found in enumerate(kernel.findings):
        if found.factor is not None:
            rest = f", {found.note}" if found.note else ""
            notes[place] = f"# {found.factor:.2f}× as long without it{rest}"
        elif found.note:
            notes[place] = f"# {found.note}"
    wide = max(map(len, steps), default=0)
    return [f"{s:<{wide}}  {n}".rstrip() for s, n in zip(steps, notes, strict=True)]
