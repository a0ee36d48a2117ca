"""`Shaped`: an array of open sizes, without elements, that NumPy's views can be taken of.

What NumPy answers about a shape depends on the numbers in it.  An array with a `Size` in its shape
or strides is stood in for by one of these: functions that only move axes ask NumPy with lengths
that tell the axes apart, reshaping, slicing and broadcasting are done here, by NumPy's own rules,
and anything else fixes the sizes and asks NumPy.  Knows sizes and NumPy; not nodes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nbcomp import sizes
from nbcomp.types import DType, contiguous_strides

Shape = tuple[Any, ...]


@dataclass(frozen=True)
class Flags:
    """The memory flags that are asked for."""

    c_contiguous: bool
    f_contiguous: bool
    writeable: bool
    aligned: bool = True

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name.lower())


@dataclass(frozen=True, eq=False)
class Shaped:
    """dtype, shape and strides (bytes) of an array, some of them open."""

    dtype: DType
    shape: Shape
    strides: Shape
    writeable: bool = True
    memory: object = field(default_factory=object)  # the same for views of one array

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Any:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def flags(self) -> Flags:
        """As NumPy sets them."""
        back = tuple(reversed(self.shape)), tuple(reversed(self.strides))
        return Flags(
            _contiguous(self.shape, self.strides, self.itemsize),
            _contiguous(*back, self.itemsize),
            self.writeable,
        )

    def fixed(self) -> Any:
        """The array itself, its sizes fixed."""
        return _array(self, *(tuple(map(operator.index, ns)) for ns in (self.shape, self.strides)))

    def seen(self) -> Any:
        """An array of the sizes seen; what is asked of it must not depend on them."""
        return _array(self, *(tuple(map(sizes.hint, ns)) for ns in (self.shape, self.strides)))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.fixed()

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*map(_fixed, args), **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        own = FUNCTIONS.get(function)
        if own is not None and args and isinstance(args[0], Shaped):
            return own(*args, **kwargs)
        return function(*map(_fixed, args), **{k: _fixed(v) for k, v in kwargs.items()})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.fixed(), name)

    def stepped(self, step: Shape, size: Shape) -> Any:
        """A view of so many elements along each axis, so far apart."""
        return made(self, size, [s * by for s, by in zip(self.strides, step, strict=True)])

    def __getitem__(self, key: Any) -> Any:
        entries = key if isinstance(key, tuple) else (key,)
        if not all(i is None or i is Ellipsis or _is_basic(i) for i in entries):
            return self.fixed()[key]
        used = sum(i is not None and i is not Ellipsis for i in entries)
        if used > self.ndim or sum(i is Ellipsis for i in entries) > 1:
            return self.fixed()[key]  # raises
        rest = [slice(None)] * (self.ndim - used)
        at = next((k for k, i in enumerate(entries) if i is Ellipsis), len(entries))
        shape: list[Any] = []
        strides: list[Any] = []
        axis = 0
        for entry in (*entries[:at], *rest, *entries[at + 1 :]):
            if entry is None:
                shape.append(1)
                strides.append(0)
                continue
            n, step = self.shape[axis], self.strides[axis]
            if isinstance(entry, slice):
                _, by, count = sizes.cut(entry, n)
                shape.append(count)
                strides.append(step * by)
            elif not -n <= entry < n:
                raise IndexError(
                    f"index {entry} is out of bounds for axis {axis} with size {sizes.hint(n)}"
                )
            axis += 1
        return made(self, shape, strides)


def _array(of: Shaped, shape: Shape, strides: Shape) -> Any:
    found: Any = np.lib.stride_tricks.as_strided(np.empty(1, of.dtype), shape, strides)
    if 0 not in shape and strides == tuple(s * of.itemsize for s in contiguous_strides(shape)):
        found = np.empty(shape, of.dtype)
    if not of.writeable:
        found.flags.writeable = False
    return found


def _fixed(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_fixed, value))
    return value.fixed() if isinstance(value, Shaped) else value


def _is_basic(entry: Any) -> bool:
    if isinstance(entry, slice):
        return True
    return isinstance(entry, int | np.integer | sizes.Size) and not isinstance(entry, bool)


def _contiguous(shape: Shape, strides: Shape, itemsize: int) -> bool:
    """Whether the last axis lies closest, without gaps (NumPy's relaxed strides)."""
    if any(n == 0 for n in shape):
        return True
    expected: Any = itemsize
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1:
            if stride != expected:
                return False
            expected = expected * n
    return True


def empty(shape: Shape, dtype: DType, order: str = "C") -> Any:
    """A new array, or what stands for one."""
    if not sizes.is_open(shape):
        return np.empty(shape, dtype, order)  # type: ignore[call-overload]
    strides = contiguous_strides(shape)
    if order == "F":
        strides = contiguous_strides(shape[::-1])[::-1]
    return Shaped(dtype, shape, tuple(s * dtype.itemsize for s in strides))


def asked(array: Any, *shapes: Any) -> Any:
    """An array to ask about these shapes: what stands for it where something in them is open."""
    if not isinstance(array, np.ndarray):
        return array
    if not any(map(_has_open, filter(_is_sequence, shapes))):
        return array
    return Shaped(array.dtype, array.shape, array.strides, bool(array.flags.writeable))


def _has_open(entries: Sequence[Any]) -> bool:
    """Whether an entry of a shape or an index is open."""
    bounds = [p for e in entries if isinstance(e, slice) for p in (e.start, e.stop, e.step)]
    return sizes.is_open(entries) or sizes.is_open(bounds)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, tuple | list)


