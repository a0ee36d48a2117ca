"""What is shown of one compilation, in words and numbers, before it becomes text, HTML or JSON.

A `View` is built once from the compiled function and its measurements; every format renders the
same one, so they agree.  Texts of kernels and drawings are made only when a format asks for them.
Knows `Compiled`, `Comparison` and `Scaling` by their attributes; it must not know any markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Protocol

from nbcomp.bench import Comparison, Scaling
from nbcomp.display.drawing import Drawing, Group, draw
from nbcomp.display.listing import readable
from nbcomp.graph.ir import Graph, Node
from nbcomp.graph.op import Constant, Input
from nbcomp.loop.grammar import Call, Kernel, walk
from nbcomp.record import Location, Remark, Trace

BUSY = 0.2  # cores other programs may use before the report says that they disturbed
FEW_ULP = 64  # beyond this a difference is said by the size of the whole answer
NEAR = 1.25  # the quartiles of a speed-up within this factor of 1 mean "about as fast"
SECTIONS = ("speed", "check", "graph", "kernels", "passes", "remarks")
VERDICTS = {
    "faster": "faster",
    "slower": "slower than NumPy",
    "same": "same speed within the spread",
}
LEVELS = {"loop": "loop IR", "llvm": "LLVM IR", "asm": "assembly"}


class Code(Protocol):
    """What the display reads of a kernel's code: the places its debug locations are indices of."""

    @property
    def locations(self) -> Sequence[Location | None]: ...


class CompiledKernel(Protocol):
    """One kernel of a compiled function, with its text at each level."""

    @property
    def name(self) -> str: ...
    @property
    def group(self) -> Group: ...
    @property
    def kernel(self) -> Kernel: ...
    @property
    def code(self) -> Code: ...
    def text(self, level: Any) -> str: ...


class Compiled(Protocol):
    """What the display reads of a compiled function."""

    @property
    def name(self) -> str: ...
    @property
    def captured(self) -> Graph: ...
    @property
    def graph(self) -> Graph: ...
    @property
    def groups(self) -> Sequence[Group]: ...
    @property
    def kernels(self) -> Sequence[CompiledKernel]: ...
    @property
    def trace(self) -> Trace: ...
    @property
    def compile_seconds(self) -> float: ...
    @property
    def cold(self) -> bool: ...
    @property
    def threads(self) -> int: ...
    @property
    def target(self) -> object: ...
    def text(self, level: Any) -> str: ...
    def explain(self) -> list[Remark]: ...


@dataclass(frozen=True)
class Fallback:
    """A function that runs in NumPy because it cannot be compiled: its name, why, and where."""

    name: str
    reason: str
    location: Location | None = None
    hint: str = ""


@dataclass(frozen=True)
class KernelRow:
    """One fused group: what it computes, from which lines, and how to get its text at a level."""

    name: str
    kind: str
    number: int
    operators: str
    lines: str
    levels: tuple[str, ...]
    text: Callable[[str], str] = field(compare=False)


@dataclass(frozen=True)
class PassRow:
    """One pass, over all kernels: its time, the lines it added and removed, the diffs by kernel."""

    name: str
    level: str
    description: str
    seconds: float
    added: int
    removed: int
    diffs: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def change(self) -> str:
        """What changed, in words."""
        if not self.added and not self.removed:
            return "no change"
        return " ".join(
            f"{sign}{count(lines, 'line')}"
            for sign, lines in (("+", self.added), ("−", self.removed))
            if lines
        )


@dataclass(frozen=True)
class RemarkRow:
    """One decision: the user's line (0: none) and its text, what was decided and why."""

    line: int
    source: str
    done: bool
    topic: str
    reason: str
    hint: str


@dataclass(frozen=True)
class SpeedRow:
    """One batch size: seconds of both sides, their ratio with quartiles, what to say of it."""

    size: int
    ours: float
    theirs: float
    ratio: float
    low: float
    high: float
    ulp: float
    first_call: float
    verdict: str


