"""From the user's values to what the traced function sees: arrays become tracers.

Numbers become `Number`s, containers are rebuilt around lifted entries, plain Python functions run
as copies whose globals and closure are lifted in turn, objects are shadowed, and the rest is taken
as it is. Whatever is assumed about a value becomes a guard.  Knows Python objects and sources, not
operators.
"""

from __future__ import annotations

import collections
import collections.abc
import enum
import functools
import inspect
import random
import sys
import sysconfig
import types
import weakref
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported, an
from nbcomp.frontend import reporting
from nbcomp.frontend.inlined import CAPTURED, Inlined
from nbcomp.frontend.layers import layers_at_work
from nbcomp.frontend.location import here
from nbcomp.frontend.namespace import (
    VOLATILE_MODULES,
    Namespace,
    NumpyModule,
    UserModule,
    Volatile,
    traced_function,
)
from nbcomp.frontend.number import Number, length
from nbcomp.frontend.objects import add_methods, shadow, source_of, subclass
from nbcomp.frontend.session import Session
from nbcomp.frontend.storage import Place, Storage
from nbcomp.frontend.tracer import Held, Tracer
from nbcomp.graph.ir import Node
from nbcomp.graph.op import Input
from nbcomp.ops.operand import constant, supported
from nbcomp.record import Remark
from nbcomp.runtime.plan import LengthGuard, ObjectGuard, Source, ValueGuard
from nbcomp.shapes import Shaped
from nbcomp.sizes import is_open
from nbcomp.types import contiguous_strides

VALUES = (bool, str, bytes, complex, range, slice, np.dtype, frozenset)
CONTAINERS = (tuple, list, dict)
GENERATORS = (random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator)
# Mutable or used up by reading; list and dict stand for their subclasses.
NOT_FOLLOWED = (
    *(set, bytearray, memoryview, array, list, dict, collections.deque, collections.abc.Iterator),
    *(np.vectorize, np.nditer, np.flatiter),
)
HELD_ARRAY = "__nbcomp_array__"  # names the attribute with the array an object stands for
MOST_LEAVES = 10_000
OURS = __name__.split(".")[0]
HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a class statement

_FOLDERS = map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))
_LIBRARIES = (
    *(str(Path(f)) + "/" for f in _FOLDERS),
    f"{Path(__file__).parent.parent}/",
    "<frozen",
)


def is_library(file: str) -> bool:
    """Whether this source file belongs to an installed package or to Python itself."""
    return file.startswith(_LIBRARIES)


def _layout(node: Node, array: Any) -> Any:
    """What the array's views are taken of: the array itself, if no length of it is open."""
    assert isinstance(node.op, Input)
    if not is_open(node.shape):
        return array
    strides = node.op.strides or contiguous_strides(node.shape)
    steps = tuple(s * array.itemsize for s in strides)
    return Shaped(array.dtype, node.shape, steps, bool(array.flags.writeable))


