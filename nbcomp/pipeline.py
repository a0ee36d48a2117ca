"""The pipeline: a Python function to a `Compiled`, and `jit`, which does that when it is called.

    capture → graph passes → fusion → kernels → schedule → LLVM → machine code → plan

Every step is recorded in the `Trace`.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nbcomp.compiled import Compiled, CompiledKernel
from nbcomp.errors import NbcompError, PassError, Unsupported
from nbcomp.frontend.result import Out, bind
from nbcomp.frontend.trace import Capture, capture
from nbcomp.graph.ir import Graph, Node
from nbcomp.graph.op import Input
from nbcomp.graph.passes.expand import expand
from nbcomp.graph.passes.fusion import FusedGraph, fuse
from nbcomp.graph.passes.materialise import materialise
from nbcomp.graph.passes.products import choose_products
from nbcomp.graph.passes.simplify import algebra, cse, fold
from nbcomp.lowering.program import KernelStep, LibraryStep, Program, lower_program
from nbcomp.loop.grammar import For
from nbcomp.machine import host
from nbcomp.runtime import interpret
from nbcomp.runtime.entry import NativeFunction
from nbcomp.runtime.plan import ArrayGuard, HostStep, Output, Plan, Step
from nbcomp.runtime.pool import threads
from nbcomp.schedule.default import default_schedule, grain, seconds
from nbcomp.target.llvm.codegen import StageCode, generate
from nbcomp.target.llvm.compile import compile_kernel, host_cpu
from nbcomp.trace import Remark, Snapshot, Trace
from nbcomp.types import TensorType

GRAPH_PASSES: tuple[Callable[[Graph], Graph], ...] = (
    expand,
    choose_products,
    algebra,
    fold,
    cse,
    materialise,
)
VARIANTS = 64  # signatures a jitted function keeps


class NumpyFallback(UserWarning):
    """A function, or a call of it, runs in NumPy instead of compiled code; the message says why."""


# ------------------------------------------------------------------------------------- compiling


def compile(function: Any, *args: Any, **kwargs: Any) -> Compiled:
    """Compile a function for these arguments (arrays, numbers, or `nbcomp.f32[…]` types).

    Raises CaptureError where the program cannot be a graph, Unsupported for what is not compiled, and
    what the function itself raises.
    """
    from nbcomp.frontend.result import bind as _  # noqa: F401

    python = function.__wrapped__ if isinstance(function, Jit) else function
    concrete = [_stand_in(a) for a in args]
    named = {k: _stand_in(v) for k, v in kwargs.items()}
    trace = Trace()
    start = time.perf_counter()
    with trace.timed("capture"):
        captured = capture(python, concrete, named)
    return compile_capture(python, captured, trace, start)


def _stand_in(value: Any) -> Any:
    """Zeros of a type that is given without data."""
    return np.zeros(value.shape, value.dtype) if isinstance(value, TensorType) else value


def compile_capture(function: Any, captured: Capture, trace: Trace, start: float) -> Compiled:
    """The rest of the pipeline, from a captured graph on."""
    graph = _with_strides(captured)
    trace.record(
        Snapshot("capture", "graph", "The program as it was traced.", graph, trace.seconds["capture"])
    )
    fused = _graph_passes(graph, trace)
    with trace.timed("lower"):
        program = lower_program(fused)
    kernels, steps, cold = _kernels(program, trace)
    program = replace(
        program,
        steps=tuple(
            replace(s, kernel=kernels[n].kernel) if isinstance(s, KernelStep) else s  # type: ignore[index]
            for n, s in enumerate(program.steps)
        ),
    )
    plan = _plan(captured, program, steps, kernels)
    made = tuple(k for k in kernels if k is not None)
    return Compiled(
        name=graph.name,
        function=function,
        capture=captured,
        captured=graph,
        fused=fused,
        program=program,
        kernels=made,
        plan=plan,
        trace=trace,
        compile_seconds=time.perf_counter() - start,
        cold=cold,
        threads=threads(),
        target=target_name(),
    )


def target_name() -> str:
    """This machine, in a few words."""
    machine = host()
    width = {64: "AVX-512", 32: "256-bit", 16: "128-bit"}.get(machine.vector_bytes, "")
    arch = host_cpu().triple.split("-")[0]
    lanes = machine.vector_bytes // 4
    return f"{arch} {width} vectors ({lanes} float32 lanes)"


def _with_strides(captured: Capture) -> Graph:
    """The captured graph, its inputs knowing the strides of the arrays they were captured with."""
    graph = captured.graph
    new: dict[Node, Node] = {}
    for node in graph.nodes:
        if isinstance(node.op, Input):
            guard = captured.guards[graph.inputs.index(node)]
            if isinstance(guard, ArrayGuard):
                size = guard.dtype.itemsize
                if any(s % size for s in guard.strides):
                    raise Unsupported("an array whose strides are not whole elements")
                strides = tuple(s // size for s in guard.strides)
                new[node] = replace(node, op=replace(node.op, strides=strides))
                continue
            new[node] = node
        else:
            new[node] = replace(node, inputs=tuple(new[i] for i in node.inputs))
    return Graph(graph.name, tuple(new[n] for n in graph.inputs), tuple(new[n] for n in graph.outputs))


def _graph_passes(graph: Graph, trace: Trace) -> FusedGraph:
    done: list[str] = []
    for step in GRAPH_PASSES:
        graph = _run(step, graph, trace, done)
    begin = time.perf_counter()
    try:
        fused = fuse(graph)
    except NbcompError:
        raise
    except Exception as error:
        raise PassError(f"pass fuse failed after {', '.join(done)}: {error!r}") from error
    spent = time.perf_counter() - begin
    trace.seconds["graph passes"] = trace.seconds.get("graph passes", 0.0) + spent
    trace.record(Snapshot("fuse", "graph", _summary(fuse), fused, spent, fused.remarks))
    return fused


def _run(step: Callable[[Graph], Graph], graph: Graph, trace: Trace, done: list[str]) -> Graph:
    begin = time.perf_counter()
    try:
        result = step(graph)
    except NbcompError:
        raise
    except Exception as error:
        before = ", ".join(done) or "capture"
        raise PassError(f"pass {step.__name__} failed after {before}: {error!r}") from error
    spent = time.perf_counter() - begin
    done.append(step.__name__)
    trace.seconds["graph passes"] = trace.seconds.get("graph passes", 0.0) + spent
    trace.record(Snapshot(step.__name__, "graph", _summary(step), result, spent))
    return result


def _summary(step: Callable[..., Any]) -> str:
    return (step.__doc__ or "").strip().split("\n")[0]


def _kernels(
    program: Program, trace: Trace
) -> tuple[list[CompiledKernel | None], list[Step | HostStep], bool]:
    """Schedule, generate and compile every kernel; the plan's steps."""
    machine, cpu = host(), host_cpu()
    kernels: list[CompiledKernel | None] = []
    steps: list[Step | HostStep] = []
    cold = False
    for step in program.steps:
        if isinstance(step, LibraryStep):
            kernels.append(None)
            steps.append(_host_step(step))
            continue
        kernel = step.kernel
        trace.record(
            Snapshot("lower", "loop", "The group as loops.", kernel, 0.0, kernel=kernel.name)
        )
        begin = time.perf_counter()
        kernel = default_schedule(kernel, machine)
        spent = time.perf_counter() - begin
        trace.seconds["schedule"] = trace.seconds.get("schedule", 0.0) + spent
        trace.record(
            Snapshot(
                "schedule", "loop", _summary(default_schedule), kernel, spent, kernel=kernel.name
            )
        )
        with trace.timed("code generation"):
            code = generate(kernel, machine.vector_bytes)
        with trace.timed("LLVM"):
            made, new = compile_kernel(code, cpu)
        cold |= new
        compiled = CompiledKernel(kernel.name, step.group, kernel, code, made, not new)
        kernels.append(compiled)
        slot_of = dict(
            zip((b.memory for b in step.kernel.buffers), step.slots, strict=True)
        )
        for position, stage in enumerate(code.stages):
            slots = tuple(slot_of[kernel.buffers[k].memory] for k in stage.slots)
            steps.append(_step(compiled, position, stage, slots))
    return kernels, steps, cold


