"""Both sides of a condition on run-time values: each is traced, and a node chooses between them.

What a side does to variables and to arrays is taken back before the other is traced; where they
differ afterwards, the node has a result.  Knows tracers, memory and graphs; nothing of syntax.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from nbcomp.errors import CaptureError, NbcompError, Unsupported
from nbcomp.frontend.checks import raising, results_of, results_to_reach
from nbcomp.frontend.location import here
from nbcomp.frontend.number import Number, symbol
from nbcomp.frontend.result import Chosen, OfTag, Varied
from nbcomp.frontend.script.contents import Contents, tracers
from nbcomp.frontend.script.entries import State, unchanged
from nbcomp.frontend.script.heap import Held, reach
from nbcomp.frontend.script.raises import Raising
from nbcomp.frontend.script.subgraphs import boundary, outer_nodes, subgraph
from nbcomp.frontend.session import Session
from nbcomp.frontend.storage import Place, Storage
from nbcomp.frontend.tracer import MixedBool, Tracer, read
from nbcomp.frontend.unrolled import LongLoop
from nbcomp.graph.branches import If
from nbcomp.graph.ir import Node, apply, topological
from nbcomp.graph.numpy_function import NUMPY
from nbcomp.ops.operand import cast, constant
from nbcomp.record import Location
from nbcomp.types import BOOL, FLOAT64, INT64, TensorType

RETURNED = "what is returned"
OF_BOOLS = OfTag((bool, np.bool_))
Env = dict[str, Any]
Seen = Mapping[int, Node]  # what arrays held, by the id of their tracers
PYTHON = {int: INT64, float: FLOAT64, bool: BOOL}
MOST_SURVEYED = 200_000  # nodes by all choices of a program: about a second


@dataclass(frozen=True)
class Merged:
    """A value that differs between two ways, and where it is among a node's results; tag: where it
    is said whose bool it is, if that is to be known."""

    index: int
    scalar: bool
    python: type | None
    tag: int | None = None


@dataclass(frozen=True)
class Undecided:
    """A variable that cannot be one thing: the error for whoever reads it."""

    error: NbcompError


class Choice:
    """Two ways that meet: collects what differs and makes the node.

    location: of the condition.  ends: what is returned on either way is the program's result.
    """

    def __init__(self, session: Session, location: Location | None, ends: bool = False) -> None:
        self.session, self.location, self.ends = session, location, ends
        self.pairs: list[tuple[Node, Node]] = []
        self.sources: dict[int, set[Storage]] = {}  # what arrays among the results may be
        self.seen: tuple[dict[int, Node], dict[int, Node]] = ({}, {})

    def side(self, which: int, values: Iterable[Any]) -> None:
        """Note what arrays hold at the end of a side, before its writes are taken back."""
        self.seen[which].update({id(t): read(t) for t in tracers(values)})

    def value(self, a: Any, b: Any, name: str) -> Any:
        """What a value is where the ways meet: itself, or a place among the results."""
        if a is b or isinstance(a, Undecided):
            return a
        if isinstance(b, Undecided):
            return b
        if isinstance(a, tuple) and type(a) is type(b) and len(a) == len(b):
            parts = [self.value(x, y, name) for x, y in zip(a, b, strict=True)]
            torn = next((part for part in parts if isinstance(part, Undecided)), None)
            return torn or tuple.__new__(type(a), parts)
        if isinstance(a, Varied) or isinstance(b, Varied):
            return self._whose(a, b, name)
        one, other = traced(a, self.seen[0]), traced(b, self.seen[1])
        if one is None or other is None:
            return a if unchanged(a, b) else self._torn(name, a, b)
        merged = self._pair(one, other, name)
        if isinstance(merged, Merged) and not merged.scalar:
            storages = [t._place.storage for t in (a, b) if type(t) is Tracer]
            self.sources[merged.index] = {s for t in storages for s in t.sharing()}
        return merged

    def returned(self, a: Any, b: Any) -> Any:
        """What is returned: of one kind where the ways meet, or, where the program ends with them,
        whatever was returned on the way that was taken."""
        before = len(self.pairs), dict(self.sources)
        try:
            merged = self.value(a, b, RETURNED)
        except Unsupported:
            if not self.ends:
                raise
            merged = None
        if merged is not None and not (self.ends and isinstance(merged, Undecided)):
            return merged
        self.sources = before[1]
        del self.pairs[before[0] :]
        self.pairs.append((constant(np.asarray(0)), constant(np.asarray(1))))
        which = Merged(len(self.pairs) - 1, True, int)
        sides = [self.on_one_way(value, k) for k, value in enumerate((a, b))]
        torn = next((s for s in sides if isinstance(s, Undecided)), None)
        return torn or Chosen(which, tuple(sides))

    def on_one_way(self, value: Any, side: int) -> Any:
        """A value that is there on one way, among results that are 0 on the other."""
        if isinstance(value, Chosen):
            value = value.which, value.values
            parts = self.on_one_way(value, side)
            return parts if isinstance(parts, Undecided) else Chosen(*parts)
        if isinstance(value, tuple):
            parts = [self.on_one_way(v, side) for v in value]
            torn = next((p for p in parts if isinstance(p, Undecided)), None)
            return torn or tuple.__new__(type(value), parts)
        if value is None or type(value) in (str, *PYTHON):
            return value
        found = traced(value, self.seen[side])
        if isinstance(value, Varied) and (told := _told(value)):
            parts = [self.on_one_way(self.session.tracer(n), side) for n in told]
            return Merged(parts[0].index, True, None, parts[1].index)
        if found is None:
            return self._torn(RETURNED, value, None)
        node, (scalar, python) = found
        if python is MixedBool:
            return self._torn(RETURNED, value, None)
        nothing = constant(np.zeros(node.shape, node.type.dtype))
        self.pairs.append((node, nothing) if side == 0 else (nothing, node))
        return Merged(len(self.pairs) - 1, scalar, python)

    def _pair(self, a: tuple[Node, Any], b: tuple[Node, Any], name: str) -> Any:
        (one, kind), (other, kind2) = a, b
        scalars = kind[0] and kind2[0]
        if scalars and (words := mixed(name, one, kind[1], other, kind2[1])):
            raise Unsupported(words, self.location)
        if one.type != other.type or kind[0] != kind2[0]:
            return self._torn(name, _what(one, kind), _what(other, kind2))
        self.pairs.append((one, other))
        index, kinds = len(self.pairs) - 1, (kind[1], kind2[1])
        if not scalars or kinds[0] is kinds[1]:
            return Merged(index, scalars, kinds[0] if scalars else None)
        if name != RETURNED or not self.ends or MixedBool in kinds:
            return Merged(index, scalars, MixedBool)
        yes, no = map(_tag_of, kinds)
        self.pairs.append((yes, no))
        return Merged(index, True, None, index + 1)

    def _whose(self, a: Any, b: Any, name: str) -> Any:
        """A bool that is returned, of which it is known at run time already whose it is."""
        one, other = _told(a), _told(b)
        if one is None or other is None:
            return self._torn(name, a, b)
        self.pairs += zip(one, other, strict=True)
        index = len(self.pairs) - 2
        return Merged(index, True, None, index + 1)

    def state(self, held: Held, a: State, b: State) -> State:
        """What an object holds where the ways meet.

        Raises `Unsupported` where that is not one thing.
        """
        if not a.alike(b):
            raise Unsupported(
                f"{held.described()} changes on one way otherwise than on the other", self.location
            )
        pairs = enumerate(zip(a.values, b.values, strict=True))
        values = tuple(self.value(x, y, held.called(a, k)) for k, (x, y) in pairs)
        for value in values:
            if isinstance(value, Undecided):
                raise Unsupported(value.error.message, self.location, value.error.hint)
        return State(a.shape, values)

    def _torn(self, name: str, a: Any, b: Any) -> Undecided:
        one, other = described(a), described(b)
        other = "another" if one == other else other
        return Undecided(
            Unsupported(
                f"`{name}` is {one} on one way and {other} on the other",
                self.location,
                "make it the same type and shape on both",
            )
        )

    def check(self, which: int, checks: Sequence[Node]) -> None:
        """Make what may end the program on one way part of the node."""
        for result in results_to_reach(checks, [pair[which] for pair in self.pairs]):
            nothing = constant(np.zeros(result.shape, result.type.dtype))
            self.pairs.append((result, nothing) if which == 0 else (nothing, result))

    def node(self, test: Node, outer: set[Node]) -> list[Node]:
        """The results of an `If` on a bool."""
        if not self.pairs:
            return []
        sides = [[p[k] for p in self.pairs] for k in (0, 1)]
        operands = boundary([*sides[0], *sides[1]], outer)
        graphs = [
            subgraph(name, operands, outputs)
            for name, outputs in zip(("then", "else"), sides, strict=True)
        ]
        made = apply(If(*graphs), test, *operands)
        return results_of(made)


def traced(
    value: Any, seen: Seen = MappingProxyType({})
) -> tuple[Node, tuple[bool, type | None]] | None:
    """A value as a node, whether it is a scalar, and its Python type if it is Python's.

    seen: what arrays held at another moment.
    """
    if type(value) is Tracer:
        node = seen[id(value)] if id(value) in seen else read(value)
        return node, (value._scalar, value._python)
    if type(value) is Number:
        found = symbol(value)
        return (found, (True, type(value._value))) if isinstance(found, Node) else traced(found)
    if type(value) in PYTHON:
        if type(value) is int and not -(2**63) <= value < 2**63:
            return None
        node = constant(np.asarray(value, PYTHON[type(value)]))
        weak = type(value) is not bool
        return replace(node, weak=weak), (True, type(value))
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biuf":
        return constant(np.asarray(value)), (isinstance(value, np.generic), None)
    return None


def mixed(name: str, a: Node, p: type | None, b: Node, q: type | None) -> str:
    """That of two scalars one is a number of Python's and the other one of NumPy's, or another one
    of Python's, which count differently; "" if they are alike, or bools, whose truth is alike."""
    if p is q or {a.type.dtype, b.type.dtype} == {BOOL}:
        return ""
    kinds = sorted("one of NumPy's" if t is None else f"Python's {t.__name__}" for t in (p, q))
    return f"whether `{name}` is {kinds[0]} or {kinds[1]} is known only at run time"


