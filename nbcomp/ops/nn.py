"""The nn dialect: activations, softmax, normalisations, attention, each one formula in NumPy's
words.

A formula is written over a namespace: run with `np` it is the operator's meaning, run with `NODES`
its expansion into simpler operators.  Results have the dtype NumPy gives the formula: float32 stays
float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nbcomp.graph.ir import Node, apply
from nbcomp.graph.op import Composite, Sample
from nbcomp.ops import values
from nbcomp.ops.elementary import Erf
from nbcomp.ops.operand import as_node, normal_axis, traced
from nbcomp.types import FLOAT32, FLOAT64, TensorType


class Nodes:
    """NumPy's functions over nodes: `NODES.exp(x)` is the node of `np.exp(x)`."""

    def __getattr__(self, name: str) -> Callable[..., Node]:
        function = getattr(np, name)
        return lambda *args, **kwargs: traced(function, *args, **kwargs)


NODES = Nodes()


@dataclass(frozen=True)
class Formula(Composite):
    """An operator defined by a formula over NumPy's functions."""

    dialect: ClassVar[str] = "nn"

    def formula(self, xp: Any, *x: Any) -> Any:
        """The result, by functions of the namespace `xp`."""
        raise NotImplementedError

    def reference(self, *arrays: Any) -> Any:
        return self.formula(np, *map(np.asarray, arrays))

    def expand(self, *inputs: Node) -> Node:
        result: Node = self.formula(NODES, *inputs)
        return result

    @classmethod
    def trace(cls, *args: Any, **attributes: Any) -> Node:
        """The operator with these attributes on these operands."""
        return apply(cls(**attributes), *map(as_node, args))


@dataclass(frozen=True)
class CheckedFormula(Formula):
    """A formula whose `infer` knows, in the words of layers, what is wrong with its operands."""

    def reference(self, *arrays: Any) -> Any:
        given = tuple(map(np.asarray, arrays))
        self.infer(*(TensorType(a.dtype, a.shape) for a in given))  # raises
        return self.formula(np, *given)


@dataclass(frozen=True)
class Activation(Formula):
    """A function of one number, applied to each element."""

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in (*values.FLOATS, np.dtype(np.int32)):
            yield Sample(cls(), (values.ordinary(rng, dtype, (37,)),), 8)
        for shape in values.SHAPES:
            yield Sample(cls(), (values.ordinary(rng, FLOAT32, shape),), 8)
        yield Sample(cls(), (np.array([0.0, -0.0, np.inf, np.nan, 100.0, -100.0], FLOAT32),), 8)


@dataclass(frozen=True)
class Relu(Activation, name="relu"):
    """max(x, 0)"""

    def formula(self, xp: Any, *x: Any) -> Any:
        return xp.maximum(x[0], 0)


@dataclass(frozen=True)
class LeakyRelu(Activation, name="leaky_relu"):
    """x for x > 0, slope · x below"""

    slope: float = 0.01

    def formula(self, xp: Any, *x: Any) -> Any:
        return xp.where(xp.greater(x[0], 0), x[0], xp.multiply(x[0], self.slope))


@dataclass(frozen=True)
class Elu(Activation, name="elu"):
    """x for x > 0, alpha · (e ** x - 1) below"""

    alpha: float = 1.0

    def formula(self, xp: Any, *x: Any) -> Any:
        low = xp.multiply(self.alpha, xp.expm1(xp.minimum(x[0], 0)))
        return xp.where(xp.greater(x[0], 0), x[0], low)


@dataclass(frozen=True)
class Sigmoid(Activation, name="sigmoid"):
    """1 / (1 + e ** -x)"""

    def formula(self, xp: Any, *x: Any) -> Any:
        return xp.divide(1, xp.add(1, xp.exp(xp.negative(x[0]))))


@dataclass(frozen=True)
class Silu(Activation, name="silu"):
    """x · sigmoid(x), also called swish"""

    def formula(self, xp: Any, *x: Any) -> Any:
        return xp.divide(x[0], xp.add(1, xp.exp(xp.negative(x[0]))))


