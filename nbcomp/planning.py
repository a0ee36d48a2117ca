"""Compiled kernels as a plan: its steps in order, its guards, its outputs.

Knows programs and what the run time takes; nothing of how kernels are made.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nbcomp.compiled import CompiledKernel
from nbcomp.conditions import in_force
from nbcomp.frontend.lift import HELD_ARRAY
from nbcomp.frontend.result import Out
from nbcomp.frontend.trace import Capture
from nbcomp.graph.branches import If, While
from nbcomp.graph.op import Library, Op
from nbcomp.loop.grammar import Buffer, Kernel, spread_loop
from nbcomp.lowering.program import LibraryStep, Program
from nbcomp.machine import host
from nbcomp.ops.external import CFunction, External, Operand
from nbcomp.returning import Results
from nbcomp.runtime.foreign import Pointer, foreign_call
from nbcomp.runtime.plan import (
    KEPT,
    WHOLE,
    ArrayGuard,
    Given,
    HostStep,
    Kept,
    LeftToPython,
    ObjectGuard,
    OpenSizes,
    Output,
    Plan,
    Source,
    Step,
    ValueGuard,
)
from nbcomp.schedule.cores import grain, seconds, share
from nbcomp.settling import numbers
from nbcomp.sizes import Size, Symbol, symbols_of
from nbcomp.target.base import Stage
from nbcomp.types import DType, TensorType, contiguous_strides

Control = Callable[[If | While], Callable[..., Any]]  # compiles control flow


def _layout(program: Program, slot: int, t: TensorType) -> tuple[int, ...] | None:
    """Strides in bytes of an output that is not in C order."""
    strides = program.layouts.get(slot)
    return None if strides is None else tuple(s * t.dtype.itemsize for s in strides)


def plan_of(
    captured: Capture,
    program: Program,
    steps: tuple[Step | HostStep, ...],
    kernels: tuple[CompiledKernel, ...],
    results: Results | None,
) -> Plan:
    """The plan of a program whose kernels are compiled."""
    made = [
        Output(t.dtype, t.shape, slot, k in captured.scalar_outputs, _layout(program, slot, t))
        for k, (slot, t) in enumerate(program.outputs)
    ]
    outputs: tuple[Output | Given, ...] = tuple(made)
    if results is not None:
        outputs = tuple(made[r.index] if isinstance(r, Out) else Given(r) for r in results.outputs)
    machine = host()
    total: Any = sum(len(k.groups) * seconds(s, machine) for k in kernels for s in k.kernel.stages)
    return Plan(
        guards=captured.guards,
        positional=captured.positional,
        slots=program.slots,
        outputs=outputs,
        steps=steps,
        constants=program.constants,
        temps=program.temps,
        arena=program.arena,
        single=results is not None and results.single,
        finish=results.finish if results else None,
        seconds=total,
        disjoint=captured.disjoint,
        keep=tuple(k.code for k in kernels),
        open=_open(captured.guards),
        kept=tuple(_kept(program, captured)),
        changed=tuple(_changed(captured)),
    )


def _changed(captured: Capture) -> Iterator[Source]:
    """The objects that hold arrays the program writes to."""
    written = _written(captured)
    for source in _held(captured):
        if source in written:
            yield replace(source, path=source.path[:-1])


def _written(captured: Capture) -> set[Source]:
    """The arrays that the program writes to."""
    return {source for source, _ in captured.writes}


def _kept(program: Program, captured: Capture) -> Iterator[Kept]:
    """What is made of held inputs once."""
    for step in program.steps:
        if not isinstance(step, LibraryStep) or not step.kept:
            continue
        ((index, _, _),), ((slot, t),) = step.inputs, step.outputs
        source = captured.guards[index].source
        *way, (_, array) = source.path
        op = step.node.op
        key = f"{op.name}({', '.join(op.printed_attributes)}) of {step.node.inputs[0].type}"
        place = replace(source, path=(*way, ("attr", KEPT), ("item", key)))
        guard = ArrayGuard(place, t.dtype, t.shape, bytes_strides(t), slot)
        yield Kept(replace(source, path=tuple(way)), array, key, op.reference, guard)


def held_inputs(captured: Capture) -> set[int]:
    """The graph inputs that are arrays of objects that say when they change, and not by this
    program."""
    held, written = _held(captured), _written(captured)
    inputs = enumerate(captured.guards[: len(captured.graph.inputs)])
    return {k for k, guard in inputs if guard.source in held and guard.source not in written}


def _held(captured: Capture) -> list[Source]:
    """The arrays of objects that keep what is made of them."""
    kinds = {
        g.source: g.object
        for g in captured.guards
        if isinstance(g, ObjectGuard) and g.source.path[-1:] == (("type", "__class__"),)
    }
    found = []
    for guard in captured.guards:
        path = guard.source.path
        if isinstance(guard, ArrayGuard) and path:
            kind = kinds.get(replace(guard.source, path=(*path[:-1], ("type", "__class__"))))
            if path[-1] == ("attr", getattr(kind, HELD_ARRAY, "")) and hasattr(kind, KEPT):
                found.append(guard.source)
    return found


def _open(guards: Sequence[Any]) -> OpenSizes | None:
    """What the plan leaves open, if anything is."""
    conditions = in_force()
    found = [
        (symbol, index, axis)
        for index, guard in enumerate(guards)
        if isinstance(guard, ArrayGuard)
        for axis, n in enumerate(guard.shape)
        for symbol in symbols_of(n)
    ]
    found += [
        (symbol, index, WHOLE)
        for index, guard in enumerate(guards)
        if isinstance(guard, ValueGuard)
        for symbol in symbols_of(guard.value)
    ]
    if not found or conditions is None:
        return None
    return OpenSizes(tuple(found), conditions.about({symbol for symbol, _, _ in found}))


def steps_of(
    program: Program, kernels: dict[str, CompiledKernel], control: Control
) -> Iterator[Step | HostStep]:
    """The plan's steps: the stages of every kernel at each of its calls, and calls of NumPy."""
    for step in program.steps:
        if isinstance(step, LibraryStep):
            if step.kept:
                continue
            native = isinstance(step.node.op, External) and step.node.op.c
            made = _foreign_step(step, native) if native else None
            yield made or _host_step(step, control, program)
            continue
        stages = kernels[step.kernel.name].code.stages
        for n, stage in enumerate(stages):
            yield step_of(step.kernel, n, stage, step.slot_of)


