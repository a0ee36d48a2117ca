"""Initial values of parameters, drawn with NumPy's global generator (`np.random.seed` fixes them).

The functions write in place, as PyTorch's of the same names do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nbcomp.nn.arrays import Parameter


def _array(tensor: Any) -> np.ndarray[Any, Any]:
    return tensor.data if isinstance(tensor, Parameter) else tensor


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0) -> Any:
    """Evenly between a and b."""
    _array(tensor)[...] = np.random.uniform(a, b, tensor.shape)
    return tensor


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0) -> Any:
    """From a normal distribution."""
    _array(tensor)[...] = np.random.normal(mean, std, tensor.shape)
    return tensor


def constant_(tensor: Any, value: float) -> Any:
    """The same value everywhere."""
    _array(tensor)[...] = value
    return tensor


def zeros_(tensor: Any) -> Any:
    """0 everywhere."""
    return constant_(tensor, 0.0)


def ones_(tensor: Any) -> Any:
    """1 everywhere."""
    return constant_(tensor, 1.0)


def fans(tensor: Any) -> tuple[int, int]:
    """How many inputs and outputs each unit of a weight has: (out, in, *kernel)."""
    if len(tensor.shape) < 2:
        raise ValueError(f"a weight has two axes or more, not the shape {tensor.shape}")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def xavier_uniform_(tensor: Any, gain: float = 1.0) -> Any:
    """Glorot and Bengio, Understanding the Difficulty of Training Deep Networks, 2010."""
    bound = gain * math.sqrt(6 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound)


def kaiming_uniform_(tensor: Any, a: float = 0.0, mode: str = "fan_in") -> Any:
    """He et al., Delving Deep into Rectifiers, arXiv:1502.01852; a: the slope below zero."""
    fan = fans(tensor)[("fan_in", "fan_out").index(mode)]
    bound = math.sqrt(6 / ((1 + a * a) * max(fan, 1)))
    return uniform_(tensor, -bound, bound)


def check_sizes(*sizes: Any) -> None:
    """Raise TypeError for sizes of a layer that are no whole numbers, ValueError below 0."""
    for n in sizes:
        if isinstance(n, bool) or not hasattr(n, "__index__"):
            raise TypeError(f"the sizes of a layer are whole numbers, not {n!r}")
        if n < 0:
            raise ValueError(f"the sizes of a layer are 0 or more, not {n}")


def parameter(*shape: int, bound: float, dtype: Any) -> Parameter:
    """A new parameter, evenly between -bound and bound.  Raises as `check_sizes` does."""
    check_sizes(*shape)
    return uniform_(Parameter(np.empty(shape, dtype)), -bound, bound)  # type: ignore[no-any-return]
