"""Products with the weights of layers, packed once: NumPy's answer for any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp import nn
from nbcomp.nn import functional as F
from nbcomp.options import Options
from nbcomp.pipeline import compile_for


class Block(nn.Module):
    """Two layers with what may follow a product."""

    def __init__(self, size: int, wide: int, dtype: Any) -> None:
        self.first = nn.Linear(size, wide, dtype=dtype)
        self.second = nn.Linear(wide, size, bias=False, dtype=dtype)

    def forward(self, x: Any) -> Any:
        return x + self.second(F.relu(self.first(x))) * 0.5


def packed(made: Any) -> int:
    return sum(n.op.name == "matmul_packed" for n in made.graph.nodes)


def close(got: Any, wanted: Any) -> bool:
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    bound = 1e-5 if wanted.dtype == np.float32 else 1e-13
    return bool(np.abs(got - wanted).max() <= bound * (1 + np.abs(wanted).max()))


@pytest.mark.parametrize("seed", range(14))
def test_drawn_sizes_are_numpys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, wide = int(rng.integers(40, 300)), int(rng.integers(110, 300))
    dtype = [np.float32, np.float64][seed % 2]
    rows = [(4,), (37,), (1, 60), (2, 3, 5), (1, 1, 9), (130,), (3, 64)][seed % 7]
    x = rng.standard_normal((*rows, size)).astype(dtype)
    if seed % 3 == 0:
        x = np.asfortranarray(x)
    model = Block(size, wide, dtype)
    made = nbcomp.compile(model, x)
    assert packed(made) == 2
    assert close(made(x), model(x))
    model.second.weight[...] *= 2
    assert close(made(x), model(x))


@pytest.mark.parametrize(("rows", "count"), [(1, 0), (3, 0), (4, 2), (1024, 2), (1025, 0)])
def test_it_is_for_some_rows(rows: int, count: int) -> None:
    model, x = Block(64, 96, np.float32), np.ones((rows, 64), np.float32)
    assert packed(nbcomp.compile(model, x)) == count


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("wide", [96, 113, 200])
def test_rows_that_differ_from_call_to_call(dtype: Any, wide: int) -> None:
    """Whole tiles of them, then smaller ones."""
    rng = np.random.default_rng(wide)
    model = Block(70, wide, dtype)
    spec = nbcomp.f32 if dtype == np.float32 else nbcomp.f64
    made = nbcomp.compile(model, spec["n", 70])
    assert packed(made) == 2
    for rows in (4, 5, 7, 8, 21, 64, 130, 1024):
        x = rng.standard_normal((rows, 70)).astype(dtype)
        assert close(made(x), model(x)), rows
    stack = nbcomp.compile(model, spec[2, "n", 70])
    for rows in (2, 3, 9, 50):
        x = rng.standard_normal((2, rows, 70)).astype(dtype)
        assert close(stack(x), model(x)), rows


def test_left_out_weights_are_read_as_they_are() -> None:
    model, x = Block(64, 96, np.float32), np.ones((8, 64), np.float32)
    made = compile_for("llvm", Options(without=frozenset({"pack_products"})))(model, x)
    assert not packed(made)
    assert close(made(x), model(x))


def test_arrays_that_are_no_parameters_are_read_as_they_are() -> None:
    x, w = np.ones((8, 64), np.float32), np.ones((96, 64), np.float32)
    assert not packed(nbcomp.compile(lambda x, w: F.linear(x, w), x, w))


def test_weights_that_two_layers_share_are_packed_once() -> None:
    model, x = Block(64, 96, np.float32), np.ones((8, 64), np.float32)
    model.second = nn.Linear(96, 64, bias=False)
    model.second.weight = nn.Parameter(np.ones((64, 96), np.float32))

    class Twice(nn.Module):
        def __init__(self) -> None:
            self.inner = model

        def forward(self, x: Any) -> Any:
            return self.inner(self.inner(x))

    outer = Twice()
    made = nbcomp.compile(outer, x)
    assert close(made(x), outer(x))
    made(x)
    assert len(made.plan.kept) == 2


def test_nan_and_infinity_are_numpys() -> None:
    model, x = Block(64, 96, np.float32), np.ones((8, 64), np.float32)
    x[1, 3], x[4, 0] = np.nan, np.inf
    got = nbcomp.compile(model, x)(x)
    assert np.array_equal(np.isnan(got), np.isnan(model(x)))
