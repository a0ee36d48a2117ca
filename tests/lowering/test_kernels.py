"""The loops of each kind of group: one golden text each, and the interpreter's answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nbcomp.graph.op import REGISTRY, Library
from nbcomp.levels import levels
from nbcomp.loop.grammar import Call, Kernel
from nbcomp.loop.verifier import verify
from nbcomp.lowering.program import KernelStep, Program
from nbcomp.options import Options
from nbcomp.pipeline import compile_for
from tests.one_graph import compile_graph, graph_of
from tests.programs import lowered, text

Golden = Callable[..., None]


def kernels(program: Program) -> list[Kernel]:
    """The kernels of a program, verified."""
    return [verify(s.kernel) for s in program.steps if isinstance(s, KernelStep)]


def check(
    function: Callable[..., Any],
    *args: Any,
    golden: Golden | None = None,
    rtol: float = 1e-12,
    calls: bool = False,
) -> list[Kernel]:
    """The kernels; the loop interpreter and the machine code agree with NumPy.

    calls: products are calls of BLAS.
    """
    options = Options(without=frozenset({"generate"} if calls else ()))
    wanted = function(*args)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for level, run in levels(compile_for("llvm", options)(function, *args)):
        got = run(*args)
        for a, b in zip(got if isinstance(got, tuple) else (got,), wanted, strict=True):
            assert a.dtype == b.dtype, level
            np.testing.assert_allclose(a, b, rtol=rtol, err_msg=level)
    made = kernels(lowered(function, *args, calls=calls))
    if golden is not None:
        golden("\n\n".join(text(k) for k in made))
    return made


# ------------------------------------------------------------------------------------------- maps


def test_map(golden: Golden, rng: np.random.Generator) -> None:
    def f(x: Any, y: Any) -> Any:
        h = np.exp(x) * y
        return h + h.T.T, h > 0.5

    check(f, rng.random((4, 5)), rng.random((4, 1)), golden=golden)


def test_map_of_one_element(rng: np.random.Generator) -> None:
    (k,) = check(lambda x: np.sqrt(x + 1), rng.random(()))
    assert "for" not in str(k)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (1, 1), (1,), (2, 1, 3)])
def test_maps_of_odd_shapes(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    check(lambda x: np.exp(x) + x[..., :1], rng.random(shape))


def test_views_are_index_arithmetic(golden: Golden, rng: np.random.Generator) -> None:
    def f(x: Any) -> Any:
        return x[::-2, 1:][:, None].T * 2 + np.broadcast_to(x[0, 0], (1,))

    check(f, rng.random((6, 5)), golden=golden)


def test_components(golden: Golden, rng: np.random.Generator) -> None:
    def f(p: Any) -> Any:
        return p / np.sqrt((p * p).sum(axis=1, keepdims=True))

    check(f, rng.random((7, 3)), golden=golden)


def test_indices_as_values(golden: Golden) -> None:
    check(lambda x: x + np.arange(5) * 2 + np.eye(5)[1], np.ones(5), golden=golden)


# ----------------------------------------------------------------------------------------- pieces


def test_pieces(golden: Golden, rng: np.random.Generator) -> None:
    def f(x: Any) -> Any:
        y = np.exp(x)
        y[1:-1, ::2] = 0.5 * (x[2:, ::2] + x[:-2, ::2])
        return y

    check(f, rng.random((5, 6)), golden=golden)


def test_pieces_that_are_empty(rng: np.random.Generator) -> None:
    check(lambda x: np.concatenate([x, x[:0], np.exp(x)]), rng.random((3, 2)))
    check(lambda x: np.pad(x, 0), rng.random((3, 2)))


# ----------------------------------------------------------------------------------------- products


def test_a_product_is_finished_in_place(golden: Golden, rng: np.random.Generator) -> None:
    def f(x: Any, w: Any, b: Any) -> Any:
        return np.maximum(x @ w + b, 0)

    check(f, rng.random((4, 3)), rng.random((3, 5)), rng.random(5), golden=golden, calls=True)


def test_a_product_that_is_read_turned_has_its_own_memory(rng: np.random.Generator) -> None:
    (k,) = check(lambda x: np.exp(x @ x).T + 1, rng.random((4, 4)), calls=True)
    (k,) = check(lambda x: (x @ x) + (x @ x).T, rng.random((4, 4)), calls=True)
    assert any(b.role == "temp" for b in k.buffers)


def test_a_product_before_a_reduction(golden: Golden, rng: np.random.Generator) -> None:
    def f(x: Any, w: Any) -> Any:
        z = x @ w
        return z / z.sum(axis=1, keepdims=True)

    check(f, rng.random((4, 3)), rng.random((3, 5)), golden=golden, calls=True)


@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 0), (0, 4)),
        ((0, 3), (3, 4)),
        ((3, 4), (4, 0)),
        ((2, 3, 4), (4, 5)),
        ((2, 1, 3, 4), (5, 4, 2)),
    ],
)
def test_products_of_odd_shapes(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], rng: np.random.Generator
) -> None:
    check(lambda a, b: np.tanh(a @ b), *(rng.random(s) for s in shapes))


@pytest.mark.parametrize(
    "view", [lambda a: a.T, lambda a: a[::-1], lambda a: a[:, ::-1], lambda a: a[::2, ::2]]
)
def test_products_of_views(view: Callable[[Any], Any], rng: np.random.Generator) -> None:
    check(lambda a, b: view(a) @ view(b), rng.random((6, 6)), rng.random((6, 6)))


# ------------------------------------------------------------------------------------- reductions


def test_rows_with_what_is_kept(golden: Golden, rng: np.random.Generator) -> None:
    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    check(softmax, rng.random((3, 7)), golden=golden)


def test_rows_that_are_results_are_kept_there(golden: Golden, rng: np.random.Generator) -> None:
    def f(x: Any) -> Any:
        e = np.exp(x)
        return e, e / e.sum(axis=1, keepdims=True)

    check(f, rng.random((3, 7)), golden=golden)


def test_cheap_rows_are_computed_again(golden: Golden, rng: np.random.Generator) -> None:
    check(lambda x: x / x.sum(axis=1, keepdims=True), rng.random((3, 7)), golden=golden)


def test_long_rows_are_added_up_in_blocks(golden: Golden, rng: np.random.Generator) -> None:
    x = rng.random((70, 5000))
    check(lambda x: x.sum(axis=1) + 1, x[:2])
    golden("\n\n".join(text(k) for k in kernels(lowered(lambda x: x.sum(axis=1) + 1, x))))


def test_a_sum_of_everything_has_two_levels(golden: Golden, rng: np.random.Generator) -> None:
    def f(x: Any) -> Any:
        return np.sqrt((x * x).sum()), x.max()

    x = rng.random((1 << 16) + 3)
    check(f, x, golden=golden)
    many = kernels(lowered(f, np.zeros(1 << 20)))
    assert any("groups" in b.name for k in many for b in k.buffers)


def test_columns(golden: Golden, rng: np.random.Generator) -> None:
    check(lambda x: x.sum(axis=0) / 7, rng.random((7, 9)), golden=golden)


def test_columns_of_several_axes(golden: Golden, rng: np.random.Generator) -> None:
    check(lambda x: x.max(axis=(0, 2)), rng.random((3, 4, 5, 6)), golden=golden)


def test_columns_in_blocks_of_rows(golden: Golden, rng: np.random.Generator) -> None:
    check(lambda x: x.sum(axis=0), rng.random((643, 90)), golden=golden)


@pytest.mark.parametrize("rows", [(3, 70), (70, 3), (3, 7, 5), (9, 8), (7, 70), (2, 2, 70)])
def test_columns_whose_rows_have_several_axes(
    rows: tuple[int, ...], rng: np.random.Generator
) -> None:
    x = rng.random((*rows, 700))
    axes = tuple(range(len(rows)))
    program = lowered(lambda x: x.sum(axis=axes), x)
    kernels(program)
    got = compile_for("llvm")(lambda x: x.sum(axis=axes), x)(x)
    np.testing.assert_allclose(got, x.sum(axis=axes), rtol=1e-13)


def test_columns_too_wide_for_the_cache(golden: Golden) -> None:
    golden("\n\n".join(text(k) for k in kernels(lowered(lambda x: x.sum(axis=0), wide()))))


def wide() -> Any:
    return np.zeros((9, 3, 1500))


def test_accumulators_fit_the_stack(rng: np.random.Generator) -> None:
    for shape in ((9, 3, 1500), (9, 300, 7), (5, 2, 3, 2000), (5, 2000, 2, 3)):
        for k in kernels(lowered(lambda x: x.sum(axis=0), np.zeros(shape))):
            kept = [s.buffer for s in _allocs(k)]
            assert all(b.nbytes <= 64 << 10 for b in kept)
        check(lambda x: x.sum(axis=0), rng.random(shape))


def _allocs(k: Kernel) -> list[Any]:
    from nbcomp.loop.grammar import Alloc, walk

    return [s for s in walk(k.stages) if isinstance(s, Alloc)]


def test_short_rows_are_added_up_at_once(golden: Golden, rng: np.random.Generator) -> None:
    check(
        lambda p, w: (w[:, None] * p).sum(axis=0),
        rng.random((70, 3)),
        rng.random(70),
        golden=golden,
    )


def test_pairwise(golden: Golden, rng: np.random.Generator) -> None:
    def forces(p: Any, m: Any) -> Any:
        d = p[None, :, :] - p[:, None, :]
        r2 = (d * d).sum(axis=2) + 0.01
        return (d * (m / (r2 * np.sqrt(r2)))[:, :, None]).sum(axis=1)

    check(forces, rng.random((6, 3)), rng.random(6), golden=golden)


@pytest.mark.parametrize("axis", [0, 1, 2, (0, 1), (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(
    "shape", [(5, 6, 7), (1, 6, 7), (5, 1, 7), (5, 6, 1), (0, 6, 7), (5, 0, 7)]
)
def test_every_axis(
    shape: tuple[int, ...], keepdims: bool, axis: Any, rng: np.random.Generator
) -> None:
    def f(x: Any) -> Any:
        return x.sum(axis=axis, keepdims=keepdims) * 2, np.exp(x).prod(axis=axis)

    check(f, rng.random(shape))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
def test_any_order_of_memory(order: tuple[int, ...], rng: np.random.Generator) -> None:
    x = rng.random((5, 8, 9)).transpose(order)
    for axis in range(3):
        check(lambda x, axis=axis: x.sum(axis=axis), x)
        check(lambda x, axis=axis: x / x.max(axis=axis, keepdims=True), x[::-1, :, ::2])


# ------------------------------------------------------------------------------------ all operators


@pytest.mark.parametrize(
    "name", sorted(n for n, o in REGISTRY.items() if not issubclass(o, Library))
)
def test_operators_make_well_formed_kernels(name: str) -> None:
    for sample in list(REGISTRY[name].samples(np.random.default_rng(3)))[:4]:
        arrays = [np.asarray(a) for a in sample.arrays]
        for snapshot in compile_graph(graph_of(sample.op, arrays), arrays).trace.snapshots:
            if isinstance(snapshot.value, Kernel):
                verify(snapshot.value)


def test_a_batch_that_shares_its_right_operand_is_one_product() -> None:
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((6, 3, 5)).astype(np.float32), rng.standard_normal((5, 4))
    w = w.astype(np.float32)
    for array, calls in ((x, 1), (np.asfortranarray(x), 1), (x[:, ::2], 0)):
        build = compile_for("llvm", Options(without=frozenset({"generate"})))
        made = build(lambda x, w: np.tanh(x @ w), array, w)
        np.testing.assert_allclose(made(array, w), np.tanh(array @ w), rtol=1e-5)
        whole = [s for k in made.kernels for s in k.kernel.stages if isinstance(s, Call)]
        assert len(whole) == calls
        assert all(c.buffers[0].shape == (18, 4) for c in whole)
