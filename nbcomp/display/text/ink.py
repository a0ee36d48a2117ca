"""Colours of a terminal, or none: what is coloured also says it in words or signs."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

CODES = {"bold": "1", "faint": "2", "good": "32", "bad": "33", "wrong": "31", "code": "36"}


@dataclass(frozen=True)
class Ink:
    """Paints text where colours are wanted; escape sequences are put around, never counted."""

    coloured: bool = False

    def __call__(self, text: str, kind: str) -> str:
        """The text in one of the kinds of `CODES`; "" is as it is."""
        if not self.coloured or not text or not kind:
            return text
        return f"\x1b[{CODES[kind]}m{text}\x1b[0m"


PLAIN = Ink()


def terminal_ink() -> Ink:
    """Colours if the output is a terminal that has them and nobody objects (no-color.org)."""
    dumb = os.environ.get("TERM", "") in ("", "dumb")
    tty = bool(getattr(sys.stdout, "isatty", lambda: False)())
    return Ink(tty and not dumb and not os.environ.get("NO_COLOR"))
