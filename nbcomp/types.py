"""Tensor types: a NumPy dtype and a shape.  `f32[128, 784]` spells one without data.

While something is compiled whose lengths are open, a shape may have a `Size` in the place of a
number.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
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
    """A length that is left open: a name, or a formula of names such as `2*n + 1`."""

    name: str

    def __str__(self) -> str:
        return self.name

    @staticmethod
    def of(text: str) -> Dim | None:
        """The length that a text stands for; None if it is no formula."""
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except SyntaxError:
            return None
        known = (ast.Name, ast.Load, ast.BinOp, *_OPERATORS)
        for part in ast.walk(tree):
            whole = isinstance(part, ast.Constant) and type(part.value) is int
            if not whole and not isinstance(part, known):
                return None
        made = Dim(ast.unparse(tree))
        return made if made.names else None

    @property
    def names(self) -> tuple[str, ...]:
        """The names in it, each once."""
        parts = ast.walk(ast.parse(self.name, mode="eval"))
        return tuple(dict.fromkeys(p.id for p in parts if isinstance(p, ast.Name)))

    def at(self, values: Mapping[str, Any]) -> Any:
        """Its value for these values of its names, numbers or sizes."""
        return _value(ast.parse(self.name, mode="eval").body, values)


_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.Name(name):
            return values[name]
        case ast.BinOp(left, op, right):
            return _OPERATORS[type(op)](_value(left, values), _value(right, values))
        case ast.Constant(int(number)):
            return number
    raise TypeError(f"no formula: {ast.unparse(node)}")


class Spec:
    """A dtype that takes a shape in brackets: `f32[128, 784]` is a `TensorType`.

    A name stands for a length that is left open: `f32["n", 784]`; equal names are equal lengths.
    So does a formula of names and whole numbers, with `+`, `-`, `*`, `//`: `f32["n", "2*n + 1"]`.
    """

    def __init__(self, dtype: type[np.generic]) -> None:
        self.dtype = np.dtype(dtype)

    def __getitem__(self, shape: int | str | tuple[int | str, ...]) -> TensorType:
        given = shape if isinstance(shape, tuple) else (shape,)
        dims: list[Any] = []
        for n in given:
            dim = Dim.of(n) if isinstance(n, str) else n
            if not isinstance(dim, Dim | int) or isinstance(dim, bool):
                dim = -1
            if isinstance(dim, int) and dim < 0:
                raise TypeError(
                    "a shape is made of whole numbers ≥ 0, names such as 'n' and formulas of these"
                    f" such as '2*n + 1', not {shape!r}"
                )
            dims.append(dim)
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
