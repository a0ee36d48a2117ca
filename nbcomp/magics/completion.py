"""Completion of the commands' options and of the names of IR levels."""

from __future__ import annotations

import re
from typing import Any

from IPython.core.completer import (
    CompletionContext,
    SimpleCompletion,
    SimpleMatcherResult,
    context_matcher,
)
from IPython.core.interactiveshell import InteractiveShell

from nbcomp.magics.commands import LEVELS, CompilerMagics

_COMMAND = re.compile(r"^%%?(compile|ir|bench)\s")


def options(command: str) -> list[str]:
    """The long options of a command, as its parser knows them."""
    parser = getattr(CompilerMagics, command).parser
    found = [s for action in parser._actions for s in action.option_strings]
    return sorted(s for s in found if s.startswith("--"))


@context_matcher(identifier="nbcomp_options", priority=200)
def complete_options(context: CompletionContext) -> SimpleMatcherResult:
    """Complete `--` words on a command's line, levels after `%ir f`; elsewhere keep out of it."""
    command = _COMMAND.match(context.line_with_cursor)
    before = context.text_until_cursor
    word = re.split(r"\s", before)[-1]
    if not command or context.cursor_line:
        return _answer([], "", suppress=False)
    words = options(command[1])
    if command[1] == "ir" and len(before.split()) + (not word) >= 3:
        words = [*LEVELS, *words]
    elif not word.startswith("-"):
        return _answer([], "", suppress=False)
    matches = [w for w in words if w.startswith(word)]
    return _answer(matches, word, suppress=bool(matches))


def _answer(words: list[str], fragment: str, suppress: bool) -> SimpleMatcherResult:
    completions = [SimpleCompletion(text=w, type="param") for w in words]
    return {"completions": completions, "matched_fragment": fragment, "suppress": suppress}


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
