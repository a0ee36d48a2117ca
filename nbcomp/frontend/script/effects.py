"""Whether a function loops, and following its source can have effects: decided before it is
followed.

The whole-array way of `script` runs statements that it does not know as Python does.  Who asks for
another way to capture a function whose source was not asked for must know that nothing is run
twice.  Knows syntax and what names stand for; it follows nothing itself.
"""

from __future__ import annotations

import ast
import math
import types
from collections.abc import Iterable
from typing import Any

import numpy as np

from nbcomp.frontend.namespace import FILES, VOLATILE_MODULES
from nbcomp.frontend.script.source import source_of
from nbcomp.frontend.tracer import METHODS
from nbcomp.graph.numpy_function import NUMPY
from nbcomp.runtime.plan import builtins_of

_STATEMENTS = (
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr, ast.Pass),
    *(ast.For, ast.While, ast.If, ast.Break, ast.Continue, ast.Assert, ast.Raise),
)
_EXPRESSIONS = (
    *(ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.Call, ast.Constant),
    *(ast.Attribute, ast.Subscript, ast.Name, ast.Tuple, ast.List, ast.Slice),
    ast.GeneratorExp,
)
_ARRAY_METHODS = {
    *METHODS,
    *("astype", "copy", "fill", "flatten", "item", "reshape", "transpose"),
}
_FUNCTIONS = {
    *(abs, all, any, bool, divmod, enumerate, float, int, len, max, min, pow),
    *(ord, range, reversed, round, sum, zip, np.iinfo, np.finfo, np.dtype),
}


def loops_without_effects(function: types.FunctionType, values: Iterable[Any]) -> bool:
    """Whether a call with these arguments loops, and certainly only computes, and changes arrays.

    Arguments are arrays and numbers; statements assign, branch and loop; what is called is a
    function of numbers, one of NumPy's that has an operator, a method of arrays, or another
    function like that.  Raises CaptureError where the source is not at hand.
    """
    read = {function}
    return (
        all(map(_is_plain, values))
        and _Reader(function, read).is_pure()
        and any(
            isinstance(n, ast.For | ast.While | ast.GeneratorExp)
            for f in read
            for n in ast.walk(source_of(f).node)
        )
    )


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, np.ndarray | np.generic | int | float | bool)


class _Reader:
    """Reads one function; `seen` are those that are read already."""

    def __init__(self, function: types.FunctionType, seen: set[types.FunctionType]) -> None:
        self.function, self.source, self.seen = function, source_of(function), seen
        nodes = list(ast.walk(self.source.node))
        self.own = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.own |= {n.arg for n in nodes if isinstance(n, ast.arg)}
        inner = [n for n in nodes[1:] if isinstance(n, ast.FunctionDef) and not n.decorator_list]
        self.inner = {n.name for n in inner} - self.own  # functions that stand for themselves
        self.own |= {n.name for n in inner}

    def is_pure(self) -> bool:
        """Whether all of it is."""
        nodes = (node for statement in self.source.body for node in ast.walk(statement))
        return all(map(self.allows, nodes))

    def allows(self, node: ast.AST) -> bool:
        """Whether a node, its parts aside, has no effects."""
        match node:
            case ast.Call(func=function):
                return self.allows_call(function)
            case ast.Name(id=name, ctx=ast.Load()) if name not in self.own:
                found = self.found(name)
                return _is_plain(found) or callable(found) or isinstance(found, types.ModuleType)
            case ast.Attribute(ctx=ast.Store()) | ast.Name(ctx=ast.Del()):
                return False
            case ast.FunctionDef(name=name):
                return name in self.inner
            case ast.stmt():
                return isinstance(node, _STATEMENTS)
            case ast.expr():
                return isinstance(node, _EXPRESSIONS)
        return True

    def allows_call(self, node: ast.expr) -> bool:
        """Whether a call of this has none."""
        if isinstance(node, ast.Name) and node.id in self.inner:
            return True
        function = self.known(node)
        if function is NotImplemented:
            return isinstance(node, ast.Attribute) and node.attr in _ARRAY_METHODS
        if isinstance(function, types.FunctionType) and function not in NUMPY:
            if function in self.seen:
                return True
            self.seen.add(function)
            if _is_numpys(function):
                return True
            mine = not function.__module__.startswith("nbcomp")
            return mine and _Reader(function, self.seen).is_pure()
        return _is_of_numbers(function)

    def known(self, node: ast.expr) -> Any:
        """What a dotted name stands for; `NotImplemented` for variables and all else."""
        if isinstance(node, ast.Name) and node.id not in self.own:
            return self.found(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.known(node.value)
            if isinstance(owner, types.ModuleType):
                return getattr(owner, node.attr, NotImplemented)
        return NotImplemented

    def found(self, name: str) -> Any:
        """What a name that is not the function's own stands for; `NotImplemented` if nothing."""
        code, names = self.function.__code__, self.function.__globals__
        if name in code.co_freevars:
            cell = (self.function.__closure__ or ())[code.co_freevars.index(name)]
            try:
                return cell.cell_contents
            except ValueError:  # nothing yet
                return NotImplemented
        return names.get(name, builtins_of(names).get(name, NotImplemented))


def _is_numpys(function: Any) -> bool:
    """Whether this is a function of NumPy's that only computes: not one of files, of NumPy's state,
    or of random numbers."""
    module = function.__module__ or ""
    known = module.split(".")[0] == "numpy" and module not in VOLATILE_MODULES
    return known and function not in FILES


def _is_of_numbers(function: Any) -> bool:
    """Whether this is a function of numbers or arrays that only computes."""
    if isinstance(function, type) and issubclass(function, np.generic | Exception):
        return True
    if isinstance(function, types.BuiltinFunctionType) and function.__module__ == math.__name__:
        return True
    try:
        known = function in _FUNCTIONS or function in NUMPY
    except TypeError:  # not hashable
        return False
    return known or isinstance(function, np.ufunc)
