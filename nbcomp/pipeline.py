"""The pipeline: a Python function to a `Compiled`.

    capture → graph passes → fusion → kernels → schedule → LLVM → machine code → plan

Every step is recorded in the `Trace`; those that are optimisations can be left out (`Options`).
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from nbcomp.compiled import Compiled, Regimes
from nbcomp.conditions import Conditions
from nbcomp.dispatch import dispatching
from nbcomp.errors import NbcompError, PassError, Unsupported
from nbcomp.frontend.location import here
from nbcomp.frontend.result import Out, Tree, bind
from nbcomp.frontend.trace import Capture, capture, signature_of
from nbcomp.function_pattern import Pass
from nbcomp.graph.branches import If, While, repeat
from nbcomp.graph.ir import Graph, Node
from nbcomp.graph.op import Input
from nbcomp.graph.passes.expand import expand
from nbcomp.graph.passes.fusion import fuse, separate
from nbcomp.graph.passes.groups import FusedGraph
from nbcomp.graph.passes.in_place import in_place
from nbcomp.graph.passes.layout import choose_layout
from nbcomp.graph.passes.materialise import materialise
from nbcomp.graph.passes.narrow import narrow_products, round_products
from nbcomp.graph.passes.orders import copied_in_order
from nbcomp.graph.passes.packing import pack_products
from nbcomp.graph.passes.products import call_products, choose_products, generate_products
from nbcomp.graph.passes.recurrences import choose_recurrences
from nbcomp.graph.passes.share import sharing
from nbcomp.graph.passes.simplify import algebra, cse, fold
from nbcomp.graph.passes.windows import choose_windows
from nbcomp.lowering.program import lower_groups, plan_memory
from nbcomp.making import make_kernels, summary, with_groups
from nbcomp.openings import examples, of_types, stand_in, tell
from nbcomp.options import ENTRY, EVERYTHING, Options
from nbcomp.planning import bytes_strides, held_inputs, plan_of, steps_of
from nbcomp.record import Snapshot, Trace
from nbcomp.returning import native_writes, results_of, rigid, unread
from nbcomp.runtime.entry import NativeFunction
from nbcomp.runtime.interpret import StepFailed
from nbcomp.runtime.plan import (
    ArrayGuard,
    LeftToPython,
    Plan,
    Source,
)
from nbcomp.runtime.pool import threads
from nbcomp.target.base import Target
from nbcomp.target.interpreted import InterpretedTarget
from nbcomp.target.llvm.compile import host_target
from nbcomp.target.llvm.cpus import target_for, without_on
from nbcomp.wrapped import options_of, unwrapped

G = TypeVar("G", Graph, FusedGraph)
R = TypeVar("R", Graph, FusedGraph)

GRAPH_PASSES: tuple[Pass, ...] = (
    choose_windows,
    choose_recurrences,
    expand,
    narrow_products,
    choose_products,
    algebra,
    fold,
    cse,
    choose_layout,
    pack_products,
    materialise,
)


# ------------------------------------------------------------------------------------- compiling


def compile(function: Any, *args: Any, **kwargs: Any) -> Compiled:
    """Compile a function for these arguments (arrays, numbers, or `nbcomp.f32[…]` types).

    `libraries=` and `precision=` are those of `jit`, unless the function has a parameter of that
    name.  With `compile_for("interpreted")` instead, the loops run in Python: slow, but nothing is
    hidden.

    Raises CaptureError where the program cannot be a graph, Unsupported for what is not compiled,
    ValueError for another precision, and what the function itself raises.
    """
    own = signature_of(unwrapped(function)).parameters
    asked = {k: kwargs.pop(k) for k in ENTRY if k in kwargs and k not in own}
    options: Options = options_of(function, EVERYTHING).asking(**asked)
    return _compile(host_target(), options, function, *args, **kwargs)


def _compile(
    target: Target, options: Options, function: Any, *args: Any, **kwargs: Any
) -> Compiled:
    # A jitted function is compiled as the Python function it stands for.
    python = unwrapped(function)
    lengths = examples((*args, *kwargs.values()))
    concrete = [stand_in(a, lengths) for a in args]
    named = {k: stand_in(v, lengths) for k, v in kwargs.items()}
    if not lengths:
        return compile_captured(python, partial(capture, python, concrete, named), target, options)
    signature = signature_of(python)
    opened = of_types(bind(signature, args, kwargs, python), list(signature.parameters))

    def made(args: Sequence[Any], kwargs: dict[str, Any]) -> Compiled:
        take = partial(capture, python, args, kwargs, opened=opened)
        compiled = compile_captured(python, take, target, options, opened=True)
        compiled.regimes = Regimes(made)
        return compiled

    return made(concrete, named)


def compile_captured(
    function: Any,
    capture: Callable[[], Capture],
    target: Target | None = None,
    options: Options = EVERYTHING,
    opened: bool = False,
) -> Compiled:
    """Compile what `capture` gives for a function; for this machine, unless another is named.

    opened: lengths may stay open in the capture.
    """
    trace = Trace()
    start = time.perf_counter()
    with trace.timed("capture"), Conditions(where=here).in_force() if opened else nullcontext():
        captured = capture()
    with trace.listening():
        return compile_capture(function, captured, trace, start, target or host_target(), options)


def compile_for(name: str, options: Options = EVERYTHING) -> Callable[..., Compiled]:
    """`compile` for a named target, "llvm" (this machine) or "interpreted", and with options.

    `compile_for("llvm", nbcomp.Options(without={"fuse"}))(f, x)` leaves fusion out.
    """
    targets: dict[str, Callable[[], Target]] = {
        "llvm": host_target,
        "interpreted": InterpretedTarget,
    }
    if name not in targets:
        raise ValueError(f"no target {name!r}; there are {', '.join(targets)}")
    return partial(_compile, targets[name](), options)


def compile_capture(
    function: Any,
    captured: Capture,
    trace: Trace,
    start: float,
    target: Target,
    options: Options = EVERYTHING,
) -> Compiled:
    """The rest of the pipeline, from a captured graph on."""
    if captured.sizes is None:
        return _compile_capture(function, captured, trace, start, target, options)
    with captured.sizes.copy().in_force():
        return _compile_capture(function, captured, trace, start, target, options)


def _compile_capture(
    function: Any,
    captured: Capture,
    trace: Trace,
    start: float,
    target: Target,
    options: Options,
) -> Compiled:
    if captured.sizes is not None:
        _check_open(captured.graph, target)
    results = results_of(captured)
    writes = native_writes(captured) if results else {}
    graph = copied_in_order(in_place(_with_strides(captured), writes), captured.orders)
    trace.record(
        Snapshot(
            "capture", "graph", "The program as it was traced.", graph, trace.seconds["capture"]
        )
    )
    fused = _graph_passes(graph, trace, options, captured.orders)
    with trace.timed("lower"):
        lowered = lower_groups(fused, writes, rigid(captured.result), captured.orders)
    made = make_kernels(lowered, trace, options, target)
    parts = [replace(p, kernel=made[p.kernel.name].kernel) if p.kernel else p for p in lowered]
    with trace.timed("memory plan"):
        aside = unread(captured, results) if results else set()
        program = plan_memory(fused, parts, writes, aside, reuse=options.does("reuse"))
    kernels = with_groups(made, program)
    steps = tuple(steps_of(program, kernels, partial(_control, target)))
    compiled = tuple(kernels.values())
    plan = plan_of(captured, program, steps, compiled, results)
    tell(plan)
    return Compiled(
        name=graph.name,
        function=function,
        capture=captured,
        captured=graph,
        fused=fused,
        program=program,
        kernels=compiled,
        plan=plan,
        plain=results is not None,
        trace=trace,
        compile_seconds=time.perf_counter() - start,
        cold=not all(k.known for k in compiled),
        threads=threads(),
        target=f"{target.describe()}, {threads()} threads",
        recompile=recompile,
        options=options,
    )


def _check_open(graph: Graph, target: Target) -> None:
    """Raise `Unsupported` for what is compiled for known lengths only."""
    if any(isinstance(n.op, If | While) for n in graph.nodes):
        raise Unsupported("the lengths of what control flow on values works on must be known")
    if isinstance(target, InterpretedTarget):
        raise Unsupported("loops are interpreted for known lengths only")


def recompile(compiled: Compiled, options: Options, cpu: str = "host") -> Compiled:
    """The same captured program with other options, for this machine or a CPU by name.

    Raises ValueError for an unknown CPU (`target.llvm.cpus`).
    """
    target = target_for(cpu)
    options = options.leaving(*without_on(cpu))
    begin = time.perf_counter()
    trace = Trace(seconds={"capture": compiled.trace.seconds["capture"]})
    with trace.listening():
        return compile_capture(compiled.function, compiled.capture, trace, begin, target, options)


def _with_strides(captured: Capture) -> Graph:
    """The captured graph, its inputs knowing the strides of the arrays they were captured with, and
    whether what is made of these may be kept."""
    graph, held = captured.graph, held_inputs(captured)
    new: dict[Node, Node] = {}
    for node in graph.nodes:
        if isinstance(node.op, Input):
            index = graph.inputs.index(node)
            guard = captured.guards[index]
            if isinstance(guard, ArrayGuard):
                size = guard.dtype.itemsize
                if any(s % size for s in guard.strides):
                    raise Unsupported("an array whose strides are not whole elements")
                strides = tuple(s // size for s in guard.strides)
                op = replace(node.op, strides=strides, held=index in held)
                new[node] = replace(node, op=op)
                continue
            new[node] = node
        else:
            new[node] = replace(node, inputs=tuple(new[i] for i in node.inputs))
    return Graph(
        graph.name, tuple(new[n] for n in graph.inputs), tuple(new[n] for n in graph.outputs)
    )


def _graph_passes(
    graph: Graph, trace: Trace, options: Options, orders: Mapping[int, tuple[int, ...]]
) -> FusedGraph:
    done: list[str] = []
    for step in _passes(options):
        graph = _run(step, graph, trace, done)
    graph = copied_in_order(graph, orders)  # once more: `y * 1` is what was written to y
    fused = _run(fuse if options.does("fuse") else separate, graph, trace, done)
    return _run(sharing(orders), fused, trace, done)


def _passes(options: Options) -> Iterator[Pass]:
    """The passes before fusion that are to be done; one that is no optimisation always is."""
    before: list[Pass] = []
    for step in GRAPH_PASSES:
        if step is narrow_products and options.libraries:
            yield dispatching(options.libraries, before)
        if step is choose_products and options.precision == "bf16":
            yield round_products
        if step is choose_products and not options.does("blas"):
            step = generate_products
        elif step is choose_products and not options.does("generate"):
            step = call_products
        if options.does(step.__name__):
            before.append(step)
            yield step


def _run(step: Callable[[G], R], graph: G, trace: Trace, done: list[str]) -> R:
    """One pass, recorded; what goes wrong in it is a fault of ours that names it."""
    begin = time.perf_counter()
    try:
        with trace.timed("graph passes"):
            result = step(graph)
    except NbcompError:
        raise
    except Exception as error:
        before = ", ".join(done) or "capture"
        raise PassError(f"pass {step.__name__} failed after {before}: {error!r}") from error
    spent = time.perf_counter() - begin
    fusing = isinstance(graph, Graph)  # what is fused already brings its remarks along
    remarks = result.remarks if fusing and isinstance(result, FusedGraph) else ()
    trace.record(Snapshot(step.__name__, "graph", summary(step), result, spent, remarks))
    done.append(step.__name__)
    return result


def _control(target: Target, op: If | While) -> Callable[..., Any]:
    """Control flow with its graphs compiled: a function of the operands' arrays.

    Its results are one array by itself, or a tuple of several.
    """
    if isinstance(op, If):
        yes, no = (_compiled_graph(g, target) for g in (op.then, op.orelse))

        def choose(condition: Any, *operands: Any) -> Any:
            return (yes if condition else no)(*operands)

        return choose
    test, body = (_compiled_graph(g, target) for g in (op.test, op.body))
    carried = len(op.body.outputs)

    def loop(*operands: Any) -> Any:
        results = repeat(test, body, carried, operands)
        return results[0] if carried == 1 else results

    return loop


def _compiled_graph(graph: Graph, target: Target) -> Callable[..., Any]:
    """A graph that control flow owns, as a native function of one array per input."""
    guards = tuple(
        ArrayGuard(
            Source("argument", k, name=n.name), n.type.dtype, n.shape, bytes_strides(n.type), k
        )
        for k, n in enumerate(graph.inputs)
    )
    tree: Tree = tuple(Out(k) for k in range(len(graph.outputs)))
    tree = Out(0) if len(graph.outputs) == 1 else tree
    signature = inspect.Signature(
        [inspect.Parameter(f"a{k}", inspect.Parameter.POSITIONAL_ONLY) for k in range(len(guards))]
    )
    captured = Capture(graph, guards, tree, frozenset(), (), signature, len(guards))
    trace = Trace(seconds={"capture": 0.0})
    made = compile_capture(graph.name, captured, trace, time.perf_counter(), target)

    def slow(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return made.run([np.ascontiguousarray(a).reshape(np.shape(a)) for a in args])
        except StepFailed:
            raise LeftToPython from None

    def failed(args: tuple[Any, ...], plan: Plan, step: int, status: int) -> Any:
        raise made.failure(step, status) or LeftToPython

    entry = NativeFunction(graph.name, None, slow, failed, signature)
    entry.add(made.plan)
    return entry.callable


__all__ = ["compile", "compile_capture"]
