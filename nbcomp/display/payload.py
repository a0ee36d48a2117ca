"""The same view as plain data, for the JupyterLab explorer: versioned, JSON only, capped in size.

`schema.json` is the contract.  A reader ignores keys it does not know and shows a notice for a
newer `version`; a change of meaning raises the number.  Every text has what is hidden in it made
visible.  Knows views and drawings; it must not know how they will look.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
from typing import Any

from nbcomp.display.help import construct_help, help_for, kind_help, notation
from nbcomp.display.picture.boxes import Drawing, Wire
from nbcomp.display.view.checks import LevelCheck
from nbcomp.display.view.cpus import cpu_name, on_each
from nbcomp.display.view.kernels import KernelRow
from nbcomp.display.view.measured import measured_data, measured_pass
from nbcomp.display.view.passes import PassRow
from nbcomp.display.view.places import Places
from nbcomp.display.view.texts import Budget
from nbcomp.display.view.view import View
from nbcomp.display.visible import visible
from nbcomp.graph.ir import Graph
from nbcomp.origin import Line, Listing

MIME = "application/vnd.nbcomp.compilation+json"
VERSION = 2
MAX_TEXTS = 200_000  # characters of all kernels' texts
MAX_OTHERS = 100_000  # of the machine code for other CPUs
MAX_DIFFS = 60_000  # of all differences between passes
MAX_REMARKS = 400
TENTHS = 1  # decimals of a length in pixels
LEFT_OUT = "left out, to keep the notebook small: `%%compile --full` has it, or `.text(level)`"


def payload(view: View) -> dict[str, Any]:
    """The report as JSON values: `version`, the words of the headline, and a key per section."""
    made = _Payload(view)
    graphs = made.graphs()
    data: dict[str, Any] = _plain(made.data())
    return data | {"graphs": graphs}


class _Payload:
    """One payload being made: what is numbered, and what is left of the budget."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.places = Places(view.file)
        self.constructs: dict[str, int] = {}
        self.kinds: dict[str, None] = {}  # of machine instructions, in order
        self.texts = Budget(None if view.full else MAX_TEXTS)
        self.others = Budget(None if view.full else MAX_OTHERS)
        self.shown: list[tuple[str, str]] = []
        self.provenance: list[dict[str, Any]] = []

    def data(self) -> dict[str, Any]:
        view = self.view
        data: dict[str, Any] = {
            "version": VERSION,
            "name": view.name,
            "show": list(view.show),
            "status": view.status,
            "title": view.title,
            "sentences": list(view.sentences),
            "kernels": [self.kernel(k) for k in view.kernels],
            "passes": list(_passes(view)),
            "stages": [{"name": name, "seconds": value} for name, value in view.stages],
            "remarks": view.remarks[: None if view.full else MAX_REMARKS],
            "checks": [_check(c) for c in view.checks],
            "speed": view.speed,
            "speed_notes": list(view.speed_notes),
        }
        data |= measured_data(view.measured)
        if view.source:
            data["source"] = self.source()
        if view.history:
            data["history"] = view.history
        if view.cpus:
            data["cpus"] = list(_cpus(view))
        if view.stale:
            data["stale"] = list(view.stale)
        if view.id:
            data["id"] = view.id
        data["provenance"] = self.provenance
        data["places"] = self.places.places
        data["constructs"] = list(self.constructs)
        found = help_for(_operators(view), self.shown) | construct_help(self.constructs)
        found |= kind_help(self.kinds)
        data["help"] = found
        return data

    def source(self) -> dict[str, Any]:
        source = self.view.source
        assert source is not None
        return vars(source) | {"marks": source.marks[: None if self.view.full else MAX_REMARKS]}

    def graphs(self) -> dict[str, Any]:
        """The drawings, lengths in tenths of a pixel."""
        graphs = {"before": self.view.before, "after": self.view.after}
        return {name: self.drawing(d) for name, d in graphs.items() if d}

    def drawing(self, drawing: Drawing) -> dict[str, Any]:
        boxes = []
        for box in drawing.boxes:
            plain = _plain(vars(box) | {"places": ()}, TENTHS)
            kept = {k: v for k, v in plain.items() if v not in ("", 0, -1, [])}
            if box.group == 0:  # the first group is one, unlike no group
                kept["group"] = 0
            if box.places:
                every = [place for location in box.places for place in location.every()]
                kept["places"] = self.places.numbers(every)
            boxes.append(kept)
        plain = _plain(vars(drawing) | {"boxes": (), "wires": ()}, TENTHS)
        return {**plain, "boxes": boxes, "wires": list(map(_wire, drawing.wires))}

    def kernel(self, kernel: KernelRow) -> dict[str, Any]:
        texts = {}
        for level in kernel.levels:
            if kernel.number in self.view.detailed and not self.texts.spent:
                texts[level] = self.text(kernel.listing(level), self.texts, 0.5)
        facts = [("called", "once, and again when what it reads has changed")] * kernel.once
        if kernel.calls > 1 and not kernel.once:
            facts = [("called", f"{kernel.calls} times")]
        often = {"calls": kernel.calls} if kernel.calls > 1 else {}
        facts += [] if len(texts) == len(kernel.levels) else [("text", LEFT_OUT)]
        if "asm" in texts:
            facts += kernel.facts
            self.kinds.update((line.kind, None) for line in kernel.listing("asm"))
            self.provenance.append(_mapped(kernel))
        data: dict[str, Any] = often | {
            "name": kernel.name,
            "kind": kernel.sort,
            "number": kernel.number,
            "operators": kernel.operators,
            "lines": kernel.lines,
            "texts": texts,
            "facts": facts,
        }
        if self.view.cpus:
            data["cpus"] = list(self.on_cpus(kernel))
        return data

    def on_cpus(self, kernel: KernelRow) -> Iterator[dict[str, Any]]:
        """The kernel's machine code on each CPU, as much of each as fits."""
        for found in on_each(self.view.cpus, kernel.name):
            if self.others.spent:
                return
            yield {
                "name": found.name,
                "note": found.note,
                "text": self.text(found.listing, self.others, 0.25),
            }

    def text(self, listing: Listing, left: Budget, share: float) -> dict[str, Any]:
        """As much of a text as may be kept of it; `notation` is that of another assembly language
        than x86-64's."""
        text = left.keep(listing.lines, share)
        name = notation(listing.language) if listing.level == "asm" else listing.level
        self.shown.append((name, str(text)))
        other = {} if name == listing.level else {"notation": name}
        return other | {
            "text": str(text),
            "cut": text.cut,
            "total": text.total,
            "places": [self.place(line) for line in text.lines],
            "constructs": [self.construct(line.construct) for line in text.lines],
        }

    def place(self, line: Line) -> int | list[int]:
        numbers = self.places.numbers(line.places)
        if not numbers:
            return -1
        return numbers[0] if len(numbers) == 1 else numbers

    def construct(self, name: str) -> int:
        return self.constructs.setdefault(name, len(self.constructs)) if name else -1


