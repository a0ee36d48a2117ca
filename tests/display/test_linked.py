"""Every level of the explorer is tied to every other one, for programs of all kinds: what is shown
of an instruction is found in the loops, in the graph and on the user's lines, and the other way."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import nbcomp
from benchmarks.loop_programs import ROWS
from nbcomp import nn
from nbcomp.display.bundle import Report
from nbcomp.display.payload import payload
from nbcomp.display.view.reads import Fallback
from nbcomp.magics.recording import parts_of
from nbcomp.record import Location
from tests.provenance.programs import programs
from tests.provenance.test_kinds import PROGRAMS
from tests.provenance.test_provenance import ENOUGH

RNG = np.random.default_rng(3)


def f32(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def gathered(table: Any, i: Any) -> Any:
    return table[i] * 2 + np.where(i[:, None] > 3, table[0], table[1])


def running(x: Any) -> Any:
    return np.cumsum(x, axis=0) / np.arange(1, x.shape[0] + 1)[:, None]


def in_parts(x: Any) -> Any:
    y = np.tanh(x) * 2
    if float(y.sum()) > 0:
        y = y + 1
    return np.sqrt(np.abs(y)) - x


class Depthwise(nn.Module):
    def __init__(self) -> None:
        self.each, self.pool = nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.AvgPool2d(2)

    def forward(self, x: Any) -> Any:
        return self.pool(self.each(x).relu())


MORE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "gathers": (gathered, (f32(50, 40), RNG.integers(0, 50, 300))),
    "running sums": (running, (f32(200, 40),)),
    "depthwise and pooled": (Depthwise().eval(), (f32(2, 8, 16, 16),)),
}
KINDS = {**programs(), **PROGRAMS, **MORE}


def of_loops(name: str) -> Any:
    (row,) = (r for r in ROWS if r.name == name)
    function = nbcomp.script(row.function)
    function(*row.arguments())
    return function.compiled


def of_parts() -> Fallback:
    function = nbcomp.jit(in_parts)
    function(f32(3000))
    parts = parts_of(function)
    assert len(parts) == 2
    first = in_parts.__code__.co_firstlineno
    where = Location(in_parts.__code__.co_filename, first)
    source = inspect.getsource(in_parts)
    return Fallback("in_parts", "in parts", source=source, defined=where, parts=parts)


def places_of(texts: Iterable[dict[str, Any]]) -> set[int]:
    """The places that lines of these texts came from."""
    found = (p for text in texts for p in text["places"])
    every = (q for p in found for q in (p if isinstance(p, list) else [p]))
    return {p for p in every if p >= 0}


def linked(compiled: Any) -> None:
    data = payload(Report(compiled, full=True).view)
    lines = [place["line"] for place in data["places"]]
    at = {
        level: places_of(k["texts"][level] for k in data["kernels"] if level in k["texts"])
        for level in ("loop", "llvm", "asm")
    }
    boxes = data["graphs"]["after"]["boxes"]
    at["graph"] = {p for box in boxes for p in box.get("places", ())}
    for above, below in (("graph", "loop"), ("loop", "llvm"), ("llvm", "asm")):
        assert at[below]
        assert at[below] <= at[above], (above, below)
    if source := data.get("source"):  # a layer of the library has none of the user's
        shown = range(source["first"], source["first"] + len(source["lines"]))
        assert {lines[p] for p in at["graph"]} - {0} <= set(shown)
    # What is computed on a line is found in the instructions; numbers, views and calls are not.
    computed = {lines[p] for p in at["loop"]}
    assert len({lines[p] for p in at["asm"]} & computed) >= 0.5 * len(computed)
    rows = data["provenance"]
    assert sum(r["mapped"] for r in rows) >= ENOUGH * sum(r["in_loop"] for r in rows) > 0


@pytest.mark.parametrize("name", KINDS)
def test_levels_of_programs_are_tied_together(name: str) -> None:
    function, args = KINDS[name]
    linked(nbcomp.compile(function, *args))


@pytest.mark.parametrize("name", ["mandelbrot", "floyd_warshall", "smith_waterman", "csr_matvec"])
def test_levels_of_loops_as_they_were_written_are_tied_together(name: str) -> None:
    linked(of_loops(name))


def test_levels_of_parts_are_tied_together() -> None:
    linked(of_parts())


def test_loops_are_at_their_own_lines() -> None:
    """What counts the rounds of a loop belongs to its first line, not to its last."""
    (row,) = (r for r in ROWS if r.name == "mandelbrot")
    compiled = of_loops("mandelbrot")
    source, first = inspect.getsourcelines(row.function)
    text = {first + k: line.strip() for k, line in enumerate(source) if line.split()[0] in KEYWORDS}
    (kernel,) = compiled.kernels
    heads = [line for line in kernel.listing("loop") if line.construct == "loop control"]
    assert len(heads) == 3
    assert {line.numbers for line in heads} == {(number,) for number in text}


KEYWORDS = ("for", "while")


def test_what_a_loop_begins_with_is_at_the_line_that_gave_it() -> None:
    (row,) = (r for r in ROWS if r.name == "mandelbrot")
    (kernel,) = of_loops("mandelbrot").kernels
    source, first = inspect.getsourcelines(row.function)
    given = {first + k for k, text in enumerate(source) if text.strip() in GIVEN}
    assert len(given) == len(GIVEN)
    assert given <= {n for line in kernel.listing("loop") for n in line.numbers}


GIVEN = ("zr = 0.0", "zi = 0.0", "n = 0")
