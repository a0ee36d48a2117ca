"""From what a user passes to nodes: constants, casts and promotion, decided by asking NumPy.

An operand may be a node, a Python number, a NumPy scalar, an array or a nested list.  A Python
number is weak (NEP 50): its dtype gives way to that of the arrays it meets, and so does a node
marked `weak`. Knows the dtypes nbcomp compiles; knows no operator but `Cast`.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import NUMPY
from nbcomp.graph.op import Constant, Elementwise, Sample, Source, phantom
from nbcomp.loop import grammar
from nbcomp.loop.grammar import Expr
from nbcomp.ops import values
from nbcomp.sizes import Size, broadcast_shapes, is_open
from nbcomp.types import FLOAT64, INT64, DType, TensorType, canonical

NUMBERS = (bool, int, float)
# What arrays of other kinds hold.
WORDS = {"U": "text", "S": "bytes", "O": "Python objects", "V": "records"}


def supported(dtype: Any, what: str = "") -> DType:
    """The dtype in native byte order, if nbcomp compiles it; raises `Unsupported` otherwise."""
    dt = np.dtype(dtype)
    if dt.kind not in "biuf" or dt.itemsize > 8:
        subject = f"{what}: " if what else ""
        of = WORDS.get(dt.kind)
        arrays = f"arrays of {of} ({dt.name})" if of else f"{dt.name} arrays"
        raise Unsupported(
            f"{subject}{arrays} are not compiled",
            hint="use bool, int8 to int64, uint8 to uint64, float16, float32 or float64",
        )
    return canonical(dt.newbyteorder("="))


@dataclass(frozen=True)
class Cast(Elementwise, name="cast", numpy=[np.astype] if hasattr(np, "astype") else []):
    """x.astype(dtype)

    A cast of a weak int64 node (a Python int read at run time) to an integer dtype stands for
    NumPy's own conversion, which raises OverflowError out of range: whoever reads the number must
    check the range.
    """

    dtype: DType

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(self.dtype, types[0].shape)

    def reference(self, *arrays: Any) -> Any:
        return np.asarray(arrays[0]).astype(self.dtype)

    def scalar(self, *args: Expr) -> Expr:
        return convert(args[0], self.dtype)

    @classmethod
    def trace(
        cls,
        x: Any,
        dtype: Any,
        copy: bool | None = True,
        casting: str = "unsafe",
        device: Any = None,
    ) -> Node:
        node, target = as_node(x), supported(dtype, "astype")
        if casting != "unsafe":
            empty: Any = np.empty(0, node.type.dtype)
            empty.astype(target, casting=casting)  # raises where the rule forbids it
        return cast(node, target)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for source in values.DTYPES:
            for target in values.DTYPES:
                array = values.castable(rng, source, target)
                yield Sample(cls(target), (array,))
        for shape in values.SHAPES:
            yield Sample(cls(np.dtype(np.float32)), (values.ordinary(rng, np.int16, shape),))


@dataclass(frozen=True)
class Length(Source, name="length"):
    """A whole number made of lengths that are open while compiling"""

    size: Any  # a `Size`

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(INT64, ())

    def reference(self, *arrays: Any) -> Any:
        return np.int64(operator.index(self.size))

    def element(self, index: tuple[Expr, ...], result: TensorType) -> Expr:
        return grammar.affine(self.size)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for size in (2, 7, 1 << 40):
            yield Sample(cls(size), ())


def convert(value: Expr, dtype: DType) -> Expr:
    """The expression as this dtype."""
    return value if value.dtype == dtype else grammar.Cast(dtype, value)


def constant(value: Any, dtype: Any = None) -> Node:
    """A node for an array known now, held by reference when it is an array of that dtype
    already.
    """
    array = np.asarray(value, dtype)
    native = supported(array.dtype)
    return apply(Constant(array if array.dtype.isnative else array.astype(native)))


def as_node(value: Any) -> Node:
    """The node for an array-like operand.  Python numbers become int64, float64 or bool.

    Raises `Unsupported` for dtypes and array classes nbcomp does not compile.
    """
    if isinstance(value, Node):
        return value
    if isinstance(value, Size):
        return replace(apply(Length(value)), weak=True)
    if isinstance(value, list | tuple) and holds_node(value):
        return traced(np.array, value)
    if isinstance(value, np.ndarray) and type(value) not in (np.ndarray, np.memmap):
        kind = type(value).__name__
        raise Unsupported(f"a {kind} is not compiled", hint="pass np.asarray(…) of it")
    return constant(value)


def as_array(value: Any) -> Node:
    """The node for an operand that NumPy makes an array first: a Python number, now or at run
    time, has a dtype that no longer gives way.
    """
    node = as_node(value)
    return cast(node, node.type.dtype) if node.weak else node


def at_least_1d(value: Any) -> Node:
    """The node for an operand of a function along an axis that takes 0-d arrays for vectors."""
    node = as_node(value)
    return node if node.shape else traced(np.reshape, node, (1,))


def holds_node(value: Any) -> bool:
    """Whether there is a node in this nested list."""
    if isinstance(value, list | tuple):
        return any(holds_node(v) for v in value)
    return isinstance(value, Node | Size)


def cast(node: Node, dtype: DType) -> Node:
    """The node as this dtype; a Python number read at run time is converted as Python converts
    it.
    """
    if node.type.dtype == dtype:
        return apply(Cast(dtype), node) if node.weak else node
    if node.weak and dtype.kind == "f" and node.type.dtype.kind == "i":
        node = apply(Cast(FLOAT64), node)  # NumPy reads a Python int as a double first
    return node if node.type.dtype == dtype else apply(Cast(dtype), node)


def number(value: Any, dtype: DType) -> Node:
    """A Python number as a constant of this dtype; raises OverflowError as NumPy does."""
    if dtype.kind == "b" and type(value) is int:
        np.int64(value)  # NumPy reads truth from a C long
    with np.errstate(all="ignore"):
        return apply(Constant(np.asarray(dtype.type(value))))


def operand(value: Any, dtype: DType) -> Node:
    """The operand as a node of this dtype."""
    if type(value) in NUMBERS:
        return number(value, dtype)
    return cast(as_node(value), dtype)


def elements(value: Any, dtype: DType) -> Node:
    """The operand as NumPy's own array of this dtype: every Python number, in a list too, is
    converted by itself and raises OverflowError or ValueError where it does not fit; arrays wrap
    round.

    Raises `Unsupported` for a scalar in a list of whose value that depends at run time.
    """
    if not isinstance(value, list | tuple):
        return operand(value, dtype)
    if not holds_node(value):
        return constant(np.array(value, dtype))
    for member in _members(value):
        if isinstance(member, Node) and not member.shape and dtype.kind in "iu":
            if not np.can_cast(member.type.dtype, dtype):
                raise Unsupported(
                    f"NumPy checks that the value of a {member.type.dtype} scalar fits {dtype}",
                    hint=f"convert it: value.astype(np.{dtype})",
                )
        elif type(member) in NUMBERS:
            number(member, dtype)
    return cast(as_node(value), dtype)


def _members(value: Any) -> Iterator[Any]:
    """What is in nested lists."""
    if isinstance(value, list | tuple):
        for v in value:
            yield from _members(v)
    else:
        yield value


def converted(value: Any, dtype: DType) -> Node:
    """The operand cast as an array would be: functions that are no ufuncs let a Python int wrap
    round where a ufunc raises OverflowError.
    """
    node = as_node(value)
    if node.weak:
        node = apply(Cast(node.type.dtype), node)
    elif isinstance(node.op, Constant) and not node.shape and node.type.dtype != dtype:
        with np.errstate(all="ignore"):
            return apply(Constant(node.op.value.astype(dtype)))
    return cast(node, dtype)


def weak_type(value: Any) -> type | None:
    """`int` or `float` for a Python number, now or at run time; None for everything typed.

    A Python bool has a dtype of its own and never gives way.
    """
    if isinstance(value, Node):
        return {"i": int, "f": float}.get(value.type.dtype.kind) if value.weak else None
    if isinstance(value, Size):
        return int
    return type(value) if type(value) in (int, float) else None


def stand_in(value: Any) -> Any:
    """Something NumPy can be asked about types and shapes with: an array without storage for a
    node, a number for a Python number; nested lists likewise.
    """
    if isinstance(value, Node):
        weak = weak_type(value)
        return phantom(value.type) if weak is None else weak(1)
    if isinstance(value, list | tuple):
        return type(value)(map(stand_in, value)) if any(map(_nodes, value)) else value
    return value


def _nodes(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_nodes, value))
    return isinstance(value, Node)


def ask(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What NumPy answers, or raises, for such operands.  Costs what the function costs, so it is
    for functions that return views, for empty arrays and for calls known to raise.
    """
    with np.errstate(all="ignore"):
        return function(*map(stand_in, args), **{k: stand_in(v) for k, v in kwargs.items()})


