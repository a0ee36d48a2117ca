"""Functions that give views, and indexing.

Each view is taken twice: on the stand-in array, where NumPy decides whether it is a view at all,
its strides and its errors, and on the node, where the operators between it and the base are the
view.  Knows which functions of NumPy are views.
"""

from __future__ import annotations

import operator
from types import EllipsisType
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.frontend.converted import check_depth, check_element, converted
from nbcomp.frontend.dispatch import adopt, constants, deep, fresh, handles, lower, named
from nbcomp.frontend.layouts import layout_of, layout_of_item
from nbcomp.frontend.location import here
from nbcomp.frontend.number import Number, known, symbol
from nbcomp.frontend.selection import Selection, selected
from nbcomp.frontend.session import Session
from nbcomp.frontend.tracer import Tracer, read, shape_of
from nbcomp.graph.ir import Node
from nbcomp.graph.numpy_function import NUMPY
from nbcomp.graph.op import Op
from nbcomp.ops.index import assign
from nbcomp.ops.index import index as take_index
from nbcomp.ops.operand import constant
from nbcomp.shapes import Shaped, asked, empty
from nbcomp.sizes import Size, broadcast_shapes

VIEWS = [
    np.transpose, np.permute_dims, np.matrix_transpose, np.linalg.matrix_transpose, np.swapaxes,
    np.moveaxis, np.rollaxis, np.squeeze, np.expand_dims, np.flip, np.fliplr, np.flipud, np.rot90,
    np.diagonal, np.linalg.diagonal, np.broadcast_to,
]  # fmt: skip
SAME = {np.linalg.matrix_transpose: np.matrix_transpose, np.linalg.diagonal: np.diagonal}
SPLITS = [np.split, np.array_split, np.vsplit, np.hsplit, np.dsplit]
if hasattr(np, "unstack"):
    SPLITS.append(np.unstack)


def path(result: Node, base: Node) -> tuple[Op, ...]:
    """The operators that lead from one node to the other, each with one operand."""
    ops: list[Op] = []
    while result is not base:
        ops.append(result.op)
        (result,) = result.inputs
    return tuple(reversed(ops))


def _view(session: Session, x: Tracer, node: Node, layout: Any) -> Any:
    """The view of x with this node and layout; of a NumPy scalar, a new array or scalar."""
    if x._scalar or not isinstance(layout, np.ndarray | Shaped):
        return fresh(session, node, scalar=True)
    return Tracer(session, x._place.view(path(node, read(x)), layout))


