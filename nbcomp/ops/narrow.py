"""Matrix products of narrow numbers with wide sums: bytes with int32, bfloat16 with float32.

Instructions of today's CPUs do several such products at a time, of terms that lie side by side: so
weights are packed.  bfloat16, which NumPy lacks, is its bits in uint16.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from nbcomp.graph.ir import Node, apply
from nbcomp.graph.op import Contract, Elementwise, Library, Sample, phantom
from nbcomp.loop.bfloat16 import UINT16, round_array, rounded, widen_array
from nbcomp.loop.grammar import Expr
from nbcomp.ops.channels_last import WindowsLast, block_of
from nbcomp.ops.contract import product_type
from nbcomp.types import FLOAT32, DType, TensorType

INT8: DType = np.dtype(np.int8)
INT32: DType = np.dtype(np.int32)
SUM = 4  # bytes of a sum, and of the group of terms that an instruction adds to it
SHIFT = 128  # between the values of a byte with a sign and one without


def sums_of(factor: TensorType) -> DType:
    """The dtype in which products of a narrow operand are added up."""
    return FLOAT32 if factor.dtype == UINT16 else INT32


@dataclass(frozen=True)
class NarrowMatMul(Contract, name="narrow_matmul"):
    """The matrix product of bytes, with int32 sums, or of bfloat16 bits, with float32 sums

    Operands: (..., m, k) of int8, uint8 or uint16, and (..., k, n) alike.  int32 wraps around, as
    NumPy's does.
    """

    narrow: ClassVar[bool] = True

    def infer(self, *types: TensorType) -> TensorType:
        total = sums_of(types[0])
        return product_type(*(replace(t, dtype=total) for t in types))

    def reference(self, *arrays: Any) -> Any:
        if arrays[0].dtype == UINT16:
            return np.matmul(*map(widen_array, arrays))
        return np.matmul(*(a.astype(INT32) for a in arrays))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for left, right in (("u1", "i1"), ("i1", "u1"), ("i1", "i1"), ("u1", "u1")):
            shapes = ((5, 8), (8, 33))
            pair = (rng.integers(0, 256, s).astype(d) for s, d in zip(shapes, (left, right)))  # noqa: B905
            yield Sample(cls(generated=True), tuple(pair))
        floats = (round_array(rng.standard_normal(s)) for s in ((2, 5, 6), (6, 17)))
        yield Sample(cls(generated=True), tuple(floats), 256)


@dataclass(frozen=True)
class ToBfloat16(Elementwise, name="to_bfloat16"):
    """The bits of the bfloat16 nearest to a float32, ties to even"""

    cost: ClassVar[int] = 6

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(UINT16, phantom(types[0]).shape)

    def reference(self, *arrays: Any) -> Any:
        return round_array(arrays[0])

    def scalar(self, *args: Expr) -> Expr:
        return rounded(args[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3.4e38, 1e-40, 1.00390625])
        ties = np.arange(1, 40, dtype=np.uint32)[:, None] * np.uint32(0x8000) + np.uint32(
            0x3F800000
        )
        scaled = rng.standard_normal(100) * 10.0 ** rng.integers(-9, 9, 100)
        for values in (special, scaled, ties.view(np.float32)):
            yield Sample(cls(), (values.astype(np.float32),))


@dataclass(frozen=True)
class PackGroups(Library, name="pack_groups"):
    """Weights (out, terms) as (blocks, groups, block, group): the terms of a group side by side

    What is left over is filled up with zeros.  form: "round" gives the bits of bfloat16 for
    float32, "flip" bytes with a sign, 128 less, for those without.
    """

    block: int
    form: str = ""

    kept: ClassVar[bool] = True

    def narrow(self, dtype: DType) -> DType:
        """The dtype of what is packed."""
        return {"round": UINT16, "flip": INT8}.get(self.form, dtype)

    def infer(self, *types: TensorType) -> TensorType:
        (w,) = types
        dtype = self.narrow(w.dtype)
        (out, terms), group = w.shape, SUM // dtype.itemsize
        return TensorType(dtype, (-(-out // self.block), -(-terms // group), self.block, group))

    def reference(self, *arrays: Any) -> Any:
        weight = np.asarray(arrays[0])
        blocks, groups, block, group = self.infer(TensorType(weight.dtype, weight.shape)).shape
        if self.form == "round":
            weight = round_array(weight)
        elif self.form == "flip":
            weight = (weight ^ np.uint8(SHIFT)).view(np.int8)
        padded = np.zeros((blocks * block, groups * group), weight.dtype)
        padded[: weight.shape[0], : weight.shape[1]] = weight
        rows = padded.reshape(blocks, block, groups, group)
        return np.ascontiguousarray(rows.transpose(0, 2, 1, 3))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for form, dtype in (("", "i1"), ("", "u2"), ("round", "f4"), ("flip", "u1")):
            for block, shape in ((4, (8, 12)), (16, (5, 9)), (3, (7, 3))):
                yield Sample(cls(block, form), (rng.integers(0, 100, shape).astype(dtype),))


@dataclass(frozen=True)
class RowSums(Library, name="row_sums"):
    """The sum of each row of bytes, as int32"""

    kept: ClassVar[bool] = True

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(INT32, types[0].shape[:1])

    def reference(self, *arrays: Any) -> Any:
        return np.asarray(arrays[0]).sum(axis=1, dtype=INT32)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((5, 70), (1, 1), (3, 0), (17, 64)):
            yield Sample(cls(), (rng.integers(-128, 128, shape).astype(INT8),))


@dataclass(frozen=True)
class NarrowPacked(WindowsLast, name="narrow_matmul_packed"):
    """x @ weight.T over the last axis of narrow numbers, with weights packed by `pack_groups`"""

    channels: int = 0  # of the result
    narrow: ClassVar[bool] = True

    @classmethod
    def packing(cls, x: Node, weight: Node, form: str) -> Node:
        """x @ weight.T, weights packed for it."""
        channels, terms = weight.shape
        groups = -(-terms // (SUM // x.type.dtype.itemsize))
        packed = apply(PackGroups(block_of(channels, groups, SUM, groups), form), weight)
        return apply(cls((), (), (), (), 1, channels), x, packed)

    def infer(self, *types: TensorType) -> TensorType:
        x, packed = types
        blocks, groups, block, group = packed.shape
        if x.shape[-1] != groups * group or blocks != -(-self.channels // block):
            raise ValueError(f"packed weights {packed} do not fit {x}")
        return TensorType(sums_of(x), (*x.shape[:-1], self.channels))

    def reference(self, *arrays: Any) -> Any:
        x, packed = map(np.asarray, arrays)
        blocks, groups, block, group = packed.shape
        weight = packed.transpose(0, 2, 1, 3).reshape(blocks * block, groups * group)
        return NarrowMatMul().reference(x, weight[: self.channels].T)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for left, right in (("u1", "i1"), ("i1", "u1"), ("u2", "u2")):
            for shape, channels, block in (
                ((5, 8), 40, 32),
                ((2, 3, 20), 24, 24),
                ((9, 4), 10, 16),
            ):
                pair = [rng.integers(0, 256, s) for s in (shape, (channels, shape[-1]))]
                if left == "u2":
                    pair = [round_array((p - 128).astype(FLOAT32)) for p in pair]
                x, weight = (p.astype(d) for p, d in zip(pair, (left, right), strict=True))
                yield Sample(
                    cls((), (), (), (), 1, channels), (x, PackGroups(block).reference(weight))
                )
