"""Plans run from Python: the meaning the native entry must agree with.

`mismatch` says why a plan does not hold for a call, in the user's words; `execute` runs one whose
guards hold.  Where the native entry cannot be used this is also how every call is run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nbcomp.runtime import kept, memory, pool, sized
from nbcomp.runtime.emit import address
from nbcomp.runtime.plan import (
    KEPT,
    MISSING,
    ArrayGuard,
    Given,
    Guard,
    HostStep,
    LeftToPython,
    LengthGuard,
    ObjectGuard,
    Output,
    Plan,
    ScalarGuard,
    Source,
    Step,
    ValueGuard,
    View,
    builtins_of,
    follow,
)
from nbcomp.settling import Lengths
from nbcomp.sizes import Size


class StepFailed(Exception):
    """A step returned a status other than 0: which step, and the status."""

    def __init__(self, step: int, status: int) -> None:
        super().__init__(f"step {step} returned status {status}")
        self.step, self.status = step, status


# Sources


def resolve(source: Source, args: tuple[Any, ...]) -> Any:
    """The value a source has now.

    Raises NameError, KeyError, IndexError, AttributeError, ... as the same lookup in Python does.
    """
    return follow(source.path, _root(source, args))


def _root(source: Source, args: tuple[Any, ...]) -> Any:
    if source.kind == "argument":
        return args[source.key]
    if source.kind == "object":
        return source.root
    if source.kind == "cell":
        return source.root.cell_contents
    namespace, name = source.root, source.key
    if name in namespace:
        return namespace[name]
    fallback = builtins_of(namespace)
    if name in fallback:
        return fallback[name]
    raise NameError(f"name {name!r} is not defined")


# Guards


def matches(plan: Plan, args: tuple[Any, ...]) -> bool:
    """Whether the plan is valid for this call."""
    return mismatch(plan, args) is None


def mismatch(plan: Plan, args: tuple[Any, ...]) -> str | None:
    """Why the plan is not valid for this call, in the user's words; None when it is."""
    if len(args) != plan.positional:
        return f"it was compiled for {plan.positional} arguments, not {len(args)}"
    if plan.open is not None:
        return _mismatch_of_open(plan, args)
    values = []
    for guard in plan.guards:
        try:
            value = resolve(guard.source, args)
        except Exception as error:  # whatever the user's own lookup raises
            return (
                f"{guard.source.describe()} is not there any more ({type(error).__name__}: {error})"
            )
        reason = _CHECKS[type(guard)](guard, value)
        if reason:
            return f"{guard.source.describe()} {reason}"
        values.append(value)
    return _overlap(plan, values)


def _mismatch_of_open(plan: Plan, args: tuple[Any, ...]) -> str | None:
    """As `mismatch`.  What no other lengths would mend (a dtype, strides) is said first: for other
    lengths there may be other plans."""
    assert plan.open is not None
    try:
        found = sized.lengths(plan, partial(resolve, args=args), check=False)
    except Exception as error:  # whatever the user's own lookup raises
        return f"an array is not there any more ({type(error).__name__}: {error})"
    if isinstance(found, str):
        return found
    why_not = plan.open.why_not(found, plan.describe)
    if why_not:
        return mismatch(sized.guards_with(plan, found), args) or why_not
    return mismatch(sized.settled(plan, found), args)


def fits_but_for_lengths(plan: Plan, args: tuple[Any, ...]) -> bool:
    """Whether the guards would hold if any length were taken where one is open."""
    if plan.open is None or len(args) != plan.positional:
        return False
    found = sized.lengths(plan, partial(resolve, args=args), check=False)
    return not isinstance(found, str) and mismatch(sized.guards_with(plan, found), args) is None


def lengths(plan: Plan, args: tuple[Any, ...]) -> Lengths:
    """The open lengths of a call that a plan takes."""
    found = sized.lengths(plan, partial(resolve, args=args))
    assert not isinstance(found, str), found
    return found


def settled(plan: Plan, args: tuple[Any, ...]) -> Plan:
    """A plan whose guards hold, for the lengths of this call."""
    return plan if plan.open is None else sized.settled(plan, lengths(plan, args))


def changes(plan: Plan) -> Iterator[str]:
    """What the plan counts on, arguments aside, and no longer finds: a reason for each place."""
    for guard in plan.guards:
        if guard.source.kind == "argument":
            continue
        try:
            reason = _CHECKS[type(guard)](guard, resolve(guard.source, ()))
        except Exception as error:  # whatever the user's own lookup raises
            reason = f"is not there any more ({type(error).__name__}: {error})"
        if reason:
            yield f"{guard.source.describe()} {reason}"


def is_replaced(plan: Plan) -> bool:
    """Whether an object that the plan counts on, arguments aside, is another one now."""
    for guard in plan.guards:
        if isinstance(guard, ObjectGuard) and guard.source.kind != "argument":
            try:
                if resolve(guard.source, ()) is not guard.object:
                    return True
            except Exception:  # whatever the user's own lookup raises
                return True
    return False


