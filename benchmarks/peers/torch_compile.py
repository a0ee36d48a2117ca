"""torch.compile, with its C++ CPU back end, on the workloads' source with torch's names."""

from __future__ import annotations

from importlib import import_module

from benchmarks.peers import Prepared, as_tuple
from benchmarks.workloads import Array, Workload, spelled


def prepare(workload: Workload, arrays: dict[str, Array]) -> Prepared:
    """One graph, static shapes, no gradients; the calling thread counts as one of the threads."""
    torch = import_module("torch")
    names = import_module("benchmarks.peers.torch_names")
    values = [torch.from_numpy(a) for a in arrays.values()]
    compiled = torch.compile(spelled(workload.function, names), fullgraph=True, dynamic=False)
    torch.set_grad_enabled(False)
    return Prepared(lambda: compiled(*values), lambda result: [r.numpy() for r in as_tuple(result)])
