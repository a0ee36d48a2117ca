"""What a `for` runs over in element code: ranges, arrays, `enumerate` and `zip` of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nbcomp.frontend.script.branches import Branches
from nbcomp.frontend.script.python_functions import EnumerateOf, RangeOf, ZipOf
from nbcomp.frontend.script.values import (
    PY_INT,
    Computed,
    NotElements,
    Scalar,
    View,
    as_index,
    describe,
    number,
)
from nbcomp.frontend.selection import Selection
from nbcomp.loop.grammar import (
    Affine,
    Expr,
    affine,
)


class Items(Branches):
    """How many items there are, and the k-th."""

    def items(self, iterable: Any) -> tuple[Expr, bool, Callable[[Expr], Any]]:
        """(how many, whether there surely is one, the k-th)."""
        match iterable:
            case range():
                return self.items(_range_of(iterable))
            case RangeOf():
                return self.range_items(iterable)
            case EnumerateOf():
                count, sure, item = self.items(iterable.value)
                start = self.whole(iterable.start)

                def counted(k: Expr) -> Any:
                    index = Scalar(PY_INT, k, 0, 2**62)
                    at = self.binary("add", lambda a, b: a + b, start, index)
                    return at, item(k)

                return count, sure, counted
            case ZipOf():
                return self.zip_items(iterable)
            case View() if iterable.axes:
                extent = iterable.shape[0]

                def element(k: Expr) -> Any:
                    found = self.place(iterable, (k,))
                    return found if found.axes else self.element(found)

                length = number(extent)
                return as_index(length.expr), length.low > 0, element
            case Computed():
                return self.items(self.frozen(iterable))
        what = "x[mask]" if type(iterable) is Selection else describe(iterable)
        raise NotElements(f"a loop over {what}")

    def run_time_steps(self, r: RangeOf, step: Scalar) -> tuple[Expr, bool, Callable[[Expr], Any]]:
        """A range whose step is known at run time: it must be positive, as far as is known."""
        start, stop = number(r.start), number(r.stop)
        zero = self.int_const(0)
        self.fail_if(
            self.compare("equal", step.expr, zero), "ValueError", "range() arg 3 must not be zero"
        )
        if step.low < 0:  # backwards is left to Python
            message = "a range whose step turns out to be negative"
            self.fail_if(self.compare("less", step.expr, zero), "OverflowError", message)
        step = Scalar(PY_INT, step.expr, max(step.low, 1), max(step.high, 1))
        span = self.int_add(self.int_subtract(stop, start), self.int_subtract(step, number(1)))
        count = self.keep(self.int_floor_divide(span, step), "count")

        def item(k: Expr) -> Scalar:
            moved = self.apply("multiply", k, step.expr)
            expr = self.apply("add", start.expr, moved)
            return Scalar(PY_INT, expr, start.low, max(start.low, stop.high - 1))

        return as_index(count.expr), count.low > 0, item

    def zip_items(self, iterable: ZipOf) -> tuple[Expr, bool, Callable[[Expr], Any]]:
        parts = [self.items(v) for v in iterable.values]
        counts = [count for count, _, _ in parts]
        least = counts[0]
        for other in counts[1:]:
            if iterable.strict:  # where they differ Python goes as far as it can, and raises
                one, two = (Scalar(PY_INT, n, 0, 2**62) for n in (least, other))
                self.need_equal(one, two)
            least = _smaller(self, least, other)
        sure = all(s for _, s, _ in parts)
        return least, sure, lambda k: tuple(self.frozen(item(k)) for _, _, item in parts)

    def range_items(self, r: RangeOf) -> tuple[Expr, bool, Callable[[Expr], Any]]:
        if isinstance(r.step, Scalar):
            return self.run_time_steps(r, r.step)
        if r.step == 0:
            raise ValueError("range() arg 3 must not be zero")
        start, stop, step = number(r.start), number(r.stop), r.step
        low, high = (start, stop) if step > 0 else (stop, start)
        span = self.int_subtract(high, low)
        size = abs(step)
        if size > 1:
            padded = self.int_add(span, number(size - 1))
            span = self.int_floor_divide(padded, number(size))
        count = self.keep(span, "count")
        first, last = start.low, stop.high - 1
        if step < 0:
            first, last = stop.low + 1, start.high

        def item(k: Expr) -> Scalar:
            moved = self.index_arithmetic("multiply", k, affine(step))
            assert moved is not None
            expr = self.index_sum(start.expr, moved)
            return Scalar(PY_INT, as_index(expr), first, max(first, last))

        return as_index(count.expr), count.low > 0, item


def _smaller(self: Items, a: Expr, b: Expr) -> Expr:
    known = isinstance(a, Affine) and isinstance(b, Affine) and not a.terms and not b.terms
    if known:
        assert isinstance(a, Affine)
        assert isinstance(b, Affine)
        return a if a.constant <= b.constant else b
    return self.apply("minimum", a, b)


def _range_of(r: range) -> RangeOf:
    return RangeOf((r.start, r.stop, r.step))
