"""The benchmark's own machinery: what it compares, how it reports, one small run of the whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import report, run, timing
from benchmarks.peers import PEERS, onnx_graphs
from benchmarks.peers.plain import single_precision
from benchmarks.worker import difference
from benchmarks.workloads import WORKLOADS, spelled


def test_a_difference_is_relative_to_the_largest_magnitude() -> None:
    wanted = [np.array([100.0, 1.0])]
    assert difference([np.array([100.0, 1.0])], wanted) == 0
    assert difference([np.array([100.0, 2.0])], wanted) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("got", "message"),
    [
        ([np.zeros(2, np.float32)], "float32"),
        ([np.zeros(3)], r"\[3\]"),
        ([np.zeros(2), np.zeros(2)], "2 outputs"),
        ([np.array([np.nan, 0])], "not finite"),
    ],
)
def test_another_answer_is_refused(got: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        difference(got, [np.zeros(2)])


def test_samples_are_seconds_of_one_call() -> None:
    values = timing.samples(lambda: sum(range(1000)), 0.01)
    assert len(values) >= 3
    assert all(0 < v < 0.01 for v in values)
    assert timing.summary([3.0, 1.0, 2.0])["median"] == 2.0


def test_literals_become_single_precision_for_numba() -> None:
    x = np.linspace(-1, 1, 5, dtype=np.float32)
    function = single_precision(WORKLOADS["gelu_1k"].function)
    assert np.allclose(function(x), WORKLOADS["gelu_1k"].function(x))
    assert "float32" in function.__code__.co_names


def test_a_workload_runs_with_another_namespace() -> None:
    class Doubled:
        @staticmethod
        def tanh(x: Any) -> Any:
            return 2 * x

    got = spelled(WORKLOADS["gelu_1k"].function, Doubled)(np.array(0.0))
    assert got == 0


@pytest.mark.parametrize(
    ("index", "box"), [((slice(1, -1), Ellipsis), (3, 5)), ((0, slice(None)), (5,))]
)
def test_indices_of_the_graph_recorder(index: Any, box: tuple[int, ...]) -> None:
    entries = onnx_graphs._without_ellipsis(index, 2)
    spans = [onnx_graphs._span(e, n) for e, n in zip(entries, (5, 5), strict=True)]
    kept = [b - a for e, (a, b) in zip(entries, spans, strict=True) if not isinstance(e, int)]
    assert tuple(kept) == box


def _outcome(peer: str, median: float, failed: str = "") -> dict[str, Any]:
    time = {"median": median, "low": median, "high": median, "samples": 1}
    return {
        "peer": peer,
        "version": "1",
        "first_call": None if failed else 0.01,
        "difference": 0.0,
        "failed": failed,
        "time": None if failed else time,
    }


def _record(own: float) -> dict[str, Any]:
    outcomes = [_outcome("numpy", 2e-3), _outcome("nbcomp", own), _outcome("jax", 0, "too old")]
    rates = {"copy": 20.0, "stream": 40.0, "read": 30.0, "fma": 100.0}
    row = {"name": "r", "title": "a row", "traffic": "copy", "bytes": 2e7, "outcomes": outcomes}
    row["limit"] = {"median": 5e-4, "low": 4e-4, "high": 6e-4}
    row["memory"] = 25.0
    return {
        "machine": {"processor": "some", "python": "3.11", "blas": ["openblas"]},
        "threads": 1,
        "rounds": 1,
        "seconds": 0.1,
        "peers": ["numpy", "nbcomp", "jax"],
        "versions": {"numpy": "2"},
        "limits": {"1": rates},
        "rows": [row],
        "overheads": [],
        "others_busy": 0.0,
    }


def test_the_table_says_where_nbcomp_is_ahead() -> None:
    text = report.markdown(_record(1e-3))
    assert "| a row | **2,000** | 1,000 | ✗ | 2.00× |" in text
    assert "behind on none" in text
    assert "20.0 GB/s, 80% of memory's; 50% of copying the arrays" in text
    assert "- JAX, a row: too old" in text


def test_the_table_says_where_nbcomp_is_behind() -> None:
    text = report.markdown(_record(4e-3))
    assert "**behind: 0.50×**" in text
    assert "behind on 1: a row" in text


def test_the_report_says_when_the_machine_was_busy() -> None:
    assert "uncertain" not in report.markdown(_record(1e-3))
    assert "1.5 cores busy" in report.markdown({**_record(1e-3), "others_busy": 1.5})


def test_a_small_run_of_the_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "benchmark"
    short = "--rows gelu_1k --peers numpy,nbcomp --rounds 1 --seconds 0.01 --no-overhead"
    run.main([*short.split(), "--out", str(out)])
    assert "gelu, 1 k" in capsys.readouterr().out
    record = json.loads(out.with_suffix(".json").read_text())
    outcomes = record["rows"][0]["outcomes"]
    assert [o["failed"] for o in outcomes] == ["", ""]
    assert all(o["difference"] <= record["rows"][0]["tolerance"] for o in outcomes)


@pytest.mark.parametrize("options", ["--rows nothing", "--peers nobody"])
def test_unknown_names_are_refused(options: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run.arguments(options.split())
    assert "there are" in capsys.readouterr().err


def test_every_peer_is_named_once() -> None:
    assert len({peer.label for peer in PEERS.values()}) == len(PEERS)


def test_memory_is_timed_in_turn_with_rows_about_memory(tmp_path: Path) -> None:
    out = tmp_path / "benchmark"
    short = "--rows layernorm --peers numpy,nbcomp --rounds 1 --seconds 0.02 --no-overhead"
    run.main([*short.split(), "--out", str(out)])
    record = json.loads(out.with_suffix(".json").read_text())
    (row,) = record["rows"]
    assert [o["peer"] for o in row["outcomes"]] == ["numpy", "nbcomp"]
    assert row["limit"]["median"] > 0
    assert "% of copying" in out.with_suffix(".md").read_text()
