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
from nbcomp.frontend.location import here
from nbcomp.frontend.number import Number, symbol
from nbcomp.frontend.session import Read, Session
from nbcomp.frontend.storage import Place, Storage
from nbcomp.frontend.tracer import Tracer, read
from nbcomp.graph.branches import If
from nbcomp.graph.control import Result
from nbcomp.graph.ir import Graph, Node, apply, topological
from nbcomp.graph.op import Constant, Input
from nbcomp.ops.operand import cast, constant
from nbcomp.types import BOOL, FLOAT64, INT64, TensorType

Env = dict[str, Any]
Seen = Mapping[int, Node]  # what arrays held, by the id of their tracers
PYTHON = {int: INT64, float: FLOAT64, bool: BOOL}


@dataclass(frozen=True)
class Merged:
    """A value that differs between two ways, and where it is among a node's results."""

    index: int
    scalar: bool
    python: type | None


@dataclass(frozen=True)
class Undecided:
    """A variable that cannot be one thing: the error for whoever reads it."""

    error: NbcompError


class Contents:
    """What arrays hold at one moment: to be taken back, and compared."""

    def __init__(self, session: Session, values: Iterable[Any]) -> None:
        self.session = session
        storages = {id(t._place.storage): t._place.storage for t in tracers(values)}
        self.nodes: list[tuple[Storage, Node]] = [(s, s.node) for s in storages.values()]
        self.reads: list[tuple[Read, Node, bool]] = [
            (r, r.content, r.written) for r in session.reads.values()
        ]
        self.effects = len(session.effects)

    def changed(self) -> dict[Storage, Node]:
        """The storages that have another content now."""
        return {s: s.node for s, node in self.nodes if s.node is not node}

    def take_back(self) -> list[Node]:
        """Everything as it was; the checks that were made since."""
        known = {id(s.read) for s, _ in self.nodes if s.read is not None}
        for read_, content, written in self.reads:
            if read_.content is not content and id(read_) not in known:
                raise Unsupported(
                    f"{read_.source.describe()} is written to in a branch", here(), "pass it in"
                )
            read_.content, read_.written = content, written
        for storage, node in self.nodes:
            if storage.node is not node:
                storage.node = node
                storage.version += 1
        made = self.session.effects[self.effects :]
        del self.session.effects[self.effects :]
        return made


def tracers(values: Iterable[Any]) -> Iterable[Tracer]:
    """All arrays in some values."""
    for value in values:
        if type(value) is Tracer:
            yield value
        elif isinstance(value, tuple | list):
            yield from tracers(value)
        elif isinstance(value, dict):
            yield from tracers(value.values())


class Choice:
    """Two ways that meet: collects what differs and makes the node."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.pairs: list[tuple[Node, Node]] = []
        self.sources: dict[int, set[Storage]] = {}  # what arrays among the results may be
        self.seen: tuple[dict[int, Node], dict[int, Node]] = ({}, {})

    def side(self, which: int, values: Iterable[Any]) -> None:
        """Note what arrays hold at the end of a side, before its writes are taken back."""
        self.seen[which].update({id(t): read(t) for t in tracers(values)})

    def value(self, a: Any, b: Any, name: str) -> Any:
        """What a value is where the ways meet: itself, or a place among the results."""
        if a is b:
            return a
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
            return tuple(self.value(x, y, name) for x, y in zip(a, b, strict=True))
        if isinstance(a, str | None) and isinstance(b, str | None) and a == b:
            return a
        one, other = traced(a, self.seen[0]), traced(b, self.seen[1])
        if one is None or other is None:
            return self._torn(name, a, b)
        merged = self._pair(one, other, name)
        if isinstance(merged, Merged) and not merged.scalar:
            storages = [t._place.storage for t in (a, b) if type(t) is Tracer]
            self.sources[merged.index] = {s for t in storages for s in t.sharing()}
        return merged

    def _pair(self, a: tuple[Node, Any], b: tuple[Node, Any], name: str) -> Any:
        (one, kind), (other, kind2) = a, b
        if kind[0] and kind2[0] and mixed(one, kind[1], other, kind2[1]):
            raise Unsupported(mixed_words(name, kind[1], kind2[1]), here())
        python = kind[1] if kind[1] is kind2[1] else None
        if one.type != other.type:
            if one.shape or other.shape or not (kind[0] and kind2[0]):
                return self._torn(name, one.type, other.type)
            dtype = common(one, kind[1], other, kind2[1])
            if dtype is None:
                return self._torn(name, one.type, other.type)
            one, other = (cast(n, dtype) if n.type.dtype != dtype else n for n in (one, other))
            python = float if kind[1] and kind2[1] else None
        self.pairs.append((one, other))
        return Merged(len(self.pairs) - 1, kind[0] and kind2[0], python)

    def _torn(self, name: str, a: Any, b: Any) -> Undecided:
        return Undecided(
            Unsupported(
                f"`{name}` is {described(a)} on one way and {described(b)} on the other",
                here(),
                "make it the same type and shape on both",
            )
        )

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


def results_of(node: Node) -> list[Node]:
    """The results of a control node."""
    types: Sequence[TensorType] = node.op.results()  # type: ignore[attr-defined]
    return [apply(Result(k, t), node) for k, t in enumerate(types)]


def boundary(outputs: Sequence[Node], outer: set[Node]) -> list[Node]:
    """What some nodes read of what was there before, and of what the function is given."""
    found: dict[Node, None] = {}
    seen: set[Node] = set()
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node.op, Constant) and not node.shape:
            continue
        if node in outer or isinstance(node.op, Input):
            found[node] = None
        else:
            stack.extend(node.inputs)
    return list(found)


def subgraph(name: str, operands: Sequence[Node], outputs: Sequence[Node]) -> Graph:
    """The nodes between operands and outputs as a graph of its own."""
    new: dict[Node, Node] = {}
    for k, node in enumerate(operands):
        new[node] = Node(Input(k, node.type), (), node.type, node.location, node.name, node.weak)
    inputs = tuple(new.values())
    for node in topological_from(outputs, set(operands)):
        if node not in new:
            new[node] = replace(node, inputs=tuple(new[i] for i in node.inputs))
    return Graph(name, inputs, tuple(new[n] for n in outputs))


def topological_from(outputs: Sequence[Node], stop: set[Node]) -> Iterable[Node]:
    """Operands before users, without what is behind `stop`."""
    done: set[Node] = set()
    stack = [(n, False) for n in reversed(outputs)]
    while stack:
        node, expanded = stack.pop()
        if node in done:
            continue
        if expanded or node in stop:
            done.add(node)
            yield node
        else:
            stack.append((node, True))
            stack.extend((i, False) for i in node.inputs)


def outer_nodes(session: Session, values: Iterable[Any]) -> set[Node]:
    """All that was computed before."""
    roots = [r.node for r in session.reads.values()]
    for tracer in tracers(values):
        roots += [tracer._place.storage.node, tracer._place.read()]
    roots += [v._node for v in _numbers(values)]
    return set(topological(roots))


def _numbers(values: Iterable[Any]) -> Iterable[Number]:
    for value in values:
        if type(value) is Number:
            yield value
        elif isinstance(value, tuple | list):
            yield from _numbers(value)


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


def mixed(a: Node, p: type | None, b: Node, q: type | None) -> bool:
    """Whether one of two scalars is a number of Python's and the other one of NumPy's, or another
    one of Python's, which count differently; bools do not."""
    return p is not q and {a.type.dtype, b.type.dtype} != {BOOL}