def _handler_of(function: Any) -> Any:
    tracer = NUMPY[function if function in NUMPY else SAME[function]]

    def handler(session: Session, x: Any, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = deep(known, args), deep(known, kwargs)
        x = symbol(x)
        if isinstance(x, Node):  # a number read at run time: NumPy makes it an array first
            x = fresh(session, x)
        if type(x) is not Tracer:
            return constants(session, function(x, *args, **kwargs))
        layout = function(asked(x._place.layout, *args, *kwargs.values()), *args, **kwargs)
        if layout is x._place.layout:
            return x
        node = tracer.trace(read(x), *args, **kwargs)
        if isinstance(layout, list | tuple):
            return type(layout)(_view(session, x, n, m) for n, m in zip(node, layout, strict=True))
        return _view(session, x, node, layout)

    return handler


for _function in (*VIEWS, *SPLITS):
    handles(_function)(_handler_of(_function))


@handles(np.diag)
def _diag(session: Session, v: Any, k: int = 0) -> Any:
    x = adopt_array(session, v)
    if len(x.shape) == 2:
        return session.call(np.diagonal, (x, k), {})
    return fresh(session, NUMPY[np.diag].trace(read(x), known(k)))


@handles(np.lib.stride_tricks.sliding_window_view)
def _sliding_window_view(
    session: Session, x: Any, window_shape: Any, axis: Any = None, **options: Any
) -> Any:
    """The windows, gathered; as in NumPy they cannot be written to, and once the array is written
    to they cannot be read."""
    array = adopt_array(session, x)
    window, axes = deep(known, window_shape), deep(known, axis)
    view = np.lib.stride_tricks.sliding_window_view
    shape = view(array._place.layout, window, axes, **options).shape
    sizes = shape[len(array.shape) :]
    places = range(len(array.shape)) if axes is None else np.atleast_1d(axes) % len(array.shape)
    result = array
    for place, size in zip(map(int, places), sizes, strict=True):
        count = result.shape[place] - size + 1
        index = np.arange(count)[:, None] + np.arange(size)
        taken = session.call(np.take, (result, fresh(session, constant(index)), place), {})
        result = session.call(np.moveaxis, (taken, place + 1, -1), {})
    storage = array._place.storage
    layout = view(array._place.layout, window, axes, **options)
    return fresh(session, read(result), layout=layout, certain=storage.certain, view_of=storage)


@handles(np.broadcast_arrays)
def _broadcast_arrays(session: Session, *args: Any, subok: bool = False) -> Any:
    arrays = [adopt_array(session, a) for a in args]
    shape = broadcast_shapes(*map(shape_of, arrays))
    return tuple(x if shape_of(x) == shape else _broadcast(session, x, shape) for x in arrays)


def _broadcast(session: Session, x: Tracer, shape: tuple[int, ...]) -> Any:
    """The broadcast view, which NumPy lets one write to here (with a warning)."""
    view = session.call(np.broadcast_to, (x, shape), {})
    view._place.broadcast = True
    return view


@handles(np.einsum)
def _einsum(session: Session, subscripts: Any, *operands: Any, **options: Any) -> Any:
    """A view where nothing is summed over; else a new array."""
    x = operands[0] if len(operands) == 1 and not options else None
    if type(x) is Tracer and isinstance(subscripts, str) and _only_moves(subscripts):
        node = NUMPY[np.einsum].trace(subscripts, read(x))
        return _view(session, x, node, np.einsum(subscripts, x._place.layout))
    nodes = [lower(session, known(o)) for o in operands]
    out = options.pop("out", None)
    result = NUMPY[np.einsum].trace(lower(session, subscripts), *nodes, **options)
    layout, certain = layout_of(result, np.einsum, (subscripts, *operands), options)
    made = fresh(session, named(result, here()), scalar=True, layout=layout, certain=certain)
    if out is None:
        return made
    session.call(np.copyto, (out, made), {})
    return out


def _only_moves(subscripts: str) -> bool:
    """Whether every axis of the one operand is kept."""
    before, arrow, after = subscripts.replace(" ", "").partition("->")
    return bool(arrow) and set(before) == set(after)


@handles(np.reshape)
def _reshape(
    session: Session, a: Any, shape: Any, order: str = "C", *, copy: bool | None = None
) -> Any:
    shape = deep(known, shape)
    x = adopt_array(session, a)
    node = NUMPY[np.reshape].trace(read(x), shape, order=_order(x, order))
    copied = empty(node.shape, node.type.dtype, "F") if order == "F" else None
    if copy:
        return fresh(session, node, x._scalar, layout=copied)
    try:
        layout = np.reshape(x._place.layout, node.shape, order=order, copy=False)  # type: ignore
    except ValueError:
        if copy is False:
            raise
        return doubtful(x, fresh(session, node, x._scalar, layout=copied))
    return doubtful(x, _view(session, x, node, layout))


def _order(x: Tracer, order: str) -> str:
    """The element order that A or K mean for this array."""
    if order == "A":
        flags = _certain(x).flags
        return "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    return order


def _certain(x: Tracer) -> Any:
    if not x._place.storage.certain:
        raise Unsupported(
            "this needs the memory order of a result, which is not known", hint="use order='C'"
        )
    return x._place.layout


def doubtful(x: Tracer, result: Tracer) -> Tracer:
    """Whether it is a view is open where x's layout is; then neither may be written to."""
    base, own = x._place.storage, result._place.storage
    if not base.certain and not x._scalar:
        own.doubts.append(base)
        base.doubts.append(own)
    return result


@handles(np.ravel)
def _ravel(session: Session, a: Any, order: str = "C") -> Any:
    """A view of what is contiguous in this order, a copy of anything else."""
    x = adopt_array(session, a)
    if order == "K":
        flags = _certain(x).flags
        if not (flags.c_contiguous or flags.f_contiguous):
            raise Unsupported("ravel(order='K') of a strided array", hint="use order='C'")
    order = _order(x, "A" if order == "K" else order)
    flags = x._place.layout.flags
    if flags.c_contiguous if order == "C" else flags.f_contiguous:
        return _reshape(session, x, (-1,), order)
    node = NUMPY[np.reshape].trace(read(x), (-1,), order=order)
    return doubtful(x, fresh(session, node, x._scalar))


@handles(np.ndarray.flatten)
def _flatten(session: Session, x: Any, order: str = "C") -> Any:
    order = (
        "C" if order == "K" and x._place.row_major else _order(x, "A" if order == "K" else order)
    )
    return fresh(session, NUMPY[np.reshape].trace(read(x), (-1,), order=order))


def _atleast_of(function: Any) -> Any:
    def handler(session: Session, *arrays: Any) -> Any:
        results = []
        for a in arrays:
            x = adopt_array(session, a)
            layout = function(x._place.layout)
            node = NUMPY[np.reshape].trace(read(x), layout.shape)
            results.append(
                x
                if layout.shape == shape_of(x) and not x._scalar
                else _view(session, x, node, layout)
            )
        return results[0] if len(results) == 1 else tuple(results)

    return handler


for _function in (np.atleast_1d, np.atleast_2d, np.atleast_3d):
    handles(_function)(_atleast_of(_function))


def adopt_array(session: Session, value: Any) -> Tracer:
    """A tracer for anything array-like."""
    if type(value) is Tracer:
        return value
    if isinstance(value, np.ndarray):
        return adopt(session, value)
    return fresh(session, NUMPY[np.array].trace(lower(session, value)))


# ----------------------------------------------------------------------------------- indexing


def _static(session: Session, index: Any) -> Any:
    """An index with everything known in place; tracers that depend on the inputs as nodes."""

    def entry(x: Any) -> Any:
        if type(x) is not Tracer:
            return _as_index(x) if type(x) is Number else x
        if x.dtype.kind not in "biu":
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        value = session.known(read(x))
        if value is None:
            return read(x)
        return value[()] if x._scalar else value

    if isinstance(index, tuple):
        return tuple(_static(session, i) for i in index)
    if isinstance(index, list):
        if any(type(i) is Tracer for i in index):
            return _static(session, adopt_array(session, index))
        return deep(entry, index)
    if isinstance(index, slice):
        return slice(*(_bound(session, b) for b in (index.start, index.stop, index.step)))
    return entry(index)


def _as_index(x: Number) -> int:
    """A Python number as an index.  Raises NumPy's IndexError for a float."""
    if isinstance(x._value, Size):
        return known(x)
    if not hasattr(type(x._value), "__index__"):
        np.empty(0)[x._value]  # type: ignore[index]
    return operator.index(x)


def _bound(session: Session, value: Any) -> Any:
    if type(value) is Number and isinstance(value._value, Size):
        return known(value)
    return value if value is None else operator.index(value)


def _is_basic(index: tuple[Any, ...]) -> bool:
    return all(
        (isinstance(i, int | np.integer | Size | slice | EllipsisType) and not isinstance(i, bool))
        or i is None
        for i in index
    )


def _is_run_time_view(index: Any, ndim: int) -> bool:
    """Whether NumPy gives a view for this index although its whole numbers, NumPy scalars, are
    known only at run time.  (A 0-d array among them makes it a copy.)
    """
    entries = index if isinstance(index, tuple) else (index,)
    if not any(map(_is_scalar, entries)) or not _is_basic_now(index):
        return False
    return not _names_element(index, ndim)


def _is_scalar(entry: Any) -> bool:
    """Whether an entry of an index is a traced NumPy integer."""
    return type(entry) is Tracer and entry._scalar and entry.dtype.kind in "iu"


def _is_basic_now(index: Any) -> bool:
    """Whether an index is basic, traced NumPy integers among its whole numbers."""
    entries = index if isinstance(index, tuple) else (index,)
    rest = tuple(i for i in entries if not _is_scalar(i) and type(i) is not Number)
    return _is_basic(rest)


def _names_element(index: Any, ndim: int) -> bool:
    """Whether a basic index has a whole number for each axis and nothing else."""
    entries = index if isinstance(index, tuple) else (index,)
    skips = (slice, EllipsisType, type(None))
    return len(entries) == ndim and not any(type(i) in skips for i in entries)


def _run_time_view(session: Session, x: Tracer, node: Node, index: Any) -> Tracer:
    """A view at a place known at run time: its layout is that of the view at 0."""
    entries = index if isinstance(index, tuple) else (index,)
    at_zero = tuple(0 if isinstance(i, Node) else i for i in entries)
    key = at_zero if any(i is Ellipsis for i in at_zero) else (*at_zero, ...)
    base = x._place.storage
    layout = asked(x._place.layout, key)[key]
    return fresh(session, node, layout=layout, certain=base.certain, view_of=base)


def _whole(index: tuple[Any, ...], ndim: int) -> bool:
    """Whether the index names one element, which NumPy hands out as a scalar."""
    return len(index) == ndim and all(isinstance(i, int | np.integer | Size) for i in index)


def _is_run_time_mask(index: Any, shape: tuple[int, ...]) -> bool:
    """Whether the index is a mask of the first axes, computed from the inputs."""
    if not isinstance(index, Node) or index.type.dtype.kind != "b" or not index.shape:
        return False
    return index.shape == shape[: len(index.shape)]


@handles(operator.getitem)
def _getitem(session: Session, x: Tracer, index: Any) -> Any:
    run_time_view = not x._scalar and _is_run_time_view(index, len(x.shape))
    asked_for, index = index, _static(session, index)
    entries = index if isinstance(index, tuple) else (index,)
    base = read(x)
    if _is_run_time_mask(index, base.shape):
        return Selection(session, fresh(session, base), index)
    node = take_index(base, index)
    if not _is_basic(entries):
        if run_time_view:
            return _run_time_view(session, x, named(node, here()), index)
        given = asked_for if isinstance(asked_for, tuple) else (asked_for,)
        layout, certain = layout_of_item(node, x, given)
        scalar = not any(i is Ellipsis for i in entries)
        return fresh(session, named(node, here()), scalar, layout=layout, certain=certain)
    if _whole(entries, len(base.shape)):
        return fresh(session, node, scalar=True)
    if x._scalar:
        return fresh(session, node)
    whole = any(i is Ellipsis for i in entries)
    layout = asked(x._place.layout, entries)[entries if whole else (*entries, ...)]
    return _view(session, x, node, layout)


@handles(operator.setitem)
def _setitem(session: Session, x: Tracer, index: Any, value: Any) -> None:
    if x._scalar:
        kind = x.dtype.type.__name__
        raise TypeError(f"'numpy.{kind}' object does not support item assignment")
    x._place.check_writable("assignment destination is read-only")
    basic = _is_basic_now(index)
    if basic and _names_element(index, len(x.shape)):
        check_element(value, x.shape, x.dtype)
    index = _static(session, index)
    if type(value) is Selection:
        node = selected(x, value, index)
    elif basic or type(value) in (list, tuple, float, Number):
        new = converted(session, value, x.dtype)
        if basic and isinstance(value, list | tuple):
            check_depth(new, len(x._place.layout[index].shape))
        node = assign(read(x), index, new)
    else:
        node = assign(read(x), index, lower(session, value))
    x._place.write(named(node, here()))