def _step(
    compiled: CompiledKernel, position: int, stage: StageCode, slots: tuple[int, ...]
) -> Step:
    loop = compiled.kernel.stages[position]
    size = grain(loop, host()) if stage.parallel and isinstance(loop, For) else 0
    return Step(
        compiled.machine.addresses[stage.symbol],
        slots,
        stage.params,
        stage.extent,
        size,
        f"{compiled.name}.{position}",
    )


def _host_step(step: LibraryStep) -> HostStep:
    inputs = tuple((slot, t.dtype, t.shape, strides) for slot, t, strides in step.inputs)
    slot, t = step.output
    size = t.dtype.itemsize
    strides, run = [], size
    for n in reversed(t.shape):
        strides.append(run)
        run *= max(n, 1)
    out = (slot, t.dtype, t.shape, tuple(reversed(strides)))
    return HostStep(step.node.op.reference, inputs, (out,), f"numpy.{step.node.op.name}")


def _plan(
    captured: Capture,
    program: Program,
    steps: list[Step | HostStep],
    kernels: list[CompiledKernel | None],
) -> Plan:
    outputs = tuple(
        Output(t.dtype, t.shape, slot, scalar=k in captured.scalar_outputs)
        for k, (slot, t) in enumerate(program.outputs)
    )
    machine = host()
    total = sum(seconds(s, machine) for k in kernels if k for s in k.kernel.stages)
    return Plan(
        guards=captured.guards,
        positional=captured.positional,
        slots=program.slots,
        outputs=outputs,
        steps=tuple(steps),
        constants=program.constants,
        temps=program.temps,
        arena=program.arena,
        single=captured.single,
        seconds=total,
        disjoint=captured.disjoint,
        keep=tuple(k.machine for k in kernels if k),
    )


