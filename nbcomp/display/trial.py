"""How a schedule that was tried is shown: each step with what it changed, the loops, the code, the
time.

Knows trials by their attributes; it must not know where they come from.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from nbcomp.display.bundle import Bundle, bundle, width
from nbcomp.display.html.blocks import fold, paragraph, root
from nbcomp.display.html.code import pre
from nbcomp.display.text.tables import fill
from nbcomp.display.view.headline import others_words
from nbcomp.display.view.kernels import kernel_text
from nbcomp.display.view.words import count, seconds
from nbcomp.display.visible import escape, visible
from nbcomp.measure.figures import change_words
from nbcomp.measure.schedules import Trial
from nbcomp.measure.variants import OUT_OF_TIME


@dataclass(frozen=True)
class TrialReport:
    """A trial in a cell; `adopted` says that its schedule is now the one in use."""

    trial: Trial
    adopted: bool = False

    @property
    def verdict(self) -> list[str]:
        """What came of it, a sentence a line."""
        trial = self.trial
        lines = []
        if trial.note == OUT_OF_TIME:
            lines.append("compiled, but not compared and timed: that takes more --seconds")
        elif not trial.same or trial.note:
            lines.append(trial.note)
        elif trial.own and trial.default and trial.change:
            words = change_words(trial.change)
            times = f"{seconds(trial.own.median)} against {seconds(trial.default.median)}"
            lines.append(f"{times} with the default schedule: {words}, same result")
        if trial.since:
            lines.append(f"against the schedule in use before: {change_words(trial.since)}")
        if trial.ahead:
            lines.append(f"against the best tried before: {change_words(trial.ahead)}")
        if disturbed := others_words(trial.others):
            lines.append(disturbed)
        if self.adopted:
            lines.append("adopted: calls use it from now on")
        return lines

    @property
    def title(self) -> str:
        """Whose schedule it is."""
        steps = count(len(self.trial.steps), "step")
        return f"{visible(self.trial.compiled.name)}, kernel {self.trial.kernel}: {steps}"

    @property
    def loops(self) -> str:
        """The loops after the steps, which stand above them already."""
        return str(replace(self.trial.made.kernel, notes=()))

    def __str__(self) -> str:
        lines = [self.title, *(fill(v, width(), "  ") for v in self.verdict), ""]
        for played in self.trial.steps:
            lines += [f"{played.step}", *(f"    {line}" for line in played.difference())]
        return "\n".join([*lines, "", self.loops])

    __repr__ = __str__

    def html(self) -> str:
        """The HTML form."""
        trial = self.trial
        facts = "".join(f"<br>\n{escape(v)}" for v in self.verdict)
        first = trial.steps[0].before if trial.steps else trial.made.lowered
        parts = [
            f"<p><b>{escape(self.title)}</b>{facts}</p>",
            fold("The loops before", pre(str(first), "loop")),
        ]
        for played in trial.steps:
            step = f"<code>{escape(str(played.step))}</code>"
            difference = played.difference()
            if difference:
                parts.append(fold(step, pre("\n".join(difference), "diff")))
            else:
                parts.append(paragraph(f"{played.step}: nothing changed"))
        made = trial.made
        parts.append(fold("The loops after", pre(self.loops, "loop"), opened=True))
        parts.append(fold("Assembly", pre(kernel_text(made, "asm"), "asm")))
        saved = trial.schedule.of(made.lowered).to_json()
        parts.append(fold("The schedule as JSON", pre(saved, "python")))
        return root("".join(parts))

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> Bundle:
        makers = {"text/plain": self.__str__, "text/html": self.html}
        return bundle(makers, include, exclude)
