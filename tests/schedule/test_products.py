"""Generated matrix products: right for every shape, in register tiles, fused with what follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import nbcomp
from nbcomp.levels import levels
from nbcomp.loop.grammar import Affine, Call, For, Kernel, affine, walk
from nbcomp.loop.lanes import lanes_of
from nbcomp.machine import Machine, host
from nbcomp.schedule import walks
from nbcomp.schedule.blocking import Blocker
from nbcomp.schedule.blocks import Blocking
from nbcomp.schedule.finding import product_of
from nbcomp.schedule.products import block_products
from nbcomp.schedule.rewriting import substitute
from nbcomp.schedule.walks import blocking_for
from nbcomp.target.llvm.codegen import generate
from tests.kernels import Array
from tests.schedule.programs import Golden, check, matmul, two_stages

MACHINES = [Machine("m", size, 2, 32 << 10, 1 << 20, 16 << 20) for size in (64, 32, 16)]

PROGRAMS: dict[str, Callable[..., Any]] = {
    "alone": lambda a, b, c: a @ b,
    "bias and relu": lambda a, b, c: np.maximum(a @ b + c, 0),
    "a stack": lambda a, b, c: np.stack([a, a * 2]) @ b,
    "a stack of both": lambda a, b, c: np.stack([a, a * 2]) @ np.stack([b, b + 1]),
    "turned operands": lambda a, b, c: np.tanh(b.T @ a.T),
    "a row's own factor": lambda a, b, c: (a @ b) * a[:, :1] + c,
    "one after another": lambda a, b, c: (a @ b) @ b.T,
    "softmax": lambda a, b, c: np.exp(a @ b - (a @ b).max(axis=1, keepdims=True)),
}
SHAPES = [(1, 5, 7), (12, 4, 32), (13, 77, 45), (24, 9, 64), (25, 3, 65), (7, 30, 10), (5, 5, 100)]


def generated(function: Callable[..., Any], *arrays: Array) -> Any:
    return nbcomp.compile_for("llvm", nbcomp.Options(without={"blas"}))(function, *arrays)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_products_of_every_shape(name: str, shape: tuple[int, int, int], dtype: Any) -> None:
    rng = np.random.default_rng(hash(shape) % 1000)
    m, k, n = shape
    arrays = [rng.standard_normal(s).astype(dtype) for s in ((m, k), (k, n), n)]
    function = PROGRAMS[name]
    with np.errstate(all="ignore"):
        wanted = function(*arrays)
    tolerance = 2e-4 if dtype is np.float32 else 1e-11
    got = generated(function, *arrays)(*arrays)
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


def test_every_level_of_a_generated_product() -> None:
    rng = np.random.default_rng(1)
    a, b, c = (rng.random(s, np.float32) for s in ((13, 5), (5, 37), (37,)))
    compiled = generated(PROGRAMS["bias and relu"], a, b, c)
    for name, run in levels(compiled):
        wanted = PROGRAMS["bias and relu"](a, b, c)
        np.testing.assert_allclose(run(a, b, c), wanted, rtol=1e-5, err_msg=name)


def test_no_library_is_called_and_the_sums_stay_in_registers() -> None:
    a, b, c = (np.ones(s, np.float32) for s in ((24, 40), (40, 64), (64,)))
    (kernel,) = generated(PROGRAMS["bias and relu"], a, b, c).kernels
    assert not any(isinstance(s, Call) for s in walk(kernel.kernel.stages))
    assert kernel.text("llvm").count("llvm.fmuladd") > 8
    assert kernel.text("llvm").count("alloca") == 1  # the copy of a panel


def test_not_a_number_and_infinity_go_through() -> None:
    a, b = np.ones((6, 4), np.float32), np.ones((4, 40), np.float32)
    a[1, 2], b[3, 7] = np.nan, np.inf
    got = generated(lambda a, b: a @ b, a, b)(a, b)
    np.testing.assert_array_equal(got, a @ b)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: f"{m.vector_bytes} bytes")
@pytest.mark.parametrize("shape", [(24, 64, 9), (29, 37, 8), (1, 200, 5), (3, 5, 2)])
def test_tiles_for_every_register_file(shape: tuple[int, int, int], machine: Machine) -> None:
    made = check(matmul(*shape), lambda k: block_products(k, machine))
    assert any("vectorize" in note for note in made.notes)


def test_blocked(golden: Golden) -> None:
    check(matmul(29, 37, 8), lambda k: block_products(k, MACHINES[0]), golden)


def blocked(k: Kernel, how: Blocking) -> Kernel:
    (stage,) = k.stages
    product = product_of(stage)
    assert product is not None
    return Blocker(k, product, how).run()


WALKS = {
    "panels": Blocking("panels", 4, 16, 16),
    "copied panels": Blocking("panels", 4, 32, 16, right="copied"),
    "panels, some terms at a time": Blocking("panels", 4, 16, 16, 5),
    "copied panels, some terms at a time": Blocking("panels", 4, 16, 16, 5, right="copied"),
    "tiles": Blocking("blocks", 4, 16, 16),
    "bands": Blocking("blocks", 3, 32, 16, rows=2, right="copied"),
    "dots": Blocking("dots", 2, 8, 16),
    "uneven dots": Blocking("dots", 3, 5, 16),
    "few rows, asked for ahead": Blocking("blocks", 8, 16, 16, 4, columns=2, ahead=3),
    "few rows": Blocking("blocks", 8, 16, 16, depth=4, columns=2),
    "few rows, copied": Blocking("blocks", 3, 16, 16, depth=4, columns=2, right="copied"),
    "few rows, copied and asked for ahead": Blocking(
        "blocks", 3, 16, 16, depth=4, columns=2, right="copied", ahead=4
    ),
    "blocks": Blocking("blocks", 4, 32, 16, 4, rows=2, columns=2, left=True, right="packed"),
    "blocks of all terms": Blocking("blocks", 4, 16, 16, 100, 3, 1, left=True, right="packed"),
}


@pytest.mark.parametrize("shape", [(17, 68, 9), (8, 64, 10), (30, 7, 6), (3, 40, 9)])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("walk", WALKS)
def test_every_walk(walk: str, turned: bool, shape: tuple[int, int, int]) -> None:
    check(matmul(*shape, turned=turned), lambda k: blocked(k, WALKS[walk]))


@pytest.mark.parametrize("walk", ["copied panels", "bands", "blocks"])
def test_walks(walk: str, golden: Golden) -> None:
    check(matmul(24, 96, 13), lambda k: blocked(k, WALKS[walk]), golden)


def chosen(m: int, k: int, n: int, dtype: Any = np.float32, turned: bool = False) -> Blocking:
    (stage,) = matmul(m, n, k, dtype, turned).stages
    product = product_of(stage)
    assert product is not None
    return blocking_for(product, MACHINES[0])


def row(n: int, depth: int) -> Kernel:
    """One row of a product, as lowering writes it: without a loop over rows."""
    k = matmul(1, n, depth)
    (rows,) = k.stages
    return replace(k, stages=substitute(rows.body, {rows.var: affine(0)}))


@pytest.mark.parametrize(("n", "depth"), [(300, 70), (1024, 64), (17, 200), (601, 67)])
@pytest.mark.parametrize("vector", [64, 32])
def test_one_row_of_large_weights(
    n: int, depth: int, vector: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walks, "SUMS", 2 << 10)  # several blocks of columns
    machine = Machine("m", vector, 2, 1 << 10, 4 << 10, 16 << 20)
    made = check(row(n, depth), lambda k: block_products(k, machine))
    assert [b.shape for b in made.buffers if b.role == "temp"] == [(2, n)]


def test_one_row_is_shared_by_its_terms() -> None:
    a, b = np.ones((1, 801), np.float32), np.ones((801, 700), np.float32)
    compiled = generated(lambda a, b: np.maximum(a @ b, 0), a, b)
    parts = f"801 terms of each sum are added up in {host().cores} parts"
    assert any(parts in r.reason for r in compiled.trace.remarks) == (host().cores > 1)
    np.testing.assert_array_equal(compiled(a, b), a @ b)


def test_the_walk_is_chosen_by_what_the_caches_hold() -> None:
    few = chosen(500, 700, 300)
    assert (few.walk, few.right) == ("panels", "copied")
    assert chosen(16, 200, 300).right == "in place"  # a panel is read twice only
    assert chosen(20, 200, 300, turned=True).right == "copied"
    large = chosen(2000, 3000, 2000)
    assert (large.walk, large.right) == ("blocks", "packed")
    assert chosen(1024, 1024, 1024).walk == "panels"  # rows that are pages apart are no matter
    assert chosen(5000, 256, 10).rows > 1
    assert (chosen(16, 4096, 1024).depth, chosen(16, 4096, 1024).ahead) == (16, 32)
    assert (chosen(64, 4096, 1024).right, chosen(64, 4096, 1024).ahead) == ("copied", 64)
    assert chosen(64, 4096, 1024, turned=True).depth == 1024


def test_panels_are_as_wide_as_cores_share_them_best() -> None:
    assert chosen(1000, 1000, 1000).width == 48  # 20 panels
    assert chosen(1024, 1024, 1024).width == 32  # 32 panels, where 21 would be 11 for one core


def test_tiles_have_the_height_that_divides_few_rows() -> None:
    assert [chosen(m, 700, 640).height for m in (4, 12, 13, 16, 24, 64)] == [4, 6, 7, 8, 8, 8]
    assert [chosen(m, 700, 640).width // 16 for m in (2, 4, 8, 12)] == [8, 5, 2, 4]


def test_columns_become_rows_by_whole_vectors() -> None:
    made = check(matmul(8, 64, 48, turned=True), lambda k: blocked(k, WALKS["copied panels"]))
    assert "scatter" not in generate(made, 64).text


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: np.swapaxes(a @ b, 0, 1) + 3,
        lambda a, b: np.tanh(a @ b).T + (a @ b),
        lambda a, b: (a @ b)[::-1] * 2,
        lambda a, b: np.swapaxes(np.rint(a @ b), 0, 1),
        lambda a, b: (a @ b, (a @ b).T.copy()),
    ],
)
def test_products_that_are_read_in_another_order(function: Callable[..., Any]) -> None:
    a, b = (np.random.default_rng(s).random((20, 20), np.float32) for s in (1, 2))
    got, wanted = generated(function, a, b)(a, b), function(a, b)
    for one, other in zip(np.atleast_3d(got), np.atleast_3d(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_a_stack_that_shares_its_right_operand_has_the_rows_of_one_product() -> None:
    a, b = np.ones((6, 4, 20), np.float32), np.ones((20, 48), np.float32)
    made = generated(lambda a, b: np.tanh(a @ b), a, b)
    np.testing.assert_allclose(made(a, b), np.tanh(a @ b), rtol=1e-5)
    assert 'fuse("b0", "i")' in made.kernels[0].kernel.notes
    apart = generated(lambda a, b: a[:, ::2] @ b, a, b)
    np.testing.assert_allclose(apart(a, b), a[:, ::2] @ b, rtol=1e-5)


def test_what_is_no_product_is_left_alone() -> None:
    kernel = two_stages()
    assert block_products(kernel, MACHINES[0]) is kernel


TURNED: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "x @ x.T": (lambda x: x @ x.mT, lambda x, y, z: x @ y.mT),
    "x.T @ x": (lambda x: x.mT @ x, lambda x, y, z: x.mT @ y),
    "x @ x": (lambda x: x @ x, lambda x, y, z: x @ y),
    "with what follows": (lambda x: x @ x.mT + x, lambda x, y, z: x @ y.mT + z),
    "parts of one array": (
        lambda x: x[..., :64] @ x[..., 64:128].mT,
        lambda x, y, z: x[..., :64] @ y[..., 64:128].mT,
    ),
    "computed": (lambda x: np.abs(x) @ x.mT, lambda x, y, z: np.abs(x) @ y.mT),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(160, 160), (2, 160, 160)])
@pytest.mark.parametrize("name", TURNED)
def test_an_array_with_itself_has_the_schedule_of_two(
    name: str, shape: tuple[int, ...], dtype: Any
) -> None:
    one, two = TURNED[name]
    x = np.random.default_rng(3).standard_normal(shape).astype(dtype)
    own, other = generated(one, x), generated(two, x, x, x)
    assert _steps(own) == _steps(other)
    tolerance = 2e-4 if dtype is np.float32 else 1e-11
    np.testing.assert_allclose(own(x), one(x), rtol=tolerance, atol=tolerance)


def _steps(compiled: Any) -> list[str]:
    """The schedule's steps, by name."""
    kernels = [step.kernel for step in compiled.program.steps]
    return [note.split("(")[0] for kernel in kernels for note in kernel.notes]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("inner", "columns", "dtype"),
    [(517, 701, "f4"), (1040, 300, "f4"), (301, 640, "f8"), (9, 40_001, "f4"), (700, 513, "f8")],
)
def test_one_row_of_a_large_operand(
    inner: int, columns: int, dtype: str, turned: bool, rng: np.random.Generator
) -> None:
    """Some of its rows are walked at a time, and every column has its sum."""
    a, b, c = (
        rng.standard_normal(s).astype(dtype) for s in ((1, inner), (inner, columns), columns)
    )
    b = np.ascontiguousarray(b.T) if turned else b

    def f(a: Any, b: Any, c: Any) -> Any:
        return np.maximum(a @ (b.T if turned else b) + c, 0)

    made = generated(f, a, b, c)
    np.testing.assert_allclose(made(a, b, c), f(a, b, c), rtol=1e-4, atol=1e-3)
    (kernel,) = made.kernels
    assert "distribute" in "\n".join(kernel.kernel.notes)


