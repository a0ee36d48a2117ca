"""`View`: what is shown of one compilation, before it becomes text, HTML or JSON.

A `View` is built once from the compiled function and its measurements; every format renders the
same one, so they agree.  Texts of kernels and drawings are made only when a format asks for them.
It must not know any markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from nbcomp.display.drawing import Drawing, draw
from nbcomp.display.view.checks import LevelCheck
from nbcomp.display.view.cpus import Cpu
from nbcomp.display.view.headline import sentences, title
from nbcomp.display.view.history import History
from nbcomp.display.view.kernels import KernelRow, kernel_rows
from nbcomp.display.view.measured import line_costs
from nbcomp.display.view.passes import PassRow, pass_rows
from nbcomp.display.view.reads import Compiled, Fallback
from nbcomp.display.view.remarks import RemarkRow, merged, remark_row
from nbcomp.display.view.source import Source, source_of
from nbcomp.display.view.speed import SpeedRow, speed_notes, speed_rows
from nbcomp.measure.comparison import Comparison
from nbcomp.measure.figures import Measured
from nbcomp.measure.scaling import Scaling

SECTIONS = (
    "speed",
    "check",
    "history",
    "remarks",
    "graph",
    "kernels",
    "passes",
    "measured",
    "cpus",
)
NOTHING = Measured()


# Kernels whose machine code, and what passes changed in them, is shown unless all of it is asked
# for: the costliest ones, and one less in programs of many.
DETAILED = 3
MANY = 8


@dataclass(frozen=True)
class View:
    """Everything the formats show."""

    name: str
    # "faster", "same", "slower", "wrong", "numpy" or "untimed": for a colour beside the words
    status: str
    title: str
    sentences: tuple[str, ...]  # the rest of the headline
    kernels: tuple[KernelRow, ...] = ()
    passes: tuple[PassRow, ...] = ()
    stages: tuple[tuple[str, float], ...] = ()
    remarks: tuple[RemarkRow, ...] = ()
    source: Source | None = None
    speed: tuple[SpeedRow, ...] = ()
    speed_notes: tuple[str, ...] = ()
    checks: tuple[LevelCheck, ...] = ()
    measured: Measured = NOTHING
    cpus: tuple[Cpu, ...] = ()
    history: History | None = None
    stale: tuple[str, ...] = ()  # what is not any more as it was when this was compiled
    show: tuple[str, ...] = SECTIONS
    full: bool = False  # nothing is cut to keep the notebook small
    detailed: frozenset[int] = frozenset()  # numbers of the kernels whose machine code is shown
    compiled: Compiled | None = field(default=None, compare=False)

    @property
    def file(self) -> str:
        """The file or cell of the function."""
        where = self.compiled.location if self.compiled else None
        return where.file if where else ""

    @property
    def named(self) -> bool:
        """Whether the function is a plain one, which a notebook knows by its name."""
        function = getattr(self.compiled, "function", None)
        return function is None or getattr(function, "__qualname__", "") == self.name

    @cached_property
    def before(self) -> Drawing | None:
        """The graph as it was captured."""
        return draw(self.compiled.captured) if self.compiled else None

    @cached_property
    def after(self) -> Drawing | None:
        """The graph after the passes, in its kernels."""
        return draw(self.compiled.graph, self.compiled.groups) if self.compiled else None


def view(
    compiled: Compiled | Fallback,
    comparison: Comparison | None = None,
    scaling: Scaling | None = None,
    checks: Sequence[LevelCheck] = (),
    show: Sequence[str] = SECTIONS,
    full: bool = False,
    measured: Measured = NOTHING,
    history: History | None = None,
    stale: Sequence[str] = (),
    notes: Sequence[str] = (),
    cpus: Iterable[Cpu] = (),
) -> View:
    """Collect what is to be shown: the headline, and those of `SECTIONS` that `show` names.

    full: cut no text, however large the notebook becomes.  notes: more sentences of the headline.
    """
    if isinstance(compiled, Fallback):
        return _fallback_view(compiled)
    remarks = merged(compiled.explain())
    file = compiled.location.file if compiled.location else ""
    status, facts = sentences(compiled, comparison, checks)
    kernels = kernel_rows(compiled)
    shown = kernels if full else _costliest(kernels)
    return View(
        name=compiled.name,
        status=status,
        title=title(compiled),
        sentences=(*facts, *notes),
        kernels=tuple(kernels),
        passes=tuple(pass_rows(compiled.trace, {k.name for k in shown})),
        detailed=frozenset(k.number for k in shown),
        stages=tuple(compiled.trace.seconds.items()),
        remarks=tuple(map(remark_row, remarks)),
        source=source_of(compiled, remarks, line_costs(measured, file)),
        speed=tuple(speed_rows(scaling)),
        speed_notes=tuple(speed_notes(scaling)),
        checks=tuple(checks),
        measured=measured,
        cpus=tuple(cpus),
        history=history,
        stale=tuple(stale),
        show=tuple(show),
        full=full,
        compiled=compiled,
    )


def _costliest(kernels: Sequence[KernelRow]) -> Sequence[KernelRow]:
    """Those of which everything is shown: reading machine code takes time, a few do."""
    most = DETAILED if len(kernels) <= MANY else DETAILED - 1
    return sorted(kernels, key=lambda k: -k.cost)[:most]


def _fallback_view(fallback: Fallback) -> View:
    where = f" because of {fallback.location}" if fallback.location else ""
    row = RemarkRow(
        line=fallback.location.line if fallback.location else 0,
        source=fallback.location.source_line().strip() if fallback.location else "",
        done=False,
        topic="parts" if fallback.parts else "numpy",
        reason=fallback.reason,
        hint=fallback.hint,
    )
    facts = tuple(s for s in (fallback.reason, fallback.hint) if s)
    what = f"{fallback.name} was not compiled: it ran in NumPy{where}"
    if fallback.parts:
        what = f"{fallback.name} is compiled in parts{where}"
    return View(fallback.name, "numpy", what, facts, remarks=(row,))
