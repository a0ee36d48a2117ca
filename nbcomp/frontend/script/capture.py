"""Capture of a scripted function: its source is read, and its control flow kept."""

from __future__ import annotations

import inspect
import types
from collections.abc import Sequence
from typing import Any

from nbcomp.errors import CaptureError, NbcompError, Unsupported
from nbcomp.frontend.location import returned_at
from nbcomp.frontend.objects import attribute, source_of
from nbcomp.frontend.result import bind
from nbcomp.frontend.script.functions import Functions
from nbcomp.frontend.script.interpreter import Interpreter
from nbcomp.frontend.script.rounds import GROWN
from nbcomp.frontend.session import NOTHING_OPEN, Openings, Session
from nbcomp.frontend.trace import Capture, default_guards, finish, name_of, signature_of, start
from nbcomp.frontend.tracer import EXTRA_METHODS
from nbcomp.frontend.words import in_users_words
from nbcomp.runtime.plan import Source

# A class's attribute with the name of the method that computes, where `__call__` is not the user's,
# and the methods that arrays have in it.
COMPUTES = "__nbcomp_computes__"


def capture(
    function: Any, args: Sequence[Any], kwargs: dict[str, Any], opened: Openings = NOTHING_OPEN
) -> Capture:
    """The graph of a function, from its source, for these arguments; `opened` as for tracing.

    Raises CaptureError for what is no function, `Unsupported` for what is not compiled, which
    Python can run.
    """
    signature = signature_of(function)
    values = bind(signature, args, kwargs, function)
    session, lifter = start(name_of(function), opened)
    session.returns = returned_at(function)
    functions = Functions(lambda copy, env: Interpreter(session, copy, env).run())
    session.unrolled.most_listed = GROWN
    session.interpreted, session.written = functions.stand_in, functions.copy_of
    copy = lifter.lift(function, Source("object", session.name, function))
    lifted = [
        lifter.lift(value, Source("argument", i, name=name), name)
        for i, (name, value) in enumerate(zip(signature.parameters, values, strict=True))
    ]
    name, methods = getattr(type(function), COMPUTES, ("__call__", None))
    if source_of(copy) is not None:  # an object that is called
        copy = attribute(copy, name)
    for guard in default_guards(function):
        session.guard(guard)
    token = EXTRA_METHODS.set(methods or EXTRA_METHODS.get())
    try:
        returned = _run(session, functions, copy, signature, lifted)
        return finish(session, lifter, signature, returned)
    except CaptureError as error:
        raise Unsupported(error.message, error.location, error.hint) from None
    except NbcompError:
        raise
    except Exception as error:
        in_users_words(error, session)
        raise
    finally:
        session.close()
        EXTRA_METHODS.reset(token)


def _run(
    session: Session,
    functions: Functions,
    function: Any,
    signature: inspect.Signature,
    lifted: list[Any],
) -> Any:
    """The value of a call: a plain function's statements are interpreted."""
    env = dict(zip(signature.parameters, lifted, strict=True))
    if isinstance(function, types.MethodType):
        method = functions.copy_of(function.__func__)
        first = next(iter(inspect.signature(method).parameters))
        env = {first: function.__self__, **env}
        function = method
    return Interpreter(session, functions.copy_of(function), env, outermost=True).run()
