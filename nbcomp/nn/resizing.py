"""Images in another size, by interpolation, with PyTorch's names and arguments.

What interpolation reads is known from the sizes, so its places and weights are constants.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nbcomp.nn.spatial import per_axis, sizes
from nbcomp.nn.transposed import interleaved
from nbcomp.ops.phases import Phase

MANY = 4  # times an element may be repeated along an axis to be written to all places at once
MODES = {
    "nearest": (1, 2, 3),
    "nearest-exact": (1, 2, 3),
    "linear": (1,),
    "bilinear": (2,),
    "trilinear": (3,),
}


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
    if mode.startswith("nearest") and (times := _repeats(old, new, scales, mode)):
        return _repeated(x, times)
    for axis, (n, m, scale) in enumerate(zip(old, new, scales, strict=True), 2):
        x = _along(x, axis, n, m, scale, mode, bool(align_corners))
    return x


def _repeats(old: Any, new: Any, scales: Any, mode: str) -> tuple[int, ...] | None:
    """How often each element is repeated along each axis, if all are equally often, and a few
    times."""
    times = []
    for n, m, scale in zip(old, new, scales, strict=True):
        if m % n or not np.array_equal(_nearest(n, m, scale, mode), np.arange(m) // (m // n)):
            return None
        times.append(m // n)
    return tuple(times) if 1 < max(times) <= MANY else None


def _repeated(x: Any, times: tuple[int, ...]) -> Any:
    """Every element so many times along each axis of the space."""
    batch, channels, *space = x.shape
    none = (0,) * len(times)
    phases = (Phase(first, 0, none, 0) for first in np.ndindex(*times))
    new = tuple(n * t for n, t in zip(space, times, strict=True))
    apart = np.reshape(x, (batch, 1, channels, *space))
    how = {"space": new, "stride": times, "phases": tuple(phases)}
    return np.reshape(interleaved(apart, channels=channels, **how), (batch, channels, *new))


def _nearest(n: int, m: int, scale: float, mode: str) -> Any:
    """Which of n elements each of m is."""
    half = 0.5 if mode == "nearest-exact" else 0.0
    place = np.arange(m, dtype=np.float32)
    at = np.floor((place + np.float32(half)) * np.float32(scale)).astype(np.int64)
    return np.minimum(at, n - 1)


def _along(x: Any, axis: int, n: int, m: int, scale: float, mode: str, corners: bool) -> Any:
    """One axis of n elements as m."""
    if mode.startswith("nearest"):
        return np.take(x, _nearest(n, m, scale, mode), axis=axis)
    real_type: Any = np.float64 if x.dtype == np.float64 else np.float32
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
