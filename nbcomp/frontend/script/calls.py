"""Calls in element code: Python's functions, `math`, NumPy's functions of numbers, and functions of
the user's, which are written out where they are called.
"""

from __future__ import annotations

import ast
import math
import types
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from nbcomp.errors import CaptureError
from nbcomp.frontend.script.computed import is_array
from nbcomp.frontend.script.errors import TOO_LARGE_INT
from nbcomp.frontend.script.python_functions import (
    BUILTINS,
    MANY,
    OF_ANY_KIND,
    OF_LENGTHS,
    PythonFunctions,
    ZipOf,
)
from nbcomp.frontend.script.source import Source, source_of
from nbcomp.frontend.script.values import (
    PY_FLOAT,
    Either,
    GeneratorOf,
    Kind,
    LocalFunction,
    Method,
    NotElements,
    Scalar,
    View,
    describe,
    is_number,
    number,
)
from nbcomp.frontend.unrolled import about_caches
from nbcomp.sizes import Size

DEEPEST = 48  # calls within calls
MOST_BODIES = 2_000  # of functions that are written out in one loop: about a second


class Calls(PythonFunctions):
    """Values of calls."""

    original: Callable[[Any], Any]  # the user's or NumPy's function a lifted one stands for
    depth = 0
    bodies = 0  # of functions, written out so far
    cached: Sequence[str] = ()  # functions behind caches that the program has called
    path: tuple[object, ...] = ()  # the calls written out around this place

    def expr_Call(self, node: ast.Call) -> Any:
        function = self.value(node.func)
        if isinstance(function, View | Scalar | Either):
            raise NotElements(f"{describe(function)} is called")
        args = [v for a in node.args for v in self.positional(a)]
        named = dict(pair for k in node.keywords for pair in self.by_name(k))
        if len(named) < len(node.keywords) - sum(k.arg is None for k in node.keywords):
            raise NotElements("a keyword twice in a call")
        return self.called(function, args, named, node)

    def positional(self, node: ast.expr) -> Iterable[Any]:
        """The arguments that one between the brackets stands for."""
        if not isinstance(node, ast.Starred):
            return (self.value(node),)
        several = self.value(node.value)
        if not isinstance(several, tuple | list):
            raise NotElements(f"* of {describe(several)} in a call", node)
        return several

    def by_name(self, node: ast.keyword) -> Iterable[tuple[str, Any]]:
        """The same for a keyword, or `**`."""
        value = self.value(node.value)
        if node.arg is not None:
            return ((node.arg, value),)
        if not isinstance(value, dict) or not all(isinstance(k, str) for k in value):
            raise NotElements(f"** of {describe(value)} in a call", node.value)
        return value.items()

    def called(self, function: Any, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
        """The value of a call."""
        if isinstance(function, LocalFunction):
            return self.written_out(function, args, named)
        if isinstance(function, Method):
            return self.method(function, args, named)
        if type(getattr(function, "__self__", None)) is dict and not named:
            return self.of_dict(function, args)
        function = self.original(function)
        if args and isinstance(args[0], GeneratorOf):
            return self.used_up(function, args, named)
        if isinstance(function, types.MethodType):
            return self.called(function.__func__, [function.__self__, *args], named, node)
        if isinstance(function, types.FunctionType) and not _is_library(function):
            return self.inlined(function, args, named)
        return self.library(function, [self.item_of(a) for a in args], named, node)

    def library(
        self, function: Any, scalars: list[Any], named: dict[str, Any], node: ast.Call
    ) -> Any:
        """The value of a call of a function of Python's, of NumPy's or of another library."""
        if _hashable(function) and function in OF_ALL and scalars and is_array(scalars[0]):
            several = GeneratorOf(elements_of(node), self.frame, scalars[0])
            return self.used_up(function, [several, *scalars[1:]], named)
        if (
            any(map(is_array, scalars))
            and (found := self.of_arrays(function, scalars, named)) is not NotImplemented
        ):
            return found
        if function is zip and named.keys() == {"strict"}:
            return ZipOf(tuple(scalars), bool(named["strict"]))
        if not named and (found := self.builtin(function, scalars)) is not NotImplemented:
            return found
        if not named and _hashable(function) and function in OF_KNOWN and _are_known(scalars):
            return function(*scalars)
        return self.other(function, scalars, named, node)

    @abstractmethod
    def used_up(self, function: Any, args: list[Any], named: dict[str, Any]) -> Any:
        """What a function makes of all that a generator expression gives."""

    def of_dict(self, method: Any, args: list[Any]) -> Any:
        """A method that reads a dict, whose keys are known."""
        name = method.__name__
        if name == "get" and args and isinstance(args[0], str | int):
            return method(*args)
        if name in ("items", "keys", "values") and not args:
            return list(method())
        raise NotElements(f".{name}() of a dict in a loop over elements")

    def of_arrays(self, function: Any, args: list[Any], named: dict[str, Any]) -> Any:
        """A function of parts of arrays; `NotImplemented` for any other."""
        if (found := self.array_function(function, args, named)) is not NotImplemented:
            return found
        if named or not _hashable(function) or not all(is_array(a) or is_number(a) for a in args):
            return NotImplemented
        known: dict[Any, Callable[..., Any]] = {
            np.where: self.where,
            np.clip: self.clip,
            abs: self.call_abs,
        }
        by_element = known.get(function)
        if by_element is None and isinstance(function, np.ufunc):
            by_element = partial(self.of_elements, function)
        return NotImplemented if by_element is None else self.elementwise(by_element, *args)

    def of_elements(self, function: np.ufunc, *args: Any) -> Any:
        """A function of NumPy's, of elements."""
        return self.numpy_function(function, list(args))

    def builtin(self, function: Any, args: list[Any]) -> Any:
        """Functions of numbers; NotImplemented for all others."""
        if any(isinstance(a, Either) for a in args) and function not in OF_ANY_KIND:
            return self.each_way(args, lambda *plain: self.builtin(function, list(plain)))
        if function not in OF_LENGTHS:
            args = [number(a) if isinstance(a, Size) else a for a in args]
        handler = BUILTINS.get(function) if _hashable(function) else None
        if handler is not None:
            least, most = MANY.get(function, (0, math.inf))
            if not least <= len(args) <= most:
                raise NotElements(f"{function.__name__}() of {len(args)} arguments")
            return handler(self, *args)
        if isinstance(function, np.ufunc) and all(map(is_number, args)):
            return self.numpy_function(function, args)
        if isinstance(function, type) and issubclass(function, np.generic) and len(args) == 1:
            return self.numpy_type(function, args[0])
        if _hashable(function) and all(map(is_number, args)):
            return self.math_function(function, args)
        return NotImplemented

    def other(self, function: Any, args: list[Any], named: dict[str, Any], node: ast.Call) -> Any:
        """A call that only works where all it needs is known now."""
        raise NotElements(f"`{ast.unparse(node.func)}(...)` in a loop over elements", node)

    # ------------------------------------------------------------------------------- functions

    def numpy_function(self, function: np.ufunc, args: list[Any]) -> Any:
        if function.nout != 1 or function.signature is not None or function.nin != len(args):
            raise NotElements(f"np.{function.__name__} in a loop over elements")
        name = _UFUNC_NAMES.get(function.__name__, function.__name__)
        if not any(isinstance(a, Scalar) for a in args):
            return function(*args)
        if name == "power":
            return self.numpy_binary("power", args[0], args[1])
        return self.ufunc(name, tuple(args))

    def numpy_type(self, kind: type[np.generic], value: Any) -> Any:
        """`np.float32(x)` and the like."""
        if not is_number(value):
            raise NotElements(f"np.{kind.__name__} of {describe(value)}")
        if not isinstance(value, Scalar):
            return kind(value)
        target = Kind(np.dtype(kind))
        if value.kind.python is None:
            return self.converted(value, target)
        if value.kind == PY_FLOAT and target.is_int:
            value = self.truncated(value, TOO_LARGE_INT)
        return self.converted(value, target)

    # ---------------------------------------------------------------- the user's own functions

    def inlined(self, function: types.FunctionType, args: list[Any], named: dict[str, Any]) -> Any:
        """A function of the user's, written out."""
        source, lookup = source_of(function), self.names_of(function)
        bound = _bind(source, function.__defaults__ or (), function.__kwdefaults__, args, named)
        return self.write_out(source, lookup, bound)

    @abstractmethod
    def names_of(self, function: types.FunctionType) -> Callable[[str], Any]:
        """How a function's free names are found."""

    def written_out(self, function: LocalFunction, args: list[Any], named: dict[str, Any]) -> Any:
        """A function defined among the statements."""
        outer = function.scope

        def lookup(name: str) -> Any:
            if name in outer.env:
                here, self.frame = self.frame, outer
                try:
                    return self.read(name)
                finally:
                    self.frame = here
            return outer.lookup(name)

        defaults = function.defaults, function.named_defaults
        return self.write_out(
            function.source, lookup, _bind(function.source, *defaults, args, named)
        )

    def write_out(
        self,
        source: Source,
        lookup: Callable[[str], Any],
        bound: dict[str, Any],
    ) -> Any:
        """The body of a function in the place of its call; bound: its parameters' values."""
        if self.depth >= DEEPEST:
            raise CaptureError(
                f"{source.name} calls itself {DEEPEST} times over: how deep it goes must be known"
                " when compiling",
                self.location,
                "write it as a loop",
            )
        self.bodies += 1
        if self.bodies > MOST_BODIES:
            raise CaptureError(
                f"more than {MOST_BODIES:,} calls are written out, of {source.name} and others",
                self.location,
                about_caches(self.cached, "write recursion as a loop"),
            )
        _check_plain(source)
        self.depth += 1
        outer, path, self.path = self.location, self.path, (*self.path, self.location)
        try:
            return self.run_function(source, lookup, bound)
        finally:
            self.depth -= 1
            self.location, self.path = outer, path

    @abstractmethod
    def run_function(
        self, source: Source, lookup: Callable[[str], Any], bound: dict[str, Any]
    ) -> Any:
        """Write a function's body; its result."""


_UFUNC_NAMES = {"true_divide": "divide", "mod": "remainder", "abs": "absolute"}
OF_ALL = (sum, min, max, any, all)  # that go through what they are given
OF_KNOWN = (ord, chr, np.iinfo, np.finfo, np.dtype)  # computed now, if what they are given is known


def elements_of(node: ast.Call) -> ast.GeneratorExp:
    """All that the first argument of a call gives, as a generator: made once for each call."""
    made = vars(node).get("nbcomp_elements")
    if made is None:
        target, items = ast.Name("element", ast.Store()), ast.Name("items", ast.Load())
        clause = ast.comprehension(target, items, [], 0)
        made = ast.GeneratorExp(ast.Name("element", ast.Load()), [clause])
        ast.fix_missing_locations(ast.copy_location(made, node))
        vars(node)["nbcomp_elements"] = made
    assert isinstance(made, ast.GeneratorExp)
    return made


def _are_known(values: list[Any]) -> bool:
    return all(isinstance(v, str | int | type | np.dtype) for v in values)


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _is_library(function: types.FunctionType) -> bool:
    return (function.__module__ or "").split(".")[0] in ("numpy", "math", "nbcomp")


def _check_plain(source: Source) -> None:
    """Refuse generators and coroutines."""
    if any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Await) for n in ast.walk(source.node)):
        raise NotElements(f"{source.name} is a generator")


