"""The record of tuning: durable lines, what is used at compile time, what is refused and said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.errors import NbcompError
from nbcomp.loop.grammar import Kernel
from nbcomp.machine import host
from nbcomp.schedule import database
from nbcomp.schedule.canonical import canonical
from nbcomp.schedule.database import Database, Entry, target_of
from nbcomp.schedule.language import Schedule, parse

X = np.linspace(-1, 1, 40 * 50, dtype=np.float32).reshape(40, 50)
STEPS = 'split("i", 8)\nvectorize("j")'


def compiled(function: Any, *args: Any) -> Any:
    return nbcomp.compile(function, *args)


def lowered(function: Any, *args: Any) -> Kernel:
    kernel: Kernel = compiled(function, *args).kernels[0].lowered
    return kernel


def f(x: Any) -> Any:
    return np.exp(x.T.copy() * 2)


def entry(kernel: Kernel, steps: str = STEPS, **more: Any) -> Entry:
    known = canonical(kernel)
    told = known.told(parse(steps)).to_json()
    fields = {"seconds": 1e-6, "default": 2e-6, "verdict": True, "name": kernel.name, **more}
    return Entry(known.digest, target_of(host()), told, **fields)


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    path = tmp_path / "tuning.jsonl"
    monkeypatch.setenv("NBCOMP_RECORD", str(path))
    yield Database(path)
    database._used.clear()
    database._defaults.clear()


def remarks(made: Any) -> list[str]:
    return [str(r) for r in made.explain() if r.topic == "tuned"]


# ------------------------------------------------------------------------------ kernels alike


def test_names_make_no_difference_but_everything_else_does() -> None:
    def g(exp: Any) -> Any:
        return np.exp(exp.T.copy() * 2)

    known = canonical(lowered(f, X))
    assert known.digest == canonical(lowered(g, X)).digest
    others = [
        lowered(lambda x: np.exp(x.T.copy() * 3), X),
        lowered(lambda x: np.log(x.T.copy() * 2), X),
        lowered(f, X[:, :49].copy()),
        lowered(f, X.astype(np.float64)),
        lowered(f, X[:, ::2]),
    ]
    assert len({known.digest, *(canonical(k).digest for k in others)}) == 6


def test_a_schedule_in_canonical_names_and_back() -> None:
    known = canonical(lowered(f, X))
    schedule = parse('split("i", 8)\nreorder("i_o", "j")\npack("x", 0, 4)\nvectorize("x_packed0")')
    told = known.told(schedule)
    assert "x" not in {a for s in told.steps for a in s.arguments}
    assert known.own(told) == schedule


# ------------------------------------------------------------------------------------- in use


def test_the_best_is_used_by_itself(record: Database) -> None:
    assert remarks(compiled(f, X)) == []
    record.append(entry(lowered(f, X)))

    def named_otherwise(y: Any) -> Any:
        return np.exp(y.T.copy() * 2)

    made = compiled(named_otherwise, X)
    assert made.kernels[0].kernel.notes == tuple(STEPS.splitlines())
    assert made.tuned
    (said,) = remarks(made)
    assert "2.00 times as fast as by default" in said
    np.testing.assert_allclose(made(X), f(X), rtol=1e-6)
    assert not compiled_without(named_otherwise).tuned


def compiled_without(function: Any) -> Any:
    return nbcomp.compile_for("llvm", nbcomp.Options(without={"tuned"}))(function, X)


def test_in_a_new_process(record: Database) -> None:
    record.append(entry(lowered(f, X)))
    code = (
        "import numpy as np, nbcomp\n"
        "x = np.ones((40, 50), np.float32)\n"
        "print(nbcomp.compile(lambda x: np.exp(x.T.copy() * 2), x).kernels[0].kernel.notes)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(tuple(STEPS.splitlines()))


def test_what_is_left_out_leaves_the_record_out_too(record: Database) -> None:
    record.append(entry(lowered(f, X)))
    options = nbcomp.Options(without={"vectorize"})
    assert not nbcomp.compile_for("llvm", options)(f, X).tuned
    given = compiled(f, X).with_schedule("exp", parse('vectorize("j")'))
    assert given.kernels[0].kernel.notes == ('vectorize("j")',)


def test_a_verdict_for_the_default_schedule(record: Database) -> None:
    kernel = lowered(f, X)
    record.append(entry(kernel), replace(entry(kernel), schedule=Schedule().to_json()))
    assert not compiled(f, X).tuned


def test_what_an_unfinished_search_has_found(record: Database) -> None:
    kernel = lowered(f, X)
    slight = entry(kernel, seconds=1.9e-6, verdict=False)
    record.append(slight)
    assert not compiled(f, X).tuned
    failed = entry(kernel, seconds=None, verdict=False, note="crashed")
    record.append(entry(kernel, seconds=1e-6, verdict=False), failed)
    assert compiled(f, X).tuned
    best = record.best(slight.kernel, slight.target)
    assert best is not None
    assert best.seconds == 1e-6


def test_other_cpus_and_versions_are_refused_with_the_difference(record: Database) -> None:
    kernel = lowered(f, X)
    record.append(entry(kernel, version="0.0.9"))
    (said,) = remarks(compiled(f, X))
    assert f"made by version 0.0.9; this is {nbcomp.__version__}" in said
    record.path.unlink()
    record.append(replace(entry(kernel), target="a Cray"))
    (said,) = remarks(compiled(f, X))
    assert "made on a Cray; this is" in said


def test_a_schedule_that_does_not_fit_is_refused(record: Database) -> None:
    record.append(entry(lowered(f, X), 'vectorize("q")'))
    made = compiled(f, X)
    (said,) = remarks(made)
    assert "does not fit: step 1" in said
    assert "no loop q" in said
    np.testing.assert_allclose(made(X), f(X), rtol=1e-6)


def test_a_record_beside_a_notebook(record: Database, tmp_path: Path) -> None:
    own = nbcomp.use_record(tmp_path / "tuned.jsonl")
    record.append(entry(lowered(f, X)))
    own.append(entry(lowered(f, X), 'vectorize("j")'))
    assert compiled(f, X).kernels[0].kernel.notes == ('vectorize("j")',)


# -------------------------------------------------------------------------------------- files


def test_lines_that_cannot_be_read_are_skipped_and_reported(record: Database) -> None:
    good = entry(lowered(f, X))
    record.append(good)
    with open(record.path, "a") as file:
        file.write('nonsense\n{"kernel":"' + good.kernel + '","target":1}\n\x00\xff\n')
        file.write(good.line()[:40])  # somebody was killed
    record.append(good)
    found = Database(record.path)
    assert found.entries() == [good, good]
    assert len(found.problems) == 4
    assert found.problems[0] == "line 2: not a line of a record"
    made = compiled(f, X)
    assert made.tuned
    assert any("cannot be read are skipped: line 2" in r for r in remarks(made))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"format": 9}, "format 9"),
        ({"seconds": "fast"}, "times are no times"),
        ({"seconds": -1.0}, "times are no times"),
        ({"note": 3}, "other types"),
        ({"colour": "red"}, "other fields"),
    ],
)
def test_entries_of_another_kind(change: dict[str, Any], why: str) -> None:
    data = json.loads(entry(lowered(f, X)).line())
    with pytest.raises(ValueError, match=why):
        database.read(json.dumps({**data, **change}))


def test_two_write_at_once(record: Database) -> None:
    code = (
        "import sys; from nbcomp.schedule.database import Database, Entry\n"
        "d = Database(sys.argv[1])\n"
        "for k in range(40): d.append(Entry(sys.argv[2], 't', 's' * 300))"
    )
    command = [sys.executable, "-c", code, str(record.path)]
    running = [subprocess.Popen([*command, name]) for name in ("a", "b", "c")]
    assert all(p.wait() == 0 for p in running)
    assert [len(record.entries(k)) for k in ("a", "b", "c")] == [40, 40, 40]
    assert record.problems == ()


def test_merging_takes_what_is_new(tmp_path: Path) -> None:
    kernel = lowered(f, X)
    one, two = Database(tmp_path / "one"), Database(tmp_path / "two")
    shared, own = entry(kernel), entry(kernel, seconds=3e-6)
    one.append(shared)
    two.append(shared, own)
    assert one.merge(two) == 1
    assert one.merge(two.path) == 0
    assert one.entries() == [shared, own]
    with pytest.raises(NbcompError, match="there is no record"):
        one.merge(tmp_path / "three")


def test_exporting_keeps_the_best_only(tmp_path: Path) -> None:
    kernel = lowered(f, X)
    one = Database(tmp_path / "one")
    one.append(entry(kernel, seconds=9e-7, verdict=False), entry(kernel, decisions={"a": 1}))
    assert one.export(tmp_path / "best") == 1
    assert Database(tmp_path / "best").entries() == [entry(kernel)]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    below = Database(tmp_path / "file" / "record")
    with pytest.raises(NbcompError, match=r"(?s)cannot be written to .*NBCOMP_RECORD"):
        below.check()
    with pytest.raises(NbcompError, match="cannot be written"):
        Database(tmp_path / "one").export(tmp_path)


def test_where_the_record_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBCOMP_RECORD", "off")
    assert database.default_path() is None
    monkeypatch.delenv("NBCOMP_RECORD")
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_CACHE_HOME", f"{os.sep}somewhere")
        assert database.default_path() == Path("/somewhere/nbcomp/tuning.jsonl")


def test_folders_are_made_for_the_users_own_record_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(database.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    own = database.default_path()
    assert own is not None
    Database(own).check()
    assert own.exists()
    with pytest.raises(nbcomp.NbcompError, match=r"cannot be written to .*: No such file"):
        Database(tmp_path / "no" / "tuned.jsonl").check()
    assert not (tmp_path / "no").exists()