@dataclass(frozen=True)
class LevelCheck:
    """One level of a compilation, run by itself: the distance of its answer from NumPy's, or how it
    is wrong."""

    level: str
    ulp: float
    problem: str

    @property
    def words(self) -> str:
        """The outcome, in words."""
        return f"WRONG: {self.problem}" if self.problem else f"right ({ulp_words(self.ulp)})"


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
    speed: tuple[SpeedRow, ...] = ()
    speed_notes: tuple[str, ...] = ()
    checks: tuple[LevelCheck, ...] = ()
    show: tuple[str, ...] = SECTIONS
    compiled: Compiled | None = field(default=None, compare=False)

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
) -> View:
    """Collect what is to be shown: the headline, and those of `SECTIONS` that `show` names."""
    if isinstance(compiled, Fallback):
        return _fallback_view(compiled)
    status, speed = _speed_sentence(comparison)
    sentences = [_compile_sentence(compiled), *speed, _difference_sentence(comparison)]
    sentences.append(_check_sentence(checks))
    target = str(compiled.target)
    threads = "" if "thread" in target else f"{count(compiled.threads, 'thread')}, "
    sentences.append(threads + target)
    return View(
        name=compiled.name,
        status=status,
        title=_title(compiled),
        sentences=tuple(s for s in sentences if s),
        kernels=tuple(_kernel_rows(compiled)),
        passes=tuple(_pass_rows(compiled.trace)),
        stages=tuple(compiled.trace.seconds.items()),
        remarks=tuple(map(remark_row, compiled.explain())),
        speed=tuple(_speed_rows(scaling)),
        speed_notes=tuple(_speed_notes(scaling)),
        checks=tuple(checks),
        show=tuple(show),
        compiled=compiled,
    )


def _fallback_view(fallback: Fallback) -> View:
    where = f" because of {fallback.location}" if fallback.location else ""
    row = RemarkRow(
        line=fallback.location.line if fallback.location else 0,
        source=fallback.location.source_line().strip() if fallback.location else "",
        done=False,
        topic="numpy",
        reason=fallback.reason,
        hint=fallback.hint,
    )
    sentences = tuple(s for s in (fallback.reason, fallback.hint) if s)
    title = f"{fallback.name} was not compiled: it ran in NumPy{where}"
    return View(fallback.name, "numpy", title, sentences, remarks=(row,))


# --------------------------------------------------------------------------------------- headline


