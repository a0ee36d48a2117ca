"""`op`: every operator as a function, by its name: `op.sum(x, axes=(1,))`, `op.nn.relu(x)`.

Operands are positional, attributes are named.  On arrays a function runs the operator's NumPy
reference, on nodes it makes the node.  The code and scripts that graphs are printed as are written
in these names, and so can be run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nbcomp.graph.ir import Node, apply
from nbcomp.graph.op import REGISTRY


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
