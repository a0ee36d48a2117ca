"""What becomes of a cell or command that fails: its traceback, and the notebook's names.

The traceback shows the user's lines.  A cell that fails leaves the names as they were, and the
error says which functions those are.  Knows IPython's shell; it must not know what was run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from nbcomp.errors import Frames, leave_users_frames
from nbcomp.magics.recording import is_compiled


@contextmanager
def restored_on_error(
    shell: InteractiveShell, cell: str, but: type[BaseException] | tuple[()] = ()
) -> Iterator[None]:
    """Give every name its old value when the body, which runs a cell, raises, unless it is a `but`.

    The error says so of functions.
    """
    namespace = shell.user_ns
    before = dict(namespace)
    try:
        yield
    except but:
        raise
    except BaseException as error:
        changed = [n for n, v in namespace.items() if n not in before or before[n] is not v]
        functions = [n for n in changed if _is_function(namespace[n]) and not n.startswith("_")]
        for name in namespace.keys() - before.keys():
            del namespace[name]
        namespace.update(before)
        _tell(error, _left(shell, before, dict.fromkeys([*_defined(shell, cell), *functions])))
        raise


def _defined(shell: InteractiveShell, cell: str) -> list[str]:
    """The functions that a cell defines; none where it cannot be read."""
    try:
        statements = ast.parse(shell.transform_cell(cell)).body
    except (SyntaxError, ValueError):
        return []
    return [s.name for s in statements if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef)]


def _left(shell: InteractiveShell, before: Mapping[str, Any], names: Iterable[str]) -> str:
    """What the functions of a cell that failed are now; "" if there are none."""
    said = []
    for name in names:
        if name not in before:
            said.append(f"{name} is not defined")
        elif _is_function(before[name]):
            said.append(f"{name} is still the function{_of_cell(shell, before[name])}")
        else:
            said.append(f"{name} is still what it was")
    return f"the cell failed: {', '.join(said)}" if said else ""


def _is_function(value: object) -> bool:
    return isinstance(value, FunctionType) or is_compiled(value)


def _of_cell(shell: Any, function: Any) -> str:
    """Which cell a function is of, if it is of one."""
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    known = shell.compile.format_code_name(code.co_filename) if code is not None else None
    return f" of {' '.join(known)}" if known else ""


def _tell(error: BaseException, note: str) -> None:
    """Have an error say more."""
    if note and isinstance(error, UsageError):  # IPython shows its message and nothing else
        error.args = (f"{error}; {note}",)
    elif note:
        error.add_note(note)


class UsersFrames:
    """Takes the compiler's own frames out of the traceback of an error, unless all are wanted."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None and not Frames.all:
            if isinstance(error, SyntaxError):
                _show_without_frames(self.shell)
            leave_users_frames(error)  # it is raised again as it is left


def _show_without_frames(shell: Any) -> None:
    """Show the syntax error that is about to be raised as IPython shows one in a plain cell.

    It points at its line by itself; the frames IPython would put before are not the user's.
    """
    old = shell.custom_exceptions, shell.CustomTB

    def show(shell: Any, *_: Any, **__: Any) -> None:
        shell.custom_exceptions, shell.CustomTB = old
        shell.showsyntaxerror()

    shell.set_custom_exc((SyntaxError,), show)
