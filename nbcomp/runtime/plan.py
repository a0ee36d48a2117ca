"""What the run time executes: a `Plan` is the whole compiled program as plain data.

Storage is numbered: slot k is a pointer.  Inputs, constants, temps and outputs each own slots; a
`Step` names the slots its kernel stage works on.  Guards say for which calls the plan is valid.
This module is only the description; `entry` runs it natively, `interpret` in Python.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from nbcomp.conditions import Conditions
from nbcomp.sizes import Symbol
from nbcomp.types import DType


class Missing:
    """What is where nothing is found: a guard on it holds as long as that stays so."""

    def __repr__(self) -> str:
        return "nothing"


MISSING = Missing()


@dataclass(frozen=True, eq=False)
class Source:
    """Where a value is found at call time.

    kind "argument": `key` is the position.  kind "global": `root` is the namespace dict, `key` the
    name.  kind "cell": `root` is the closure cell.  kind "object": `root` itself.  `path` then goes
    further: ("item", key) for dicts, lists and tuples, ("attr", name) for attributes, ("type",
    "__class__") for the type.  A last step may look without asking the object: ("member", name) in
    a class and its bases, ("own", name) in an object's own dict, ("maybe", name) for an attribute;
    each gives `MISSING` where nothing is found.  Sources are equal where they are the same place: a
    global `W` of one module is not that of another.
    """

    kind: str
    key: Any = None
    root: Any = field(default=None, repr=False)
    path: tuple[tuple[str, Any], ...] = ()
    name: str = ""  # the user's, e.g. the parameter's

    def _place(self) -> tuple[Any, ...]:
        return self.kind, self.key, id(self.root), self.path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and self._place() == other._place()

    def __hash__(self) -> int:
        return hash(self._place())

    def describe(self) -> str:
        """How a user would write it, e.g. `params['W1']`."""
        unnamed = f"argument {self.key}" if self.kind == "argument" else str(self.key)
        head = self.name or unnamed
        return head + "".join(f"[{k!r}]" if how == "item" else f".{k}" for how, k in self.path)

    def dotted(self) -> str:
        """The names on the way that are not private: `linear.weight`, `params.W1`, `blocks.0`."""
        head = [self.name or str(self.key)] if self.kind != "object" else []
        parts = [str(key) for _, key in self.path]
        return ".".join(head + [p for p in parts if not p.startswith("_")])


def builtins_of(namespace: Any) -> dict[str, Any]:
    """The dict in which Python looks for a global that a namespace lacks."""
    found = namespace.get("__builtins__", builtins)
    return found if isinstance(found, dict) else vars(found)


def member(cls: type, name: str) -> Any:
    """What a class or the first of its bases that has one keeps under a name, as it is kept."""
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), MISSING)


def own(value: Any, name: str) -> Any:
    """What an object's own dict has under a name."""
    try:
        return object.__getattribute__(value, "__dict__").get(name, MISSING)
    except AttributeError:
        return MISSING


_STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "item": operator.getitem,
    "attr": getattr,
    "type": lambda value, _: type(value),
    "member": member,
    "own": own,
    "maybe": lambda value, name: getattr(value, name, MISSING),
}


def follow(path: tuple[tuple[str, Any], ...], value: Any) -> Any:
    """What a source's path leads to.  Raises what the lookups in Python raise."""
    for how, key in path:
        value = _STEPS[how](value, key)
    return value


@dataclass(frozen=True)
class ArrayGuard:
    """The value is exactly an ndarray (no subclass) of this dtype (native byte order), shape and
    strides (bytes), aligned to its itemsize; its data pointer goes to `slot`.  `writable`: it must
    be writeable."""

    source: Source
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    slot: int
    writable: bool = False


@dataclass(frozen=True)
class ScalarGuard:
    """The value is exactly a Python float, int or bool (`type`), an int within low..high; it is
    stored as float64, int64 or one byte and `slot` points at it.  Or it is exactly of a type of
    NumPy's scalars, and `slot` points at its value."""

    source: Source
    type: type
    slot: int
    low: int = -(2**63)
    high: int = 2**63 - 1


@dataclass(frozen=True)
class ObjectGuard:
    """The value is this very object (a function, a module, None, a dtype)."""

    source: Source
    object: Any


@dataclass(frozen=True)
class ValueGuard:
    """The value has exactly this type and equals this one: NaN equals NaN, and -0.0 is not 0.0.

    A size is a Python int that is left open: the symbol has the value of the call."""

    source: Source
    value: Any


@dataclass(frozen=True)
class LengthGuard:
    """The value is exactly a tuple, list or dict with this many entries; a dict: these keys, in
    this order."""

    source: Source
    type: type
    length: int
    keys: tuple[Any, ...] = ()


KEPT = "__nbcomp_kept__"  # the attribute of an object that holds an array, with what is made of it


@dataclass(frozen=True)
class Kept:
    """What is made of an array once, and again when that has changed.

    holder: the object that holds the array, in its attribute `array`.  It says that the array has
    changed, or that somebody else may write to it, by emptying the dict in its attribute `KEPT`,
    where what was made is at `key`.  guard: finds it there.  The attribute is None where a plan
    writes to the array: then nothing is kept.
    """

    holder: Source
    array: str
    key: str
    make: Callable[[Any], Any]
    guard: ArrayGuard


Guard = ArrayGuard | ScalarGuard | ObjectGuard | ValueGuard | LengthGuard


