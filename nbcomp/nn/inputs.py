"""What layers say of inputs that they cannot take: the layer, what it takes, what it was given."""

from __future__ import annotations

from typing import Any

from nbcomp.nn.module import Module


def check_axes(layer: Module, x: Any, wanted: str, axes: tuple[int, ...]) -> None:
    """Raise TypeError for what is no array, ValueError for one of another number of axes."""
    name = type(layer).__name__
    if not hasattr(x, "shape"):
        raise TypeError(f"{name} takes an array of shape {wanted}, not {type(x).__name__}")
    if len(x.shape) not in axes:
        raise ValueError(f"{name} takes an array of shape {wanted}, not {tuple(x.shape)}")


def check_last(layer: Module, x: Any, *sizes: int) -> None:
    """Raise ValueError for an array whose last axes are not of these sizes."""
    shape = getattr(x, "shape", None)
    if shape is None:  # what is no array is refused by what computes with it
        return
    last = shape[max(len(shape) - len(sizes), 0) :]
    if len(last) < len(sizes) or any(n != m for n, m in zip(last, sizes, strict=True)):
        wanted = ", ".join(map(str, sizes))
        raise ValueError(
            f"{type(layer).__name__}({layer.extra_repr()}) takes an array of shape"
            f" (..., {wanted}), not {tuple(shape)}"
        )


def check_channels(layer: Module, x: Any, channels: int) -> None:
    """Raise ValueError for an array without an axis 1 of so many channels."""
    found = x.shape[1] if len(x.shape) > 1 else "no"
    if found != channels:
        raise ValueError(
            f"{type(layer).__name__}({channels}) got {found} channels: {tuple(x.shape)}"
        )
