"""Python's own errors in the user's words: they name the classes of what stands for values.

Knows the names of those classes, and of what they stand for; nothing of how they work.
"""

from __future__ import annotations

import re
from typing import Any

from nbcomp.frontend.session import Session

STAND_INS = re.compile(r"\b(Tracer|Number|Lazy|NumpyModule|UserModule)\b")
OURS = re.compile(r"\bnbcomp\.frontend\.[\w.<>]*?(\w+)\(\)")  # a function that Python names in full


def in_users_words(error: Exception, session: Session) -> None:
    """Take classes and functions of ours out of the error's message."""
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