@dataclass(frozen=True)
class Output:
    """A new array of this dtype and shape, made by the run time, whose data is at `slot`.

    scalar: a 0-d result is handed out as a NumPy scalar rather than a 0-d array.  strides: in
    bytes, for another memory order than C (a permutation of it, without gaps).
    """

    dtype: DType
    shape: tuple[int, ...]
    slot: int
    scalar: bool = False
    strides: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Given:
    """An output that is already there: an argument that was written to, a constant, None."""

    source: Source


@dataclass(frozen=True)
class Step:
    """One stage of a kernel: `status = function(slots[], params[], begin, end)`.

    C signature: int64 function(void **buffers, const int64 *params, int64 begin, int64 end), where
    buffers[i] is the pointer in slot `slots[i]`.  Iterations begin..end of 0..extent are
    independent if `grain` > 0: then they may be spread over the cores, `grain` iterations at a
    time; if `round` > 0, those of a round, one round of so many iterations after another.  A status
    other than 0 ends the call; the arguments are then run in NumPy, which raises the right error.
    """

    function: int  # address
    slots: tuple[int, ...]
    params: tuple[int, ...] = ()
    extent: int = 1
    grain: int = 0
    name: str = ""
    round: int = 0


View = tuple[int, DType, tuple[int, ...], tuple[int, ...]]  # slot, dtype, shape, strides in bytes


@dataclass(frozen=True)
class HostStep:
    """A library routine of NumPy, on arrays over the slots, which it must not keep.

    outputs[:] = function(*inputs), or function(*inputs, out=output) when `into`.
    """

    function: Callable[..., Any]
    inputs: tuple[View, ...]
    outputs: tuple[View, ...]
    name: str = ""
    into: bool = False


class LeftToPython(Exception):
    """A host step raises it to have Python run the call, as a kernel's status would."""


WHOLE = -1  # in place of an axis: the number itself


@dataclass(frozen=True, eq=False)
class OpenSizes:
    """Lengths that a plan leaves open, and what it assumes about them.

    lengths: (symbol, index of an array guard, axis), of every axis whose length is a symbol; or
    (symbol, index of a value guard, `WHOLE`), of an int that is one.
    settled: the plans for lengths seen, by those.
    """

    lengths: tuple[tuple[Symbol, int, int], ...]
    conditions: Conditions
    settled: dict[tuple[int, ...], Plan] = field(default_factory=dict, repr=False)

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """Each symbol once."""
        return tuple(dict.fromkeys(symbol for symbol, _, _ in self.lengths))

    def described(self) -> Iterator[str]:
        """The lengths that are taken, symbol by symbol; equal ones once."""
        for symbol in self.symbols:
            if symbol not in self.conditions.same:
                yield f"{symbol} = {self.conditions.range_of(symbol)}"

    def why_not(self, values: Mapping[Symbol, int], describe: Callable[[Symbol], str] = str) -> str:
        """Which condition these lengths do not meet, in the user's words; "" if they meet all."""
        return self.conditions.why_not(values, describe)


@dataclass(frozen=True)
class Plan:
    """A compiled program: valid when all `guards` hold; then the steps run in order.

    slots: how many there are.  constants: slot → array (kept alive here).  temps: slot → byte
    offset in one arena of `arena` bytes, 64-byte aligned.  outputs: in order, as they are returned;
    one output is returned by itself when `single`, else a tuple; None when single and there is
    none.  positional: number of arguments the plan takes. seconds: a rough estimate of the run
    time, from which the run time decides to release the GIL. disjoint: pairs of array-guard indices
    whose memory must not overlap (one of them is written to).  open: numbers may be sizes, see
    `sized`.  kept: what is made of inputs, but not at every call.  changed: objects that hold
    arrays it writes to.
    """

    guards: tuple[Guard, ...]
    positional: int
    slots: int
    outputs: tuple[Output | Given, ...]
    steps: tuple[Step | HostStep, ...]
    constants: dict[int, Any] = field(default_factory=dict)
    temps: dict[int, int] = field(default_factory=dict)
    arena: int = 0
    single: bool = True
    seconds: float = 0.0
    disjoint: tuple[tuple[int, int], ...] = ()
    finish: Callable[[tuple[Any, ...]], Any] | None = None
    keep: tuple[Any, ...] = ()  # objects that own the code
    open: OpenSizes | None = None
    kept: tuple[Kept, ...] = ()
    changed: tuple[Source, ...] = ()

    def describe(self, symbol: Symbol) -> str:
        """The length that a symbol stands for, as a user would say it."""
        assert self.open is not None
        _, index, axis = next(entry for entry in self.open.lengths if entry[0] == symbol)
        where = self.guards[index].source.describe()
        return where if axis == WHOLE else f"the length of axis {axis} of {where}"


Handed = Callable[[tuple[Any, ...]], Any]


def handed_on(guards: tuple[Guard, ...], positional: int, function: Handed) -> Plan:
    """For calls that these guards hold for: gives what `function` does with their arguments."""
    given = tuple(Given(Source("argument", k)) for k in range(positional))
    slots = sum(isinstance(g, ArrayGuard | ScalarGuard) for g in guards)
    return Plan(guards, positional, slots, given, (), single=False, finish=function)


def guards_of(values: Sequence[Any]) -> tuple[Guard, ...] | None:
    """For arrays, numbers and None in a call: that others are of the same types and shapes.  None
    if there is anything else."""
    found: list[Guard] = []
    for k, value in enumerate(values):
        source, slot = Source("argument", k), len(found)
        if type(value) is np.ndarray and value.dtype.isnative and value.flags.aligned:
            found.append(ArrayGuard(source, value.dtype, value.shape, value.strides, slot))
        elif type(value) in (int, float, bool):
            found.append(ScalarGuard(source, type(value), slot))
        else:
            return None
    return tuple(found)
