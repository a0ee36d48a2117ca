"""`Selection`: x[mask] for a mask that is known only at run time, so that its length is not known.

It keeps the whole array and the mask.  Elementwise arithmetic works on the whole array, sums and
means become those of NumPy's `where=`, and assigning it under the same mask (`x[x < 0] *= 2`,
`y[m] = f(x[m])`) becomes np.where.  Everything that needs the length is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.frontend.dispatch import lower
from nbcomp.frontend.location import here
from nbcomp.frontend.session import Session
from nbcomp.frontend.tracer import BINARY, COMPARISON, UNARY, Tracer, read
from nbcomp.graph.ir import Node
from nbcomp.graph.numpy_function import NUMPY
from nbcomp.graph.op import Constant
from nbcomp.record import Location

REDUCTIONS = (np.sum, np.prod, np.mean, np.any, np.all)


class Selection:
    """The elements of `whole` where `mask`, an array of its first axes, is true."""

    __slots__ = ("location", "mask", "session", "whole")

    def __init__(self, session: Session, whole: Any, mask: Node) -> None:
        self.session, self.whole, self.mask = session, whole, mask
        self.location = here()

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return np.ndarray

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self.whole.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return 1 + len(self.whole.shape) - len(self.mask.shape)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        if method != "__call__" or ufunc.signature is not None or kwargs.get("out"):
            raise refusal(f"np.{ufunc.__name__} of x[mask]")
        return self._apply(ufunc, args, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function not in REDUCTIONS or args[0] is not self:
            raise refusal(f"np.{function.__name__} of x[mask]")
        return self._reduce(function, *args[1:], **kwargs)

    def _apply(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Selection:
        """An elementwise function of selections under this mask and of what broadcasts along it."""
        wholes = tuple(self._whole_of(a) for a in args)
        return Selection(self.session, self.session.call(function, wholes, kwargs), self.mask)

    def _whole_of(self, value: Any) -> Any:
        if type(value) is Selection:
            if not equal(self.mask, value.mask):
                raise refusal("arithmetic between x[mask] and y[other_mask]")
            return value.whole
        if np.ndim(value) >= self.ndim:
            raise refusal("arithmetic between x[mask] and an array of the same number of axes")
        return value

    def _reduce(self, function: Any, axis: Any = None, **kwargs: Any) -> Any:
        if self.ndim != 1 or axis not in (None, 0, -1) or "where" in kwargs:
            raise refusal(f"np.{function.__name__} of x[mask] along an axis")
        mask = self.session.tracer(self.mask)
        if function is np.mean and not kwargs:
            return self._mean(mask)
        return self.session.call(function, (self.whole,), {**kwargs, "where": mask})

    def _mean(self, mask: Any) -> Any:
        """The mean as NumPy computes it: the sum in a wide enough dtype, divided by the number."""
        dtype = self.whole.dtype
        wide = {"f": max(dtype, np.dtype(np.float32))}.get(dtype.kind, np.dtype(np.float64))
        options = {"dtype": wide, "where": mask}
        total = self.session.call(np.sum, (self.whole,), options)
        count = self.session.call(np.count_nonzero, (mask,), {})
        return (total / count).astype(dtype if dtype.kind == "f" else wide)

    def in_place(self, ufunc: Any, other: Any) -> Selection:
        """`x[mask] op= other`, with NumPy's rules for the dtype of what is in place."""
        whole = self.session.call(np.copy, (self.whole,), {})
        self.session.call(ufunc, (whole, self._whole_of(other)), {"out": (whole,)})
        return Selection(self.session, whole, self.mask)

    def astype(self, *args: Any, **kwargs: Any) -> Selection:
        """In another dtype."""
        return Selection(self.session, self.whole.astype(*args, **kwargs), self.mask)

    def copy(self) -> Selection:
        """Itself: what is selected is a copy already."""
        return self

    def __getattr__(self, name: str) -> Any:
        functions = {f.__name__: f for f in REDUCTIONS}
        if name in functions:
            return lambda *args, **kwargs: self._reduce(functions[name], *args, **kwargs)
        raise refusal(f"x[mask].{name}")

    def __len__(self) -> int:
        raise refusal("len(x[mask])")

    def __iter__(self) -> Any:
        raise refusal("a loop over x[mask]")

    def __getitem__(self, index: Any) -> Any:
        raise refusal("an index into x[mask]")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise refusal("assignment into x[mask][...]")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise refusal("the elements of x[mask]")


def refusal(what: str, location: Location | None = None) -> Unsupported:
    """The error for what needs to know how many elements a mask selects; where the program is now
    if no other place is given."""
    return Unsupported(
        f"{what} is not compiled: how many elements the mask selects is known only at run time",
        location or here(),
        "keep the shape and choose: np.where(mask, x, 0); np.count_nonzero(mask) is their number",
    )


def selected(target: Tracer, value: Selection, mask: Any) -> Node:
    """The value of the target after `target[mask] = value`."""
    if not isinstance(mask, Node) or not equal(mask, value.mask):
        raise refusal("assignment of x[mask] under another mask")
    whole = read(value.whole)
    if whole.shape != target.shape:
        raise refusal("assignment of x[mask] to an array of another shape")
    extra = len(whole.shape) - len(mask.shape)
    shaped = NUMPY[np.reshape].trace(mask, mask.shape + (1,) * extra)
    cast: Any = NUMPY[np.astype].trace(whole, target.dtype)
    node: Node = NUMPY[np.where].trace(shaped, cast, lower(target._session, target))
    return node


def equal(a: Node, b: Node) -> bool:
    """Whether two nodes are the same computation."""
    pairs, seen = [(a, b)], set()
    while pairs:
        x, y = pairs.pop()
        if x is y or (x, y) in seen:
            continue
        seen.add((x, y))
        if len(x.inputs) != len(y.inputs) or x.type != y.type or not _same_op(x, y):
            return False
        pairs.extend(zip(x.inputs, y.inputs, strict=True))
    return True


def _same_op(x: Node, y: Node) -> bool:
    if isinstance(x.op, Constant) and isinstance(y.op, Constant):
        return bool(np.array_equal(x.op.value, y.op.value, equal_nan=x.type.dtype.kind == "f"))
    return bool(x.inputs) and type(x.op) is type(y.op) and x.op == y.op


def _operator(name: str, ufunc: Any) -> None:
    def forward(self: Selection, other: Any) -> Any:
        return self._apply(ufunc, (self, other), {})

    def reflected(self: Selection, other: Any) -> Any:
        return self._apply(ufunc, (other, self), {})

    setattr(Selection, f"__{name}__", forward)
    if name in BINARY:
        setattr(Selection, f"__r{name}__", reflected)
        setattr(Selection, f"__i{name}__", lambda self, other: self.in_place(ufunc, other))


def _unary(name: str, ufunc: Any) -> None:
    setattr(Selection, f"__{name}__", lambda self: self._apply(ufunc, (self,), {}))


for _name, _ufunc in (BINARY | COMPARISON).items():
    if _ufunc is not np.matmul:
        _operator(_name, _ufunc)
for _name, _ufunc in UNARY.items():
    _unary(_name, _ufunc)
