"""From the user's values to what the traced function sees: arrays become tracers.

Numbers become `Number`s, containers are rebuilt around lifted entries, plain Python functions run as copies whose globals
and closure are lifted in turn (a global when it is first used), the rest is taken as it is.
Whatever is assumed about a value becomes a guard.  Knows Python objects and sources, not
operators.
"""

from __future__ import annotations

import builtins
import functools
import random
import sysconfig
import time
import types
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np

from nbcomp.errors import CaptureError, Unsupported
from nbcomp.frontend.location import here
from nbcomp.frontend.number import Number
from nbcomp.frontend.session import Session, source_key
from nbcomp.frontend.storage import Place, Storage
from nbcomp.frontend.tracer import Tracer
from nbcomp.frontend.writes import CONVERSION, CREATION
from nbcomp.ops.operand import constant, supported
from nbcomp.runtime.plan import LengthGuard, ObjectGuard, Source, ValueGuard
from nbcomp.trace import Remark

VALUES = (bool, str, bytes, complex, range, slice, np.dtype, frozenset)
CONTAINERS = (tuple, list, dict)
GENERATORS = (random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator)
VOLATILE = (random, np.random, time, uuid)  # modules whose functions answer differently every time
MOST_LEAVES = 10_000

_LIBRARIES = tuple(
    {sysconfig.get_path(kind) + "/" for kind in ("stdlib", "platstdlib", "purelib", "platlib")}
)


def is_library(file: str) -> bool:
    """Whether this source file belongs to an installed package or to Python itself."""
    return file.startswith((*_LIBRARIES, "<frozen")) or file.startswith(_own_folder())


@functools.cache
def _own_folder() -> str:
    return __file__.rsplit("/", 2)[0] + "/"


