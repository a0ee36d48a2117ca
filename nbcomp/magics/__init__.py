"""The notebook's commands: `%%compile`, `%compile`, `%ir`, `%explain`, `%bench`, `%cpus`,
`%tune`, `%%schedule`.

`load` and `unload` are what `%load_ext nbcomp` and `%unload_ext nbcomp` run; loading twice changes
nothing.  Nothing here plots or compiles until a command is used.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from nbcomp.display.bundle import Bundle, Report
from nbcomp.display.view.reads import Compiled
from nbcomp.magics.commands import CompilerMagics
from nbcomp.magics.completion import add_completion, remove_completion
from nbcomp.magics.cpus import CpuMagics
from nbcomp.magics.schedules import ScheduleMagics
from nbcomp.magics.settings import add_settings, remove_settings
from nbcomp.magics.tuning import TuneMagics

_COMPILED, _TUNED = "nbcomp.compiled.Compiled", "nbcomp.tuning.result.Tuned"
COMMANDS = {
    "line": ("compile", "ir", "explain", "bench", "cpus", "tune"),
    "cell": ("compile", "schedule"),
}


def load(shell: InteractiveShell) -> None:
    """Register the commands, their settings and completion; what is there already is replaced."""
    add_settings(shell)
    _forget(shell)
    commands = CompilerMagics(shell)
    shell.register_magics(commands, CpuMagics(shell), ScheduleMagics(shell), TuneMagics(shell))
    commands.session.start(shell)
    add_completion(shell)
    _bundles(shell).for_type_by_name("nbcomp.compiled", "Compiled", show_compiled)
    _bundles(shell).for_type_by_name("nbcomp.tuning.result", "Tuned", show_tuned)


def _forget(shell: InteractiveShell) -> None:
    """End the session of commands that were registered before."""
    old = shell.magics_manager.registry.pop(CompilerMagics.__name__, None)
    if old is not None:
        old.session.stop(shell)


def show_compiled(
    compiled: Compiled,
    include: Collection[str] | None = None,
    exclude: Collection[str] | None = None,
) -> Bundle:
    """A compiled function by itself is shown as its report, without measurements."""
    return Report(compiled)._repr_mimebundle_(include, exclude)


def show_tuned(
    tuned: Any,
    include: Collection[str] | None = None,
    exclude: Collection[str] | None = None,
) -> Bundle:
    """What `nbcomp.tune` gives is shown as `%tune` shows it."""
    from nbcomp.display.tuning import TuneReport  # brings the compiler: not when loaded

    return TuneReport(tuned)._repr_mimebundle_(include, exclude)


def _bundles(shell: InteractiveShell) -> Any:
    formatter: Any = shell.display_formatter
    return formatter.mimebundle_formatter


def unload(shell: InteractiveShell) -> None:
    """Take everything back that `load` added."""
    for kind, names in COMMANDS.items():
        for name in names:
            shell.magics_manager.magics[kind].pop(name, None)
    _forget(shell)
    remove_completion(shell)
    for shown in (_COMPILED, _TUNED):
        if shown in _bundles(shell):
            _bundles(shell).pop(shown)
    remove_settings(shell)