# ------------------------------------------------------------------------------------------- jit


class Jit:
    """A function that is compiled when it is called, once for each signature.

    `compiled` is the newest `Compiled`, `variants` are all of them; `fallbacks` says why calls ran in
    NumPy instead.  `__wrapped__` is the Python function.
    """

    def __init__(self, function: Any) -> None:
        self.__wrapped__ = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self.__qualname__ = getattr(function, "__qualname__", self.__name__)
        self.__doc__ = getattr(function, "__doc__", None)
        self.__module__ = getattr(function, "__module__", __name__)
        self.variants: list[Compiled] = []
        self.fallbacks: list[Unsupported] = []
        self._refused: set[Any] = set()
        self._lock = threading.RLock()
        self._native: NativeFunction

    @property
    def compiled(self) -> Compiled | None:
        """The newest variant."""
        return self.variants[-1] if self.variants else None

    def slow_path(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Everything the native entry refuses: keywords, new signatures, results that are trees."""
        for variant in reversed(self.variants):
            values = bind(variant.capture.signature, args, kwargs)
            if variant.mismatch(values) is None:
                return self._run(variant, values, args, kwargs)
        key = _signature_key(args, kwargs)
        if key in self._refused:
            return self.__wrapped__(*args, **kwargs)
        try:
            variant = self.compile(*args, **kwargs)
        except Unsupported as reason:
            return self._in_numpy(reason, key, args, kwargs)
        return self._run(variant, bind(variant.capture.signature, args, kwargs), args, kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> Compiled:
        """The variant for these arguments, compiled now if it is new."""
        with self._lock:
            made = compile(self, *args, **kwargs)
            self.variants.append(made)
            del self.variants[: -VARIANTS]
            if _direct(made):
                self._native.add(made.plan)
            return made

    def _run(
        self, variant: Compiled, values: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        try:
            return variant.run(values)
        except interpret.StepFailed:
            return self.__wrapped__(*args, **kwargs)

    def _in_numpy(
        self, reason: Unsupported, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        self._refused.add(key)
        self.fallbacks.append(reason)
        warnings.warn(f"{self.__name__} runs in NumPy: {reason}", NumpyFallback, stacklevel=3)
        return self.__wrapped__(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method: bound to its instance like a function."""
        if instance is None:
            return self
        import types

        return types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<nbcomp.jit {self.__qualname__}: {len(self.variants)} signatures compiled>"


def _direct(compiled: Compiled) -> bool:
    """Whether the native entry can give the function's result by itself."""
    captured = compiled.capture
    if captured.writes or not captured.native:
        return False
    if any(isinstance(s, HostStep) for s in compiled.plan.steps):
        return False
    tree = captured.result
    if captured.single:
        return True
    plain = isinstance(tree, tuple) and len(tree) == len(compiled.plan.outputs) > 1
    return plain and all(isinstance(t, Out) and t.index == k and t.python is None for k, t in enumerate(tree))


def _signature_key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Types and shapes of a call, to remember what was refused."""
    return tuple(
        (type(v), getattr(v, "dtype", None), getattr(v, "shape", None)) for v in args
    ) + tuple((k, type(v), getattr(v, "dtype", None), getattr(v, "shape", None)) for k, v in kwargs.items())


def jit(function: Any) -> Any:
    """A function that compiles itself on its first call with each signature, and runs natively after.

    Arguments and results are those of the function.  What cannot be compiled runs in NumPy, with a
    `NumpyFallback` warning that says why; control flow that depends on array values raises CaptureError.
    """
    if isinstance(function, Jit):
        return function
    # A class of its own per function: its `__call__` is the native builtin, with no Python frame between.
    made = Jit.__new__(type("Jit", (Jit,), {}))
    made.__init__(function)  # type: ignore[misc]
    made._native = NativeFunction(
        made.__name__, made.__doc__, made.slow_path, lambda args, plan, step, status: function(*args)
    )
    type(made).__call__ = made._native.callable  # type: ignore[attr-defined]
    return made


__all__ = ["Jit", "NumpyFallback", "Remark", "compile", "compile_capture", "jit"]
