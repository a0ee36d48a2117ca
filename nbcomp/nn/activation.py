"""Activations as modules: each is the function of the same name in `functional`."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbcomp.nn import functional as F
from nbcomp.nn.arrays import Parameter
from nbcomp.nn.module import Module


class Activation(Module):
    """A function of one array; `settings` are its further arguments, by name."""

    def forward(self, x: Any) -> Any:
        """The shape of x"""
        raise NotImplementedError


def _plain(name: str, function: Any) -> type[Activation]:
    """A module for a function without settings."""

    def __init__(self: Any, inplace: bool = False) -> None:
        self.inplace = inplace

    def forward(self: Any, x: Any) -> Any:
        return function(x)

    body = {
        "__doc__": function.__doc__, "__init__": __init__, "forward": forward,
        "__module__": __name__,
    }  # fmt: skip
    return type(name, (Activation,), body)


ReLU = _plain("ReLU", F.relu)
ReLU6 = _plain("ReLU6", F.relu6)
SELU = _plain("SELU", F.selu)
SiLU = _plain("SiLU", F.silu)
Mish = _plain("Mish", F.mish)
Sigmoid = _plain("Sigmoid", F.sigmoid)
LogSigmoid = _plain("LogSigmoid", F.logsigmoid)
Hardsigmoid = _plain("Hardsigmoid", F.hardsigmoid)
Hardswish = _plain("Hardswish", F.hardswish)
Tanh = _plain("Tanh", F.tanh)
Softsign = _plain("Softsign", F.softsign)
Tanhshrink = _plain("Tanhshrink", F.tanhshrink)


def _with_settings(name: str, function: Any, **defaults: Any) -> type[Activation]:
    """A module for a function with settings, which are attributes of the module."""

    def __init__(self: Any, *args: Any, inplace: bool = False, **kwargs: Any) -> None:
        given = dict(zip(defaults, args, strict=False)) | kwargs
        unknown = given.keys() - defaults.keys()
        if unknown or len(args) > len(defaults):
            raise TypeError(f"{name} takes {', '.join(defaults)}")
        vars(self).update(defaults | given)

    def forward(self: Any, x: Any) -> Any:
        return function(x, **{k: getattr(self, k) for k in defaults})

    def extra_repr(self: Any) -> str:
        if "lambd" in defaults:  # PyTorch does not name it
            return str(self.lambd)
        return ", ".join(f"{k}={getattr(self, k)!r}" for k in defaults)

    body = {
        "__doc__": function.__doc__, "__init__": __init__, "forward": forward,
        "extra_repr": extra_repr, "__module__": __name__,
    }  # fmt: skip
    return type(name, (Activation,), body)


LeakyReLU = _with_settings("LeakyReLU", F.leaky_relu, negative_slope=0.01)
ELU = _with_settings("ELU", F.elu, alpha=1.0)
CELU = _with_settings("CELU", F.celu, alpha=1.0)
GELU = _with_settings("GELU", F.gelu, approximate="none")
Softplus = _with_settings("Softplus", F.softplus, beta=1.0, threshold=20.0)
Hardtanh = _with_settings("Hardtanh", F.hardtanh, min_val=-1.0, max_val=1.0)
Softshrink = _with_settings("Softshrink", F.softshrink, lambd=0.5)
Hardshrink = _with_settings("Hardshrink", F.hardshrink, lambd=0.5)
Threshold = _with_settings("Threshold", F.threshold, threshold=0.0, value=0.0)
GLU = _with_settings("GLU", F.glu, dim=-1)
Softmax = _with_settings("Softmax", F.softmax, dim=None)
LogSoftmax = _with_settings("LogSoftmax", F.log_softmax, dim=None)
Softmin = _with_settings("Softmin", F.softmin, dim=None)


class PReLU(Activation):
    """x for x > 0, weight · x below, with a learned weight, or one for each channel."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, dtype: Any = np.float32
    ) -> None:
        self.num_parameters = num_parameters
        self.weight = Parameter(np.full(num_parameters, init, dtype))

    def forward(self, x: Any) -> Any:
        """The shape of x"""
        return F.prelu(x, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"
