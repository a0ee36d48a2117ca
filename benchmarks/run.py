"""Runs the benchmark: `python -m benchmarks.run --rows softmax,gelu_1m --peers nbcomp,jax`.

Prints the tables and leaves them in build/benchmark.md, the plain record in build/benchmark.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter
from typing import Any

from benchmarks import machine, report
from benchmarks.contest import ROOT, Outcome, Settings, contest, environment
from benchmarks.peers import LIMIT, OWN, PEERS
from benchmarks.workloads import WORKLOADS, Workload


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--rows", default=",".join(WORKLOADS), help="comma-separated; default: all")
    parser.add_argument("--peers", default="", help="comma-separated; default: all that can run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.25, help="per contestant and round")
    parser.add_argument("--threads", type=int, default=machine.cores())
    parser.add_argument(
        "--peers-venv",
        default=str(ROOT / "benchmarks/.venv-peers"),
        help="made by make bench-peers",
    )
    parser.add_argument("--no-overhead", action="store_true", help="leave out call and import rows")
    parser.add_argument("--out", default=str(ROOT / "build/benchmark"), help="without a suffix")
    options = parser.parse_args(argv)
    options.rows = _chosen(parser, "row", options.rows, WORKLOADS)
    options.peers = _chosen(parser, "peer", options.peers or _default_peers(options), PEERS)
    return options


def _chosen(
    parser: argparse.ArgumentParser, what: str, text: str, known: dict[str, Any]
) -> list[str]:
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in known:
            parser.error(f"no {what} {name!r}; there are {', '.join(known)}")
    return names


def _default_peers(options: argparse.Namespace) -> str:
    peers_python = Path(options.peers_venv) / "bin/python"
    return ",".join(PEERS if peers_python.exists() else [p for p in OWN if p in PEERS])


def _row(
    workload: Workload, outcomes: list[Outcome], limits: list[dict[str, Any]], threads: int
) -> dict[str, Any]:
    """limits: those of the machine right before and right after."""
    arrays = workload.arrays()
    moved = sum(a.nbytes for a in arrays.values())
    if workload.traffic == "copy":  # the result is as large as the first input
        moved += next(iter(arrays.values())).nbytes
    limit = next((o.as_dict()["time"] for o in outcomes if o.peer == LIMIT.name), None)
    return {
        "name": workload.name,
        "title": workload.title,
        "tolerance": workload.rtol,
        "traffic": workload.traffic,
        "bytes": moved,
        "limit": limit,
        "memory": _memory(workload.traffic, _best(limits)[str(threads)]),
        "outcomes": [o.as_dict() for o in outcomes if o.peer != LIMIT.name],
    }


def _memory(traffic: str, rates: dict[str, float]) -> float | None:
    """GB/s of such traffic beyond the caches."""
    if not traffic:
        return None
    return rates["read"] if traffic == "read" else max(rates["copy"], rates["stream"])


def _own(module: str, settings: Settings) -> Any:
    """Run a module of the benchmark by itself; what it prints, read as JSON."""
    done = subprocess.run(
        [settings.own_python, "-m", f"benchmarks.{module}"],
        cwd=ROOT,
        env=environment(settings.threads, str(settings.log.parent / "cache")),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def _best(measured: list[dict[str, Any]]) -> dict[str, Any]:
    """The best of several measurements of the limits: what the machine can do when left alone."""
    return {
        threads: {name: max(m[threads][name] for m in measured) for name in rates}
        for threads, rates in measured[0].items()
    }


def _cpu_seconds() -> float:
    """Of this process and of all it has started and waited for."""
    own, children = getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def run(options: argparse.Namespace) -> dict[str, Any]:
    """All rows, the machine's limits measured before and after each; the record."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    settings = Settings(
        rounds=options.rounds,
        seconds=options.seconds,
        threads=options.threads,
        own_python=sys.executable,
        peers_python=str(Path(options.peers_venv).absolute() / "bin/python"),
        log=Path(options.out).with_suffix(".log").absolute(),
    )
    settings.log.parent.mkdir(parents=True, exist_ok=True)
    settings.log.write_bytes(b"")
    began, work, mine = perf_counter(), machine.busy(), _cpu_seconds()
    limits = [_own("limits", settings)]
    rows: list[dict[str, Any]] = []
    versions: dict[str, str] = {}
    blas: list[str] = []
    for name in options.rows:
        print(f"{name} ...", file=sys.stderr, flush=True)
        outcomes = contest(WORKLOADS[name], options.peers, settings)
        limits.append(_own("limits", settings))
        rows.append(_row(WORKLOADS[name], outcomes, limits[-2:], options.threads))
        versions |= {o.peer: o.version for o in outcomes if o.version and o.peer in PEERS}
        blas += [kernel for o in outcomes for kernel in o.blas if kernel not in blas]
    overheads = [] if options.no_overhead else _own("overhead", settings)
    others = machine.busy() - work - (_cpu_seconds() - mine)
    return {
        "others_busy": max(0.0, others / (perf_counter() - began)),
        "machine": {
            "processor": machine.processor(),
            "python": platform.python_version(),
            "blas": blas,
        },
        "threads": options.threads,
        "rounds": options.rounds,
        "seconds": options.seconds,
        "peers": options.peers,
        "versions": versions,
        "limits": _best(limits),
        "rows": rows,
        "overheads": overheads,
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, save, print."""
    options = arguments(argv)
    record = run(options)
    text = report.markdown(record)
    out = Path(options.out)
    out.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    out.with_suffix(".md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