def _tag_of(python: type | None) -> Node:
    """Whose bool it is, as of `OF_BOOLS`."""
    return constant(np.asarray(1 if python is bool else 2, np.uint8))


def _told(value: Any) -> tuple[Node, Node] | None:
    """A bool and whose it is; None for what is none, or of which that is not known."""
    if isinstance(value, Varied):
        return (read(value.value), read(value.tag)) if value.make is OF_BOOLS else None
    found = traced(value)
    if found is None or found[0].type.dtype != BOOL or not found[1][0] or MixedBool in found[1]:
        return None
    return found[0], _tag_of(found[1][1])


def _what(node: Node, kind: tuple[bool, type | None]) -> Any:
    """A number's or array's type, for a message."""
    return node.type if not kind[0] else kind[1] or node.type.dtype.type


def described(value: Any) -> str:
    """A value in a message, as far as it is known now."""
    if type(value) is Tracer:
        return described(_what(read(value), (value._scalar, value._python)))
    if isinstance(value, TensorType):
        return str(value)
    if type(value) in (str, bool, int, float, type(None)):
        text = repr(value)
        return text if len(text) < 40 else type(value).__name__
    if type(value) is tuple:
        return f"({', '.join(map(described, value))}{',' * (len(value) == 1)})"
    if type(value) in (list, dict, set):
        return f"{type(value).__name__} of {len(value)}"
    name = getattr(value, "__name__", None) if callable(value) else None
    return name if isinstance(name, str) else type(value).__name__


