"""Functions that a scripted function calls: those with control flow are interpreted like it.

All others are run on tracers as they are, which is the same and quicker.  Knows which functions
have control flow, not what becomes of it.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable
from typing import Any

from nbcomp.errors import CaptureError, Unsupported
from nbcomp.frontend.location import here
from nbcomp.frontend.result import bind
from nbcomp.frontend.script.source import source_of

DEEPEST = 48  # calls within calls; recursion on values known at run time has no end
CONTROL = (ast.If, ast.While, ast.For, ast.IfExp, ast.BoolOp, ast.Assert)
CATCHING = (ast.Try, ast.TryStar, ast.With)
IN_PIECES = (ast.Yield, ast.YieldFrom, ast.Await)

Interpret = Callable[[types.FunctionType, dict[str, Any]], Any]


class Functions:
    """The lifted functions of one capture.  interpret: runs one, its parameters given by name."""

    def __init__(self, interpret: Interpret) -> None:
        self._interpret = interpret
        self._copies: dict[Any, types.FunctionType] = {}
        self._depth = 0

    def stand_in(self, copy: types.FunctionType) -> types.FunctionType:
        """What the program calls for a lifted function."""
        if not _has_control_flow(copy):
            return copy

        def shell(*args: Any, **kwargs: Any) -> Any:
            return self.run(copy, args, kwargs)

        shell.__name__, shell.__qualname__ = copy.__name__, copy.__qualname__
        shell.__module__ = copy.__module__
        shell.__dict__ = copy.__dict__
        self._copies[shell] = copy
        function: Any = shell
        return function  # type: ignore[no-any-return]

    def copy_of(self, function: Any) -> Any:
        """The lifted function that one of these stands for; any other itself."""
        known = isinstance(function, types.FunctionType)
        return self._copies.get(function, function) if known else function

    def run(self, copy: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value of a call.  Raises `Unsupported` for calls too deep."""
        signature = inspect.signature(copy, follow_wrapped=False)
        values = bind(signature, args, kwargs, copy)
        if self._depth >= DEEPEST:
            raise Unsupported(
                f"more than {DEEPEST} calls within calls: whether they end is known at run time",
                here(),
                "a loop",
            )
        self._depth += 1
        try:
            return self._interpret(copy, dict(zip(signature.parameters, values, strict=True)))
        finally:
            self._depth -= 1


def _has_control_flow(copy: types.FunctionType) -> bool:
    """Whether a function decides or repeats anything; its source must be at hand."""
    try:
        body = source_of(copy).body
    except CaptureError:
        return False
    nodes = [n for statement in body for n in ast.walk(statement)]
    return any(isinstance(n, (*CONTROL, *CATCHING)) for n in nodes) and not any(
        isinstance(n, IN_PIECES) for n in nodes
    )
