"""Capture by symbolic execution of bytecode, of a whole call.

`Stopped` says where Python has to go on: then `part` takes the function from one place to another.
Knows the machine and the parts of tracing; nothing of code objects to be made.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

from nbcomp.errors import NbcompError, Unsupported
from nbcomp.frontend.bytecode.machine import EARLY_STEPS, Machine, Stopped, TooLong, stopped
from nbcomp.frontend.bytecode.opcodes import TABLES
from nbcomp.frontend.bytecode.table import VERSION
from nbcomp.frontend.lift import Lazy
from nbcomp.frontend.location import location_of
from nbcomp.frontend.result import bind
from nbcomp.frontend.session import NOTHING_OPEN, Openings
from nbcomp.frontend.trace import Capture, default_guards, finish, name_of, run, signature_of, start
from nbcomp.frontend.unrolled import EARLY_WRITES, LongLoop, loop_around
from nbcomp.graph.control import Control, Loops
from nbcomp.runtime.plan import Source

Places = dict[tuple[types.CodeType, int], Unsupported]  # left to Python, and why
EARLY_VALUES = 1 << 22  # elements computed while compiling before a loop is asked for as one


def supported_version() -> bool:
    """Whether the bytecode of this Python is known."""
    return VERSION in TABLES


def capture(
    function: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    places: Places,
    opened: Openings = NOTHING_OPEN,
    by_source: Callable[[], Capture] | None = None,
) -> Capture:
    """The graph of a call, of all of the function; `opened` as for tracing.

    by_source: another way, for a function with loops over elements.

    Raises `Stopped` where Python has to go on, and `Unsupported`.
    """
    signature = signature_of(function)
    values = bind(signature, args, kwargs, function)
    while True:
        session, lifter = start(name_of(function), opened)
        machine = Machine(session, lifter, TABLES[VERSION], places)
        if by_source is not None:
            machine.most_steps, session.unrolled.most = EARLY_STEPS, EARLY_WRITES
            session.budget = EARLY_VALUES
        try:
            return _captured(function, signature, values, machine)
        except (Stopped, LongLoop) as stop:
            long = _is_long(stop)
            if by_source is not None and (long or _in_a_loop(stop)):
                if (loops := loops_over_elements(by_source)) is not None:
                    return loops
                if not long:
                    raise
                by_source = None  # once more, with more room for what is written out
            elif isinstance(stop, LongLoop) or not left_to_python(stop, places):
                raise
        finally:
            session.close()


def _captured(
    function: Any, signature: inspect.Signature, values: Sequence[Any], machine: Machine
) -> Capture:
    """What a machine makes of a call, in its session."""
    session, lifter = machine.session, machine.lifter
    session.stand_in = machine.stand_in
    copy = lifter.lift(function, Source("object", session.name, function))
    lifted = [
        _argument(lifter, value, Source("argument", i, name=name), parameter)
        for i, (value, (name, parameter)) in enumerate(
            zip(values, signature.parameters.items(), strict=True)
        )
    ]
    for guard in default_guards(function):
        session.guard(guard)
    returned = run(copy, signature, lifted)
    try:
        return finish(session, lifter, signature, returned)
    except NbcompError as error:
        if machine.root is None:
            raise
        raise stopped(machine.root, error) from None


def _is_long(stop: Stopped | LongLoop) -> bool:
    """Whether a loop is too long to be written out."""
    return isinstance(stop if isinstance(stop, LongLoop) else stop.error, LongLoop)


def _in_a_loop(stop: Stopped | LongLoop) -> bool:
    """Whether a loop has come to what Python has to do."""
    if isinstance(stop, LongLoop):
        return False
    inner = stop.error.location if isinstance(stop.error, NbcompError) else None
    if inner is not None and inner.function == "<genexpr>":
        return True
    return loop_around(location_of(stop.frame.f_code, stop.instruction.offset)) is not None


def has_loops(made: Capture) -> bool:
    """Whether it has control flow, all of it loops over elements."""
    return {type(n.op) for n in made.graph.nodes if isinstance(n.op, Control)} == {Loops}


def loops_over_elements(by_source: Callable[[], Capture]) -> Capture | None:
    """What the source gives, if its loops are loops over elements: those of whole arrays are as
    fast when they are written out, or run by Python round by round."""
    try:
        made = by_source()
    except Exception:  # what is wrong with it is Python's to say
        return None
    return made if has_loops(made) else None


def left_to_python(stop: Stopped, places: Places) -> bool:
    """Whether the machine stopped for a loop that is to be left to Python, which is noted."""
    if not isinstance(stop.error, TooLong):
        return False
    place = stop.error.frame.f_code, stop.error.head.offset
    known = place in places
    # Without its frames, which would keep values alive.
    places[place] = Unsupported(stop.error.message, stop.error.location, stop.error.hint)
    return not known


def _argument(lifter: Any, value: Any, source: Source, parameter: Any) -> Any:
    """An argument that is lifted when it is used; of `*args` and `**kwargs` each."""
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return lifter.lift(value, source, source.name)
    return Lazy(lifter, value, source, source.name)