class Lifter:
    """Lifts the values of one session; the same place gives the same lifted object."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._lifted: dict[Any, Any] = {}  # by source
        self._functions: dict[int, tuple[Any, Any]] = {}  # original and copy, by the original's id
        self._namespaces: dict[int, Namespace] = {}
        self._cells: dict[int, tuple[Any, Any, Any]] = {}  # original, copy, and what the copy held
        self.containers: dict[int, tuple[Any, Any, Source]] = {}  # copy, a copy of that, its source
        self._foreign: dict[int, tuple[Any, Tracer]] = {}
        self._leaves = 0

    def lift(self, value: Any, source: Source, name: str = "") -> Any:
        """What the traced function sees in place of a value found at a source.

        Raises `Unsupported` for values that nbcomp cannot follow.
        """
        key = source_key(source)
        if key not in self._lifted:
            self._lifted[key] = self._lift(value, source, name)
        return self._lifted[key]

    def _lift(self, value: Any, source: Source, name: str) -> Any:
        kind = type(value)
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value, source, name)
        if kind in (int, float):
            return self._number(value, source, name)
        if kind in VALUES:
            self.session.guard(ValueGuard(source, value))
            return value
        if kind in CONTAINERS:
            return self._container(value, source)
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return self._named_tuple(value, source)
        return self._object(value, source)

    # --------------------------------------------------------------------------------- leaves

    def _array(self, value: Any, source: Source, name: str) -> Any:
        if isinstance(value, np.ndarray) and type(value) is not np.ndarray:
            raise Unsupported(
                f"{source.describe()} is a {type(value).__name__}, which is not compiled",
                here(),
                "pass np.asarray(...) of it",
            )
        if value.dtype.byteorder not in "=|" and not value.dtype.isnative:
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
        if isinstance(value, np.generic) and source.kind != "argument":
            self.session.guard(ValueGuard(source, value))
            return value
        read = self.session.read(source, value, name)
        layout = np.asarray(value)
        return Tracer(
            self.session, Place(Storage(read.node, read, layout)), isinstance(value, np.generic)
        )

    def _number(self, value: int | float, source: Source, name: str) -> Any:
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            self.session.guard(ValueGuard(source, value))
            return value
        return Number(self.session, value, self.session.read(source, value, name).node)

    # ----------------------------------------------------------------------------- containers

    def _container(self, value: Any, source: Source) -> Any:
        self._leaves += len(value)
        if self._leaves > MOST_LEAVES:
            raise Unsupported(
                f"{source.describe()} has too many entries to follow one by one",
                here(),
                "make an array of it: np.array(...)",
            )
        keys = tuple(value) if isinstance(value, dict) else ()
        self.session.guard(LengthGuard(source, type(value), len(value), keys))
        pairs = list(value.items() if isinstance(value, dict) else enumerate(value))
        entries = {k: self.lift(v, step(source, "item", k), leaf_name(k, source)) for k, v in pairs}
        lifted = entries if isinstance(value, dict) else type(value)(entries.values())
        if lifted is not entries and not entries and isinstance(value, tuple):
            return lifted  # the one empty tuple
        self.containers[id(lifted)] = (lifted, _snapshot(lifted), source)
        return lifted

    def _named_tuple(self, value: Any, source: Source) -> Any:
        self.session.guard(LengthGuard(source, type(value), len(value)))
        entries = [
            self.lift(v, step(source, "item", i), n)
            for i, (n, v) in enumerate(zip(value._fields, value, strict=True))
        ]
        lifted = tuple.__new__(type(value), entries)
        self.containers[id(lifted)] = (lifted, tuple(entries), source)
        return lifted

    def check_unchanged(self) -> None:
        """Raise `Unsupported` if the function changed a container, global or closure variable.

        The change would happen while compiling only.
        """
        for lifted, before, source in self.containers.values():
            if not _same(lifted, before):
                raise Unsupported(
                    f"the function changes the {type(lifted).__name__} {source.describe()}; a"
                    " compiled function only writes to arrays",
                    hint="return the new value",
                )
        for namespace in self._namespaces.values():
            for name in namespace.stored():
                raise Unsupported(
                    f"the function assigns the global {name}", hint="return the new value"
                )
        for _, cell, before in self._cells.values():
            if not _cell_same(cell, before):
                raise Unsupported(
                    "the function assigns a variable of an outer function", hint="return it"
                )

    # -------------------------------------------------------------------------------- objects

    def _object(self, value: Any, source: Source) -> Any:
        if isinstance(value, GENERATORS) or isinstance(
            getattr(value, "__self__", None), GENERATORS
        ):
            raise Unsupported(
                f"{source.describe()} draws random numbers, which would be the same in every call",
                here(),
                "draw them outside and pass the array",
            )
        self.session.guard(ObjectGuard(source, value))
        if isinstance(value, types.ModuleType):
            return self.module(value)
        if isinstance(value, types.FunctionType):
            return self.function(value, source)
        inner = getattr(value, "__wrapped__", None)
        if hasattr(value, "variants") and isinstance(inner, types.FunctionType):
            # A compiled function, called by the one being traced, becomes part of it.
            return self.function(inner, step(source, "attr", "__wrapped__"))
        if isinstance(value, set | bytearray):
            raise Unsupported(
                f"{source.describe()}, a {type(value).__name__}, is not followed", here()
            )
        return self.wrapped(value)

    def wrapped(self, value: Any) -> Any:
        """A function of NumPy's that makes arrays, so that it makes traced ones; else the value."""
        try:
            makes = value in MAKERS
        except TypeError:  # not hashable
            return value
        return _maker(self.session, value) if makes else value

    def module(self, module: types.ModuleType) -> Any:
        """A module as the traced function sees it."""
        if module is np:
            return self._once(module, lambda: NumpyModule(self))
        if module in VOLATILE:
            return Volatile(module.__name__)
        file = getattr(module, "__file__", None)
        if file is None or is_library(file):
            return module
        return self._once(module, lambda: UserModule(self, module))

    def original(self, value: Any) -> Any:
        """The user's function or module that this lifted one stands for, if it is one."""
        return next((real for real, copy in self._functions.values() if copy is value), None)

    def foreign(self, array: Any) -> Tracer:
        """The tracer of an array that did not come as an input: made while compiling, or kept where
        nbcomp does not look.  It is taken as it is now, and cannot be written to."""
        if id(array) not in self._foreign:
            if type(array) is not np.ndarray:
                raise Unsupported(
                    f"a {type(array).__name__} is not compiled", here(), "pass np.asarray(...)"
                )
            supported(array.dtype)
            storage = Storage(constant(np.array(array)), layout=array, foreign=True)
            self._foreign[id(array)] = (array, Tracer(self.session, Place(storage)))
        return self._foreign[id(array)][1]

    def _once(self, original: Any, make: Callable[[], Any]) -> Any:
        if id(original) not in self._functions:
            self._functions[id(original)] = (original, make())
        return self._functions[id(original)][1]

    # ------------------------------------------------------------------------------ functions

    def function(self, function: types.FunctionType, source: Source) -> Any:
        """A copy of a Python function that reads lifted globals and closure variables."""
        if id(function) in self._functions:
            return self._functions[id(function)][1]
        code = function.__code__
        if is_library(code.co_filename):
            return self.wrapped(function)
        cells = function.__closure__ or ()
        copies = tuple(types.CellType() for _ in cells)
        copy = types.FunctionType(
            code, self.namespace(function.__globals__), function.__name__, None, copies
        )
        self._functions[id(function)] = (function, copy)
        copy.__defaults__ = self._defaults(
            function.__defaults__, step(source, "attr", "__defaults__")
        )
        copy.__kwdefaults__ = self._defaults(
            function.__kwdefaults__, step(source, "attr", "__kwdefaults__")
        )
        copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
        copy.__dict__.update(function.__dict__)
        for name, cell, new in zip(code.co_freevars, cells, copies, strict=True):
            self._cell(name, cell, new)
        return copy

    def _defaults(self, defaults: Any, source: Source) -> Any:
        """Default values; those that cannot change are as constant as the function itself."""
        if isinstance(defaults, dict):
            return {k: self._default(v, step(source, "item", k)) for k, v in defaults.items()}
        if isinstance(defaults, tuple):
            return tuple(self._default(v, step(source, "item", i)) for i, v in enumerate(defaults))
        return defaults

    def _default(self, value: Any, source: Source) -> Any:
        fixed = value is None or type(value) in (*VALUES, int, float)
        return value if fixed else self.lift(value, source)

    def _cell(self, name: str, cell: Any, new: Any) -> None:
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet: the same error when the function reads it
            return
        new.cell_contents = lifted = self.lift(value, Source("cell", name, cell), name)
        self._cells[id(new)] = (cell, new, lifted)

    def namespace(self, variables: dict[str, Any]) -> Namespace:
        """The lifted view of a module's or notebook's globals."""
        if id(variables) not in self._namespaces:
            self._namespaces[id(variables)] = Namespace(self, variables)
        return self._namespaces[id(variables)]


