"""The NumPy names the workloads use, said in tinygrad: stands in for `np` in their source."""

from __future__ import annotations

from typing import Any

from tinygrad import Tensor


def tanh(x: Tensor) -> Tensor:
    """`np.tanh`."""
    return x.tanh()


def exp(x: Tensor) -> Tensor:
    """`np.exp`."""
    return x.exp()


def log(x: Tensor) -> Tensor:
    """`np.log`."""
    return x.log()


def sqrt(x: Tensor) -> Tensor:
    """`np.sqrt`."""
    return x.sqrt()


def maximum(x: Tensor, low: float) -> Tensor:
    """`np.maximum` with a number."""
    return x.maximum(low)


def swapaxes(x: Tensor, a: int, b: int) -> Tensor:
    """`np.swapaxes`."""
    return x.transpose(a, b)


def max(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """`np.max`."""
    return x.max(axis=axis, keepdim=keepdims)


def sum(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """`np.sum`."""
    return x.sum(axis=axis, keepdim=keepdims)


def mean(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """`np.mean`."""
    return x.mean(axis=axis, keepdim=keepdims)


class At:
    """`x.at[box].set(values)`: the functional way to write the inside of a matrix."""

    def __init__(self, x: Tensor, box: Any = None) -> None:
        self.x, self.box = x, box

    def __getitem__(self, box: Any) -> At:
        return At(self.x, box)

    def set(self, values: Tensor) -> Tensor:
        """A frame of the old values around the new ones."""
        x = self.x
        middle = x[1:-1, :1].cat(values, x[1:-1, -1:], dim=1)
        return x[:1].cat(middle, x[-1:], dim=0)
