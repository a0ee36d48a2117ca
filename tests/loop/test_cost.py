"""Costs are rough, but their ratios and their limits are meant."""

from __future__ import annotations

import pytest

from nbcomp.loop.cost import extent_of, has_accumulate, of_body, of_expr, of_stmt
from nbcomp.loop.grammar import Apply, Call, Expr, If, affine
from nbcomp.types import FLOAT32, FLOAT64, INT64
from tests.kernels import add_to, apply, buffer, load, loop, number, store

x, y = buffer("x", (100,)), buffer("y", (100,), "output")
local = buffer("l", (100,), "local")


def test_a_copy_moves_each_byte_twice() -> None:
    cost = of_stmt(loop("i", 100, store(y, ("i",), load(x, "i"))))
    assert cost.bytes == 800
    wide = buffer("w", (100,), dtype=FLOAT64)
    assert of_expr(load(wide, "i")).bytes == 8


def test_locals_are_in_the_cache() -> None:
    cost = of_stmt(loop("i", 100, store(local, ("i",), load(local, "i"))))
    assert cost.bytes == 0
    assert cost.instructions == 200


def test_shared_expressions_count_once() -> None:
    e = apply("exp", load(x, "i"))
    assert of_expr(apply("add", e, e)).instructions == of_expr(e).instructions + 1
    deep: Expr = load(x, "i")
    for _ in range(60):
        deep = Apply(FLOAT32, "add", (deep, deep))
    assert of_expr(deep).instructions == 61


def test_transcendental_functions_are_dearer() -> None:
    of = {fn: of_expr(apply(fn, load(x, "i"))).instructions for fn in ("negative", "sqrt", "tanh")}
    assert of["negative"] < of["sqrt"] < of["tanh"]


def test_both_branches_and_all_iterations_count() -> None:
    body = store(y, (0,), number(1))
    branch = If(apply("less", load(x, 0), number(1)), (body,), (body, body))
    assert of_stmt(branch).bytes == 12
    assert of_body((loop("i", 3, body), loop("i", 5, body))).bytes == 32


def test_a_product_costs_a_quarter_instruction_per_multiply_add() -> None:
    a, b = buffer("a", (8, 16)), buffer("b", (16, 4))
    c = buffer("c", (8, 4), "output")
    assert of_stmt(Call("blas.gemm", (c, a, b), ((), (), ()))).instructions == 8 * 16 * 4 / 4


@pytest.mark.parametrize(
    ("extent", "n"),
    [
        (affine(7), 7),
        (Apply(INT64, "minimum", (affine(64), affine(100, b=-64))), 64),
        (Apply(INT64, "minimum", (affine(100, b=-64), affine(64))), 64),
        (Apply(INT64, "floor_divide", (affine(9, i=1), affine(4))), 4),
        (affine(3, i=1), 3),
    ],
    ids=str,
)
def test_extents_that_vary_are_bounded(extent: Expr, n: int) -> None:
    assert extent_of(loop("r", extent)) == n


def test_has_accumulate() -> None:
    assert has_accumulate((loop("i", 3, add_to(y, (0,), number(1))),))
    assert not has_accumulate((loop("i", 3, store(y, (0,), number(1))),))