def test_columns_that_fill_no_panel_are_shared_by_rows() -> None:
    """A panel of them that is copied would be one core's work."""
    a, b = np.ones((200, 60), np.float32), np.ones((60, 300), np.float32)
    (kernel,) = generated(lambda a, b: a @ b, a, b).kernels
    spread = [s for s in kernel.kernel.stages if isinstance(s, For) and s.kind == "parallel"]
    assert len(spread) == 2
    assert all(isinstance(s.extent, Affine) and s.extent.constant > 1 for s in spread)


@pytest.mark.parametrize("scalar", [3, 2.5, np.float32(3)])
def test_a_scalar_read_at_run_time_leaves_a_product_what_it_is(scalar: Any) -> None:
    def program(a: Any, b: Any, c: Any) -> Any:
        return a @ b.T + c

    a, b = (np.random.default_rng(0).random((200, 64), np.float32) for _ in "ab")
    made = nbcomp.jit(program)
    np.testing.assert_allclose(made(a, b, scalar), program(a, b, scalar), rtol=1e-5)
    other = nbcomp.jit(program)
    other(a, b, np.ones(200, np.float32))
    (kernel,), (like,) = made.compiled.kernels, other.compiled.kernels
    assert "b_near" in str(like.kernel)
    assert "b_near" in str(kernel.kernel)
    loops = [s for s in walk(kernel.kernel.stages) if isinstance(s, For) and s.kind == "vector"]
    wide = [s for s in loops if isinstance(s.extent, Affine) and s.extent.constant == 48]
    assert {lanes_of(s, 64) for s in wide} == {16}  # although an int is read as int64
