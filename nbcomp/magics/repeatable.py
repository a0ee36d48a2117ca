"""Whether a Python function may be called again to measure it: what it does besides its answer.

Looks at the function's code and at what its global and closure variables stand for; it never calls
anything.  What it does not know counts as an effect.  Arrays and constants may be given, since
measuring calls with copies of them; any other argument counts as an effect, too.
"""

from __future__ import annotations

import builtins
import dis
import inspect
import math
from collections.abc import Iterator
from contextlib import suppress
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from nbcomp.measure.differences import leaves
from nbcomp.measure.surroundings import codes

# Of Python's functions, those that only compute.
PURE: set[Any] = {abs, all, any, divmod, isinstance, len, max, min, pow, repr, round, sorted, sum}
PURE |= {bool, complex, dict, enumerate, filter, float, frozenset, int, list, map, range, reversed}
PURE |= {set, slice, str, tuple, type, zip}
# Of NumPy's and arrays' names, those that write files, print, draw random numbers or set modes.
EFFECTS = {"save", "savez", "savez_compressed", "savetxt", "tofile", "dump", "memmap", "random"}
EFFECTS |= {"seterr", "seterrcall", "setbufsize", "set_printoptions", "setflags", "info", "lib"}
EFFECTS |= {"testing", "test", "ctypeslib", "show_config", "show_runtime"}
# Those that write into an array that is there.
WRITERS = {"copyto", "put", "place", "putmask", "fill", "sort", "partition", "resize", "at", "out"}
WRITERS |= {"put_along_axis", "fill_diagonal"}
KEPT = (list, dict, set, str, tuple, np.ndarray, np.generic, float, int, complex)
STORES = {
    "STORE_GLOBAL": "a global variable",
    "DELETE_GLOBAL": "a global variable",
    "STORE_ATTR": "an attribute",
    "DELETE_ATTR": "an attribute",
    "IMPORT_NAME": "what is imported",
}
CONSTANT = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)


def effect_of(function: Any, *arguments: Any) -> str:
    """What a call does besides giving its answer, or may do, in words; "" for nothing."""
    for _, value in leaves(arguments, ""):
        if not isinstance(value, (*CONSTANT, np.ndarray)):
            return f"it is given a {type(value).__name__}"
    return next(_effects(function, set()), "")


def _effects(function: Any, seen: set[Any]) -> Iterator[str]:
    function = inspect.unwrap(function) if callable(function) else function
    if not isinstance(function, FunctionType):
        yield f"it uses {getattr(function, '__name__', f'a {type(function).__name__}')}"
        return
    if function in seen:
        return
    seen.add(function)
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    if not all(isinstance(v, CONSTANT) for v in defaults):
        yield f"{function.__name__} keeps a default argument that it may change"
    variables = {**vars(builtins), **function.__globals__}
    own = function.__code__
    for name, cell in zip(own.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # it has no value yet
            variables[name] = cell.cell_contents
    within = list(codes(own))
    writes = any(_writes(code) for code in within)
    for code in within:
        for name, effect in _effects_of_code(code, set(own.co_freevars)):
            yield from [effect] if effect else _effects_of_value(name, variables, writes, seen)


def _writes(code: CodeType) -> bool:
    """Whether it may write into arrays."""
    if WRITERS.intersection(code.co_names) or "out" in str(code.co_consts):
        return True
    return any(
        i.opname in ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE")
        or (i.opname == "BINARY_OP" and i.argrepr.endswith("="))
        for i in dis.get_instructions(code)
    )


def _effects_of_code(code: CodeType, free: set[str]) -> Iterator[tuple[str, str]]:
    """Names the code uses, each with the effect that using it is; "" where its value decides."""
    for instruction in dis.get_instructions(code):
        name, operation = instruction.argval, instruction.opname
        if operation in STORES:
            yield name, f"it changes {STORES[operation]}, {name}"
        elif operation in ("STORE_DEREF", "DELETE_DEREF") and name in free:
            yield name, f"it changes a variable of the function around it, {name}"
        elif operation in ("LOAD_ATTR", "LOAD_METHOD") and not _known(name):
            yield name, f"it uses .{name}"
        elif operation in ("LOAD_GLOBAL", "LOAD_NAME") or (
            operation in ("LOAD_DEREF", "LOAD_CLASSDEREF") and name in free
        ):
            yield name, ""


def _known(name: str) -> bool:
    """Whether an attribute is one of arrays, of NumPy, of `math` or of Python's own containers."""
    if name in EFFECTS or name.startswith("__"):
        return False
    return any(hasattr(owner, name) for owner in (np, math, *KEPT))


def _effects_of_value(
    name: str, variables: dict[str, Any], writes: bool, seen: set[Any]
) -> Iterator[str]:
    """What the value of a global or closure variable may bring with it."""
    value = variables.get(name)
    if isinstance(value, np.ndarray):
        if writes:
            yield f"it may write into {name}"
    elif not _harmless(value):
        yield from _effects(value, seen)


def _harmless(value: Any) -> bool:
    """Whether using a value, whichever way, changes nothing outside."""
    if isinstance(value, tuple):
        return all(map(_harmless, value))
    if isinstance(value, type):
        return value in PURE or issubclass(value, np.generic | BaseException)
    if isinstance(value, ModuleType):
        return value in (np, math)
    if isinstance(value, np.ufunc) or getattr(value, "__module__", "") in ("numpy", "math"):
        return _known(getattr(value, "__name__", ""))
    return isinstance(value, CONSTANT) or (isinstance(value, BuiltinFunctionType) and value in PURE)