def mixed_words(name: str, p: type | None, q: type | None) -> str:
    """What is said of such a variable."""
    kinds = sorted("one of NumPy's" if t is None else f"Python's {t.__name__}" for t in (p, q))
    return f"whether `{name}` is {kinds[0]} or {kinds[1]} is known only at run time"


def common(a: Node, p: type | None, b: Node, q: type | None) -> Any:
    """The dtype of numbers of two kinds, if there is one that holds both."""
    if p and q:
        return FLOAT64 if {p, q} == {int, float} else None
    if p or q:
        python, dtype = (p, b.type.dtype) if p else (q, a.type.dtype)
        order = {bool: "biuf", int: "iuf", float: "f"}
        return dtype if dtype.kind in order.get(python or object, "") else None
    return None


def described(value: Any) -> str:
    if isinstance(value, TensorType):
        return str(value)
    return str(value._type) if type(value) is Tracer else type(value).__name__


def placed(
    session: Session, value: Any, results: Sequence[Node], name: str, made: dict[int, Storage]
) -> Any:
    """A merged value as the program sees it; its storage is noted in `made`."""
    if isinstance(value, tuple):
        return tuple(placed(session, v, results, name, made) for v in value)
    if not isinstance(value, Merged):
        return value
    node = results[value.index]
    weak = value.python in (int, float)
    node = replace(node, weak=weak, name=name if name.isidentifier() else "")
    made[value.index] = Storage(node)
    tracer = Tracer(session, Place(made[value.index]), value.scalar)
    tracer._python = value.python
    return tracer


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


def needed(session: Session, checks: Sequence[Node], outputs: Sequence[Node]) -> None:
    """Refuse a check inside control flow over arrays that no result depends on."""
    if checks and not set(checks) <= set(topological(outputs)):
        raise Unsupported("a check that no result depends on, in control flow over arrays", here())


def choose(
    session: Session,
    test: Node,
    env: Env,
    sides: Sequence[Callable[[], tuple[Env, Any]]],
) -> tuple[Env, Any]:
    """Both sides of a condition: the variables and the value after it.

    sides: each gives its variables and its value, working on `env` itself.
    """
    outer = outer_nodes(session, env.values()) | set(topological([test]))
    before = Contents(session, env.values())
    found: list[tuple[Env, Any, dict[Storage, Node]]] = []
    checks: list[Node] = []
    choice = Choice(session)
    for which, side in enumerate(sides):
        after, value = side()
        choice.side(which, [*after.values(), value])
        found.append((after, value, before.changed()))
        checks += before.take_back()
    (yes, a, wrote), (no, b, wrote_too) = found
    names = [n for n in yes if n in no]
    merged = {n: choice.value(yes[n], no[n], n) for n in names}
    value = choice.value(a, b, "what is returned")
    storages = list(dict.fromkeys([*wrote, *wrote_too]))
    places = []
    for s in storages:
        places.append(len(choice.pairs))
        choice.pairs.append((wrote.get(s, s.node), wrote_too.get(s, s.node)))
    results = choice.node(test, outer)
    needed(session, checks, [n for pair in choice.pairs for n in pair])
    session.effects += [r.inputs[0] for r in results[:1] if checks]
    for s, k in zip(storages, places, strict=True):
        Place(s).write(results[k])
    if isinstance(value, Undecided):
        raise value.error
    made: dict[int, Storage] = {}
    variables = {n: placed(session, v, results, n, made) for n, v in merged.items()}
    returned = placed(session, value, results, "", made)
    link([(made[k], sources) for k, sources in choice.sources.items()])
    return variables, returned