def placed(
    session: Session, value: Any, results: Sequence[Node], name: str, made: dict[int, Storage]
) -> Any:
    """A merged value as the program sees it; its storage is noted in `made`."""
    if isinstance(value, Chosen):
        which, values = (
            placed(session, v, results, name, made) for v in (value.which, value.values)
        )
        return Chosen(which, values)
    if isinstance(value, tuple):
        parts = (placed(session, v, results, name, made) for v in value)
        return tuple.__new__(type(value), parts)
    if not isinstance(value, Merged):
        return value
    node = results[value.index]
    weak = value.python in (int, float)
    node = replace(node, weak=weak, name=name if name.isidentifier() else "")
    made[value.index] = Storage(node)
    tracer = Tracer(session, Place(made[value.index]), value.scalar)
    tracer._python = value.python
    if value.tag is None:
        return tracer
    return Varied(tracer, Tracer(session, Place(Storage(results[value.tag])), True), OF_BOOLS)


def link(made: Sequence[tuple[Storage, set[Storage]]]) -> None:
    """Note what new arrays may be: those each comes from, and one another."""
    for k, (storage, sources) in enumerate(made):
        storage.may_be(sources)
        for other, others in made[:k]:
            if sources & others:
                storage.may_be([other])
                other.may_be([storage])


