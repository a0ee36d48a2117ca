"""Arithmetic on parts of arrays in element code: computed where it is used, element by element.

`a[i, k:] -= f * a[k, k:]` is one loop over the elements, without an array in between.  A part that
is kept, or that shares memory with what is being written, is computed into memory of its own.  What
works on whole arrays in one place is not for here: graphs do it better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from nbcomp.frontend.script.arrays import Arrays
from nbcomp.frontend.script.values import (
    Axis,
    Computed,
    Either,
    Kind,
    Length,
    Memory,
    NotElements,
    Scalar,
    View,
    as_index,
    from_index,
    is_number,
    number,
    same_length,
)
from nbcomp.frontend.script.ways import same_expr
from nbcomp.loop.grammar import (
    Affine,
    Buffer,
    Expr,
    For,
    Store,
    affine,
    loop_var,
)
from nbcomp.sizes import Size
from nbcomp.types import DType, contiguous_strides

LARGEST_LOCAL = 1 << 14  # bytes of an array that lives with the variables
Index = tuple[Expr, ...]


class ComputedArrays(Arrays):
    """Parts of arrays as values."""

    arrays: dict[int, Memory]  # made on the way, by the ids of their buffers

    def __init__(self) -> None:
        super().__init__()
        self.arrays = {}

    # ------------------------------------------------------------------------------- elements

    def elementwise(self, compute: Callable[..., Any], *values: Any) -> Computed:
        """compute(*values) for each element of the arrays among them, as they are broadcast."""
        if any(isinstance(v, Either) for v in values):
            raise NotElements("an array and a number that is of several kinds")
        if not all(is_array(v) or is_number(v) for v in values):
            raise NotElements("an operation on an array and what is no number")
        values = tuple(self.keep(v) if isinstance(v, Scalar) else v for v in values)
        shape = self.broadcast([v.shape for v in values if is_array(v)])

        def element(index: Index) -> Scalar:
            parts = (self.element_at(v, index) if is_array(v) else v for v in values)
            return number(compute(*parts))

        return self.computed(shape, element, values)

    def computed(
        self,
        shape: tuple[Length, ...],
        element: Callable[[Index], Scalar],
        values: Sequence[Any],
        aligned: bool = True,
    ) -> Computed:
        """An array by its elements; aligned: element k is made of element k of the values."""
        reads = [r for v in values if is_array(v) for r in reads_of(v)]
        if not aligned:
            reads = [(view, False) for view, _ in reads]
        reads = [(v, same and len(v.axes) == len(shape)) for v, same in reads]
        with self.discarded():
            kind = element(tuple(loop_var(f"k{n}") for n in range(len(shape)))).kind
        return Computed(kind, shape, element, tuple(reads), self.writes)

    def element_at(self, array: View | Computed, index: Index) -> Scalar:
        """An element of an array, at an index into what it is broadcast to."""
        index = index[len(index) - len(array.shape) :]
        pairs = zip(index, array.shape, strict=True)
        index = tuple(affine(0) if same_length(n, 1) else k for k, n in pairs)
        if isinstance(array, View):
            return self.element(self.place(array, index))
        if array.writes != self.writes and self.rewritten(array):
            raise NotElements("an array that is changed before it is used")
        return array.element(index)

    def rewritten(self, array: Computed) -> bool:
        """Whether what an array is made of may have changed since."""
        return any(view.memory.written for view, _ in array.reads)

    # --------------------------------------------------------------------------------- shapes

    def broadcast(self, shapes: Sequence[tuple[Length, ...]]) -> tuple[Length, ...]:
        """The shape that arrays of these shapes have in common."""
        most = max(map(len, shapes))
        padded = [((1,) * (most - len(s)) + tuple(s)) for s in shapes]
        return tuple(self.common(lengths) for lengths in zip(*padded, strict=True))

    def common(self, lengths: Sequence[Length]) -> Length:
        """The one length that lengths stand for; 1 stands for any."""
        rest = [n for n in lengths if not same_length(n, 1)]
        for other in rest[1:]:
            self.need_equal(rest[0], other)
        return next((n for n in rest if not isinstance(n, Scalar)), rest[0]) if rest else 1

    def need_equal(self, a: Length, b: Length) -> None:
        """Leave to Python arrays whose lengths differ: it raises, or stretches one of length 1."""
        if same_length(a, b) or self.same_number(a, b):
            return
        if not isinstance(a, Scalar) and not isinstance(b, Scalar):
            if a == b:
                return
            raise NotElements("arrays whose shapes do not go together")
        differ = self.compare("not_equal", *(from_index(number(n).expr) for n in (a, b)))
        with self.uncertain():
            self.fail_if(differ, "ValueError", "arrays of different lengths")

    def same_number(self, a: Length, b: Length) -> bool:
        """Whether two lengths are written alike."""
        return same_expr(from_index(number(a).expr), from_index(number(b).expr))

    def over(
        self, shape: Sequence[Length], body: Callable[[Index], None], sums: bool = False
    ) -> None:
        """A loop over all indices of a shape; sums: of which the order of the rounds is open."""
        names = [self.fresh("k") for _ in shape]
        with self.body() as inner:
            body(tuple(map(loop_var, names)))
        kind = "vector" if sums and not any(map(_decides, inner)) else "serial"
        for name, length in zip(reversed(names), reversed(shape), strict=True):
            extent = as_index(number(length).expr)
            location = self.location
            loop = For(name, extent, tuple(inner), kind, 4 if kind == "vector" else 1, location)  # type: ignore[arg-type]
            inner, kind = [loop], "serial"
        self.stmts.extend(inner)

    # -------------------------------------------------------------------------------- writing

    def copy_into(self, target: View, value: View | Computed) -> None:
        """`target[...] = value`"""
        if not (target.moves or value.moves or target.memory.origin is None):
            raise NotElements("an operation on a whole array")
        if len(value.shape) > len(target.shape):
            raise NotElements("an array of more axes than what it is assigned to")
        for n, m in zip(reversed(value.shape), reversed(target.shape), strict=False):
            if not same_length(n, 1):
                self.need_equal(n, m)
        if self.overlaps(target, value):
            value = self.materialised(value)
        kind = Kind(target.memory.buffer.dtype)

        def one(index: Index) -> None:
            s = self.element_at(value, index)
            self.put_element(self.place(target, index), self.cast(s.expr, kind))

        self.over(target.shape, one)

    def overlaps(self, target: View, value: View | Computed) -> bool:
        """Whether writing an element may change what a later one is made of."""
        return any(
            view.memory is target.memory
            and not (aligned and self.in_step(view, target))
            and not self.apart(view, target)
            for view, aligned in reads_of(value)
        )

    def in_step(self, view: View, target: View) -> bool:
        """Whether element k of both is at the same place along each axis that is gone through."""
        return len(view.axes) == len(target.axes) and all(
            a.position == b.position
            and same_length(a.step, b.step)
            and not same_length(a.extent, 1)
            and same_expr(view.start[a.position], target.start[b.position])
            for a, b in zip(view.axes, target.axes, strict=True)
        )

    def apart(self, view: View, target: View) -> bool:
        """Whether two parts of an array surely share no element: along one of its axes."""
        positions = range(len(view.start))
        return any(_before(view, target, p) or _before(target, view, p) for p in positions)

    def materialised(self, value: View | Computed) -> View:
        """The array in memory of its own, which no later assignment changes."""
        kind = kind_of(value)
        limits = tuple(number(n).high for n in value.shape)
        memory = self.array_memory(kind.dtype, limits)
        axes = tuple(Axis(k, 1, n) for k, n in enumerate(value.shape))
        made = View(memory, tuple(affine(0) for _ in axes), axes)

        def one(index: Index) -> None:
            expr = self.element_at(value, index).expr
            self.add(Store(memory.buffer, index, expr, self.location))

        self.over(value.shape, one)
        return made

    def array_memory(self, dtype: DType, shape: tuple[int, ...]) -> Memory:
        """Memory for an array of at most this shape."""
        if dtype.kind not in "biuf":
            raise NotElements(f"an array of dtype {dtype}")
        name = self.fresh("part")
        buffer = Buffer(name, dtype, shape, contiguous_strides(shape), "local")
        if any(isinstance(n, Size) for n in shape) or buffer.nbytes > LARGEST_LOCAL:
            buffer = replace(buffer, role="output")
        memory = self.arrays[id(buffer)] = Memory(buffer, name)
        return memory


def is_array(value: Any) -> bool:
    """Whether this is an array or part of one, with axes."""
    return isinstance(value, Computed) or (isinstance(value, View) and bool(value.axes))


def reads_of(value: View | Computed) -> tuple[tuple[View, bool], ...]:
    """The parts of arrays that a value is made of, as of `Computed`."""
    return value.reads if isinstance(value, Computed) else ((value, True),)


def kind_of(value: View | Computed) -> Kind:
    """The kind of its elements."""
    return value.kind if isinstance(value, Computed) else Kind(value.memory.buffer.dtype)


def _decides(stmt: Any) -> bool:
    """Whether a statement is control flow."""
    return not hasattr(stmt, "value")


def _before(a: View, b: View, position: int) -> bool:
    """Whether along an axis of the array a is one place, and b another or begins after it."""
    place, start = a.start[position], b.start[position]
    if any(axis.position == position and not same_length(axis.step, 0) for axis in a.axes):
        return False
    if not (isinstance(place, Affine) and isinstance(start, Affine)) or place.terms != start.terms:
        return False
    axes = [x for x in b.axes if x.position == position and not same_length(x.step, 0)]
    gap = start.constant - place.constant
    if isinstance(gap, Size):
        return False
    if not axes:
        return bool(gap)
    steps = [number(x.step).low for x in axes]
    return all(step > 0 for step in steps) and gap > 0
