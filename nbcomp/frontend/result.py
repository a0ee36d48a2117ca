"""Arguments in, results out: binding a call to a signature, and giving back what the function
returned.

A captured function's result is a tree: tuples, lists, dicts and records whose leaves are new
arrays (`Out`), the caller's own objects (`Own`), views of either (`ViewOf`) or values known when
compiling (`Static`).  Knows where values are found (`Source`), not how they are computed.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nbcomp.graph.op import Op
from nbcomp.runtime.plan import Source, follow


@dataclass(frozen=True)
class Out:
    """Output `index` of the graph; `python`: as a Python number of this type."""

    index: int
    python: type | None = None


@dataclass(frozen=True)
class Own:
    """The very object the caller holds: an argument, or a part of one, returned as it is."""

    source: Source


@dataclass(frozen=True, eq=False)
class ViewOf:
    """A view: `views` applied, in NumPy, to the caller's array or to a new one."""

    base: Out | Own
    views: tuple[Op, ...]


@dataclass(frozen=True, eq=False)
class Static:
    """A value known when compiling."""

    value: Any


@dataclass(frozen=True, eq=False)
class Record:
    """A named tuple or data class, made anew: `make(**fields)`."""

    make: Callable[..., Any]
    fields: dict[str, Tree]


@dataclass(frozen=True)
class OfTag:
    """The number whose type a tag tells: None for 0, else by its place in `types`, from 1 on."""

    types: tuple[Callable[[Any], Any], ...]

    def __call__(self, value: Any, tag: Any) -> Any:
        return self.types[int(tag) - 1](value) if tag else None


@dataclass(frozen=True, eq=False)
class Varied:
    """A number that is Python's or NumPy's as a run-time tag tells; value, tag: tracers."""

    value: Any
    tag: Any
    make: OfTag


@dataclass(frozen=True, eq=False)
class Chosen:
    """One of several values of different kinds, as a run-time number tells; which: a tracer."""

    which: Any
    values: tuple[Any, ...]


def choice(which: Any, values: tuple[Any, ...]) -> Any:
    """The value of a place."""
    return values[int(which)]


Tree = Out | Own | ViewOf | Static | Record | tuple[Any, ...] | list[Any] | dict[Any, Any]


def bind(
    signature: inspect.Signature,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    function: Any = None,
) -> tuple[Any, ...]:
    """One value per parameter, defaults filled in; `*args` is one tuple, `**kwargs` one dict.

    Raises TypeError for arguments that do not fit: that of the call itself, given the `function`.
    """
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        misfit = error.with_traceback(None)
    else:
        bound.apply_defaults()
        return tuple(bound.arguments.values())
    # Python checks a plain function's arguments before anything in it runs.
    if isinstance(function, types.FunctionType | types.MethodType):
        function(*args, **kwargs)
    raise misfit


def resolve(source: Source, args: Sequence[Any]) -> Any:
    """The object found at a source now; `args` as `bind` gave them.

    Raises KeyError, IndexError or AttributeError when it is not there any more.
    """
    return follow(source.path, _root(source, args))


def _root(source: Source, args: Sequence[Any]) -> Any:
    match source.kind:
        case "argument":
            return args[source.key]
        case "global":
            return source.root[source.key]
        case "cell":
            return source.root.cell_contents
        case _:
            return source.root


def rebuild(tree: Tree, outputs: Sequence[Any], args: Sequence[Any]) -> Any:
    """What the function returns, from the graph's outputs and the bound arguments of this call.

    Leaves that are one leaf in the tree become one object, as they were in the function.
    """
    return _rebuild(tree, outputs, args, {})


def _rebuild(tree: Tree, outputs: Sequence[Any], args: Sequence[Any], made: dict[int, Any]) -> Any:
    if id(tree) in made:
        return made[id(tree)]
    match tree:
        case Out(index, None):
            return outputs[index]
        case Out(index, python) if python is not None:
            return python(outputs[index])
        case Own(source):
            return resolve(source, args)
        case ViewOf(base, views):
            result = _rebuild(base, outputs, args, made)[...]
            for view in views:
                result = view.reference(result)
        case Static(value):
            return value
        case _:
            result = _container(tree, lambda part: _rebuild(part, outputs, args, made))
    made[id(tree)] = result
    return result


def _container(tree: Any, part: Callable[[Tree], Any]) -> Any:
    match tree:
        case Record(make, fields):
            return make(**{k: part(v) for k, v in fields.items()})
        case dict():
            return {k: part(v) for k, v in tree.items()}
        case _:
            return type(tree)(map(part, tree))


def leaves(tree: Tree) -> list[Out | Own | ViewOf | Static]:
    """All leaves, in order."""
    match tree:
        case Out() | Own() | ViewOf() | Static():
            return [tree]
        case Record(_, fields):
            return [leaf for value in fields.values() for leaf in leaves(value)]
        case dict():
            return [leaf for value in tree.values() for leaf in leaves(value)]
        case _:
            return [leaf for value in tree for leaf in leaves(value)]


def with_leaves(tree: Tree, new: Sequence[Any]) -> Tree:
    """The tree with other leaves, in the order of `leaves`; equal ones become one."""
    rest = iter(new)
    made: dict[Any, Any] = {}

    def part(t: Tree) -> Any:
        match t:
            case Out() | Own() | ViewOf() | Static():
                leaf = next(rest)
                return made.setdefault(leaf, leaf)
            case Record(make, fields):
                return Record(make, {k: part(v) for k, v in fields.items()})
            case dict():
                return {k: part(v) for k, v in t.items()}
            case _:
                return type(t)(map(part, t))

    result: Tree = part(tree)
    return result