def truth_of(session: Session, value: Any) -> Node | None:
    """A run-time condition as a bool node; None for what is known now."""
    if type(value) is not Tracer:
        return None
    if session.known(read(value)) is not None:
        return None
    if value.size != 1:
        bool(np.zeros(value.shape))  # raises as NumPy does
        raise CaptureError(f"whether an array of shape {value.shape} is true", here())
    flat = value if not value.shape else value.reshape(())
    return cast(read(flat), BOOL)


def _survey(session: Session, before: Contents, test: Node, location: Location | None) -> set[Node]:
    """All that is computed before a choice.  Raises LongLoop where a program that is written out
    has made so many choices that compiling it would be long: each looks at all before it."""
    outer = outer_nodes(before) | set(topological([test]))
    session.surveyed += len(outer)
    if session.surveyed > MOST_SURVEYED:
        raise LongLoop(
            "a loop over whole arrays or lists is written out, and chooses by values too often for"
            " that",
            location,
            "keep numbers in arrays: loops over their elements become loops of machine code",
        )
    return outer


def choose(
    session: Session,
    test: Node,
    variables: Mapping[str, Any],
    sides: Sequence[Callable[[], tuple[Env, Any]]],
    location: Location | None,
    own: frozenset[int] = frozenset(),
    ends: bool = False,
) -> tuple[Env, Any]:
    """Both sides of a condition: the variables and the value after it.

    variables: what the sides have in reach.  sides: each gives its variables and its value.
    location: of the condition.  own: as of `Contents`.  ends: the captured function ends with
    either side, so of the objects only those in its result are of use.  Where one raises, the other
    is what is left, after a check that ends the program.
    """
    before = Contents(session, variables, own)
    outer = _survey(session, before, test, location)
    found: list[tuple[Env, Any, dict[Storage, Node], dict[Held, State]]] = []
    checks: list[list[Node]] = []
    choice = Choice(session, location, ends)
    wanted: set[int] = set()
    for which, side in enumerate(sides):
        try:
            after, value = side()
        except Raising as raised:
            before.take_back()
            bad = test if which == 0 else NUMPY[np.logical_not].trace(test)
            session.effects.append(raising(raised.kind, raised.message, bad, location))
            return sides[1 - which]()
        objects = before.heap.changed()
        entries = [v for state in objects.values() for v in state.values]
        choice.side(which, [*after.values(), value, *entries])
        wanted |= {id(v) for _, v in reach([("", value)])}
        found.append((after, value, before.changed(), objects))
        checks.append(before.take_back())
    (yes, a, wrote, held), (no, b, wrote_too, held_too) = found
    names = [n for n in yes if n in no]
    merged = {n: choice.value(yes[n], no[n], n) for n in names}
    value = choice.returned(a, b)
    old = before.heap.before
    states = {
        h: choice.state(h, held.get(h, old[h]), held_too.get(h, old[h]))
        for h in dict.fromkeys([*held, *held_too])
        if not ends or h.identity in wanted
    }
    storages = list(dict.fromkeys([*wrote, *wrote_too]))
    places = []
    for s in storages:
        places.append(len(choice.pairs))
        choice.pairs.append((wrote.get(s, s.node), wrote_too.get(s, s.node)))
    for which, made_there in enumerate(checks):
        choice.check(which, made_there)
    results = choice.node(test, outer)
    session.effects += [r.inputs[0] for r in results[:1] if any(checks)]
    for s, k in zip(storages, places, strict=True):
        Place(s).write(results[k])
    if isinstance(value, Undecided):
        raise value.error
    made: dict[int, Storage] = {}
    after = {n: placed(session, v, results, n, made) for n, v in merged.items()}
    returned = placed(session, value, results, "", made)
    for h, state in states.items():
        values = tuple(placed(session, v, results, "", made) for v in state.values)
        h.put(State(state.shape, values))
    link([(made[k], sources) for k, sources in choice.sources.items()])
    return after, returned
