"""Runs one program at every level and compares: the graph's references, each pass, the loops, the machine."""

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
from nbcomp.loop.interpreter import interpret
from nbcomp.lowering.program import KernelStep, Program
from nbcomp.pipeline import compile_capture
from nbcomp.runtime.plan import ArrayGuard, Source
from nbcomp.trace import Trace
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
    return compile_capture(lambda *args: None, captured, trace, time.perf_counter())


def run_program(program: Program, arrays: Sequence[Any]) -> list[Array]:
    """The program by the loop interpreter; library steps by their references."""
    memory: dict[int, Array] = {}
    for slot, array in program.constants.items():
        memory[slot] = np.ascontiguousarray(array).reshape(-1)
    for k, array in enumerate(arrays):
        memory[k] = np.asarray(array)
    for slot, t in program.outputs:
        memory[slot] = np.full(t.size, 77).astype(t.dtype)
    for step in program.steps:
        if isinstance(step, KernelStep):
            slots = {
                b.memory: s
                for b, s in zip(
                    [b for b in step.kernel.buffers if not b.alias], step.slots, strict=True
                )
            }
            views = {}
            for b in step.kernel.buffers:
                slot = slots[b.memory]
                if slot not in memory:
                    memory[slot] = np.zeros(int(np.prod(b.shape)), b.dtype)
                views[b.name] = _view(memory[slot], b.shape, b.strides)
            interpret(step.kernel, views)
        else:
            values = []
            for slot, t, strides in step.inputs:
                elements = tuple(s // t.dtype.itemsize for s in strides)
                values.append(_view(memory[slot], t.shape, elements))
            slot, t = step.output
            if slot not in memory:
                memory[slot] = np.zeros(t.size, t.dtype)
            memory[slot][:] = np.asarray(step.node.op.reference(*values)).reshape(-1)
    return [memory[slot].reshape(t.shape) for slot, t in program.outputs]


def _view(array: Array, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    size = array.itemsize
    return np.lib.stride_tricks.as_strided(array, shape, tuple(s * size for s in strides))


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
