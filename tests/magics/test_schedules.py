"""`%%schedule`: steps in a cell, what they show, adopting them, and mistakes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from IPython.core.error import UsageError

from nbcomp.display.trial import TrialReport
from nbcomp.measure.variants import OUT_OF_TIME
from nbcomp.schedule.canonical import canonical
from nbcomp.schedule.language import parse

SETUP = """\
import nbcomp
f = nbcomp.jit(lambda x, y: np.exp(x) + y.T)
x, y = np.ones((48, 33), "f4"), np.ones((33, 48), "f4")
f(x, y)"""

STEPS = 'tile("i", "j", 16, 8)\nvectorize("j")\nparallelize("i_o")'


@pytest.fixture
def shell(notebook: Any) -> Any:
    notebook.value(SETUP)
    return notebook


def test_a_cell_of_steps(shell: Any) -> None:
    report = shell.value(f"%%schedule f(x, y) --seconds 0.2\n{STEPS}")
    text = str(report)
    assert "kernel exp: 3 steps" in text
    assert "with the default schedule" in text
    assert 'vectorize("j")\n    @@' in text
    html = report.html()
    assert "0..minimum(8, -8*j_o + 33)" in html
    assert "Assembly" in html
    assert shell.names["f"].compiled.options.schedules == ()


def test_too_little_time_is_said_with_what_helps(shell: Any) -> None:
    report = shell.value(f"%%schedule f(x, y) --seconds 0.2\n{STEPS}")
    late = TrialReport(replace(report.trial, note=OUT_OF_TIME))
    assert late.verdict[0] == "compiled, but not compared and timed: that takes more --seconds"


def test_adopting(shell: Any) -> None:
    report = shell.value(f"%%schedule f(x, y) --adopt --seconds 0.2\n{STEPS}")
    assert "adopted: calls use it from now on" in str(report)
    assert shell.names["f"].compiled is report.trial.compiled
    assert "parallelize" in shell.value("%ir f loop").text
    again = shell.value('%%schedule f(x, y) --seconds 0.2\nvectorize("j")')
    assert "against the schedule in use before" in str(again)


def test_what_was_never_compiled_adopts_too_if_it_has_a_name(shell: Any) -> None:
    shell.run("def g(x, y): return np.exp(x) + y.T\ndef of(g): return g\n")
    refused = shell.run(f"%%schedule of(g)(x, y) --adopt\n{STEPS}").error_in_exec
    assert "of(g)(x, y) is compiled for this call only" in str(refused)
    report = shell.value(f"%%schedule g(x, y) --adopt --seconds 0.2\n{STEPS}")
    assert shell.names["g"].compiled is report.trial.compiled
    shell.run("%compile g(x, y) --no-bench")
    assert shell.names["g"].compiled.options.schedules


@pytest.mark.parametrize(
    ("line", "cell", "message"),
    [
        ("f(x, y)", "vectorise('j')", r"line 1: no step vectorise \(did you mean vectorize\?\)"),
        ("f(x, y)", 'split("j", 8)\nparallelize("j")', "j is not an outermost loop"),
        ("f(x, y) --kernel sum", 'vectorize("j")', "no kernel sum; the kernels are exp"),
        ("f(x, y)", "import os", "a step is written as a call"),
    ],
)
def test_mistakes(shell: Any, line: str, cell: str, message: str) -> None:
    result = shell.run(f"%%schedule {line}\n{cell}")
    assert isinstance(result.error_in_exec, UsageError)
    with pytest.raises(UsageError, match=message):
        result.raise_error()
    assert shell.names["f"].compiled.options.schedules == ()


def test_hostile_names_are_shown_as_text(shell: Any) -> None:
    report = shell.value('%%schedule f(x, y) --seconds 0.2\nvectorize("j")')
    report.trial.compiled.name = "f\u202e<script>alert(1)</script>"
    for form in (str(report), report.html()):
        assert "\u202e" not in form
    assert "<script>" not in report.html()


def test_the_best_so_far_is_timed_too(shell: Any) -> None:
    first = shell.value(f"%%schedule f(x, y) --seconds 0.3\n{STEPS}")
    assert "best tried before" not in str(first)
    digest = canonical(first.trial.made.lowered).digest
    known = shell.shell.find_line_magic("schedule") or shell.shell.find_cell_magic("schedule")
    known.__self__.best[digest] = (0.5, canonical(first.trial.made.lowered).told(parse(STEPS)))
    second = shell.value('%%schedule f(x, y) --seconds 0.3\nvectorize("j")')
    assert "against the best tried before: " in str(second)
    again = shell.value(f"%%schedule f(x, y) --seconds 0.3\n{STEPS}")
    assert "against the best" not in str(again)


def test_json_is_played_as_code_is(shell: Any) -> None:
    report = shell.value(f"%%schedule f(x, y) --seconds 0.2\n{STEPS}")
    text = report.trial.schedule.of(report.trial.made.lowered).to_json()
    assert "The schedule as JSON" in report.html()
    again = shell.value(f"%%schedule f(x, y) --seconds 0.2\n{text}")
    assert str(again.trial.schedule) == str(report.trial.schedule)
