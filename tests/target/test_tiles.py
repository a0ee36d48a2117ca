"""Rows of a tile of any width stay in registers: their loops are written out."""

from __future__ import annotations

import pytest

from nbcomp.loop.grammar import Kernel
from nbcomp.schedule import steps
from nbcomp.target.llvm.codegen import generate
from tests.schedule.programs import check, matmul


@pytest.mark.parametrize("vectors", [1, 3, 4, 5, 6, 8])
@pytest.mark.parametrize("short", [0, 3])
def test_a_row_of_a_tile_is_one_round(vectors: int, short: int) -> None:
    def tile(k: Kernel) -> Kernel:
        k = steps.reorder(steps.distribute(k, "j"), "k", "j_2")
        for loop in ("j", "j_2", "j_3"):
            k = steps.interleave(steps.vectorize(k, loop), loop, vectors)
        return k

    made = check(matmul(2, 16 * vectors - short), tile)
    text = generate(made, 64).text
    assert "urem i64" not in text  # of an extent that is a parameter
    assert "and i64" not in text
