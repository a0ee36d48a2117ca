"""What layers and functions say of inputs that they cannot take: their name, what they take, what
they were given."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbcomp.nn.module import Module


def shape_of(x: Any) -> tuple[Any, ...]:
    """The shape of an array, also of one that is being captured or a list."""
    shape = getattr(x, "shape", None)
    return np.shape(x) if shape is None else tuple(shape)


def check_shape(name: str, what: str, x: Any, wanted: tuple[Any, ...]) -> None:
    """Raise ValueError for an operand of a function, if there is one, of another shape."""
    if x is not None and shape_of(x) != wanted:
        raise ValueError(f"{name} takes {what} of shape {wanted}, not {shape_of(x)}")


def check_one_per_channel(name: str, x: Any, **operands: Any) -> None:
    """Raise ValueError for an x without channels (axis 1), or operands that have not one number
    for each."""
    shape = shape_of(x)
    if len(shape) < 2:
        raise ValueError(f"{name} takes an array of shape (batch, channels, ...), not {shape}")
    for what, operand in operands.items():
        check_shape(name, what, operand, shape[1:2])


def check_space(name: str, x: Any, space: int) -> None:
    """Raise ValueError for what is neither samples with channels nor one of them."""
    axes = len(shape_of(x))
    if axes not in (space + 1, space + 2):
        words = {1: "length", 2: "height, width", 3: "depth, height, width"}[space]
        raise ValueError(
            f"{name} takes an array of shape (batch, channels, {words}) or (channels, {words}),"
            f" not {shape_of(x)}"
        )


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
