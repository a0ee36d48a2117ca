"""How the outputs of a plan become what the function returns and writes.

The run time hands out new arrays and objects of the caller's; what it can do by itself is data
here, the rest is put together in Python.  Knows captures and trees of results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nbcomp.errors import leave_users_frames
from nbcomp.frontend.rebuilding import rebuilder
from nbcomp.frontend.result import Out, Own, Record, Tree, ViewOf
from nbcomp.frontend.trace import Capture
from nbcomp.graph.ir import Node, apply
from nbcomp.runtime.plan import ArrayGuard, Source


@dataclass(frozen=True)
class Results:
    """What a call gives back, as the run time does it: its own outputs, then `finish`.

    outputs: new arrays (by graph output) and objects found at call time.  finish: puts them into
    the function's result, None where they are the result: one output by itself when `single`, else
    a tuple.
    """

    outputs: tuple[Out | Source, ...]
    single: bool
    finish: Callable[[tuple[Any, ...]], Any] | None


@dataclass(frozen=True)
class Finish:
    """Puts outputs into the tree that a function returns."""

    tree: Tree

    @cached_property
    def _put_together(self) -> Callable[[Sequence[Any]], Any]:
        return rebuilder(self.tree)

    def __call__(self, outputs: tuple[Any, ...]) -> Any:
        try:
            return self._put_together(outputs)
        except BaseException as error:  # an interrupt of the machine code is noticed here
            leave_users_frames(error)
            raise


def results_of(captured: Capture) -> Results | None:
    """How the run time gives a result; None if what is returned is also written elsewhere."""
    written = native_writes(captured)
    if len(written) != len(captured.writes):
        return None
    found: list[Out | Source] = []
    tree = _numbered(captured.result, found, {})
    if any(isinstance(r, Out) and r.index in written for r in found):
        return None
    flat = tuple(Out(k) for k in range(len(found)))
    if tree == Out(0):
        return Results(tuple(found), True, None)
    if type(tree) is tuple and tree == flat and flat:
        return Results(tuple(found), False, None)
    return Results(tuple(found), False, Finish(tree))


def unread(captured: Capture, results: Results) -> set[int]:
    """Outputs that nobody gets: they are computed since that may raise an error."""
    returned = {r.index for r in results.outputs if isinstance(r, Out)}
    return set(range(len(captured.graph.outputs))) - returned - set(native_writes(captured))


def _numbered(tree: Tree, found: list[Out | Source], made: dict[int, Tree]) -> Tree:
    """The tree with every array and every object of the caller's as an entry of `found`.

    made: what is one leaf stays one leaf, and becomes one object.
    """

    def inner(t: Tree) -> Tree:
        return _numbered(t, found, made)

    if id(tree) in made:
        return made[id(tree)]
    result = tree
    match tree:
        case Out(index, python):
            result = Out(_place(Out(index), found), python)
        case Own(source):
            result = Out(_place(source, found))
        case ViewOf(base, views):
            within = inner(base)
            assert isinstance(within, Out)
            result = ViewOf(within, views)
        case Record(make, fields):
            result = Record(make, {k: inner(v) for k, v in fields.items()})
        case dict():
            result = {k: inner(v) for k, v in tree.items()}
        case list() | tuple():
            result = type(tree)(map(inner, tree))
    made[id(tree)] = result
    return result


def _place(result: Out | Source, found: list[Out | Source]) -> int:
    if result not in found:
        found.append(result)
    return found.index(result)


def rigid(tree: Tree) -> set[int]:
    """Outputs of which the function returns views: those count on C order."""
    match tree:
        case ViewOf(Out(index, _), _):
            return {index}
        case Record(_, fields):
            return set().union(*map(rigid, fields.values()))
        case dict():
            return set().union(*map(rigid, tree.values()))
        case list() | tuple():
            return set().union(*map(rigid, tree))
        case _:
            return set()


def native_writes(captured: Capture) -> dict[int, int]:
    """Output → graph input whose array it becomes, where the array is a graph input."""
    inputs = captured.guards[: len(captured.graph.inputs)]
    places = {guard.source: k for k, guard in enumerate(inputs) if isinstance(guard, ArrayGuard)}
    return {index: places[source] for source, index in captured.writes if source in places}


def returned(leaf: Tree, outputs: Sequence[Node], places: Mapping[Source, Node]) -> Node | None:
    """The node of an array that is returned: new, an input from its place, or a view of these."""
    match leaf:
        case Out(index, _):
            return outputs[index]
        case Own(source):
            return places.get(source)
        case ViewOf(base, views):
            node = returned(base, outputs, places)
            for view in views if node else ():
                node = apply(view, node)  # type: ignore[arg-type]
            return node
        case _:
            return None