def made(of: Shaped, shape: Sequence[Any], strides: Sequence[Any], **changes: Any) -> Any:
    """A view of an array with other axes."""
    return replace(of, shape=tuple(shape), strides=tuple(strides), **changes)


# -------------------------------------------------------------------------------------- functions


def _moving(function: Any) -> Callable[..., Any]:
    """A function that moves, turns, adds or drops axes, whatever their lengths but 0 and 1."""

    def moved(x: Shaped, *args: Any, **kwargs: Any) -> Any:
        short = [n if not isinstance(n, sizes.Size) and n < 2 else None for n in x.shape]
        lengths = [2 + k if n is None else n for k, n in enumerate(short)]
        steps = [(k + 1) << 20 for k in range(x.ndim)]
        base = np.lib.stride_tricks.as_strided(np.empty(1, np.int8), lengths, steps)
        result = function(base, *args, **kwargs)
        if result is base:
            return x
        shape, strides = [], []
        for n, stride in zip(result.shape, result.strides, strict=True):
            axis = (abs(stride) >> 20) - 1
            known = abs(stride) in steps and lengths[axis] == n
            shape.append(x.shape[axis] if known else n)
            strides.append(x.strides[axis] * (1 if stride > 0 else -1) if known else 0)
        return made(x, shape, strides)

    return moved


def _broadcast_to(array: Shaped, shape: Any, subok: bool = False) -> Any:
    new = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    if len(new) < array.ndim or any(n < 0 for n in new):
        return np.broadcast_to(array.fixed(), new)  # raises
    strides: list[Any] = [0] * (len(new) - array.ndim)
    for n, stride, wanted in zip(
        array.shape, array.strides, new[len(new) - array.ndim :], strict=True
    ):
        if n != 1 and n != wanted:
            return np.broadcast_to(array.fixed(), new)  # raises
        strides.append(stride if n != 1 else 0)
    return made(array, new, strides, writeable=False)


def shape_for(size: Any, wanted: Sequence[Any]) -> Shape:
    """The shape that `reshape` gives an array of so many elements.  Raises NumPy's ValueError."""
    unknown = [k for k, n in enumerate(wanted) if not isinstance(n, sizes.Size) and n == -1]
    product = math.prod(n for k, n in enumerate(wanted) if k not in unknown)
    new = list(wanted)
    fits = len(unknown) <= 1 and not any(n < 0 for k, n in enumerate(wanted) if k not in unknown)
    if fits and unknown:
        fits = product > 0 and size % product == 0
        new[unknown[0]] = size // product if fits else 0
    elif fits:
        fits = product == size
    if not fits:
        if not sizes.is_open((size, *wanted)):
            np.reshape(np.empty(operator.index(size), np.int8), tuple(map(operator.index, wanted)))
        raise ValueError(_does_not_fit(size, wanted, product))
    return tuple(new)


def _does_not_fit(size: Any, wanted: Sequence[Any], product: Any) -> str:
    """NumPy's words, with open lengths by their names."""
    shape = f"({','.join(map(str, wanted))})"
    text = f"cannot reshape array of size {size} into shape {shape}"
    if not sizes.is_open((size,)):
        return text
    typed = f"say in the type that it is a multiple ('{product}*{size}'), or "
    return (
        f"{text} for all {size}, which is taken as {sizes.hint(size)}:"
        f" {typed if str(size).isidentifier() else ''}jit it with an array whose {size} is a"
        f" multiple of {product}"
    )