@dataclass(frozen=True)
class Softplus(Activation, name="softplus"):
    """log(1 + e ** x)"""

    def formula(self, xp: Any, *x: Any) -> Any:
        return _softplus(xp, x[0])


@dataclass(frozen=True)
class Mish(Activation, name="mish"):
    """x · tanh(log(1 + e ** x))"""

    def formula(self, xp: Any, *x: Any) -> Any:
        return xp.multiply(x[0], xp.tanh(_softplus(xp, x[0])))


def _softplus(xp: Any, x: Any) -> Any:
    """log(1 + e ** x), in the precision of x; whole numbers become floats."""
    x = xp.multiply(x, 1.0)
    return xp.add(xp.maximum(x, 0), xp.log1p(xp.exp(xp.negative(xp.absolute(x)))))


@dataclass(frozen=True)
class HardSigmoid(Activation, name="hard_sigmoid"):
    """x / 6 + ½, kept between 0 and 1"""

    def formula(self, xp: Any, *x: Any) -> Any:
        return xp.clip(xp.add(xp.divide(x[0], 6), 0.5), 0, 1)


@dataclass(frozen=True)
class HardSwish(Activation, name="hard_swish"):
    """x · hard_sigmoid(x)"""

    def formula(self, xp: Any, *x: Any) -> Any:
        return xp.multiply(x[0], xp.clip(xp.add(xp.divide(x[0], 6), 0.5), 0, 1))


@dataclass(frozen=True)
class Gelu(Activation, name="gelu"):
    """x · Φ(x), Φ the normal distribution; or its approximation by tanh

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units, arXiv:1606.08415.
    """

    tanh: bool = False

    def formula(self, xp: Any, *x: Any) -> Any:
        half = xp.multiply(0.5, x[0])
        if not self.tanh:
            erf = Erf.trace if xp is NODES else Erf().reference
            return xp.multiply(half, xp.add(1, erf(xp.divide(x[0], math.sqrt(2)))))
        cube = xp.multiply(xp.multiply(x[0], x[0]), x[0])
        inner = xp.multiply(math.sqrt(2 / math.pi), xp.add(x[0], xp.multiply(0.044715, cube)))
        return xp.multiply(half, xp.add(1, xp.tanh(inner)))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for tanh in (False, True):
            for dtype in (*values.FLOATS, np.dtype(np.int32)):
                # 1 + tanh(x) cancels below: only there is the relative error larger.
                yield Sample(cls(tanh), (rng.uniform(-1, 4, 37).astype(dtype),), 16)


# ------------------------------------------------------------------------------- along one axis


@dataclass(frozen=True)
class AlongAxis(Formula):
    """A formula that reduces over one axis and keeps the shape."""

    axis: int = -1

    ulp: ClassVar[float] = 32

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in (*values.FLOATS, np.dtype(np.int32)):
            yield Sample(cls(), (values.ordinary(rng, dtype, (5, 37)),), cls.ulp)
        for axis, shape in ((0, (3,)), (0, (5, 7)), (1, (2, 3, 4)), (-1, (1, 1)), (-1, (0, 3))):
            yield Sample(cls(axis), (values.ordinary(rng, FLOAT32, shape),), cls.ulp)

    @classmethod
    def trace(cls, *args: Any, **attributes: Any) -> Node:
        x = as_node(args[0])
        axis = normal_axis(attributes.get("axis", -1), len(x.shape))
        return apply(cls(axis - len(x.shape)), x)


@dataclass(frozen=True)
class Softmax(AlongAxis, name="softmax"):
    """e ** x, divided by its sum along an axis"""

    def formula(self, xp: Any, *x: Any) -> Any:
        top = xp.max(x[0], axis=self.axis, keepdims=True)
        e = xp.exp(xp.subtract(x[0], top))
        return xp.divide(e, xp.sum(e, axis=self.axis, keepdims=True))


@dataclass(frozen=True)
class LogSoftmax(AlongAxis, name="log_softmax"):
    """The logarithm of softmax, without its underflow"""

    ulp: ClassVar[float] = 4096  # near 0 it is a difference of nearly equal numbers

    def formula(self, xp: Any, *x: Any) -> Any:
        top = xp.max(x[0], axis=self.axis, keepdims=True)
        shifted = xp.subtract(x[0], top)
        total = xp.sum(xp.exp(shifted), axis=self.axis, keepdims=True)
        return xp.subtract(shifted, xp.log(total))


