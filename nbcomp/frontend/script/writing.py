"""Statements as a kernel: as many as can be, and what the statements after them see.

A region is written again whenever something is learnt that statements already written depend on.
Knows regions and tracers; nothing of how an element is computed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nbcomp.errors import Unsupported
from nbcomp.frontend.location import here
from nbcomp.frontend.number import length
from nbcomp.frontend.result import Chosen, OfTag, Varied
from nbcomp.frontend.script.assignments import Restart
from nbcomp.frontend.script.conditions import later
from nbcomp.frontend.script.region import Region
from nbcomp.frontend.script.source import Source, names_in
from nbcomp.frontend.script.values import (
    KINDS,
    NONE,
    TAG,
    Either,
    Kind,
    Local,
    LocalFunction,
    Maybe,
    NotElements,
    OneOf,
    Scalar,
    Torn,
    Varying,
    View,
    describe,
)
from nbcomp.frontend.session import Session
from nbcomp.frontend.storage import Place, Storage
from nbcomp.frontend.tracer import Tracer
from nbcomp.graph.ir import Node
from nbcomp.loop.grammar import Affine, const
from nbcomp.record import Location
from nbcomp.sizes import Size

MANY_RESTARTS = 64
OF_TAG = OfTag(tuple(k.python or k.dtype.type for k in KINDS if k != NONE))


class Unleaving(NotElements):
    """A value that statements on whole arrays cannot have."""


@dataclass(frozen=True)
class Written:
    """What a region became.  env: the variables after it.  returned: whether the function ends."""

    count: int  # statements
    env: dict[str, Any]
    returned: bool
    value: Any


def write_region(
    session: Session,
    source: Source,
    body: list[ast.stmt],
    env: dict[str, Any],
    lookup: Callable[[str], Any],
    cells: Mapping[int, str],
    needed: set[str],
    last: bool,
    outermost: bool = False,
    always: bool = False,
) -> Written | None:
    """Write as many of the statements as can be as one kernel; None if there is no loop in them.

    needed: variables that are read after these statements.  last: whether the function ends with
    them.  outermost: whether it is the one that was compiled, whose value the caller gets.  always:
    also without a loop.
    """
    learnt: Region | None = None
    count = len(body)
    for _ in range(MANY_RESTARTS):
        region = Region(session, source, env, lookup, cells)
        if learnt is not None:
            region.kinds, region.flagged = learnt.kinds, learnt.flagged
            region.torn = learnt.torn
            region.wide, region.reach = learnt.wide, learnt.reach
            region.result_ways = learnt.result_ways
        try:
            done = _write(region, body[:count])
            if not done or not (always or _are_worth(body[:done])):
                return None
            if done == count:
                return _finish(region, body, count, needed, last, outermost)
        except Unleaving as error:
            session.note_refusal(body[0], NotElements(error.reason))
            return None
        except Restart:
            learnt = region
            continue
        count = done
    raise Unsupported("the types of variables do not settle")


def write_call(session: Session, function: Any, args: Sequence[Any]) -> Any:
    """The value of a function of numbers, such as `int` or `math.sqrt`, of numbers known at run
    time: a kernel of its own.  Raises NotElements where it cannot be."""
    names = [f"number_{k}" for k in range(len(args))]
    place = here() or Location("", 1)
    call = ast.Call(
        ast.Name("function", ast.Load()),
        [ast.Name(n, ast.Load()) for n in names],
        [],
        lineno=place.line,
        col_offset=place.column,
        end_lineno=place.end_line or place.line,
        end_col_offset=place.end_column,
    )
    source = Source(later(ast.fix_missing_locations(call)), place.file, function.__name__)
    env = {"function": function, **dict(zip(names, args, strict=True))}
    written = write_region(
        session, source, source.body, env, _no_name, {}, set(), True, always=True
    )
    if written is None:
        raise NotElements(f"{function.__name__}() of such numbers")
    return written.value


def _no_name(name: str) -> Any:
    raise NameError(f"name {name!r} is not defined")


def _write(region: Region, body: list[ast.stmt]) -> int:
    """Write statements up to the first that cannot be; how many were."""
    names = names_in(body)
    region.enter_all(names.read | names.assigned)
    region.start_flags(body)
    region.start_results()
    for name in region.flagged & region.frame.env.keys():
        region.bind(name, region.frame.env[name])
    for position, stmt in enumerate(body):
        if region.dead:
            return len(body)
        try:
            region.statement(stmt)
        except NotElements as error:
            region.session.note_refusal(stmt, error)
            return position
    return len(body)


def _are_worth(stmts: list[ast.stmt]) -> bool:
    """Whether statements are better in a kernel: with a loop, or a change of an element.  The loops
    of functions that are made in them count where these are called."""
    called = names_in([s for s in stmts if not isinstance(s, ast.FunctionDef)]).read
    return any(
        _is_worth(s) and not (isinstance(s, ast.FunctionDef) and s.name not in called)
        for s in stmts
    )


def _is_worth(stmt: ast.stmt) -> bool:
    if any(isinstance(n, ast.For | ast.While | ast.GeneratorExp) for n in ast.walk(stmt)):
        return True
    targets = stmt.targets if isinstance(stmt, ast.Assign) else []
    targets = [stmt.target] if isinstance(stmt, ast.AugAssign) else targets
    return any(isinstance(t, ast.Subscript) for t in targets)


def _finish(
    region: Region,
    body: list[ast.stmt],
    count: int,
    needed: set[str],
    last: bool,
    outermost: bool,
) -> Written | None:
    """The region's node, and the variables after it."""
    rest = names_in(body[count:])
    ends = last and count == len(body)
    returned = bool(region.frame.results)
    if returned and not region.dead and not ends:
        return None
    if returned or (ends and not region.dead):
        return _returned(region, count, outermost)
    wanted = (needed | rest.read) & names_in(body[:count]).assigned
    values = {n: region.frame.env[n] for n in sorted(wanted) if n in region.frame.env}
    leaves: list[tuple[str, Scalar]] = []
    for name, value in values.items():
        if isinstance(value, Maybe):
            region.need_assigned(name)
            value = value.value
        values[name] = _plain(region, value)
        _leaves_of(region, name, values[name], leaves)
    made = iter(region.node(_title(region), leaves))
    env = {n: _outside(region, v, made) for n, v in values.items()}
    return Written(count, env, False, None)


