"""What a way through a program raises, whatever is in arrays.

Python raises it: it runs the call where the check that stands for it ends the program.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence

from nbcomp.frontend.script.loops import jumps_out
from nbcomp.frontend.script.source import names_in

OTHER = "Exception"  # stands for classes that are not Python's own


class Raising(Exception):
    """One way raises: the name of a class, and a message, as far as it is known."""

    def __init__(self, kind: str, message: str = "") -> None:
        super().__init__(message)
        self.kind = kind if _is_exception(kind) else OTHER
        self.message = message

    @classmethod
    def of(cls, error: Exception) -> Raising:
        """An exception of the program's."""
        own = type(error).__module__ != "builtins"
        return cls(OTHER if own else type(error).__name__, str(error))


def always_raised(body: Sequence[ast.stmt]) -> Raising | None:
    """What statements raise that cannot be left in another way; None if they can."""
    for node in body:
        if isinstance(node, ast.Raise):
            match node.exc:
                case ast.Name(kind):
                    return Raising(kind)
                case ast.Call(ast.Name(kind), args):
                    return Raising(kind, text_of(args[0] if args else None))
            return Raising(OTHER)
        if names_in([node]).jumps or jumps_out(node):
            return None
    return None


def text_of(message: ast.expr | None) -> str:
    """The message of an error, if it is a text known now; else ""."""
    match message:
        case ast.Constant(str(text)):
            return text
    return ""


def _is_exception(name: str) -> bool:
    kind = getattr(builtins, name, None)
    return isinstance(kind, type) and issubclass(kind, Exception)
