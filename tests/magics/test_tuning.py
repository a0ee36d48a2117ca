"""`%tune` and `%%compile --tune`: what they show, adopt and record, and mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.error import UsageError

from nbcomp.measure.timing import Ratio
from nbcomp.schedule import database
from nbcomp.schedule.database import Database
from nbcomp.tuning.subject import Subject
from nbcomp.tuning.tuner import Tuner

SETUP = """\
import nbcomp
f = nbcomp.jit(lambda x: np.exp(x) / (1 + x * x))
x = np.ones((64, 100), "f4")
f(x)"""


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "tuned.jsonl"
    database._used.clear()


@pytest.fixture
def shell(notebook: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Whatever was found is taken to be faster."""

    def judge(self: Subject, trials: Any, samples: Any) -> None:
        self.chosen, self.change = trials[-1], Ratio(0.5, 0.4, 0.6)

    monkeypatch.setattr(Subject, "judge", judge)
    monkeypatch.setattr(Tuner, "better", lambda self, change: True)
    notebook.value(SETUP)
    return notebook


def test_a_search_is_shown_adopted_and_recorded(shell: Any, record: Path) -> None:
    shell.value(f"%tune f(x) --seconds 1.5 --record {record}")
    (shown,) = shell.outputs
    text = shown.data["text/plain"]
    assert "tuned: " in text
    assert "recorded in" in text
    assert len(Database(record)) > 2
    compiled = shell.names["f"].compiled
    assert compiled.options.schedules
    # A function like it uses what was found, and says so on its line.
    shell.value("g = nbcomp.jit(lambda y: np.exp(y) / (1 + y * y)); g(x)")
    assert "runs by a schedule that tuning found" in str(shell.value("%explain g"))


def test_what_tune_gives_is_shown_as_such(shell: Any) -> None:
    shell.shell.display_formatter.active_types = ["text/plain", "text/html"]
    found = shell.value("nbcomp.tune(f, x, seconds=1)")
    data, _ = shell.shell.display_formatter.format(found)
    assert "How the search went" in data["text/html"]


def test_a_cell_that_tunes(shell: Any, record: Path) -> None:
    cell = "def h(x):\n    return np.tanh(x) * 2\nh(x)"
    shell.value(f"%%compile --tune 1 --record {record} --no-bench\n{cell}")
    search, report = (o.data["text/plain"] for o in shell.outputs)
    assert "h, tuned: " in search
    assert "1 kernel" in report
    assert Database(record).entries()[-1].verdict


def test_a_cell_with_nothing_to_tune_goes_on(shell: Any, record: Path) -> None:
    shell.value(
        f"%%compile --tune 1 --record {record} --no-bench\ndef s(x): return np.sort(x)\ns(x[0])"
    )
    assert "not tuned: s has no kernel" in shell.outputs[0].data["text/plain"]
    assert len(shell.outputs) == 2


def test_exporting_and_merging(shell: Any, record: Path, tmp_path: Path) -> None:
    shell.value(f"%tune f(x) --seconds 1 --record {record}")
    shell.value(f"%tune --record {record} --export {tmp_path / 'best.jsonl'}")
    assert "1 schedule written" in shell.outputs[0].data["text/plain"]
    with (tmp_path / "best.jsonl").open("a") as file:
        file.write("cut off")
    shell.value(f"%tune --record {tmp_path / 'other.jsonl'} --merge {tmp_path / 'best.jsonl'}")
    said = shell.outputs[0].data["text/plain"]
    assert "1 new line" in said
    assert "lines of best.jsonl that cannot be read are skipped: line 2: not a line" in said
    database._used.clear()
    shell.value(f"%config NbComp.record = {str(tmp_path / 'other.jsonl')!r}")
    shell.value("g = nbcomp.jit(lambda y: np.exp(y) / (1 + y * y)); g(x)")
    assert shell.names["g"].compiled.tuned


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%tune", "what is to be tuned"),
        ("%tune nothing(x)", "name 'nothing' is not defined"),
        ("%tune f(x) --seconds 0", "--seconds: how many seconds to search, more than 0, not 0"),
        ("%tune f(x) --seconds -3", "more than 0, not -3"),
        ("%tune f(x) 10", "how long to search is an option: --seconds 10"),
        ("%tune f(x) 2.5 seconds", "how long to search is an option: --seconds 2.5"),
        ("%compile f(x) --tune 0", "--tune: how many seconds to search, more than 0, not 0"),
        ("%tune --export x.jsonl", "the record is switched off"),
        ("%tune f(x) --seconds 1 --record /proc/no/such", "cannot be written to"),
        ("%tune f(x) --seconds 1 --record no/such/r.jsonl", "cannot be written to no/such/r.jsonl"),
        ("%tune --record r.jsonl --export no/such/r.jsonl", "cannot be written to no/such/r.jsonl"),
        ("%tune --record r.jsonl --merge /no/such", "there is no record"),
    ],
)
def test_mistakes(shell: Any, line: str, message: str, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    result = shell.run(line)
    error = result.error_in_exec
    assert isinstance(error, UsageError | NameError)
    assert message in str(error)
    assert not (tmp_path / "no").exists()
    database._used.clear()


@pytest.mark.parametrize("moment", ["starting", "comparing the best", "the whole program"])
@pytest.mark.parametrize("command", ["%tune f(x) --seconds 1", "%compile f(x) --tune 1"])
def test_interrupts_end_quietly(
    shell: Any, record: Path, moment: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell(self: Tuner, doing: str) -> None:
        if doing == moment:
            raise KeyboardInterrupt

    monkeypatch.setattr(Tuner, "tell", tell)
    result = shell.run(f"{command} --record {record}")
    assert result.error_in_exec is None
    text = shell.outputs[0].data["text/plain"]
    assert text.startswith("interrupted: ")
    assert text.endswith(" is as it was; trials that were made are recorded")
    assert (len(Database(record)) > 1) == (moment != "starting")
    assert not shell.names["f"].compiled.options.schedules


def test_an_interrupt_without_a_record_promises_none(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell(self: Tuner, doing: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Tuner, "tell", tell)
    shell.run("%tune f(x) --seconds 1")
    assert shell.outputs[0].data["text/plain"].endswith(" is as it was")
