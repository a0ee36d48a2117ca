"""From a call of a compiled function to a search for its schedules, shown while it goes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from IPython.core.error import UsageError

from nbcomp.errors import NbcompError
from nbcomp.magics.plain import plain
from nbcomp.magics.progress import Note, Progress
from nbcomp.magics.recording import Call

SECONDS = 30.0  # of a search, if nothing else is said


def budget(seconds: float, option: str) -> float:
    """The seconds of a search; UsageError for what is none."""
    if not 0 < seconds < math.inf:
        raise UsageError(f"{option}: how many seconds to search, more than 0, not {seconds:g}")
    return seconds


@contextmanager
def in_a_line() -> Iterator[None]:
    """What is wrong with a file is said as IPython says mistakes in commands, without frames."""
    try:
        yield
    except NbcompError as error:
        raise UsageError(
            f"{error.message}; {error.hint}" if error.hint else error.message
        ) from None


def tuned(call: Call, seconds: float, record: str, on: str, progress: Progress) -> Any:
    """Search schedules for a call, let the function use what is found, and give the report; a note
    if it was interrupted before there was anything to choose from.

    Raises UsageError for a record that cannot be written.
    """
    from nbcomp.display.tuning import TuneProgress, TuneReport  # with the compiler: not when loaded
    from nbcomp.tuning.tune import record_named, search_on
    from nbcomp.tuning.tuner import Tuner

    compiled = call.compiled
    with in_a_line():
        database = record_named(record or None)
    reference = plain(call.function)

    def say(state: Any) -> None:
        progress.show(TuneProgress(state))

    def search(runner: Any = None) -> Tuner:
        what = (compiled, call.args, call.kwargs, seconds, database, say)
        return Tuner(*what, reference=reference, runner=runner)

    try:
        found = search_on(on, search) if on else search().run()
    except KeyboardInterrupt:
        recorded = "; trials that were made are recorded" if database is not None else ""
        return Note(f"interrupted: {compiled.name} is as it was{recorded}")
    call.function.adopt(compiled, found.compiled)
    call.compiled = found.compiled
    return TuneReport(found, seconds)


def tuned_if_any(call: Call, seconds: float, record: str, on: str, progress: Progress) -> Any:
    """The same for a cell that does more than that: where there is nothing to tune, a note says
    why."""
    from nbcomp.tuning.tuner import NothingToTune

    try:
        return tuned(call, seconds, record, on, progress)
    except NothingToTune as nothing:
        return Note(f"not tuned: {nothing.message}")