def _overlap(plan: Plan, values: list[Any]) -> str | None:
    for pair in plan.disjoint:
        one, two = (array_guard(plan, i) for i in pair)
        if 0 in one.shape or 0 in two.shape:
            continue
        ranges = []
        for i, guard in zip(pair, (one, two), strict=True):
            low, high = extent(guard)
            start = address(values[i])
            ranges.append((start + low, start + high))
        if ranges[0][1] > ranges[1][0] and ranges[1][1] > ranges[0][0]:
            names = (one.source.describe(), two.source.describe())
            return f"{names[0]} and {names[1]} share memory, and one of them is written to"
    return None


def _array(guard: ArrayGuard, value: Any) -> str | None:
    if type(value) is not np.ndarray:
        return f"was an array and is now of type {type(value).__name__}"
    if value.dtype != guard.dtype:
        return f"had dtype {guard.dtype} and now has {value.dtype}"
    if value.shape != guard.shape:
        return f"had shape {guard.shape} and now has {value.shape}"
    if not _same_strides(guard, value.strides):
        return f"had strides {guard.strides} and now has {value.strides} (bytes)"
    if not value.flags.aligned:
        return "is not aligned in memory"
    if guard.writable and not value.flags.writeable:
        return "is read-only, but the function writes to it"
    return None


def _same_strides(guard: ArrayGuard, strides: tuple[int, ...]) -> bool:
    """Strides of axes of length 1, and of empty arrays, reach nothing and may be anything."""
    if 0 in guard.shape:
        return True
    triples = zip(guard.shape, guard.strides, strides, strict=True)
    return all(n == 1 or wanted == have for n, wanted, have in triples)


def _scalar(guard: ScalarGuard, value: Any) -> str | None:
    if type(value) is not guard.type:
        return f"was of type {guard.type.__name__} and is now of type {type(value).__name__}"
    if type(value) is int and not guard.low <= value <= guard.high:
        return f"is {value}, outside of {guard.low} … {guard.high} it was compiled for"
    return None


def _object(guard: ObjectGuard, value: Any) -> str | None:
    if value is guard.object:
        return None
    if value is MISSING:
        return "is not there any more"
    return "is there now" if guard.object is MISSING else "is another object now"


def _value(guard: ValueGuard, value: Any) -> str | None:
    if isinstance(guard.value, Size):  # any int: what is assumed of it is said elsewhere
        return None if type(value) is int else f"was an int and is now {value!r}"
    return None if same(guard.value, value) else f"was {guard.value!r} and is now {value!r}"


def same(expected: Any, value: Any) -> bool:
    """Exactly the same type and value: NaN is NaN, and -0.0 is not 0.0."""
    if type(expected) is not type(value):
        return False
    if isinstance(expected, tuple | list):
        return len(expected) == len(value) and all(map(same, expected, value))
    if isinstance(expected, complex | np.complexfloating):
        return same(expected.real, value.real) and same(expected.imag, value.imag)
    if isinstance(expected, float | np.floating):
        both_nan = bool(expected != expected and value != value)
        return both_nan or bool(expected == value and np.signbit(expected) == np.signbit(value))
    return bool(expected is value or expected == value)


def _length(guard: LengthGuard, value: Any) -> str | None:
    kind: type = type(value)
    if kind is not guard.type:
        return f"was of type {guard.type.__name__} and is now of type {type(value).__name__}"
    if len(value) != guard.length:
        return f"had {guard.length} entries and now has {len(value)}"
    if guard.type is dict and tuple(value) != guard.keys:
        return "has other keys (or the same in another order)"
    return None


_CHECKS: dict[type[Guard], Callable[[Any, Any], str | None]] = {
    ArrayGuard: _array,
    ScalarGuard: _scalar,
    ObjectGuard: _object,
    ValueGuard: _value,
    LengthGuard: _length,
}


def array_guard(plan: Plan, index: int) -> ArrayGuard:
    """The guard a `disjoint` pair means."""
    guard = plan.guards[index]
    assert isinstance(guard, ArrayGuard)
    return guard


def extent(guard: ArrayGuard) -> tuple[int, int]:
    """First byte, and byte after the last, relative to the data pointer (not for empty arrays)."""
    low, high = _reach(guard.shape, guard.strides)
    return low, high + guard.dtype.itemsize


def _reach(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int]:
    """Offsets of the first and the last element that are reached."""
    steps = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    return sum(s for s in steps if s < 0), sum(s for s in steps if s > 0)


# Running


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
    """What a step gives; loops that may run for ever raise KeyboardInterrupt from inside."""
    try:
        return call()
    except SystemError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise


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
    low, high = _reach(shape, strides)
    size = high - low + dtype.itemsize
    memory_: Any = (ctypes.c_char * size).from_address(slots[slot] + low)
    return np.ndarray(shape, dtype, memory_, -low, strides)
