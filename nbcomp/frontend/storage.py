"""Memory as the user's program sees it: `Storage` is a base array, `Place` a view of one.

The graph has no memory, so writing is made functional: a storage holds the node of its array's
present value; reading a view applies its operators to that node, writing scatters the new value
back through them.  Which operations give views, and the strides they have, NumPy decides: each
place has a stand-in array of the same layout, on which the very same view is taken.  Knows nodes
and layouts, not tracers.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.frontend.session import Read
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.op import Op
from nbcomp.ops.index import put
from nbcomp.ops.move import Diagonal
from nbcomp.shapes import Shaped, empty

Array = np.ndarray[Any, Any] | Shaped
RUN_TIME_VIEW = (
    "an integer index known only at run time gives a view here; it can only be read, and only"
    " until the array is written to"
)
CHOSEN = (
    "which array this is, is known only at run time (a branch or a loop chose it); it can only be"
    " read, and only until what it may be is written to"
)


@dataclass(eq=False)
class Storage:
    """A base array: the node of its present value and where it lives.

    read: the input it is, if any.  layout: an array laid out as NumPy lays out this one, or None
    for row-major order.  certain: whether that is known to be NumPy's layout.  doubts: storages
    that are copies or views of this one, which only an unknown layout would tell.  foreign: it is
    an array that the function neither got nor made.  view_of: the storage this one is a view of,
    at a place known at run time only; it can be read while nobody writes to either.  choices: the
    storages this one may be, which only the way taken at run time tells; it can be read while
    nobody writes to any of those that are still there.  chosen: the storages that may be this one.
    model: a model was given it, or it is a parameter of one (see `tracer.EXTRA_METHODS`).
    """

    node: Node
    read: Read | None = None
    layout: Array | None = None
    certain: bool = True
    foreign: bool = False
    version: int = 0
    doubts: list[Storage] = field(default_factory=list)
    view_of: Storage | None = None
    choices: WeakSet[Storage] = field(default_factory=WeakSet)
    chosen: WeakSet[Storage] = field(default_factory=WeakSet)
    stale: bool = False  # what it may be was written to
    model: bool = False

    def __post_init__(self) -> None:
        self._seen = self.view_of.version if self.view_of is not None else 0

    def bases(self) -> Iterator[Storage]:
        """The storages this one is a view of, the nearest first."""
        base = self.view_of
        while base is not None:
            yield base
            base = base.view_of

    def sharing(self) -> set[Storage]:
        """The storages whose memory this one's may be, itself included."""
        found = {self, *self.choices}
        return found | self.view_of.sharing() if self.view_of is not None else found

    def may_be(self, storages: Iterable[Storage]) -> None:
        """Note that a way taken at run time decides whether this is one of these."""
        for storage in storages:
            if storage is not self:
                self.choices.add(storage)
                storage.chosen.add(self)

    def check_current(self) -> None:
        """Raise `Unsupported` for what perhaps is, or is a view of, what was written to since."""
        if self.stale:
            raise Unsupported(CHOSEN, hint="write .copy() where it is chosen")
        if self.view_of is not None:
            if self.view_of.version != self._seen:
                raise Unsupported(RUN_TIME_VIEW, hint="write .copy() after the index")
            self.view_of.check_current()

    def stand_in(self) -> Array:
        """An array with this one's dtype, shape and strides; its contents mean nothing."""
        if self.layout is None:
            self.layout = empty(self.node.shape, self.node.type.dtype)
        return self.layout


