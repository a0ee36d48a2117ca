"""The layers that the networks are written with, in JAX: PyTorch's names, options and parameters.

As users of JAX write them: `lax.conv_general_dilated`, `lax.reduce_window`, `lax.scan`, `jax.nn`.
A parameter is an attribute that is an array; `load` sets those of a model by PyTorch's names.
Knows layers; it must not know who runs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


class Module:
    """Attributes are parameters and modules; calling it is its `forward`."""

    def __call__(self, *args: Any) -> Any:
        return self.forward(*args)

    def forward(self, *args: Any) -> Any:
        """What the module computes."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def eval(self) -> Module:
        """As it is: nothing here is for training."""
        return self

    def owners(self, prefix: str = "") -> Iterator[tuple[str, Module, str]]:
        """The name of each parameter, the module it belongs to, and the attribute it is."""
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield from value.owners(f"{prefix}{name}.")
            elif isinstance(value, jax.Array):
                yield prefix + name, self, name


def load(model: Module, values: dict[str, Any]) -> None:
    """Set the parameters of a model by their names."""
    for name, owner, attribute in list(model.owners()):
        setattr(owner, attribute, jnp.asarray(values[name]))


def _pair(value: Any) -> tuple[int, int]:
    return value if isinstance(value, tuple) else (value, value)


def _margins(padding: Any) -> list[tuple[int, int]]:
    return [(p, p) for p in _pair(padding)]


class Sequential(Module):
    """One module after the other; they are attributes by their number."""

    def __init__(self, *modules: Module) -> None:
        for number, module in enumerate(modules):
            setattr(self, str(number), module)

    def forward(self, x: Any) -> Any:
        """The last module's result."""
        for module in vars(self).values():
            x = module(x)
        return x


class Identity(Module):
    """The input."""

    def forward(self, x: Any) -> Any:
        """`x`."""
        return x


class Linear(Module):
    """`x @ weight.T + bias`."""

    def __init__(self, inner: int, outer: int) -> None:
        self.weight = jnp.zeros((outer, inner))
        self.bias = jnp.zeros(outer)

    def forward(self, x: Any) -> Any:
        """Of the last axis."""
        return x @ self.weight.T + self.bias


class Conv2d(Module):
    """A convolution of images (N, C, H, W)."""

    def __init__(
        self, inner: int, outer: int, kernel_size: int, stride: int = 1, padding: int = 0,
        groups: int = 1, bias: bool = True,
    ) -> None:  # fmt: skip
        self.weight = jnp.zeros((outer, inner // groups, kernel_size, kernel_size))
        self.bias: Any = jnp.zeros(outer) if bias else None
        self.stride, self.padding, self.groups = stride, padding, groups

    def forward(self, x: Any) -> Any:
        """Of an image."""
        result = lax.conv_general_dilated(
            x, self.weight, _pair(self.stride), _margins(self.padding),
            dimension_numbers=("NCHW", "OIHW", "NCHW"), feature_group_count=self.groups,
        )  # fmt: skip
        return result if self.bias is None else result + self.bias[:, None, None]


class BatchNorm2d(Module):
    """The normalisation of channels by known statistics."""

    def __init__(self, channels: int) -> None:
        self.weight, self.bias = jnp.ones(channels), jnp.zeros(channels)
        self.running_mean, self.running_var = jnp.zeros(channels), jnp.ones(channels)

    def forward(self, x: Any) -> Any:
        """Of an image."""
        scale = self.weight * lax.rsqrt(self.running_var + 1e-5)
        return x * scale[:, None, None] + (self.bias - self.running_mean * scale)[:, None, None]


class MaxPool2d(Module):
    """The largest of each window."""

    def __init__(self, kernel_size: int, stride: int, padding: int = 0) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, x: Any) -> Any:
        """Of an image."""
        window, steps = (1, 1, *_pair(self.kernel_size)), (1, 1, *_pair(self.stride))
        margins = [(0, 0), (0, 0), *_margins(self.padding)]
        return lax.reduce_window(x, -jnp.inf, lax.max, window, steps, margins)


class AdaptiveAvgPool2d(Module):
    """The mean of each channel; no other size is needed here."""

    def __init__(self, size: int) -> None:
        if size != 1:
            raise ValueError(f"only the mean of all places, not {size} of them")

    def forward(self, x: Any) -> Any:
        """Of an image."""
        return x.mean((2, 3), keepdims=True)


class Flatten(Module):
    """All axes but the first as one."""

    def forward(self, x: Any) -> Any:
        """Of any array."""
        return x.reshape(x.shape[0], -1)


class LayerNorm(Module):
    """The normalisation of the last axis."""

    def __init__(self, size: int) -> None:
        self.weight, self.bias = jnp.ones(size), jnp.zeros(size)

    def forward(self, x: Any) -> Any:
        """Of the last axis."""
        away = x - x.mean(-1, keepdims=True)
        scale = lax.rsqrt((away * away).mean(-1, keepdims=True) + 1e-5)
        return away * scale * self.weight + self.bias


class ReLU(Module):
    """`max(x, 0)`."""

    def forward(self, x: Any) -> Any:
        """Of any array."""
        return jax.nn.relu(x)


class ReLU6(Module):
    """`min(max(x, 0), 6)`."""

    def forward(self, x: Any) -> Any:
        """Of any array."""
        return jax.nn.relu6(x)


class GELU(Module):
    """Gaussian error linear units, exact or by tanh."""

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate == "tanh"

    def forward(self, x: Any) -> Any:
        """Of any array."""
        return jax.nn.gelu(x, approximate=self.approximate)


class Softmax(Module):
    """Shares of one along an axis."""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def forward(self, x: Any) -> Any:
        """Of any array."""
        return jax.nn.softmax(x, axis=self.dim)


class LSTM(Module):
    """One layer over a sequence (T, N, inner); its result is (outputs, (hidden, cell))."""

    def __init__(self, inner: int, hidden: int) -> None:
        self.weight_ih_l0 = jnp.zeros((4 * hidden, inner))
        self.weight_hh_l0 = jnp.zeros((4 * hidden, hidden))
        self.bias_ih_l0, self.bias_hh_l0 = jnp.zeros(4 * hidden), jnp.zeros(4 * hidden)

    def forward(self, x: Any) -> Any:
        """From a hidden state and a cell of zeros."""
        inputs = x @ self.weight_ih_l0.T + self.bias_ih_l0 + self.bias_hh_l0
        start = jnp.zeros((x.shape[1], self.weight_hh_l0.shape[1]))

        def step(state: Any, row: Any) -> Any:
            hidden, cell = state
            i, f, g, o = jnp.split(row + hidden @ self.weight_hh_l0.T, 4, axis=-1)
            cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
            hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
            return (hidden, cell), hidden

        state, outputs = lax.scan(step, (start, start), inputs)
        return outputs, state