@dataclass(frozen=True)
class LogSumExp(Formula, name="logsumexp"):
    """The logarithm of the sum of e ** x along an axis"""

    axis: int = -1
    keepdims: bool = False

    def formula(self, xp: Any, *x: Any) -> Any:
        top = xp.max(x[0], axis=self.axis, keepdims=True)
        top = xp.where(xp.isfinite(top), top, 0)
        total = xp.sum(xp.exp(xp.subtract(x[0], top)), axis=self.axis, keepdims=True)
        result = xp.add(xp.log(total), top)
        return result if self.keepdims else xp.squeeze(result, axis=self.axis)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in (*values.FLOATS, np.dtype(np.int32)):
            yield Sample(cls(), (values.ordinary(rng, dtype, (5, 37)),), 32)
        yield Sample(cls(0, True), (np.array([[-np.inf, np.inf, 1], [-np.inf, 0, np.nan]]),), 4)


# ----------------------------------------------------------------------------------- normalisations


def _affine(xp: Any, x: Any, rest: tuple[Any, ...]) -> Any:
    """x · weight + bias, as far as there are any."""
    for fn, operand in zip((xp.multiply, xp.add), rest, strict=False):
        x = fn(x, operand)
    return x


@dataclass(frozen=True)
class LayerNorm(Formula, name="layer_norm"):
    """(x - mean) / sqrt(variance + eps) over the last axes, times weight, plus bias

    Operands: x, then optionally weight and bias of the shape of those axes.
    Source: Ba, Kiros and Hinton, Layer Normalization, arXiv:1607.06450.
    """

    rank: int = 1  # how many axes are normalised together
    eps: float = 1e-5

    def formula(self, xp: Any, *x: Any) -> Any:
        axes = tuple(range(-self.rank, 0))
        distance = xp.subtract(x[0], xp.mean(x[0], axis=axes, keepdims=True))
        spread = xp.mean(xp.multiply(distance, distance), axis=axes, keepdims=True)
        return _affine(xp, xp.divide(distance, xp.sqrt(xp.add(spread, self.eps))), x[1:])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in (FLOAT32, FLOAT64):
            x = values.ordinary(rng, dtype, (5, 4, 37))
            w, b = values.ordinary(rng, dtype, (37,)), np.ones((37,), dtype)
            yield Sample(cls(), (x,), 1024)
            yield Sample(cls(), (x, w), 1024)
            yield Sample(cls(1, 0.5), (x, w, 100 * b), 64)
            yield Sample(cls(2), (x,), 1024)


@dataclass(frozen=True)
class RmsNorm(Formula, name="rms_norm"):
    """x / sqrt(mean square + eps) along the last axis, times weight

    Source: Zhang and Sennrich, Root Mean Square Layer Normalization, arXiv:1910.07467.
    """

    eps: float = 1e-5

    def formula(self, xp: Any, *x: Any) -> Any:
        size = xp.mean(xp.multiply(x[0], x[0]), axis=-1, keepdims=True)
        return _affine(xp, xp.divide(x[0], xp.sqrt(xp.add(size, self.eps))), x[1:])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in (FLOAT32, FLOAT64):
            x = values.ordinary(rng, dtype, (5, 37))
            yield Sample(cls(), (x,), 32)
            yield Sample(cls(1e-3), (x, values.ordinary(rng, dtype, (37,))), 32)


