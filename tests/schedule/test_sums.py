"""Sums of products within larger loops, in tiles: the step, and when the default takes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.errors import ScheduleError
from nbcomp.loop.grammar import Accumulate, Alloc, For, Kernel, walk
from nbcomp.loop.verifier import verify
from nbcomp.machine import host
from nbcomp.schedule import steps
from nbcomp.schedule.sums import block_sums, nests
from tests.kernels import apply, buffer, index, kernel, load, loop, number, store
from tests.schedule.programs import Golden, check, matmul, row_sums


def windows(rows: int = 9, columns: int = 70, taps: int = 3) -> Kernel:
    """out[g, o, x] = Σ w[o, c, k] * image[g, c, x + k], the sums in loops of two kinds."""
    image = buffer("image", (2, 4, columns + taps))
    w, out = buffer("w", (rows, 4, taps + 1)), buffer("out", (2, rows, columns), "output")
    total = buffer("total", (), "local")

    def add(tap: object, place: object) -> Accumulate:
        term = apply("multiply", load(w, "o", "c", tap), load(image, "g", "c", place))
        return Accumulate(total, (), "add", term, contract=True)

    body = (
        Alloc(total),
        store(total, (), number(0.0)),
        loop("c", 4, loop("k", taps, add("k", index(0, k=1, x=1))), add(taps, "x")),
        store(out, ("g", "o", "x"), load(total)),
    )
    return kernel(loop("g", 2, loop("o", rows, loop("x", columns, *body))), buffers=[image, w, out])


def test_tile_sums(golden: Golden) -> None:
    made = check(matmul(), lambda k: steps.tile_sums(k, "i", "j"), golden)
    inner = next(s for s in walk(made.stages) if isinstance(s, For) and s.var == "k")
    assert [s.var[0] for s in walk((inner,)) if isinstance(s, For)] == ["k", "i", "j"]


def test_sums_may_be_nested_in_any_way() -> None:
    made = check(windows(), lambda k: steps.tile_sums(k, "o", "x"))
    sums = [s for s in walk(made.stages) if isinstance(s, Accumulate)]
    assert len(sums) == 2
    assert all(len(s.indices) == 2 for s in sums)


def test_what_is_no_tile_is_refused() -> None:
    with pytest.raises(ScheduleError, match="not the only statement"):
        steps.tile_sums(row_sums(), "i", "r")
    with pytest.raises(ScheduleError, match="give the loops"):
        steps.tile_sums(matmul())


@pytest.mark.parametrize(("rows", "columns"), [(9, 70), (8, 48), (1, 20), (25, 7), (48, 100)])
def test_the_default_tiles_cover_everything(rows: int, columns: int) -> None:
    made = check(windows(rows, columns), lambda k: block_sums(k, host()))
    assert any(note.startswith("tile_sums") for note in made.notes)
    assert not list(nests(made))
    verify(made)


def test_other_sums_are_left_alone() -> None:
    plain = row_sums()
    assert block_sums(plain, host()) is plain


def test_arrays_without_columns() -> None:
    def f(x: Any) -> Any:
        kept = np.clip(x[:, :, 1::3, 0:0], -1, 2)
        return np.all(np.squeeze(kept), axis=-3), np.add(kept, np.prod(kept, keepdims=True))

    x = np.ones((13, 5, 3, 1))
    for got, wanted in zip(nbcomp.compile(f, x)(x), f(x), strict=True):
        assert got.shape == wanted.shape
