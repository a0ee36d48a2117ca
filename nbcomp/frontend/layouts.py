"""How NumPy lays out in memory what a function makes of arrays: by asking it.

The order of a result's axes depends on how the operands lie and on nothing else.  So the function
is called on arrays of the same order that have at most three elements along each axis.  Knows
tracers and shapes; it must not know what becomes of a layout.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from nbcomp import shapes
from nbcomp.frontend.function_kinds import BY_VALUE, ODD_LAYOUT, PRODUCTS
from nbcomp.frontend.tracer import Tracer
from nbcomp.graph.ir import Node
from nbcomp.graph.numpy_function import NUMPY
from nbcomp.sizes import Size
from nbcomp.types import DType

FEW = 3  # elements along an axis of an array that is asked about


def layout_of(
    node: Node, function: Any, args: Any, kwargs: Any, place: int | None = None
) -> tuple[Any, bool]:
    """An array laid out as NumPy lays out this result of a call (None: row-major), and whether
    that is certain.  place: which of several results it is."""
    operands = [a for a in arrays_in((args, kwargs)) if a.ndim]
    if len(node.shape) < 2:
        return None, True
    if all(map(is_row_major, operands)) and function not in ODD_LAYOUT:
        return None, True
    if function is np.select or (function in PRODUCTS and len(node.shape) == 2):
        return None, True
    known = all(a._place.storage.certain for a in operands if type(a) is Tracer)
    if (isinstance(function, np.ufunc) and function.signature is None) or function is np.where:
        layouts = [a._place.layout if type(a) is Tracer else a for a in operands]
        return shapes.elementwise(layouts, node.shape, node.type.dtype), known
    if not known or function in BY_VALUE or not _is_numpys(function):
        return None, False
    return _laid_out(node, lambda: function(*_small(args), **_small(kwargs)), place)


def layout_of_item(node: Node, x: Tracer, index: tuple[Any, ...]) -> tuple[Any, bool]:
    """The same for `x[index]` with arrays in the index: how far apart they stand matters, too."""
    if len(node.shape) < 2:
        return None, True
    if not all(a._place.storage.certain for a in (x, *arrays_in(index)) if type(a) is Tracer):
        return None, False
    entries, lengths = _small_index(index, x._place.layout.shape)
    if entries is None:
        return None, False
    whole = _few(x._place.layout, x.dtype, lengths)
    return _laid_out(node, lambda: whole[entries], None)


def is_row_major(array: Any) -> bool:
    """Whether an array lies in C order, without gaps."""
    return array._place.row_major if type(array) is Tracer else bool(array.flags.c_contiguous)


def arrays_in(value: Any) -> Iterator[Any]:
    """The arrays in nested lists, tuples and dicts."""
    if type(value) is Tracer or isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, list | tuple):
        for v in value:
            yield from arrays_in(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from arrays_in(v)


def _is_numpys(function: Any) -> bool:
    """Whether this is a function of NumPy, not of layers: those have no layout to keep."""
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None) or ""
    return function in NUMPY and (isinstance(owner, np.ufunc) or module.startswith("numpy"))


def _laid_out(node: Node, ask: Callable[[], Any], place: int | None) -> tuple[Any, bool]:
    """An array in the order of what NumPy gives for few elements, and whether that tells."""
    order = _order(node, ask, place)
    if order is None:
        return None, False
    return shapes.in_order(order, node.shape, node.type.dtype), True


def _order(node: Node, ask: Callable[[], Any], place: int | None) -> list[int] | None:
    """The axes of the result, outermost in memory first; None if NumPy does not tell."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = ask()
            found = answer if place is None else answer[place]
    except Exception:  # the arguments fit the lengths there are only
        return None
    if not isinstance(found, np.ndarray) or found.dtype != node.type.dtype:
        return None
    if [n == 1 for n in found.shape] != [n == 1 for n in node.shape] or not found.size:
        return None
    order = sorted(range(found.ndim), key=lambda k: (found.shape[k] > 1, -found.strides[k]))
    if not found.transpose(order).flags.c_contiguous:
        return None
    return order


def _small(value: Any) -> Any:
    """The argument, with few elements in every array."""
    if type(value) is Tracer:
        return _few(value._place.layout, value.dtype) if value.ndim else value.dtype.type(1)
    if isinstance(value, np.ndarray):
        return _few(value, value.dtype) if value.ndim else value
    if isinstance(value, list | tuple):
        return type(value)(map(_small, value))
    if isinstance(value, dict):
        return {k: _small(v) for k, v in value.items()}
    if isinstance(value, Size):
        raise TypeError
    return value


def _small_index(index: tuple[Any, ...], shape: tuple[Any, ...]) -> tuple[Any, Any]:
    """The index for an array of few elements, all places 0, and the lengths of that array."""
    masks = [np.asarray(e) if isinstance(e, list) else e for e in index]
    used = sum(_axes_of(e) for e in masks)
    entries: list[Any] = []
    lengths: list[int] = []
    for entry in masks:
        axes = len(shape) - used if entry is Ellipsis else _axes_of(entry)
        own = shape[len(lengths) : len(lengths) + axes]
        if any(isinstance(n, Size) for n in own) or len(own) < axes:
            return None, ()
        if entry is Ellipsis or entry is None:
            entries.append(entry)
            lengths += [min(n, FEW) for n in own]
        elif isinstance(entry, slice):
            count = len(range(*entry.indices(own[0])))
            entries.append(slice(None, None, -1 if (entry.step or 1) < 0 else 1))
            lengths.append(min(count, FEW))
        elif getattr(entry, "dtype", None) == np.bool_ and np.ndim(entry):
            if type(entry) is Tracer:
                return None, ()
            places = np.zeros(min(int(np.count_nonzero(entry)), FEW), int)
            entries += [places] * axes
            lengths += [FEW] * axes
        else:
            entries.append(0 * _small(entry))
            lengths.append(FEW)
    rest = shape[len(lengths) :]
    if any(isinstance(n, Size) for n in rest):
        return None, ()
    return tuple(entries), [*lengths, *(min(n, FEW) for n in rest)]


def _axes_of(entry: Any) -> int:
    """How many axes of an array an entry of an index takes."""
    if entry is None or entry is Ellipsis:
        return 0
    mask = getattr(entry, "dtype", None) == np.bool_
    return int(np.ndim(entry)) if mask else 1


def _few(array: Any, dtype: DType, asked: Sequence[int] = ()) -> Any:
    """Ones, laid out as the array is: its axes in this order in memory, repeated and turned."""
    order = sorted(range(array.ndim), key=lambda k: -abs(array.strides[k]))
    lengths = asked or [_least(n) for n in array.shape]
    repeated = [s == 0 for s in array.strides]
    base = np.ones([1 if repeated[k] else lengths[k] for k in order], dtype)
    turned = base.transpose(np.argsort(order)) if order else base
    turned = turned[tuple(slice(None, None, -1 if s < 0 else 1) for s in array.strides)]
    return np.broadcast_to(turned, lengths)


def _least(n: int) -> int:
    """So many elements instead of n."""
    if isinstance(n, Size):
        return FEW if n > 1 else 1
    return min(n, FEW)