class Lifter:
    """Lifts the values of one session; the same place gives the same lifted object.

    containers: the rebuilt containers by id, each with its entries when it was made and its source.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.containers: dict[int, tuple[Any, Any, Source]] = {}
        self._lifted: dict[Source, Any] = {}
        self._names: set[str] = set()  # of arrays that are read
        self._copies: dict[int, tuple[Any, Any]] = {}  # original and copy, by the original's id
        self._namespaces: dict[int, Namespace] = {}
        self._cells: dict[int, tuple[Any, Any]] = {}  # a cell and its copy, by the cell's id
        self._held: dict[int, Any] = {}  # what a copy of a cell held, by the copy's id
        self._shared: set[int] = set()  # cells of functions known by their code
        self._given_cells: set[int] = set()  # the copies of those
        self._assignable: set[int] = set()  # copies of cells that the captured function owns
        # Where objects were found that are only passed on, and functions known by their code.
        self.given: dict[int, Source] = {}
        self._foreign: dict[int, tuple[Any, Any, Tracer]] = {}  # the array, its value, its tracer
        self._attributes: list[tuple[Any, Any]] = []  # copies of functions, and what they had
        # Where objects that stand for arrays were first found, the objects and tracers, by id.
        self._holders: dict[int, tuple[Source, weakref.ref[Any], Any]] = {}
        self._leaves = 0

    def lift(self, value: Any, source: Source, name: str = "") -> Any:
        """What the traced function sees in place of a value found at a source.

        Raises `Unsupported` for values that nbcomp cannot follow.
        """
        if source not in self._lifted:
            self._lifted[source] = self._lift(value, source, name)
        return self._lifted[source]

    def _lift(self, value: Any, source: Source, name: str) -> Any:
        kind = type(value)
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value, source, name)
        if hasattr(kind, HELD_ARRAY):
            return self._holder(value, source)
        if kind in (int, float):
            return self._number(value, source, name)
        if kind in VALUES:
            self.session.guard(ValueGuard(source, value))
            return value
        if kind in CONTAINERS or (isinstance(value, tuple) and hasattr(kind, "_fields")):
            return self._container(value, source, name)
        return self._object(value, source)

    def original(self, value: Any) -> Any:
        """The user's function, class or module that this lifted one stands for, if it is one."""
        return next((real for real, copy in self._copies.values() if copy is value), None)

    def _once(self, original: Any, make: Any) -> Any:
        if id(original) not in self._copies:
            self._copies[id(original)] = (original, make())
        return self._copies[id(original)][1]

    # --------------------------------------------------------------------------------- leaves

    def _array(self, value: Any, source: Source, name: str, held: bool = False) -> Any:
        _check_array(value, source)
        read = self.session.read(source, value, self._own_name(name, source))
        layout = _layout(read.node, np.asarray(value))
        if held and isinstance(layout, np.ndarray) and layout.flags.c_contiguous:
            layout = np.empty_like(layout)  # who keeps what is made of the array counts who has it
        place = Place(Storage(read.node, read, layout))
        return Tracer(self.session, place, isinstance(value, np.generic))

    def _own_name(self, name: str, source: Source) -> str:
        """A name that no other array has: the user's; of where it was found for arrays deep in an
        object (buffers of a model's layers), and where another has the name."""
        if name in self._names or _is_deep(source):
            name = _joined(source)
        base, k = name, 1
        while name in self._names:
            k += 1
            name = f"{base}_{k}"
        if name:
            self._names.add(name)
        return name

    def _holder(self, value: Any, source: Source) -> Any:
        """The array in an object that stands for one: it may be replaced or written to."""
        self.session.guard(ObjectGuard(step(source, "type", "__class__"), type(value)))
        attribute = getattr(type(value), HELD_ARRAY)
        place, array = step(source, "attr", attribute), getattr(value, attribute)
        first, holder, known = self._holders.get(id(value), (source, weakref.ref(value), None))
        known = known if holder() is value else None
        if _enumerated(source) or _enumerated(first):  # it may be counted: one for each, that stays
            self.session.guard(ObjectGuard(first, value))
            self.session.guard(ObjectGuard(source, value))
            if known is not None:
                return known
        if place in self._lifted:
            return self._lifted[place]
        tracer = self._array(array, place, _joined(source), held=True)
        if type(tracer) is Tracer:

            def attribute(name: str) -> Any:
                return self.lift(getattr(holder(), name), step(source, "attr", name), name)

            tracer._held = Held(type(value), source, attribute)
            tracer._place.storage.model = True
        self._lifted[place] = tracer
        self._holders[id(value)] = source, holder, tracer
        return tracer

    def _number(self, value: int | float, source: Source, name: str) -> Any:
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            self.session.guard(ValueGuard(source, value))
            return value
        size = self.session.open_number(source, value) if type(value) is int else None
        if size is not None:
            return length(self.session, size)
        node = self.session.read(source, value, name).node
        return Number(self.session, value, node, frozenset((node,)))

    def foreign(self, array: Any) -> Tracer:
        """The tracer of an array that did not come as an input: made while compiling, or kept where
        nbcomp does not look.  It is taken as it is now, and cannot be written to."""
        known = self._foreign.get(id(array))
        if known is None or known[1].tobytes() != array.tobytes():
            _check_array(array, Source("object", "an array from elsewhere"))
            value = np.array(array)
            storage = Storage(constant(value), layout=array, foreign=True)
            known = (array, value, Tracer(self.session, Place(storage)))
            self._foreign[id(array)] = known
            reason = (
                "an array that is neither an input nor made by NumPy here is taken as it is now"
            )
            self.session.remark(Remark("analysis", "capture", reason, here()))
        return known[2]

    # ----------------------------------------------------------------------------- containers

    def _container(self, value: Any, source: Source, name: str) -> Any:
        self._leaves += len(value)
        if self._leaves > MOST_LEAVES:
            raise Unsupported(
                f"{source.describe()} has too many entries to follow one by one",
                here(),
                "make an array of it: np.array(...)",
            )
        if source in self.session.varying:
            raise Unsupported(
                f"{source.describe()} has another length from call to call",
                here(),
                "make an array of it",
            )
        keys = tuple(value) if isinstance(value, dict) else ()
        self.session.guard(LengthGuard(source, type(value), len(value), keys))
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        entries = {k: self.lift(v, step(source, "item", k), _name(k, name)) for k, v in pairs}
        if isinstance(value, dict):
            lifted: Any = entries
        elif isinstance(value, list):
            lifted = list(entries.values())
        else:
            lifted = tuple.__new__(type(value), entries.values())
        if lifted or not isinstance(value, tuple):  # there is one empty tuple for all
            self.containers[id(lifted)] = (lifted, _entries(lifted), source)
        return lifted

    def check_unchanged(self) -> None:
        """Raise `Unsupported` if the function changed a container, global or closure variable.

        The change would happen while compiling only.
        """
        for lifted, before, source in self.containers.values():
            if not _same(_entries(lifted), before):
                raise Unsupported(
                    f"the function changes the {type(lifted).__name__} {source.describe()}; a"
                    " compiled function only writes to arrays",
                    hint="return the new value",
                )
        for namespace in self._namespaces.values():
            for name in namespace.changed():
                raise Unsupported(
                    f"the function assigns the global {name}", hint="return the new value"
                )
        for function, attributes in self._attributes:
            if not _same(vars(function), attributes):
                name = function.__name__
                raise Unsupported(
                    f"the function sets an attribute of {name}", hint="return the new value"
                )
        for _, copy in self._cells.values():
            if id(copy) in self._held and copy.cell_contents is not self._held[id(copy)]:
                self.check_assignable(copy, "")

    # -------------------------------------------------------------------------------- objects

    def _object(self, value: Any, source: Source) -> Any:
        if hasattr(type(value), CAPTURED):
            place = step(source, "attr", getattr(type(value), CAPTURED))
            self.session.guard(ObjectGuard(place, getattr(value, place.path[-1][1])))
            return self._once(value, lambda: Inlined(self, value))
        _check_object(value, source)
        module = getattr(value, "__module__", None) or getattr(
            getattr(value, "__self__", None), "__module__", None
        )
        if callable(value) and module in VOLATILE_MODULES:
            return getattr(Volatile(module), value.__name__)
        if isinstance(value, types.MethodType | functools.partial):
            return self._bound(value, source)
        if _has_attributes(value):
            return self._shadow(value, source)
        if isinstance(value, types.FunctionType) and self._is_given(value, source):
            return self._given(value, source)
        self.session.guard(ObjectGuard(source, value))
        match value:
            case types.ModuleType():
                return self.module(value)
            case types.FunctionType():
                return self.function(value, source)
            case type():
                return self._class(value)
            case _:
                return self._other(value, source)

    def _other(self, value: Any, source: Source) -> Any:
        match value:
            case _ if (traced := traced_function(self.session, value)) is not value:
                return traced
            case _ if callable(value) and hasattr(value, "__wrapped__"):
                if hasattr(value, "cache_info"):
                    self.session.unrolled.cached.append(value.__wrapped__.__name__)
                return self.lift(value.__wrapped__, step(source, "attr", "__wrapped__"))
            case _:
                if self.lazy and value is not None and source.kind == "argument":
                    self.given[id(value)] = source
                return value

    def _bound(self, value: Any, source: Source) -> Any:
        """A bound method or partial function: its parts are lifted."""

        def part(name: str) -> Any:
            return self.lift(getattr(value, name), step(source, "attr", name))

        if isinstance(value, types.MethodType):
            return types.MethodType(part("__func__"), part("__self__"))
        return functools.partial(part("func"), *part("args"), **part("keywords"))

    def _shadow(self, value: Any, source: Source) -> Any:
        """The stand-in of an object; one per object, which then must be the same in every place."""
        if id(value) in self._copies:
            original, known = self._copies[id(value)]
            first = source_of(known)
            assert first is not None
            self.session.guard(ObjectGuard(first, original))
            self.session.guard(ObjectGuard(source, original))
            return known
        if hasattr(type(value), "state_dict"):
            self.session.layers = functools.partial(layers_at_work, self.session)
        return self._once(value, lambda: shadow(self, value, source))

    def _class(self, cls: type) -> Any:
        """A class: a copy with lifted methods if it is the user's."""
        module = sys.modules.get(cls.__module__)
        file = getattr(module, "__file__", None)
        plain = issubclass(cls, BaseException | enum.Enum) or not cls.__flags__ & HEAP_TYPE
        if plain or module is None or (file is not None and is_library(file)):
            return cls
        if id(cls) not in self._copies:
            copy = subclass(self, cls)
            self._copies[id(cls)] = (cls, copy)  # before its methods, which may name it
            add_methods(self, copy, cls)
        return self._copies[id(cls)][1]

    def module(self, module: types.ModuleType) -> Any:
        """A module as the traced function sees it."""
        if module.__name__ in VOLATILE_MODULES:
            return Volatile(module.__name__)
        if module is np or module.__name__.startswith("numpy."):
            return self._once(module, lambda: NumpyModule(self.session, module))
        file = getattr(module, "__file__", None)
        made = file is None and getattr(module, "__spec__", None) is None  # by hand, a notebook's
        ours = module.__name__.split(".")[0] == OURS  # with functions that the program may replace
        if made or ours or (file is not None and not is_library(file)):
            return self._once(module, lambda: UserModule(self, module))
        return module

    # ------------------------------------------------------------------------------ functions

    def function(self, function: types.FunctionType, source: Source) -> Any:
        """A copy of a Python function that reads lifted globals and closure variables."""
        if id(function) in self._copies:
            return self._copies[id(function)][1]
        code = function.__code__
        if is_library(code.co_filename):
            return traced_function(self.session, function)
        if not self.lazy:
            reporting.refuse(code)
        itself = Source("object", function.__name__, function, (("attr", "__code__"),))
        given = self._is_given(function, source)
        if not given:  # reloading a module gives its functions other code
            self.session.guard(ObjectGuard(itself, code))
        closure = function.__closure__ or ()
        cells = tuple(types.CellType() if given else self._copied_cell(c) for c in closure)
        names = self.namespace(function.__globals__)
        copy = types.FunctionType(code, names, function.__name__, None, cells)
        stand_in = self.session.stand_in or self.session.interpreted
        seen = stand_in(copy) if stand_in else copy
        self._copies[id(function)] = (function, seen)
        for attribute in ("__defaults__", "__kwdefaults__"):
            defaults = getattr(function, attribute)
            place = step(source, "attr", attribute)
            if defaults and not given:
                itself = Source("object", function.__name__, function)
                place = step(itself, "attr", attribute)
                self.session.guard(ObjectGuard(place, defaults))
            setattr(copy, attribute, self._defaults(defaults, place, given))
        copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
        for key, value in vars(function).items():
            lifted = value if key == "__wrapped__" else self.lift(value, step(source, "attr", key))
            vars(copy)[key] = lifted
        self._attributes.append((copy, dict(vars(copy))))
        names.preload(code)
        for k, (name, cell) in enumerate(zip(code.co_freevars, closure, strict=True)):
            if given:
                place = step(step(source, "attr", "__closure__"), "item", k)
                self._fill_given(name, cell, cells[k], place)
            else:
                self._fill(name, cell, Source("cell", name, cell))
        return seen

    def is_followed(self, function: Any) -> bool:
        """Whether this is a function of the user's."""
        known = isinstance(function, types.FunctionType)
        return known and not is_library(function.__code__.co_filename)

    def _is_given(self, function: types.FunctionType, source: Source) -> bool:
        """Whether a function is one of many of the same code: one that was made by a function and
        is handed in at run time."""
        made = "<locals>" in function.__qualname__ or function.__name__ == "<lambda>"
        library = is_library(function.__code__.co_filename)
        return source.kind == "argument" and made and not library and self.lazy

    def _given(self, function: types.FunctionType, source: Source) -> Any:
        """A function that is known by its code."""
        for name in ("__code__", "__globals__"):
            place = step(source, "attr", name)
            self.session.guard(ObjectGuard(place, getattr(function, name)))
        seen = self.function(function, source)
        self.given[id(seen)] = source
        return seen

    @property
    def lazy(self) -> bool:
        """Whether values are lifted when the program first uses them: the machine runs it."""
        return self.session.stand_in is not None

    def _defaults(self, defaults: Any, source: Source, given: bool) -> Any:
        """Default values; those that cannot change are as constant as the function itself, unless
        it is one of many of the same code."""
        if isinstance(defaults, dict):
            named = {k: step(source, "item", k) for k in defaults}
            for k, place in named.items():  # the dict itself may be changed
                if _is_fixed(defaults[k]):
                    self.session.guard(ValueGuard(place, defaults[k]))
            return {k: self._default(v, named[k], given) for k, v in defaults.items()}
        if isinstance(defaults, tuple):
            places = (step(source, "item", i) for i in range(len(defaults)))
            return tuple(
                self._default(v, place, given) for v, place in zip(defaults, places, strict=True)
            )
        return defaults

    def _default(self, value: Any, source: Source, given: bool) -> Any:
        return value if _is_fixed(value) and not given else self.lift(value, source)

    def _copied_cell(self, cell: types.CellType) -> types.CellType:
        """The copy of a closure's cell, empty at first."""
        if id(cell) not in self._cells:
            self._cells[id(cell)] = (cell, types.CellType())
        copy: types.CellType = self._cells[id(cell)][1]
        return copy

    def _fill(self, name: str, cell: types.CellType, source: Source) -> None:
        copy = self._copied_cell(cell)
        if id(copy) in self._held:
            return
        inside = replace(source, path=source.path[:-1])
        self.given[id(copy)] = inside if source.path else Source("object", root=cell)
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet: the same error when the function reads it
            return
        if name == "__class__":  # of zero-argument super, which looks for the class itself
            copy.cell_contents = value
            return
        self._held[id(copy)] = None
        lazy = self.lazy
        held = Lazy(self, value, source, name) if lazy else self.lift(value, source, name)
        copy.cell_contents = self._held[id(copy)] = held

    def _fill_given(
        self, name: str, cell: types.CellType, copy: types.CellType, source: Source
    ) -> None:
        """A copy of its own for the cell of a function that another call has another of."""
        known = self._cells.get(id(cell))
        if known is not None and self.changed(known[1]):
            raise Unsupported(f"an inner function uses {name}, which was assigned before", here())
        self._shared.add(id(cell))
        self._given_cells.add(id(copy))
        self.given[id(copy)] = source
        held = Lazy(self, cell.cell_contents, step(source, "attr", "cell_contents"), name)
        copy.cell_contents = self._held[id(copy)] = held

    def own_cell(self, cell: types.CellType, source: Source, name: str) -> types.CellType:
        """The copy of a cell of the captured function itself, found at a source; it may be
        assigned to."""
        self._fill(name, cell, step(source, "attr", "cell_contents"))
        copy = self._copied_cell(cell)
        self._assignable.add(id(copy))
        return copy

    def changed(self, copy: types.CellType) -> bool:
        """Whether the program assigned to this cell."""
        try:
            return copy.cell_contents is not self._held.get(id(copy))
        except ValueError:
            return False

    def check_assignable(self, cell: types.CellType, name: str) -> None:
        """Raise `Unsupported` for a variable of a function outside of the captured one."""
        real = {id(copy): original for original, copy in self._cells.values()}
        shared = id(real.get(id(cell))) in self._shared or id(cell) in self._given_cells
        if shared or (id(cell) not in self._assignable and id(cell) in real):
            what = f"the variable {name}" if name else "a variable"
            raise Unsupported(f"the function assigns {what} of an outer function", hint="return it")

    def namespace(self, variables: dict[str, Any]) -> Namespace:
        """The lifted view of a module's or notebook's globals."""
        if id(variables) not in self._namespaces:
            self._namespaces[id(variables)] = Namespace(self, variables)
        return self._namespaces[id(variables)]


