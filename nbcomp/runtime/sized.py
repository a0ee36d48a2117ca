"""Plans in which lengths are open: which lengths a call has, whether the plan takes them, and the
plan for just these lengths.

A plan's numbers may be sizes: formulas of the lengths of its arguments' axes.  `settled` puts
numbers in their place, which takes microseconds where compiling takes milliseconds, and keeps the
plans of the lengths seen last.  Knows plans; how a plan is run is not its concern.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nbcomp.runtime.plan import WHOLE, ArrayGuard, Plan, Source
from nbcomp.settling import Lengths, numbers
from nbcomp.sizes import Symbol, evaluated

KEPT = 32  # plans of the lengths seen last


def lengths(
    plan: Plan, resolve: Callable[[Source], Any], check: bool = True
) -> dict[Symbol, int] | str:
    """The open lengths in a call; or why the plan does not take them (if that is to be checked), in
    the user's words."""
    assert plan.open is not None
    found: dict[Symbol, int] = {}
    for symbol, index, axis in plan.open.lengths:
        guard = plan.guards[index]
        value = resolve(guard.source)
        where = guard.source.describe()
        if axis == WHOLE:
            if type(value) is not int:
                return f"{where} was of type int and is now of type {type(value).__name__}"
            found[symbol] = value
            continue
        assert isinstance(guard, ArrayGuard)
        if not isinstance(value, np.ndarray) or value.ndim != len(guard.shape):
            return f"{where} is no array of {len(guard.shape)} axes"
        n = value.shape[axis]
        if found.setdefault(symbol, n) != n:
            first = plan.describe(symbol)
            return f"axis {axis} of {where} has length {n}, but {first} is {found[symbol]}"
    return (plan.open.why_not(found, plan.describe) if check else "") or found


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


def guards_with(plan: Plan, values: Lengths) -> Plan:
    """The plan with its guards for these lengths, taken or not: good for nothing but to ask
    whether they hold.  (The rest may have no value: 1 / n of no rows.)"""
    return replace(plan, open=None, guards=numbers(plan.guards, values))
