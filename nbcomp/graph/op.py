"""`Op`, the operator, and its families.

An operator is a frozen dataclass: attributes as fields, a docstring whose first line explains it,
`infer` (its type), `reference` (its NumPy meaning), and one way to be compiled, given by its
family:

    Elementwise  `scalar`    one element from the elements at the same (broadcast) index
    View         `source`    one element is another element of the only operand: an affine index map
    Piecewise    `pieces`    boxes of the result, each a view of one operand (concatenate, pad, …)
    Reduce       `fn, axes`  an associative function over axes
    Source       `element`   an element from its index alone (constants, ranges)
    Contract     none        matrix products, to a library or to loops
    Windowed     none        a value for each window of an image: sums of products, maxima
    ChannelsLast none        the same of an image whose channels come last
    Recurrence   `step`      a sequence of states, each made from the one before
    Library      none        runs `reference` itself: a visible library call
    Indexed      none        elements at places that other operands name
    Composite    `expand`    simpler operators

plus `samples` (inputs its tests are generated from) and `numpy` (the NumPy functions it stands for)
with `trace` (the NumPy signature, over nodes).  Adding an operator is adding one class.  A NumPy
function that is several operators has a tracer of its own (`graph.numpy_function.traces`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nbcomp.graph.numpy_function import traces
from nbcomp.loop.grammar import Expr
from nbcomp.shapes import empty
from nbcomp.sizes import is_open
from nbcomp.types import TensorType

if TYPE_CHECKING:
    from nbcomp.graph.ir import Node

Margins = tuple[tuple[int, int], ...]  # before and after, per axis of a space
REGISTRY: dict[str, type[Op]] = {}  # every operator by name


@dataclass(frozen=True)
class Sample:
    """One test input of an operator: an instance and the arrays to run it on."""

    op: Op
    arrays: tuple[Any, ...]
    ulp: float = 0.0  # allowed distance from the reference, in units in the last place


@dataclass(frozen=True)
class Op:
    """Base of all operators."""

    name: ClassVar[str] = ""
    dialect: ClassVar[str] = "tensor"
    numpy: ClassVar[tuple[Any, ...]] = ()
    cost: ClassVar[int] = (
        1  # rough instructions per element; above CHEAP it is never computed twice
    )
    raises: ClassVar[bool] = False  # whether NumPy may raise, by the values of its operands

    def __init_subclass__(cls, name: str = "", numpy: Sequence[Any] = (), **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if name:
            cls.name = name
            REGISTRY[name] = cls
        cls.numpy = tuple(numpy)
        for function in cls.numpy:
            traces(function)(cls.trace)

    def infer(self, *types: TensorType) -> TensorType:
        """The result's type; raises ValueError or TypeError, worded as NumPy does.

        The default asks NumPy: it runs `reference` on arrays without storage (zero strides).
        """
        with np.errstate(all="ignore"):
            result = np.asarray(self.reference(*(phantom(t) for t in types)))
        return TensorType(result.dtype, result.shape)

    def reference(self, *arrays: Any) -> Any:
        """What the operator means, in NumPy.  Every operator but `input`, whose value is given, has
        one of its own.
        """
        raise NotImplementedError(f"{type(self).__name__}.reference")

    @classmethod
    def trace(cls, *args: Any, **kwargs: Any) -> Node:
        """The node for a call of one of `numpy` with these arguments (nodes, or plain values).

        Every operator that stands for NumPy functions has one of its own.
        """
        raise NotImplementedError(f"{cls.__name__}.trace")

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        """Inputs its tests are generated from, edge cases included."""
        return iter(())

    def may_raise(self, *inputs: Node) -> bool:
        """Whether a call may end here, upon which Python runs it: then this is computed, whoever
        reads it."""
        return self.raises

    def attributes(self) -> dict[str, Any]:
        """The fields, by name, as they are printed."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @cached_property
    def printed_attributes(self) -> tuple[str, ...]:
        """The same as they stand in the text of a graph; kept, since graphs are printed often."""
        return tuple(f"{name}={_printed(value)}" for name, value in self.attributes().items())


