"""What objects hold: entries that can be read, compared and put back.

Lists, dicts, attributes and the variables of closures have entries, one by one.  Of everything else
that can change (a set, an iterator, a buffer) it is known whether it did.  Knows Python's object
model; nothing of graphs, nor of how objects are reached.
"""

from __future__ import annotations

import collections
import collections.abc
import functools
import gc
import types
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.frontend.location import here
from nbcomp.frontend.objects import Shadow

ATOMS = (type(None), bool, int, float, complex, str, bytes, range)
UNCHANGING = (
    *(*ATOMS, type(...), type(NotImplemented), slice, type, types.ModuleType),
    *(types.CodeType, types.BuiltinFunctionType, np.dtype, np.generic, np.ufunc),
)
MADE_IN_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE, without
IMMUTABLE_TYPE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE


@dataclass(frozen=True, eq=False)
class State:
    """What an object is at one moment: entries, and what must be the same to compare them."""

    shape: tuple[Any, ...]
    values: tuple[Any, ...]

    def alike(self, other: State) -> bool:
        """Whether the entries of both belong together one by one."""
        return _equal(self.shape, other.shape)

    def same(self, other: State) -> bool:
        """Whether nothing changed between them."""
        pairs = zip(self.values, other.values, strict=False)
        return self.alike(other) and all(unchanged(a, b) for a, b in pairs)


class Entries(ABC):
    """How objects of a kind hold their entries."""

    @abstractmethod
    def state(self, value: Any) -> State:
        """What it holds now."""

    @abstractmethod
    def put(self, value: Any, state: State) -> None:
        """Make it hold that."""

    @abstractmethod
    def name(self, of: str, state: State, k: int) -> str:
        """An entry as the program would write it."""


class _List(Entries):
    def state(self, value: Any) -> State:
        entries = tuple(list.__iter__(value))
        return State((len(entries),), entries)

    def put(self, value: Any, state: State) -> None:
        list.__setitem__(value, slice(None), list(state.values))

    def name(self, of: str, state: State, k: int) -> str:
        return f"{of}[{k}]"


class _Dict(Entries):
    def state(self, value: Any) -> State:
        kind = _dict_of(value)
        pairs = list(kind.items(value))
        return State(tuple(k for k, _ in pairs), tuple(v for _, v in pairs))

    def put(self, value: Any, state: State) -> None:
        kind = _dict_of(value)
        if not self.state(value).alike(state):
            kind.clear(value)
        for key, entry in zip(state.shape, state.values, strict=True):
            kind.__setitem__(value, key, entry)

    def name(self, of: str, state: State, k: int) -> str:
        key = state.shape[k]
        if of.endswith("."):  # the dict of an object's attributes
            return f"{of}{key}"
        return f"{of}[{key!r}]" if isinstance(key, ATOMS) else of


class _Cell(Entries):
    def state(self, value: Any) -> State:
        try:
            return State((True,), (value.cell_contents,))
        except ValueError:
            return State((False,), ())

    def put(self, value: Any, state: State) -> None:
        if state.values:
            (value.cell_contents,) = state.values
        elif self.state(value).values:
            del value.cell_contents

    def name(self, of: str, state: State, k: int) -> str:
        return of


class _Slots(Entries):
    """Attributes that are not kept in a dict."""

    def state(self, value: Any) -> State:
        found = [(m.__name__, m.__get__(value)) for m in _members(value) if _is_set(m, value)]
        return State(tuple(n for n, _ in found), tuple(v for _, v in found))

    def put(self, value: Any, state: State) -> None:
        wanted = dict(zip(state.shape, state.values, strict=True))
        for member in _members(value):
            if member.__name__ in wanted:
                member.__set__(value, wanted[member.__name__])
            elif _is_set(member, value):
                member.__delete__(value)

    def name(self, of: str, state: State, k: int) -> str:
        return f"{of}.{state.shape[k]}"


class _Other(Entries):
    """What can only be compared."""

    def state(self, value: Any) -> State:
        return State(tuple(_description(value)), ())

    def put(self, value: Any, state: State) -> None:
        if not self.state(value).same(state):
            raise Unsupported(
                f"a {type(value).__name__} that changes where values decide whether it does", here()
            )

    def name(self, of: str, state: State, k: int) -> str:
        return of


LIST, DICT, CELL, SLOTS, OTHER = _List(), _Dict(), _Cell(), _Slots(), _Other()


def unchanged(a: Any, b: Any) -> bool:
    """Whether an entry is still what it was."""
    if a is b:
        return True
    return type(a) is type(b) and type(a) in ATOMS and repr(a) == repr(b)


