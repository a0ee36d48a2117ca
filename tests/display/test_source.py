"""The user's lines in a report: their marks, and the spans that every level refers to."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import nn
from nbcomp.display.bundle import Report
from nbcomp.display.payload import MIME
from nbcomp.display.text.source import remarks_list
from nbcomp.display.view.kernels import LISTED
from nbcomp.display.view.places import Place, Places
from nbcomp.display.view.remarks import RemarkRow, merged
from nbcomp.display.view.source import label
from nbcomp.display.view.texts import FEW, Budget
from nbcomp.display.view.view import DETAILED, MANY, view
from nbcomp.origin import Line
from nbcomp.record import Location, Remark

X = np.random.default_rng(0).random((50, 20), np.float32)


def helper(x: Any) -> Any:
    return x * 2


def softmax(z: Any) -> Any:
    e = np.exp(helper(z) - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def payload() -> dict[str, Any]:
    data: dict[str, Any] = Report(nbcomp.compile(softmax, X))._repr_mimebundle_()[MIME]
    return data


def text_of(payload: dict[str, Any], number: int) -> str:
    """What a place is the span of, in the source of the payload."""
    place, source = payload["places"][number], payload["source"]
    assert place["line"] == place["end_line"]
    line: str = source["lines"][place["line"] - source["first"]]
    return line[place["column"] : place["end_column"]]


def test_the_source_is_the_function_with_its_numbers(payload: dict[str, Any]) -> None:
    source = payload["source"]
    assert source["file"] == __file__
    assert source["lines"][softmax.__code__.co_firstlineno - source["first"]].startswith("def soft")
    assert (
        source["lines"][helper.__code__.co_firstlineno + 1 - source["first"]] == "    return x * 2"
    )


def test_boxes_refer_to_the_expressions_they_came_from(payload: dict[str, Any]) -> None:
    boxes = [b for b in payload["graphs"]["after"]["boxes"] if b.get("places")]
    found = {b["title"].split("(")[0]: text_of(payload, b["places"][0]) for b in boxes}
    assert found["exp"] == "np.exp(helper(z) - z.max(axis=-1, keepdims=True))"
    assert found["multiply"] == "x * 2"
    assert found["divide"] == "e / e.sum(axis=-1, keepdims=True)"


def test_lines_of_code_refer_to_the_same_expressions(payload: dict[str, Any]) -> None:
    (kernel,) = payload["kernels"]
    for level in ("llvm", "asm"):
        text = kernel["texts"][level]
        lines = text["text"].splitlines()
        assert len(lines) == len(text["places"]) == len(text["constructs"]) == text["total"]
        flat = {n for p in text["places"] for n in (p if isinstance(p, list) else [p])} - {-1}
        assert "x * 2" in {text_of(payload, n) for n in flat}


def test_marks_stand_on_the_lines_they_are_about(payload: dict[str, Any]) -> None:
    first = softmax.__code__.co_firstlineno
    marks = payload["source"]["marks"]
    assert [m["line"] for m in marks] == sorted(m["line"] for m in marks)
    topics = {(m["line"] - first, m["mark"], m["topic"]) for m in marks}
    assert {
        (1, "applied", "fusion"),
        (2, "applied", "vectorize"),
        (1, "applied", "store"),
    } <= topics


def test_instructions_are_explained(payload: dict[str, Any]) -> None:
    assert "op:exp" in payload["help"]
    assert any(key.startswith("asm:v") for key in payload["help"])
    assert payload["help"]["llvm:phi"]["source"].startswith("LLVM Language Reference")


@pytest.fixture
def cell() -> Iterator[str]:
    """A cell whose line has letters of several bytes, and one that is not shown as itself."""
    lines = ["é = '𝟙\u202e' + x\n"]
    linecache.cache["<a cell>"] = (len(lines[0]), None, lines, "<a cell>")
    yield "<a cell>"
    del linecache.cache["<a cell>"]


def test_columns_are_those_of_the_line_as_shown(cell: str) -> None:
    line = linecache.getline(cell, 1)
    start = len(line[: line.index("x")].encode())
    places = Places(cell)
    assert places.numbers([Location(cell, 1, start, 1, start + 1, "f")] * 2) == [0]
    shown = "é = '𝟙⟨U+202E⟩' + x"
    at = len(shown[: shown.index("x")].encode("utf-16-le")) // 2
    assert places.places == [Place(1, at, 1, at + 1, "f")]


def test_spans_in_other_files_are_said_in_words(cell: str) -> None:
    places = Places(cell)
    places.number(Location("other.py", 7, 3, 7, 9, "g"))
    assert places.places == [Place(0, 0, 0, 0, "g, line 7 of other.py")]


def test_a_budget_keeps_whole_lines() -> None:
    lines = [Line("12345"), Line("123")]
    assert Budget(None).keep(lines).lines == tuple(lines)
    budget = Budget(9)
    kept = budget.keep(lines)
    assert (kept.lines, kept.cut, budget.left) == (tuple(lines[:1]), True, 3)
    assert budget.spent
    assert not Budget(FEW).spent
    assert not Budget(None).spent


def test_remarks_that_are_alike_are_said_once() -> None:
    where = Location("<cell>", 3)
    found = merged(
        Remark("applied", "vectorize", f"matmul{number} works on 16 elements", where)
        for number in ("", "_2", "_3")
    )
    other = Remark("applied", "vectorize", "matmul works on 16 elements", Location("<cell>", 4))
    assert [r.reason for r in found] == ["matmul works on 16 elements; 2 more like it"]
    assert merged([other]) == [other]


def test_of_many_kernels_the_costliest_are_shown() -> None:
    def f(x: Any) -> Any:
        for _ in range(DETAILED.kernels + 2):
            x = np.sort(np.exp(x), axis=0)
        return np.concatenate([x, x, x]) * 2

    report = Report(nbcomp.compile(f, X))
    kernels = report._repr_mimebundle_()[MIME]["kernels"]
    detailed = [k["name"] for k in kernels if k["texts"]]
    assert len(detailed) == DETAILED.kernels - (len(kernels) > MANY)
    assert "multiply" in " ".join(detailed) or "concatenate" in " ".join(detailed)
    every = Report(nbcomp.compile(f, X), full=True)._repr_mimebundle_()[MIME]["kernels"]
    assert all(k["texts"] for k in every if k["kind"] != "library")


def test_weights_that_are_packed_once_are_one_row_and_no_calls() -> None:
    layers = [nn.Linear(64, 64) for _ in range(5)]
    made = nbcomp.compile(nn.Sequential(*layers), np.ones((32, 64), np.float32))
    shown = view(made)
    once = [k for k in shown.kernels if k.once]
    assert [(k.title, k.sort) for k in once] == [("pack_weights ×5", "library, once")]
    assert "library" not in shown.title
    packed = [r.reason for r in shown.remarks if r.topic == "layout"]
    assert packed == ["the weights of nn.Linear `0` are packed once; 4 more like it"]
    assert not any("pack_weights" in r.reason for r in shown.remarks)


def test_of_many_kernels_those_that_are_alike_are_listed_once() -> None:
    def f(x: Any) -> Any:
        for _ in range(LISTED + 5):
            x = np.sort(np.exp(x), axis=0)
        return x

    shown = Report(nbcomp.compile(f, X))
    assert len(shown.view.kernels) == LISTED + 6  # the explorer has them all
    table = [line for line in shown.text().splitlines() if line.startswith("  sort")]
    assert len(table) == 1
    assert table[0].startswith(f"  sort, {LISTED + 4} more ")
    assert f"{LISTED + 4} more like it" in shown.html()


def test_what_is_said_of_every_layer_is_said_once() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            self.norm, self.up = nn.LayerNorm(64), nn.Linear(64, 64)

        def forward(self, x: Any) -> Any:
            return x + self.up(self.norm(x))

    shown = view(
        nbcomp.compile(nn.Sequential(*[Block() for _ in range(6)]), X.repeat(5, 1)[:, :64])
    )
    stored = [r.reason for r in shown.remarks if r.topic == "store" and " in `" in r.reason]
    assert len(stored) == 1
    assert "in `0` is stored" in stored[0]
    assert stored[0].endswith("4 more like it")
    data = Report(
        nbcomp.compile(nn.Sequential(*[Block() for _ in range(6)]), X.repeat(5, 1)[:, :64])
    )
    kernels = data._repr_mimebundle_()[MIME]["kernels"]
    assert max(k.get("calls", 1) for k in kernels if "once" not in k["kind"]) >= 4


def test_the_source_of_a_model_of_layers_is_where_it_is_called() -> None:
    model, x = nn.Sequential(nn.Linear(64, 64), nn.ReLU()), np.ones((32, 64), np.float32)
    shown = view(nbcomp.compile(model, x)).source
    assert shown is not None
    assert [line.strip() for line in shown.lines] == [
        "shown = view(nbcomp.compile(model, x)).source"
    ]
    assert {"one core", "generated"} & {label(m.mark, m.topic) for m in shown.marks}


def test_remarks_about_lines_of_other_cells_stand_below_these_in_order() -> None:
    rows = [
        RemarkRow(11, "return self.k(h)", False, "fusion", "kept apart", ""),
        RemarkRow(0, "", False, "tuned", "of no line", ""),
        RemarkRow(4, "h = self.l(x)", True, "vectorize", "16 lanes", ""),
        RemarkRow(11, "return self.k(h)", True, "library", "BLAS", ""),
    ]
    lines = [line.strip() for line in remarks_list(rows, 80)]
    assert [line[:2] for line in lines] == ["4 ", "- ", "11", "- ", "- ", "- "]
    assert lines[0] == "4 │ h = self.l(x)"
    assert lines[2] == "11 │ return self.k(h)"
    assert lines[-1].endswith("of no line")
