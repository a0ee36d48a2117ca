"""`%config NbComp`: what the commands do unless an option says otherwise."""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from traitlets import Bool, Enum, Float, Int, List, Unicode, observe
from traitlets.config import SingletonConfigurable

from nbcomp.display.view.view import SECTIONS
from nbcomp.errors import Frames
from nbcomp.measure.scaling import SIZES


class NbComp(SingletonConfigurable):
    """Defaults of the nbcomp commands."""

    bench = Bool(True, help="Time the compiled function against NumPy after compiling it.").tag(
        config=True
    )
    seconds = Float(5.0, min=0.05, help="About how long one measurement may take, in seconds.").tag(
        config=True
    )
    sizes = List(
        Int(min=1),
        list(SIZES),
        help="The batch sizes at which the speed-up over NumPy is measured.",
    ).tag(config=True)
    max_lines = Int(
        200, min=1, help="How many lines of each intermediate text the HTML report holds."
    ).tag(config=True)
    show = List(Enum(SECTIONS), list(SECTIONS), help="The sections of a report, in any order.").tag(
        config=True
    )
    debug = Bool(False, help="Show the compiler's own frames in tracebacks.").tag(config=True)

    record = Unicode(
        "", help="A record of tuning that is looked at first, such as a file beside the notebook."
    ).tag(config=True)

    @observe("record")
    def _use_record(self, change: Any) -> None:
        from nbcomp.schedule.database import use_record  # brings half the compiler

        if change["new"]:
            use_record(change["new"])

    @observe("debug")
    def _show_frames(self, change: Any) -> None:
        Frames.all = change["new"]


def add_settings(shell: InteractiveShell) -> None:
    """Make `%config NbComp` known.  The one instance is kept, and its values with it."""
    settings = NbComp.instance(parent=shell)
    Frames.all = settings.debug
    if settings not in _configurables(shell):
        _configurables(shell).append(settings)


def remove_settings(shell: InteractiveShell) -> None:
    """Make `%config NbComp` unknown again."""
    Frames.all = False
    _configurables(shell)[:] = [c for c in _configurables(shell) if not isinstance(c, NbComp)]


def _configurables(shell: InteractiveShell) -> list[Any]:
    found: list[Any] = shell.configurables
    return found