def result_type(*operands: Any) -> DType:
    """`np.result_type` of these operands, Python numbers being weak."""
    asked = [_type_in(v) for v in operands]
    return supported(np.result_type(*asked))


def _type_in(value: Any) -> Any:
    if type(value) in NUMBERS:
        return value
    weak = weak_type(value)
    return weak(0) if weak else (value if isinstance(value, Node) else as_node(value)).type.dtype


def broadcast_shape(function: Callable[..., Any], *types: TensorType) -> tuple[int, ...]:
    """The common shape; where there is none, `function` is asked to raise its own error."""
    with contextlib.suppress(ValueError):
        return broadcast_shapes(*(t.shape for t in types))
    if any(is_open(t.shape) for t in types):
        raise ValueError(_apart(*types))
    function(*(phantom(t) for t in types))  # raises
    return broadcast_shapes(*(t.shape for t in types))


def _apart(*types: TensorType) -> str:
    """NumPy's words for shapes that do not go together, with open lengths by their names."""
    shapes = " ".join(f"({','.join(map(str, t.shape))})" for t in types)
    return (
        f"operands could not be broadcast together with shapes {shapes}: lengths that are equal"
        " have one name"
    )


def traced(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Node:
    """The node of a NumPy function's call, for functions with one result."""
    node: Node = NUMPY[function].trace(*args, **kwargs)
    return node


def broadcast_to(node: Node, shape: tuple[int, ...]) -> Node:
    """The node, broadcast if it has another shape."""
    return node if node.shape == shape else traced(np.broadcast_to, node, shape)


def normal_axes(axis: Any, ndim: int, lists: bool = False) -> tuple[int, ...]:
    """An axis argument (None, int or tuple) as sorted non-negative axes; raises NumPy's AxisError,
    TypeError and ValueError for duplicates.  lists: lists and truth values are axes too, as in the
    functions that NumPy has in Python.
    """
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, (tuple, list) if lists else tuple) else (axis,)
    if not lists and any(isinstance(a, bool | np.bool_) for a in axes):
        raise TypeError("an integer is required")
    normal = tuple(normal_axis(a, ndim) for a in axes)
    if len(set(normal)) != len(normal):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(normal))