def _printed(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"<{value.dtype} array {value.shape}>"
    return str(value)


def phantom(t: TensorType) -> Any:
    """An array of any size without storage, for asking NumPy about types."""
    if is_open(t.shape):
        return empty(t.shape, t.dtype)
    return np.broadcast_to(np.ones((), t.dtype), t.shape)


@dataclass(frozen=True)
class Elementwise(Op):
    """One element of the result from the operands' elements at the same, broadcast, index."""

    def scalar(self, *args: Expr) -> Expr:
        """The element, given the operands' elements."""
        raise NotImplementedError


@dataclass(frozen=True)
class View(Op):
    """Every element of the result is one element of the operand, found by an affine index map."""

    def source(self, index: tuple[Expr, ...], operand: TensorType) -> tuple[Expr, ...]:
        """The operand's index for an index of the result."""
        raise NotImplementedError


@dataclass(frozen=True)
class Piece:
    """A box of a `Piecewise` result and where its elements come from.

    start, extent: the box, per axis.  operand: which operand; factor, offset: per axis of the
    result, the operand's index is factor·i + offset with i counted from the start of the box (the
    operand is broadcast to the box's rank and extent, as NumPy broadcasts).  step: the box takes
    every step-th element of the result, starting at start.
    """

    start: tuple[int, ...]
    extent: tuple[int, ...]
    operand: int
    factor: tuple[int, ...]
    offset: tuple[int, ...]
    step: tuple[int, ...]


@dataclass(frozen=True)
class Piecewise(Op):
    """The result is made of boxes, each a view of one operand, which cover it: where two overlap,
    the later one stays."""

    def pieces(self, result: TensorType, *operands: TensorType) -> list[Piece]:
        """The boxes."""
        raise NotImplementedError


@dataclass(frozen=True)
class Reduce(Op):
    """An associative scalar function over some axes: `fn` is its ufunc's name."""

    fn: ClassVar[str] = ""
    axes: tuple[int, ...] = ()  # sorted, non-negative
    keepdims: bool = False

    def identity(self, dtype: np.dtype[Any]) -> Any:
        """The value the accumulation starts from."""
        raise NotImplementedError


@dataclass(frozen=True)
class Source(Op):
    """No operands: an element is a function of its index."""

    def element(self, index: tuple[Expr, ...], result: TensorType) -> Expr:
        """The element at an index."""
        raise NotImplementedError


@dataclass(frozen=True)
class Contract(Op):
    """A sum of products over a shared axis.

    generated: loops are written for it, instead of a library called.  narrow: of operands that are
    narrower than the sums, the left one with neighbours along the sum.
    """

    narrow: ClassVar[bool] = False
    generated: bool = False

    def attributes(self) -> dict[str, Any]:
        """Whether it is generated is said where it is."""
        return {k: v for k, v in super().attributes().items() if k != "generated" or v}


@dataclass(frozen=True)
class Windowed(Op):
    """One value for each window of the last axes of the first operand: loops are generated for it.

    With a second operand (out, in / groups, *kernel) of weights the sum of products, over the
    channels of the group as well; without, the elements of each window combined by `fn`.  Fields
    have one entry per axis of the space; margins, of `fill`, come before and after.
    """

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    margins: Margins
    dilation: tuple[int, ...]
    groups: int = 1

    fn: ClassVar[str] = "add"

    def fill(self, dtype: np.dtype[Any]) -> Any:
        """What the margins hold."""
        return 0


@dataclass(frozen=True)
class ChannelsLast(Windowed):
    """One value for each window of an image (batch, *space, channels), in the same order.

    The name is that of the operator on channels first, with `_last`.  Margins are never above 0:
    what is around the image is in memory; those below leave out that much of it.
    """

    narrow: ClassVar[bool] = False  # as of `Contract`

    @classmethod
    def of(cls, op: Windowed, margins: Margins, x: Node, *weights: Node) -> Node:
        """The operator in the place of `op`, of an image and of weights as that takes them."""
        raise NotImplementedError


@dataclass(frozen=True)
class Recurrence(Op):
    """The states of a sequence, each made from the one before: one loop is generated for it.

    Operands: gates (steps, batch, G · hidden), the initial states, packed weights (blocks, hidden,
    G, block), perhaps a bias.  Fields as those of `recurrent`.
    """

    kind: str = ""
    backwards: bool = False

    @property
    def states(self) -> int:
        """Arrays of state."""
        raise NotImplementedError

    @property
    def gates(self) -> int:
        """Gates of a unit."""
        raise NotImplementedError

    def step(self, given: tuple[Node, ...], own: tuple[Node, ...], states: Any) -> tuple[Node, ...]:
        """The new states of a unit, from both parts of its gates and its states: all 0-d."""
        raise NotImplementedError


@dataclass(frozen=True)
class Library(Op):
    """Runs its NumPy `reference`: a visible call of a library routine.

    kept: what it makes of a held input is made once, and again when that has changed.  brought: it
    runs a routine that somebody brought along; the reference is what that means.  takes_out: the
    reference takes an array `out` for its result, which may be one of the operands.
    """

    kept: ClassVar[bool] = False
    brought: ClassVar[bool] = False
    takes_out: ClassVar[bool] = False

    @property
    def contiguous(self) -> bool:
        """Whether it takes operands in C order only."""
        return False


@dataclass(frozen=True)
class Indexed(Library):
    """Elements of the first operand at places that integer operands name, for some of its axes.

    Loops are generated for it, unless only NumPy knows in which order it goes.  assigns: the second
    operand is assigned there, in a new array.
    """

    raises: ClassVar[bool] = True  # IndexError
    assigns: ClassVar[bool] = False
    axes: tuple[int, ...] = ()  # ascending

    def may_raise(self, *inputs: Node) -> bool:
        """Unless all places are known and in bounds."""
        x, indices = inputs[0], inputs[1 + self.assigns :]
        lengths = [x.shape[axis] for axis in self.axes]
        return not all(map(_in_bounds, indices, lengths))

    @property
    def first(self) -> int:
        """The axis at which those of the indices are in what is read or assigned."""
        raise NotImplementedError

    def place_shape(self, x: Node, indices: Sequence[Node]) -> tuple[int, ...]:
        """The shape of what is read or assigned."""
        raise NotImplementedError

    def in_loops(self, *inputs: Node) -> bool:
        """Whether loops are generated for it."""
        return True


def _in_bounds(places: Node, length: int) -> bool:
    if not isinstance(places.op, Constant) or is_open((length,)):
        return False
    found = np.asarray(places.op.value)
    return not found.size or (found.min() >= -length and found.max() < length)


def is_indexed(node: Node) -> bool:
    """Whether loops find the elements, instead of NumPy."""
    return isinstance(node.op, Indexed) and node.op.in_loops(*node.inputs)


@dataclass(frozen=True)
class Composite(Op):
    """Stands for a small graph of simpler operators."""

    def expand(self, *inputs: Node) -> Node:
        """The simpler graph."""
        raise NotImplementedError

    def windowed(self, *inputs: Node) -> Node | None:
        """The same by operators over windows (`Windowed`), if it is one of those."""
        return None

    def looped(self, *inputs: Node) -> Node | None:
        """The same as one loop over a sequence (`Recurrence`), if it is that."""
        return None

    def infer(self, *types: TensorType) -> TensorType:
        # What was assumed about open sizes must be noted each time.
        known = not any(is_open(t.shape) for t in types)
        return (_expanded_type if known else _expanded_type.__wrapped__)(self, types)


@lru_cache(maxsize=4096)
def _expanded_type(op: Composite, types: tuple[TensorType, ...]) -> TensorType:
    from nbcomp.graph.ir import Node, noting  # nodes are made of operators

    with noting([]):
        return op.expand(*(Node(Input(i, t), (), t) for i, t in enumerate(types))).type


@dataclass(frozen=True)
class Input(Op, name="input"):
    """An argument of the program, or a global or closure variable it reads.

    strides: those of the array it was captured with, in elements; None means C order.  held: it
    belongs to an object that says when it changes, so that what is made of it may be kept.
    """

    index: int = 0
    type: TensorType = field(default=TensorType(np.dtype(np.float64), ()))
    strides: tuple[int, ...] | None = None
    held: bool = False

    def infer(self, *types: TensorType) -> TensorType:
        return self.type


@dataclass(frozen=True, eq=False)
class Constant(Op, name="constant"):
    """An array known when compiling, held by reference; equal only to itself."""

    value: Any = None

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(self.value.dtype, self.value.shape)

    def reference(self, *arrays: Any) -> Any:
        return self.value


def is_kept(op: Op, inputs: Sequence[Node]) -> bool:
    """Whether what an operator makes of these is kept from call to call."""
    held = all(isinstance(i.op, Input) and i.op.held for i in inputs)
    return isinstance(op, Library) and op.kept and held