class Place:
    """A view of a storage: the operators that lead to it and its layout."""

    __slots__ = ("_layout", "_nodes", "_version", "broadcast", "derived", "storage", "views")

    def __init__(
        self, storage: Storage, views: tuple[Op, ...] = (), layout: Array | None = None
    ) -> None:
        self.storage, self.views, self._layout = storage, views, layout
        self.derived = False  # a view, although perhaps of everything
        self.broadcast = False  # by np.broadcast_arrays, which lets one write to it, with a warning
        self._version = -1
        self._nodes: list[Node] = []

    @property
    def layout(self) -> Array:
        """The stand-in array."""
        return self.storage.stand_in() if self._layout is None else self._layout

    @property
    def row_major(self) -> bool:
        """Whether it is known to be contiguous in row-major order."""
        if not self.views and self.storage.layout is None:
            return self.storage.certain
        return self.storage.certain and bool(self.layout.flags.c_contiguous)

    def view(self, views: Sequence[Op], layout: Array) -> Place:
        """A further view."""
        place = Place(self.storage, (*self.views, *views), layout)
        place.derived, place.broadcast = True, self.broadcast
        return place

    def read(self) -> Node:
        """The present value."""
        self.storage.check_current()
        return self._levels()[-1]

    def _levels(self) -> list[Node]:
        """The present values of the base and of each view on the way."""
        if self._version != self.storage.version or not self._nodes:
            nodes = [self.storage.node]
            for op in self.views:
                nodes.append(apply(op, nodes[-1]))
            self._nodes, self._version = nodes, self.storage.version
        return self._nodes

    def write(self, value: Node, complaint: str = "assignment destination is read-only") -> None:
        """Make `value`, of this place's type, its new content, for all that share the memory.

        Raises ValueError with NumPy's message for a read-only array, `Unsupported` where it is not
        known who shares the memory.
        """
        self.check_writable(complaint)
        if any(isinstance(op, Diagonal) for op in self.views):
            raise Unsupported("writing to a diagonal is not compiled", hint="x[i, i] = value")
        below = self._levels()
        for op, base in zip(reversed(self.views), reversed(below[:-1]), strict=True):
            value = put(op, base, value)
        self.storage.node = value
        self.storage.version += 1
        for storage in self.storage.chosen:
            storage.stale = True
        if self.storage.read is not None:
            self.storage.read.written = self.storage.read.used = True
            self.storage.read.content = value

    def check_writable(self, complaint: str) -> None:
        """Raise what writing here would raise."""
        if self.broadcast:
            raise Unsupported("writing to what np.broadcast_arrays gave", hint="write .copy()")
        if not self.is_writable():
            raise ValueError(complaint)
        if self.storage.foreign:
            raise Unsupported(
                "the function writes to an array that it neither gets nor makes",
                hint="pass the array as an argument",
            )
        if self.storage.view_of is not None:
            raise Unsupported(RUN_TIME_VIEW, hint="write to it by its index: x[i] = ...")
        if self.storage.choices:
            gc.collect()  # what nobody can reach does not matter
        if self.storage.choices:
            raise Unsupported(CHOSEN, hint="write .copy() where it is chosen")
        if self.storage.doubts:
            raise Unsupported(
                "whether this array shares its memory with one it was reshaped from depends on a"
                " memory layout nbcomp does not know",
                hint="write .copy() after the reshape",
            )
        if self.storage.read is not None and overlaps_itself(self.storage.stand_in()):
            raise Unsupported("this argument's elements share memory; it cannot be written to")

    def is_writable(self) -> bool:
        """Whether NumPy lets one write here."""
        if not self.views and self.storage.layout is None:
            return True
        return bool(self.layout.flags.writeable)


def memory_order(place: Place) -> tuple[int, ...]:
    """The axes, outermost in memory first, as NumPy lays the array out."""
    plain = tuple(range(len(place.storage.node.shape)))
    if not place.views and place.row_major:
        return plain
    layout = place.layout
    long = [k for k, n in enumerate(layout.shape) if n != 1]
    order = sorted(long, key=lambda k: -abs(layout.strides[k]))
    if order == long:
        return tuple(range(len(layout.shape)))
    return (*(k for k, n in enumerate(layout.shape) if n == 1), *order)


def overlaps_itself(array: Array) -> bool:
    """Whether two elements of the array may be one piece of memory (never wrongly False)."""
    reach = array.itemsize
    for stride, n in sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True)):
        if n > 1:
            if stride < reach:
                return True
            reach += stride * (n - 1)
    return False
