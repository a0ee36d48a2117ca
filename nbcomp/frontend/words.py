"""Python's own errors in the user's words: they name the classes of what stands for values.

Knows the names of those classes, and of what they stand for; nothing of how they work.
"""

from __future__ import annotations

import ast
import re
from types import TracebackType
from typing import Any

import numpy as np

from nbcomp.errors import PACKAGE, CaptureError
from nbcomp.frontend.idioms import advice_at
from nbcomp.frontend.location import location_of, span_of
from nbcomp.frontend.session import Session
from nbcomp.types import TensorType

STAND_INS = re.compile(r"\b(Tracer|Number|Lazy|NumpyModule|UserModule)\b")
OURS = re.compile(r"\bnbcomp\.frontend\.[\w.<>]*?(\w+)\(\)")  # a function that Python names in full


# How NumPy refuses to take an array for one number.
NO_NUMBER = (
    "The truth value of an array with more than one element is ambiguous",
    "only length-1 arrays can be converted to",
    "only 0-dimensional arrays can be converted to",
    "only integer scalar arrays can be converted to",
)


def in_users_words(error: Exception, session: Session) -> None:
    """Take classes and functions of ours out of the error's message, and say what to write."""
    advise(error)
    if not error.args or not isinstance(error.args[0], str):
        return
    numbers = {type(r.value).__name__ for r in session.reads.values() if _is_number(r.value)}
    names = {
        "Tracer": "numpy.ndarray",
        "Number": " or ".join(sorted(numbers)) or "int",
        "Lazy": "object",
        "NumpyModule": "module",
        "UserModule": "module",
    }
    text = STAND_INS.sub(lambda found: names[found[0]], error.args[0])
    error.args = (OURS.sub(r"\1()", text), *error.args[1:])


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def advise(error: BaseException) -> None:
    """Note what to write instead where NumPy refuses to take an array for one number, in an
    expression of the user's."""
    frame = _users_frame(error.__traceback__) if str(error).startswith(NO_NUMBER) else None
    if frame is None:
        return
    place = location_of(frame.tb_frame.f_code, frame.tb_lasti)
    if (advice := advice_at(place)) is None:
        return
    message, hint, culprit = advice
    names = dict.fromkeys(n.id for n in ast.walk(culprit) if isinstance(n, ast.Name))
    values: dict[str, Any] = {name: frame.tb_frame.f_locals.get(name) for name in names}
    types = {n: TensorType(v.dtype, v.shape) for n, v in values.items() if _is_array(v)}
    what = ", ".join(f"{name}: {t}" for name, t in types.items())
    message = f"{message} ({what})" if what else message
    note = str(CaptureError(message, span_of(culprit, place), hint))
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _users_frame(traceback: TracebackType | None) -> TracebackType | None:
    """The innermost frame, if it is the user's, those of this package aside."""
    found = None
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(PACKAGE):
            found = traceback
        traceback = traceback.tb_next
    inside = found is not None and "numpy" in str(found.tb_frame.f_globals.get("__name__"))
    return None if inside else found


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or type(value).__name__ == "Tracer"
