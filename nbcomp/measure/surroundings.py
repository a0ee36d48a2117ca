"""What a function can reach besides its arguments, kept while it is called only to be looked at.

Arrays, containers, objects, variables and generators of random numbers that its code names, or that
are within those, have after `again` the values they had at first.  Knows Python's functions; it
never calls anything of the user's.
"""

from __future__ import annotations

import dis
import inspect
import random
from collections.abc import Callable, Iterator
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from nbcomp.measure.arguments import Around
from nbcomp.measure.differences import Array

MOST = 20_000  # things that are kept; a program that reaches more keeps the first


class Surroundings(Around):
    """What a function reaches, as it is now."""

    def __init__(self, function: Any) -> None:
        self.arrays = self._arrays = dict[str, Array]()
        self._undo: list[Callable[[], object]] = [
            partial(np.random.set_state, np.random.get_state()),
            partial(random.setstate, random.getstate()),
        ]
        self._seen: dict[int, Any] = {}  # by id; held, so that no other object gets the id
        waiting = [(getattr(function, "__name__", "function"), function)]
        while waiting and len(self._seen) < MOST:
            name, value = waiting.pop()
            if id(value) not in self._seen:
                self._seen[id(value)] = value
                waiting += self._entered(name, value)

    def again(self) -> None:
        for undo in self._undo:
            undo()

    def _entered(self, name: str, value: Any) -> Iterator[tuple[str, Any]]:
        """Keep one value; what is within it."""
        if isinstance(value, np.generic):
            return
        if hasattr(type(value), "__array__"):  # an array, or a parameter, over whose memory one is
            self._keep_array(name, np.asarray(value))
        elif isinstance(value, np.random.Generator):
            self._undo.append(partial(_set_state, value, value.bit_generator.state))
        elif isinstance(value, FunctionType):
            yield from self._function(value)
        elif isinstance(value, MethodType):
            yield from ((name, value.__func__), (name, value.__self__))
        elif isinstance(value, list | dict | set):
            self._undo.append(partial(_refill, value, value.copy()))
            entries = value.items() if isinstance(value, dict) else enumerate(value)
            yield from ((f"{name}[{key!r}]", entry) for key, entry in entries)
        elif isinstance(value, tuple):
            yield from ((f"{name}[{key}]", entry) for key, entry in enumerate(value))
        elif not isinstance(value, type | ModuleType):
            yield from self._object(name, value)

    def _keep_array(self, name: str, array: Array) -> None:
        if array.flags.writeable and array.dtype != object:
            self._arrays.setdefault(name, array)
            self._undo.append(partial(np.copyto, array, array.copy()))

    def _function(self, function: FunctionType) -> Iterator[tuple[str, Any]]:
        """The variables that a function's code names, and what its defaults hold."""
        known = function.__globals__
        for code in codes(function.__code__):
            for name in code.co_names:
                if name in known:
                    yield name, known[name]
            for instruction in dis.get_instructions(code):
                if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                    self._keep_variable(known, instruction.argval)
        names = function.__code__.co_freevars
        for name, cell in zip(names, function.__closure__ or (), strict=True):
            try:
                content = cell.cell_contents
            except ValueError:  # it has no value yet
                continue
            self._undo.append(partial(setattr, cell, "cell_contents", content))
            yield name, content
        defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        yield f"a default of {function.__name__}", defaults

    def _keep_variable(self, variables: dict[str, Any], name: str) -> None:
        if name in variables:
            self._undo.append(partial(variables.__setitem__, name, variables[name]))
        else:
            self._undo.append(partial(variables.pop, name, None))

    def _object(self, name: str, value: Any) -> Iterator[tuple[str, Any]]:
        """The attributes of an object of the user's; a compiled function is what it compiles."""
        inner = inspect.unwrap(value) if callable(value) else value
        if inner is not value:
            yield name, inner
            return
        own = getattr(value, "__dict__", None)
        if type(own) is dict:
            self._undo.append(partial(_refill, own, own.copy()))
            yield from ((f"{name}.{key}", entry) for key, entry in own.items())


def codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code and that of all functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def _refill(container: Any, entries: Any) -> None:
    """Give a list, dict or set these entries."""
    if isinstance(container, list):
        container[:] = entries
    elif container != entries or list(container) != list(entries):
        container.clear()
        container.update(entries)


def _set_state(generator: np.random.Generator, state: Any) -> None:
    generator.bit_generator.state = state
