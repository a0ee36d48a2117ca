"""Images in another size, by interpolation, with PyTorch's names and arguments.

What interpolation reads is known from the sizes, so its places and weights are constants.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nbcomp.nn.spatial import per_axis, sizes

MODES = {
    "nearest": (1, 2, 3),
    "nearest-exact": (1, 2, 3),
    "linear": (1,),
    "bilinear": (2,),
    "trilinear": (3,),
}


# ------------------------------------------------------------------------------ interpolation


def interpolate(
    x: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Any:
    """(batch, channels, *space) with the space in another size: nearest or linear.

    align_corners: the first and last elements stay at the ends; otherwise elements are areas, whose
    corners do.
    """
    space = len(x.shape) - 2
    if mode not in MODES or space not in MODES[mode]:
        known = ", ".join(f"{m!r} ({'d, '.join(map(str, MODES[m]))}d)" for m in MODES)
        raise ValueError(f"no interpolation {mode!r} over {space} axes; there are {known}")
    if (size is None) == (scale_factor is None):
        raise ValueError("give either size or scale_factor")
    if align_corners is not None and mode.startswith("nearest"):
        raise ValueError("align_corners is for linear interpolation")
    old = x.shape[2:]
    if size is not None:
        new = sizes(size, space, "size")
        scales = tuple(n / m for n, m in zip(old, new, strict=True))
    else:
        factors = per_axis(scale_factor, space, "scale_factor")
        new = tuple(math.floor(n * f) for n, f in zip(old, factors, strict=True))
        scales = tuple(1 / f for f in factors)
    if any(n < 1 for n in (*old, *new)):
        raise ValueError(f"interpolation from {tuple(old)} to {new}: sizes are 1 or more")
    for axis, (n, m, scale) in enumerate(zip(old, new, scales, strict=True), 2):
        x = _along(x, axis, n, m, scale, mode, bool(align_corners))
    return x


def _along(x: Any, axis: int, n: int, m: int, scale: float, mode: str, corners: bool) -> Any:
    """One axis of n elements as m."""
    real_type: Any = np.float64 if x.dtype == np.float64 else np.float32
    if mode.startswith("nearest"):
        place = np.arange(m, dtype=np.float32)
        half = 0.5 if mode == "nearest-exact" else 0.0
        at = np.floor((place + np.float32(half)) * np.float32(scale)).astype(np.int64)
        return np.take(x, np.minimum(at, n - 1), axis=axis)
    place, half = np.arange(m, dtype=real_type), real_type(0.5)
    if corners:
        real = place * real_type((n - 1) / (m - 1) if m > 1 else 0)
    else:
        real = np.maximum((place + half) * real_type(scale) - half, 0)
    low = np.minimum(np.floor(real).astype(np.int64), n - 1)
    high = np.minimum(low + 1, n - 1)
    column = (-1, *(1,) * (len(x.shape) - axis - 1))
    part = np.reshape((real - low).astype(x.dtype), column)
    return np.take(x, low, axis=axis) * (1 - part) + np.take(x, high, axis=axis) * part
