"""Python numbers made of the elements of arrays: `float(x)`, `int(x)`, `x.item()`.

What they are is known at run time only; they go on as Python's numbers do, and whatever needs their
value finds that it is not there.  Knows tracers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nbcomp.errors import Unsupported
from nbcomp.frontend.location import here
from nbcomp.frontend.session import attributed
from nbcomp.frontend.storage import Place, Storage
from nbcomp.frontend.tracer import MixedBool, Tracer, read
from nbcomp.graph.ir import Node, apply
from nbcomp.ops.operand import Cast
from nbcomp.types import FLOAT64, INT64

KINDS: dict[Any, str] = {float: "biuf", int: "bi"}  # of dtypes of which each element is one


def is_number(function: Any, value: Any) -> bool:
    """Whether `float(value)` or `int(value)` raises nothing, and is known at run time only."""
    if type(value) is not Tracer or value._type.shape or value._python is MixedBool:
        return False
    dtype = value._type.dtype
    fits = dtype.kind in KINDS.get(function, "") or (function is int and dtype.name in SHORT)
    return fits and value._session.known(read(value)) is None


SHORT = ("uint8", "uint16", "uint32")  # that are Python ints in 64 bits, too


def number(function: Any, value: Tracer) -> Tracer:
    """`float(value)` or `int(value)`, where `is_number`."""
    if value._python is function:
        return value
    dtype = FLOAT64 if function is float else INT64
    with attributed(value._session.layers()):
        node = apply(Cast(dtype), read(value))
    return _python(value, replace(node, weak=True), function)


def only_arrays(value: Tracer, name: str) -> None:
    """Refuse an attribute of a Python number, which has others than an array."""
    if value._python is not None:
        what = (value._python if value._python is not MixedBool else bool).__name__
        raise Unsupported(f".{name} of a Python {what} known only at run time", here())


def item(value: Tracer) -> Any:
    """`value.item()`, of an array of one element; None where it has to be refused."""
    one = value if not value._type.shape else value.reshape(())
    kind = one._type.dtype.kind
    if kind == "b":
        return _python(one, read(one), bool)
    function = float if kind == "f" else int
    return number(function, one) if is_number(function, one) else None


def _python(value: Tracer, node: Node, kind: type) -> Tracer:
    made = Tracer(value._session, Place(Storage(node)), True)
    made._python = kind
    return made
