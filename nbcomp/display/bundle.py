"""The objects a cell shows, each one MIME bundle: `Report`, `Listing`, `Explanation`.

A bundle is built type by type, and only those a frontend asks for: the terminal never prints
assembly. There is no `image/svg+xml` in it, because that makes `nbconvert --to pdf` need Inkscape.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

from nbcomp.display.html import report as markup
from nbcomp.display.html.page import page
from nbcomp.display.payload import MIME, payload
from nbcomp.display.plots.speedup import speedup_plot
from nbcomp.display.text.ink import PLAIN, Ink, terminal_ink
from nbcomp.display.text.report import headline, speed_table, text
from nbcomp.display.text.source import annotated
from nbcomp.display.text.tables import fill
from nbcomp.display.view.checks import LevelCheck
from nbcomp.display.view.cpus import Cpu
from nbcomp.display.view.history import History
from nbcomp.display.view.reads import Compiled, Fallback
from nbcomp.display.view.remarks import RemarkRow
from nbcomp.display.view.source import Source
from nbcomp.display.view.view import NOTHING, SECTIONS, View, view
from nbcomp.display.visible import visible
from nbcomp.measure.comparison import Comparison
from nbcomp.measure.figures import Measured
from nbcomp.measure.scaling import Scaling

Bundle = dict[str, Any]


def bundle(
    makers: dict[str, Callable[[], Any]],
    include: Collection[str] | None = None,
    exclude: Collection[str] | None = None,
    begin: Callable[[], None] = lambda: None,
) -> Bundle:
    """The data of each MIME type that is wanted; in a terminal that is text.

    begin: called first, unless text is all that is wanted.
    """
    if not include and _text_only():
        include = ("text/plain",)
    wanted = [m for m in makers if (not include or m in include) and m not in (exclude or ())]
    if wanted != ["text/plain"]:
        begin()
    return {mime: makers[mime]() for mime in wanted}


def _text_only() -> bool:
    """Whether the running IPython shows text and nothing else: it does not ask for types."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    formatter = getattr(shell, "display_formatter", None)
    return list(getattr(formatter, "active_types", ())) == ["text/plain"]


def width() -> int:
    """Columns of the terminal, at most 120."""
    return min(get_terminal_size((100, 24)).columns, 120)


@dataclass(frozen=True)
class Report:
    """A compilation with its measurements; `value` is what the call returned.

    Shown as HTML in a notebook, as text in a terminal; `save` writes a page of its own.
    """

    compiled: Compiled | Fallback
    value: Any = None
    comparison: Comparison | None = None
    scaling: Scaling | None = None
    checks: tuple[LevelCheck, ...] = ()
    max_lines: int = markup.MAX_LINES  # of each text in the HTML form
    show: tuple[str, ...] = SECTIONS
    full: bool = False  # nothing is cut, however large the notebook becomes
    measured: Measured = NOTHING  # pass by pass, optimisation by optimisation, by kernel
    history: History | None = None  # this run against the one before
    stale: tuple[str, ...] = ()  # what is not any more as it was when this was compiled
    notes: tuple[str, ...] = ()  # more sentences of the headline
    cpus: Iterable[Cpu] = ()  # the same program for other CPUs, this machine's first
    id: str = ""  # what the front ends know it by, when it is in a notebook

    @cached_property
    def view(self) -> View:
        """What is shown, before it has a format."""
        return view(
            self.compiled,
            comparison=self.comparison,
            scaling=self.scaling,
            checks=self.checks,
            show=self.show,
            full=self.full,
            measured=self.measured,
            history=self.history,
            stale=self.stale,
            notes=self.notes,
            cpus=self.cpus,
            id=self.id,
        )

    @property
    def headline(self) -> str:
        """The title and its facts, as lines of text."""
        return headline(self.view)

    @property
    def speed(self) -> str:
        """The speed table, as lines of text."""
        return "\n".join(speed_table(self.view, width()))

    def html(self) -> str:
        """The HTML form."""
        plot = speedup_plot(self.view.speed) if "speed" in self.show else ""
        return markup.html(self.view, plot, self.max_lines)

    def save(self, path: str | Path) -> Path:
        """Write the report as one HTML file that needs nothing else."""
        path = Path(path)
        whole = page(self.html(), f"nbcomp: {self.view.name}", MIME, payload(self.view))
        path.write_text(whole, encoding="utf-8")
        return path

    def text(self, ink: Ink = PLAIN) -> str:
        """The text form, coloured or not."""
        return text(self.view, width(), ink)

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> Bundle:
        makers = {
            "text/plain": lambda: self.text(terminal_ink()),
            "text/html": self.html,
            MIME: lambda: payload(self.view),
        }
        return bundle(makers, include, exclude, self.view.begin)


@dataclass(frozen=True)
class Listing:
    """The text of a function at one level."""

    title: str
    level: str
    text: str = field(repr=False)

    def __str__(self) -> str:
        return visible(self.text)

    __repr__ = __str__

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> Bundle:
        makers = {
            "text/plain": self.__str__,
            "text/html": lambda: markup.listing(self.title, self.text, self.level),
        }
        return bundle(makers, include, exclude)


@dataclass(frozen=True)
class Explanation:
    """The decisions of a compilation, on the user's lines."""

    title: str
    remarks: tuple[RemarkRow, ...]
    done: str = ""  # what was done, in a line
    source: Source | None = None

    def lines(self, ink: Ink = PLAIN) -> str:
        """The text form, coloured or not."""
        done = [fill(self.done, width())] if self.done else []
        marked = annotated(self.source, self.remarks, width(), ink)
        return "\n".join([ink(fill(self.title, width()), "bold"), *done, *marked])

    def __str__(self) -> str:
        return self.lines()

    __repr__ = __str__

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> Bundle:
        makers = {
            "text/plain": lambda: self.lines(terminal_ink()),
            "text/html": lambda: markup.explanation(
                self.title, self.remarks, self.done, self.source
            ),
        }
        return bundle(makers, include, exclude)
