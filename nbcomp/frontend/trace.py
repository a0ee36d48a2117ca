"""Capture by tracing: runs a plain NumPy function once, on tracers, and gives its `Graph`.

`capture` lifts the arguments, runs the function on them and turns what it returned and wrote into
graph outputs, with the guards under which the graph is the function.  Knows the frontend's parts;
nothing of what becomes of the graph.
"""

from __future__ import annotations

import inspect
import operator
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nbcomp.conditions import LEAST, Conditions
from nbcomp.errors import CaptureError, NbcompError, Unsupported, an
from nbcomp.frontend.checks import results_to_reach
from nbcomp.frontend.dispatch import call, fresh
from nbcomp.frontend.lift import Lifter
from nbcomp.frontend.location import returned_at
from nbcomp.frontend.numpy_source import by_source
from nbcomp.frontend.outputs import Outputs, Remade
from nbcomp.frontend.result import Tree, bind, rebuild, resolve
from nbcomp.frontend.session import NOTHING_OPEN, Openings, Read, Session
from nbcomp.frontend.words import in_users_words
from nbcomp.graph.ir import Graph, Node, rewrite, topological
from nbcomp.graph.op import Constant, Input
from nbcomp.ops.operand import Cast, Length
from nbcomp.record import Remark
from nbcomp.runtime.plan import ArrayGuard, Guard, ObjectGuard, ScalarGuard, Source
from nbcomp.sizes import Size, is_open
from nbcomp.types import contiguous_strides

__all__ = ["Capture", "bind", "capture", "rebuild", "resolve"]


@dataclass(frozen=True)
class Capture:
    """A function as a graph, for the calls its guards hold for.

    guards: one per graph input, in order, then all else that was assumed.  result: what the
    function returns, see `rebuild`.  scalar_outputs: 0-d outputs that NumPy would hand out as NumPy
    scalars.  writes: the caller's arrays that the function changes, with the output that is their
    new content, to be copied after all outputs are computed.  disjoint: pairs of guards whose
    arrays must not overlap.  frozen: where a value of the example decided.  sizes: what is assumed
    about lengths that are open.  orders: the axes of an output, outermost in memory first, where
    NumPy's layout of it is known.
    """

    graph: Graph
    guards: tuple[Guard, ...]
    result: Tree
    scalar_outputs: frozenset[int]
    writes: tuple[tuple[Source, int], ...]
    signature: inspect.Signature
    positional: int
    disjoint: tuple[tuple[int, int], ...] = ()
    remarks: tuple[Remark, ...] = ()
    frozen: tuple[CaptureError, ...] = ()
    sizes: Conditions | None = None
    orders: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def single(self) -> bool:
        """Whether the function returns one new array and nothing else."""
        return self.result == _FIRST and not self.writes


_FIRST = Outputs.first


def capture(
    function: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    freeze: bool = False,
    opened: Openings = NOTHING_OPEN,
) -> Capture:
    """Trace a function on these arguments.

    opened: lengths of arrays that are left open, where there are `Conditions` in force.

    freeze: where control flow depends on array values, take the way that these arguments take;
    `Capture.frozen` says where.  Otherwise that raises CaptureError.

    Raises `Unsupported` for what nbcomp does not compile, and otherwise what the function itself
    raises.
    """
    signature = signature_of(function)
    values = bind(signature, args, kwargs, function)
    session, lifter = start(name_of(function), opened)
    session.returns = returned_at(function)
    session.freezing = freeze
    copy = lifter.lift(function, Source("object", session.name, function))
    lifted = [
        lifter.lift(value, Source("argument", i, name=name), name)
        for i, (name, value) in enumerate(zip(signature.parameters, values, strict=True))
    ]
    try:
        returned = run(copy, signature, lifted)
        _check_returned(session.name, returned)
        return finish(session, lifter, signature, returned)
    except NbcompError:
        raise
    except Exception as error:
        in_users_words(error, session)
        raise
    finally:
        session.close()


def start(name: str, opened: Openings = NOTHING_OPEN) -> tuple[Session, Lifter]:
    """A capture of a function of this name, and what lifts the values for it."""
    session = Session(name, opened)
    session.unrolled.root = run.__code__
    session.call = lambda f, a, k: call(session, f, a, k)
    lifter = Lifter(session)
    session.foreign = lifter.foreign
    session.check_unchanged = lifter.check_unchanged
    session.by_source = lambda f, a, k: by_source(session, f, a, k)
    session.tracer = lambda node: fresh(session, node)
    return session, lifter


def default_guards(function: Any) -> Iterator[ObjectGuard]:
    """That a function's defaults are still these: they stand among the arguments."""
    python = getattr(function, "__func__", function)
    for name in ("__defaults__", "__kwdefaults__"):
        value = getattr(python, name, None)
        if value:
            place = Source("object", python.__name__, python, (("attr", name),))
            yield ObjectGuard(place, value)


def name_of(function: Any) -> str:
    """What the graph of a function is called."""
    name: str = getattr(function, "__name__", "") or name_of(
        getattr(function, "func", type(function))
    )
    return name if name.isidentifier() else "lambda_"


def signature_of(function: Any) -> inspect.Signature:
    """A function's signature.  Raises CaptureError for what is no function in Python."""
    try:
        if not isinstance(function, type | np.ufunc):
            # A decorator's wrapper takes what it takes, whatever `functools.wraps` says.
            plain = isinstance(function, types.FunctionType | types.MethodType)
            return inspect.signature(function, follow_wrapped=not plain)
    except (TypeError, ValueError):
        pass
    raise CaptureError(
        f"{function!r} is {an(type(function).__name__)};"
        " nbcomp compiles functions written in Python"
    )


