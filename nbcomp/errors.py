"""The errors nbcomp raises, worded for the person who wrote the cell.

Every error can carry a `Location` (the user's line) and a hint (what to write instead); printed,
the excerpt with its caret comes first and the message last, as Python does it.  Knows nothing else.
"""

from __future__ import annotations

import os
from types import FrameType, TracebackType

from nbcomp.record import Location

PACKAGE = os.path.join(os.path.dirname(__file__), "")  # no other's that begins with its name
STANDARD = os.path.join(os.path.dirname(os.__file__), "")
INSTALLED = (os.path.join(STANDARD, "site-packages"), os.path.join(STANDARD, "dist-packages"))


def an(word: str) -> str:
    """`an int`, `a float`, `a ufunc`."""
    return f"{'an' if word[:1] in tuple('aeioAEIO') else 'a'} {word}"


class NbcompError(Exception):
    """Base of all errors of nbcomp: a message, where it happened, and what to write instead."""

    def __init__(self, message: str, location: Location | None = None, hint: str = "") -> None:
        self.message, self.location, self.hint = message, location, hint
        excerpt = location.excerpt() if location else ""
        parts = [excerpt, message, f"hint: {hint}" if hint else ""]
        super().__init__("\n".join(part for part in parts if part))


class CaptureError(NbcompError, TypeError):
    """The program cannot become a graph: the expression, its type, and what would be accepted."""


class Unsupported(NbcompError):
    """What nbcomp does not compile: an operation, dtype or argument; NumPy runs it, said aloud."""


class VerifyError(NbcompError):
    """An IR broke one of its own rules: a fault in nbcomp, never in the user's program."""


class LoopKindError(VerifyError):
    """How a loop runs does not fit where it is: a step of a schedule may have moved it there.

    reason: why not, in a few words.
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class PassError(NbcompError):
    """A pass failed; names it and the passes that ran before it."""


class ScheduleError(NbcompError, ValueError):
    """A schedule step is not legal here: which loop, why, and what would be."""


class Frames:
    """Which frames a traceback shows: the user's only, or with `all` set the compiler's too."""

    all = False


def leave_users_frames(error: BaseException) -> None:
    """Take the frames of this package off an error that is being raised.

    Raised again by a plain `raise`, it does not get that of whoever raises it either.
    """
    error.__traceback__ = users_frames(error.__traceback__)


def users_frames(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of this package and of what it runs, unless all are wanted."""
    kept, own = [], False
    while traceback is not None:
        own = _is_own(traceback.tb_frame) or (own and _is_standard(traceback.tb_frame))
        if Frames.all or not own:
            kept.append(traceback)
        traceback = traceback.tb_next
    trimmed: TracebackType | None = None
    for t in reversed(kept):
        trimmed = TracebackType(trimmed, t.tb_frame, t.tb_lasti, t.tb_lineno)
    return trimmed


def _is_own(frame: FrameType) -> bool:
    """Of this package, or written by it: what data classes generate has no file."""
    name = str(frame.f_globals.get("__name__"))
    return frame.f_code.co_filename.startswith(PACKAGE) or name.startswith(f"{__package__}.")


def _is_standard(frame: FrameType) -> bool:
    """Of Python's own library."""
    file = frame.f_code.co_filename
    return file.startswith(STANDARD) and not file.startswith(INSTALLED)
