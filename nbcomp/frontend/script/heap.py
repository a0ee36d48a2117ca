"""The objects that a program has in reach of its variables, and how what they hold changes.

Knows how objects lead to others; what each holds, and how that is put back, is of `entries`.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nbcomp.frontend.script.entries import (
    CELL,
    OTHER,
    Entries,
    State,
    is_ours,
    kinds_of,
    may_change,
    referents,
)

Named = tuple[str, Any]


@dataclass(frozen=True)
class Held:
    """An object with entries.  name: how the program reaches it."""

    value: Any = field(compare=False)
    entries: Entries
    identity: int
    name: str = field(compare=False)

    def state(self) -> State:
        """What it holds now."""
        return self.entries.state(self.value)

    def put(self, state: State) -> None:
        """Make it hold that.  Raises `Unsupported` for what can only be compared."""
        self.entries.put(self.value, state)

    def described(self) -> str:
        """Which object it is, for a message."""
        of = f" `{self.name.rstrip('.')}`" if self.name else ""
        kind = "object" if self.name.endswith(".") else type(self.value).__name__
        return f"the {kind}{of}" if self.entries is not CELL else f"the variable{of}"

    def called(self, state: State, k: int) -> str:
        """The name of an entry."""
        return self.entries.name(self.name, state, k)


@dataclass(frozen=True)
class Slot:
    """One entry of an object, which is used like a variable."""

    held: Held
    index: int
    name: str = field(compare=False)

    def get(self) -> Any:
        """Its value now."""
        return self.held.state().values[self.index]

    def set(self, value: Any) -> None:
        """Replace the value."""
        state = self.held.state()
        values = (*state.values[: self.index], value, *state.values[self.index + 1 :])
        self.held.put(State(state.shape, values))


class Heap:
    """What the objects in reach of some variables hold at one moment.

    own: ids of cells that are not looked into, as their contents are among the variables.
    leaves: everything in reach that is nbcomp's own: what stands for arrays and numbers.
    """

    def __init__(self, variables: Mapping[str, Any], own: frozenset[int] = frozenset()) -> None:
        self.before: dict[Held, State] = {}
        self.leaves: list[Any] = []
        for name, value in reach(variables.items(), own):
            kinds = kinds_of(value)
            if is_ours(value):
                self.leaves.append(value)
            for kind in kinds:
                held = Held(value, kind, id(value), name)
                self.before[held] = held.state()

    def changed(self) -> dict[Held, State]:
        """What has changed since, as it is now."""
        now = {held: held.state() for held in self.before}
        return {held: s for held, s in now.items() if not s.same(self.before[held])}

    def restore(self) -> None:
        """Everything as it was.  Raises `Unsupported` for what cannot be put back."""
        for held in self.changed():
            held.put(self.before[held])


def reach(roots: Iterable[Named], own: frozenset[int] = frozenset()) -> Iterator[tuple[str, Any]]:
    """Each object in reach once, with a name: what can change, and leaves of nbcomp's own."""
    seen: set[int] = set()
    stack = list(roots)[::-1]
    while stack:
        name, value = stack.pop()
        if id(value) in seen or id(value) in own or not may_change(value):
            continue
        seen.add(id(value))
        yield name, value
        if not is_ours(value):
            stack.extend(list(_links(name, value))[::-1])


def _links(name: str, value: Any) -> Iterator[Named]:
    """What an object leads to."""
    yield from _fixed_links(name, value)
    attributes = _attributes(value)
    if attributes is not None:
        yield f"{name}.", attributes
    for kind in kinds_of(value):
        if kind is OTHER:
            yield from ((name, part) for part in _parts(value))
        else:
            state = kind.state(value)
            yield from ((kind.name(name, state, k), v) for k, v in enumerate(state.values))


def _fixed_links(name: str, value: Any) -> Iterator[Named]:
    """What an object leads to always."""
    match value:
        case types.FunctionType():
            yield from zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
            yield from ((name, part) for part in (value.__defaults__, value.__kwdefaults__))
        case types.MethodType():
            yield from ((name, part) for part in (value.__func__, value.__self__))
        case types.BuiltinFunctionType() | types.MethodWrapperType():
            yield name, value.__self__
        case functools.partial():
            yield from ((name, part) for part in (value.func, value.args, value.keywords))
        case tuple() | frozenset():
            yield from ((f"{name}[{k}]", part) for k, part in enumerate(value))
        case BaseException():
            yield name, value.args


def _attributes(value: Any) -> dict[str, Any] | None:
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return found if type(found) is dict else None


def _parts(value: Any) -> Iterator[Any]:
    """The objects that one leads to which can only be compared."""
    if isinstance(value, types.GeneratorType):
        if value.gi_frame is not None:
            yield from (*value.gi_frame.f_locals.values(), value.gi_yieldfrom)
    elif not isinstance(value, np.ndarray):
        yield from referents(value)
    elif value.dtype.hasobject:
        yield from value.flat
