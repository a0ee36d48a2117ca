"""Functions and methods that write to arrays, copy them, or make new ones.

Writing goes through `Place.write`, so that every view of the memory sees it.  Knows which
functions of NumPy write, and which arrays they make.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.frontend.converted import check_members, converted, members
from nbcomp.frontend.dispatch import (
    adopt,
    constants,
    deep,
    fresh,
    handles,
    in_range,
    lower,
    named,
    unknown,
)
from nbcomp.frontend.idioms import refusal
from nbcomp.frontend.location import here
from nbcomp.frontend.number import Number, known
from nbcomp.frontend.python_numbers import item
from nbcomp.frontend.session import Session
from nbcomp.frontend.tracer import Tracer, holds_traced, read, shape_of
from nbcomp.frontend.views import adopt_array, doubtful
from nbcomp.graph.ir import Node
from nbcomp.graph.numpy_function import NUMPY
from nbcomp.ops.index import assign
from nbcomp.ops.operand import cast, supported
from nbcomp.shapes import empty

# Functions that write to their first argument, and what they say of one that is read-only.
WRITERS = {
    np.copyto: "assignment destination is read-only",
    np.putmask: "putmask: output array is read-only",
    np.place: "assignment destination is read-only",
    np.put: "put: output array is read-only",
    np.put_along_axis: "assignment destination is read-only",
    np.fill_diagonal: "underlying array is read-only",
}


def write_with(session: Session, function: Any, complaint: str, *args: Any, **kwargs: Any) -> None:
    """Call a function that writes to its first argument: its operator gives the new value."""
    if function not in NUMPY:
        raise unknown(function)
    target = adopt(session, args[0])
    target._place.check_writable(complaint)
    rest = [lower(session, a) for a in args[1:]]
    options = {k: lower(session, v) for k, v in kwargs.items()}
    value = NUMPY[function].trace(read(target), *rest, **options)
    target._place.write(named(value, here()), complaint)


def _writer(function: Any, complaint: str, session: Session, *args: Any, **kwargs: Any) -> None:
    write_with(session, function, complaint, *args, **kwargs)


for _function, _complaint in WRITERS.items():
    handles(_function)(partial(_writer, _function, _complaint))


@handles(np.ndarray.fill)
def _fill(session: Session, x: Tracer, value: Any) -> None:
    x._place.check_writable("assignment destination is read-only")
    if isinstance(value, list | tuple):
        raise ValueError("setting an array element with a sequence.")
    x._place.write(assign(read(x), ..., converted(session, value, x.dtype)))


@handles(np.ndarray.sort)
def _sort(
    session: Session, x: Tracer, axis: int = -1, kind: Any = None, order: Any = None, **rest: Any
) -> None:
    x._place.check_writable("sort array is read-only")
    x._place.write(NUMPY[np.sort].trace(read(x), known(axis), kind, order, **rest))


@handles(np.ndarray.partition)
def _partition(session: Session, x: Tracer, kth: Any, axis: int = -1, **rest: Any) -> None:
    x._place.check_writable("partition array is read-only")
    x._place.write(NUMPY[np.partition].trace(read(x), known(kth), known(axis), **rest))


@handles(np.ufunc.at)
def _at(session: Session, function: Any, *args: Any) -> None:
    write_with(session, function, "assignment destination is read-only", *args)


@handles(np.ndarray.put)
def _put(session: Session, x: Tracer, indices: Any, values: Any, mode: str = "raise") -> None:
    write_with(session, np.put, WRITERS[np.put], x, indices, values, mode)


# ------------------------------------------------------------------------------------- copies


@handles(np.copy)
def _copy(session: Session, a: Any, order: str = "K", subok: bool = False) -> Any:
    x = adopt_array(session, a)
    return fresh_like(session, x, read(x), order)


def _copied(session: Session, x: Tracer, node: Node, order: str) -> Tracer:
    """A new array with this value, laid out like x ("K", "A") or as asked for."""
    place, scalar = x._place, x._scalar
    if order == "C" or place.row_major or len(node.shape) < 2:
        return (
            fresh(session, node, scalar) if order != "F" else _laid_out(session, node, "F", scalar)
        )
    if order == "F":
        return _laid_out(session, node, "F", scalar)
    layout = np.empty_like(place.layout, node.type.dtype, order=order)  # type: ignore[call-overload]
    return fresh(session, node, scalar, layout=layout, certain=place.storage.certain)


def _laid_out(session: Session, node: Node, order: Any, scalar: bool = False) -> Tracer:
    layout = empty(node.shape, node.type.dtype, order)
    return fresh(session, node, scalar, layout=layout)


@handles(np.nan_to_num)
def _nan_to_num(session: Session, x: Any, copy: bool = True, **options: Any) -> Any:
    target = adopt_array(session, x)
    value = NUMPY[np.nan_to_num].trace(read(target), **deep(known, options))
    if copy:
        result = _copied(session, target, named(value, here()), "K")
        result._scalar = not result.shape
        return result
    target._place.write(value)
    return target


@handles(np.ndarray.copy)
def _copy_method(session: Session, x: Tracer, order: str = "C") -> Any:
    return _copied(session, x, read(x), order)


@handles(np.ndarray.astype, *([np.astype] if hasattr(np, "astype") else []))
def _astype(
    session: Session,
    x: Any,
    dtype: Any,
    order: str = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool = True,
    device: Any = None,
) -> Any:
    if type(x) is not Tracer:
        return constants(session, x.astype(dtype, order, casting, subok, copy))
    target = np.dtype(dtype)
    if not copy and target == x.dtype and order in ("K", "A"):
        return x
    node = read(x)
    if casting != "unsafe":
        np.empty(0, x.dtype).astype(target, casting=casting)  # type: ignore[call-overload]
    result = cast(node, supported(target, "astype"))
    return _copied(session, x, named(result, here()) if result is not node else node, order)


@handles(np.ndarray.clip)
def _clip_method(
    session: Session, x: Tracer, min: Any = None, max: Any = None, out: Any = None, **options: Any
) -> Any:
    """`x.clip(0)`: unlike those of np.clip, both bounds may be left out."""
    return session.call(np.clip, (x, min, max), {"out": out, **options})


@handles(np.ndarray.view)
def _view_method(session: Session, x: Tracer, dtype: Any = None, type: Any = None) -> Any:
    if type is not None or (dtype is not None and np.dtype(dtype) != x.dtype):
        if type is None and not x._scalar:
            x._place.layout.view(dtype)  # NumPy's error, as for a last axis in pieces
        raise Unsupported("x.view of another dtype is not compiled: it reads the bits anew")
    return x[...] if not x._scalar else x


# ---------------------------------------------------------------------------------- creation

CREATION = [
    np.zeros, np.ones, np.empty, np.full, np.eye, np.identity, np.tri, np.arange, np.fromfunction,
    np.indices, np.bartlett, np.blackman, np.hamming, np.hanning, np.kaiser, np.diag_indices,
    np.tril_indices, np.triu_indices, np.mask_indices, np.fromiter, np.frombuffer,
]  # fmt: skip
CONVERSION = [
    np.array,
    np.asarray,
    np.asanyarray,
    np.ascontiguousarray,
    np.asfortranarray,
    np.require,
]


def _creator(function: Any) -> Any:
    def handler(session: Session, *args: Any, **kwargs: Any) -> Any:
        if holds_traced(args) or holds_traced(kwargs) or function in OPERATORS:
            if function is not np.full:
                args, kwargs = deep(known, args), deep(known, kwargs)
            else:
                dtype = kwargs.get("dtype", args[2] if len(args) > 2 else None)
                args = (deep(known, args[0]), *in_range(session, args[1:2], dtype), *args[2:])
            args = tuple(lower(session, a) for a in args)
            if function in NUMPY and kwargs.get("order", "C") == "C":
                kwargs = {k: lower(session, v) for k, v in kwargs.items()}
                return fresh(session, NUMPY[function].trace(*args, **kwargs))
        return constants(session, function(*args, **kwargs))

    return handler


OPERATORS = [np.zeros, np.ones, np.empty, np.full, np.eye, np.identity, np.tri, np.arange]
for _function in CREATION:
    handles(_function)(_creator(_function))


@handles(np.array)
def _array(
    session: Session,
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: Any = None,
) -> Any:
    if type(object) is Tracer:
        x = object
        wanted = x.dtype if dtype is None else np.dtype(dtype)
        same = not copy and wanted == x.dtype and not x._scalar
        if same and _order_holds(x, order):
            result = x
        elif same and not x._place.storage.certain:  # itself or a copy, as its layout happens to be
            result = doubtful(x, fresh_like(session, x, read(x), order))
        elif copy is False:
            np.array(np.float64(0), np.int64, copy=False)  # raises as NumPy does
            raise AssertionError
        else:
            node = cast(read(x), supported(wanted))
            result = fresh_like(session, x, node, order)
    elif type(object) is Number or holds_traced(object) or _holds_array(object):
        check_members(session, object)
        if dtype is not None and isinstance(object, list | tuple):
            members(session, object, supported(dtype))
        node = NUMPY[np.array].trace(lower(session, _adopted(session, object)), dtype)
        result = fresh(session, named(node, here()))
    else:
        return constants(session, np.array(object, dtype, copy=copy, order=order, ndmin=ndmin))  # type: ignore
    missing = ndmin - result.ndim
    return result if missing <= 0 else result[(None,) * missing + (...,)]


def fresh_like(session: Session, x: Tracer, node: Node, order: str) -> Tracer:
    """A new array (never a scalar) laid out like x, or as asked for."""
    copied = _copied(session, x, node, order)
    copied._scalar = False
    return copied


def _order_holds(x: Tracer, order: str | None) -> bool:
    if order in ("K", "A", None):
        return True
    if not x._place.storage.certain:
        return False
    flags = x._place.layout.flags
    return bool(flags.c_contiguous if order == "C" else flags.f_contiguous)


def _holds_array(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_holds_array, value))
    return isinstance(value, np.ndarray)


def _adopted(session: Session, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_adopted(session, v) for v in value]
    return adopt(session, value) if isinstance(value, np.ndarray) else value


@handles(np.asarray, np.asanyarray)
def _asarray(
    session: Session, a: Any, dtype: Any = None, order: Any = "K", *, copy: Any = None, **rest: Any
) -> Any:
    array = adopt(session, a) if isinstance(a, np.ndarray) else a
    return _array(session, array, dtype, copy=copy, order=order or "K")


@handles(np.ascontiguousarray)
def _ascontiguousarray(session: Session, a: Any, dtype: Any = None, **rest: Any) -> Any:
    return _array(session, a, dtype, copy=None, order="C", ndmin=1)


@handles(np.asfortranarray)
def _asfortranarray(session: Session, a: Any, dtype: Any = None, **rest: Any) -> Any:
    return _array(session, a, dtype, copy=None, order="F", ndmin=1)


# ------------------------------------------------------------------------- static questions


@handles(np.shape)
def _shape(session: Session, a: Any) -> tuple[int, ...]:
    return (a if type(a) is Tracer else adopt_array(session, a)).shape


@handles(np.ndim)
def _ndim(session: Session, a: Any) -> int:
    return len(_shape(session, a))


@handles(np.size)
def _size(session: Session, a: Any, axis: Any = None) -> int:
    shape = _shape(session, a)
    return math.prod(shape) if axis is None else shape[known(axis)]


@handles(np.real)
def _real(session: Session, val: Any) -> Any:
    return adopt_array(session, val)


@handles(np.imag)
def _imag(session: Session, val: Any) -> Any:
    x = adopt_array(session, val)
    layout = np.empty_like(x._place.layout)
    layout.flags.writeable = False
    zeros = NUMPY[np.zeros_like].trace(read(x))
    return fresh(session, zeros, x._scalar, layout=layout, certain=x._place.storage.certain)


@handles(np.iscomplexobj)
def _iscomplexobj(session: Session, x: Any) -> bool:
    return False


@handles(np.isrealobj)
def _isrealobj(session: Session, x: Any) -> bool:
    return True


@handles(np.result_type)
def _result_type(session: Session, *args: Any) -> Any:
    return np.result_type(*(a.dtype if type(a) is Tracer else known(a) for a in args))


@handles(np.can_cast)
def _can_cast(session: Session, from_: Any, to: Any, casting: Any = "safe") -> bool:
    return np.can_cast(from_.dtype if type(from_) is Tracer else from_, to, casting)


@handles(np.shares_memory, np.may_share_memory)
def _shares_memory(session: Session, a: Any, b: Any, max_work: Any = None) -> bool:
    x, y = adopt_array(session, a), adopt_array(session, b)
    if x._place.storage is not y._place.storage:
        storages = (x._place.storage, y._place.storage)
        if any(s.doubts or s.choices or s.view_of is not None for s in storages):
            raise Unsupported("whether these share memory is not known when compiling")
        return False
    return np.shares_memory(x._place.layout, y._place.layout)


def _values(purpose: str) -> Any:
    def handler(session: Session, x: Tracer, *args: Any) -> Any:
        node = read(x)
        value = session.known(node)
        if value is None:
            value = session.frozen(node, refusal(purpose, here(), str(x._type)))
        return getattr(value, purpose)(*args)

    return handler


@handles(np.ndarray.item)
def _item(session: Session, x: Tracer, *args: Any) -> Any:
    one = item(x) if not args and math.prod(shape_of(x)) == 1 else None
    return _values("item")(session, x, *args) if one is None else one


for _name in ("tolist", "tobytes", "tofile", "dump", "dumps"):
    handles(getattr(np.ndarray, _name))(_values(_name))
