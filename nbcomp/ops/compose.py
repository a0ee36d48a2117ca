"""NumPy functions that are a few elementwise operators: isclose, round, nan_to_num, gradient, ...

A `Composite` stands for itself in a graph until it is expanded; the smaller ones are written out at
once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbcomp.errors import Unsupported
from nbcomp.graph.ir import Node, apply
from nbcomp.graph.numpy_function import traces
from nbcomp.graph.op import Composite, Sample
from nbcomp.ops import values
from nbcomp.ops.operand import (
    as_node,
    cast,
    constant,
    integer,
    number,
    operand,
    result_type,
    traced,
)
from nbcomp.sizes import broadcast_shapes
from nbcomp.types import BOOL, FLOAT64


@dataclass(frozen=True)
class IsClose(Composite, name="isclose"):
    """|a - b| <= atol + rtol |b|, infinities equal to themselves"""

    rtol: float
    atol: float
    equal_nan: bool

    def reference(self, *arrays: Any) -> Any:
        a, b = arrays
        return np.isclose(a, b, self.rtol, self.atol, self.equal_nan)

    def expand(self, *inputs: Node) -> Node:
        x, y = inputs
        if y.type.dtype.kind != "f":  # as NumPy does, so that the distance cannot wrap round
            y = cast(y, np.result_type(y.type.dtype, 1.0))
        size = traced(np.abs, y)
        bound = traced(np.add, self.atol, traced(np.multiply, self.rtol, size))
        near = traced(np.less_equal, traced(np.abs, traced(np.subtract, x, y)), bound)
        close = traced(np.logical_and, near, traced(np.isfinite, y))
        close = traced(np.logical_or, close, traced(np.equal, x, y))
        if self.equal_nan:
            both = traced(np.logical_and, traced(np.isnan, x), traced(np.isnan, y))
            close = traced(np.logical_or, close, both)
        return close

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in (*values.FLOATS, np.dtype(np.int32), np.dtype(np.uint8), BOOL):
            x = values.mixed(rng, dtype)
            for equal_nan in (False, True):
                yield Sample(cls(1e-5, 1e-8, equal_nan), (x, x[::-1].copy()))
                yield Sample(cls(1e-5, 1e-8, equal_nan), (x, x))
            yield Sample(cls(0.5, 1.0, False), (values.ordinary(rng, dtype, (3, 1)), x))


@traces(np.isclose)
def _isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: Any = False) -> Node:
    if not all(type(t) in (int, float, np.float64) for t in (rtol, atol)):
        raise Unsupported("tolerances computed at run time are not compiled", hint="use numbers")
    return apply(IsClose(float(rtol), float(atol), bool(equal_nan)), as_node(a), as_node(b))


@traces(np.allclose)
def _allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: Any = False) -> Node:
    return traced(np.all, _isclose(a, b, rtol, atol, equal_nan))


@traces(np.array_equal)
def _array_equal(a1: Any, a2: Any, equal_nan: Any = False) -> Node:
    x, y = as_node(a1), as_node(a2)
    if x.shape != y.shape:
        return number(False, BOOL)
    same = traced(np.equal, x, y)
    if equal_nan:
        both = traced(np.logical_and, traced(np.isnan, x), traced(np.isnan, y))
        same = traced(np.logical_or, same, both)
    return traced(np.all, same)


@traces(np.array_equiv)
def _array_equiv(a1: Any, a2: Any) -> Node:
    x, y = as_node(a1), as_node(a2)
    try:
        broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return number(False, BOOL)
    return traced(np.all, traced(np.equal, x, y))


# ----------------------------------------------------------------- for floating numbers only


@traces(np.nan_to_num)
def _nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Node:
    node = as_node(x)
    dtype: Any = node.type.dtype
    if dtype.kind != "f":
        return node
    if not copy:
        raise Unsupported("np.nan_to_num with copy=False is not compiled", hint="use the result")
    ends = np.finfo(dtype)
    high = number(float(ends.max), dtype) if posinf is None else operand(posinf, dtype)
    low = number(float(ends.min), dtype) if neginf is None else operand(neginf, dtype)
    result = traced(np.where, traced(np.isnan, node), operand(nan, dtype), node)
    result = traced(np.where, traced(np.equal, node, np.inf), high, result)
    return traced(np.where, traced(np.equal, node, -np.inf), low, result)


@traces(np.isposinf)
def _isposinf(x: Any) -> Node:
    return _signed_infinity(x, False)


@traces(np.isneginf)
def _isneginf(x: Any) -> Node:
    return _signed_infinity(x, True)


def _signed_infinity(x: Any, negative: bool) -> Node:
    node = as_node(x)
    sign = traced(np.signbit, node)
    wanted = sign if negative else traced(np.logical_not, sign)
    return traced(np.logical_and, traced(np.isinf, node), wanted)


@traces(np.round, np.around)
def _round(a: Any, decimals: Any = 0) -> Node:
    node, places = as_node(a), integer(decimals)
    dtype = node.type.dtype
    if dtype == BOOL:
        np.round(np.ones(1, bool), places)  # raises but for whole numbers
        return cast(node, np.dtype(np.float16))
    if dtype.kind in "biu" and places >= 0:
        return node
    if places == 0:
        return traced(np.rint, node)
    scale = 10.0 ** abs(places)
    first, second = (np.multiply, np.divide) if places > 0 else (np.divide, np.multiply)
    rounded = traced(second, traced(np.rint, traced(first, node, scale)), scale)
    return cast(rounded, dtype)


@traces(np.fix)
def _fix(x: Any) -> Node:
    return traced(np.trunc, x)


@traces(np.sinc)
def _sinc(x: Any) -> Node:
    node = as_node(x)
    if node.type.dtype.kind != "f":
        node = cast(node, FLOAT64)
    tiny = np.finfo(node.type.dtype).eps  # type: ignore[type-var]
    zero = traced(np.equal, node, 0)
    y = traced(np.multiply, np.pi, traced(np.where, zero, tiny, node))
    return traced(np.divide, traced(np.sin, y), y)


# -------------------------------------------------------- what complex numbers would have


@traces(np.real, np.real_if_close)
def _real(val: Any = None, a: Any = None) -> Node:
    return as_node(a if val is None else val)


@traces(np.imag)
def _imag(val: Any) -> Node:
    return traced(np.zeros_like, as_node(val))


@traces(np.angle)
def _angle(z: Any, deg: bool = False) -> Node:
    angle = traced(np.arctan2, 0, as_node(z))
    return traced(np.multiply, angle, 180 / np.pi) if deg else angle


@traces(np.isreal)
def _isreal(x: Any) -> Node:
    return traced(np.full, as_node(x).shape, True)


@traces(np.iscomplex)
def _iscomplex(x: Any) -> Node:
    return traced(np.full, as_node(x).shape, False)


# ------------------------------------------------------------------------------ along an axis


@traces(np.polyval)
def _polyval(p: Any, x: Any) -> Node:
    coefficients, point = as_node(p), as_node(x)
    result = traced(np.zeros_like, point)
    for k in range(coefficients.shape[0]):
        term = traced(np.take, coefficients, k)
        result = traced(np.add, traced(np.multiply, result, point), term)
    return result


@traces(np.vander)
def _vander(x: Any, N: Any = None, increasing: bool = False) -> Node:
    node = as_node(x)
    if len(node.shape) != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    columns = node.shape[0] if N is None else integer(N)
    dtype = np.promote_types(node.type.dtype, np.dtype(int))
    base = cast(node, dtype)
    powers = [traced(np.ones_like, base)]
    while len(powers) < columns:
        powers.append(traced(np.multiply, powers[-1], base))
    kept = powers[:columns] if increasing else powers[:columns][::-1]
    return traced(np.stack, kept, 1)


@traces(np.cov)
def _cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    dtype: Any = None,
) -> Node:
    if y is not None or dtype is not None:
        raise Unsupported("np.cov with y= or dtype= is not compiled", hint="stack the rows first")
    x = traced(np.atleast_2d, as_node(m))
    x = cast(x, result_type(x, constant(1.0)))
    if not rowvar and len(as_node(m).shape) != 1:
        x = traced(np.transpose, x)
    freedom = (0 if bias else 1) if ddof is None else integer(ddof)
    factor = max(x.shape[1] - freedom, 0)
    centred = traced(np.subtract, x, traced(np.mean, x, 1, keepdims=True))
    product = traced(np.dot, centred, traced(np.transpose, centred))
    scaled = traced(np.multiply, product, np.true_divide(1, factor))
    return traced(np.squeeze, scaled)


@traces(np.corrcoef)
def _corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> Node:
    c = _cov(x, y, rowvar, dtype=dtype)
    if not c.shape:
        return traced(np.divide, c, c)
    spread = traced(np.sqrt, traced(np.diag, c))
    c = traced(np.divide, c, traced(np.expand_dims, spread, 1))
    return traced(np.clip, traced(np.divide, c, spread), -1, 1)


# ---------------------------------------------------------- results whose shape depends on the data

REFUSED = {
    np.unique: "np.sort(x) keeps the shape",
    np.nonzero: "np.where(condition, x, y) keeps the shape",
    np.flatnonzero: "np.where(condition, x, y) keeps the shape",
    np.argwhere: "np.where(condition, x, y) keeps the shape",
    np.extract: "np.where(condition, x, 0) keeps the shape",
    np.compress: "np.where(condition, x, 0) keeps the shape",
    np.union1d: "np.isin(x, y) keeps the shape",
    np.intersect1d: "np.isin(x, y) keeps the shape",
    np.setdiff1d: "np.isin(x, y, invert=True) keeps the shape",
    np.setxor1d: "np.isin(x, y) keeps the shape",
    np.trim_zeros: "slice with bounds that are known",
}


def _refuse(function: Any, hint: str) -> None:
    @traces(function)
    def refuse(*args: Any, **kwargs: Any) -> Node:
        raise Unsupported(
            f"np.{function.__name__} gives an array whose shape depends on the data", hint=hint
        )


for _function, _hint in REFUSED.items():
    _refuse(_function, _hint)
