"""Runs a compiled function at every level it went through: each graph snapshot by the operators'
NumPy references, each set of kernels by the loop interpreter, and the machine code.

The order is that of the compilation: the first level with a wrong answer names the bad pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from nbcomp.compiled import Compiled
from nbcomp.frontend.result import bind, resolve
from nbcomp.graph.control import Control, exception
from nbcomp.graph.interpreter import interpret as interpret_graph
from nbcomp.graph.interpreter import lengths_in
from nbcomp.graph.ir import Graph
from nbcomp.graph.passes.groups import FusedGraph
from nbcomp.loop.grammar import Buffer, Kernel
from nbcomp.loop.interpreter import Exited
from nbcomp.loop.interpreter import interpret as interpret_kernel
from nbcomp.loop.interpreter import seconds as interpreted_seconds
from nbcomp.lowering.program import KernelStep, LibraryStep
from nbcomp.settling import numbers
from nbcomp.types import contiguous_strides

Run = Callable[..., Any]


def levels(compiled: Compiled, kernels: bool = True) -> Iterator[tuple[str, Run]]:
    """(what it is, a function of the original arguments) for each level, in order.

    kernels: also the loop levels, whose interpreter is slow; steps that changed no kernel are left
    out.
    """
    for snapshot in compiled.trace.snapshots:
        if snapshot.level == "graph":
            yield f"graph after {snapshot.name}", _graph_run(compiled, snapshot.value)
    if kernels:
        chains = list(_chains(compiled).values())
        for position, (stage, _) in enumerate(chains[0] if chains else ()):
            before = max(position - 1, 0)
            if not position or any(c[position][1] is not c[before][1] for c in chains):
                yield f"kernels after {stage}", Interpreted(compiled, position)
    yield "machine code", compiled


def _bound(
    compiled: Compiled, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], list[Any]]:
    """The bound arguments, and the arrays that are the graph's inputs."""
    values = bind(compiled.capture.signature, args, kwargs)
    guards = compiled.capture.guards[: len(compiled.captured.inputs)]
    types = [node.type for node in compiled.captured.inputs]
    found = [resolve(guard.source, values) for guard in guards]
    return values, [np.asarray(v, t.dtype) for v, t in zip(found, types, strict=True)]


def _finish(compiled: Compiled, outputs: list[Any], values: tuple[Any, ...]) -> Any:
    """What the function returns, of the graph's outputs: NumPy's scalars are no arrays."""
    scalars = compiled.capture.scalar_outputs
    made = tuple(a[()] if k in scalars else a for k, a in enumerate(outputs))
    return compiled.finish(made, values)


def _graph_run(compiled: Compiled, value: Any) -> Run:
    graph = value.graph if isinstance(value, FusedGraph) else value
    assert isinstance(graph, Graph)

    def run(*args: Any, **kwargs: Any) -> Any:
        values, inputs = _bound(compiled, args, kwargs)
        outputs = [np.array(a) for a in interpret_graph(graph, inputs)]
        return _finish(compiled, outputs, values)

    return run


def _chains(compiled: Compiled) -> dict[str, list[tuple[str, Kernel]]]:
    """For each kernel by its name (stage, the kernel after it)."""
    chains: dict[str, list[tuple[str, Kernel]]] = {}
    for snapshot in compiled.trace.snapshots:
        if isinstance(snapshot.value, Kernel):
            chains.setdefault(snapshot.kernel, []).append((snapshot.name, snapshot.value))
    # Loops as they were written have fewer steps than others: they stay as they are.
    longest = max(chains.values(), key=len, default=[])
    names = [name for name, _ in longest]
    return {kernel: _spread(chain, names) for kernel, chain in chains.items()}


def _spread(chain: list[tuple[str, Kernel]], names: list[str]) -> list[tuple[str, Kernel]]:
    """The kernel after each of these stages, those that a kernel does not go through included."""
    return [(name, chain[min(k, len(chain) - 1)][1]) for k, name in enumerate(names)]


