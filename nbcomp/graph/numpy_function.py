"""The NumPy functions nbcomp can trace, by the function object itself.

`NUMPY[np.sum].trace(x, axis=0)` builds nodes.  Each function's arguments are bound to NumPy's own
signature first: an argument the tracer does not know is dropped when it has NumPy's default and
refused by name otherwise, so that no tracer has to mention `order=`, `subok=` or `like=`.  Knows
nothing of graphs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from nbcomp.errors import Unsupported

F = TypeVar("F", bound=Callable[..., Any])

UNSET: Any = getattr(np, "_NoValue", None)  # NumPy's own "not given"

HINTS = {
    "out": "assign the result instead: out[...] = {name}(…)",
    "where": "select with np.where(mask, x, neutral element) first",
    "like": "leave it out",
    "subok": "leave it out",
    "order": "leave it out: the memory order of a result makes no difference to its values",
}


class NumpyFunction:
    """One NumPy function and the tracer that writes it in operators."""

    def __init__(self, function: Callable[..., Any], build: Callable[..., Any]) -> None:
        self.function, self.build = function, build

    @property
    def name(self) -> str:
        """How a user would write it."""
        name: str = getattr(self.function, "__name__", repr(self.function))
        owner = getattr(self.function, "__self__", None)
        return f"np.{owner.__name__}.{name}" if isinstance(owner, np.ufunc) else f"np.{name}"

    @cached_property
    def _signature(self) -> inspect.Signature | None:
        try:
            return inspect.signature(self.function)
        except ValueError:  # functions written in C may have none
            return None

    @cached_property
    def _known(self) -> dict[str, inspect.Parameter]:
        return dict(inspect.signature(self.build).parameters)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """A node, or a list or tuple of nodes.

        Raises `Unsupported` for an argument nbcomp does not know, and whatever NumPy raises for
        wrong arguments, shapes, axes and dtypes.
        """
        if self._takes_all:
            return self.build(*args, **kwargs)
        if self._signature is None or isinstance(self.function, np.ufunc):
            return self.build(*args, **self._screened(kwargs))
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            misfit = error.with_traceback(None)
        else:
            return self._call(bound, self._signature.parameters)
        self.function(*(None for _ in args), **dict.fromkeys(kwargs))  # NumPy's own complaint
        raise misfit

    @cached_property
    def _takes_all(self) -> bool:
        return inspect.Parameter.VAR_KEYWORD in {p.kind for p in self._known.values()}

    def _screened(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """The keyword arguments the tracer takes; the others must have no effect."""
        for name, value in kwargs.items():
            self._checked(name, value, None)
        return {k: v for k, v in kwargs.items() if k in self._known}

    def _call(self, bound: inspect.BoundArguments, theirs: Any) -> Any:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            kind = theirs[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                if value:  # what stands before must stay before
                    positional.extend(named.values())
                    named.clear()
                positional.extend(value)
            elif kind is inspect.Parameter.VAR_KEYWORD:
                named.update({k: self._checked(k, v, None) for k, v in value.items()})
            elif kind is inspect.Parameter.POSITIONAL_ONLY:
                positional.append(value)
            elif name in self._known:
                named[name] = value
            else:
                self._checked(name, value, theirs[name].default)
        return self.build(*positional, **named)

    def _checked(self, name: str, value: Any, default: Any) -> Any:
        if name in self._known:
            return value
        same = value is default or (isinstance(default, str) and value == default)
        harmless = name == "order" and value in ("K", "C", "A", None)
        if not (same or harmless):
            hint = HINTS.get(name, "leave it out").format(name=self.name)
            raise Unsupported(f"the argument {name}= of {self.name} is not compiled", hint=hint)
        return value


NUMPY: dict[Any, NumpyFunction] = {}  # every NumPy function that can be traced


def traces(*functions: Any) -> Callable[[F], F]:
    """Declare the decorated function to be the tracer of these NumPy functions.

    It takes NumPy's parameters by NumPy's names, those it supports, with nodes for arrays.
    """

    def register(build: F) -> F:
        for function in functions:
            NUMPY[function] = NumpyFunction(function, build)
        return build

    return register
