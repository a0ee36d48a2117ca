"""The Python function that a compiled one stands for, down to the helpers it calls.

Knows functions and their variables; it calls none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import CellType, FunctionType
from typing import Any

from nbcomp.magics.recording import is_compiled


def plain(function: Any) -> Callable[..., Any]:
    """The Python function of a compiled one, calling the Python functions of its compiled helpers.

    Otherwise the comparison would not be with NumPy.
    """
    plain_function: Callable[..., Any] = _Plain().value(function)
    return plain_function


class _Plain:
    """Copies of functions whose globals and closures hold Python functions for compiled ones."""

    def __init__(self) -> None:
        self.copies: dict[int, FunctionType] = {}
        self.namespaces: dict[int, dict[str, Any]] = {}

    def value(self, value: Any) -> Any:
        """A function's plain form; any other value itself."""
        if is_compiled(value):
            value = value.__wrapped__
        elif not (isinstance(value, FunctionType) and id(value.__globals__) in self.namespaces):
            return value
        return self.copy(value) if isinstance(value, FunctionType) else value

    def copy(self, python: FunctionType) -> FunctionType:
        """The function over plain globals and closure variables."""
        variables = self.namespace(python.__globals__)
        if id(python) in self.copies:
            return self.copies[id(python)]
        old = python.__closure__ or ()
        cells = tuple(CellType() for _ in old)
        new = FunctionType(python.__code__, variables, python.__name__, python.__defaults__, cells)
        new.__kwdefaults__ = python.__kwdefaults__
        self.copies[id(python)] = new
        for cell, original in zip(cells, old, strict=True):
            with suppress(ValueError):  # a variable that has no value yet
                cell.cell_contents = self.value(original.cell_contents)
        return new

    def namespace(self, variables: dict[str, Any]) -> dict[str, Any]:
        """The globals as they are now, with plain functions."""
        if id(variables) not in self.namespaces:
            self.namespaces[id(variables)] = copy = dict(variables)
            for name, value in variables.items():
                copy[name] = self.value(value)
        return self.namespaces[id(variables)]
