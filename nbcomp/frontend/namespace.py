"""The names a traced function sees: its globals, the modules it uses, and Python's builtins.

Globals are lifted when they are first read.  NumPy is NumPy, but for the functions that make
arrays from nothing (they make traced ones) and those that draw random numbers (they are refused,
as is whatever else answers differently in every call).
"""

from __future__ import annotations

import builtins
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.frontend.dispatch import constants, deep
from nbcomp.frontend.location import here
from nbcomp.frontend.number import known
from nbcomp.frontend.objects import Lifts, guard_missing, super_of, type_of
from nbcomp.frontend.reporting import errstate
from nbcomp.frontend.session import Session
from nbcomp.frontend.tracer import Tracer, holds_traced, length_of
from nbcomp.frontend.writes import CONVERSION, CREATION
from nbcomp.runtime.plan import Source

# Modules whose functions may answer differently in every call.
VOLATILE_MODULES = {
    *("random", "numpy.random", "secrets", "uuid", "time", "datetime", "os", "posix", "nt"),
    *("subprocess", "socket", "glob", "shutil", "tempfile", "getpass", "platform"),
}
MAKERS = frozenset((*CREATION, *CONVERSION))
NUMPY_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, type(np.sum))
FILES = {  # and the state of NumPy as a whole
    *(np.seterr, np.seterrcall, np.setbufsize, np.set_printoptions, np.printoptions),
    *(np.show_config, np.show_runtime, np.info),
    *(np.load, np.save, np.savez, np.savez_compressed, np.savetxt, np.loadtxt, np.genfromtxt),
    *(np.fromfile, np.fromregex),
}
UFUNC_METHODS = ("accumulate", "at", "outer", "reduce", "reduceat")
REFUSED = ("open", "input", "eval", "exec", "globals", "locals", "vars", "compile", "breakpoint")
MODULE_NAMES = ("__name__", "__file__", "__package__", "__spec__")


class LiftsModules(Lifts, Protocol):
    """What names need of the lifter."""

    def module(self, module: types.ModuleType) -> Any:
        """A lifted module."""


class Namespace(dict[str, Any]):
    """The globals of a traced function: a name is lifted when it is first read.

    Python reads globals through `__getitem__` when they are not a plain dict, and stores them past
    `__setitem__`: what is in the dict itself was assigned by the function.
    """

    def __init__(self, lifter: LiftsModules, variables: dict[str, Any]) -> None:
        super().__init__({k: variables[k] for k in MODULE_NAMES if k in variables})
        self["__builtins__"] = _builtins(lifter)
        self._lifter, self._variables = lifter, variables
        self._initial = frozenset(self)

    def __getitem__(self, name: str) -> Any:
        if dict.__contains__(self, name):
            return dict.__getitem__(self, name)
        value = self._variables[name]
        return self._lifter.lift(value, Source("global", name, self._variables), name)

    @property
    def variables(self) -> dict[str, Any]:
        """The real globals."""
        return self._variables

    def preload(self, code: types.CodeType) -> None:
        """Lift the globals of class statements in a function: these bypass `__getitem__`."""
        for inner in code.co_consts:
            if isinstance(inner, types.CodeType):
                if not inner.co_flags & inspect.CO_OPTIMIZED:
                    self.update({n: self[n] for n in inner.co_names if n in self._variables})
                self.preload(inner)

    def changed(self) -> list[str]:
        """The globals that the function gave another value."""
        return [name for name in self if name not in self._initial and not self._is_lifted(name)]

    def _is_lifted(self, name: str) -> bool:
        """Whether the function stored what was there, as `W += 1` does after writing to W."""
        source = Source("global", name, self._variables)
        original = self._variables.get(name)
        return self._lifter.lift(original, source, name) is dict.__getitem__(self, name)


class UserModule(types.ModuleType):
    """A module of the user's, or of nbcomp's: its variables are lifted like globals."""

    def __init__(self, lifter: Lifts, module: types.ModuleType) -> None:
        super().__init__(module.__name__, module.__doc__)
        self._lifter, self._module, self._variables = lifter, module, vars(module)

    def __getattr__(self, name: str) -> Any:
        if name not in self._variables and "__getattr__" in self._variables:
            getattr(self._module, name)  # it is imported when it is first asked for
        if name not in self._variables:
            guard_missing(self._lifter, self._module, name)
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        source = Source("global", name, self._variables)
        return self._lifter.lift(self._variables[name], source, name)


class NumpyModule(types.ModuleType):
    """NumPy or a module of it, its functions giving traced arrays; random numbers are refused."""

    def __init__(self, session: Session, module: types.ModuleType = np) -> None:
        super().__init__(module.__name__, module.__doc__)
        self._session, self._module = session, module

    def __getattr__(self, name: str) -> Any:
        special = SPECIAL.get(name) if self._module is np else None
        value: Any = special(self._session) if special else getattr(self._module, name)
        if isinstance(value, types.ModuleType) and value.__name__.startswith("numpy."):
            value = NumpyModule(self._session, value)
        value = traced_function(self._session, value)
        setattr(self, name, value)
        return value


