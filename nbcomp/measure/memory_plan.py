"""The memory plan of a compiled program as a timeline: every buffer over the steps.

Knows programs; it must not know how they run.
"""

from __future__ import annotations

import math
from typing import Literal

from nbcomp.compiled import Compiled
from nbcomp.lowering.program import ALIGN, KernelStep, LibraryStep, live_ranges
from nbcomp.measure.roofline import Held, Memory
from nbcomp.runtime.plan import ArrayGuard

Role = Literal["input", "constant", "output", "temp"]


def memory_plan(compiled: Compiled) -> Memory:
    """What a call holds, and when each buffer is first and last touched."""
    program = compiled.program
    names, sizes = _described(compiled)
    lives = live_ranges(program.steps, range(program.slots))
    roles = _roles(compiled)
    buffers = [
        Held(names[slot], sizes[slot], program.temps.get(slot), *lives[slot], roles[slot])
        for slot in sorted(lives)
    ]
    temps = [b.bytes for b in buffers if b.role == "temp"]
    return Memory(
        peak=sum(b.bytes for b in buffers if b.role != "temp") + program.arena,
        arena=program.arena,
        apart=sum(-(-n // ALIGN) * ALIGN for n in temps),
        buffers=tuple(buffers),
        steps=step_names(compiled),
    )


def step_names(compiled: Compiled) -> tuple[str, ...]:
    """What each step runs: a kernel, or a routine of NumPy."""
    return tuple(
        step.kernel.name if isinstance(step, KernelStep) else f"numpy.{step.node.op.name}"
        for step in compiled.program.steps
    )


def _roles(compiled: Compiled) -> dict[int, Role]:
    program = compiled.program
    inputs = range(len(compiled.captured.inputs))  # also where a result is written to one
    roles: dict[int, Role] = dict.fromkeys(range(program.slots), "temp")
    kept = [step for step in program.steps if isinstance(step, LibraryStep) and step.kept]
    roles |= dict.fromkeys((s for step in kept for s, _ in step.outputs), "constant")
    roles |= dict.fromkeys(program.constants, "constant")
    roles |= dict.fromkeys((s for s, _ in program.outputs if s not in program.temps), "output")
    return roles | dict.fromkeys(inputs, "input")


def _described(compiled: Compiled) -> tuple[dict[int, str], dict[int, int]]:
    """The name and the bytes of every slot."""
    program, names, sizes = compiled.program, dict[int, str](), dict[int, int]()

    def note(slot: int, name: str, size: int) -> None:
        names.setdefault(slot, name)
        sizes[slot] = max(sizes.get(slot, 0), size)

    arrays = [guard for guard in compiled.plan.guards if isinstance(guard, ArrayGuard)]
    held = {guard.slot: math.prod(guard.shape) * guard.dtype.itemsize for guard in arrays}
    for slot, node in enumerate(compiled.captured.inputs):
        note(slot, node.name or f"argument {slot}", held.get(slot) or node.type.nbytes)
    for slot, array in program.constants.items():
        note(slot, "a constant", array.nbytes)
    results = compiled.graph.outputs
    for number, ((slot, t), node) in enumerate(zip(program.outputs, results, strict=True)):
        note(slot, node.name or ("result" if len(results) == 1 else f"result {number}"), t.nbytes)
    for step in program.steps:
        if isinstance(step, KernelStep):
            kernel = compiled.kernel_of(step)
            for buffer in (*(kernel.lowered.buffers if kernel else ()), *step.kernel.buffers):
                if buffer.memory in step.slot_of:  # a schedule may do without it
                    note(step.slot_of[buffer.memory], buffer.name, buffer.nbytes)
        else:
            for slot, t in step.outputs:
                note(slot, step.node.name or step.node.op.name, t.nbytes)
    return names, sizes
