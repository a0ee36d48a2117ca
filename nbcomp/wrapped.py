"""What stands for a function: its names, which callables can be compiled at all, and how it is
pickled.

Knows Python's callables and pickle; nothing of compiling.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import sys
import types
from typing import Any

import numpy as np

from nbcomp.errors import PACKAGE, an

NOTHING: Any = object()  # no function was given


def callable_of(function: Any, what: str) -> Any:
    """The callable to compile for what a user gave; raises TypeError for what cannot be called.

    An object that answers any attribute, or compares in a way of its own, is its `__call__`.
    """
    if not callable(function):
        kind = type(function).__name__
        shown = "None" if function is None else f"{function!r}, {an(kind)}"
        raise TypeError(f"nbcomp.{what} takes a function or another callable, not {shown:.200}")
    if _answers_anything(function):
        method = inspect.getattr_static(type(function), "__call__", None)
        if isinstance(method, types.FunctionType):
            return types.MethodType(method, function)
    return function


def function_of(source: str, file: str, **names: Any) -> types.FunctionType:
    """The function that this source defines over these globals; `file` is what it is shown as."""
    lines = source.splitlines(keepends=True)
    linecache.cache[file] = len(source), None, lines, file
    found: dict[str, Any] = dict(names)
    exec(compile(source, file, "exec"), found)
    name = ast.parse(source).body[0].name  # type: ignore[attr-defined]
    made: types.FunctionType = found[name]
    return made


def is_routine(function: Any) -> bool:
    """Whether this is one of NumPy's functions or a builtin, which have no code in Python."""
    if isinstance(function, functools.partial):
        return is_routine(function.func)
    kinds = np.ufunc | types.BuiltinFunctionType | type(np.sum)
    owner = getattr(function, "__self__", None)
    return isinstance(function, kinds) and isinstance(owner, types.ModuleType | None)


Form = tuple[int, tuple[str, ...]]  # of a call: how many arguments by position, names of the rest


def needed_form(routine: Any) -> Form:
    """The call of a routine with the arguments that it must have, as far as Python can tell."""
    if isinstance(routine, np.ufunc):
        return routine.nin, ()
    try:
        parameters = inspect.signature(routine).parameters.values()
    except (TypeError, ValueError):
        return 1, ()
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return sum(p.kind in kinds and p.default is p.empty for p in parameters), ()


def calling_routine(routine: Any, form: Form) -> types.FunctionType:
    """A function in Python that calls a routine so."""
    count, names = form
    given = [f"x{k + 1}" for k in range(count)]
    takes = [*given, *["/"] * bool(given), *["*"] * bool(names), *names]
    gives = [*given, *(f"{n}={n}" for n in names)]
    name = name_of(routine)
    source = f"def {name}({', '.join(takes)}):\n    return routine({', '.join(gives)})\n"
    file = f"<{name}({', '.join(gives)})>"
    return function_of(source, file, routine=routine, __name__=__name__)


def unwrapped(function: Any) -> Any:
    """The callable to compile for a function that may be jitted already."""
    if getattr(type(function), "__nbcomp_jitted__", False):
        function = function.__wrapped__
    return callable_of(function, "compile") if callable(function) else function


def options_of(function: Any, otherwise: Any) -> Any:
    """How a jitted function is compiled; something else for other functions."""
    jitted = getattr(type(function), "__nbcomp_jitted__", False)
    return function.options if jitted else otherwise


def python_of(function: Any) -> types.FunctionType | None:
    """The function in Python whose bytecode a call runs, if that is what it does."""
    if isinstance(function, types.MethodType):
        return python_of(function.__func__)
    return function if isinstance(function, types.FunctionType) else None


def is_model(function: Any) -> bool:
    """Whether it is a model, whose class says what of it can be compiled in parts
    (`__nbcomp_forward__`), how that is called (`__nbcomp_eager__`) where Python runs it
    (`__nbcomp_python__`), and where compiled code does (`__nbcomp_calls__`)."""
    return hasattr(type(function), "__nbcomp_forward__")


def parted(function: Any) -> types.FunctionType | None:
    """The function in Python that is compiled in parts: a model's is its `forward`, if it is the
    user's."""
    if not is_model(function):
        return python_of(function)
    found = python_of(function.__nbcomp_forward__())
    return None if found is None or found.__code__.co_filename.startswith(PACKAGE) else found


def eager_call(function: Any, python: Any) -> Any:
    """How a model's `forward` is called where Python runs it, also in parts; else None.

    python: what runs in place of a function that is compiled, if that is something else.
    """
    return getattr(function if python is None else python, "__nbcomp_eager__", None)


def forward_in_python(model: Any, forward: Any) -> Any:
    """What runs where the `forward` of such a model is not compiled; None if there is no model."""
    return None if model is None else type(model).__nbcomp_python__(forward)


def calling(model: Any, compiled: Any) -> Any:
    """What calls models like this one with a compiled `forward`; that itself if there is none."""
    return compiled if model is None else type(model).__nbcomp_calls__(compiled)


def owner_of(function: Any) -> Any:
    """What a method is called on, or the model itself; None for functions."""
    return function if is_model(function) else getattr(function, "__self__", None)


def _answers_anything(function: Any) -> bool:
    """Whether an object has or trips over an attribute that nothing has, or is not itself."""
    try:
        return hasattr(function, "__nbcomp_nothing__") or bool(function != function)
    except Exception:  # whatever the user's own methods raise
        return True


def name_of(function: Any) -> str:
    """What a callable is called; objects by their class."""
    owner = getattr(function, "__self__", None)
    if isinstance(function, types.MethodType) and function.__name__ == "__call__":
        return type(owner).__name__
    name: str = getattr(function, "__name__", type(function).__name__)
    return name


def global_name(wrapper: Any) -> str:
    """The name under which pickle finds this very object; "" if it does not.

    cloudpickle takes what a notebook or script defines by its code, as it does with functions: who
    reads it has no such module.
    """
    module, name = wrapper.__module__, wrapper.__qualname__
    pickler = sys._getframe(2).f_globals.get("__name__", "")
    if module == "__main__" and pickler.startswith("cloudpickle"):
        return ""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is wrapper else ""