def _regular(array: np.ndarray[Any, Any]) -> bool:
    """Whether its elements lie at multiples of their size from each other."""
    return array.flags.aligned and not any(s % array.itemsize for s in array.strides)


def step(source: Source, how: str, key: Any) -> Source:
    """One step further down a path."""
    return Source(source.kind, source.key, source.root, (*source.path, (how, key)))


def leaf_name(key: Any, source: Source) -> str:
    """A name for an entry of a container: its key, or the container's name and its position."""
    if isinstance(key, str) and key.isidentifier():
        return key
    head = source.path[-1][1] if source.path else source.key
    return f"{head}_{key}" if isinstance(head, str) and isinstance(key, int) else ""


def _snapshot(container: Any) -> Any:
    return dict(container) if isinstance(container, dict) else tuple(container)


def _same(container: Any, before: Any) -> bool:
    if isinstance(container, dict):
        return list(container) == list(before) and all(container[k] is before[k] for k in before)
    return len(container) == len(before) and all(map(lambda a, b: a is b, container, before))


def _cell_same(cell: Any, before: Any) -> bool:
    try:
        return cell.cell_contents is before
    except ValueError:
        return False


# ---------------------------------------------------------------------- what the function sees


class Namespace(dict[str, Any]):
    """The globals of a traced function: a name is lifted when it is first read.

    Python reads globals through `__getitem__` when they are not a plain dict, and stores them past
    `__setitem__`: what is in the dict itself was assigned by the function.
    """

    def __init__(self, lifter: Lifter, variables: dict[str, Any]) -> None:
        own = {
            k: variables[k]
            for k in ("__name__", "__file__", "__package__", "__spec__")
            if k in variables
        }
        super().__init__(own, __builtins__=_builtins(lifter))
        self._lifter, self._variables = lifter, variables
        self._initial = frozenset(self)

    def __getitem__(self, name: str) -> Any:
        if dict.__contains__(self, name):
            return dict.__getitem__(self, name)
        value = self._variables[name]
        return self._lifter.lift(value, Source("global", name, self._variables), name)

    def stored(self) -> list[str]:
        """The globals the function assigned."""
        return [name for name in self if name not in self._initial]