def normal_axis(axis: Any, ndim: int) -> int:
    """One axis, non-negative; raises NumPy's AxisError."""
    result: int = np.lib.array_utils.normalize_axis_index(integer(axis), ndim)
    return result


def integer(value: Any, what: str = "an axis, shape or size") -> int:
    """A whole number known now, or a length that is open.

    Raises `Unsupported` for one that is computed at run time: it would decide a shape.
    """
    if isinstance(value, Node):
        raise Unsupported(
            f"{what} must be known when compiling, but this one is computed from the inputs",
            hint="take it from a shape, a constant or an argument that is not an array",
        )
    return value if isinstance(value, Size) else operator.index(value)  # type: ignore[return-value]


def integers(value: Any, what: str = "a shape") -> tuple[int, ...]:
    """A whole number or a sequence of them, known now."""
    if isinstance(value, Sequence | np.ndarray):
        return tuple(integer(v, what) for v in value)
    return (integer(value, what),)


def as_shape(value: Any) -> tuple[int, ...]:
    """A shape: whole numbers, and no bools.  Raises TypeError as NumPy does."""
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"expected a sequence of integers or a single integer, got '{value}'")
    if isinstance(value, Sequence) and any(isinstance(v, bool | np.bool_) for v in value):
        raise TypeError("an integer is required")
    return integers(value)