class Lazy:
    """A value found at a source that the program has not used yet: nothing is assumed about it."""

    __slots__ = ("lifter", "name", "source", "value")

    def __init__(self, lifter: Lifter, value: Any, source: Source, name: str = "") -> None:
        self.lifter, self.value, self.source, self.name = lifter, value, source, name

    def get(self) -> Any:
        """The lifted value.  Raises `Unsupported` for what cannot be followed."""
        if isinstance(self.value, types.GeneratorType | types.CoroutineType):
            kind = type(self.value).__name__
            raise Unsupported(f"{self.source.describe()}, {an(kind)}, is not followed", here())
        return self.lifter.lift(self.value, self.source, self.name)


def _enumerated(source: Source) -> bool:
    """Whether this was found by going through the attributes of an object."""
    return source.path[-2:-1] == (("attr", "__dict__"),)


def step(source: Source, how: str, key: Any) -> Source:
    """One step further down a path."""
    return replace(source, path=(*source.path, (how, key)))


def _name(key: Any, container: str) -> str:
    """A name for an entry of a container: its key, or the container's name and its position."""
    if isinstance(key, str) and key.isidentifier():
        return key
    return f"{container}_{key}" if container and isinstance(key, int) else ""


def _is_deep(source: Source) -> bool:
    """Whether it was found in an object of an object, or in the one that is captured."""
    attributes = [how for how, _ in source.path].count("attr")
    return (
        source.path[-1:] != ()
        and source.path[-1][0] == "attr"
        and (source.kind == "object" or attributes > 1)
    )


