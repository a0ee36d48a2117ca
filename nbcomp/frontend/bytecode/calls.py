"""Which calls may happen while a program is captured: those without effects, on lifted values.

Functions of the user's are run by the machine, NumPy's become operators, and what is known to have
no effects just runs.  Everything else is refused, and so becomes a graph break, at which Python
makes the call.  Knows Python's builtins and standard library by name.
"""

from __future__ import annotations

import builtins
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported, an
from nbcomp.frontend import reporting
from nbcomp.frontend.lift import Lifter, is_library
from nbcomp.frontend.location import here
from nbcomp.frontend.number import float_of, is_open_number
from nbcomp.frontend.objects import Shadow, guard_missing, super_of
from nbcomp.frontend.python_numbers import is_number, number
from nbcomp.frontend.tracer import Tracer, length_of
from nbcomp.runtime.plan import Source

BUILTINS = frozenset(
    getattr(builtins, name)
    for name in (
        *("abs", "all", "any", "ascii", "bin", "bool", "bytes", "callable", "chr", "complex"),
        *("dict", "divmod", "enumerate", "filter", "float", "format", "frozenset", "getattr"),
        *("hasattr", "hash", "hex", "int", "isinstance", "issubclass", "iter", "len", "list"),
        *("map", "max", "min", "next", "object", "oct", "ord", "pow", "property", "range", "repr"),
        *("reversed", "round", "set", "setattr", "slice", "sorted", "staticmethod", "str", "sum"),
        *("classmethod", "tuple", "zip", "__build_class__"),
    )
)
# Modules in which no function has effects.
MODULES = frozenset(
    (
        *("math", "cmath", "operator", "_operator", "itertools", "functools", "_functools"),
        *("dataclasses", "copy", "typing", "types", "enum", "_bisect", "bisect", "string"),
        *("collections", "_collections", "abc", "_abc", "numbers"),
    )
)
# Methods of these types do nothing beyond their own object.
OWNERS: tuple[type, ...] = (
    *(str, bytes, int, float, complex, bool, tuple, list, dict, set, frozenset, range, slice),
    *(np.dtype, np.generic, type({}.keys()), type({}.values()), type({}.items()), type),
)
MUTATING = frozenset(
    (
        *("append", "extend", "insert", "remove", "pop", "popitem", "clear", "sort", "reverse"),
        *("update", "setdefault", "add", "discard", "__setitem__", "__delitem__", "__iadd__"),
        *("intersection_update", "difference_update", "symmetric_difference_update"),
    )
)

# NumPy's scalars that every whole number which is left open fits into.
SCALARS = frozenset((np.float16, np.float32, np.float64, np.int64))
TEXTS = (repr, ascii, str, format)
BOUND = (types.BuiltinFunctionType, types.MethodWrapperType)
HINTS = {
    "print": "print before or after the arrays are computed, or the value returned",
    "open": "read the file before",
    "input": "ask before",
}


def special(lifter: Lifter, function: Any, args: list[Any]) -> Callable[..., Any]:
    """The function to call in place of a builtin that looks at values for what they stand for."""
    if function is type and len(args) == 1:
        return lambda value: value.__class__
    if function is len:
        return length_of
    if function is super:
        made: Callable[..., Any] = super_of(lifter)
        return made
    if len(args) == 1 and is_number(function, args[0]):
        return lambda value: number(function, value)
    if function is float and len(args) == 1:
        return float_of
    if len(args) == 1 and is_open_number(args[0]) and function in SCALARS:
        return lambda value: lifter.session.call(np.asarray, (value, function), {})[()]
    looking = function is hasattr or function is getattr
    if looking and len(args) > 1 and type(args[0]) is types.FunctionType:
        _note_missing(lifter, *args[:2])
    result: Callable[..., Any] = function
    return result


def _note_missing(lifter: Lifter, function: types.FunctionType, name: Any) -> None:
    """Assume that a lifted function has no attribute of this name, if so."""
    original = lifter.original(function)
    if original is not None and not hasattr(original, name):
        guard_missing(lifter, original, name)