class Joiner:
    """np.r_ and np.c_ of arrays; slices, strings and numbers alone are NumPy's own."""

    def __init__(self, session: Session, columns: bool) -> None:
        self._session, self._columns = session, columns

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        original: Any = np.c_ if self._columns else np.r_
        if not holds_traced(parts):
            return self._session.call(np.array, (original[key],), {})
        parts = tuple(original[p] if isinstance(p, slice) else p for p in parts)
        if any(isinstance(p, str) for p in parts):
            raise Unsupported("np.r_ with a string is not compiled", here(), "np.concatenate")
        arrays = [self._session.call(np.atleast_1d, (p,), {}) for p in self._same_dtype(parts)]
        if self._columns:
            arrays = [a[:, None] if len(a.shape) == 1 else a for a in arrays]
        return self._session.call(np.concatenate, (arrays, -1 if self._columns else 0), {})

    def _same_dtype(self, parts: tuple[Any, ...]) -> tuple[Any, ...]:
        """The parts with Python numbers as NumPy scalars of the dtype all others have together."""
        if not any(isinstance(p, int | float) and not isinstance(p, np.generic) for p in parts):
            return parts
        parts = deep(known, parts)
        zeros = [np.zeros(1, p.dtype) if type(p) is Tracer else _zeros(p) for p in parts]
        dtype = np.r_[tuple(zeros)].dtype
        return tuple(np.array([p], dtype) if type(p) in (int, float) else p for p in parts)


def _zeros(part: Any) -> Any:
    """Something of a part's dtype for np.r_ to look at."""
    if isinstance(part, list | tuple):
        if holds_traced(part):
            raise Unsupported("np.r_ of a list of arrays with numbers", here(), "np.concatenate")
        return np.zeros(1, np.asarray(part).dtype)
    return part


# What NumPy's module has that must not be taken as it is.
SPECIAL: dict[str, Callable[[Session], Any]] = {
    "random": lambda session: Volatile("np.random"),
    "r_": lambda session: Joiner(session, False),
    "c_": lambda session: Joiner(session, True),
    "errstate": lambda session: errstate,
    "vectorize": lambda session: _refused("np.vectorize", "NumPy operators on whole arrays"),
}


class Volatile:
    """A module whose answers differ from call to call."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        raise Unsupported(
            f"{self._name}.{name} answers differently in every call, compiled it would be frozen",
            here(),
            "call it outside and pass the result",
        )


def traced_maker(session: Session, value: Any) -> Any:
    """For a function of NumPy's that makes arrays one that makes traced ones; else the value."""
    try:
        makes = value in MAKERS
    except TypeError:  # not hashable
        return value
    return _wrapper(session, value, always=True) if makes else value


def traced_function(session: Session, value: Any) -> Any:
    """For a function of NumPy's one whose results are traced arrays; else the value."""
    if type(value) is np.ufunc:
        return session.wrappers.setdefault(value, TracedUfunc(session, value))
    if not isinstance(value, NUMPY_FUNCTIONS) or not _of_numpy(value):
        return value
    if value in FILES:
        return session.wrappers.setdefault(value, _refused(f"np.{value.__name__}"))
    return _wrapper(session, value, always=value in MAKERS)


def _of_numpy(value: Any) -> bool:
    module = getattr(value, "__module__", None) or ""
    owner = getattr(value, "__self__", None)  # of a bound method: no function
    return module.split(".")[0] == "numpy" and isinstance(owner, types.ModuleType | None)


def _wrapper(session: Session, function: Any, always: bool) -> Any:
    """The function, giving new traced arrays; one per session, so that it can be compared.

    Of arguments that are all known the value is computed now, unless `always` the session is asked.
    """
    if function not in session.wrappers:

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if always or holds_traced(args) or holds_traced(kwargs):
                return session.call(function, args, kwargs)
            return constants(session, function(*args, **kwargs))

        session.wrappers[function] = wrapper
    return session.wrappers[function]


class TracedUfunc:
    """A ufunc that also knows lists of traced values, which NumPy would take for Python objects."""

    def __init__(self, session: Session, ufunc: np.ufunc) -> None:
        self._session, self._ufunc = session, ufunc

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return np.ufunc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._called(self._ufunc, args, kwargs)

    def _called(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if any(isinstance(a, list | tuple) and holds_traced(a) for a in args):
            return self._session.call(function, args, kwargs)
        return function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._ufunc, name)
        if name in UFUNC_METHODS:
            return lambda *args, **kwargs: self._called(value, args, kwargs)
        return value

    def __eq__(self, other: object) -> bool:
        return self is other or other is self._ufunc

    def __hash__(self) -> int:
        return hash(self._ufunc)

    def __repr__(self) -> str:
        return repr(self._ufunc)


# ------------------------------------------------------------------------------------ builtins


def _builtins(lifter: LiftsModules) -> dict[str, Any]:
    """Python's builtins, but for those that would act while compiling only."""

    def import_module(name: str, *args: Any, **kwargs: Any) -> Any:
        return lifter.module(builtins.__import__(name, *args, **kwargs))

    changed = {name: _refused(name) for name in REFUSED}
    # Compiled code prints nothing; and what is printed while compiling, NumPy prints once more.
    changed["print"] = _refused("print", "print what the function returns")
    changed["__import__"] = import_module
    changed |= {"super": super_of(lifter), "type": type_of}
    if lifter.session.opened:
        changed["len"] = length_of
    return vars(builtins) | changed


def _refused(name: str, hint: str = "call it outside and pass the result") -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise Unsupported(f"{name}() cannot be compiled", here(), hint)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__module__ = "builtins"
    return refuse
