"""Values that NumPy converts one by one, by way of Python numbers, when they go into an array.

A NumPy scalar set at a basic index, and each member of a list, raises OverflowError or ValueError
where its value does not fit an integer dtype; arrays wrap round instead.  Knows tracers and dtypes.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.frontend.dispatch import deep, lower
from nbcomp.frontend.location import here
from nbcomp.frontend.number import Number, known
from nbcomp.frontend.session import Session
from nbcomp.frontend.tracer import Tracer, holds_traced, read
from nbcomp.graph.op import Input
from nbcomp.ops.operand import cast
from nbcomp.sizes import Size
from nbcomp.types import FLOAT64, DType

MOST_READ = 64  # numbers of a list that `jit` reads one by one


def check_members(session: Session, value: Any) -> None:
    """Raise `Unsupported` for a list of so many of the caller's numbers that as many arguments of
    compiled code would take longer than NumPy takes, and seconds to compile."""
    if session.stand_in is None:  # nobody else could make an array of it
        return
    read_here = sum(_is_read(leaf) for leaf in _leaves(value))
    if read_here > MOST_READ:
        raise Unsupported(
            f"an array is made of {read_here} numbers, which would be read one by one",
            here(),
            "make the array outside, or write the numbers to one",
        )


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for entry in value:
            yield from _leaves(entry)
    else:
        yield value


def _is_read(value: Any) -> bool:
    """Whether a number is one of the caller's."""
    if type(value) is Tracer:
        return not value._type.shape and isinstance(read(value).op, Input)
    return type(value) is Number and isinstance(value._node.op, Input)


def converted(session: Session, value: Any, dtype: DType) -> Any:
    """The value as an operand for an array of this dtype, converted as a single element is.

    Raises what NumPy raises for a value known now, and `Unsupported` where it may raise for a value
    known at run time only.
    """
    if isinstance(value, list | tuple):
        return members(session, value, dtype)
    if type(value) is Number and type(value._value) is float and dtype.kind in "iu":
        value = known(value)
    if type(value) is float or issubclass(type(value), np.generic):
        return _by_numpy(value, dtype)
    if type(value) is not Tracer or not value._scalar or value.dtype == dtype:
        return lower(session, value)
    if may_raise(value.dtype, dtype):
        found = session.known(read(value))
        if found is None:
            raise Unsupported(
                f"NumPy checks that the value of a {value.dtype} scalar fits {dtype}",
                hint=f"convert it: value.astype(np.{dtype})",
            )
        return _by_numpy(found[()], dtype)
    if dtype.kind == "f" and value.dtype.kind in "iu":  # to a double first
        return cast(cast(read(value), FLOAT64), dtype)
    return lower(session, value)


def members(session: Session, value: Any, dtype: DType) -> Any:
    """A list as an operand for an array of this dtype."""
    if dtype.kind in "iu":
        value = deep(lambda v: _within(known(v), dtype), value)
    if not holds_traced(value):
        return np.asarray(value, dtype) if _plain(value) else lower(session, value)
    for member in _flat(value):
        if type(member) is Tracer and member._scalar and may_raise(member.dtype, dtype):
            converted(session, member, dtype)
        if type(member) in (int, float):
            _by_numpy(member, dtype)
    return lower(session, value)


def _within(value: Any, dtype: DType) -> Any:
    """A whole number; an open one that an integer dtype does not hold is fixed."""
    if isinstance(value, Size) and not np.iinfo(dtype.str).min <= value <= np.iinfo(dtype.str).max:
        return operator.index(value)
    return value


def may_raise(source: DType, target: DType) -> bool:
    """Whether a scalar's conversion to an element depends on its value."""
    return target.kind in "iu" and not np.can_cast(source, target, "safe")


def check_depth(value: Any, rank: int) -> None:
    """Raise what NumPy raises for lists deeper than the array that they are assigned to."""
    if _depth(value) > rank:
        raise ValueError(
            "setting an array element with a sequence. The requested array would exceed the "
            f"maximum number of dimension of {rank}."
        )


def _depth(value: Any) -> int:
    if isinstance(value, list | tuple):
        return 1 + max(map(_depth, value), default=0)
    return len(getattr(value, "shape", ()))


def check_element(value: Any, shape: tuple[int, ...], dtype: DType) -> None:
    """Let NumPy raise for a value that is no scalar, where one element is to be set."""
    if isinstance(value, list | tuple):
        if holds_traced(value):
            raise Unsupported("a list set as one element", hint="x[i] = value")
        np.zeros((1,) * len(shape), dtype)[(0,) * len(shape)] = value
    elif isinstance(value, np.ndarray) and value.ndim:
        zeros = np.zeros(value.shape, value.dtype)
        np.zeros((1,) * len(shape), dtype)[(0,) * len(shape)] = zeros


def _by_numpy(value: Any, dtype: DType) -> Any:
    """The value as NumPy sets it in an array; raises as NumPy does."""
    place = np.zeros(1, dtype)
    with np.errstate(all="ignore"):
        place[0] = value
    return place[0]


def _plain(value: Any) -> bool:
    """Whether a list holds numbers only."""
    return all(isinstance(v, bool | int | float | np.generic) for v in _flat(value))


def _flat(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [m for v in value for m in _flat(v)]
    return [value]
