"""What a notebook remembers of its compilations: the last run of each function, and the reports on
show, which are marked when what they were compiled for has changed.

Bounded, and kept in the session only.  Knows reports; it must not know how they look.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict, deque
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import DisplayHandle

from nbcomp.display.bundle import Report
from nbcomp.display.view.history import Run, history
from nbcomp.display.view.reads import Fallback
from nbcomp.magics.marks import Marks

FUNCTIONS = 32  # whose last run is remembered
SHOWN = 32  # reports that are watched


@dataclass
class _Shown:
    """A report in an output of the notebook; handle: what shows another one there, if anything."""

    report: Report
    handle: DisplayHandle | None


class Session:
    """The memory of one notebook."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._shown: deque[_Shown] = deque(maxlen=SHOWN)
        self._name, self._numbers = secrets.token_hex(4), count(1)  # what ids are made of
        self._marks = Marks()

    def remember(self, report: Report, given: tuple[str, ...] = ()) -> Report:
        """The report under an id of its own, with what changed since the function's last run, of
        which it is the new one.  given: the arguments of the call (`Call.given`).

        What runs in NumPy has no run to compare.
        """
        compiled = report.compiled
        if isinstance(compiled, Fallback):
            return report
        found = report.comparison
        times = (found.compiled, found.reference) if found else (None, None)
        report = replace(report, id=f"{self._name}-{next(self._numbers)}")
        now, before = Run.of(compiled, *times, given), self._runs.pop(compiled.name, None)
        self._runs[compiled.name] = now
        while len(self._runs) > FUNCTIONS:
            self._runs.popitem(last=False)
        return replace(report, history=history(now, before)) if before else report

    def watch(self, report: Report, handle: DisplayHandle | None = None) -> None:
        """Mark this output when its report goes stale."""
        known = handle is None and any(s.report.id == report.id for s in self._shown)
        if not known and not isinstance(report.compiled, Fallback):
            # Without the result, which may be large.
            self._shown.append(_Shown(replace(report, value=None), handle))

    def look(self, *_: Any) -> None:
        """Mark the outputs that have gone stale, and unmark those that are as they were again."""
        for shown in self._shown:
            report = marked(shown.report)
            if report is not shown.report:
                shown.report = report
                if shown.handle is not None:
                    shown.handle.update(report)
        if self._shown:
            self._marks.tell({s.report.id: s.report.stale for s in self._shown if s.report.id})

    def start(self, shell: InteractiveShell) -> None:
        """Look after each cell from now on."""
        self._marks.start(shell)
        shell.events.register("post_run_cell", self.look)

    def stop(self, shell: InteractiveShell) -> None:
        """Look no more."""
        shell.events.unregister("post_run_cell", self.look)
        self._marks.stop()


def marked(report: Report) -> Report:
    """The report as stale as it is now."""
    compiled = report.compiled
    stale = () if isinstance(compiled, Fallback) else compiled.stale
    return report if stale == report.stale else replace(report, stale=stale)
