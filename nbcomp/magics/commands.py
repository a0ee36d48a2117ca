"""The commands: each parses its options, calls one function and returns an object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

import nbcomp
from nbcomp.display.bundle import Explanation, Listing, Report
from nbcomp.display.view.kernels import done_words, kernel_text
from nbcomp.display.view.remarks import merged, remark_row
from nbcomp.display.view.source import source_of
from nbcomp.display.view.view import SECTIONS
from nbcomp.display.view.words import count
from nbcomp.magics.cell import (
    Way,
    call_of,
    compiled_named,
    function_named,
    is_expression,
    is_silenced,
    run_cell,
)
from nbcomp.magics.failing import UsersFrames, restored_on_error
from nbcomp.magics.measuring import Interrupted, Options, keep_figures, report_on
from nbcomp.magics.progress import Note, Progress
from nbcomp.magics.recording import Call, breaks_of, parts_of
from nbcomp.magics.searching import budget, tuned_if_any
from nbcomp.magics.session import Session, marked
from nbcomp.magics.settings import NbComp
from nbcomp.options import PRECISIONS
from nbcomp.record import Remark

LEVELS = ("graph", "loop", "llvm", "asm")
A_FUNCTION = "the name of a compiled function, or a call such as f(x), which is made"


def unquoted(text: str) -> str:
    """An option's value without the quotes it was written in."""
    quoted = len(text) > 1 and text[0] in "\"'" and text[-1] == text[0]
    return text[1:-1] if quoted else text


def parsed(magic: Any, line: str) -> Any:
    """What a command's line says; a `;` at its end, as at that of any line, says nothing."""
    return parse_argstring(magic, line.rstrip().removesuffix(";"))


def sizes(text: str) -> tuple[int, ...]:
    """The batch sizes of `--sizes 1,64,4096`."""
    words = unquoted(text).replace(",", " ").split()
    if not words or not all(w.isdigit() and int(w) for w in words):
        raise UsageError(f"--sizes takes whole numbers such as 1,64,4096, not {text}")
    return tuple(map(int, words))


def sections(text: str) -> tuple[str, ...]:
    """The sections of `--show graph,kernels`."""
    words = tuple(unquoted(text).replace(",", " ").split())
    unknown = [w for w in words if w not in SECTIONS]
    if unknown:
        raise UsageError(f"--show takes {', '.join(SECTIONS)}, not {unknown[0]}")
    return words


def options(args: Any) -> Options:
    """What the command line says, and for the rest what `%config NbComp` says."""
    settings = NbComp.instance()
    wanted = settings.bench or args.sizes or args.seconds
    return Options(
        timed=bool(wanted) and not getattr(args, "no_bench", False),
        sizes=sizes(args.sizes) if args.sizes else tuple(settings.sizes),
        seconds=args.seconds or settings.seconds,
        check=getattr(args, "check", False),
        measure=getattr(args, "measure", False),
        ablate=getattr(args, "ablate", False),
        cpus=getattr(args, "cpus", False),
        max_lines=settings.max_lines,
        full=getattr(args, "full", False),
        show=sections(args.show) if args.show else tuple(settings.show),
    )


def for_cpu(compiled: Any, name: str) -> Any:
    """The compiled function for another CPU."""
    try:
        return compiled.for_cpu(name)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _numbered(page: str, number: int) -> str:
    """The file of a cell's next report: x.html, x-2.html, …"""
    path = Path(page) if page else None
    return str(path.with_stem(f"{path.stem}-{number + 1}")) if path and number else page or ""


@contextmanager
def shown_when_interrupted(show: Callable[[Report], object]) -> Iterator[None]:
    """Show what was measured before an interrupt, which then ends the command."""
    try:
        yield
    except Interrupted as stopped:
        show(stopped.report)
        raise KeyboardInterrupt from None


Search = Callable[[Call, Progress], None]


def _search(args: Any) -> Search | None:
    """What `--tune` asks for, for each call: search and show what was found; None: nothing."""
    if args.tune is None:
        return None
    seconds = budget(args.tune, "--tune")

    def search(call: Call, progress: Progress) -> None:
        call.find_compiled()
        if call.refused is None:
            progress.finish(tuned_if_any(call, seconds, args.record, args.on, progress))

    return search


def leveled(words: list[str]) -> tuple[str, str]:
    """The function and the level of `%ir f(x, y) asm`; the graph if no level is named."""
    if len(words) == 1:
        return words[0], LEVELS[0]
    *name, level = words
    if level not in LEVELS and level.isidentifier() and is_expression(" ".join(name)):
        near = get_close_matches(level, LEVELS, 1, 0.4)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"invalid choice: {level!r} (choose from {', '.join(LEVELS)}){meant}")
    if level not in LEVELS:
        return " ".join(words), LEVELS[0]
    if name[-1] in LEVELS and is_expression(" ".join(name[:-1])):
        raise UsageError(f"one level at a time: %ir {' '.join(name[:-1])} {name[-1]}")
    return " ".join(name), level


