"""Whether a plan holds for a call, and in the user's words why not.

`resolve` finds the values that guards are about; `mismatch` checks them in order and `distance`
says how far the others are.  The native entry must agree with it.  Runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Sized
from functools import partial
from typing import Any

import numpy as np

from nbcomp.errors import an
from nbcomp.runtime import sized
from nbcomp.runtime.emit import address
from nbcomp.runtime.plan import (
    MISSING,
    ArrayGuard,
    Guard,
    LengthGuard,
    ObjectGuard,
    Plan,
    ScalarGuard,
    Source,
    ValueGuard,
    builtins_of,
    follow,
)
from nbcomp.settling import Lengths
from nbcomp.sizes import Size
from nbcomp.types import TensorType

SHORT = 60  # characters of a value in a reason


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
    found = _seen_lengths(plan, args)
    if isinstance(found, str):
        return found
    why_not = plan.open.why_not(found, plan.describe)
    if why_not:
        return mismatch(sized.guards_with(plan, found), args) or why_not
    return mismatch(sized.settled(plan, found), args)


def _seen_lengths(plan: Plan, args: tuple[Any, ...]) -> Lengths | str:
    """The open lengths in a call, whether the plan takes them or not; or why there are none."""
    try:
        return sized.lengths(plan, partial(resolve, args=args), check=False)
    except Exception as error:  # whatever the user's own lookup raises
        return f"an array is not there any more ({type(error).__name__}: {error})"


def why_none(plans: Sequence[Plan], args: tuple[Any, ...]) -> str | None:
    """Why none of some plans is valid for this call: what the nearest says, of equally near ones
    the newest; None if there are none, or one is valid."""
    nearest = min(reversed(plans), key=lambda plan: distance(plan, args), default=None)
    return None if nearest is None else mismatch(nearest, args)


def distance(plan: Plan, args: tuple[Any, ...]) -> int:
    """How far a call is from those the plan is valid for: a number of things that differ."""
    if len(args) != plan.positional:
        return FAR
    if plan.open is not None:
        found = _seen_lengths(plan, args)
        if isinstance(found, str):
            return FAR
        plan = sized.guards_with(plan, found)
    return sum(_distance(guard, args) for guard in plan.guards)


FAR = 1_000  # what is of another kind altogether


def _distance(guard: Guard, args: tuple[Any, ...]) -> int:
    """The same of one guard: of an array its dtype, rank, shape and strides each count."""
    try:
        value = resolve(guard.source, args)
    except Exception:  # whatever the user's own lookup raises
        return FAR
    if isinstance(guard, ArrayGuard) and type(value) is np.ndarray:
        same = (
            value.dtype == guard.dtype,
            value.ndim == len(guard.shape),
            value.shape == guard.shape,
            value.ndim == len(guard.shape) and _same_strides(guard, value.strides),
        )
        return same.count(False)
    return FAR if _CHECKS[type(guard)](guard, value) else 0


def fits_but_for_lengths(plan: Plan, args: tuple[Any, ...]) -> bool:
    """Whether the guards would hold if any length were taken where one is open."""
    if plan.open is None or len(args) != plan.positional:
        return False
    found = _seen_lengths(plan, args)
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
    if guard.object is MISSING:
        return "is there now"
    if guard.object is None or value is None:
        return f"was {short(guard.object)} and is now {short(value)}"
    return "is another object now"


def _value(guard: ValueGuard, value: Any) -> str | None:
    if isinstance(guard.value, Size):  # any int: what is assumed of it is said elsewhere
        return None if type(value) is int else f"was an int and is now {short(value)}"
    if same(guard.value, value):
        return None
    return f"was {short(guard.value)} and is now {short(value)}"


def short(value: Any) -> str:
    """A value in a line: of arrays, and of what is long, what it is."""
    if isinstance(value, np.ndarray):
        return f"an array, {TensorType(value.dtype, value.shape)}"
    text = repr(value)
    if len(text) <= SHORT:
        return text
    many = f" of {len(value)}" if isinstance(value, Sized) else ""
    return f"{an(type(value).__name__)}{many}"


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
    low, high = reach(guard.shape, guard.strides)
    return low, high + guard.dtype.itemsize


def reach(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int]:
    """Offsets of the first and the last element that are reached."""
    steps = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    return sum(s for s in steps if s < 0), sum(s for s in steps if s > 0)
