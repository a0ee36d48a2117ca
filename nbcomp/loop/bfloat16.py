"""bfloat16, which NumPy lacks, as its bits in uint16: the upper half of a float32.

`rounded` and `widened` are expressions, `round_array` and `widen_array` the same on arrays.
Rounding is to the nearest, ties to even; a NaN stays one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nbcomp.loop.grammar import Apply, Cast, Expr, Select, const
from nbcomp.types import BOOL, FLOAT32, DType

UINT16: DType = np.dtype(np.uint16)
UINT32: DType = np.dtype(np.uint32)
HALF, QUIET = 0x7FFF, 0x40  # just below half a unit in the last place; the bit of quiet NaNs


def widened(bits: Expr) -> Expr:
    """The float32 of bfloat16 bits."""
    wide = Apply(UINT32, "left_shift", (Cast(UINT32, bits), const(16, UINT32)))
    return Apply(FLOAT32, "bitcast", (wide,))


def bits_in(expr: Expr) -> Expr | None:
    """The bits that an expression is the float32 of."""
    if isinstance(expr, Apply) and expr.fn == "bitcast" and isinstance(expr.args[0], Apply):
        shifted = expr.args[0]
        if shifted.fn == "left_shift" and isinstance(shifted.args[0], Cast):
            bits = shifted.args[0].value
            return bits if bits.dtype == UINT16 else None
    return None


def rounded(value: Expr) -> Expr:
    """The bfloat16 bits nearest to a float32."""
    bits = Apply(UINT32, "bitcast", (value,))
    upper = Apply(UINT32, "right_shift", (bits, const(16, UINT32)))
    odd = Apply(UINT32, "bitwise_and", (upper, const(1, UINT32)))
    more = Apply(UINT32, "add", (odd, const(HALF, UINT32)))
    near = Apply(UINT32, "right_shift", (Apply(UINT32, "add", (bits, more)), const(16, UINT32)))
    nan = Apply(UINT32, "bitwise_or", (upper, const(QUIET, UINT32)))
    is_nan = Apply(BOOL, "not_equal", (value, value))
    return Cast(UINT16, Select(UINT32, is_nan, nan, near))


def widen_array(bits: Any) -> Any:
    """The float32 array of an array of bits."""
    return (np.asarray(bits).astype(np.uint32) << np.uint32(16)).view(np.float32)


def round_array(values: Any) -> Any:
    """The bits of a float32 array, rounded."""
    values = np.asarray(values, np.float32)
    bits = values.view(np.uint32)
    upper = bits >> np.uint32(16)
    near = (bits + ((upper & np.uint32(1)) + np.uint32(HALF))) >> np.uint32(16)
    return np.where(np.isnan(values), upper | np.uint32(QUIET), near).astype(np.uint16)