def seconds(value: float) -> str:
    """A duration with three significant digits and its unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= 0.9995 * scale:
            return f"{_digits(value / scale)} {unit}"
    return f"{_digits(value / 1e-9)} ns"


def _digits(value: float) -> str:
    return (
        f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
    )


def ratio_words(ratio: float, low: float, high: float) -> tuple[str, str]:
    """A status word and how a speed-up is said; one whose quartiles lie on both sides of 1 is no
    gain.
    """
    if low <= 1.0 <= high:
        about = "about as fast as NumPy" if low > 1 / NEAR and high < NEAR else "unclear which is"
        rest = "" if about.startswith("about") else " faster, the times vary too much"
        return "same", f"{about}{rest} ({low:.2f}–{high:.2f}×)"
    if ratio > 1.0:
        return "faster", f"{_digits(ratio)}× faster than NumPy ({_digits(low)}–{_digits(high)})"
    return (
        "slower",
        f"{_digits(1 / ratio)}× slower than NumPy ({_digits(1 / high)}–{_digits(1 / low)})",
    )


def scaled_words(scaled: float) -> str:
    """How many times the last place of the largest value."""
    return f"{scaled:.1f} times the size" if scaled < 1e6 else f"{scaled:.1e} times the size"


def ulp_words(ulp: float) -> str:
    """A distance in units in the last place."""
    return f"{ulp:.0f} ulp" if ulp < 1e6 else f"{ulp:.1e} ulp"


def _operators(nodes: Sequence[Node]) -> Counter[str]:
    return Counter(n.op.name for n in nodes if not isinstance(n.op, (Input, Constant)))


def _title(compiled: Compiled) -> str:
    total = _operators(compiled.captured.nodes).total()
    made = len(compiled.kernels)
    calls = ["numpy"] * (len(compiled.groups) - made)
    for kernel in compiled.kernels:
        calls += [s.fn for s in walk(kernel.kernel.stages) if isinstance(s, Call)]
    names = ", ".join(dict.fromkeys(calls))
    library = f", with {count(len(calls), 'library call')} ({names})" if calls else ""
    return f"{compiled.name}: {count(total, 'operator')} in {count(made, 'kernel')}{library}"


def count(number: int, what: str) -> str:
    """A number of things, in the plural where it is not one."""
    return f"{number} {what}{'s' * (number != 1)}"


def _compile_sentence(compiled: Compiled) -> str:
    return (
        f"compiled in {seconds(compiled.compile_seconds)} ({'cold' if compiled.cold else 'warm'})"
    )


def _speed_sentence(comparison: Comparison | None) -> tuple[str, list[str]]:
    if comparison is None:
        return "untimed", ["not compared with NumPy"]
    if not comparison.agrees:
        return "wrong", ["not timed, because the answer is wrong"]
    if comparison.compiled is None or comparison.reference is None:
        return "untimed", ["not timed"]
    status, words = ratio_words(comparison.speedup, comparison.speedup_low, comparison.speedup_high)
    ours, theirs = comparison.compiled.median, comparison.reference.median
    uncertain = ", uncertain:" if comparison.others >= BUSY else ""
    disturbed = f"{uncertain} {_others_words(comparison.others)}" if uncertain else ""
    return status, [f"runs in {seconds(ours)}, NumPy in {seconds(theirs)}: {words}{disturbed}"]


def _others_words(cores: float) -> str:
    """A warning when other programs disturbed the timing."""
    if cores < BUSY:
        return ""
    return f"other programs kept {cores:.1f} cores busy meanwhile"


def _difference_sentence(comparison: Comparison | None) -> str:
    if comparison is None:
        return ""
    if not comparison.agrees:
        wrong = next(d for d in comparison.differences if d.problem)
        return f"WRONG ANSWER: {wrong.name} {wrong.problem}. Please report this as a bug of nbcomp"
    if comparison.ulp == 0:
        return "the answer is NumPy's, bit for bit"
    amount = f"largest difference from NumPy's answer {comparison.absolute:.2g}"
    if comparison.ulp > FEW_ULP and 0 < comparison.scaled < comparison.ulp:
        # Of a value near zero, left by a subtraction, the last place says nothing.
        return f"{amount}, {scaled_words(comparison.scaled)} of the largest value's last place"
    return f"{amount} ({ulp_words(comparison.ulp)})"


def _check_sentence(checks: Sequence[LevelCheck]) -> str:
    bad = next((c for c in checks if c.problem), None)
    if bad:
        return f"first wrong level: {bad.level}: {bad.problem}"
    return f"each of {count(len(checks), 'level')} gives NumPy's answer" if checks else ""


# ------------------------------------------------------------------------------------------- rows


def _lines(nodes: Sequence[Node]) -> str:
    found = sorted({n.location.line for n in nodes if n.location})
    if not found:
        return ""
    if len(found) == 1:
        return f"line {found[0]}"
    if found == list(range(found[0], found[-1] + 1)):
        return f"lines {found[0]}–{found[-1]}"
    return "lines " + ", ".join(map(str, found))


def done_words(compiled: Compiled) -> str:
    """What was made of a function, in a line: its kernels, and what each computes."""
    rows = [f"{k.name} ({k.kind}): {k.operators}" for k in _kernel_rows(compiled)]
    return f"{_title(compiled)}: {'; '.join(rows)}" if rows else _title(compiled)


def _kernel_rows(compiled: Compiled) -> list[KernelRow]:
    by_group = {id(kernel.group): kernel for kernel in compiled.kernels}
    rows = []
    for number, group in enumerate(compiled.groups):
        kernel = by_group.get(id(group))
        operators = _operators(group.nodes)
        words = " ".join(f"{op}×{k}" if k > 1 else op for op, k in operators.items())
        rows.append(
            KernelRow(
                name=group.name,
                kind=group.kind,
                number=number,
                operators=words,
                lines=_lines([n for n in group.nodes if not isinstance(n.op, (Input, Constant))]),
                levels=tuple(LEVELS) if kernel else (),
                text=partial(kernel_text, kernel) if kernel else str,
            )
        )
    return rows


def kernel_text(kernel: CompiledKernel, level: str) -> str:
    """A kernel's text at a level, with the user's lines in it."""
    return readable(level, kernel.text(level), kernel.code.locations)


def _pass_rows(trace: Trace) -> list[PassRow]:
    merged: dict[tuple[str, str], PassRow] = {}
    for snapshot, lines in trace.changed():
        key = snapshot.level, snapshot.name
        added = sum(line.startswith("+") for line in lines)
        removed = sum(line.startswith("-") for line in lines)
        old = merged.get(key)
        diffs = ((snapshot.kernel, tuple(lines)),) if lines else ()
        merged[key] = PassRow(
            name=snapshot.name,
            level=snapshot.level,
            description=snapshot.description,
            seconds=snapshot.seconds + (old.seconds if old else 0.0),
            added=added + (old.added if old else 0),
            removed=removed + (old.removed if old else 0),
            diffs=(old.diffs if old else ()) + diffs,
        )
    return list(merged.values())


def remark_row(remark: Remark) -> RemarkRow:
    """A remark with the text of its line."""
    location = remark.location
    return RemarkRow(
        line=location.line if location else 0,
        source=location.source_line().strip() if location else "",
        done=remark.kind == "applied",
        topic=remark.topic,
        reason=remark.reason,
        hint=remark.hint,
    )


def _speed_rows(scaling: Scaling | None) -> list[SpeedRow]:
    rows = []
    for point in scaling.points if scaling else ():
        c = point.comparison
        if c.compiled is None or c.reference is None:
            problem = next((d.problem for d in c.differences if d.problem), "not timed")
            nan = float("nan")
            numbers = (nan,) * 5
            verdict = f"WRONG ANSWER: {problem}"
        else:
            numbers = (
                c.compiled.median,
                c.reference.median,
                c.speedup,
                c.speedup_low,
                c.speedup_high,
            )
            status, _ = ratio_words(*numbers[2:])
            verdict = VERDICTS[status]
        rows.append(SpeedRow(point.size, *numbers, c.ulp, point.first_call, verdict))
    return rows


def _speed_notes(scaling: Scaling | None) -> list[str]:
    if scaling is None:
        return []
    notes = [scaling.reason] if scaling.reason else []
    slower = [p.size for p in scaling.points if p.comparison.speedup_high < 1.0]
    if slower:
        notes.append(f"slower than NumPy at batch {', '.join(f'{n:,}' for n in slower)}")
    elif scaling.points and not scaling.wrong:
        notes.append("at no measured batch size slower than NumPy")
    if scaling.wrong:
        notes.append(f"WRONG ANSWER at batch {', '.join(f'{n:,}' for n in scaling.wrong)}")
    by_reason: dict[str, list[int]] = {}
    for size, why in scaling.skipped:
        by_reason.setdefault(why, []).append(size)
    if words := _others_words(scaling.others):
        notes.append(f"{words}: the times are uncertain")
    for why, sizes in by_reason.items():
        notes.append(f"not measured: batch {', '.join(f'{n:,}' for n in sizes)} ({why})")
    return notes