def check(lifter: Lifter, function: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
    """Raise `Unsupported` for a call that may have effects."""
    if isinstance(function, types.MethodType):
        check(lifter, function.__func__, [function.__self__, *args], kwargs)
        return
    owner = None if isinstance(function, type) else getattr(function, "__self__", None)
    if isinstance(function, BOUND) and not isinstance(owner, types.ModuleType | None):
        _check_method(lifter, function, owner)
        return
    if isinstance(function, types.MethodDescriptorType | types.WrapperDescriptorType):
        if function is object.__setattr__ and args and _is_made_here(args[0]):
            return  # of a frozen data class
        if not issubclass(function.__objclass__, OWNERS):
            raise refused(function)
        _check_mutation(lifter, function.__name__, args[0] if args else None)
        return
    if function is type or function is super:
        return
    reporting.check_call(function, args, kwargs)
    if not _has_no_effects(function):
        raise refused(function)
    if function in TEXTS:
        check_text(args)


def _is_made_here(value: Any) -> bool:
    """Whether this is an object that the program makes: it stands for none of the caller's."""
    others = Shadow | Tracer | type | types.ModuleType | types.FunctionType
    return not issubclass(type(value), others)


def check_text(value: Any) -> None:
    """Raise `Unsupported` for making text of arrays."""
    if type(value) is Tracer:
        raise Unsupported(
            "the text of an array is made by Python", here(), "make it before or after"
        )
    if isinstance(value, list | tuple):
        for entry in value:
            check_text(entry)
    elif isinstance(value, dict):
        check_text(list(value.values()))


def _has_no_effects(function: Any) -> bool:
    kind = type(function)
    module = getattr(function, "__module__", None) or ""
    if kind.__module__.startswith("nbcomp.frontend") or issubclass(kind, Shadow):
        return True
    if isinstance(function, type):
        return _plain_class(function)
    try:
        if function in BUILTINS:
            return True
    except TypeError:  # not hashable
        return False
    if module.startswith("nbcomp.") or module in MODULES:
        return True
    return _of_numpy(module, function)


def _of_numpy(module: str, function: Any) -> bool:
    """Whether this is NumPy's, by way of the module the program sees."""
    method = "." in (getattr(function, "__qualname__", None) or "")  # np.errstate.__exit__
    wrapped = isinstance(function, np.ufunc) or (not method and hasattr(function, "__wrapped__"))
    return module.split(".")[0] == "numpy" and wrapped


def _plain_class(cls: type) -> bool:
    """A class whose instances are made without effects: Python's, NumPy's scalars, the user's."""
    if cls in BUILTINS or cls.__module__ in MODULES:
        return True
    if issubclass(cls, np.generic | np.dtype | np.iinfo | np.finfo | BaseException):
        return True
    return not is_foreign(cls)


def _check_method(lifter: Lifter, function: Any, owner: Any) -> None:
    if isinstance(owner, np.ndarray) and type(owner) is np.ndarray:
        return
    if not isinstance(owner, OWNERS) and not type(owner).__module__.startswith("nbcomp.frontend"):
        raise refused(function)
    _check_mutation(lifter, function.__name__, owner)


def _check_mutation(lifter: Lifter, name: str, owner: Any) -> None:
    if name in MUTATING:
        check_own(lifter, owner, f".{name}(...)")


def check_own(lifter: Lifter, container: Any, how: str) -> None:
    """Raise `Unsupported` for changing a list, dict or set that the program did not make here."""
    known = lifter.containers.get(id(container))
    if known is not None and known[0] is container:
        raise changed_by(container, known[2], how)


def mutates(container: Any, name: str) -> bool:
    """Whether a method changes its list, dict or set."""
    return type(container) in (list, dict, set) and name in MUTATING


def changed_by(container: Any, source: Source, how: str) -> Unsupported:
    """The error for changing an object that others see."""
    kind = type(container).__name__
    how = f".{how}(...)" if how.isidentifier() else how
    return Unsupported(
        f"the {kind} {source.describe()}, which others see, is changed by {how}",
        here(),
        "write to an array, or make the list here and return it",
    )


def refused(function: Any) -> Unsupported:
    """The error for a call that Python has to make."""
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", "")
    module = getattr(function, "__module__", None) or ""
    if not name:
        name = f"{an(type(function).__name__)}"
    elif module not in ("", "builtins", "__main__"):
        name = f"{module}.{name}"
    return Unsupported(
        f"{name}(...) may have effects, so Python calls it",
        here(),
        HINTS.get(name, "call it before or after the arrays are computed"),
    )


def is_foreign(cls: type) -> bool:
    """Whether a class is a library's, whose methods may do anything."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return cls.__module__ == "builtins" or (file is not None and is_library(file))
