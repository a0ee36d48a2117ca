"""The other side of `benchmarks.metaschedule`, run by a Python that has TVM: a kernel, searched.

    python metaschedule_peer.py gemm|conv SECONDS CORES

Prints a JSON line for every trial that was timed, {"at": seconds since the search began, "best":
seconds of the best so far}, and at the end {"final": ...}, the best timed once more; {"failed":
...} says what did not come to be timed, and why.  Candidates are built and timed in this process:
MetaSchedule's own builder starts processes for each round, in which the first build imports
`tvm.s_tir.tensor_intrin`: it reads the source of all intrinsics of GPUs, which on few cores takes
so long that the builder's time-outs end every candidate.  Here it is over before the clock starts.
For TVM 0.26
(`tvm.s_tir.meta_schedule`; with 0.27 the newest apache-tvm-ffi crashes in `TuneContext`, 0.1.13 and
0.1.14 do not); it must not import nbcomp.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from typing import Any, ClassVar

import numpy as np
import tvm
import tvm.s_tir.tensor_intrin  # not by the first build: see above
from tvm import te, topi
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.builder import BuilderResult
from tvm.s_tir.meta_schedule.builder.local_builder import default_build
from tvm.s_tir.meta_schedule.runner.local_runner import LocalRunnerFuture

PER_ITERATION = 16  # candidates between two looks at the clock
POPULATION = 128  # of its evolution: fewer than its own 512, for several rounds on few cores
REPEATS, MILLISECONDS = 3, 5  # of timing a candidate


def gemm() -> list[Any]:
    """384 × 768 by 768 × 768, float32."""
    a, b = te.placeholder((384, 768), name="a"), te.placeholder((768, 768), name="b")
    k = te.reduce_axis((0, 768), name="k")
    return [a, b, te.compute((384, 768), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")]


def conv() -> list[Any]:
    """3 × 3, 64 to 64 channels, 28 × 28, float32."""
    x = te.placeholder((1, 64, 28, 28), name="x")
    w = te.placeholder((64, 64, 3, 3), name="w")
    return [x, w, topi.nn.conv2d_nchw(x, w, 1, 1, 1)]


class Over(Exception):
    """The seconds are over."""


class Search:
    """What the callbacks share: when it began, how long it may take, and what came of it."""

    start, seconds, best = 0.0, 0.0, float("inf")
    arrays: ClassVar[list[Any]] = []
    built: ClassVar[dict[str, Any]] = {}  # by the name it has in place of a path
    failures: ClassVar[Counter[str]] = Counter()

    @classmethod
    def over(cls) -> bool:
        """Whether the time is up."""
        return time.perf_counter() - cls.start > cls.seconds

    @classmethod
    def failed(cls, error: Exception) -> str:
        """Count a failure, and say it in a line."""
        why = f"{type(error).__name__}: {str(error).strip().splitlines()[-1:]}"
        cls.failures[why] += 1
        return why


@derived_object
class Builder(ms.builder.PyBuilder):  # type: ignore[misc]
    """Builds candidates in this process."""

    def build(self, inputs: list[Any]) -> list[Any]:
        Search.built.clear()
        results = []
        for number, item in enumerate(inputs):
            if Search.over():
                results.append(BuilderResult(None, "the seconds are over"))
                continue
            try:
                Search.built[str(number)] = default_build(item.mod, item.target, None)
                results.append(BuilderResult(str(number), None))
            except Exception as error:
                results.append(BuilderResult(None, Search.failed(error)))
        return results


@derived_object
class Runner(ms.runner.PyRunner):  # type: ignore[misc]
    """Times candidates in this process."""

    def run(self, inputs: list[Any]) -> list[Any]:
        return [LocalRunnerFuture(*self.timed(item.artifact_path)) for item in inputs]

    def timed(self, name: str) -> tuple[list[float] | None, str | None]:
        """Seconds of a candidate, or why there are none."""
        try:
            module = Search.built[name]
            what = {"number": 1, "repeat": REPEATS, "min_repeat_ms": MILLISECONDS}
            evaluator = module.time_evaluator(module.entry_name, tvm.cpu(), **what)
            found = [float(s) for s in evaluator(*Search.arrays).results]
        except Exception as error:
            return None, Search.failed(error)
        Search.best = min(Search.best, *found)
        line = {"at": time.perf_counter() - Search.start, "best": Search.best}
        print(json.dumps(line), flush=True)
        return found, None


@derived_object
class Watch(ms.measure_callback.PyMeasureCallback):  # type: ignore[misc]
    """Ends the search."""

    def apply(self, scheduler: Any, task: int, tried: Any, built: Any, runs: Any) -> None:
        if Search.over():
            raise Over


def main() -> None:
    """Search, then time the best again."""
    name, seconds, cores = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    tensors = {"gemm": gemm, "conv": conv}[name]()
    cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": cores})
    function, database = te.create_prim_func(tensors), ms.database.MemoryDatabase()
    shapes = [tuple(map(int, t.shape)) for t in tensors]
    Search.arrays = [tvm.runtime.tensor(np.ones(s, np.float32), tvm.cpu()) for s in shapes]
    Search.seconds, Search.start = seconds, time.perf_counter()
    try:
        ms.tune_tir(
            function,
            target,
            tempfile.mkdtemp(),
            max_trials_global=1 << 16,
            num_trials_per_iter=PER_ITERATION,
            builder=Builder(),
            runner=Runner(),
            database=database,
            measure_callbacks=[ms.measure_callback.AddToDatabase(), Watch()],
            strategy=ms.search_strategy.EvolutionarySearch(population_size=POPULATION),
            num_tuning_cores=cores,
        )
    except Exception as error:
        if not Search.over():
            print(json.dumps({"failed": Search.failed(error)}), flush=True)
            raise
    for why, count in Search.failures.items():
        print(json.dumps({"failed": f"{count} candidates: {why}"}), flush=True)
    schedule = ms.tir_integration.compile_tir(database, function, target)
    if schedule is None:
        print(json.dumps({"failed": f"nothing was timed in {seconds:g} s"}), flush=True)
        return
    run = tvm.compile(schedule.mod, target)
    timed = run.mod.time_evaluator("main", tvm.cpu(), number=20, repeat=20)(*Search.arrays)
    print(json.dumps({"final": float(min(timed.results))}), flush=True)


if __name__ == "__main__":
    main()
