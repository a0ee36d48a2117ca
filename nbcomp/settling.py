"""Numbers in the place of sizes, in plain data: plans, kernels, operators.

Knows formulas and our own data classes, not what they mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

from nbcomp.sizes import Size, Symbol, symbols_of

Lengths = Mapping[Symbol, int]
# Sources and known values hold objects of the user's; nodes lead to a whole graph.
NOT_WALKED = ("Source", "Static", "Node")


def lengths_of(pairs: Iterable[tuple[tuple[Any, ...], tuple[int, ...]]]) -> dict[Symbol, int]:
    """The values of symbols, from shapes that have them and the shapes of arrays."""
    found: dict[Symbol, int] = {}
    for shape, lengths in pairs:
        for size, n in zip(shape, lengths, strict=True):
            found |= dict.fromkeys(symbols_of(size), n)
    return found


def numbers(value: Any, values: Lengths, made: dict[int, Any] | None = None) -> Any:
    """Plain data with numbers in place of sizes; what has none stays the same object.

    made: what was made of what, by its id, so that what is shared stays shared.
    """
    if isinstance(value, Size):
        return value.at(values)
    known = {} if made is None else made
    if id(value) not in known:
        known[id(value)] = _numbers(value, values, known)
    return known[id(value)]


def _numbers(value: Any, values: Lengths, known: dict[int, Any]) -> Any:
    if isinstance(value, tuple | list):
        new = [numbers(v, values, known) for v in value]
        same = all(a is b for a, b in zip(value, new, strict=True))
        return value if same else type(value)(new)
    if isinstance(value, dict):
        changed = {k: numbers(v, values, known) for k, v in value.items()}
        return value if all(changed[k] is v for k, v in value.items()) else changed
    kind: Any = type(value)
    members = {name: getattr(value, name) for name in _walked(kind)}
    changed = {name: numbers(v, values, known) for name, v in members.items()}
    same = all(changed[name] is v for name, v in members.items())
    return value if same else replace(value, **changed)


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


@cache
def _walked(kind: Any) -> tuple[str, ...]:
    """The fields of our own plain data that may hold sizes."""
    ours = kind.__module__.startswith("nbcomp.") and is_dataclass(kind)
    if not ours or kind.__name__ in NOT_WALKED:
        return ()
    return tuple(f.name for f in fields(kind) if f.init)
