"""Runs against the runs before, and what has changed since, in every form."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import nbcomp
from nbcomp.compiled import Compiled
from nbcomp.display.bundle import Report
from nbcomp.display.payload import MIME
from nbcomp.display.view.history import Run, ago, history
from nbcomp.measure.timing import Timing

X = np.random.default_rng(0).random((50, 20), np.float32)
FAST, SLOW = Timing(1e-3, 0.9e-3, 1.1e-3, 9, 1), Timing(2e-3, 1.9e-3, 2.1e-3, 9, 1)
SCHEMA = json.loads(files("nbcomp.display").joinpath("schema.json").read_text(encoding="utf-8"))


def softmax(z: Any) -> Any:
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return nbcomp.compile(softmax, X)


def everywhere(report: Report) -> list[str]:
    """The report in each form, white space aside."""
    data = report._repr_mimebundle_()
    Draft202012Validator(SCHEMA).validate(data[MIME])
    texts = (data["text/plain"], data["text/html"], json.dumps(data[MIME], ensure_ascii=False))
    return [" ".join(text.split()) for text in texts]


def test_a_run_against_the_one_before(compiled: Compiled) -> None:
    now, before = Run.of(compiled, FAST), Run.of(nbcomp.compile(softmax, X[:, :7].copy()), SLOW)
    found = history(now, replace(before, when=now.when - 200))
    assert found.when == "3 minutes ago"
    assert found.title == "the machine code changed"
    assert any("f32[50, 20] instead of z: f32[50, 7]" in change for change in found.changes)
    assert found.changes[-1] == (
        "1.00 ms, before 2.00 ms, on other inputs: the times do not compare"
    )
    assert {d.level for d in found.diffs} == {"graph", "loop", "asm"}
    for form in everywhere(Report(compiled, history=found)):
        assert "the machine code changed" in form
        assert "3 minutes ago" in form


def test_the_same_run_again_says_so(compiled: Compiled) -> None:
    found = history(Run.of(compiled, FAST), Run.of(compiled, replace(FAST, median=1.05e-3)))
    assert found.title == "the same machine code as before"
    assert found.diffs == ()
    assert found.changes == ("the same time within the spread (1.00 ms, before 1.05 ms)",)


def test_the_same_code_is_as_fast_as_it_was_whatever_the_machine_does(compiled: Compiled) -> None:
    found = history(Run.of(compiled, FAST), Run.of(compiled, SLOW))
    assert found.changes == (
        "no change of the program's time: it is the same code (1.00 ms, before 2.00 ms)",
    )


@pytest.mark.parametrize(
    ("numpy", "words"),
    [
        (None, "2.00× faster than before"),
        (FAST, "2.00× faster than before"),
        (SLOW, "no clear change of the time: NumPy's is 0.50× what it was, too"),
        (replace(FAST, median=0.25e-3), "2.00× faster than before"),
    ],
)
def test_what_numpy_changed_by_is_the_machine(
    compiled: Compiled, numpy: Timing | None, words: str
) -> None:
    now = Run.of(compiled, FAST, FAST if numpy else None)
    before = Run.of(nbcomp.compile(lambda z: z + 1, X), SLOW, numpy)
    before = replace(before, inputs=now.inputs, source=now.source)
    assert words in history(now, before).changes[-1]


def test_the_ratio_to_another_program_is_of_the_times_as_measured(compiled: Compiled) -> None:
    now = Run.of(compiled, SLOW, replace(SLOW, median=8e-3))
    before = Run.of(nbcomp.compile(lambda q: q + 1, X), FAST, FAST)
    assert history(now, before).changes[-1] == (
        "2.00× slower than before (1.73–2.33): 2.00 ms, before 1.00 ms"
    )


def test_times_on_other_numbers_do_not_compare(compiled: Compiled) -> None:
    now = Run.of(compiled, SLOW, given=("n: 10",))
    found = history(now, replace(now, timing=FAST, given=("n: 100",)))
    assert found.previous_seconds is None
    assert found.changes == (
        "inputs: n: 10 instead of n: 100",
        "2.00 ms, before 1.00 ms, on other inputs: the times do not compare",
    )


def test_a_changed_source_is_the_first_difference(compiled: Compiled) -> None:
    run = Run.of(compiled, None)
    found = history(run, replace(run, source=run.source.replace("z.max", "z.min")))
    assert [d.level for d in found.diffs] == ["source"]
    assert found.changes == ("the source: +1 line −1 line",)
    assert found.seconds is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 second ago"), (59, "59 seconds ago"), (7300, "2 hours ago"), (1e6, "11 days ago")],
)
def test_how_long_ago(seconds: float, words: str) -> None:
    assert ago(seconds) == words


def test_stale_is_said_first(compiled: Compiled) -> None:
    report = Report(compiled, stale=("W1 had shape (3,) and now has shape (4,)",))
    for form in everywhere(report):
        assert "W1 had shape (3,) and now has shape (4,)" in form
    assert "stale" in report.headline