def _joined(source: Source) -> str:
    """A name for what is found deep in an object, e.g. fc1_weight."""
    root = [source.name or source.key] if source.kind in ("global", "cell") else []
    parts = [str(k) for k in (*root, *(key for _, key in source.path)) if str(k)[:1] != "_"]
    name = "_".join(parts)
    return name if name.isidentifier() else f"_{name}"


def _entries(container: Any) -> Any:
    return dict(container) if isinstance(container, dict) else tuple(container)


def _same(entries: Any, before: Any) -> bool:
    if isinstance(entries, dict):
        return list(entries) == list(before) and all(entries[k] is before[k] for k in before)
    return len(entries) == len(before) and all(map(lambda a, b: a is b, entries, before))


def _is_fixed(value: Any) -> bool:
    """Whether a default cannot change, and need not be an input."""
    return value is None or type(value) in (*VALUES, int, float)


def _has_attributes(value: Any) -> bool:
    """Whether this is an object with attributes of its own, no function, class or module."""
    known = (types.FunctionType, types.ModuleType, type, enum.Enum, BaseException, np.ufunc)
    if isinstance(value, known) or hasattr(type(value), "__wrapped__"):
        return False
    if _has(value, "__wrapped__"):
        return False
    slots = any(vars(base).get("__slots__") for base in type(value).__mro__)
    return hasattr(value, "__dict__") or slots


