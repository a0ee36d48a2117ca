"""What was measured, in every form: words, tables, pictures, data that the schema allows."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import nbcomp
from nbcomp.display.bundle import Report
from nbcomp.display.payload import payload
from nbcomp.display.plots.charts import charts
from nbcomp.display.text import tables as terminal
from nbcomp.display.view.kernels import heading
from nbcomp.display.view.measured import line_costs, size, tables
from nbcomp.measure.figures import Ablation, Measured, PassTime, PassTimes, Without
from nbcomp.measure.roofline import (
    Bandwidth,
    Held,
    KernelFigures,
    Limits,
    LineCost,
    Memory,
    Numbers,
    Peak,
)
from nbcomp.measure.timing import Ratio, Timing

EVIL = "<script>alert($x$)</script>日本"


def timing(seconds: float) -> Timing:
    return Timing(seconds, 0.9 * seconds, 1.2 * seconds, 30, 10)


LIMITS = Limits(
    "a test",
    2,
    tuple(Peak(n, d, n * v) for n in (1, 2) for d, v in (("float32", 1e11), ("float64", 5e10))),
    tuple(
        Bandwidth(n, level, n * v)
        for n in (1, 2)
        for level, v in (("L1", 2e11), ("L2", 1e11), ("L3", 8e10), ("memory", 3e10), ("copy", 2e10))
    ),
    1e-6,
    (("L1", 1 << 15), ("L2", 1 << 20), ("L3", 1 << 25)),
    0.2,
)


def kernel(name: str, operations: float = 4e6) -> KernelFigures:
    moved = (("L2", 8e6), ("memory", 1e6))
    return KernelFigures(name, timing(1e-3), 2, "float32", operations, moved, 1e-6, LIMITS)


PASSES = PassTimes(
    (
        PassTime("capture", "graph", timing(2e-3), None, True),
        PassTime("fuse", "graph", timing(1e-3), Ratio(0.5, 0.45, 0.55), True),
        PassTime("lower", "loop", None, None, True, "out of time"),
        PassTime("tile", "loop", timing(1e-3), None, True, "no change"),
        PassTime("vectorize", "loop", None, None, False, "WRONG ANSWER: result differs"),
    ),
    others=1.5,
)
ABLATION = Ablation(
    timing(1e-3),
    (
        Without("blas", "float products", timing(1e-3), None, True, "not used here"),
        Without("fuse", "one walk", timing(3e-3), Ratio(3.0, 2.5, 3.5), True),
        Without("stream", "past the caches", timing(1e-3), Ratio(1.0, 0.9, 1.1), True),
        Without("tile", "blocks", timing(1e-3), Ratio(0.9, 0.8, 0.95), True),
        Without("reuse", "memory", None, None, True, "out of time"),
    ),
)
MEMORY = Memory(
    3 << 20,
    1 << 20,
    2 << 20,
    (
        Held("x", 1 << 20, None, 0, 0, "input"),
        Held("h", 1 << 20, 0, 0, 1, "temp"),
        Held("y", 1 << 20, None, 1, 1, "output"),
    ),
    ("matmul", "numpy.sort"),
)


def numbers(name: str = "matmul", file: str = "cell") -> Numbers:
    lines = (LineCost(file, 3, 0.75), LineCost(file, 2, 0.25), LineCost("other", 2, 0.0))
    libraries = (("numpy.sort", timing(2e-3)),)
    return Numbers(LIMITS, (kernel(name), kernel("copy", 0.0)), MEMORY, lines, libraries)


ALL = Measured(PASSES, ABLATION, numbers())


def rows(measured: Measured) -> dict[str, list[list[str]]]:
    return {t.title: [list(row) for row in t.rows] for t in tables(measured)}


# ------------------------------------------------------------------------------------------ words


def test_nothing_measured_shows_nothing() -> None:
    assert list(tables(Measured())) == []
    assert charts(Measured(), (("LLVM", 0.1),)) == {}
    assert line_costs(Measured(), "cell") == {}


def test_passes_are_said_with_what_they_bought() -> None:
    found = rows(Measured(passes=PASSES))["Run time after each pass"]
    assert found[1] == ["graph", "fuse", "1.00 ms", "900 µs–1.20 ms", "2.0× faster, same result"]
    assert [row[-1] for row in found] == [
        "",
        "2.0× faster, same result",
        "out of time",
        "no change",
        "WRONG ANSWER: result differs",
    ]
    (table,) = tables(Measured(passes=PASSES))
    assert table.notes == ("other programs kept 1.5 cores busy meanwhile: the times are uncertain",)


def test_an_ablation_begins_with_the_whole_program() -> None:
    found = rows(Measured(ablation=ABLATION))["Each optimisation left out in turn"]
    assert found[0][0] == "nothing"
    by_name = {row[0]: row[3] for row in found}
    assert by_name["fuse"] == "3.0× slower"
    assert by_name["tile"] == "11 % faster"
    (table,) = tables(Measured(ablation=ABLATION))
    assert table.notes[0] == "not used here: blas"
    assert by_name["stream"].startswith("no clear difference")


def test_kernels_are_said_with_their_limit() -> None:
    found = rows(Measured(numbers=numbers()))["Kernels against this machine's limits"]
    assert found[0] == ["matmul", "1.00 ms", "2", "4", "9", "0.444", "L2", "L2", "4 %"]
    assert found[2][:2] == ["numpy.sort", "2.00 ms"]
    (table, memory) = tables(Measured(numbers=numbers()))
    assert table.notes[0].startswith("limits of 1 thread: 100 Gop/s in float32 and 50 Gop/s")
    assert "1 MiB less than without sharing" in memory.notes[0]
    assert [row[-1] for row in memory.rows] == ["█·", "██", "·█"]


def test_a_kernel_that_starts_sooner_than_estimated_is_at_no_share_of_that() -> None:
    slow = replace(kernel("k"), overhead=5e-4)
    soon = replace(slow, overhead=8e-3)
    found = rows(Measured(numbers=replace(numbers(), kernels=(slow, soon))))
    shares = [row[-2:] for row in found["Kernels against this machine's limits"][:2]]
    assert shares == [["overhead", "50 %"], ["overhead", ""]]


def test_kernels_are_counted_as_in_the_title() -> None:
    def row(levels: tuple[str, ...], once: bool = False) -> Any:
        return SimpleNamespace(levels=levels, once=once)

    made = [row(("loop",)), row(("loop",))]
    assert heading(made) == "Kernels (2)"
    others = [row((), once=True), row(()), row(())]
    assert heading([*made, *others]) == "Kernels (2), library calls (2), made once (1)"


@pytest.mark.parametrize(
    ("nbytes", "words"),
    [(0, "0 B"), (1000, "1e+03 B"), (1024, "1 KiB"), (3 << 20, "3 MiB"), (5 << 30, "5 GiB")],
)
def test_amounts_of_memory(nbytes: int, words: str) -> None:
    assert size(nbytes) == words.replace("1e+03", "1000")


# ------------------------------------------------------------------------------------------ forms


def compiled() -> Any:
    return nbcomp.compile(lambda x: x * 2.0, nbcomp.f32[8, 4])


@pytest.mark.parametrize("width", [60, 100])
def test_the_text_form_has_every_table(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    said = str(Report(compiled(), measured=ALL))
    for table in tables(ALL):
        assert table.title in said
    assert max(map(len, said.splitlines())) <= width
    assert "Run time after" not in str(Report(compiled(), show=("speed",), measured=ALL))


def test_the_payload_is_what_the_schema_says() -> None:
    schema = json.loads(files("nbcomp.display").joinpath("schema.json").read_text(encoding="utf-8"))
    made = compiled()
    passes = replace(PASSES, passes=(*PASSES.passes, PassTime("expand", "graph", None, None, True)))
    report = Report(made, measured=Measured(passes, ABLATION, numbers(file=made.location.file)))
    data = payload(report.view)
    Draft202012Validator(schema).validate(data)
    by_name = {(p["level"], p["name"]): p.get("measured") for p in data["passes"]}
    assert by_name["graph", "fuse"]["note"] == "2.0× faster, same result"
    assert by_name["graph", "fuse"]["seconds"] == 1e-3
    assert by_name["loop", "unroll"] is None
    assert [row["ratio"] for row in data["ablation"]] == [1.0, 3.0, 1.0, 0.9, None]
    assert data["numbers"]["kernels"][0]["bound"] == "L2"
    assert data["numbers"]["memory"]["buffers"][1]["offset"] == 0
    assert {b["level"] for b in data["numbers"]["machine"]["bandwidth"]} == {
        *("L1", "L2", "L3", "memory"),
    }


def test_costs_are_on_the_users_lines() -> None:
    costs = line_costs(Measured(numbers=numbers()), "cell")
    assert costs == {3: 0.75, 2: 0.25}


# --------------------------------------------------------------------------------------- pictures


def svg(uri: str) -> str:
    return base64.b64decode(uri.split(",", 1)[1]).decode()


def test_pictures_hold_the_names_and_numbers() -> None:
    found = {name: svg(uri) for name, uri in charts(ALL, (("LLVM", 0.1), ("lower", 0.0))).items()}
    assert found.keys() == {"ablation", "roofline", "memory", "stages"}
    assert "3.00×" in found["ablation"]
    assert "blas" not in found["ablation"]
    assert "within the spread" in found["ablation"]
    for words in ("matmul: L2, 4 %", "memory 60 GB/s", "float64 100"):
        assert words in found["roofline"]
    assert "h (temp)" in found["memory"]
    assert "100.0 ms" in found["stages"]


def test_names_are_text_in_tables_and_pictures() -> None:
    held = replace(MEMORY, buffers=(Held(EVIL, 8, 0, 0, 1, "temp"),), steps=(EVIL,))
    measured = Measured(numbers=replace(numbers(EVIL), memory=held))
    for picture in charts(measured).values():
        assert "<script" not in svg(picture)
    html = Report(compiled(), measured=measured).html()
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_the_html_form_has_tables_and_pictures() -> None:
    html = Report(compiled(), measured=ALL).html()
    for table in tables(ALL):
        assert table.title.replace("'", "&#x27;") in html
    assert html.count("<img") >= 5  # the two graphs, and those of what was measured


def test_tables_that_are_too_wide_are_paragraphs() -> None:
    rows = [("kernel", "time", "bound"), ("a", "1 ms", "memory " * 3), ("b", "", "compute")]
    wide = terminal.table(rows, 40, head=True, wrap=True)
    assert wide[0].split() == ["kernel", "time", "bound"]
    narrow = terminal.table(rows, 13, head=True, wrap=True)
    assert narrow[0] == "  a"
    assert "      bound" in "\n".join(narrow)
    assert narrow[-3:] == ["  b", "      bound", "      compute"]
    assert all(len(line) <= 21 for line in narrow)