def _bind(
    source: Source,
    defaults: tuple[Any, ...],
    named_defaults: Mapping[str, Any] | None,
    args: list[Any],
    named: dict[str, Any],
) -> dict[str, Any]:
    """The values of a function's parameters.  Raises TypeError as the call itself would."""
    a = source.node.args
    names = [p.arg for p in (*a.posonlyargs, *a.args)]
    by_name = {p.arg for p in (*a.args, *a.kwonlyargs)}
    bound, rest = dict(zip(names, args, strict=False)), tuple(args[len(names) :])
    if rest and not a.vararg:
        raise TypeError(
            f"{source.name}() takes {len(names)} positional arguments but {len(args)} were given"
        )
    others = {k: v for k, v in named.items() if a.kwarg and k not in by_name}
    for name, value in named.items():
        if name in others:
            continue
        if name in bound or name not in by_name:
            raise TypeError(f"{source.name}() got an unexpected keyword argument {name!r}")
        bound[name] = value
    last = zip(names[len(names) - len(defaults) :], defaults, strict=True)
    for name, value in (*last, *(named_defaults or {}).items()):
        bound.setdefault(name, value)
    if missing := [n for n in (*names, *(p.arg for p in a.kwonlyargs)) if n not in bound]:
        raise TypeError(f"{source.name}() missing a required argument: {missing[0]!r}")
    if a.vararg:
        bound[a.vararg.arg] = rest
    return {**bound, a.kwarg.arg: others} if a.kwarg else bound
