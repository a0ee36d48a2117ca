"""tinygrad's TinyJit on its CPU device, on the workloads' source with tinygrad's names."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.peers import Prepared, as_tuple
from benchmarks.workloads import Array, Workload, spelled


def prepare(workload: Workload, arrays: dict[str, Array]) -> Prepared:
    """TinyJit captures on its second call; until then it runs the kernels one by one."""
    tinygrad: Any = import_module("tinygrad")
    names: Any = import_module("benchmarks.peers.tinygrad_names")
    tinygrad.Tensor.at = property(names.At)
    function = spelled(workload.functional or workload.function, names)
    values = [tinygrad.Tensor(a, device="CPU").realize() for a in arrays.values()]
    device = tinygrad.Device["CPU"]

    def realized(*inputs: Any) -> Any:
        outputs = as_tuple(function(*inputs))
        tinygrad.Tensor.realize(*outputs)
        return outputs

    compiled = tinygrad.TinyJit(realized)

    def call() -> Any:
        outputs = compiled(*values)
        device.synchronize()
        return outputs

    return Prepared(call, lambda result: [r.numpy() for r in as_tuple(result)])
