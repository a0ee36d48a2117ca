"""The NumPy names the workloads use, said in torch: stands in for `np` in their source."""

from __future__ import annotations

import torch

tanh, exp, log, sqrt, swapaxes = torch.tanh, torch.exp, torch.log, torch.sqrt, torch.swapaxes
copy = torch.clone


def maximum(x: torch.Tensor, low: float) -> torch.Tensor:
    """`np.maximum` with a number."""
    return torch.clamp_min(x, low)


def max(x: torch.Tensor, axis: int, keepdims: bool = False) -> torch.Tensor:
    """`np.max` over one axis."""
    return torch.amax(x, dim=axis, keepdim=keepdims)


def sum(x: torch.Tensor, axis: int | None = None, keepdims: bool = False) -> torch.Tensor:
    """`np.sum` over one axis or all."""
    return torch.sum(x) if axis is None else torch.sum(x, dim=axis, keepdim=keepdims)


def mean(x: torch.Tensor, axis: int | None = None, keepdims: bool = False) -> torch.Tensor:
    """`np.mean` over one axis or all."""
    return torch.mean(x) if axis is None else torch.mean(x, dim=axis, keepdim=keepdims)
