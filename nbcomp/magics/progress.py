"""An output that first says what is being done and ends as the report, or empty where the command
returns it; then another one may begin.

In a notebook it is updated in place; a terminal cannot take text back and shows the report only.
"""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import DisplayHandle, display

from nbcomp.display.visible import escape


class Note:
    """A line of text by itself."""

    def __init__(self, text: str) -> None:
        self.text = text

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": self.text, "text/html": f"<i>{escape(self.text)}</i>"}


class Progress:
    """The outputs of one command, one after the other."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._updates = hasattr(shell, "kernel")
        self._handle: DisplayHandle | None = None

    def say(self, text: str) -> None:
        """Show what is being done now."""
        self.show(Note(text))

    def show(self, content: object) -> None:
        """Show how far it is."""
        if self._updates:
            self._show(content)

    def finish(self, result: object) -> DisplayHandle | None:
        """Show the result in its place; what can show another one there later."""
        if not self._updates:
            display(result)
            return None
        self._show(result)
        handle, self._handle = self._handle, None  # an error from now on leaves it
        return handle

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._handle:  # what is being done is not any more
            self._show(Note(""))

    def _show(self, content: object) -> None:
        if self._handle:
            self._handle.update(content)
        else:
            self._handle = display(content, display_id=True)