class Interpreted:
    """All kernels as they were after lowering (0) or that step of their schedule, run by the loop
    interpreter."""

    def __init__(self, compiled: Compiled, position: int) -> None:
        self.compiled = compiled
        self.kernels = {
            name: chain[min(position, len(chain) - 1)][1]
            for name, chain in _chains(compiled).items()
        }

    def seconds(self, *args: Any, **kwargs: Any) -> float:
        """About how long a call takes: much longer than one of any other level."""
        values, inputs = _bound(self.compiled, args, kwargs)
        kernels = [k for _, k in self._steps(values, inputs) if k is not None]
        return sum(map(interpreted_seconds, kernels))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values, inputs = _bound(self.compiled, args, kwargs)
        settled = self.compiled.settled(values)
        memory = _Memory(settled, inputs)
        for step, kernel in self._steps(values, inputs):
            if kernel is None:
                memory.library(step)
            else:
                memory.kernel(step, kernel)
        outputs = [memory.output(slot, t) for slot, t in settled.program.outputs]
        return _finish(self.compiled, outputs, values)

    def _steps(
        self, values: tuple[Any, ...], inputs: list[Any]
    ) -> Iterator[tuple[Any, Kernel | None]]:
        """The program's steps, each with its kernel for these lengths; None: a library's."""
        lengths = lengths_in(self.compiled.captured, inputs)
        for step in self.compiled.settled(values).program.steps:
            if isinstance(step, LibraryStep):
                yield step, None
            else:
                kernel = self.kernels[step.kernel.name]
                yield step, numbers(kernel, lengths) if lengths else kernel


class _Memory:
    """The slots of a program: arrays whose first byte is the slot's pointer."""

    def __init__(self, compiled: Compiled, inputs: list[Any]) -> None:
        program = compiled.program
        self.layouts = program.layouts
        self.slots: dict[int, Any] = dict(enumerate(inputs)) | dict(program.constants)
        self.in_place = set(program.writes.values())
        for slot in self.in_place:
            self.slots[slot] = copied(inputs[slot])
        for slot, t in program.outputs:
            if slot in self.in_place:
                continue
            self.slots[slot] = np.zeros(max(t.nbytes, 1), np.uint8)

    def view(self, slot: int, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """The slot as an array; strides in bytes.  A temp is made when it is first seen."""
        if slot not in self.slots:
            reach = sum(s * (n - 1) for s, n in zip(strides, shape, strict=True) if s > 0)
            self.slots[slot] = np.zeros(max(reach, 0) + np.dtype(dtype).itemsize, np.uint8)
        base = self.slots[slot]
        if base.dtype == np.uint8 and np.dtype(dtype) != np.uint8:
            base = np.ndarray((), dtype, base) if math.prod(shape) else np.zeros((), dtype)
        return as_strided(base, shape, strides)

    def kernel(self, step: KernelStep, kernel: Kernel) -> None:
        """Interpret a kernel on its slots."""

        def array(buffer: Buffer) -> Any:
            size = buffer.dtype.itemsize
            strides = tuple(s * size for s in buffer.strides)
            return self.view(step.slot_of[buffer.memory], buffer.dtype, buffer.shape, strides)

        try:
            interpret_kernel(kernel, {b.name: array(b) for b in kernel.buffers})
        except Exited as left:
            raise exception(left.failure, left.detail) from None

    def library(self, step: LibraryStep) -> None:
        """Run a library operator's reference on its slots."""
        inputs = [self.view(slot, t.dtype, t.shape, s) for slot, t, s in step.inputs]
        with np.errstate(all="ignore"):
            result = step.node.op.reference(*inputs)
        results = result if isinstance(step.node.op, Control) else (result,)
        for (slot, t), value in zip(step.outputs, results, strict=True):
            strides = self.layouts.get(slot, contiguous_strides(t.shape))
            step_bytes = tuple(s * t.dtype.itemsize for s in strides)
            self.view(slot, t.dtype, t.shape, step_bytes)[...] = value

    def output(self, slot: int, t: Any) -> Any:
        """A copy of an output."""
        memory = self.slots[slot]
        if slot in self.in_place:
            return memory
        strides = self.layouts.get(slot, contiguous_strides(t.shape))
        flat = np.frombuffer(memory[: t.nbytes].tobytes(), t.dtype)
        return as_strided(flat, t.shape, tuple(s * t.dtype.itemsize for s in strides)).copy()


def copied(array: Any) -> Any:
    """A copy with the array's own strides, gaps included."""
    low = sum(s * (n - 1) for s, n in zip(array.strides, array.shape, strict=True) if s < 0)
    high = sum(s * (n - 1) for s, n in zip(array.strides, array.shape, strict=True) if s > 0)
    block = np.zeros(high - low + array.itemsize, np.uint8)
    new = np.ndarray(array.shape, array.dtype, block.data, -low, array.strides)
    new[...] = array
    return new