def _equal(a: Sequence[Any], b: Sequence[Any]) -> bool:
    if len(a) != len(b):
        return False
    for x, y in zip(a, b, strict=True):
        both = type(x) is tuple and type(y) is tuple
        if not (_equal(x, y) if both else unchanged(x, y)):
            return False
    return True


def is_ours(value: Any) -> bool:
    """Whether this is part of nbcomp, which has no entries of the program's.

    Always to be asked first: what stands for a number says it is one.
    """
    kind = type(value)
    return issubclass(kind, Shadow) or (kind.__module__ or "").startswith("nbcomp.")


def may_change(value: Any) -> bool:
    """Whether an object can change or leads to some that can, or is nbcomp's."""
    if not issubclass(type(value), UNCHANGING):
        return True
    if type(value) is not types.BuiltinFunctionType:
        return False
    return not isinstance(value.__self__, types.ModuleType | type | None)  # like `l.append`


def _native(value: Any) -> type:
    """The class not made by a `class` statement that an object is an instance of."""
    return next(
        c
        for c in type(value).__mro__
        if not c.__flags__ & MADE_IN_PYTHON or c.__flags__ & IMMUTABLE_TYPE
    )


def kinds_of(value: Any) -> list[Entries]:
    """How an object holds what it holds; several ways at once for a list with attributes."""
    if is_ours(value) or isinstance(value, tuple | frozenset):
        return []
    native, kinds = _native(value), list[Entries]()
    if issubclass(native, list):
        kinds.append(LIST)
    elif issubclass(native, dict):
        kinds.append(DICT)
    elif native is types.CellType:
        kinds.append(CELL)
    elif native is not object and not issubclass(native, _FOLLOWED):
        kinds.append(OTHER)
    if any(_members(value)) and native is not types.CellType:
        kinds.append(SLOTS)
    return kinds


_FOLLOWED = (
    *(types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial),
    *(types.MethodWrapperType, BaseException),
)


def _members(value: Any) -> tuple[Any, ...]:
    kind: Any = type(value)
    return _slots_of(kind)


@functools.lru_cache(maxsize=512)
def _slots_of(cls: Any) -> tuple[Any, ...]:
    """The slots of classes made by `class` statements."""
    found = [
        value
        for base in cls.__mro__
        if base.__flags__ & MADE_IN_PYTHON and "__slots__" in vars(base)
        for value in vars(base).values()
    ]
    return tuple(m for m in found if isinstance(m, types.MemberDescriptorType))


def _is_set(member: Any, value: Any) -> bool:
    try:
        member.__get__(value)
    except AttributeError:
        return False
    return True


def _dict_of(value: Any) -> Any:
    """The class whose methods keep this dict in order."""
    ordered = isinstance(value, collections.OrderedDict)
    return collections.OrderedDict if ordered else dict


# ------------------------------------------------------------------ what can only be compared


def _description(value: Any) -> Iterator[Any]:
    """Everything that tells whether an object has changed."""
    if isinstance(value, set):
        yield from list(set.__iter__(value))
    elif isinstance(value, types.GeneratorType):
        frame = value.gi_frame
        yield None if frame is None else frame.f_lasti
        if frame is not None:
            for name, local in list(frame.f_locals.items()):
                yield name
                yield local
    elif isinstance(value, np.ndarray):
        yield from (repr(value.dtype), value.shape)
        yield from list(value.flat) if value.dtype.hasobject else [value.tobytes()]
    else:
        reduced = _reduced(value)
        yield from _flat(reduced, {id(v) for v in referents(value)})


def referents(value: Any) -> list[Any]:
    return [v for v in gc.get_referents(value) if may_change(v)]


def _reduced(value: Any) -> Any:
    """What would be pickled of an object of Python's own; () for what has no state of its own.

    Raises `Unsupported` for an iterator that does not tell where it is.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # itertools, until 3.14
            return value.__reduce_ex__(4)
    except Exception:
        if isinstance(value, collections.abc.Iterator):
            raise Unsupported(
                f"a {type(value).__name__} in reach of what values decide", here()
            ) from None
        return ()


def _flat(value: Any, known: set[int]) -> Iterator[Any]:
    """The atoms of something that was made to be pickled, and the objects it refers to."""
    if isinstance(value, ATOMS) or id(value) in known:
        yield value
    elif isinstance(value, tuple | list):
        yield len(value)
        for part in value:
            yield from _flat(part, known)
    elif isinstance(value, dict):
        yield from _flat(list(value.items()), known)
    elif isinstance(value, collections.abc.Iterator):
        yield from _flat(list(value), known)
    else:
        yield value