@dataclass(frozen=True)
class BatchNorm(Formula, name="batch_norm"):
    """(x - mean) / sqrt(variance + eps) · weight + bias with known statistics, per channel

    Operands: x of shape (batch, channels, ...), then mean, variance, weight, bias of shape
    (channels,).  own: the statistics are x's, whose mean may be large: it is taken off first.
    Others give a factor and a term for each channel (as in PyTorch's aten/src/ATen/native/cpu/
    batch_norm_kernel.cpp).
    """

    eps: float = 1e-5
    own: bool = False

    def formula(self, xp: Any, *x: Any) -> Any:
        column = (-1, *(1,) * (len(x[0].shape) - 2))
        mean, variance, weight, bias = (xp.reshape(v, column) for v in x[1:])
        scale = xp.divide(weight, xp.sqrt(xp.add(variance, self.eps)))
        if self.own:
            return xp.add(xp.multiply(xp.subtract(x[0], mean), scale), bias)
        return xp.add(xp.multiply(x[0], scale), xp.subtract(bias, xp.multiply(mean, scale)))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((5, 3), (2, 3, 4), (2, 3, 4, 5)):
            x = values.ordinary(rng, FLOAT32, shape)
            for own in (False, True):
                rest = (rng.uniform(0.5, 2, 3).astype(FLOAT32) for _ in range(4))
                yield Sample(cls(own=own), (x, *rest), 1024)


# ------------------------------------------------------------------------------------------- layers


@dataclass(frozen=True)
class Linear(Formula, name="linear"):
    """x @ weight.T + bias, with weight of shape (out, in) and an optional bias"""

    def formula(self, xp: Any, *x: Any) -> Any:
        rows = x[0]
        if len(rows.shape) > 2 and rows.shape[-2] == 1:  # single rows are those of one product
            product = xp.matmul(xp.squeeze(rows, axis=-2), xp.transpose(x[1]))
            product = xp.expand_dims(product, -2)
        else:
            product = xp.matmul(rows, xp.transpose(x[1]))
        return xp.add(product, x[2]) if len(x) > 2 else product

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((7,), (5, 7), (2, 3, 7), (3, 1, 7), (2, 3, 1, 7)):
            x, w = values.ordinary(rng, np.int8, shape), values.ordinary(rng, np.int8, (4, 7))
            yield Sample(cls(), (x.astype(FLOAT32), w.astype(FLOAT32)))
            yield Sample(cls(), (x.astype(FLOAT64), w.astype(FLOAT64), np.arange(4.0)))


@dataclass(frozen=True)
class Attention(Formula, name="attention"):
    """softmax(q kᵀ · scale + mask) v over the last two axes

    Operands: q (..., n, d), k (..., m, d), v (..., m, e) and optionally a mask added to the scores.
    scale: 1 / sqrt(d) if None.  causal: no query sees a later key.  The result of a query that sees
    no key (all its scores are -inf) is 0, as PyTorch has it.  Source: Vaswani et al.,
    Attention Is All You Need, arXiv:1706.03762.
    """

    scale: float | None = None
    causal: bool = False

    def formula(self, xp: Any, *x: Any) -> Any:
        q, k, v = x[:3]
        scale = 1 / math.sqrt(q.shape[-1]) if self.scale is None else self.scale
        scores = xp.multiply(xp.matmul(q, xp.swapaxes(k, -1, -2)), scale)
        if len(x) > 3:
            scores = xp.add(scores, x[3])
        if self.causal:
            seen = xp.tri(q.shape[-2], k.shape[-2], dtype=bool)
            scores = xp.where(seen, scores, -math.inf)
        top = xp.max(scores, axis=-1, keepdims=True)
        e = xp.exp(xp.subtract(scores, xp.where(xp.equal(top, -math.inf), 0, top)))
        total = xp.maximum(xp.sum(e, axis=-1, keepdims=True), 1)  # 1 or more, if a key is seen
        return xp.matmul(xp.divide(e, total), v)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for batch in ((), (2,), (2, 3)):
            shapes = ((*batch, 5, 8), (*batch, 7, 8), (*batch, 7, 4))
            arrays = tuple(rng.random(s).astype(FLOAT32) for s in shapes)
            yield Sample(cls(), arrays, 64)
            mask = np.where(np.tri(5, 7, 2), 0, -np.inf).astype(FLOAT32)
            yield Sample(cls(0.5), (*arrays, mask), 64)
            yield Sample(cls(None, True), arrays, 64)
            mask[1], mask[3, 2] = -np.inf, np.nan
            yield Sample(cls(), (*arrays, mask), 64)
