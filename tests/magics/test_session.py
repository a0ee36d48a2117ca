"""Runs against the runs before, outputs that go stale, and reports written to files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import nbcomp
from nbcomp.display.bundle import Report
from nbcomp.magics.session import FUNCTIONS, Session

CELL = """%%compile --no-bench
def f(x):
    return x * scale + 1
f(x)"""


@pytest.fixture
def notebook(notebook: Any) -> Any:
    notebook.run("%load_ext nbcomp\nimport numpy as np\nx = np.ones((40, 5))\nscale = np.ones(5)")
    return notebook


def test_a_cell_is_compared_with_its_previous_run(notebook: Any) -> None:
    notebook.run(CELL)
    assert notebook.last.history is None
    notebook.run(CELL)
    again = notebook.last.history
    assert again is not None
    assert again.title == "the same machine code as before"
    notebook.run(CELL.replace("+ 1", "+ np.exp(x)"))
    changed = notebook.last.history
    assert changed is not None
    assert changed.title == "the machine code changed"
    assert [d.level for d in changed.diffs] == ["source", "graph", "loop", "asm"]
    assert any(change.startswith("kernel ") for change in changed.changes)


def test_runs_are_remembered_within_bounds() -> None:
    session = Session()
    for number in range(FUNCTIONS + 5):
        space: dict[str, Any] = {}
        exec(f"def f{number}(x):\n    return x + {number}", space)
        session.remember(Report(nbcomp.compile(space[f"f{number}"], 1.0)))
    assert len(session._runs) == FUNCTIONS
    assert "f0" not in session._runs


def test_a_report_goes_stale_with_a_global_and_recovers(notebook: Any) -> None:
    notebook.run(CELL)
    assert notebook.last.compiled.stale == ()
    notebook.run("kept, scale = scale, np.ones((40, 5))")
    (why,) = notebook.last.compiled.stale
    assert why == "scale had shape (5,) and now has (40, 5)"
    report = notebook.run("%compile").result
    assert report.stale == (why,)
    assert "stale: scale had shape" in str(report)
    assert "stale, since scale had shape" in str(notebook.run("%explain f").result)
    notebook.run("scale = kept")
    assert notebook.run("%compile").result.stale == ()


def test_a_report_goes_stale_with_a_helper(notebook: Any) -> None:
    notebook.run("def helper(x):\n    return x * 2")
    notebook.run("%%compile --no-bench\ndef g(x):\n    return helper(x) + 1\ng(x)")
    notebook.run("def helper(x):\n    return x * 3")
    assert any("helper" in why for why in notebook.last.compiled.stale)


class Handle:
    """An output that can be updated."""

    def __init__(self) -> None:
        self.shown: list[Any] = []

    def update(self, content: Any) -> None:
        self.shown.append(content)


def test_outputs_are_marked_once_when_they_go_stale() -> None:
    space: dict[str, Any] = {"w": 1.5}
    exec("def f(x):\n    return x * (2 if w else 3)", space)
    compiled = nbcomp.compile(space["f"], 1.0)
    session, handle = Session(), Handle()
    session.watch(Report(compiled, value="large"), handle)  # type: ignore[arg-type]
    session.look()
    assert handle.shown == []
    space["w"] = "text"
    session.look()
    session.look()
    (shown,) = handle.shown
    assert shown.value is None
    assert "w" in shown.stale[0]
    space["w"] = 1.5
    session.look()
    assert handle.shown[1].stale == ()


class Comm:
    """A comm, with what was sent over it."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.ask: Any = None
        self.closed = False

    def on_msg(self, callback: Any) -> None:
        self.ask = callback

    def send(self, data: Any) -> None:
        self.sent.append(data["stale"])

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def comms(monkeypatch: pytest.MonkeyPatch) -> list[Comm]:
    """The comms that are opened in what takes itself for a kernel."""
    opened: list[Comm] = []

    def comm() -> Comm:
        opened.append(Comm())
        return opened[-1]

    monkeypatch.setattr("nbcomp.magics.marks._comm", comm)
    return opened


def test_a_page_that_is_loaded_later_is_told_what_is_stale(
    notebook: Any, comms: list[Comm]
) -> None:
    notebook.shell.kernel = object()
    notebook.run("%reload_ext nbcomp")
    assert comms == []  # before there is a report
    notebook.run(CELL)
    notebook.run("pass")
    (comm,) = comms
    id_ = notebook.last.id
    assert comm.sent[-1] == {id_: []}
    notebook.run("kept, scale = scale, np.ones((40, 5))")
    assert comm.sent[-1] == {id_: ["scale had shape (5,) and now has (40, 5)"]}
    known = len(comm.sent)
    notebook.run("pass")
    assert len(comm.sent) == known  # nothing new
    comm.ask({"content": {"data": {}}})
    assert comm.sent[known:] == [comm.sent[known - 1]]
    notebook.run("scale = kept")
    assert comm.sent[-1] == {id_: []}
    notebook.run("%unload_ext nbcomp")
    assert comm.closed
    del notebook.shell.kernel


def test_reports_of_line_commands_are_watched_too(notebook: Any, comms: list[Comm]) -> None:
    notebook.shell.kernel = object()
    notebook.run("%reload_ext nbcomp\ndef f(x):\n    return x * scale + 1")
    notebook.run("%compile --no-bench f(x)")
    notebook.run("%compile")
    notebook.run("scale = np.ones((40, 5))")
    (comm,) = comms
    ((id_, why),) = comm.sent[-1].items()
    assert id_ == notebook.last.id
    assert "scale" in why[0]
    notebook.run("%unload_ext nbcomp")
    del notebook.shell.kernel


def test_a_terminal_opens_no_comm(notebook: Any, comms: list[Comm]) -> None:
    notebook.run(CELL)
    assert comms == []


def test_why_it_was_compiled_again(notebook: Any) -> None:
    notebook.run(CELL)
    notebook.run("%compile --no-bench f(np.ones((7, 5)))")
    (note,) = notebook.last.notes
    assert note == "compiled again, because x had shape (40, 5) and now has (7, 5)"
    assert note in str(notebook.last)


def test_a_report_is_written_to_a_file(notebook: Any, tmp_path: Path) -> None:
    page = tmp_path / "x.html"
    notebook.run(CELL.replace("--no-bench", f'--no-bench --html "{page}"'))
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "x * scale + 1" in text
    function = notebook.shell.user_ns["f"]
    assert function.report(tmp_path / "y.html").read_text(encoding="utf-8").count("<h") >= 1
    with pytest.raises(nbcomp.NbcompError, match="has not been compiled yet"):
        nbcomp.jit(lambda x: x).report(tmp_path / "z.html")


def test_a_terminal_is_given_text_only(notebook: Any) -> None:
    notebook.run(CELL)
    report = notebook.last
    assert len(report._repr_mimebundle_()) == 3
    notebook.shell.display_formatter.active_types = ["text/plain"]
    assert list(report._repr_mimebundle_()) == ["text/plain"]
    assert list(report._repr_mimebundle_(include=["text/html"])) == ["text/html"]


def test_the_commands_can_be_loaded_again_and_taken_back(notebook: Any) -> None:
    events = notebook.shell.events.callbacks["post_run_cell"]
    count = sum("Session" in str(c) for c in events)
    notebook.run("%reload_ext nbcomp")
    assert sum("Session" in str(c) for c in events) == count == 1
    notebook.run("%unload_ext nbcomp")
    assert not any("Session" in str(c) for c in events)
