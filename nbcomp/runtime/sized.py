"""Plans in which lengths are open: which lengths a call has, whether the plan takes them, and the
plan for just these lengths.

A plan's numbers may be sizes: formulas of the lengths of its arguments' axes.  `settled` puts
numbers in their place, which takes microseconds where compiling takes milliseconds, and keeps the
plans of the lengths seen last.  Knows plans; how a plan is run is not its concern.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from nbcomp.runtime.plan import ArrayGuard, Plan, Source
from nbcomp.sizes import Size, Symbol, evaluated

KEPT = 32  # plans of the lengths seen last

Lengths = Mapping[Symbol, int]


def lengths(
    plan: Plan, resolve: Callable[[Source], Any], check: bool = True
) -> dict[Symbol, int] | str:
    """The open lengths in a call; or why the plan does not take them (if that is to be checked), in
    the user's words."""
    assert plan.open is not None
    found: dict[Symbol, int] = {}
    for symbol, index, axis in plan.open.lengths:
        guard = plan.guards[index]
        assert isinstance(guard, ArrayGuard)
        value = resolve(guard.source)
        where = guard.source.describe()
        if not isinstance(value, np.ndarray) or value.ndim != len(guard.shape):
            return f"{where} is no array of {len(guard.shape)} axes"
        n = value.shape[axis]
        if found.setdefault(symbol, n) != n:
            first = plan.describe(symbol)
            return f"has axis {axis} of {where} of length {n}, but {first} is {found[symbol]}"
    return (plan.open.why_not(found) if check else "") or found


def settled(plan: Plan, values: Lengths) -> Plan:
    """The plan for these lengths, which it takes."""
    assert plan.open is not None
    key = tuple(values[symbol] for symbol in plan.open.symbols)
    known = plan.open.settled
    if key not in known:
        if len(known) >= KEPT:
            known.pop(next(iter(known)), None)
        known[key] = with_numbers(plan, values)
    return known[key]


def with_numbers(plan: Plan, values: Lengths) -> Plan:
    """The plan for these lengths, taken or not."""
    change: dict[str, Any] = {"open": None, "seconds": float(evaluated(plan.seconds, values))}
    for name in ("guards", "outputs", "steps", "temps", "arena", "finish"):
        change[name] = numbers(getattr(plan, name), values)
    return replace(plan, **change)


def numbers(value: Any, values: Lengths) -> Any:
    """Plain data with numbers in place of sizes."""
    if isinstance(value, Size):
        return value.at(values)
    if isinstance(value, tuple | list):
        return type(value)(numbers(v, values) for v in value)
    if isinstance(value, dict):
        return {k: numbers(v, values) for k, v in value.items()}
    kind: Any = type(value)
    names = _walked(kind)
    if not names:
        return value
    old = {name: getattr(value, name) for name in names}
    new = {name: numbers(v, values) for name, v in old.items()}
    same = all(new[name] is old[name] or not _differs(old[name], new[name]) for name in names)
    return value if same else replace(value, **new)


def has_sizes(value: Any) -> bool:
    """Whether there is a size in plain data."""
    if isinstance(value, Size):
        return True
    if isinstance(value, tuple | list):
        return any(map(has_sizes, value))
    if isinstance(value, dict):
        return any(map(has_sizes, value.values()))
    kind: Any = type(value)
    return any(has_sizes(getattr(value, name)) for name in _walked(kind))


def _differs(old: Any, new: Any) -> bool:
    """Whether something in this plain data was a size."""
    if isinstance(old, Size):
        return True
    if isinstance(old, tuple | list):
        return any(map(_differs, old, new))
    if isinstance(old, dict):
        return any(_differs(v, new[k]) for k, v in old.items())
    return new is not old


@cache
def _walked(kind: Any) -> tuple[str, ...]:
    """The fields of our own plain data that may hold sizes."""
    # Sources and known values hold objects of the user's.
    others = issubclass(kind, Source) or kind.__name__ == "Static"
    if others or not kind.__module__.startswith("nbcomp.") or not is_dataclass(kind):
        return ()
    return tuple(f.name for f in fields(kind) if f.init)
