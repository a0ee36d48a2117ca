"""Tensor types: a NumPy dtype and a shape.  `f32[128, 784]` spells one without data.

While something is compiled whose lengths are open, a shape may have a `Size` in the place of a
number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

DType = np.dtype[np.generic]

BOOL: DType = np.dtype(np.bool_)
INT64: DType = np.dtype(np.int64)
FLOAT32: DType = np.dtype(np.float32)
FLOAT64: DType = np.dtype(np.float64)

# NumPy has two names for one integer (int64 is C's long and long long): equal dtypes that give
# scalars of different classes.  Types here have the one that the width names.
_TWINS: dict[str, DType] = {c: np.dtype(np.dtype(c).str) for c in "iIlLqQ"}

_SHORT = {"float": "f", "int": "i", "uint": "u", "complex": "c"}


@cache  # NumPy makes a dtype's name anew each time
def short(dtype: DType) -> str:
    """The short name of a dtype as printed in every IR: f32, i64, u8, bool."""
    name = dtype.name
    head = name.rstrip("0123456789")
    return _SHORT[head] + name[len(head) :] if head in _SHORT else name


def canonical(dtype: DType) -> DType:
    """The dtype of those equal to it that NumPy has for its width: int64 for a long long."""
    return _TWINS.get(dtype.char, dtype) if dtype.isnative else dtype


@dataclass(frozen=True)
class TensorType:
    """An array's dtype and shape; a scalar has the shape ()."""

    dtype: DType
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        own = canonical(self.dtype)
        if own is not self.dtype:
            object.__setattr__(self, "dtype", own)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of a contiguous array of this type."""
        return self.size * self.dtype.itemsize

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @cached_property
    def _text(self) -> str:
        return f"{short(self.dtype)}[{', '.join(map(str, self.shape))}]"

    def __str__(self) -> str:
        return self._text


@dataclass(frozen=True)
class Dim:
    """A length that is left open, by its name."""

    name: str

    def __str__(self) -> str:
        return self.name


class Spec:
    """A dtype that takes a shape in brackets: `f32[128, 784]` is a `TensorType`.

    A name stands for a length that is left open: `f32["n", 784]`; equal names are equal lengths.
    """

    def __init__(self, dtype: type[np.generic]) -> None:
        self.dtype = np.dtype(dtype)

    def __getitem__(self, shape: int | str | tuple[int | str, ...]) -> TensorType:
        given = shape if isinstance(shape, tuple) else (shape,)
        dims: list[Any] = []
        for n in given:
            named = isinstance(n, str) and n.isidentifier()
            if not named and not (isinstance(n, int) and not isinstance(n, bool) and n >= 0):
                raise TypeError(
                    f"a shape is made of whole numbers ≥ 0 and names such as 'n', not {shape!r}"
                )
            dims.append(Dim(n) if isinstance(n, str) else n)
        return TensorType(self.dtype, tuple(dims))

    def __repr__(self) -> str:
        return short(self.dtype)


f16, f32, f64 = Spec(np.float16), Spec(np.float32), Spec(np.float64)
i8, i16, i32, i64 = Spec(np.int8), Spec(np.int16), Spec(np.int32), Spec(np.int64)
u8, u16, u32, u64 = Spec(np.uint8), Spec(np.uint16), Spec(np.uint32), Spec(np.uint64)
bool_ = Spec(np.bool_)


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides, in elements."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))
