"""A call of a NumPy function on tracers: which nodes it becomes, and which memory it shares.

`call` is the session's dispatcher.  Functions that view, write or create arrays have handlers of
their own; all others are built by their operator (`NUMPY[function].trace`) from the arguments'
present nodes and give new arrays.  Knows tracers and operators.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.frontend import reporting
from nbcomp.frontend.function_kinds import (
    HINTS,
    LIKE_ANOTHER,
    NAMED_RESULTS,
    PYTHON_BOOLS,
    TAKES_NUMBERS,
    ZERO_D_ARRAYS,
)
from nbcomp.frontend.layouts import layout_of
from nbcomp.frontend.location import here, target_name
from nbcomp.frontend.number import Number, known, symbol
from nbcomp.frontend.session import Session, attributed
from nbcomp.frontend.storage import Place, Storage
from nbcomp.frontend.tracer import Tracer, give, holds_traced, plain, read
from nbcomp.frontend.unrolled import HINT
from nbcomp.frontend.whole_numbers import within
from nbcomp.graph.ir import Node, noting
from nbcomp.graph.numpy_function import NUMPY
from nbcomp.graph.op import Input
from nbcomp.ops.lookup import find
from nbcomp.ops.operand import cast, constant, supported
from nbcomp.record import Location
from nbcomp.sizes import Size

MOST_CALLS = 20_000  # of NumPy's functions in one capture, as loops are unrolled
Handler = Callable[..., Any]
HANDLERS: dict[Any, Handler] = {}


def handles(*functions: Any) -> Callable[[Handler], Handler]:
    """Declare the handler of these functions: it takes the session, then their arguments."""

    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(functions, handler))
        return handler

    return register


MOST_ASSUMED = 64  # NumPy scalars of one call whose values are assumed


def call(session: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a NumPy function on tracers and other values."""
    result = _called(session, function, args, kwargs)
    if function in LIKE_ANOTHER:
        give(result)
    if type(result) is Tracer and result._held is not None and not kwargs.get("out"):
        return plain(result)  # np.asarray(p) of a parameter is no parameter
    return result


