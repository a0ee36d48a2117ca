"""Slices of element code, whose bounds may be known at run time only.

Bounds are read as Python reads them: what is negative counts from the end, what is beyond an end is
that end.  What the bounds of numbers show already is not computed.  Knows axes, not arrays.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nbcomp.frontend.script.arithmetic import Arithmetic
from nbcomp.frontend.script.values import (
    PY_INT,
    Axis,
    Length,
    NotElements,
    Scalar,
    as_index,
    describe,
    from_index,
    number,
)
from nbcomp.loop.grammar import Affine, Const, Expr, Load, Var, affine, index_scale
from nbcomp.sizes import Size, cut


class Slices(Arithmetic):
    """`start:stop:step`"""

    def sliced(self, axis: Axis, key: slice) -> tuple[Expr, Axis]:
        """(how far the start moves along the array's axis, what the axis is then)."""
        bounds = (key.start, key.stop, key.step)
        if any(isinstance(b, Scalar) for b in (*bounds, axis.extent, axis.step)):
            parts = [_token(x) for x in (*bounds, axis.extent, axis.step)]
            name = None if NotImplemented in parts else (axis.position, *parts)
            if name not in self.cuts or name is None:
                self.cuts[name] = self.sliced_at_run_time(axis, key)
            return self.cuts[name]  # type: ignore[no-any-return]
        for bound in bounds:
            if not (bound is None or type(bound) is int or isinstance(bound, np.integer | Size)):
                raise NotElements(f"a slice with a bound that is {describe(bound)}")
        start, step, count = cut(key, axis.extent)
        assert not isinstance(axis.step, Scalar)
        return affine(axis.step * start), Axis(axis.position, axis.step * step, count)

    def sliced_at_run_time(self, axis: Axis, key: slice) -> tuple[Expr, Axis]:
        step, length = self.slice_step(key.step), number(axis.extent)
        forwards = number(step).low > 0
        zero, last = number(0), self.int_add(length, number(-1))
        ends = (zero, length) if forwards else (last, number(-1))
        least, most = (zero, length) if forwards else (number(-1), last)
        start = self.slice_bound(key.start, ends[0], length, least, most)
        stop = self.slice_bound(key.stop, ends[1], length, least, most)
        span = self.int_subtract(stop, start) if forwards else self.int_subtract(start, stop)
        size = number(step if forwards else self.scaled(step, -1))
        if size.high > 1:
            span = self.int_add(span, self.int_subtract(size, number(1)))
            span = self.int_floor_divide(span, size)
        count = self.at_least(span, 0)
        if count.high > length.high:
            count = replace(count, high=length.high)
        extent = self.length_of(self.keep(count, "count"))
        return self.moved(start, axis.step), Axis(
            axis.position, self.scaled(axis.step, step), extent
        )

    def slice_step(self, step: Any) -> Length:
        """A step, which is not negative where it is known at run time only, or Python has it."""
        if step is None:
            return 1
        s = self.bound_number(step)
        if isinstance(s.expr, Const):
            if s.expr.value == 0:
                raise ValueError("slice step cannot be zero")
            return int(s.expr.value)
        if s.low <= 0:
            s = self.keep(s)
            zero = self.compare("equal", s.expr, self.int_const(0))
            self.fail_if(zero, "ValueError", "slice step cannot be zero")
        if s.low < 0:
            negative = self.compare("less", s.expr, self.int_const(0))
            with self.uncertain():
                self.fail_if(negative, "ValueError", "a slice with a step that is negative")
        return replace(s, low=max(s.low, 1), high=max(s.high, 1))

    def slice_bound(
        self, value: Any, default: Scalar, length: Scalar, least: Scalar, most: Scalar
    ) -> Scalar:
        """A bound of a slice as a place between `least` and `most`."""
        if value is None:
            return default
        s = self.bound_number(value)
        if s.low < 0:
            s = self.keep(s)
            from_end = self.keep(replace(s, expr=self.sum_of(s.expr, length.expr)))
            low, high = s.low + length.low, max(s.high, length.high - 1)
            if s.high >= 0:
                negative = self.compare("less", s.expr, self.int_const(0))
                s = replace(s, expr=self.choose(negative, from_end.expr, s.expr))
            else:
                s, high = from_end, s.high + length.high
            s = self.keep(replace(s, low=min(low, 0), high=high))
        s = self.at_least(s, int(least.low))
        if s.high > most.low:
            expr = self.apply("minimum", from_index(s.expr), from_index(most.expr))
            s = self.keep(Scalar(PY_INT, expr, min(s.low, most.low), most.high), "bound")
        return s

    def bound_number(self, value: Any) -> Scalar:
        """A bound or step as an int."""
        if not isinstance(value, Scalar | Size) and not (
            type(value) is int or isinstance(value, np.integer)
        ):
            raise NotElements(f"a slice with a bound that is {describe(value)}")
        s = number(value)
        if not s.kind.is_int or s.high >= 2**63:
            raise NotElements(f"a slice with a bound that is {describe(value)}")
        return self.converted(s, PY_INT)

    def at_least(self, s: Scalar, low: int) -> Scalar:
        """The larger of a number and a bound."""
        if s.low >= low:
            return s
        expr = self.apply("maximum", from_index(s.expr), self.int_const(low))
        return Scalar(PY_INT, expr, low, max(s.high, low))

    def length_of(self, s: Scalar) -> Length:
        """A length, as an int where it is known now."""
        if isinstance(s.expr, Affine) and not s.expr.terms:
            return s.expr.constant
        return int(s.expr.value) if isinstance(s.expr, Const) else s

    def sum_of(self, a: Expr, b: Expr) -> Expr:
        """The sum of two ints that surely fits."""
        return self.index_arithmetic("add", a, b) or self.apply("add", from_index(a), from_index(b))

    def moved(self, index: Scalar, step: Length) -> Expr:
        """step·index, as an index."""
        if not isinstance(step, Scalar):
            return index_scale(as_index(index.expr), step)  # type: ignore[arg-type]
        return self.apply("multiply", as_index(index.expr), as_index(step.expr))

    def scaled(self, a: Length, b: Length) -> Length:
        """The product of two steps."""
        if not isinstance(a, Scalar) and not isinstance(b, Scalar):
            return a * b
        return self.length_of(self.keep(self.int_multiply(number(a), number(b))))


def _token(value: Any) -> Any:
    """What tells a bound from others; `NotImplemented` where that is not known."""
    if isinstance(value, Size):
        return value.key
    if not isinstance(value, Scalar):
        return value
    match value.expr:
        case Var(name=name):
            return name, value.low, value.high
        case Affine(terms=terms, constant=constant) if not isinstance(constant, Size):
            return terms, constant, value.low, value.high
        case Load(buffer=buffer, indices=()):
            return buffer.name, value.low, value.high
    return NotImplemented
