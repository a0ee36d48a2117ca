"""Completion of the commands' options, of their values, and of the names of IR levels."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from typing import Any

from IPython.core.completer import (
    CompletionContext,
    SimpleCompletion,
    SimpleMatcherResult,
    context_matcher,
)
from IPython.core.interactiveshell import InteractiveShell

from nbcomp.display.view.view import SECTIONS
from nbcomp.magics.commands import LEVELS, CompilerMagics
from nbcomp.magics.cpus import CpuMagics
from nbcomp.magics.schedules import ScheduleMagics
from nbcomp.magics.tuning import TuneMagics
from nbcomp.options import PRECISIONS

_CLASSES = (CompilerMagics, CpuMagics, ScheduleMagics, TuneMagics)
_PARSERS: dict[str, ArgumentParser] = {
    name: command.parser
    for kind in _CLASSES
    for name, command in vars(kind).items()
    if hasattr(command, "parser")
}
_VALUES: dict[str, Sequence[str]] = {
    "--show": SECTIONS,
    "--precision": tuple(filter(None, PRECISIONS)),
}
_COMMAND = re.compile(rf"^%%?({'|'.join(_PARSERS)})\s")


def options(command: str) -> list[str]:
    """The long options of a command, as its parser knows them."""
    found = [s for action in _PARSERS[command]._actions for s in action.option_strings]
    return sorted(s for s in found if s.startswith("--"))


@context_matcher(identifier="nbcomp_options", priority=200)
def complete_options(context: CompletionContext) -> SimpleMatcherResult:
    """Complete `--` words and what follows them on a command's line, levels after `%ir f`;
    elsewhere keep out of it."""
    command = _COMMAND.match(context.line_with_cursor)
    if not command or context.cursor_line:
        return _answer((), "")
    *before, word = re.split(r"\s+", context.text_until_cursor)
    known = options(command[1])
    if before[-1] in known and before[-1] in _VALUES:
        return _answer(_VALUES[before[-1]], word.rpartition(",")[2])
    if command[1] == "ir" and len(before) > 1:
        return _answer((*LEVELS, *known), word)
    return _answer(known if word.startswith("-") else (), word)


def _answer(words: Iterable[str], fragment: str) -> SimpleMatcherResult:
    """Those words that begin so, and nobody else's then."""
    fitting = [SimpleCompletion(text=w, type="param") for w in words if w.startswith(fragment)]
    return {"completions": fitting, "matched_fragment": fragment, "suppress": bool(fitting)}


def _matchers(shell: InteractiveShell) -> list[Any]:
    matchers: list[Any] = shell.Completer.custom_matchers
    return matchers


def add_completion(shell: InteractiveShell) -> None:
    """Register the matcher, once."""
    remove_completion(shell)
    _matchers(shell).append(complete_options)


def remove_completion(shell: InteractiveShell) -> None:
    """Take the matcher out again, also one that an earlier version of this module registered."""
    _matchers(shell)[:] = [
        m for m in _matchers(shell) if getattr(m, "matcher_identifier", "") != "nbcomp_options"
    ]
