"""Finding the tracer of a function: NumPy's by themselves, a few ufuncs of scipy.special by name.

scipy is never imported for it: a function of scipy is only met when the user has imported it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import NUMPY, NumpyFunction
from nbcomp.ops.elementary import Erf
from nbcomp.ops.nn import Sigmoid
from nbcomp.ops.operand import as_node, cast
from nbcomp.types import FLOAT32, FLOAT64


def _expit(x: Any) -> Node:
    """scipy's logistic function: its float64 loop takes all but float32."""
    node = as_node(x)
    return apply(Sigmoid(), node if node.type.dtype == FLOAT32 else cast(node, FLOAT64))


SCIPY_SPECIAL = {"erf": Erf.trace, "expit": _expit}


def find(function: Any) -> NumpyFunction | None:
    """The tracer of a function, or None if nbcomp has none."""
    known = NUMPY.get(function)
    if known is not None or not isinstance(function, np.ufunc):
        return known
    special: Any = sys.modules.get("scipy.special")
    name = function.__name__
    if name not in SCIPY_SPECIAL or id(getattr(special, name, None)) != id(function):
        return None
    return NUMPY.setdefault(function, NumpyFunction(function, SCIPY_SPECIAL[name]))
