"""From a call of a compiled function to its report: compared with NumPy, timed, scaled."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import CellType, FunctionType
from typing import Any

import nbcomp
from nbcomp import bench
from nbcomp.display.bundle import Report
from nbcomp.display.view import SECTIONS, Fallback
from nbcomp.magics.cell import Call, is_compiled


@dataclass(frozen=True)
class Options:
    """What a report is to hold: timings, at which batch sizes, within how many seconds."""

    timed: bool = True
    sizes: tuple[int, ...] = bench.SIZES
    seconds: float = 5.0
    max_lines: int = 200
    show: tuple[str, ...] = SECTIONS


def report_on(call: Call, options: Options, say: Callable[[str], None] = lambda _: None) -> Report:
    """Compare a call with NumPy and, unless told otherwise, time it, also across batch sizes."""
    function, compiled = call.function, call.compiled
    if call.refused is not None:
        refused = call.refused
        reason = Fallback(function.__name__, refused.message, refused.location, refused.hint)
        return Report(reason, call.value, show=options.show)
    reference = plain(function)
    name = compiled.name
    say(f"{name}: comparing with NumPy …")
    both = (function, reference, call.args, call.kwargs)
    scaling = None
    if options.timed:
        comparison = bench.compare(*both, seconds=options.seconds / 4)
        if comparison.agrees:
            # A copy of the function, so that it does not keep a variant for every size.
            scaling = bench.scaling(
                nbcomp.jit(function.__wrapped__),
                *both[1:],
                sizes=options.sizes,
                seconds=options.seconds * 3 / 4,
                progress=lambda size: say(f"{name}: timing batch size {size:,} …"),
            )
    else:
        comparison = bench.check(*both)
    return Report(compiled, call.value, comparison, scaling, options.max_lines, options.show)


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
