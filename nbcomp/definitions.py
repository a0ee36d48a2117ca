"""What a function is when it is called: its code, its defaults, and the values around it.

Knows functions and guards on them; not how they are compiled.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from nbcomp.runtime.plan import Guard, ObjectGuard, Source
from nbcomp.wrapped import Form, name_of, parted


def all_positional(signature: inspect.Signature) -> bool:
    """Whether all parameters can be given by their position, each one."""
    positional = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return all(p.kind in positional for p in signature.parameters.values())


def definition_of(function: Any) -> tuple[int, ...]:
    """Which code and defaults a function has."""
    python: Any = parted(function) or function
    names = ("__code__", "__defaults__", "__kwdefaults__")
    return tuple(id(getattr(python, name, None)) for name in names)


def form_of(function: types.FunctionType) -> Form:
    """The calls that a function takes."""
    code = function.__code__
    count = code.co_argcount
    return count, code.co_varnames[count : count + code.co_kwonlyargcount]


def same_code(function: Any) -> Iterator[Guard]:
    """That a function has the code it has now."""
    python: Any = parted(function) or function
    if hasattr(python, "__code__"):
        place = Source("object", name_of(python), python, (("attr", "__code__"),))
        yield ObjectGuard(place, python.__code__)


def around(function: Any) -> Iterator[tuple[Source, Any]]:
    """Where a function reads values besides its arguments, and those of now; not what it calls."""
    python: Any = parted(function) or function
    code = getattr(python, "__code__", None)
    if code is None:
        return
    for name in code.co_names:
        if name in python.__globals__:
            value = python.__globals__[name]
            if not callable(value) and not isinstance(value, types.ModuleType):
                yield Source("global", name, python.__globals__), value
    for name, cell in zip(code.co_freevars, python.__closure__ or (), strict=True):
        with suppress(ValueError):  # it is empty
            if not callable(value := cell.cell_contents):
                yield Source("cell", name, cell), value


def type_of(value: Any) -> tuple[Any, ...]:
    """An object's type, and that of an array's elements."""
    return (type(value), value.dtype) if type(value) is np.ndarray else (type(value),)


def same_types(function: Any) -> Iterator[Guard]:
    """That what a function reads besides its arguments has the types it has now."""
    for place, value in around(function):
        steps = ("type", "__class__"), ("attr", "dtype")
        for step, kind in zip(steps, type_of(value), strict=False):
            yield ObjectGuard(replace(place, path=(step,)), kind)
