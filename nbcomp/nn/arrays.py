"""The arrays of models: `Parameter`, and `Tensor`, an array with the methods of layers.

A parameter stands for an array that is learned: it takes part in NumPy code as that array does, and
compiled code reads it at every call, so that a new value is seen.  Inside a module's `forward`
arrays have the methods of `nbcomp.nn.functional` as well (`x.relu()`, `x.softmax(-1)`); outside,
arrays are NumPy's.  Knows arrays, not modules.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextvars import Token
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from nbcomp.frontend.tracer import EXTRA_METHODS, ExtraMethods, give

METHODS = ExtraMethods()  # of arrays inside `forward`, filled by `functional`


class Tensor(np.ndarray[Any, Any]):
    """A NumPy array inside a module's `forward`: with the functions of layers as methods."""

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else super().__array_wrap__(array, context, return_scalar)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return as_tensors(super().__array_function__(function, types, args, kwargs))

    @staticmethod
    def __nbcomp_call__(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """A compiled function, which works on plain arrays, called on tensors."""
        return as_tensors(function(as_arrays(args), as_arrays(kwargs)))

    @staticmethod
    def __nbcomp_part__(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """A compiled part of a `forward`, called on its variables: what is a list stays that."""
        result = function(*(a.view(np.ndarray) if type(a) is Tensor else a for a in args))
        return result and tuple(map(_as_tensor, result))

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(f"a Tensor, as a NumPy array, has no attribute {name!r}")
        return functools.partial(METHODS[name], self)


METHODS.kind = Tensor
REDUCTIONS = ("sum", "mean", "max", "min", "prod", "var", "std", "any", "all")


def reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction of NumPy's that takes PyTorch's names for its arguments too: `dim` for `axis`,
    `keepdim` for `keepdims`.

    What it computes is NumPy's: `max` and `min` give the values alone, `var` and `std` divide by
    the count unless `unbiased` or `correction` says otherwise.  Raises TypeError where an argument
    is given by both names.
    """

    def reduced(x: Any, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], bool):  # no dtype, which is NumPy's next argument
            kwargs["keepdim"], args = args[0], args[1:]
        if kwargs.pop("unbiased", False):
            kwargs["ddof"] = 1
        if "correction" in kwargs:
            kwargs["ddof"] = kwargs.pop("correction")
        for torch, numpy in (("dim", "axis"), ("keepdim", "keepdims")):
            if torch in kwargs:
                if numpy in kwargs or (numpy == "axis" and axis is not None):
                    raise TypeError(f"{function.__name__}() got both {torch} and {numpy}")
                kwargs[numpy] = kwargs.pop(torch)
        axis = kwargs.pop("axis", axis)
        return function(x, tuple(axis) if isinstance(axis, list) else axis, *args, **kwargs)

    reduced.__name__ = function.__name__
    reduced.__doc__ = f"np.{function.__name__}, with PyTorch's names for its arguments too."
    return reduced


def is_inside() -> bool:
    """Whether the program is in a module's `forward` now."""
    return EXTRA_METHODS.get() is not None


def enter() -> Token[Any]:
    """From here on arrays have the methods of layers, until `leave`."""
    return EXTRA_METHODS.set(METHODS)


def leave(token: Token[Any]) -> None:
    """Arrays are again what they were before `enter`."""
    EXTRA_METHODS.reset(token)


def as_tensors(value: Any) -> Any:
    """NumPy arrays, also in tuples, lists and dicts, as `Tensor`s over the same memory; those of
    a program that is captured, as what a model is given."""
    return _mapped(value, _as_tensor)


def _as_tensor(leaf: Any) -> Any:
    give(leaf)
    return leaf.view(Tensor) if type(leaf) is np.ndarray else leaf


def as_arrays(value: Any) -> Any:
    """Tensors, also in tuples, lists and dicts, as plain NumPy arrays over the same memory."""
    return _mapped(value, lambda leaf: leaf.view(np.ndarray) if type(leaf) is Tensor else leaf)


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """What changes nothing gives the very same object."""
    if type(value) in (tuple, list):
        parts = [_mapped(v, change) for v in value]
        same = all(a is b for a, b in zip(parts, value, strict=True))
        return value if same else type(value)(parts)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(v, change) for v in value))
    if type(value) is dict:
        entries = {k: _mapped(v, change) for k, v in value.items()}
        return value if all(entries[k] is value[k] for k in value) else entries
    return change(value)


DESCRIBING = ("shape", "dtype", "ndim", "size", "nbytes", "itemsize", "strides")


class Parameter(NDArrayOperatorsMixin):
    """An array that a module owns and learning changes; in NumPy code it is its array.

    data: the array itself.  Compiled code reads it at every call: it may be written to or replaced
    by one of another content, and costs a compilation only when its shape or dtype changes.

    What compiled code makes of the array once, such as weights in another order, is in
    `__nbcomp_kept__`, which is emptied whenever the array is written to or handed out: who has it
    may write to it.
    """

    __slots__ = ("__nbcomp_kept__", "__weakref__", "_data", "requires_grad")
    __nbcomp_array__ = "_data"  # where the compiler finds the array
    __hash__ = object.__hash__

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        self.__nbcomp_kept__: dict[Any, Any] = {}
        self.data = data
        self.requires_grad = requires_grad

    def __reduce__(self) -> Any:
        return Parameter, (self._data, self.requires_grad)

    def _out(self) -> np.ndarray[Any, Any]:
        """The array, for somebody who may write to it."""
        if self.__nbcomp_kept__:
            self.__nbcomp_kept__.clear()
        return self._data

    @property
    def data(self) -> np.ndarray[Any, Any]:
        """The array."""
        return self._out()

    @data.setter
    def data(self, value: Any) -> None:
        array = value._data if isinstance(value, Parameter) else np.asarray(value)
        if array.dtype.kind not in "biufc":
            raise TypeError(f"a parameter is an array of numbers, not {value!r}")
        if self.__nbcomp_kept__:  # None where compiled code writes to it
            self.__nbcomp_kept__ = {}
        self._data: np.ndarray[Any, Any] = array

    def _seen(self) -> np.ndarray[Any, Any]:
        """The array as the program sees it."""
        return self._out().view(Tensor) if is_inside() else self._out()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self._out(), dtype, copy=copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.get("out", ())
        if out:
            kwargs["out"] = tuple(o._out() if isinstance(o, Parameter) else o for o in out)
        result = getattr(ufunc, method)(*map(_array_of, inputs), **kwargs)
        return out[0] if len(out) == 1 else result

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return function(*map(_array_of, args), **{k: _array_of(v) for k, v in kwargs.items()})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_data":
            raise AttributeError(name)
        if name in DESCRIBING:
            return getattr(self._data, name)
        if name in METHODS:
            return getattr(self._out().view(Tensor), name)
        return getattr(self._seen(), name)

    def __getitem__(self, index: Any) -> Any:
        return self._seen()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._out()[index] = _array_of(value)

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._seen())

    def __contains__(self, value: Any) -> bool:
        return value in self._data

    def __bool__(self) -> bool:
        return bool(self._data)

    def __int__(self) -> int:
        return int(self._data)

    def __float__(self) -> float:
        return float(self._data)

    def __format__(self, spec: str) -> str:
        return format(self._data, spec)

    def __repr__(self) -> str:
        return f"Parameter containing:\n{self._data!r}"


def _array_of(value: Any) -> Any:
    """A parameter's array, also in lists and tuples."""
    if isinstance(value, Parameter):
        return value._seen()
    if type(value) in (list, tuple) and any(isinstance(v, Parameter) for v in value):
        return type(value)(map(_array_of, value))
    return value