def _called(session: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    session.check()
    session.calls += 1
    if not session.reported:
        reporting.check_state()
    if session.calls > MOST_CALLS:
        raise Unsupported(
            f"more than {MOST_CALLS} operations: Python loops are written out one by one",
            here(),
            HINT,
        )
    with attributed(session.layers()) as location, noting(session.effects):
        session.unrolled.count(function, location)
        checks = len(session.effects)
        try:
            return _dispatched(session, function, args, dict(kwargs), location)
        except Unsupported:
            del session.effects[checks:]  # of what is not computed after all
            values = _scalars_known(session, args, kwargs)
            if values is None:
                raise
            return _dispatched(session, function, *values, location)


def _dispatched(
    session: Session,
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    location: Location | None,
) -> Any:
    handler = HANDLERS.get(function)
    if handler is not None:
        return handler(session, *args, **kwargs)
    if isinstance(function, np.ufunc):
        return _ufunc(session, function, args, kwargs, location)
    if getattr(function, "__name__", "") == "at":
        return HANDLERS[np.ufunc.at](session, function, *args, **kwargs)
    return _function(session, function, args, kwargs, location)


def _scalars_known(
    session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments with the values of NumPy scalars that depend on no array: a function that needs
    numbers now (a shape, a bound of `np.arange`) has them assumed, as Python's numbers are.  None
    if there are none, or so many that no other call would have the same."""
    changed = 0

    def value(x: Any) -> Any:
        nonlocal changed
        found = session.known(read(x)) if type(x) is Tracer and x._scalar else None
        if found is None:
            return x
        changed += 1
        return found[()]

    values = deep(value, args), deep(value, kwargs)
    return values if 0 < changed <= MOST_ASSUMED else None


def _ufunc(
    session: Session,
    fn: np.ufunc,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    location: Location | None,
) -> Any:
    if find(fn) is None:
        raise unknown(fn)
    if fn is np.power and len(args) > 1:  # NumPy takes x**0.5, x**2 and the like apart by value
        args = (args[0], known(args[1]), *args[2:])
    outs = kwargs.pop("out", ())
    outs = outs if isinstance(outs, tuple) else (outs,)
    outs = tuple(o for o in (*args[fn.nin :], *outs) if o is not None)
    args = in_range(session, args[: fn.nin])
    nodes = [lower(session, a) for a in args]
    options = {k: lower(session, v) for k, v in kwargs.items()}
    if not outs:
        return wrap(session, NUMPY[fn].trace(*nodes, **options), fn, args, {}, location)
    if fn.signature is not None and len(outs) == 1:  # of a product of matrices
        return _function(session, fn, args, {**kwargs, "out": outs[0]}, location)
    if len(outs) > 1:
        raise Unsupported(
            f"several out= of np.{fn.__name__} are not compiled", hint="assign the results"
        )
    target = adopt(session, outs[0])
    target._place.check_writable("output array is read-only")
    value = NUMPY[fn].trace(*nodes, **options, out=read(target))
    target._place.write(named(value, location), "output array is read-only")
    return outs[0]


def in_range(session: Session, args: tuple[Any, ...], dtype: Any = None) -> tuple[Any, ...]:
    """Whole numbers that the arrays' integer dtypes (or the dtype) do not hold are taken by value:
    NumPy has rules of its own for them.  Where the value is known at run time only, it is checked
    there."""
    dtypes = [a.dtype for a in args if isinstance(a, np.ndarray | np.generic)]
    dtypes += [] if dtype is None else [np.dtype(dtype)]
    dtypes = [d for d in dtypes if d.kind in "iu"]
    if not dtypes:
        return args

    def checked(value: Any) -> Any:
        if type(value) is Tracer and value._python is int:
            return _checked_range(session, value, dtypes)
        if type(value) is Number and isinstance(value._value, Size):
            size: Any = value._value
            fits = all(np.iinfo(d).min <= size <= np.iinfo(d).max for d in dtypes)
            return value if fits else operator.index(size)
        if type(value) is not Number or type(value._value) is not int:
            return value
        fits = all(np.iinfo(d).min <= value._value <= np.iinfo(d).max for d in dtypes)
        return value if fits else known(value)

    return tuple(map(checked, args))


def _checked_range(session: Session, value: Tracer, dtypes: list[Any]) -> Tracer:
    """A Python int known at run time only, checked to be in the range of these dtypes."""
    low = max(int(np.iinfo(d).min) for d in dtypes)
    high = min(int(np.iinfo(d).max) for d in dtypes)
    if low == -(2**63) and high == 2**63 - 1:
        return value
    node = read(value)
    found = session.known(node)
    if found is not None and low <= int(found) <= high:
        return value
    made, check = within(node, low, min(high, 2**63 - 1))
    session.effects.append(check)
    number = Tracer(session, Place(Storage(replace(made, weak=True))), True)
    number._python = int
    return number


def _function(
    session: Session,
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    location: Location | None,
) -> Any:
    out = kwargs.pop("out", None)
    if isinstance(out, tuple) and len(out) == 1:  # so NumPy passes it, of a method of a ufunc
        (out,) = out
    if function not in NUMPY:
        return _by_value(session, function, args, kwargs)
    if function in TAKES_NUMBERS:
        args = in_range(session, args, kwargs.get("dtype"))
    else:
        args, kwargs = deep(known, args), deep(known, kwargs)
    nodes = [lower(session, a) for a in args]
    options = {k: lower(session, v) for k, v in kwargs.items()}
    result = NUMPY[function].trace(*nodes, **options)
    if out is None:
        return wrap(session, result, function, args, kwargs, location)
    target = adopt(session, out)
    if result.shape != target.shape or not np.can_cast(
        result.type.dtype, target.dtype, "same_kind"
    ):
        raise Unsupported(
            f"out= of another dtype or shape ({target._type}) than the result ({result.type})",
            hint="assign the result: out[...] = ...",
        )
    target._place.write(named(cast(result, target.dtype), location), "output array is read-only")
    return out


def _by_value(
    session: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A function without an operator, run now if all its arguments are known now."""

    def value(x: Any) -> Any:
        if type(x) is not Tracer:
            return known(x)
        found = session.known(read(x))
        if found is None:
            raise _NotKnown
        return found[()] if x._scalar else found

    with contextlib.suppress(_NotKnown):
        args, kwargs = deep(value, args), deep(value, kwargs)
        return constants(session, function(*args, **kwargs))
    return session.by_source(function, args, kwargs)


class _NotKnown(Exception):
    """A value that is needed now is known at run time only."""


def unknown(function: Any) -> Unsupported:
    """The error for a function nbcomp does not compile."""
    name = spelled(function)
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ufunc):
        name = f"np.{owner.__name__}.{function.__name__}"
    return Unsupported(f"{name} is not compiled", hint=HINTS.get(function, ""))


def spelled(function: Any) -> str:
    """A NumPy function as users write it, e.g. np.linalg.svd."""
    module = getattr(function, "__module__", None) or "numpy"
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", repr(function))
    return (
        f"{module.replace('numpy', 'np', 1)}.{name}"
        if module.startswith("numpy")
        else f"{module}.{name}"
    )


# ----------------------------------------------------------------------------- in and out


def deep(change: Callable[[Any], Any], value: Any) -> Any:
    """`change` applied to everything in nested lists, tuples, dicts and slices."""
    if not holds_traced(value):
        return value
    if isinstance(value, slice):
        return slice(change(value.start), change(value.stop), change(value.step))
    if type(value) in (list, tuple):
        return type(value)(deep(change, v) for v in value)
    if type(value) is dict:
        return {k: deep(change, v) for k, v in value.items()}
    return change(value)


def lower(session: Session, value: Any) -> Any:
    """An argument as operators take it: tracers and numbers read at run time as nodes."""

    def entry(x: Any) -> Any:
        """In a list a Python number is no longer weak: the list becomes an array."""
        node = read(x) if type(x) is Tracer else symbol(x)
        return cast(node, node.type.dtype) if isinstance(node, Node) and node.weak else node

    if type(value) is Tracer or isinstance(value, np.ndarray):
        return read(adopt(session, value))
    return deep(entry, value) if isinstance(value, list | tuple) else symbol(value)


def adopt(session: Session, array: Any) -> Tracer:
    """The tracer for an array: itself, or one for an array that came in another way."""
    if type(array) is Tracer:
        return array
    if not isinstance(array, np.ndarray):
        raise TypeError("return arrays must be of ArrayType")
    tracer: Tracer = session.foreign(array)
    return tracer


def named(node: Node, location: Location | None) -> Node:
    """The node, under the name of the variable it is assigned to; a line that stands for several
    layers gives one to none of them."""
    if (
        node.layer
        or node.name
        or location is None
        or node.location is not location
        or isinstance(node.op, Input)
    ):
        return node
    name = target_name(location)
    return replace(node, name=name) if name else node


def fresh(session: Session, node: Node, scalar: bool = False, **layout: Any) -> Tracer:
    """A new array with this value."""
    if node.weak:
        node = cast(node, node.type.dtype)
    return Tracer(session, Place(Storage(node, **layout)), scalar and not node.shape)


def wrap(
    session: Session,
    result: Any,
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    location: Location | None,
    place: int | None = None,
) -> Any:
    """New arrays for what an operator gave: a node, or a list or tuple of them."""
    if isinstance(result, list | tuple):
        parts = [wrap(session, r, function, args, kwargs, None, k) for k, r in enumerate(result)]
        return _named_result(function)(*parts) if function in NAMED_RESULTS else type(result)(parts)
    if not isinstance(result, Node):
        return result
    layout, certain = layout_of(result, function, args, kwargs, place)
    node = named(result, location)
    made = fresh(session, node, function not in ZERO_D_ARRAYS, layout=layout, certain=certain)
    made._python = bool if function in PYTHON_BOOLS else None
    return made


@cache
def _named_result(function: Any) -> Any:
    """The named tuple a function returns."""
    return type(function(np.eye(1)))


def constants(session: Session, result: Any) -> Any:
    """Arrays made while compiling, as tracers that the program may write to."""
    if type(result) is np.ndarray and result.dtype.kind in "biuf":
        supported(result.dtype)
        return fresh(session, constant(result), layout=result, certain=True)
    if isinstance(result, list | tuple) and any(isinstance(r, np.ndarray) for r in result):
        parts = [constants(session, r) for r in result]
        return type(result)(*parts) if hasattr(type(result), "_fields") else type(result)(parts)
    return result
