"""NumPy's functions by what is special about their arguments and results.  Data only."""

from __future__ import annotations

from typing import Any

import numpy as np

# Functions whose 0-d results are arrays; everything else hands out NumPy scalars.
ZERO_D_ARRAYS = {
    np.where, np.tensordot, np.full, np.zeros, np.ones, np.empty, np.array, np.asarray, np.copy,
    np.zeros_like, np.ones_like, np.full_like, np.empty_like, np.select, np.choose, np.piecewise,
    np.isin, np.cov, np.roll, np.pad, np.linalg.tensordot,
}  # fmt: skip
NAMED_RESULTS = {
    np.linalg.svd, np.linalg.qr, np.linalg.eig, np.linalg.eigh, np.linalg.slogdet,
}  # fmt: skip
PYTHON_BOOLS = {np.allclose, np.array_equal, np.array_equiv}
# Functions whose Python numbers stay symbolic; elsewhere they are axes, sizes, orders, tolerances.
TAKES_NUMBERS = {
    np.where,
    np.clip,
    np.full,
    np.full_like,
    np.array,
    np.asarray,
    np.dot,
    np.inner,
    np.outer,
}
# Functions whose matrices are row-major, however the operands are laid out.
PRODUCTS = {np.matmul, np.dot}
# Functions whose results are laid out in an order of their own.
ODD_LAYOUT = {
    np.einsum,
    np.take_along_axis,
    np.linalg.qr,
    np.linalg.svd,
    np.linalg.inv,
    np.linalg.solve,
    np.linalg.eig,
    np.linalg.cross,
    np.cross,
    np.nanquantile,
    np.nanpercentile,
    np.linspace,
    np.logspace,
    np.geomspace,
}
# Functions whose layout is not asked for: values of their arguments are lengths, places or choices.
BY_VALUE = {
    np.bincount,
    np.histogram,
    np.unravel_index,
    np.interp,
    np.select,
    np.piecewise,
    np.choose,
}

# Functions that make an array of the class of another.
LIKE_ANOTHER = {np.zeros_like, np.ones_like, np.full_like, np.empty_like}

HINTS: dict[Any, str] = {
    np.unique: "the result's shape depends on the values; sort with np.sort(x) instead",
    np.nonzero: "the result's shape depends on the values; use the mask itself, with np.where",
    np.flatnonzero: "the result's shape depends on the values; use the mask itself, with np.where",
    np.argwhere: "the result's shape depends on the values; use the mask itself, with np.where",
    np.extract: "np.where(mask, x, 0) keeps the shape",
    np.compress: "np.where(mask, x, 0) keeps the shape",
    np.array_equal: "(a == b).all()",
    np.allclose: "np.isclose(a, b).all()",
    np.vectorize: "NumPy operators on whole arrays",
    np.apply_along_axis: "NumPy functions with axis=",
}
