"""Matrix products of narrow numbers with wide sums: bytes with int32, bfloat16 with float32.

Instructions of today's CPUs do several such products at a time.  bfloat16, which NumPy lacks, is
its bits in uint16.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from nbcomp.graph.op import Contract, Elementwise, Sample, phantom
from nbcomp.loop.bfloat16 import UINT16, round_array, rounded, widen_array
from nbcomp.loop.grammar import Expr
from nbcomp.ops.contract import product_type
from nbcomp.types import FLOAT32, DType, TensorType

INT32: DType = np.dtype(np.int32)


@dataclass(frozen=True)
class NarrowMatMul(Contract, name="narrow_matmul"):
    """The matrix product of bytes, with int32 sums, or of bfloat16 bits, with float32 sums

    Operands: (..., m, k) of int8, uint8 or uint16, and (..., k, n) alike.  int32 wraps around, as
    NumPy's does.
    """

    narrow: ClassVar[bool] = True

    def infer(self, *types: TensorType) -> TensorType:
        total = FLOAT32 if types[0].dtype == UINT16 else INT32
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
