"""`View`: what is shown of one compilation, before it becomes text, HTML or JSON.

A `View` is built once from the compiled function and its measurements; every format renders the
same one, so they agree.  Texts of kernels and drawings are made only when a format asks for them.
It must not know any markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property

from nbcomp.display.picture.boxes import Drawing
from nbcomp.display.picture.drawing import draw, stacked
from nbcomp.display.view.checks import LevelCheck, check_sentence
from nbcomp.display.view.cpus import Cpu
from nbcomp.display.view.headline import parts_sentences, sentences, title
from nbcomp.display.view.history import History
from nbcomp.display.view.kernels import KernelRow, kernel_rows
from nbcomp.display.view.measured import line_costs
from nbcomp.display.view.passes import PassRow, joined_rows, pass_rows
from nbcomp.display.view.reads import Compiled, Fallback
from nbcomp.display.view.remarks import RemarkRow, merged, remark_row
from nbcomp.display.view.source import Source, source_of
from nbcomp.display.view.speed import SpeedRow, speed_notes, speed_rows
from nbcomp.display.view.words import count
from nbcomp.measure.comparison import Comparison
from nbcomp.measure.figures import Measured
from nbcomp.measure.scaling import Scaling
from nbcomp.record import Remark, Shown

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


# The kernels whose machine code, and what passes changed in them, is shown unless all of it is
# asked for; in programs of many one less, and the costliest one where none has as little LLVM IR.
DETAILED = Shown(kernels=3, characters=100_000)
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
    id: str = ""  # of its report, in a notebook
    show: tuple[str, ...] = SECTIONS
    full: bool = False  # nothing is cut to keep the notebook small
    detailed: frozenset[int] = frozenset()  # numbers of the kernels whose machine code is shown
    # What was compiled: the function, or several parts of it; nothing where NumPy runs it.
    parts: tuple[Compiled, ...] = field(default=(), compare=False)

    @property
    def file(self) -> str:
        """The file or cell of the function."""
        where = self.parts[0].location if self.parts else None
        return self.source.file if self.source else where.file if where else ""

    @property
    def whole(self) -> Compiled | None:
        """The compiled function, unless it is compiled in parts."""
        return self.parts[0] if len(self.parts) == 1 and self.status != "numpy" else None

    @property
    def named(self) -> bool:
        """Whether the function is a plain one, which a notebook knows by its name."""
        function = getattr(self.whole, "function", None)
        return function is None or getattr(function, "__qualname__", "") == self.name

    def begin(self) -> None:
        """Have LLVM make the texts that will be shown, while the other sections are made."""
        worker = ThreadPoolExecutor(1, "nbcomp-texts")
        for kernel in self.kernels:
            if kernel.number in self.detailed:
                kernel.begin(worker)
        worker.shutdown(wait=False)

    @cached_property
    def before(self) -> Drawing | None:
        """The graph as it was captured; those of several parts one below the other."""
        return stacked([draw(part.captured) for part in self.parts])

    @cached_property
    def after(self) -> Drawing | None:
        """The graph after the passes, in its kernels."""
        drawings = [draw(part.graph, part.groups) for part in self.parts]
        return stacked(drawings, [len(part.groups) for part in self.parts])


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
    id: str = "",
) -> View:
    """Collect what is to be shown: the headline, and those of `SECTIONS` that `show` names.

    full: cut no text, however large the notebook becomes.  notes: more sentences of the headline.
    """
    if isinstance(compiled, Fallback):
        return _fallback_view(compiled, comparison, notes, checks, show, full)
    remarks = merged(compiled.explain())
    where = compiled.location
    status, facts = sentences(compiled, comparison, checks)
    cost = line_costs(measured, where.file if where else "")
    made = View(
        name=compiled.name,
        status=status,
        title=title(compiled),
        sentences=(*facts, *notes),
        stages=tuple(compiled.trace.seconds.items()),
        remarks=tuple(map(remark_row, remarks)),
        source=source_of(where, compiled.source, [compiled], remarks, cost),
        speed=tuple(speed_rows(scaling)),
        speed_notes=tuple(speed_notes(scaling)),
        checks=tuple(checks),
        measured=measured,
        cpus=tuple(cpus),
        history=history,
        stale=tuple(stale),
        id=id,
        show=tuple(show),
        full=full,
    )
    return _with_code(made, (compiled,))


def _with_code(made: View, parts: tuple[Compiled, ...]) -> View:
    """The view with the kernels of what was compiled, and the passes over them."""
    called = [f"part {k}" if len(parts) > 1 else "" for k in range(1, len(parts) + 1)]
    kernels, titles, before = list[KernelRow](), list[dict[str, str]](), 0
    for part, words in zip(parts, called, strict=True):
        rows, taken = kernel_rows(part, before), {k.name for k in kernels}
        # Kernels of two parts may have one name.
        titles.append({k.name: f"{k.name}, {words}" if k.name in taken else k.name for k in rows})
        kernels += [replace(k, name=titles[-1][k.name]) for k in rows]
        before += len(part.groups)
    shown = kernels if made.full else _costliest(kernels)
    names = {k.name for k in shown}
    passes = list[PassRow]()
    for part, words, known in zip(parts, called, titles, strict=True):
        wanted = {name: title for name, title in known.items() if title in names}
        passes = joined_rows(passes, pass_rows(part.trace, wanted, words))
    return replace(
        made,
        kernels=tuple(kernels),
        passes=tuple(passes),
        detailed=frozenset(k.number for k in shown),
        parts=parts,
    )


def _costliest(kernels: Sequence[KernelRow]) -> Sequence[KernelRow]:
    """Those of which everything is shown: reading machine code takes time, a few do."""
    most = DETAILED.kernels - (len(kernels) > MANY)
    ordered = sorted(kernels, key=lambda k: -k.cost)
    return [k for k in ordered if k.bulk <= DETAILED.characters][:most] or ordered[:1]


def _fallback_view(
    fallback: Fallback,
    comparison: Comparison | None,
    notes: Sequence[str],
    checks: Sequence[LevelCheck],
    show: Sequence[str],
    full: bool,
) -> View:
    why = Remark("missed", "numpy", fallback.reason, fallback.location, fallback.hint)
    said = fallback.breaks or (why,)
    remarks = merged([*said, *(r for part in fallback.parts for r in part.explain())])
    where = f" because of {fallback.location}" if fallback.location else ""
    what = f"{fallback.name} was not compiled: it ran in NumPy{where}"
    if fallback.breaks:
        parts, kernels = len(fallback.parts), sum(len(p.kernels) for p in fallback.parts)
        inside = f": {count(kernels, 'kernel')} in {count(parts, 'part')}" if parts else ""
        what = f"{fallback.name} is compiled in parts{where}{inside}"
    speed = parts_sentences(comparison) if comparison else ()
    said_of_it = (fallback.reason, fallback.hint, *speed, *notes, check_sentence(checks))
    made = View(
        fallback.name,
        "numpy",
        what,
        tuple(filter(None, said_of_it)),
        remarks=tuple(map(remark_row, remarks)),
        source=source_of(fallback.defined, fallback.source, fallback.parts, remarks),
        checks=tuple(checks),
        show=tuple(show),
        full=full,
    )
    return _with_code(made, fallback.parts)
