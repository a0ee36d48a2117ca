"""The contestants: each a function `prepare(workload, arrays) -> Prepared`, in its own process.

A contestant gets its inputs in its own native form beforehand; only calls are timed.  A module here
imports its library when its `prepare` runs, so that a missing one is a ✗ and not an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from benchmarks.workloads import Array, Workload


@dataclass(frozen=True)
class Prepared:
    """call: runs the workload once, returns when the result is there.  arrays: it in NumPy.

    Nothing is compiled yet: the first `call` pays for that.
    """

    call: Callable[[], Any]
    arrays: Callable[[Any], Sequence[Array]]


@dataclass(frozen=True)
class Peer:
    """A contestant: where its `prepare` is, and the distribution whose version is shown."""

    name: str
    label: str
    module: str
    function: str
    distribution: str

    def prepare(self, workload: Workload, arrays: dict[str, Array]) -> Prepared:
        """Import the library and get ready.  Raises what the library raises when it refuses."""
        prepare: Callable[[Workload, dict[str, Array]], Prepared]
        prepare = getattr(import_module(f"benchmarks.peers.{self.module}"), self.function)
        return prepare(workload, arrays)


class Refused(Exception):
    """The contestant cannot say this row at all."""


def as_tuple(result: Any) -> tuple[Any, ...]:
    """One result or several, as a tuple."""
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


OWN = ("numpy", "nbcomp", "limit")  # run in nbcomp's own environment

PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer("numpy", "NumPy", "plain", "prepare_numpy", "numpy"),
        Peer("nbcomp", "nbcomp", "plain", "prepare_nbcomp", "nbcomp"),
        Peer("numba", "Numba", "plain", "prepare_numba", "numba"),
        Peer("numexpr", "numexpr", "plain", "prepare_numexpr", "numexpr"),
        Peer("jax", "JAX", "xla", "prepare_jax", "jax"),
        Peer("iree", "IREE", "xla", "prepare_iree", "iree-base-compiler"),
        Peer("torch", "torch.compile", "torch_compile", "prepare", "torch"),
        Peer("ort", "ONNX Runtime", "onnx_graphs", "prepare_ort", "onnxruntime"),
        Peer("openvino", "OpenVINO", "onnx_graphs", "prepare_openvino", "openvino"),
        Peer("tvm", "TVM", "onnx_graphs", "prepare_tvm", "apache-tvm"),
        Peer("tinygrad", "tinygrad", "tinygrad_jit", "prepare", "tinygrad"),
    )
}
LIMIT = Peer("limit", "the memory", "limit", "prepare", "nbcomp")  # in turn with the contestants
