"""What a notebook remembers of its compilations: the last run of each function, and the reports on
show, which are marked when what they were compiled for has changed.

Bounded, and kept in the session only.  Knows reports; it must not know how they look.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, replace
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import DisplayHandle

from nbcomp.display.bundle import Report
from nbcomp.display.view.history import Run, history
from nbcomp.display.view.reads import Fallback

FUNCTIONS = 32  # whose last run is remembered
SHOWN = 16  # reports that are watched


@dataclass
class _Shown:
    """A report in an output of the notebook."""

    report: Report
    handle: DisplayHandle


class Session:
    """The memory of one notebook."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._shown: deque[_Shown] = deque(maxlen=SHOWN)

    def remember(self, report: Report) -> Report:
        """The report with what changed since the function's last run, of which it is the new one.

        What runs in NumPy has no run to compare.
        """
        compiled = report.compiled
        if isinstance(compiled, Fallback):
            return report
        found = report.comparison
        times = (found.compiled, found.reference) if found else (None, None)
        now, before = Run.of(compiled, *times), self._runs.pop(compiled.name, None)
        self._runs[compiled.name] = now
        while len(self._runs) > FUNCTIONS:
            self._runs.popitem(last=False)
        return replace(report, history=history(now, before)) if before else report

    def watch(self, report: Report, handle: DisplayHandle | None) -> None:
        """Mark this output when its report goes stale."""
        if handle is not None and not isinstance(report.compiled, Fallback):
            # Without the result, which may be large.
            self._shown.append(_Shown(replace(report, value=None), handle))

    def look(self, *_: Any) -> None:
        """Mark the outputs that have gone stale, and unmark those that are as they were again."""
        for shown in self._shown:
            report = marked(shown.report)
            if report is not shown.report:
                shown.report = report
                shown.handle.update(report)

    def start(self, shell: InteractiveShell) -> None:
        """Look after each cell from now on."""
        shell.events.register("post_run_cell", self.look)

    def stop(self, shell: InteractiveShell) -> None:
        """Look no more."""
        shell.events.unregister("post_run_cell", self.look)


def marked(report: Report) -> Report:
    """The report as stale as it is now."""
    compiled = report.compiled
    stale = () if isinstance(compiled, Fallback) else compiled.stale
    return report if stale == report.stale else replace(report, stale=stale)
