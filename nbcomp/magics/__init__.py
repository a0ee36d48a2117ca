"""The notebook's commands: `%%compile`, `%compile`, `%ir`, `%explain`, `%bench`.

`load` and `unload` are what `%load_ext nbcomp` and `%unload_ext nbcomp` run; loading twice changes
nothing.  Nothing here plots or compiles until a command is used.
"""

from __future__ import annotations

from IPython.core.interactiveshell import InteractiveShell

from nbcomp.magics.commands import CompilerMagics
from nbcomp.magics.completion import add_completion, remove_completion
from nbcomp.magics.settings import add_settings, remove_settings

COMMANDS = {"line": ("compile", "ir", "explain", "bench"), "cell": ("compile",)}


def load(shell: InteractiveShell) -> None:
    """Register the commands, their settings and completion; what is there already is replaced."""
    add_settings(shell)
    shell.register_magics(CompilerMagics(shell))
    add_completion(shell)


def unload(shell: InteractiveShell) -> None:
    """Take everything back that `load` added."""
    for kind, names in COMMANDS.items():
        for name in names:
            shell.magics_manager.magics[kind].pop(name, None)
    remove_completion(shell)
    remove_settings(shell)
