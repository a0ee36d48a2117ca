"""Who computes a product: what the model says, what is recorded, and how either is forced."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.graph.op import Contract
from nbcomp.graph.passes import product_cost
from nbcomp.graph.passes.product_cost import Product
from nbcomp.loop.grammar import Call, walk
from nbcomp.machine import Machine

WIDE = Machine("m", 64, 2, 32 << 10, 1 << 20, 32 << 20)

# Measured by `python -m benchmarks.products` on a CPU with AVX-512: whether loops were faster.
FASTER = {
    Product(1, 512, 512, 512, 4): True,
    Product(1, 2048, 2048, 2048, 4): True,
    Product(1, 2048, 2048, 2048, 8): True,
    Product(1, 4, 1024, 1024, 4): True,
    Product(1, 1, 1024, 1024, 4): True,
    Product(1, 1, 256, 256, 4): False,
    Product(1, 8, 256, 256, 4, turned=True): True,
    Product(1, 64, 256, 10, 8): False,
    Product(8, 512, 512, 64, 4): True,
}


@pytest.mark.parametrize("product", FASTER, ids=str)
def test_the_model_says_what_was_measured(product: Product) -> None:
    own, library = product_cost.generated(product, WIDE), product_cost.blas(product, WIDE)
    assert (own <= library) == FASTER[product]


def test_what_follows_costs_more_after_a_library() -> None:
    product = Product(1, 2048, 2048, 2048, 8)
    followed = replace(product, follows=True)
    assert product_cost.blas(followed, WIDE) > product_cost.blas(product, WIDE)
    assert product_cost.generated(followed, WIDE) == product_cost.generated(product, WIDE)


def test_more_work_never_costs_less() -> None:
    for model in (product_cost.generated, product_cost.blas):
        for turned in (False, True):
            costs = [model(Product(1, 64, n, 640, 4, turned), WIDE) for n in (16, 64, 256, 1024)]
            assert costs == sorted(costs)


def calls(compiled: Any) -> int:
    return sum(isinstance(s, Call) for k in compiled.kernels for s in walk(k.kernel.stages))


def test_either_can_be_forced_and_the_answer_is_the_same() -> None:
    rng = np.random.default_rng(3)
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in ((64, 96), (96, 80), (80,)))

    def layer(x: Any, w: Any, b: Any) -> Any:
        return np.maximum(x @ w + b, 0)

    wanted = layer(x, w, b)
    for without, there in ((set(), 0), ({"generate"}, 1), ({"blas"}, 0)):
        made = nbcomp.compile_for("llvm", nbcomp.Options(without=without))(layer, x, w, b)
        assert calls(made) == there
        # Sums in another order differ by at most 2·inner·eps·Σ|a·b| (Higham, section 3.5).
        bound = 2 * 96 * np.finfo(np.float32).eps * (np.abs(x) @ np.abs(w)).max()
        np.testing.assert_allclose(made(x, w, b), wanted, rtol=0, atol=bound)


def test_the_decision_is_a_remark_with_the_figures() -> None:
    compiled = nbcomp.compile(lambda a, b: a @ b, np.ones((40, 50)), np.ones((50, 60)))
    (reason,) = (r.reason for r in compiled.explain() if r.topic in ("loops", "library"))
    assert "float64 product" in reason
    assert reason.count("µs") == 2


def test_rows_by_a_turned_matrix_are_dot_products() -> None:
    options = nbcomp.Options(without={"blas"})
    made = nbcomp.compile_for("llvm", options)(
        lambda a, b: a @ b.T, np.ones((1, 300)), np.ones((200, 300))
    )
    assert [n.op.generated for n in made.graph.nodes if isinstance(n.op, Contract)] == [True]


@pytest.mark.parametrize("shape", [(3, 5, 4), (40, 70, 33), (9, 300, 20), (1, 64, 12)])
def test_not_a_number_and_infinity_go_through_every_product(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    rng = np.random.default_rng(k)
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    a[m // 2, k // 3], b[k // 2, n // 2], a[0, 0] = np.nan, np.inf, -np.inf
    for function in (lambda a, b: a @ b, lambda a, b: a @ np.ascontiguousarray(b.T).T):
        for without in ({"generate"}, {"blas"}):
            with np.errstate(all="ignore"):
                made = nbcomp.compile_for("llvm", nbcomp.Options(without=without))(function, a, b)
                got, wanted = made(a, b), function(a, b)
            np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: (a @ a).T,
        lambda a: (a @ a + 1).T * 2,
        lambda a: (lambda p: p.T + p)(a @ a),
        lambda a: (a @ a)[::-1],
        lambda a: (a @ a)[:, 1:] * 3,
        lambda a: np.maximum(a @ a, 0) + a,
        lambda a: (a @ a)[None] + a,
    ],
)
@pytest.mark.parametrize("n", [3, 4, 17])
def test_what_follows_a_product_in_another_order(function: Any, n: int) -> None:
    a = np.arange(float(n * n)).reshape(n, n)
    np.testing.assert_allclose(nbcomp.compile(function, a)(a), function(a))


def test_products_within_attention_are_not_said_to_be_others(rng: np.random.Generator) -> None:
    """What computes them is the attention's kernel, whatever had been chosen before."""

    def attention(q: Any, k: Any, v: Any) -> Any:
        weights = np.exp(q @ k.swapaxes(-1, -2))
        return (weights / weights.sum(axis=-1, keepdims=True)) @ v + (q @ q.swapaxes(-1, -2))[:, :1]

    arrays = [rng.standard_normal((64, 64)).astype(np.float32) for _ in range(3)]
    found = nbcomp.compile(attention, *arrays).trace.remarks
    assert [r for r in found if r.topic == "attention" and r.kind == "applied"]
    said = [r for r in found if r.topic in ("library", "loops")]
    assert len(said) == 1
    assert said[0].location is not None
    assert said[0].location.source() == "q @ q.swapaxes(-1, -2)"