def _wire(wire: Wire) -> dict[str, Any]:
    """A wire, as `_plain` would make it of the many numbers in it, but sooner."""
    points = [[round(x, TENTHS), round(y, TENTHS)] for x, y in (*wire.points, wire.label_at)]
    at = points.pop()
    return {"points": points, "label": visible(wire.label), "label_at": at, "arrow": wire.arrow}


def _mapped(kernel: KernelRow) -> dict[str, Any]:
    """How many of a kernel's instructions in loops are known to come from somewhere."""
    loops = [line for line in kernel.listing("asm") if line.in_loop]
    return {"kernel": kernel.name, "mapped": sum(r.mapped for r in loops), "in_loop": len(loops)}


def _check(found: LevelCheck) -> dict[str, Any]:
    answer = {"ulp": found.ulp} if found.answers else {}
    return {"level": found.level, "problem": found.problem, "words": found.words} | answer


def _passes(view: View) -> Iterator[dict[str, Any]]:
    """The passes, with as much of their differences as fits."""
    left = Budget(None if view.full else MAX_DIFFS)
    for row in view.passes:
        time = measured_pass(view.measured, row.level, row.name)
        measured = {"measured": time} if time else {}
        yield vars(row) | {"diffs": list(_diffs(row, left))} | measured


def _diffs(row: PassRow, left: Budget) -> Iterator[tuple[str, list[str]]]:
    for kernel, lines in row.diffs:
        if not left.spent:
            kept = left.keep([Line(line) for line in lines], 0.5)
            more = [f"@@ {kept.total - len(kept.lines)} more lines @@"] if kept.cut else []
            yield kernel, [line.text for line in kept.lines] + more


def _cpus(view: View) -> Iterator[dict[str, Any]]:
    """The whole program on each CPU: its time where this machine can run it."""
    for row in view.cpus:
        yield {
            "name": cpu_name(row),
            "seconds": row.timing.median if row.timing else None,
            "low": row.timing.low if row.timing else None,
            "high": row.timing.high if row.timing else None,
            "note": row.note if row.same else f"WRONG ANSWER {row.note}".strip(),
            "vector_bits": row.vector_bits,
            "in_loops": row.in_loops,
        }


def _operators(view: View) -> Iterable[str]:
    graphs: list[Graph] = [graph for part in view.parts for graph in (part.captured, part.graph)]
    return dict.fromkeys(node.op.name for graph in graphs for node in graph.nodes)


def _plain(value: Any, digits: int = 9) -> Any:
    """What JSON has: lists rather than tuples, objects rather than records, numbers of so many
    decimals, null rather than NaN and infinity."""
    if isinstance(value, str):  # most of them, and numbers
        return visible(value)
    if type(value) is int or value is None:
        return value
    if isinstance(value, float):
        return round(value, digits) if math.isfinite(value) else None
    if isinstance(value, (list, tuple)):
        return [_plain(item, digits) for item in value]
    if isinstance(value, dict):
        return {visible(key): _plain(item, digits) for key, item in value.items()}
    if is_dataclass(value):
        return {name: _plain(getattr(value, name), digits) for name in value.__dataclass_fields__}
    return value
