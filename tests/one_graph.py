"""Compiles the graph of one operator, and compares results in units in the last place."""

from __future__ import annotations

import inspect
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from nbcomp.compiled import Compiled
from nbcomp.frontend.result import Out
from nbcomp.frontend.trace import Capture
from nbcomp.graph.ir import Graph, Node, apply
from nbcomp.graph.op import Input, Op
from nbcomp.pipeline import compile_capture
from nbcomp.record import Trace
from nbcomp.runtime.plan import ArrayGuard, Source
from nbcomp.target.llvm.compile import host_target
from nbcomp.types import TensorType

Array = np.ndarray[Any, Any]


def graph_of(op: Op, arrays: Sequence[Any]) -> Graph:
    """The graph that applies one operator to these arrays."""
    nodes = []
    for k, array in enumerate(map(np.asarray, arrays)):
        t = TensorType(array.dtype, array.shape)
        nodes.append(Node(Input(k, t), (), t, name="abcdefgh"[k]))
    return Graph(op.name, tuple(nodes), (apply(op, *nodes),))


def compile_graph(graph: Graph, arrays: Sequence[Any]) -> Compiled:
    """Machine code for a graph and these arrays."""
    guards = tuple(
        ArrayGuard(Source("argument", k), a.dtype, a.shape, a.strides, k)
        for k, a in enumerate(map(np.asarray, arrays))
    )
    parameters = [
        inspect.Parameter(f"a{k}", inspect.Parameter.POSITIONAL_ONLY) for k in range(len(arrays))
    ]
    result = tuple(Out(k) for k in range(len(graph.outputs)))
    captured = Capture(
        graph, guards, result, frozenset(), (), inspect.Signature(parameters), len(arrays)
    )
    trace = Trace()
    with trace.timed("capture"):
        pass
    return compile_capture(lambda *args: None, captured, trace, time.perf_counter(), host_target())


def ulps(got: Any, want: Any) -> float:
    """The largest distance in units in the last place of the wanted values; inf for a wrong NaN.

    Integers and booleans: 0 if equal, else inf.
    """
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or got.dtype != want.dtype:
        return float("inf")
    if want.dtype.kind != "f":
        return 0.0 if np.array_equal(got, want) else float("inf")
    if got.size == 0:
        return 0.0
    with np.errstate(all="ignore"):
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        wide = np.abs(got.astype(np.longdouble) - want.astype(np.longdouble))
        step = np.spacing(np.abs(np.where(np.isfinite(want), want, 1))).astype(np.longdouble)
        far = np.where(same, 0, wide / step)
    return float(np.max(np.where(np.isnan(far), np.inf, far)))
