"""Library routines: which memory BLAS can read, and what the routines mean."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from nbcomp.loop.library import LIBRARY, gemm_layout


@pytest.mark.parametrize("shape", list(itertools.product([1, 2, 5], repeat=2)))
@pytest.mark.parametrize("strides", list(itertools.product([0, 1, 2, 5, 7, -1, -5], repeat=2)))
def test_a_layout_reaches_every_element(shape: tuple[int, int], strides: tuple[int, int]) -> None:
    found = gemm_layout(shape, strides)
    if found is None:
        return
    transposed, leading = found
    rows, columns = shape
    assert leading >= max(1, rows if transposed else columns)
    for i, j in np.ndindex(shape):
        place = j * leading + i if transposed else i * leading + j
        assert place == i * strides[0] + j * strides[1]


@pytest.mark.parametrize(
    ("shape", "strides", "layout"),
    [
        ((3, 4), (4, 1), (False, 4)),
        ((3, 4), (9, 1), (False, 9)),
        ((3, 4), (1, 3), (True, 3)),
        ((3, 4), (1, 8), (True, 8)),
        ((2, 3, 4), (99, 4, 1), (False, 4)),
        ((1, 4), (0, 1), (False, 4)),
        ((3, 1), (1, 0), (False, 1)),
        ((3, 4), (3, 1), None),  # rows overlap
        ((3, 4), (0, 1), None),  # broadcast
        ((3, 4), (-4, 1), None),
        ((3, 4), (8, 2), None),
        ((3, 4), (1 << 31, 1), None),
        ((3, 1 << 31), (1 << 31, 1), None),
    ],
)
def test_layouts(
    shape: tuple[int, ...], strides: tuple[int, ...], layout: tuple[bool, int] | None
) -> None:
    assert gemm_layout(shape, strides) == layout


def test_a_product_and_a_part_of_it(rng: np.random.Generator) -> None:
    routine = LIBRARY["blas.gemm"]
    a, b, out = rng.random((6, 3)), rng.random((3, 5)), np.full((6, 5), np.nan)
    routine.reference([out, a, b], {})
    np.testing.assert_allclose(out, a @ b)
    part = np.full((6, 5), np.nan)
    routine.reference(routine.part([part, a, b], [(2, 3), (1, 2)]), {})
    wanted = np.full((6, 5), np.nan)
    wanted[2:5, 1:3] = (a @ b)[2:5, 1:3]
    np.testing.assert_allclose(part, wanted)
