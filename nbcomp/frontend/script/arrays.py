"""Elements and parts of arrays: indices that are checked, reading and writing.

An index is checked where its bounds do not already show that it is inside, as NumPy does it:
negative ones count from the end, and what is outside ends the kernel with an IndexError.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nbcomp.frontend.script.arithmetic import Arithmetic
from nbcomp.frontend.script.values import (
    PY_INT,
    Axis,
    Kind,
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
    const,
    index_add,
    index_scale,
)
from nbcomp.sizes import Size, cut
from nbcomp.types import BOOL, FLOAT64

UNSIGNED = np.dtype(np.uint64)


class Arrays(Arithmetic):
    """Subscripts."""

    def part(self, view: View, index: Any) -> View:
        """`view[index]`, one or more axes fewer."""
        keys = index if isinstance(index, tuple) else (index,)
        if any(key is Ellipsis for key in keys):
            at = next(k for k, key in enumerate(keys) if key is Ellipsis)
            missing = len(view.axes) - len(keys) + 1
            keys = (*keys[:at], *([slice(None)] * missing), *keys[at + 1 :])
        if len(keys) > len(view.axes):
            raise NotElements(
                f"too many indices: {len(keys)} for an array of {len(view.axes)} axes"
            )
        start, axes = list(view.start), []
        for number_, (axis, key) in enumerate(zip(view.axes, keys, strict=False)):
            if isinstance(key, slice):
                offset, kept = _sliced(axis, key)
                start[axis.position] = index_add(start[axis.position], affine(offset))
                axes.append(kept)
            else:
                at_ = self.inside(key, axis.extent, number_)
                moved = index_scale(at_, axis.step)
                start[axis.position] = index_add(start[axis.position], moved)
        return View(view.memory, tuple(start), (*axes, *view.axes[len(keys) :]))

    def inside(self, index: Any, extent: int, axis: int) -> Expr:
        """An index of an axis, counted from its start."""
        s = number(self.each_way((index,), self.index_number))
        if s.low >= 0 and s.high < extent:
            return as_index(self.converted(s, PY_INT).expr)
        if s.low >= -extent and s.high < 0:
            return index_add(as_index(self.converted(s, PY_INT).expr), affine(extent))
        return self.checked_index(self.converted(s, PY_INT), extent, axis)

    def index_number(self, index: Any) -> Any:
        """A whole number that counts elements."""
        if isinstance(index, View) or not _is_index(index):
            raise NotElements(f"an index that is {describe(index)}")
        s = number(index)
        return self.converted(s, PY_INT) if s.low >= -(2**63) and s.high < 2**63 else s

    def checked_index(self, s: Scalar, extent: int, axis: int) -> Expr:
        """An index that may be anywhere; one variable is checked once in a statement."""
        variable = s.expr.buffer.name if isinstance(s.expr, Load) else ""
        if (variable, extent) in self.placed:
            return self.placed[variable, extent]
        found = self.place_of(s, extent, axis)
        if variable:
            self.placed[variable, extent] = found
        return found

    def place_of(self, s: Scalar, extent: int, axis: int) -> Expr:
        """An index as the place it stands for, checked."""
        s = self.keep(s, "index")
        size: Expr = affine(extent)
        message = f"index {{0}} is out of bounds for axis {axis} with size {{size}}"
        error = "IndexError", message, s.expr, extent
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
        memory = view.memory
        kind = Kind(memory.buffer.dtype)
        s = self.each_way((value,), lambda v: self.assigned(number(v), kind))
        memory.written = True
        self.add(Store(memory.buffer, view.start, s.expr, self.location))

    def assigned(self, s: Scalar, kind: Kind) -> Scalar:
        """A number as an element of an array of this kind holds it."""
        if s.dtype == kind.dtype or not kind.is_int:
            return self.converted(s, kind)
        from_numpy = s.kind.python is None
        if kind.dtype.kind == "u" and from_numpy:
            return self.converted(s, kind)  # C's own conversion
        low, high = kind.bounds()
        if s.dtype.kind == "f":
            s = self.truncated(s, "cannot convert float to integer")
        if s.low < low or s.high > high:
            s = self.keep(s)
            self.int_fits(s, kind, f"Python integer {{0}} out of bounds for {kind.dtype.name}")
        return self.converted(s, kind)

    def truncated(self, s: Scalar, message: str) -> Scalar:
        """`int(x)` of a float, towards zero; what is none of 64 bits ends the kernel."""
        wide = self.keep(Scalar(Kind(FLOAT64), self.cast(s.expr, Kind(FLOAT64))))
        size = self.apply("absolute", wide.expr)
        small = self.compare("less", size, const(2.0**63, FLOAT64))
        bad = self.apply("logical_not", small, dtype=BOOL)
        self.fail_if(bad, "ValueError", message)
        return Scalar(PY_INT, self.cast(wide.expr, PY_INT))


def _is_index(value: Any) -> bool:
    kind = value.kind if isinstance(value, Scalar) else None
    if kind is not None:
        return kind.is_int
    return type(value) is int or isinstance(value, np.integer | Size)


def _sliced(axis: Axis, key: slice) -> tuple[int, Axis]:
    """(how far the start moves along the array's axis, what the axis is then)."""
    bounds = (key.start, key.stop, key.step)
    if not all(b is None or type(b) is int or isinstance(b, np.integer | Size) for b in bounds):
        raise NotElements("a slice whose bounds are known only at run time")
    start, step, count = cut(key, axis.extent)
    return axis.step * start, Axis(axis.position, axis.step * step, count)
