"""What the machine's variables and stack hold besides lifted values.

A `Lazy` is a value of the caller's that the program has not looked at yet.  `NULL` is CPython's
empty stack entry.  `Rows` is Python's iterator over an array.  Knows tracers and numbers.
"""

from __future__ import annotations

from typing import Any

from nbcomp.frontend.lift import Lazy
from nbcomp.frontend.number import Number, symbol
from nbcomp.frontend.tracer import Tracer, touch


class _Null:
    def __repr__(self) -> str:
        return "NULL"


NULL = _Null()
UNBOUND = _Null()  # a variable that has no value


class Method:
    """A method, of a list, dict or set of the caller's, that changes it: only Python may call it.

    Nothing is assumed about the object.
    """

    __slots__ = ("name", "owner")

    def __init__(self, owner: Lazy, name: str) -> None:
        self.owner, self.name = owner, name


def force(value: Any) -> Any:
    """The lifted value, of a lazy one; anything else unchanged."""
    return value.get() if type(value) is Lazy else value


def noticed(value: Any) -> Any:
    """The value, whose type the program now depends on."""
    value = force(value)
    if type(value) is Tracer:
        touch(value)
    elif type(value) is Number:
        symbol(value)
    return value


class Rows:
    """`iter(array)`: what `for` runs over.  It can be put together again from where it is."""

    __slots__ = ("array", "position")

    def __init__(self, array: Tracer) -> None:
        iter(array)  # raises what NumPy and nbcomp have against it
        self.array, self.position = array, 0

    def __iter__(self) -> Rows:
        return self

    def __next__(self) -> Any:
        if self.position >= len(self.array):
            raise StopIteration
        self.position += 1
        return self.array[self.position - 1]

    def __reduce__(self) -> Any:
        return iter, (self.array,), self.position
