"""Calls of routines that somebody brought along, from a library nbcomp does not know.

What such a call means is said in NumPy, by the pattern it stands for; what runs is the routine: a
Python function of arrays, or a C function.  Who calls it where is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from nbcomp.errors import NbcompError
from nbcomp.graph.op import Library
from nbcomp.types import TensorType, contiguous_strides


@dataclass(frozen=True)
class Operand:
    """An array a C function is given: in C order, strides in elements; -1 is the result."""

    position: int
    type: TensorType

    @property
    def shape(self) -> tuple[int, ...]:
        """Its lengths."""
        return self.type.shape

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """Of its elements."""
        return self.type.dtype

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps between neighbours, in elements."""
        return contiguous_strides(self.shape)


@dataclass(frozen=True, eq=False)
class CFunction:
    """A function of C, or of Fortran where `by_reference` is set, by its address.

    arguments: what is passed, given the result and the operands (`Operand`).  An operand is passed
    as a pointer to its elements, a Python int as an `int`, a float as a `double`, one letter as a
    `char`, and NumPy's scalars as what they are.  keep: the object that owns the code.
    """

    address: int
    arguments: Callable[..., Sequence[Any]]
    by_reference: bool = False
    keep: Any = None


@dataclass(frozen=True, eq=False)
class Routine:
    """A routine of a library: its full name, what it means in NumPy, and what runs."""

    name: str
    meaning: Callable[..., Any]
    implementation: Callable[..., Any] | CFunction
    into: bool = False  # a Python function that takes the array for its result as `out`

    def call(self, *arrays: Any, out: Any) -> None:
        """Run a routine in Python, on arrays it cannot write to: they are the caller's, or values
        that others read.  Raises NbcompError where it does, and for a result of the wrong kind."""
        if self.into:
            self._run(arrays, {"out": out})
            return
        result = np.asarray(self._run(arrays, {}))
        if result.dtype != out.dtype or result.shape != out.shape:
            made, wanted = TensorType(result.dtype, result.shape), TensorType(out.dtype, out.shape)
            raise NbcompError(f"{self.name} gave {made}, but what it stands for is {wanted}")
        np.copyto(out, result)

    def _run(self, arrays: tuple[Any, ...], into: dict[str, Any]) -> Any:
        assert callable(self.implementation)
        try:
            return self.implementation(*map(_read_only, arrays), **into)
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            raise NbcompError(
                f"{self.name} writes to an array it was given, which others read: {error}",
                hint="let it work on a copy (x = x.copy()), or write to an argument `out`",
            ) from error


def _read_only(array: Any) -> Any:
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True)
class External(Library):
    """A call of a routine from a library the user brought along."""

    name: ClassVar[str] = "library_call"
    brought: ClassVar[bool] = True
    routine: Routine
    type: TensorType

    def infer(self, *types: TensorType) -> TensorType:
        return self.type

    def reference(self, *arrays: Any) -> Any:
        return self.routine.meaning(*arrays)

    def attributes(self) -> dict[str, Any]:
        return {"routine": self.routine.name}

    @cached_property
    def c(self) -> CFunction | None:
        """The C function that runs, if one does."""
        run = self.routine.implementation
        return run if isinstance(run, CFunction) else None

    @property
    def contiguous(self) -> bool:
        return self.c is not None
