"""NumPy functions that have no operator but are written in Python: they run on tracers themselves.

np.corrcoef, np.unwrap, np.polyadd and their like are a few lines of NumPy; a copy of their code is
run that sees NumPy's internals with traced array makers.  Whatever goes wrong in it, the function
is reported as not compiled.
"""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from nbcomp.frontend.dispatch import unknown
from nbcomp.frontend.namespace import Volatile, traced_maker
from nbcomp.frontend.session import Session

# Functions that print, store or need values in any case.
NEVER = frozenset((np.save, np.savetxt, np.savez, np.array2string, np.array_repr, np.array_str))


def by_source(
    session: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The result of a function of NumPy's, from its Python source.  Raises `Unsupported`."""
    source = getattr(function, "_implementation", None)
    if not isinstance(source, types.FunctionType) or function in NEVER:
        raise unknown(function)
    remarks = len(session.remarks)
    try:
        return _copy(session, source)(*args, **kwargs)
    except Exception as error:
        raise unknown(function) from error
    finally:
        del session.remarks[remarks:]  # they would be about NumPy's lines


def _copy(session: Session, function: types.FunctionType) -> Callable[..., Any]:
    """The function, seeing lifted names."""
    names = NumpyNames(session, function.__globals__)
    copy = types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _seen(session: Session, value: Any) -> Any:
    """A value as NumPy's own code sees it while it is traced."""
    if isinstance(value, types.ModuleType) and value.__name__.startswith("numpy"):
        return NumpyInternals(session, value)
    if isinstance(value, types.FunctionType) and value.__module__.startswith("numpy"):
        return _copy(session, value)
    return traced_maker(session, value)


class NumpyNames(dict[str, Any]):
    """The globals of a module of NumPy's."""

    def __init__(self, session: Session, variables: dict[str, Any]) -> None:
        super().__init__(__builtins__=vars(builtins))
        self._session, self._variables = session, variables

    def __getitem__(self, name: str) -> Any:
        if dict.__contains__(self, name):
            return dict.__getitem__(self, name)
        return _seen(self._session, self._variables[name])


class NumpyInternals(types.ModuleType):
    """A module of NumPy's, as its own code sees it."""

    def __init__(self, session: Session, module: types.ModuleType) -> None:
        super().__init__(module.__name__)
        self._session, self._module = session, module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        return Volatile("np.random") if value is np.random else _seen(self._session, value)