def _returned(region: Region, count: int, outermost: bool) -> Written:
    if not region.dead:
        region.stmt_Return(ast.Return(None))
    region.dead = False
    stmts, region.stmts = region.stmts, []
    region.add_function(region.frame, stmts)
    value = region.result_of(region.frame)
    if isinstance(value, OneOf) and not outermost:
        one, other = value.values[:2]
        raise Unleaving(f"{describe(one)} is returned on one way and {describe(other)} on another")
    value = value if outermost else _plain(region, value)
    leaves: list[tuple[str, Scalar]] = []
    _leaves_of(region, "result", value, leaves)
    made = iter(region.node(_title(region), leaves))
    return Written(count, {}, True, _outside(region, value, made))


def _title(region: Region) -> str:
    return region.frame.source.name.strip("<>") + "_loops"


def _plain(region: Region, value: Any) -> Any:
    """A value of which the kinds of numbers are known: others are left to Python.

    A variable that is Python's at first is NumPy's once a loop has gone round.
    """
    if isinstance(value, tuple):
        return tuple(_plain(region, v) for v in value)
    n = region.value_of(value) if isinstance(value, Varying) else value
    if not isinstance(n, Either):
        return value
    way = n.ways[-1]
    n = replace(n, expr=region.kept(n.expr, "t"), tag=region.kept(n.tag, "kind"))
    other = region.compare("not_equal", n.tag, const(way.tag, TAG))
    with region.uncertain():
        region.fail_if(other, "TypeError", "a number whose kind depends on the way taken")
    return region.of_kind(n, way.kind, n.tag)


def _leaves_of(region: Region, name: str, value: Any, leaves: list[tuple[str, Scalar]]) -> None:
    """The run-time numbers in a value, which become results of the kernel."""
    if isinstance(value, tuple):
        for v in value:
            _leaves_of(region, name, v, leaves)
    elif isinstance(value, OneOf):
        _leaves_of(region, f"{name}_which", value.which, leaves)
        _leaves_of(region, name, value.values, leaves)
    elif isinstance(value, Either):  # what the caller gets is told by the tag
        leaves.append((name, Scalar(Kind(value.expr.dtype), value.expr)))
        leaves.append((f"{name}_kind", Scalar(Kind(TAG), value.tag)))
    elif isinstance(value, Local | Scalar):
        s = region.value_of(value) if isinstance(value, Local) else value
        assert isinstance(s, Scalar)
        leaves.append((name, s))
    elif isinstance(value, View) and not _may_leave(region, value):
        raise Unleaving(f"`{name}` is part of an array, and is used after the loop")
    elif isinstance(value, Torn | LocalFunction | list | dict) and not _is_known(value):
        raise Unsupported(f"`{name}` is used after the loop, where it is {describe(value)}")


def _is_known(value: Any) -> bool:
    """Whether nothing of a value is known at run time only."""
    if isinstance(value, tuple | list):
        return all(map(_is_known, value))
    if isinstance(value, dict):
        return all(map(_is_known, value.values()))
    return not isinstance(value, Torn | LocalFunction | Scalar | Local | Either | Varying | View)


def _outside(region: Region, value: Any, made: Any) -> Any:
    """A value as the statements after the region see it."""
    if isinstance(value, tuple):
        return tuple(_outside(region, v, made) for v in value)
    if isinstance(value, OneOf):
        which = _outside(region, value.which, made)
        return Chosen(which, _outside(region, value.values, made))
    if isinstance(value, Either):
        held = _traced(region, Kind(value.expr.dtype), next(made))
        return Varied(held, _traced(region, Kind(TAG), next(made)), OF_TAG)
    if isinstance(value, Local | Scalar):
        return _traced(region, value.kind, next(made))
    if isinstance(value, Size):
        return length(region.session, value)
    return _part(value) if isinstance(value, View) else value


def _may_leave(region: Region, view: View) -> bool:
    """Whether a part of an array is one for statements on whole arrays, too: a plain slice."""
    positions = [a.position for a in view.axes]
    plain = positions == sorted(set(positions)) and all(a.step != 0 for a in view.axes)
    return plain and not view.moves and id(view.memory.buffer) not in region.arrays


def _part(view: View) -> Any:
    """A part of an array, of the array as statements on whole arrays have it."""
    if view.whole:
        return view.memory.origin
    index: list[Any] = [e.constant for e in view.start if isinstance(e, Affine)]
    for axis in view.axes:
        first, step, count = index[axis.position], axis.step, axis.extent
        assert not isinstance(step, Scalar)
        assert not isinstance(count, Scalar)
        stop = first + step * count
        index[axis.position] = slice(first, None if stop < 0 else stop, step)
    return view.memory.origin[tuple(index)]


def _traced(region: Region, kind: Kind, node: Node) -> Tracer:
    weak = kind.python in (int, float)
    tracer = Tracer(region.session, Place(Storage(replace(node, weak=weak))), True)
    tracer._python = kind.python
    return tracer
