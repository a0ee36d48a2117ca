"""Plans run from Python: the meaning the native entry must agree with.

`execute` runs a plan whose guards hold.  Where the native entry cannot be used this is how every
call is run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nbcomp.runtime import kept, memory, pool
from nbcomp.runtime.emit import address
from nbcomp.runtime.plan import (
    KEPT,
    ArrayGuard,
    Given,
    HostStep,
    LeftToPython,
    Output,
    Plan,
    ScalarGuard,
    Step,
    View,
)
from nbcomp.runtime.validity import reach, resolve, settled


class StepFailed(Exception):
    """A step returned a status other than 0: which step, and the status."""

    def __init__(self, step: int, status: int) -> None:
        super().__init__(f"step {step} returned status {status}")
        self.step, self.status = step, status


def execute(plan: Plan, args: tuple[Any, ...]) -> Any:
    """Run a plan whose guards hold: its result, in the form the plan says.

    Raises StepFailed when a step returns a status, MemoryError, and whatever a host step raises.
    """
    plan = settled(plan, args)
    frame = framed(plan, args)
    for number, step in enumerate(plan.steps):
        if status := _status(prepared(step, frame)):
            raise StepFailed(number, status)
    results = [
        value[()] if isinstance(output, Output) and output.scalar else value
        for output, value in zip(plan.outputs, frame.results, strict=True)
    ]
    if plan.finish:
        return plan.finish(tuple(results))
    if plan.single:
        return results[0] if results else None
    return tuple(results)


@dataclass(frozen=True)
class Frame:
    """The memory of one call: an address for each slot, the results, and what must stay alive."""

    slots: list[int]
    results: list[Any]
    keep: list[Any]


def framed(plan: Plan, args: tuple[Any, ...]) -> Frame:
    """Memory for a call of a plan whose guards hold."""
    slots: list[int] = [0] * plan.slots
    keep = _place(plan, args, slots)
    return Frame(slots, [_new(output, slots, args) for output in plan.outputs], keep)


def _status(call: Callable[[], int]) -> int:
    """What a step gives; loops that may run for ever raise from inside what a handler of signals
    raises, KeyboardInterrupt above all."""
    try:
        return call()
    except SystemError as error:
        raise (error.__cause__ or error) from None


def prepared(step: Step | HostStep, frame: Frame) -> Callable[[], int]:
    """A step of a plan on the memory of one call, ready to be run any number of times: its status.

    The frame must stay alive meanwhile.
    """
    if isinstance(step, HostStep):
        return partial(_host, step, frame.slots)
    buffers = (ctypes.c_void_p * max(len(step.slots), 1))(*(frame.slots[i] for i in step.slots))
    params = (ctypes.c_int64 * max(len(step.params), 1))(*step.params)
    return pool.prepared(step.function, buffers, params, step.extent, step.grain, step.round)


def _place(plan: Plan, args: tuple[Any, ...], slots: list[int]) -> list[Any]:
    """Inputs, constants and temps to their slots; gives what must stay alive meanwhile."""
    keep: list[Any] = []
    for holder in plan.changed:
        setattr(resolve(holder, args), KEPT, None)
    for one in plan.kept:  # before the arrays are held here too: who has them may write to them
        keep.append(kept.value(one, resolve(one.holder, args)))
        slots[one.guard.slot] = address(keep[-1])
    for guard in plan.guards:
        if isinstance(guard, ArrayGuard | ScalarGuard):
            value = resolve(guard.source, args)
            storage = value if isinstance(guard, ArrayGuard) else _stored(value)
            keep.append(storage)
            slots[guard.slot] = address(storage)
    for slot, array in plan.constants.items():
        slots[slot] = address(array)
    if plan.arena:
        keep.append(memory.empty(np.dtype(np.uint8), (max(plan.arena, memory.LARGE),)))
        for slot, offset in plan.temps.items():
            slots[slot] = address(keep[-1]) + offset
    return keep


def _stored(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, np.generic):
        return np.array(value)
    kind: Any = {float: np.float64, int: np.int64, bool: np.uint8}[type(value)]
    return np.array(value, kind)


def _new(output: Output | Given, slots: list[int], args: tuple[Any, ...]) -> Any:
    if isinstance(output, Given):
        return resolve(output.source, args)
    array = memory.empty(output.dtype, output.shape, output.strides)
    slots[output.slot] = address(array)
    return array


def _host(step: HostStep, slots: list[int]) -> int:
    """Call a routine on views of the slots: 0, or 1 where Python is to run the call."""
    try:
        _call_host(step, slots)
    except LeftToPython:
        return 1
    return 0


def _call_host(step: HostStep, slots: list[int]) -> None:
    inputs = [array_at(slots, view) for view in step.inputs]
    if step.into:
        step.function(*inputs, out=array_at(slots, step.outputs[0]))
        return
    result = step.function(*inputs)
    results = result if len(step.outputs) != 1 else (result,)
    for view, value in zip(step.outputs, results, strict=True):
        np.copyto(array_at(slots, view), value)


def array_at(slots: list[int], view: View) -> np.ndarray[Any, Any]:
    """An array over memory that the plan owns, without copying."""
    slot, dtype, shape, strides = view
    if 0 in shape:
        return np.empty(shape, dtype)
    low, high = reach(shape, strides)
    size = high - low + dtype.itemsize
    memory_: Any = (ctypes.c_char * size).from_address(slots[slot] + low)
    return np.ndarray(shape, dtype, memory_, -low, strides)
