"""Elements and parts of arrays: indices that are checked, reading and writing.

An index is checked where its bounds do not already show that it is inside, as NumPy does it:
negative ones count from the end, and what is outside ends the kernel with an IndexError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nbcomp.frontend.script.errors import TOO_LARGE_INT
from nbcomp.frontend.script.slices import Slices
from nbcomp.frontend.script.values import (
    PY_INT,
    Axis,
    Kind,
    Length,
    NotElements,
    Scalar,
    View,
    as_index,
    describe,
    number,
)
from nbcomp.loop.grammar import (
    Expr,
    If,
    Load,
    Store,
    affine,
    index_add,
)
from nbcomp.sizes import Size
from nbcomp.types import BOOL

UNSIGNED = np.dtype(np.uint64)


class Arrays(Slices):
    """Subscripts."""

    writes = 0  # to arrays, so far

    def part(self, view: View, index: Any) -> View:
        """`view[index]`, with one axis fewer for each number in it."""
        keys = index if isinstance(index, tuple) else (index,)
        given = sum(key is not None and key is not Ellipsis for key in keys)
        if any(key is Ellipsis for key in keys):
            at = next(k for k, key in enumerate(keys) if key is Ellipsis)
            missing = len(view.axes) - given
            keys = (*keys[:at], *([slice(None)] * missing), *keys[at + 1 :])
        if given > len(view.axes):
            raise NotElements(f"too many indices: {given} for an array of {len(view.axes)} axes")
        start, axes, rest = list(view.start), list[Axis](), list(view.axes)
        for key in keys:
            if key is None:
                axes.append(Axis(0, 0, 1))
                continue
            axis = rest.pop(0)
            if isinstance(key, slice):
                moved, kept = self.sliced(axis, key)
                axes.append(kept)
            else:
                place = self.inside(key, axis.extent, len(view.axes) - len(rest) - 1)
                moved = self.moved(Scalar(PY_INT, place), axis.step)
            start[axis.position] = index_add(start[axis.position], moved)
        return View(view.memory, tuple(start), (*axes, *rest))

    def place(self, view: View, index: Sequence[Expr]) -> View:
        """The part at an index of the first axes that is surely inside."""
        start = list(view.start)
        for axis, k in zip(view.axes, index, strict=False):
            moved = self.moved(Scalar(PY_INT, k), axis.step)
            start[axis.position] = index_add(start[axis.position], moved)
        return View(view.memory, tuple(start), view.axes[len(index) :])

    def inside(self, index: Any, extent: Length, axis: int) -> Expr:
        """An index of an axis, counted from its start."""
        s = number(self.each_way((index,), self.index_number))
        length = number(extent)
        if s.low >= 0 and s.high < length.low:
            return as_index(self.converted(s, PY_INT).expr)
        if s.low >= -length.low and s.high < 0:
            return index_add(as_index(self.converted(s, PY_INT).expr), as_index(length.expr))
        return self.checked_index(self.converted(s, PY_INT), extent, axis)

    def index_number(self, index: Any) -> Any:
        """A whole number that counts elements."""
        if isinstance(index, View) or not _is_index(index):
            raise NotElements(f"an index that is {describe(index)}")
        s = number(index)
        return self.converted(s, PY_INT) if s.low >= -(2**63) and s.high < 2**63 else s

    def checked_index(self, s: Scalar, extent: Length, axis: int) -> Expr:
        """An index that may be anywhere; one variable is checked once in a statement."""
        variable = s.expr.buffer.name if isinstance(s.expr, Load) else ""
        if isinstance(extent, Scalar):  # of which the message would have to tell the value
            with self.uncertain():
                return self.place_of(s, as_index(extent.expr), 0, axis)
        if (variable, extent) in self.placed:
            return self.placed[variable, extent]
        found = self.place_of(s, as_index(number(extent).expr), extent, axis)
        if variable:
            self.placed[variable, extent] = found
        return found

    def place_of(self, s: Scalar, size: Expr, told: Any, axis: int) -> Expr:
        """An index as the place it stands for, checked; told: the size for the message."""
        s = self.keep(s, "index")
        message = f"index {{0}} is out of bounds for axis {axis} with size {{size}}"
        error = "IndexError", message, s.expr, told
        if s.low >= 0:
            self.fail_if(self.compare("greater_equal", s.expr, size), *error)
            return as_index(s.expr)
        place = self.local(self.fresh("place"), PY_INT.dtype)
        self.store(place, s.expr)
        unsigned = [self.apply("bitcast", e, dtype=UNSIGNED) for e in (s.expr, size)]
        with self.body() as body:
            low = self.compare("less", s.expr, self.apply("subtract", affine(0), size))
            high = self.compare("greater_equal", s.expr, size)
            outside = self.apply("logical_or", low, high, dtype=BOOL)
            self.fail_if(outside, *error)
            self.store(place, self.apply("add", s.expr, size))
        odd = self.compare("greater_equal", unsigned[0], unsigned[1])
        self.add(If(odd, tuple(body), (), self.location))
        found = self.keep(Scalar(PY_INT, Load(place.dtype, place, ())), "place")
        return found.expr

    def element(self, view: View) -> Scalar:
        """The number at a part without axes."""
        buffer = view.memory.buffer
        kind = Kind(buffer.dtype)
        return Scalar(kind, Load(buffer.dtype, buffer, view.start, self.location), *kind.bounds())

    def set_element(self, view: View, value: Any) -> None:
        """`view[...] = value` for a part without axes."""
        kind = Kind(view.memory.buffer.dtype)
        s = self.each_way((value,), lambda v: self.assigned(number(v), kind))
        self.put_element(view, s.expr)

    def put_element(self, view: View, value: Expr) -> None:
        """A value of the array's dtype, to a part without axes."""
        view.memory.written = True
        self.writes += 1
        self.add(Store(view.memory.buffer, view.start, value, self.location))

    def assigned(self, s: Scalar, kind: Kind) -> Scalar:
        """A number as an element of an array of this kind holds it."""
        if kind.dtype.kind == "f" and (rounded := self.unchecked(s.expr)) is not None:
            return Scalar(kind, self.cast(rounded, kind))
        if s.dtype == kind.dtype or not kind.is_int:
            return self.converted(s, kind)
        from_numpy = s.kind.python is None
        if kind.dtype.kind == "u" and from_numpy:
            return self.converted(s, kind)  # C's own conversion
        low, high = kind.bounds()
        if s.dtype.kind == "f":
            s = self.truncated(s, TOO_LARGE_INT)
        if s.low < low or s.high > high:
            s = self.keep(s)
            self.int_fits(s, kind, f"Python integer {{0}} out of bounds for {kind.dtype.name}")
        return self.converted(s, kind)


def _is_index(value: Any) -> bool:
    kind = value.kind if isinstance(value, Scalar) else None
    if kind is not None:
        return kind.is_int
    return type(value) is int or isinstance(value, np.integer | Size)
