"""Elements at places that other arrays name: `x[i]` and `x[i] = v` as loops.

    low = 0; high = -1
    for p: low minimum= i[p]; high maximum= i[p]
    if low < -n or high >= n: exit            Python says what is wrong with which index
    for p: for k: out[p, k] = x[i[p] < 0 ? i[p] + n : i[p], k]

Where elements are assigned, `out` has those of x first, and of two values for one place the later
one stays: no loop over places is reordered.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nbcomp.graph.ir import Node
from nbcomp.graph.op import Constant, Indexed
from nbcomp.graph.passes.groups import Group
from nbcomp.loop.grammar import (
    Accumulate,
    Apply,
    Buffer,
    Cast,
    Exit,
    Expr,
    Failure,
    If,
    Load,
    Select,
    Store,
    affine,
    const,
)
from nbcomp.lowering.elements import Index, broadcast_index
from nbcomp.lowering.group import AXES, GroupLowering, Orders, strides_in
from nbcomp.sizes import broadcast_shapes, is_open
from nbcomp.types import BOOL, INT64, contiguous_strides


class Places(GroupLowering):
    """Loops for one operator of indices."""

    def __init__(self, group: Group, names: dict[Node, str], free: Orders) -> None:
        super().__init__(group, names, free)
        (self.node,) = group.nodes
        assert isinstance(self.node.op, Indexed)
        self.op = self.node.op
        first = 2 if self.op.assigns else 1
        self.x, self.indices = self.node.inputs[0], self.node.inputs[first:]
        self.elements.uses.clear()  # each is read in one place

    def output(self, node: Node) -> Buffer:
        """A new array, in NumPy's order where it may be."""
        return self.buffer(node, strides_in(node.shape, self.free.get(node)), "output")

    def body(self) -> None:
        for axis, index in zip(self.op.axes, self.indices, strict=True):
            if not _is_known(index, self.x.shape[axis]):
                self.check(index, self.x.shape[axis])
        if self.op.assigns:
            self.copy()
        self.move()

    def check(self, index: Node, length: int) -> None:
        """End the kernel if an index is not one of an axis of this length."""
        low, high = (self.local(name, INT64, ()) for name in ("low", "high"))
        self.writer.add(Store(low, (), const(0, INT64), self.location))
        self.writer.add(Store(high, (), const(-1, INT64), self.location))
        names = [AXES[k % 8] for k in range(len(index.shape))]
        with self.writer.loops(names, list(index.shape), self.location) as at:
            value = self.place(index, at)
            self.writer.add(Accumulate(low, (), "minimum", value, self.location))
            self.writer.add(Accumulate(high, (), "maximum", value, self.location))
        ends = (Load(INT64, low, ()), affine(-length)), (affine(length - 1), Load(INT64, high, ()))
        outside = Failure("IndexError", "an index is out of bounds", self.location, certain=False)
        for pair in ends:
            wrong = Apply(BOOL, "less", pair, self.location)
            self.writer.add(If(wrong, (Exit(outside, None, self.location),), (), self.location))
        self.close_stage()

    def place(self, index: Node, at: Index) -> Expr:
        """An element of an array of indices, as int64."""
        value = self.elements.at(index, broadcast_index(at, index.shape))
        return value if value.dtype == INT64 else Cast(INT64, value, self.location)

    def copy(self) -> None:
        """What stays as it is."""
        out = self.outputs[self.node]
        with self.nest(out.shape, out.strides) as index:
            self.writer.add(Store(out, index, self.elements.at(self.x, index), self.location))
        self.close_stage()

    def move(self) -> None:
        """Read, or assign, element by element."""
        out, shape = self.outputs[self.node], self.op.place_shape(self.x, self.indices)
        if not self.op.assigns:
            with self.nest(shape, out.strides) as index:
                value = self.elements.at(self.x, self.found(index))
                self.writer.add(Store(out, index, value, self.location))
        else:
            new = self.node.inputs[1]
            with self.nest(shape, contiguous_strides(shape)) as index:
                value = self.elements.at(new, broadcast_index(index, new.shape))
                self.writer.add(Store(out, self.found(index), value, self.location))
        self.close_stage()

    def found(self, index: Index) -> Index:
        """Where in x the element at an index of the result is."""
        rank = len(broadcast_shapes(*(i.shape for i in self.indices)))
        first = self.op.first
        at, rest = index[first : first + rank], iter((*index[:first], *index[first + rank :]))
        of = dict(zip(self.op.axes, self.indices, strict=True))
        return tuple(
            self.forwards(of[k], at, n) if k in of else next(rest)
            for k, n in enumerate(self.x.shape)
        )

    def forwards(self, index: Node, at: Index, length: int) -> Expr:
        """An index, counted from the beginning of an axis."""
        if isinstance(index.op, Constant) and not index.shape and not is_open((length,)):
            return affine(int(index.op.value) % length)
        value = self.writer.bind("place", self.place(index, at), self.location)
        back = Apply(BOOL, "less", (value, const(0, INT64)), self.location)
        other = Apply(INT64, "add", (value, affine(length)), self.location)
        return self.writer.bind("place", Select(INT64, back, other, value), self.location)

    @contextmanager
    def nest(self, shape: tuple[int, ...], steps: tuple[int, ...]) -> Iterator[Index]:
        """Loops over a shape, outermost the axis with the largest steps."""
        order = sorted(range(len(shape)), key=lambda k: -steps[k])
        names, extents = [AXES[k % 8] for k in order], [shape[k] for k in order]
        with self.writer.loops(names, extents, self.location) as loops:
            at = dict(zip(order, loops, strict=True))
            yield tuple(at[k] for k in range(len(shape)))


def _is_known(index: Node, length: int) -> bool:
    """Whether indices are known to be those of an axis of this length."""
    if not isinstance(index.op, Constant) or is_open((length,)):
        return False
    known = index.op.value
    return bool(known.size == 0 or (known.min() >= -length and known.max() < length))
