"""JAX, and IREE compiling the StableHLO that JAX makes of the same function."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.peers import Prepared, as_tuple
from benchmarks.workloads import Array, Workload, spelled


def _jax_function(workload: Workload) -> Any:
    jax = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")
    return spelled(workload.functional or workload.function, import_module("jax.numpy"))


def prepare_jax(workload: Workload, arrays: dict[str, Array]) -> Prepared:
    """`jax.jit`, inputs on the device, waiting for the result."""
    function = _jax_function(workload)
    jax = import_module("jax")
    values = [jax.device_put(a) for a in arrays.values()]
    compiled = jax.jit(function)
    return Prepared(
        lambda: jax.block_until_ready(compiled(*values)),
        lambda result: [np.asarray(r) for r in as_tuple(result)],
    )


def prepare_iree(workload: Workload, arrays: dict[str, Array]) -> Prepared:
    """IREE's CPU back end for this machine's own features; the first call compiles and loads."""
    function = _jax_function(workload)
    jax = import_module("jax")
    compiler, runtime = import_module("iree.compiler"), import_module("iree.runtime")
    text = jax.jit(function).lower(*arrays.values()).as_text()
    config = runtime.Config("local-task")
    values = [runtime.asdevicearray(config.device, a) for a in arrays.values()]
    entry: list[Any] = []

    def call() -> Any:
        if not entry:
            binary = compiler.compile_str(
                text,
                input_type="stablehlo",
                target_backends=["llvm-cpu"],
                extra_args=[
                    "--iree-llvmcpu-target-cpu=host",
                    "--iree-opt-level=O3",
                    "--iree-input-demote-f64-to-f32=false",
                ],
            )
            module = runtime.load_vm_flatbuffer(binary, driver="local-task")
            entry.append(module.main)
        return entry[0](*values)

    return Prepared(call, lambda result: [np.asarray(r.to_host()) for r in as_tuple(result)])