class UserModule(types.ModuleType):
    """A module of the user's: its variables are lifted like globals."""

    def __init__(self, lifter: Lifter, module: types.ModuleType) -> None:
        super().__init__(module.__name__, module.__doc__)
        self._lifter, self._variables = lifter, vars(module)

    def __getattr__(self, name: str) -> Any:
        if name not in self._variables:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return self._lifter.lift(
            self._variables[name], Source("global", name, self._variables), name
        )


class NumpyModule(types.ModuleType):
    """NumPy, but for functions that make arrays from nothing or draw random numbers."""

    def __init__(self, lifter: Lifter) -> None:
        super().__init__("numpy", np.__doc__)
        self._lifter = lifter

    def __getattr__(self, name: str) -> Any:
        value = getattr(np, name)
        random_ones = value is np.random
        value = Volatile("np.random") if random_ones else self._lifter.wrapped(value)
        setattr(self, name, value)
        return value


class Volatile:
    """A module whose answers differ from call to call."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        raise Unsupported(
            f"{self._name}.{name} answers differently in every call; compiled, it would be frozen",
            here(),
            "call it outside and pass the result",
        )


MAKERS = frozenset((*CREATION, *CONVERSION))


def _maker(session: Session, function: Any) -> Callable[..., Any]:
    @functools.wraps(function)
    def make(*args: Any, **kwargs: Any) -> Any:
        return session.call(function, args, kwargs)

    return make


def _builtins(lifter: Lifter) -> dict[str, Any]:
    """Python's builtins, but for those that would act while compiling only."""
    session = lifter.session

    def import_module(name: str, *args: Any, **kwargs: Any) -> Any:
        return lifter.module(builtins.__import__(name, *args, **kwargs))

    def printed(*args: Any, **kwargs: Any) -> None:
        session.remark(
            Remark(
                "missed",
                "capture",
                "print runs while compiling, not in every call",
                here(),
                "print what the function returns",
            )
        )
        print(*args, **kwargs)

    def refused(name: str) -> Callable[..., Any]:
        def refuse(*args: Any, **kwargs: Any) -> Any:
            raise Unsupported(
                f"{name}() cannot be compiled", here(), "call it outside and pass the result"
            )

        return refuse

    changed = {
        n: refused(n) for n in ("open", "input", "eval", "exec", "globals", "locals", "vars")
    }
    return {**vars(builtins), **changed, "__import__": import_module, "print": printed}


def plain_function(function: Any) -> types.FunctionType:
    """The Python function to trace; raises CaptureError for what is none or runs otherwise."""
    if not isinstance(function, types.FunctionType):
        raise CaptureError(
            f"{function!r} is a {type(function).__name__}; nbcomp compiles Python functions"
        )
    flags = function.__code__.co_flags
    for flag, kind in (
        (0x20, "a generator: it hands out values one by one"),
        (0x80, "an async function"),
        (0x200, "an async generator"),
    ):
        if flags & flag:
            raise CaptureError(
                f"{function.__name__} is {kind}",
                hint="return an array, or a list of arrays, instead",
            )
    return function
