"""Tells the front ends which reports on show are out of date: a page that was loaded anew knows no
outputs that could be updated, only the reports it shows, by their ids.

The kernel opens one comm, which a page finds among the kernel's when it is loaded; whatever is sent
over it asks for the present state.  Where there is no kernel, in a terminal, nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

TARGET = "nbcomp"  # the comm's; extension/src/kernels.ts has the same

Stale = Mapping[str, tuple[str, ...]]  # the id of each report -> why it is out of date, if it is


class Marks:
    """The comm, and what was said over it last."""

    def __init__(self) -> None:
        self._open: Callable[[], Any] | None = None
        self._comm: Any = None
        self._stale: Stale = {}

    def start(self, shell: InteractiveShell) -> None:
        """Speak to the front ends of this shell's kernel, if it is one."""
        self._open = _comm if hasattr(shell, "kernel") else None

    def tell(self, stale: Stale) -> None:
        """Say which reports are out of date; the first time also that there are reports."""
        new, self._stale = stale != self._stale, stale
        if self._comm is None and self._open is not None:
            self._comm = self._open()
            self._comm.on_msg(self._say)
            self._open = None  # a front end that wants none of it closes the comm
        if new:
            self._say()

    def _say(self, *_: Any) -> None:
        if self._comm is not None:
            self._comm.send({"stale": {id_: list(why) for id_, why in self._stale.items()}})

    def stop(self) -> None:
        """Say nothing more."""
        if self._comm is not None:
            self._comm.close()
        self._comm = self._open = None


def _comm() -> Any:
    from comm import create_comm  # comes with the kernel; there is none in a terminal

    return create_comm(target_name=TARGET)