SHOW_HELP = f"sections of the report, such as speed,graph: {', '.join(SECTIONS)}"


def _with_origin(report: Report, call: Call) -> Report:
    """The report, saying where arguments come from that nobody wrote."""
    if not call.given_by:
        return report
    names = " and ".join(call.given_by)
    several = "s" * (len(call.given_by) > 1)
    note = f"no call: it ran on the notebook's variable{several} {names}"
    return replace(report, notes=(*report.notes, note))


@magics_class
class CompilerMagics(Magics):
    """The commands of nbcomp; `last` is the report that was made last."""

    last: Report | None = None

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.notebook = shell
        self.session = Session()

    @magic_arguments()
    @argument(
        "call", nargs="*", help="for %%compile: a call such as f(x); nothing: the last report"
    )
    @argument("--inputs", "-i", type=unquoted, default="", help='arguments, such as "x, y"')
    @argument("--script", action="store_true", help="compile the source: loops, if and while too")
    @argument(
        "--precision", default="", help="bf16: operands of float32 products rounded to bfloat16"
    )
    @argument("--library", default="", help="the variable of an nbcomp.Library to call routines of")
    @argument("--check", action="store_true", help="run every level; name the first wrong one")
    @argument(
        "--measure",
        action="store_true",
        help="the run time after each pass; each kernel against the machine's limits",
    )
    @argument("--ablate", action="store_true", help="what each optimisation is worth")
    @argument(
        "--cpus", action="store_true", help="the same program for other CPUs, from SSE2 to PTX"
    )
    @argument("--tune", type=float, help="search schedules for so many seconds first")
    @argument("--on", default="", help="the dask cluster that searches, such as tcp://host:8786")
    @argument("--record", type=unquoted, default="", help="the file of trials of --tune")
    @argument("--no-bench", action="store_true", help="compare with NumPy, but do not time")
    @argument("--full", action="store_true", help="cut no text, however large the notebook becomes")
    @argument("--html", type=unquoted, help="write the report to this file, too")
    @argument("--sizes", help="batch sizes to time, such as 1,64,4096")
    @argument("--seconds", type=float, help="about how long the timing may take")
    @argument("--show", help=SHOW_HELP)
    @line_cell_magic
    def compile(self, line: str, cell: str | None = None) -> Any:
        """Compile the functions of this cell and show what became of them.

        The cell is ordinary Python, and runs as such: the report is about the functions its last
        line calls, as in `f(x)`, and the value of the cell is that of its last line.  In a cell of
        nothing but definitions the last function is called, with inputs from --inputs, from
        annotations such as `x: nbcomp.f32[8, 64]`, or copies of variables with the parameters'
        names.  The report is shown and the functions are compiled functions from then
        on.

        `%compile f(x)` returns the report of one call, and f is a compiled function from then on;
        `%compile` returns the last report.
        """
        __tracebackhide__ = True
        with UsersFrames(self.notebook), restored_on_error(self.notebook, cell or ""):
            args = parsed(self.compile, line)
            chosen, search, way = options(args), _search(args), self._way(args)
        with UsersFrames(self.notebook):
            if cell is not None:
                compiler = way or (nbcomp.script if args.script else nbcomp.jit)
                return self._cell(cell, args.inputs, args.html, chosen, compiler, search)
            if args.call:
                with Progress(self.notebook) as progress, shown_when_interrupted(progress.finish):
                    progress.say("compiling …")
                    call = call_of(self.notebook, " ".join(args.call), args.inputs, True, way)
                    if search is not None:
                        search(call, progress)
                    self.last = self._report(call, chosen, args.html, progress.say)
            if self.last is None:
                raise UsageError("nothing was compiled yet")
            self.last = marked(self.last)
            self.session.watch(self.last)
            return self.last

    def _way(self, args: Any) -> Way | None:
        """How functions are compiled, if the options say it."""
        names = unquoted(args.library).replace(",", " ").split()
        if not names and not args.precision:
            return None
        if args.precision not in PRECISIONS:
            raise UsageError(f"--precision takes bf16, not {args.precision}")
        libraries = [self.notebook.user_ns.get(name) for name in names]
        for name, library in zip(names, libraries, strict=True):
            if not hasattr(library, "rules"):
                raise UsageError(f"--library takes the name of an nbcomp.Library, not {name}")
        compiler = nbcomp.script if args.script else nbcomp.jit
        return partial(compiler, libraries=libraries, precision=args.precision)

    def _report(self, call: Call, chosen: Options, page: str, say: Callable[[str], None]) -> Report:
        """The report on a call, against the run before; written to a file if one is named."""
        try:
            report = _with_origin(report_on(call, chosen, say), call)
        except Interrupted as stopped:
            raise Interrupted(self._kept(call, stopped.report, page)) from None
        return self._kept(call, report, page)

    def _kept(self, call: Call, report: Report, page: str) -> Report:
        report = self.session.remember(report, call.given)
        if call.refused is None:
            call.compiled.shown = replace(report, value=None)
        if page:
            report.save(page)
        return report

    def _cell(
        self,
        cell: str,
        inputs: str,
        page: str,
        chosen: Options,
        way: Callable[[Any], Any],
        search: Search | None,
    ) -> Any:
        __tracebackhide__ = True
        with (
            Progress(self.notebook) as progress,
            shown_when_interrupted(progress.finish),
            restored_on_error(self.notebook, cell, but=Interrupted),
        ):
            progress.say("compiling …")
            outcome = run_cell(self.notebook, cell, inputs, way)
            if outcome.note:
                progress.finish(Note(outcome.note))
            share = replace(chosen, seconds=chosen.seconds / max(len(outcome.calls), 1))
            for number, call in enumerate(outcome.calls):
                if search is not None:
                    search(call, progress)
                report = self._report(call, share, _numbered(page, number), progress.say)
                self.session.watch(report, progress.finish(report))
                self.last = report
            return None if is_silenced(self.notebook, cell) else outcome.value

    @magic_arguments()
    @argument("function", nargs="+", help=f"{A_FUNCTION}; then one of {', '.join(LEVELS)}")
    @argument(
        "--raw", action="store_true", help="with all directives and metadata, as tools want it"
    )
    @argument("--cpu", default="host", help="for another CPU: sse2, avx2, avx512, neon, ptx, …")
    @line_magic
    def ir(self, line: str) -> Listing:
        """The text of a compiled function at one level: its graph, loops, LLVM IR or assembly."""
        __tracebackhide__ = True
        args = parsed(self.ir, line)
        name, level = leveled(args.function)
        with UsersFrames(self.notebook):
            compiled = compiled_named(self.notebook, name)
        if args.cpu != "host":
            compiled = for_cpu(compiled, args.cpu)
        text = compiled.text(level)
        if level in ("llvm", "asm") and not args.raw:
            text = "\n\n".join(kernel_text(k, level) for k in compiled.kernels)
        return Listing(f"{name}: {level}", level, text)

    @magic_arguments()
    @argument("function", nargs="+", help=A_FUNCTION)
    @argument("--llvm", action="store_true", help="also LLVM's own remarks: takes a second")
    @line_magic
    def explain(self, line: str) -> Explanation:
        """What was decided about a compiled function, line by line: done or not done, and why."""
        __tracebackhide__ = True
        args = parsed(self.explain, line)
        name = " ".join(args.function)
        with UsersFrames(self.notebook):
            function, compiled = function_named(self.notebook, name)
        refused = [
            Remark("missed", "numpy", r.message, r.location, r.hint) for r in function.fallbacks
        ]
        breaks = breaks_of(function)
        parts = (compiled,) if compiled else parts_of(function)
        said = [r for part in parts for r in part.explain(args.llvm)]
        remarks = [*breaks, *refused, *said]
        title = f"{name}: {count(len(remarks), 'remark')}"
        if breaks:
            graphs = count(len(function.explain().graphs), "graph")
            title += f", it runs in parts: {graphs}, {count(len(breaks), 'break')}"
        elif refused:
            title += ", it runs in NumPy" if compiled is None else ", some calls run in NumPy"
        if compiled and compiled.stale:
            title += f"; stale, since {'; '.join(compiled.stale)}"
        done = "; ".join(map(done_words, parts))
        first = parts[0] if parts else None
        where, text = (first.location, first.source) if first else (None, "")
        source = source_of(where, text, parts, merged(remarks))
        return Explanation(title, tuple(map(remark_row, merged(remarks))), done, source)

    @magic_arguments()
    @argument("call", nargs="+", help="a call such as f(x, y)")
    @argument("--inputs", "-i", type=unquoted, default="", help='arguments, such as "x, y"')
    @argument("--sizes", help="batch sizes to time, such as 1,64,4096")
    @argument("--seconds", type=float, help="about how long the timing may take")
    @argument("--show", default="speed", help=SHOW_HELP)
    @line_magic
    def bench(self, line: str) -> Report:
        """Time a call against NumPy, at the size given and across batch sizes."""
        __tracebackhide__ = True
        args = parsed(self.bench, line)
        chosen = replace(options(args), timed=True)
        with (
            UsersFrames(self.notebook),
            Progress(self.notebook) as progress,
            shown_when_interrupted(progress.finish),
        ):
            progress.say("compiling …")
            call = call_of(self.notebook, " ".join(args.call), args.inputs)
            report = report_on(call, chosen, progress.say)
            keep_figures(call, report)
            return report
