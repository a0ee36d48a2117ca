"""`op`: every operator as a function, by its name: `op.sum(x, axes=(1,))`, `op.nn.relu(x)`.

Operands are positional, attributes are named.  On arrays a function runs the operator's NumPy
reference, on nodes it makes the node.  The code and the scripts that graphs are printed as are
written in these names and so can be run; `module`, `function`, `dataflow`, `output` and `Tensor`
are the words that scripts have besides.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from nbcomp.errors import NbcompError
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.op import REGISTRY
from nbcomp.types import TensorType

C = TypeVar("C", bound=type)


class Operators:
    """The operators of one dialect; those of another are an attribute of the first."""

    def __init__(self, dialect: str = "tensor") -> None:
        self._dialect = dialect

    def __getattr__(self, name: str) -> Any:
        known = REGISTRY.get(name)
        if known is not None and known.dialect == self._dialect:
            return _function(known)
        if self._dialect == "tensor" and any(o.dialect == name for o in REGISTRY.values()):
            return Operators(name)
        raise AttributeError(f"no operator {name!r} in the dialect {self._dialect!r}")

    # ------------------------------------------------------------------- the words of scripts

    @staticmethod
    def module(cls: C) -> C:
        """A class that holds a program's functions."""
        return cls

    @staticmethod
    def function(function: Callable[..., Any]) -> Any:
        """A function of a module: it has no state."""
        return staticmethod(function)

    @staticmethod
    def dataflow() -> contextlib.AbstractContextManager[None]:
        """A block without control flow."""
        return contextlib.nullcontext()

    @staticmethod
    def output(*values: Any) -> None:
        """The values of a block that are read after it."""

    @staticmethod
    def Tensor(shape: tuple[int, ...], dtype: str) -> TensorType:
        """The type of an array."""
        return TensorType(np.dtype(dtype), tuple(shape))

    @staticmethod
    def Tuple(*types: TensorType) -> tuple[TensorType, ...]:
        """The type of several arrays."""
        return types

    @staticmethod
    def constant(value: Any, dtype: str) -> Any:
        """An array that is part of a program."""
        if value is ...:
            raise NbcompError("the array was too large to be written into the script")
        return np.array(value, dtype)

    def __dir__(self) -> list[str]:
        own = [name for name, o in REGISTRY.items() if o.dialect == self._dialect]
        others = {o.dialect for o in REGISTRY.values()} if self._dialect == "tensor" else set()
        return sorted({*own, *others} - {"tensor"})

    def __repr__(self) -> str:
        return f"<the operators of the dialect {self._dialect}>"


def _function(operator: Any) -> Callable[..., Any]:
    def call(*operands: Any, **attributes: Any) -> Any:
        made = operator(**attributes)
        if any(isinstance(x, Node) for x in operands):
            return apply(made, *operands)
        with np.errstate(all="ignore"):
            return made.reference(*operands)

    call.__name__ = call.__qualname__ = operator.name
    call.__doc__ = operator.__doc__
    return call


op = Operators()
