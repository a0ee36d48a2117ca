"""The other side of `benchmarks.metaschedule`, run by a Python that has TVM: a kernel, searched.

    python metaschedule_peer.py gemm|conv SECONDS CORES

Prints a JSON line for every trial that was timed, {"at": seconds since the search began, "best":
seconds of the best so far}, and at the end {"final": ...}, the best timed once more.  For TVM 0.26
(`tvm.s_tir.meta_schedule`; with 0.27 the newest apache-tvm-ffi crashes in `TuneContext`, 0.1.13 and
0.1.14 do not); it must not import nbcomp.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from typing import Any

import numpy as np
import tvm
from tvm import te, topi
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule as ms

PER_ITERATION = 16  # candidates between two looks at the clock


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


@derived_object
class Watch(ms.measure_callback.PyMeasureCallback):  # type: ignore[misc]
    """Prints what was found, and ends the search."""

    start, best, seconds = 0.0, float("inf"), 0.0

    def apply(self, scheduler: Any, task: int, tried: Any, built: Any, runs: Any) -> None:
        for run in runs:
            for seconds in run.run_secs or ():
                Watch.best = min(Watch.best, float(seconds))
            if run.run_secs:
                line = {"at": time.perf_counter() - Watch.start, "best": Watch.best}
                print(json.dumps(line), flush=True)
        if time.perf_counter() - Watch.start > Watch.seconds:
            raise Over


def main() -> None:
    """Search, then time the best again."""
    name, seconds, cores = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    tensors = {"gemm": gemm, "conv": conv}[name]()
    cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": cores})
    function, database = te.create_prim_func(tensors), ms.database.MemoryDatabase()
    Watch.seconds, Watch.start = seconds, time.perf_counter()
    callbacks = [ms.measure_callback.AddToDatabase(), Watch()]
    try:
        ms.tune_tir(
            function,
            target,
            tempfile.mkdtemp(),
            max_trials_global=1 << 16,
            num_trials_per_iter=PER_ITERATION,
            database=database,
            measure_callbacks=callbacks,
        )
    except Exception as error:
        if "Over" not in f"{type(error).__name__} {error}":
            raise
    schedule = ms.tir_integration.compile_tir(database, function, target)
    run = tvm.compile(schedule.mod, target)
    device = tvm.cpu()
    shapes = [tuple(map(int, t.shape)) for t in tensors]
    arrays = [tvm.runtime.tensor(np.ones(s, np.float32), device) for s in shapes]
    timed = run.mod.time_evaluator("main", device, number=20, repeat=20)(*arrays)
    print(json.dumps({"final": float(min(timed.results))}), flush=True)


if __name__ == "__main__":
    main()