def _has(value: Any, name: str) -> bool:
    """Whether an object has an attribute, not made up by a `__getattr__` that answers any name."""
    return inspect.getattr_static(value, name, None) is not None


def _check_object(value: Any, source: Source) -> None:
    """Raise `Unsupported` for objects that cannot be followed, with the reason."""
    if isinstance(value, GENERATORS) or (
        _has(value, "__self__") and isinstance(value.__self__, GENERATORS)
    ):
        raise Unsupported(
            f"{source.describe()} draws random numbers, which would be the same in every call",
            here(),
            "draw them outside and pass the array",
        )
    kind = type(value).__name__
    if _has(value, "__array__") and not isinstance(value, type):
        hint = "pass np.asarray(...) of it"
        raise Unsupported(f"{source.describe()}, {an(kind)}, is not compiled", here(), hint)
    if isinstance(value, NOT_FOLLOWED):
        raise Unsupported(f"{source.describe()}, {an(kind)}, is not followed", here())


def _check_array(value: Any, source: Source) -> None:
    """Raise `Unsupported` for arrays that are not compiled, with the reason."""
    if isinstance(value, np.ndarray) and type(value) is not np.ndarray:
        kind = type(value).__name__
        raise Unsupported(
            f"{source.describe()} is {an(kind)}, which is not compiled",
            here(),
            "pass np.asarray(...) of it",
        )
    if not value.dtype.isnative:
        raise Unsupported(
            f"{source.describe()} has the foreign byte order of {value.dtype!r}",
            here(),
            "x.astype(x.dtype.newbyteorder('=')) has the machine's own",
        )
    supported(value.dtype, source.describe())
    if isinstance(value, np.ndarray) and not _regular(value):
        raise Unsupported(
            f"{source.describe()} lies at odd addresses in memory", here(), "pass a copy of it"
        )


def _regular(array: np.ndarray[Any, Any]) -> bool:
    """Whether its elements lie at multiples of their size from each other."""
    return array.flags.aligned and not any(s % array.itemsize for s in array.strides)
