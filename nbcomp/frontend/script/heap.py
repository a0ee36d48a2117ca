"""The objects that a program has in reach of its variables, what they hold, and how that changes.

Lists, dicts, attributes and the variables of closures have entries, which can be compared, put back
and replaced one by one.  Of everything else that can change (a set, an iterator, a buffer) it is
known whether it did.  Knows Python's object model; nothing of graphs.
"""

from __future__ import annotations

import collections
import collections.abc
import functools
import gc
import types
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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

Named = tuple[str, Any]


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
            kinds = _kinds(value)
            if _is_ours(value):
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
        if id(value) in seen or id(value) in own or not _may_change(value):
            continue
        seen.add(id(value))
        yield name, value
        if not _is_ours(value):
            stack.extend(list(_links(name, value))[::-1])


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


def _is_ours(value: Any) -> bool:
    """Whether this is part of nbcomp, which has no entries of the program's.

    Always to be asked first: what stands for a number says it is one.
    """
    kind = type(value)
    return issubclass(kind, Shadow) or (kind.__module__ or "").startswith("nbcomp.")


def _may_change(value: Any) -> bool:
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


def _kinds(value: Any) -> list[Entries]:
    """How an object holds what it holds; several ways at once for a list with attributes."""
    if _is_ours(value) or isinstance(value, tuple | frozenset):
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


def _links(name: str, value: Any) -> Iterator[Named]:
    """What an object leads to."""
    yield from _fixed_links(name, value)
    attributes = _attributes(value)
    if attributes is not None:
        yield f"{name}.", attributes
    for kind in _kinds(value):
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
        yield from _flat(reduced, {id(v) for v in _referents(value)})


def _parts(value: Any) -> Iterator[Any]:
    """The objects that one leads to which can only be compared."""
    if isinstance(value, types.GeneratorType):
        if value.gi_frame is not None:
            yield from (*value.gi_frame.f_locals.values(), value.gi_yieldfrom)
    elif not isinstance(value, np.ndarray):
        yield from _referents(value)
    elif value.dtype.hasobject:
        yield from value.flat


def _referents(value: Any) -> list[Any]:
    return [v for v in gc.get_referents(value) if _may_change(v)]


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
