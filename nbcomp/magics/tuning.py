"""`%tune f(x) --seconds 30`: a search for schedules, and what to do with the record of them."""

from __future__ import annotations

from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments

from nbcomp.display.view.words import count
from nbcomp.errors import NbcompError
from nbcomp.magics.cell import call_of, is_expression
from nbcomp.magics.commands import parsed, unquoted
from nbcomp.magics.failing import UsersFrames
from nbcomp.magics.measuring import keep_tuned
from nbcomp.magics.progress import Note, Progress
from nbcomp.magics.searching import SECONDS, budget, in_a_line, tuned


@magics_class
class TuneMagics(Magics):
    """The command that tunes."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.notebook = shell

    @magic_arguments()
    @argument("call", nargs="*", help="a call such as f(x, y)")
    @argument("--seconds", "-s", type=float, default=SECONDS, help="about how long to search")
    @argument("--inputs", "-i", type=unquoted, default="", help='arguments, such as "x, y"')
    @argument("--record", type=unquoted, default="", help="the file of trials, such as tuned.jsonl")
    @argument("--on", default="", help="the address of a dask cluster, such as tcp://host:8786")
    @argument("--export", type=unquoted, default="", help="write the best schedules to this file")
    @argument("--merge", type=unquoted, default="", help="take over what another record has")
    @line_magic
    def tune(self, line: str) -> Any:
        """Search schedules for a call, for some seconds; its function uses what is found.

        Interrupting keeps the best so far.  Trials are recorded as they are made, and the best are
        used by themselves when something like it is compiled again, in other notebooks too.
        """
        __tracebackhide__ = True
        args = parsed(self.tune, line)
        with UsersFrames(self.notebook), Progress(self.notebook) as progress:
            if args.export or args.merge:
                progress.finish(Note(exchange(args.record, args.export, args.merge)))
            if not args.call:
                if not (args.export or args.merge):
                    raise UsageError("what is to be tuned? %tune f(x)")
                return
            seconds = budget(args.seconds, "--seconds")
            call = call_of(self.notebook, called(args.call), args.inputs, keep=True)
            call.find_compiled()
            name = call.function.__name__
            with in_a_line():
                if call.refused is not None:
                    raise NbcompError(f"{name} is not tuned: {call.refused.message}")
                found = tuned(call, seconds, args.record, args.on, progress)
            progress.finish(found)
            if not isinstance(found, Note):
                keep_tuned(call, found.tuned.own, found.tuned.numpy)


def called(words: list[str]) -> str:
    """The call that the words of a command are; UsageError where the seconds stand behind it
    without their option."""
    *call, last = words if words[-1] not in ("s", "second", "seconds") else words[:-1]
    number = last.removesuffix("s")
    if call and number.replace(".", "", 1).isdigit() and is_expression(" ".join(call)):
        raise UsageError(f"how long to search is an option: --seconds {number}")
    return " ".join(words)


def exchange(record: str, export: str, merge: str) -> str:
    """Merge a file into the record, and export the best from it: what was done, in words."""
    from nbcomp.schedule.database import Database
    from nbcomp.tuning.tune import record_named  # brings the compiler: not when loaded

    said: list[str] = []
    with in_a_line():
        database = record_named(record or None)
        if database is None:
            raise UsageError("the record is switched off (NBCOMP_RECORD); name one with --record")
        read = [database]
        if merge:
            other = Database(merge)
            new = database.merge(other)
            said.append(f"{count(new, 'new line')} from {merge}")
            read.append(other)
        if export:
            said.append(f"{count(database.export(export), 'schedule')} written to {export}")
    return "; ".join([*said, *filter(None, (each.skipped for each in read))])