def step_of(
    kernel: Kernel, position: int, stage: Stage, slot_of: dict[str, int]
) -> Step | HostStep:
    """The step of a plan that runs a stage; `slot_of` has the slot of each memory."""
    buffers = [kernel.buffers[k] for k in stage.buffers]
    slots = tuple(slot_of[b.memory] for b in buffers)
    if not isinstance(stage.run, int):
        views = tuple(_view(s, b) for s, b in zip(slots, buffers, strict=True))
        return HostStep(stage.run, views, (), stage.name)
    spread = spread_loop(kernel.stages[position])
    size = 0
    if stage.parallel and spread is not None:
        rounds, loop = spread
        size = share(loop, host()) if rounds else grain(loop, host())
    return Step(stage.run, slots, stage.params, stage.extent, size, stage.name, stage.round)


def _view(slot: int, buffer: Buffer) -> tuple[int, DType, tuple[int, ...], tuple[int, ...]]:
    size = buffer.dtype.itemsize
    return slot, buffer.dtype, buffer.shape, tuple(s * size for s in buffer.strides)


def _host_step(step: LibraryStep, control: Control, program: Program) -> HostStep:
    inputs = tuple((slot, t.dtype, t.shape, strides) for slot, t, strides in step.inputs)
    outputs = tuple(
        (slot, t.dtype, t.shape, _layout(program, slot, t) or bytes_strides(t))
        for slot, t in step.outputs
    )
    op = _fixed(step.node.op)
    if isinstance(op, If | While):
        return HostStep(control(op), inputs, outputs, op.name)
    if isinstance(op, External):
        return HostStep(op.routine.call, inputs, outputs, op.routine.name, into=True)
    into = isinstance(op, Library) and op.takes_out
    return HostStep(_OrLeft(op.reference), inputs, outputs, f"numpy.{op.name}", into)


@dataclass(frozen=True)
class _OrLeft:
    """A function of NumPy's that leaves the call to Python where it raises: that goes on in the
    `except` that catches it, with what was written before.  Equal to another of an equal one."""

    reference: Callable[..., Any]

    def __call__(self, *arrays: Any, **options: Any) -> Any:
        try:
            return self.reference(*arrays, **options)
        except Exception:
            raise LeftToPython from None


def _foreign_step(step: LibraryStep, function: CFunction) -> Step:
    """The call of a C function, with the result's pointer first among the slots."""
    assert isinstance(step.node.op, External)
    types = [t for _, t in step.outputs] + [t for _, t, _ in step.inputs]
    slots = [slot for slot, _ in step.outputs] + [slot for slot, _, _ in step.inputs]
    operands = [Operand(k - 1, t) for k, t in enumerate(types)]
    passed = [
        Pointer(a.position + 1) if isinstance(a, Operand) else a
        for a in function.arguments(*operands)
    ]
    call = foreign_call(function.address, passed, function.by_reference)
    return Step(call.address, tuple(slots), call.params, name=step.node.op.routine.name)


def _fixed(op: Op) -> Op:
    """An operator that NumPy runs, with the numbers it is told."""
    found = {s for v in op.attributes().values() for s in _symbols(v)}
    if not found:
        return op
    values = {symbol: operator.index(Size({(symbol,): 1})) for symbol in found}
    made: Op = numbers(op, values)
    return made


def _symbols(value: Any) -> set[Symbol]:
    """The symbols in an operator's attribute."""
    if isinstance(value, tuple | list):
        return set().union(*map(_symbols, value))
    return symbols_of(value)


def bytes_strides(t: TensorType) -> tuple[int, ...]:
    """Strides in bytes of an array in C order."""
    return tuple(s * t.dtype.itemsize for s in contiguous_strides(t.shape))
