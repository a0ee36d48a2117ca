"""A real IPython shell with nbcomp loaded, and a stand-in for the compiler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import RichOutput, capture_output

from nbcomp import magics
from nbcomp.display.bundle import Report
from nbcomp.magics.settings import NbComp


class Notebook:
    """Runs cells and keeps what they showed."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.names = shell.user_ns
        self.outputs: list[RichOutput] = []
        self.printed = ""

    def run(self, cell: str) -> Any:
        """Run a cell; returns its result object, errors are left in it."""
        with capture_output() as captured:
            result = self.shell.run_cell(cell, store_history=True)
        self.outputs, self.printed = captured.outputs, captured.stdout
        return result

    def value(self, cell: str) -> Any:
        """Run a cell that works; returns its value."""
        result = self.run(cell)
        result.raise_error()
        return result.result

    @property
    def last(self) -> Report:
        """The last report of a command; there must be one."""
        report = self.shell.magics_manager.registry["CompilerMagics"].last
        assert isinstance(report, Report)
        return report


@pytest.fixture
def notebook() -> Iterator[Notebook]:
    InteractiveShell.clear_instance()
    NbComp.clear_instance()
    shell = InteractiveShell.instance()
    shell.colors = "nocolor"
    magics.load(shell)
    shell.run_cell("import numpy as np")
    yield Notebook(shell)
    magics.unload(shell)
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()
    NbComp.clear_instance()


@pytest.fixture
def quick(notebook: Notebook) -> Notebook:
    """A notebook that does not spend time on timing."""
    NbComp.instance().bench = False
    return notebook
