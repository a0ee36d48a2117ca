"""The largest elements: `topk`, by sorting, until a target has a selection of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbcomp.graph.op import Sample
from nbcomp.ops import values
from nbcomp.ops.index import index
from nbcomp.ops.nn import NODES, CheckedFormula
from nbcomp.types import FLOAT32, INT64, TensorType


@dataclass(frozen=True)
class TopK(CheckedFormula, name="topk"):
    """The places of the k largest (or smallest) elements along an axis, in order

    Of equal elements the first comes first; NaN counts as larger than all numbers.
    """

    k: int
    axis: int = -1
    largest: bool = True

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        axis = np.lib.array_utils.normalize_axis_index(self.axis, x.ndim)
        if not 0 <= self.k <= x.shape[axis]:
            raise ValueError(f"there are no {self.k} elements along axis {self.axis} of {x}")
        return TensorType(INT64, (*x.shape[:axis], self.k, *x.shape[axis + 1 :]))

    def formula(self, xp: Any, *x: Any) -> Any:
        axis = self.axis % len(x[0].shape)
        if self.largest:  # turned round, a stable sort puts the first of equals last
            turned = xp.argsort(xp.flip(x[0], axis), axis=axis, kind="stable")
            order = xp.subtract(x[0].shape[axis] - 1, xp.flip(turned, axis))
        else:
            order = xp.argsort(x[0], axis=axis, kind="stable")
        key = (slice(None),) * axis + (slice(self.k),)
        return index(order, key) if xp is NODES else order[key]

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Sample]:
        for dtype in values.DTYPES:
            yield Sample(cls(2, 0), (values.mixed(rng, dtype),))
        x = rng.integers(0, 5, (4, 9)).astype(FLOAT32)
        x[1, 3] = np.nan
        for largest in (True, False):
            yield Sample(cls(3, -1, largest), (x,))
            yield Sample(cls(4, 0, largest), (x,))
        yield Sample(cls(0), (x,))