def _check_returned(name: str, returned: Any) -> None:
    kinds: dict[Any, str] = {
        types.GeneratorType: "a generator: it hands out values one by one",
        types.CoroutineType: "an async function",
        types.AsyncGeneratorType: "an async generator",
    }
    for kind, what in kinds.items():
        if isinstance(returned, kind):
            if not isinstance(returned, types.AsyncGeneratorType):
                returned.close()
            raise CaptureError(
                f"{name} is {what}", hint="return an array, or a list of arrays, instead"
            )


def run(function: Any, signature: inspect.Signature, lifted: list[Any]) -> Any:
    """Call a function on its bound arguments."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for parameter, value in zip(signature.parameters.values(), lifted, strict=True):
        match parameter.kind:
            case inspect.Parameter.VAR_POSITIONAL:
                positional.extend(value)
            case inspect.Parameter.VAR_KEYWORD:
                named.update(value)
            case inspect.Parameter.KEYWORD_ONLY:
                named[parameter.name] = value
            case _:
                positional.append(value)
    return function(*positional, **named)


# --------------------------------------------------------------------------------- finishing


def finish(
    session: Session,
    lifter: Lifter,
    signature: inspect.Signature,
    returned: Any,
    remade: Remade | None = None,
) -> Capture:
    """The capture of a function that returned this; `remade` as for `Outputs`."""
    lifter.check_unchanged()
    outputs = Outputs(session, lifter, remade)
    result = outputs.tree(returned)
    written = [r for r in session.reads.values() if r.written]
    writes = tuple((r.source, outputs.add(r.content)) for r in written)
    for node in results_to_reach(session.effects, outputs.nodes):
        outputs.add(node)
    if session.sizes:
        _keep_long(topological(outputs.nodes))
    used = [r for r in session.reads.values() if r.used and r.node not in session.known_nodes]
    graph = _renumbered(
        Graph(session.name, tuple(r.node for r in used), tuple(outputs.nodes)), session
    )
    if session.sizes:
        _check_sizes(graph)
    guards: list[Guard] = [
        _guard(r, node, graph) for r, node in zip(used, graph.inputs, strict=True)
    ]
    return Capture(
        graph,
        (*guards, *session.guards.values()),
        result,
        frozenset(outputs.scalars),
        writes,
        signature,
        len(signature.parameters),
        _disjoint(used),
        (*session.remarks, *session.unrolled.remarks()),
        tuple(session.freezes),
        session.conditions.copy() if session.sizes and session.conditions else None,
        outputs.orders,
    )


def _keep_long(nodes: Iterable[Node]) -> None:
    """Lengths made of open numbers are 2 or more, as open lengths are, or the ones seen."""
    for node in nodes:
        for n in node.shape:
            if isinstance(n, Size) and (n.hint < LEAST or n < LEAST):
                operator.index(n)


def _check_sizes(graph: Graph) -> None:
    """Numbers made of sizes fit the integer dtypes they are converted to."""
    for node in graph.nodes:
        if isinstance(node.op, Length):
            low, high = _range(node, graph)
            if not low <= node.op.size <= high:
                raise Unsupported(f"{node.op.size} does not fit its integer dtype")


def _renumbered(graph: Graph, session: Session) -> Graph:
    """Inputs numbered in order; numbers whose value is assumed become constants."""
    position = {node: i for i, node in enumerate(graph.inputs)}

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node | None:
        if not isinstance(node.op, Input):
            return None
        if node in position:
            new = replace(node.op, index=position[node])
            return None if new == node.op else replace(node, op=new)
        read = session.read_of(node)
        assert read is not None
        assert node in session.known_nodes
        return replace(node, op=Constant(np.asarray(read.value)))

    return rewrite(graph, rule)


def _guard(read: Read, node: Node, graph: Graph) -> ArrayGuard | ScalarGuard:
    assert isinstance(node.op, Input)
    slot, value = node.op.index, read.value
    if isinstance(value, np.ndarray):
        shape, strides = node.shape, value.strides
        if is_open(shape):
            steps = node.op.strides or contiguous_strides(shape)
            strides = tuple(s * value.itemsize for s in steps)
        return ArrayGuard(read.source, value.dtype, shape, strides, slot, read.written)
    if isinstance(value, np.generic):
        return ScalarGuard(read.source, type(value), slot)
    if isinstance(value, int):
        low, high = _range(node, graph)
        low, high = max(low, read.low), min(high, read.high)
        if not low <= value <= high:
            raise Unsupported(f"{read.source.describe()} = {value} does not fit its integer dtype")
        return ScalarGuard(read.source, int, slot, low, high)
    return ScalarGuard(read.source, float, slot)


def _range(node: Node, graph: Graph) -> tuple[int, int]:
    """The whole numbers that fit every integer dtype this number is converted to."""
    low, high = -(2**63), 2**63 - 1
    for user in graph.users[node]:
        if isinstance(user.op, Cast) and user.op.dtype.kind in "iu":
            info: Any = np.iinfo(user.op.dtype)
            low, high = max(low, info.min), min(high, info.max)
    return low, high


def _disjoint(used: list[Read]) -> tuple[tuple[int, int], ...]:
    """Pairs of array inputs of which one is written; raises `Unsupported` if they overlap."""
    pairs = []
    for i, a in enumerate(used):
        for j, b in enumerate(used):
            either = a.written and (j > i or not b.written) and i != j
            if either and isinstance(a.value, np.ndarray) and isinstance(b.value, np.ndarray):
                if np.may_share_memory(a.value, b.value):
                    raise Unsupported(
                        f"{a.source.describe()} is written to and shares memory with"
                        f" {b.source.describe()}",
                        hint="pass a copy of one of them",
                    )
                pairs.append((i, j))
    return tuple(pairs)