def _reshape(a: Shaped, /, shape: Any = None, order: str = "C", *, copy: bool | None = None) -> Any:
    if order not in ("C", "K"):
        return np.reshape(a.fixed(), shape, order, copy=copy)  # type: ignore[call-overload]
    new = shape_for(a.size, shape if isinstance(shape, Sequence) else (shape,))
    if a.flags.c_contiguous:
        strides: Any = tuple(s * a.itemsize for s in contiguous_strides(new))
    else:
        strides = _strides_without_copy(a, new)
    if strides is None:
        if copy is False:
            raise ValueError("Unable to avoid creating a copy while reshaping.")
        return empty(new, a.dtype)
    return made(a, new, strides)


def _strides_without_copy(a: Shaped, new: Shape) -> Shape | None:
    """Strides of the same memory in another shape, None where that needs a copy.

    NumPy's `_attempt_nocopy_reshape` (numpy/_core/src/multiarray/shape.c), in C order.
    """
    old = [(n, s) for n, s in zip(a.shape, a.strides, strict=True) if n != 1]
    strides: list[Any] = [0] * len(new)
    oi, oj, ni, nj = 0, 1, 0, 1
    while ni < len(new) and oi < len(old):
        have, want = old[oi][0], new[ni]
        while want != have:
            if want < have:
                want = want * new[nj]
                nj += 1
            else:
                have = have * old[oj][0]
                oj += 1
        for k in range(oi, oj - 1):
            if old[k][1] != old[k + 1][0] * old[k + 1][1]:
                return None
        strides[nj - 1] = old[oj - 1][1]
        for k in range(nj - 1, ni, -1):
            strides[k - 1] = strides[k] * new[k]
        ni, nj, oi, oj = nj, nj + 1, oj, oj + 1
    for k in range(ni, len(new)):
        strides[k] = strides[ni - 1] if ni else a.itemsize
    return tuple(strides)


def _at_least(count: int) -> Callable[..., Any]:
    def function(x: Shaped) -> Any:
        if x.ndim >= count:
            return x
        if count == 2:
            return x[None, :]
        return x[None, :, None] if x.ndim == 1 else x[:, :, None]

    return function


def _empty_like(x: Shaped, dtype: Any = None, order: str = "K", **others: Any) -> Any:
    flags, kind = x.flags, x.dtype if dtype is None else np.dtype(dtype)
    if order in ("C", "F"):
        return empty(x.shape, kind, order)
    if flags.c_contiguous or (flags.f_contiguous and order in ("K", "A")):
        return empty(x.shape, kind, "C" if flags.c_contiguous else "F")
    return np.empty_like(x.fixed(), kind, order=order)  # type: ignore[call-overload]


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    f: _moving(f)
    for f in (
        *(np.transpose, np.permute_dims, np.matrix_transpose, np.swapaxes, np.moveaxis),
        *(np.rollaxis, np.squeeze, np.expand_dims, np.flip, np.fliplr, np.flipud, np.rot90),
        np.linalg.matrix_transpose,
    )
} | {
    np.broadcast_to: _broadcast_to,
    np.reshape: _reshape,
    np.atleast_1d: _at_least(1),
    np.atleast_2d: _at_least(2),
    np.atleast_3d: _at_least(3),
    np.empty_like: _empty_like,
    np.ndim: lambda a: a.ndim,
    np.shape: lambda a: a.shape,
}


def elementwise(layouts: Sequence[Any], shape: Shape, dtype: DType) -> Any:
    """How NumPy lays out what a ufunc makes of arrays laid out like these (order "K").

    Which axis lies closest depends on how the strides of each compare, and on nothing else.
    """
    for x in layouts:
        steps = [abs(s) for s in x.strides]
        for k, a in enumerate(steps):
            for b in steps[:k]:  # asked, and so assumed
                operator.lt(a, b)
                operator.eq(a, b)
    seen = [x.seen() if isinstance(x, Shaped) else x for x in layouts]
    flags: Any = [["readonly"]] * len(seen) + [["writeonly", "allocate"]]
    dtypes = [None] * len(seen) + [dtype]
    iterator: Any = np.nditer([*seen, None], ["zerosize_ok"], flags, dtypes)
    made = iterator.operands[-1]
    if not sizes.is_open(shape):
        return made
    return in_order(sorted(range(len(shape)), key=lambda k: (-made.strides[k], k)), shape, dtype)


def in_order(order: Sequence[int], shape: Shape, dtype: DType) -> Any:
    """An array whose axes lie in this order in memory, outermost first, or what stands for it."""
    if not sizes.is_open(shape):
        turned = np.empty([shape[k] for k in order], dtype)
        return turned.transpose(np.argsort(order))
    strides: list[Any] = [0] * len(shape)
    step: Any = dtype.itemsize
    for k in reversed(order):
        strides[k] = step
        step = step * shape[k]
    return Shaped(dtype, shape, tuple(strides))
