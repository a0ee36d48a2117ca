"""Searches on a dask cluster: a local one of two workers, which may be of two kinds."""

from __future__ import annotations

import os
import signal
from collections import ChainMap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.errors import NbcompError
from nbcomp.machine import host
from nbcomp.schedule import database
from nbcomp.schedule.database import Database, target_of
from nbcomp.schedule.language import parse
from nbcomp.tuning.cluster import Cluster
from nbcomp.tuning.tasks import tasks_of

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

X = np.random.default_rng(1).standard_normal((40, 70), dtype=np.float32)


def f(x: Any) -> Any:
    return np.exp(x) / (1 + x * x)


def disguise() -> None:
    """Make a worker say that its machine is another one."""
    from dataclasses import replace

    from nbcomp.tuning import cluster

    other = replace(cluster.host(), name="a Cray", vector_bytes=16)
    cluster.host = lambda: other


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The scheduler of a cluster whose workers are processes."""
    options: Any = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(processes=True, **options) as running:
        yield running.scheduler_address


def test_of_two_workers_on_one_host_one_measures(address: str) -> None:
    with Cluster(address) as cluster:
        (hosts,) = cluster.kinds
        assert hosts.width == 1
        assert hosts.machine == host()
        compiled = nbcomp.compile(f, X)
        (task,) = tasks_of(compiled, (X,))
        with hosts:
            schedules = [parse(""), parse('vectorize("q")'), parse('vectorize("j")')] * 4
            found = dict(ChainMap(*map(dict, hosts.run(task, schedules))))
            fine, illegal = found[0], found[1]
            assert len(found) == 12
            assert fine.seconds is not None
            assert "not legal" in illegal.note
            _, first, second = hosts.race(task, schedules[:2], 0.05)
            assert first
            assert not second


def test_kinds_are_kept_apart_and_recorded_apart(address: str, tmp_path: Path) -> None:
    with distributed.Client(address, set_as_default=False) as client:
        (one, _) = sorted(client.scheduler_info()["workers"])
        client.run(disguise, workers=[one])
    try:
        found = nbcomp.tune(f, X, seconds=2.0, record=tmp_path / "tuned.jsonl", on=address)
    finally:
        database._used.clear()
    (other,) = found.elsewhere
    assert found.target == target_of(host())
    assert other.target.startswith("a Cray, 128-bit vectors")
    assert "for another CPU" in other.note
    entries = Database(tmp_path / "tuned.jsonl").entries()
    assert {e.target for e in entries} == {found.target, other.target}
    assert sum(e.verdict for e in entries) == 2


def test_a_worker_of_the_cluster_that_is_killed_or_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nbcomp.tuning.cluster.GLANCE", 0.2)
    options: Any = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    (task,) = tasks_of(nbcomp.compile(f, X), (X,))
    schedules = [parse(""), parse('vectorize("j")')]
    with (
        distributed.LocalCluster(processes=True, **options) as running,
        Cluster(running.scheduler_address) as cluster,
    ):
        (hosts,) = cluster.kinds
        with hosts:
            for sent in (signal.SIGKILL, signal.SIGSTOP):
                monkeypatch.setattr(
                    "nbcomp.tuning.cluster.LONG", 2.0 if sent is signal.SIGSTOP else 60
                )
                (before,) = hosts.addresses
                pids = cluster.client.run(os.getpid)
                os.kill(pids[before], sent)
                lost = dict(ChainMap(*map(dict, hosts.run(task, schedules))))
                notes = {o.note for o in lost.values()}
                assert notes <= {"", "the host does not answer any more"}
                monkeypatch.setattr("nbcomp.tuning.cluster.LONG", 60.0)
                (found,) = hosts.run(task, schedules)
                assert all(o.seconds is not None for o in found.values())
                os.kill(pids[before], signal.SIGKILL) if sent is signal.SIGSTOP else None
            assert hosts.lost == 2


def test_an_address_without_a_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nbcomp.tuning.cluster.PATIENCE", 0.5)
    for nowhere in ("tcp://127.0.0.1:1", "nonsense://x"):
        with pytest.raises(NbcompError, match="no dask scheduler answers at"):
            nbcomp.tune(f, X, seconds=1, on=nowhere)


def test_without_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("nbcomp.tuning.cluster.import_module", missing)
    with pytest.raises(NbcompError, match=r"(?s)needs dask.distributed.*nbcomp\[cluster\]"):
        nbcomp.tune(f, X, seconds=1, on="tcp://127.0.0.1:1")
